/* NCCL between the GPUs of the team. The communicator does not block: every call is polled, so
 * that a peer that is gone ends the job with a cause and not in a wait without end. */
#include "exchange.h"

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <nccl.h>
#include <sched.h>
#include <unistd.h>

enum { MOST_MARKS = 64, DEADLINE = 45 /* s */, POLLS_BEFORE_YIELD = 2000 };

/* Where an operation begins and ends on its stream. */
typedef struct mt_mark {
  const char *what;
  cudaEvent_t begun, ended;
} mt_mark;

/* A process of the team: is it still there? */
typedef struct mt_peer {
  char host[64];
  pid_t pid;
  bool near; /* on this node, where a process can be asked for */
} mt_peer;

struct mt_exchange {
  mt_comm team;
  mt_peer *peers;      /* (team.size) */
  char id[20];         /* this GPU's PCI bus id */
  ncclComm_t nccl;     /* NULL: one GPU alone */
  cudaStream_t side;   /* of ring steps */
  cudaEvent_t ready;   /* the stream's work before a ring step */
  cudaEvent_t shifted; /* the ring step */
  double deadline;     /* seconds without progress */
  mt_mark marks[MOST_MARKS];
  int first, n;  /* of the operations not seen to end: a queue */
  int64_t ended; /* how many have been */
  bool counting;
  mt_exchange_cost cost;
};

/* ---- giving up ------------------------------------------------------------------------- */

static void end_job(mt_exchange *x) __attribute__((noreturn));
static void end_job(mt_exchange *x)
{
  alarm(10); /* kills this process, should one of the next two wait as well */
  if (x->nccl != nullptr) ncclCommAbort(x->nccl);
  mt_comm_abort();
}

void mt_exchange_lose(const mt_gpu *gpu)
{
  mt_exchange *x = gpu->exchange;
  if (x != nullptr && x->nccl != nullptr) end_job(x);
}

/* Nothing can be agreed on any more: the others may wait in an operation with this GPU. */
static void give_up(mt_exchange *x, const char *format, ...)
    __attribute__((noreturn, format(printf, 2, 3)));
static void give_up(mt_exchange *x, const char *format, ...)
{
  char cause[1000];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(cause, sizeof cause, format, arguments);
  va_end(arguments);
  const char *what = x->n > 0 ? x->marks[x->first].what : "no operation";
  mt_fail(MT_ERR_LIBRARY,
          "NCCL, %s, GPU %d of %d (%s, %s): %s; the job ends, run it again to go "
          "on from the last whole file",
          what, x->team.rank, x->team.size, x->peers[x->team.rank].host, x->id, cause);
  end_job(x);
}

static void require(mt_exchange *x, ncclResult_t code, const char *call)
{
  if (code != ncclSuccess && code != ncclInProgress)
    give_up(x, "%s: %s: %s", call, ncclGetErrorString(code), ncclGetLastError(x->nccl));
}
#define MT_NCCL(call) require(x, call, #call)

static void look_for_peers(mt_exchange *x)
{
  for (int r = 0; r < x->team.size; r++)
    if (x->peers[r].near && kill(x->peers[r].pid, 0) != 0 && errno == ESRCH)
      give_up(x, "the process of GPU %d (%s, pid %lld) is gone", r, x->peers[r].host,
              (long long)x->peers[r].pid);
}

/* ---- operations under way ------------------------------------------------------------------ */

static bool passed(cudaEvent_t event)
{
  cudaError_t code = cudaEventQuery(event);
  if (code == cudaErrorNotReady) cudaGetLastError();
  return code == cudaSuccess;
}

/* Forgets those that are through. Streams differ: a later one may end before an earlier. */
static void retire(mt_exchange *x)
{
  while (x->n > 0 && passed(x->marks[x->first].ended)) {
    float milliseconds = 0.0f;
    mt_mark *mark = &x->marks[x->first];
    if (x->counting &&
        cudaEventElapsedTime(&milliseconds, mark->begun, mark->ended) == cudaSuccess)
      x->cost.seconds += 1e-3 * milliseconds;
    x->first = (x->first + 1) % MOST_MARKS;
    x->n--;
    x->ended++;
  }
}

/* A wait with an end: between looks at what is awaited. */
typedef struct mt_patience {
  int64_t polls;
  int64_t ended; /* operations seen to end at `since` */
  double since;
} mt_patience;

static mt_patience patience_of(const mt_exchange *x)
{
  return (mt_patience){0, x != nullptr ? x->ended : 0, mt_seconds()};
}

/* Gives the core to others after a while; now and then looks whether NCCL and the peers are
 * well. `stuck`: the time counts towards the deadline. */
static void be_patient(mt_exchange *x, mt_patience *p, bool stuck)
{
  if (++p->polls < POLLS_BEFORE_YIELD) return;
  sched_yield();
  if (x == nullptr || x->nccl == nullptr || p->polls % POLLS_BEFORE_YIELD != 0) return;
  ncclResult_t health = ncclSuccess;
  MT_NCCL(ncclCommGetAsyncError(x->nccl, &health));
  require(x, health, "ncclCommGetAsyncError");
  look_for_peers(x);
  double now = mt_seconds();
  if (!stuck || x->ended != p->ended) {
    p->since = now;
    p->ended = x->ended;
  }
  if (now - p->since > x->deadline)
    give_up(x,
            "not through after %.0f s (METATOPICS_GPU_DEADLINE): a peer is gone, or "
            "far behind",
            now - p->since);
}

/* Is the oldest operation at work, and not the GPU on what comes before it? With all marks in
 * use there may be operations between that have none. */
static bool waits_for_peers(mt_exchange *x)
{
  if (x == nullptr || x->nccl == nullptr) return false;
  retire(x);
  return x->n > 0 && (x->n == MOST_MARKS || passed(x->marks[x->first].begun));
}

mt_status mt_gpu_wait(mt_gpu *gpu)
{
  mt_exchange *x = gpu->exchange;
  mt_patience patience = patience_of(x);
  for (;;) {
    cudaError_t code = cudaStreamQuery(gpu->stream);
    if (code == cudaSuccess) break;
    if (code != cudaErrorNotReady)
      return mt_cuda_error(code, "cudaStreamQuery", __FILE__, __LINE__);
    cudaGetLastError();
    bool look = patience.polls % POLLS_BEFORE_YIELD == POLLS_BEFORE_YIELD - 1;
    be_patient(x, &patience, look && waits_for_peers(x));
  }
  if (x != nullptr) retire(x);
  return MT_OK;
}

/* NCCL has taken an operation: it is on the stream. */
static void settle(mt_exchange *x, ncclResult_t code, const char *call)
{
  require(x, code, call);
  mt_patience patience = patience_of(x);
  while (code == ncclInProgress) {
    be_patient(x, &patience, true);
    MT_NCCL(ncclCommGetAsyncError(x->nccl, &code));
    require(x, code, call);
  }
}

static mt_status begin(mt_gpu *gpu, cudaStream_t stream, const char *what)
{
  mt_exchange *x = gpu->exchange;
  retire(x);
  if (x->n == MOST_MARKS && x->counting) MT_PASS(mt_gpu_wait(gpu));
  if (x->n == MOST_MARKS) x->n--; /* the newest gives its mark: the oldest tell more */
  mt_mark *mark = &x->marks[(x->first + x->n) % MOST_MARKS];
  mark->what = what;
  x->n++;
  MT_CUDA(cudaEventRecord(mark->begun, stream));
  MT_NCCL(ncclGroupStart());
  return MT_OK;
}

static mt_status end(mt_exchange *x, cudaStream_t stream, int64_t sent)
{
  settle(x, ncclGroupEnd(), "ncclGroupEnd");
  MT_CUDA(cudaEventRecord(x->marks[(x->first + x->n - 1) % MOST_MARKS].ended, stream));
  if (x->counting) x->cost.bytes += sent;
  return MT_OK;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static mt_status read_deadline(double *deadline_out)
{
  const char *text = getenv("METATOPICS_GPU_DEADLINE");
  char *rest;
  *deadline_out = DEADLINE;
  if (text == nullptr || text[0] == '\0') return MT_OK;
  *deadline_out = strtod(text, &rest);
  if (*rest != '\0' || !(*deadline_out > 0.0))
    return mt_fail(MT_ERR_INPUT, "METATOPICS_GPU_DEADLINE=%s: not a number of seconds",
                   text);
  return MT_OK;
}

static mt_status prepare(mt_gpu *gpu, const mt_comm *comm)
{
  mt_exchange *x = (mt_exchange *)calloc(1, sizeof *x);
  if (x == nullptr) return mt_fail(MT_ERR_MEMORY, "no memory for the exchange");
  gpu->exchange = x;
  x->team = *comm;
  x->peers = (mt_peer *)calloc((size_t)comm->size, sizeof *x->peers);
  if (x->peers == nullptr) return mt_fail(MT_ERR_MEMORY, "no memory for the exchange");
  MT_PASS(read_deadline(&x->deadline));
  MT_CUDA(cudaDeviceGetPCIBusId(x->id, sizeof x->id, gpu->device));
  MT_CUDA(cudaStreamCreateWithFlags(&x->side, cudaStreamNonBlocking));
  MT_CUDA(cudaEventCreateWithFlags(&x->ready, cudaEventDisableTiming));
  MT_CUDA(cudaEventCreateWithFlags(&x->shifted, cudaEventDisableTiming));
  for (int i = 0; i < MOST_MARKS; i++) {
    MT_CUDA(cudaEventCreate(&x->marks[i].begun));
    MT_CUDA(cudaEventCreate(&x->marks[i].ended));
  }
  return MT_OK;
}

static mt_status introduce(mt_exchange *x)
{
  mt_peer me = {};
  gethostname(me.host, sizeof me.host - 1);
  me.pid = getpid();
  MT_PASS(mt_allgather(&x->team, sizeof me, &me, x->peers));
  for (int r = 0; r < x->team.size; r++)
    x->peers[r].near = r != x->team.rank && strcmp(x->peers[r].host, me.host) == 0 &&
                       kill(x->peers[r].pid, 0) == 0;
  return MT_OK;
}

static mt_status nccl_failed(mt_exchange *x, const char *call, ncclResult_t code)
{
  return mt_fail(
      MT_ERR_LIBRARY,
      "NCCL on GPU %d of %d (%s, %s): %s: %s: %s (NCCL_DEBUG=INFO tells more)",
      x->team.rank, x->team.size, x->peers[x->team.rank].host, x->id, call,
      ncclGetErrorString(code), ncclGetLastError(x->nccl));
}

static mt_status connect(mt_exchange *x, const ncclUniqueId *id)
{
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  double start = mt_seconds();
  ncclResult_t code =
      ncclCommInitRankConfig(&x->nccl, x->team.size, *id, x->team.rank, &config);
  while (code == ncclInProgress || code == ncclSuccess) {
    ncclResult_t state;
    code = ncclCommGetAsyncError(x->nccl, &state);
    if (code == ncclSuccess) code = state;
    if (code == ncclSuccess) return MT_OK;
    if (mt_seconds() - start > x->deadline)
      return mt_fail(
          MT_ERR_LIBRARY,
          "NCCL on GPU %d of %d (%s, %s) has not found the others within %.0f s "
          "(METATOPICS_GPU_DEADLINE; NCCL_DEBUG=INFO tells more)",
          x->team.rank, x->team.size, x->peers[x->team.rank].host, x->id, x->deadline);
    sched_yield();
  }
  return nccl_failed(x, "ncclCommInitRankConfig", code);
}

mt_status mt_exchange_open(mt_gpu *gpu, const mt_comm *comm)
{
  struct {
    ncclUniqueId id;
    mt_status status;
  } note = {};
  MT_PASS(mt_agree(comm, prepare(gpu, comm)));
  mt_exchange *x = gpu->exchange;
  MT_PASS(introduce(x));
  if (comm->size == 1) return MT_OK;
  if (comm->rank == 0) {
    ncclResult_t code = ncclGetUniqueId(&note.id);
    if (code != ncclSuccess) note.status = nccl_failed(x, "ncclGetUniqueId", code);
  }
  MT_PASS(mt_bcast(comm, 0, sizeof note, &note));
  if (note.status != MT_OK) return note.status;
  mt_status status = connect(x, &note.id);
  if (status != MT_OK && x->nccl != nullptr) {
    ncclCommAbort(x->nccl);
    x->nccl = nullptr;
  }
  return mt_agree(comm, status);
}

/* All work is done: the others come here too. */
static void disconnect(mt_exchange *x)
{
  double start = mt_seconds();
  ncclResult_t code = ncclCommFinalize(x->nccl);
  while (code == ncclInProgress && mt_seconds() - start < x->deadline) {
    sched_yield();
    if (ncclCommGetAsyncError(x->nccl, &code) != ncclSuccess) break;
  }
  if (code == ncclSuccess)
    ncclCommDestroy(x->nccl);
  else
    ncclCommAbort(x->nccl);
}

void mt_exchange_close(mt_gpu *gpu)
{
  mt_exchange *x = gpu->exchange;
  if (x == nullptr) return;
  if (x->nccl != nullptr) disconnect(x);
  for (int i = 0; i < MOST_MARKS; i++) {
    if (x->marks[i].begun != nullptr) cudaEventDestroy(x->marks[i].begun);
    if (x->marks[i].ended != nullptr) cudaEventDestroy(x->marks[i].ended);
  }
  if (x->shifted != nullptr) cudaEventDestroy(x->shifted);
  if (x->ready != nullptr) cudaEventDestroy(x->ready);
  if (x->side != nullptr) cudaStreamDestroy(x->side);
  free(x->peers);
  free(x);
  gpu->exchange = nullptr;
}

/* ---- operations -------------------------------------------------------------------------------- */

/* Alone, or with the team? */
static mt_status may(const mt_gpu *gpu, const mt_comm *comm)
{
  const mt_exchange *x = gpu->exchange;
  if (comm->size == 1 ||
      (x != nullptr && x->nccl != nullptr && comm->mpi == x->team.mpi))
    return MT_OK;
  return mt_fail(
      MT_ERR_ARG,
      "GPUs exchange data within the team that the backend was started with");
}

mt_status mt_gpu_allgather_blocks(mt_gpu *gpu, const mt_comm *comm,
                                  const int64_t *first, void *buf)
{
  MT_PASS(may(gpu, comm));
  if (comm->size == 1) return MT_OK;
  mt_exchange *x = gpu->exchange;
  char *bytes = (char *)buf;
  int me = comm->rank;
  int64_t mine = first[me + 1] - first[me];
  MT_PASS(begin(gpu, gpu->stream, "gathering blocks"));
  for (int step = 1; step < comm->size; step++) {
    int to = (me + step) % comm->size, from = (me + comm->size - step) % comm->size;
    int64_t theirs = first[from + 1] - first[from];
    if (mine > 0)
      MT_NCCL(ncclSend(bytes + first[me], (size_t)mine, ncclInt8, to, x->nccl,
                       gpu->stream));
    if (theirs > 0)
      MT_NCCL(ncclRecv(bytes + first[from], (size_t)theirs, ncclInt8, from, x->nccl,
                       gpu->stream));
  }
  return end(x, gpu->stream, mine * (comm->size - 1));
}

mt_status mt_gpu_allgather_rows(mt_gpu *gpu, const mt_comm *comm, int64_t n,
                                int64_t row_bytes, void *buf)
{
  MT_PASS(may(gpu, comm));
  if (comm->size == 1 || n == 0 || row_bytes == 0) return MT_OK;
  mt_exchange *x = gpu->exchange;
  int64_t block = n / comm->size * row_bytes;
  if (n % comm->size == 0) {
    MT_PASS(begin(gpu, gpu->stream, "gathering rows"));
    MT_NCCL(ncclAllGather((char *)buf + comm->rank * block, buf, (size_t)block,
                          ncclInt8, x->nccl, gpu->stream));
    return end(x, gpu->stream, block * (comm->size - 1));
  }
  int64_t *first = (int64_t *)calloc((size_t)comm->size + 1, sizeof *first);
  if (first == nullptr) give_up(x, "no memory for %d numbers", comm->size);
  for (int r = 0; r <= comm->size; r++)
    first[r] = mt_part_first(n, comm->size, r) * row_bytes;
  mt_status status = mt_gpu_allgather_blocks(gpu, comm, first, buf);
  free(first);
  return status;
}

static mt_status reduce(mt_gpu *gpu, const mt_comm *comm, int64_t n, void *values,
                        ncclDataType_t type, ncclRedOp_t op)
{
  MT_PASS(may(gpu, comm));
  if (comm->size == 1 || n == 0) return MT_OK;
  mt_exchange *x = gpu->exchange;
  MT_PASS(begin(gpu, gpu->stream, "reducing"));
  MT_NCCL(ncclAllReduce(values, values, (size_t)n, type, op, x->nccl, gpu->stream));
  return end(x, gpu->stream, 8 * n * 2 * (comm->size - 1) / comm->size);
}

mt_status mt_gpu_all_min_u64(mt_gpu *gpu, const mt_comm *comm, int64_t n,
                             uint64_t *values)
{
  return reduce(gpu, comm, n, values, ncclUint64, ncclMin);
}

mt_status mt_gpu_all_max_u64(mt_gpu *gpu, const mt_comm *comm, int64_t n,
                             uint64_t *values)
{
  return reduce(gpu, comm, n, values, ncclUint64, ncclMax);
}

mt_status mt_gpu_all_min_i64(mt_gpu *gpu, const mt_comm *comm, int64_t n,
                             int64_t *values)
{
  return reduce(gpu, comm, n, values, ncclInt64, ncclMin);
}

mt_status mt_gpu_all_sum_i64(mt_gpu *gpu, const mt_comm *comm, int64_t n,
                             int64_t *values)
{
  return reduce(gpu, comm, n, values, ncclInt64, ncclSum);
}

mt_status mt_gpu_alltoallv(mt_gpu *gpu, const mt_comm *comm, const size_t *send_bytes,
                           const void *send, const size_t *recv_bytes, void *recv)
{
  MT_PASS(may(gpu, comm));
  mt_exchange *x = gpu->exchange;
  int64_t sent = 0;
  const char *from = (const char *)send;
  char *to = (char *)recv;
  if (comm->size > 1) MT_PASS(begin(gpu, gpu->stream, "sending to owners"));
  for (int r = 0; r < comm->size; r++) {
    if (r == comm->rank) {
      MT_PASS(mt_on_device(gpu, (int64_t)send_bytes[r], from, to));
    } else {
      sent += (int64_t)send_bytes[r];
      if (send_bytes[r] > 0)
        MT_NCCL(ncclSend(from, send_bytes[r], ncclInt8, r, x->nccl, gpu->stream));
      if (recv_bytes[r] > 0)
        MT_NCCL(ncclRecv(to, recv_bytes[r], ncclInt8, r, x->nccl, gpu->stream));
    }
    from += send_bytes[r];
    to += recv_bytes[r];
  }
  return comm->size > 1 ? end(x, gpu->stream, sent) : MT_OK;
}

mt_status mt_gpu_shift_begin(mt_gpu *gpu, const mt_comm *comm, int shift,
                             int64_t send_bytes, const void *send, int64_t recv_bytes,
                             void *recv)
{
  MT_PASS(may(gpu, comm));
  mt_exchange *x = gpu->exchange;
  int to = (comm->rank + shift) % comm->size;
  int from = (comm->rank + comm->size - shift % comm->size) % comm->size;
  MT_CUDA(cudaEventRecord(x->ready, gpu->stream));
  MT_CUDA(cudaStreamWaitEvent(x->side, x->ready));
  if (to == comm->rank) {
    if (send_bytes > 0)
      MT_CUDA(cudaMemcpyAsync(recv, send, (size_t)send_bytes, cudaMemcpyDeviceToDevice,
                              x->side));
  } else {
    MT_PASS(begin(gpu, x->side, "passing a block round the ring"));
    if (send_bytes > 0)
      MT_NCCL(ncclSend(send, (size_t)send_bytes, ncclInt8, to, x->nccl, x->side));
    if (recv_bytes > 0)
      MT_NCCL(ncclRecv(recv, (size_t)recv_bytes, ncclInt8, from, x->nccl, x->side));
    MT_PASS(end(x, x->side, send_bytes));
  }
  MT_CUDA(cudaEventRecord(x->shifted, x->side));
  return MT_OK;
}

mt_status mt_gpu_shift_end(mt_gpu *gpu, const mt_comm *comm)
{
  MT_PASS(may(gpu, comm));
  MT_CUDA(cudaStreamWaitEvent(gpu->stream, gpu->exchange->shifted));
  return MT_OK;
}

mt_status mt_exchange_count(mt_gpu *gpu, bool on, mt_exchange_cost *cost_out)
{
  mt_exchange *x = gpu->exchange;
  MT_PASS(mt_gpu_wait(gpu));
  x->counting = on;
  if (cost_out != nullptr) *cost_out = x->cost;
  if (on) x->cost = (mt_exchange_cost){0, 0.0};
  return MT_OK;
}
