#include "comm/comm.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_ALLTOALL = 101, TAG_RING, TAG_GATHER, TAG_PART, TAG_DRAW, TAG_DRAWN };
static const size_t default_max_message = (size_t)1 << 29; /* bytes, below 1 GiB */

void mt_comm_abort(void)
{
  MPI_Abort(MPI_COMM_WORLD, 1);
  abort();
}

void mt_mpi_abort(const char *call, int code, const char *file, int line)
{
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  mt_fail(MT_ERR_LIBRARY, "%s:%d: %s: %s", file, line, call, text);
  mt_comm_abort();
}

static mt_comm comm_of(MPI_Comm mpi)
{
  mt_comm comm = {.mpi = mpi, .max_message = default_max_message};
  MT_MPI(MPI_Comm_rank(mpi, &comm.rank));
  MT_MPI(MPI_Comm_size(mpi, &comm.size));
  return comm;
}

mt_status mt_comm_start(int *argc, char ***argv, mt_comm *world_out)
{
  int level;
  MPI_Comm mpi;
  MT_MPI(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level));
  if (level < MPI_THREAD_FUNNELED)
    return mt_fail(MT_ERR_LIBRARY, "this MPI cannot be used with threads (level %d)",
                   level);
  MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &mpi));
  *world_out = comm_of(mpi);
  return MT_OK;
}

void mt_comm_stop(mt_comm *world)
{
  mt_comm_free(world);
  MT_MPI(MPI_Finalize());
}

mt_comm mt_comm_self(void)
{
  return comm_of(MPI_COMM_SELF);
}

mt_status mt_comm_split(const mt_comm *comm, int color, int key, mt_comm *out)
{
  MPI_Comm mpi;
  MT_MPI(MPI_Comm_split(comm->mpi, color < 0 ? MPI_UNDEFINED : color, key, &mpi));
  mt_comm none = {.mpi = MPI_COMM_NULL};
  *out = mpi == MPI_COMM_NULL ? none : comm_of(mpi);
  out->max_message = comm->max_message;
  return MT_OK;
}

mt_status mt_comm_part(const mt_comm *comm, int first, int count, mt_comm *out)
{
  MPI_Comm mpi;
  MPI_Group all, part;
  int range[1][3] = {{first, first + count - 1, 1}};
  MT_MPI(MPI_Comm_group(comm->mpi, &all));
  MT_MPI(MPI_Group_range_incl(all, 1, range, &part));
  MT_MPI(MPI_Comm_create_group(comm->mpi, part, TAG_PART, &mpi));
  MT_MPI(MPI_Group_free(&part));
  MT_MPI(MPI_Group_free(&all));
  *out = comm_of(mpi);
  out->max_message = comm->max_message;
  return MT_OK;
}

mt_status mt_comm_node(const mt_comm *comm, mt_comm *out)
{
  MPI_Comm mpi;
  MT_MPI(MPI_Comm_split_type(comm->mpi, MPI_COMM_TYPE_SHARED, comm->rank, MPI_INFO_NULL,
                             &mpi));
  *out = comm_of(mpi);
  out->max_message = comm->max_message;
  return MT_OK;
}

void mt_comm_free(mt_comm *comm)
{
  if (comm->size > 0 && comm->mpi != MPI_COMM_SELF) MT_MPI(MPI_Comm_free(&comm->mpi));
  comm->size = 0;
}

mt_status mt_agree(const mt_comm *comm, mt_status local)
{
  int mine = (int)local, worst = (int)local;
  MT_MPI(MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, comm->mpi));
  return (mt_status)worst;
}

bool mt_stop_agreed(const mt_comm *comm)
{
  int mine = mt_stop_requested(), any = 0;
  MT_MPI(MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, comm->mpi));
  return any != 0;
}

mt_status mt_barrier(const mt_comm *comm)
{
  MT_MPI(MPI_Barrier(comm->mpi));
  return MT_OK;
}

static size_t slice_of(const mt_comm *comm, size_t left)
{
  return left < comm->max_message ? left : comm->max_message;
}

mt_status mt_bcast(const mt_comm *comm, int root, size_t bytes, void *buf)
{
  char *at = buf;
  for (size_t left = bytes; left > 0;) {
    size_t slice = slice_of(comm, left);
    MT_MPI(MPI_Bcast(at, (int)slice, MPI_BYTE, root, comm->mpi));
    at += slice;
    left -= slice;
  }
  return MT_OK;
}

mt_status mt_bcast_bytes(const mt_comm *comm, int root, size_t *size, char **bytes)
{
  mt_status status = MT_OK;
  char *received = NULL;
  MT_TRY(mt_bcast(comm, root, sizeof *size, size));
  if (comm->rank != root)
    status = mt_memory_new((int64_t)*size + 1, 1, "broadcast", (void **)&received);
  MT_TRY(mt_agree(comm, status));
  MT_TRY(mt_bcast(comm, root, *size, comm->rank == root ? *bytes : received));
  if (comm->rank != root) *bytes = received;
  received = NULL;
done:
  free(received);
  return status;
}

/* n 8-byte elements, reduced in place in slices. */
static mt_status reduce_words(const mt_comm *comm, int64_t n, void *values,
                              MPI_Datatype type, MPI_Op op)
{
  char *at = values;
  int64_t most = (int64_t)(comm->max_message / 8);
  if (most < 1) most = 1;
  while (n > 0) {
    int64_t slice = n < most ? n : most;
    MT_MPI(MPI_Allreduce(MPI_IN_PLACE, at, (int)slice, type, op, comm->mpi));
    at += slice * 8;
    n -= slice;
  }
  return MT_OK;
}

mt_status mt_sum_i64(const mt_comm *comm, int64_t n, int64_t *values)
{
  return reduce_words(comm, n, values, MPI_INT64_T, MPI_SUM);
}

mt_status mt_min_i64(const mt_comm *comm, int64_t n, int64_t *values)
{
  return reduce_words(comm, n, values, MPI_INT64_T, MPI_MIN);
}

mt_status mt_max_i64(const mt_comm *comm, int64_t n, int64_t *values)
{
  return reduce_words(comm, n, values, MPI_INT64_T, MPI_MAX);
}

mt_status mt_min_f64(const mt_comm *comm, int64_t n, double *values)
{
  return reduce_words(comm, n, values, MPI_DOUBLE, MPI_MIN);
}

mt_status mt_max_f64(const mt_comm *comm, int64_t n, double *values)
{
  return reduce_words(comm, n, values, MPI_DOUBLE, MPI_MAX);
}

mt_status mt_exscan_i64(const mt_comm *comm, int64_t value, int64_t *before_out)
{
  int64_t before = 0;
  MT_MPI(MPI_Exscan(&value, &before, 1, MPI_INT64_T, MPI_SUM, comm->mpi));
  *before_out = comm->rank == 0 ? 0 : before;
  return MT_OK;
}

/* Memory of this file's own: without it nothing can be agreed on any more. */
static void *room_for(size_t count, size_t size)
{
  void *room = calloc(count, size);
  if (room == NULL)
    mt_mpi_abort("no memory for a transfer", MPI_ERR_NO_MEM, __FILE__, __LINE__);
  return room;
}

static size_t sum_of(int n, const size_t *bytes)
{
  size_t sum = 0;
  for (int r = 0; r < n; r++) sum += bytes[r];
  return sum;
}

mt_status mt_allgather(const mt_comm *comm, size_t bytes, const void *send, void *recv)
{
  size_t *sizes = room_for((size_t)comm->size, sizeof *sizes);
  for (int r = 0; r < comm->size; r++) sizes[r] = bytes;
  if (bytes > 0) memmove((char *)recv + (size_t)comm->rank * bytes, send, bytes);
  mt_status status = mt_allgatherv(comm, sizes, recv);
  free(sizes);
  return status;
}

/* All blocks together fit in one message: MPI's own algorithm takes log(size) steps. */
static void allgatherv_once(const mt_comm *comm, const size_t *bytes, void *buf)
{
  int *counts = room_for(2 * (size_t)comm->size, sizeof *counts);
  int *starts = counts + comm->size, at = 0;
  for (int r = 0; r < comm->size; r++) {
    counts[r] = (int)bytes[r];
    starts[r] = at;
    at += counts[r];
  }
  MT_MPI(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, buf, counts, starts, MPI_BYTE,
                        comm->mpi));
  free(counts);
}

mt_status mt_allgatherv(const mt_comm *comm, const size_t *bytes, void *buf)
{
  char *at = buf;
  if (sum_of(comm->size, bytes) <= comm->max_message) {
    allgatherv_once(comm, bytes, buf);
    return MT_OK;
  }
  for (int r = 0; r < comm->size; r++) {
    mt_bcast(comm, r, bytes[r], at);
    at += bytes[r];
  }
  return MT_OK;
}

mt_status mt_allgather_rows(const mt_comm *comm, int64_t n, size_t row_bytes, void *buf)
{
  size_t *bytes = room_for((size_t)comm->size, sizeof *bytes);
  for (int r = 0; r < comm->size; r++)
    bytes[r] = (size_t)mt_part_count(n, comm->size, r) * row_bytes;
  mt_status status = mt_allgatherv(comm, bytes, buf);
  free(bytes);
  return status;
}

mt_status mt_allgather_bytes(const mt_comm *comm, size_t size, const void *block,
                             size_t *size_out, void **all_out)
{
  mt_status status = MT_OK;
  size_t *bytes = room_for((size_t)comm->size, sizeof *bytes), total;
  char *all = NULL;
  MT_TRY(mt_allgather(comm, sizeof size, &size, bytes));
  total = sum_of(comm->size, bytes);
  MT_TRY(mt_agree(comm, mt_memory_new((int64_t)total, 1, "gathered", (void **)&all)));
  if (size > 0) memcpy(all + sum_of(comm->rank, bytes), block, size);
  MT_TRY(mt_allgatherv(comm, bytes, all));
  *size_out = total;
  *all_out = all;
  all = NULL;
done:
  free(all);
  free(bytes);
  return status;
}

/* Point to point in slices; both sides cut the same way. */
static void send_slices(const mt_comm *comm, int to, int tag, size_t bytes,
                        const void *buf)
{
  const char *at = buf;
  for (size_t left = bytes; left > 0;) {
    size_t slice = slice_of(comm, left);
    MT_MPI(MPI_Send(at, (int)slice, MPI_BYTE, to, tag, comm->mpi));
    at += slice;
    left -= slice;
  }
}

static void receive_slices(const mt_comm *comm, int from, int tag, size_t bytes,
                           void *buf)
{
  char *at = buf;
  for (size_t left = bytes; left > 0;) {
    size_t slice = slice_of(comm, left);
    MT_MPI(MPI_Recv(at, (int)slice, MPI_BYTE, from, tag, comm->mpi, MPI_STATUS_IGNORE));
    at += slice;
    left -= slice;
  }
}

mt_status mt_gatherv(const mt_comm *comm, int root, const size_t *bytes,
                     const void *block, void *out)
{
  if (comm->rank != root) {
    send_slices(comm, root, TAG_GATHER, bytes[comm->rank], block);
    return MT_OK;
  }
  char *at = out;
  for (int r = 0; r < comm->size; r++) {
    if (r == root) {
      if (bytes[r] > 0) memmove(at, block, bytes[r]);
    } else {
      receive_slices(comm, r, TAG_GATHER, bytes[r], at);
    }
    at += bytes[r];
  }
  return MT_OK;
}

mt_status mt_transfer(const mt_comm *comm, int from, int to, size_t bytes, void *buf)
{
  if (from == to) return MT_OK;
  if (comm->rank == from) send_slices(comm, to, TAG_GATHER, bytes, buf);
  if (comm->rank == to) receive_slices(comm, from, TAG_GATHER, bytes, buf);
  return MT_OK;
}

mt_status mt_alltoall_sizes(const mt_comm *comm, const size_t *send_bytes,
                            size_t *recv_bytes_out)
{
  MT_MPI(MPI_Alltoall(send_bytes, sizeof(size_t), MPI_BYTE, recv_bytes_out,
                      sizeof(size_t), MPI_BYTE, comm->mpi));
  return MT_OK;
}

/* One partner a step (to rank + step, from rank - step), a slice each way at a time. */
static void exchange(const mt_comm *comm, int to, size_t send_bytes, const char *send,
                     int from, size_t recv_bytes, char *recv)
{
  while (send_bytes > 0 || recv_bytes > 0) {
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    size_t out = slice_of(comm, send_bytes), in = slice_of(comm, recv_bytes);
    if (in > 0)
      MT_MPI(MPI_Irecv(recv, (int)in, MPI_BYTE, from, TAG_ALLTOALL, comm->mpi,
                       &requests[0]));
    if (out > 0)
      MT_MPI(MPI_Isend(send, (int)out, MPI_BYTE, to, TAG_ALLTOALL, comm->mpi,
                       &requests[1]));
    MT_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    send += out;
    recv += in;
    send_bytes -= out;
    recv_bytes -= in;
  }
}

/* Blocks lie side by side: the next partner's is found from the last one's. */
mt_status mt_alltoallv(const mt_comm *comm, const size_t *send_bytes, const void *send,
                       const size_t *recv_bytes, void *recv)
{
  int size = comm->size, rank = comm->rank;
  size_t send_at = sum_of(rank, send_bytes), recv_at = sum_of(rank, recv_bytes);
  size_t recv_end = sum_of(size, recv_bytes);
  if (send_bytes[rank] > 0)
    memcpy((char *)recv + recv_at, (const char *)send + send_at, send_bytes[rank]);
  for (int step = 1; step < size; step++) {
    int to = (rank + step) % size, from = (rank + size - step) % size;
    send_at = to > 0 ? send_at + send_bytes[to - 1] : 0;
    recv_at = (from < size - 1 ? recv_at : recv_end) - recv_bytes[from];
    exchange(comm, to, send_bytes[to], (const char *)send + send_at, from,
             recv_bytes[from], (char *)recv + recv_at);
  }
  return MT_OK;
}

struct mt_ring {
  int n;
  MPI_Request requests[]; /* receives, then sends */
};

static int slices_of(const mt_comm *comm, size_t bytes)
{
  return (int)((bytes + comm->max_message - 1) / comm->max_message);
}

mt_status mt_ring_begin(const mt_comm *comm, size_t send_bytes, const void *send,
                        size_t recv_bytes, void *recv, mt_ring **ring_out)
{
  int next = (comm->rank + 1) % comm->size;
  int previous = (comm->rank + comm->size - 1) % comm->size;
  int n = slices_of(comm, recv_bytes) + slices_of(comm, send_bytes);
  mt_ring *ring = room_for(1, sizeof *ring + (size_t)n * sizeof(MPI_Request));
  for (size_t at = 0; at < recv_bytes; at += comm->max_message)
    MT_MPI(MPI_Irecv((char *)recv + at, (int)slice_of(comm, recv_bytes - at), MPI_BYTE,
                     previous, TAG_RING, comm->mpi, &ring->requests[ring->n++]));
  for (size_t at = 0; at < send_bytes; at += comm->max_message)
    MT_MPI(MPI_Isend((const char *)send + at, (int)slice_of(comm, send_bytes - at),
                     MPI_BYTE, next, TAG_RING, comm->mpi, &ring->requests[ring->n++]));
  *ring_out = ring;
  return MT_OK;
}

void mt_ring_progress(mt_ring *ring)
{
  int done;
  if (ring != NULL)
    MT_MPI(MPI_Testall(ring->n, ring->requests, &done, MPI_STATUSES_IGNORE));
}

mt_status mt_ring_end(const mt_comm *comm, mt_ring **ring)
{
  (void)comm; /* there to say that all ranks come here */
  if (*ring == NULL) return MT_OK;
  MT_MPI(MPI_Waitall((*ring)->n, (*ring)->requests, MPI_STATUSES_IGNORE));
  free(*ring);
  *ring = NULL;
  return MT_OK;
}

/* Rank 0 keeps the number and answers the others' draws by messages: one-sided operations are
 * not to be had on every network (Open MPI 4.1 has none over TCP between nodes). */
struct mt_counter {
  const mt_comm *comm; /* borrowed */
  int64_t value;       /* on rank 0 */
};

mt_status mt_counter_create(const mt_comm *comm, mt_counter **counter_out)
{
  mt_status status = MT_OK;
  mt_counter *counter = NULL;
  MT_TRY(
      mt_agree(comm, mt_memory_new(1, sizeof *counter, "counter", (void **)&counter)));
  counter->comm = comm;
  *counter_out = counter;
  counter = NULL;
done:
  free(counter);
  return status;
}

mt_status mt_counter_next(mt_counter *counter, int64_t *value_out)
{
  MPI_Comm mpi = counter->comm->mpi;
  if (counter->comm->rank == 0) {
    *value_out = counter->value++;
    mt_counter_serve(counter);
  } else {
    MT_MPI(MPI_Sendrecv(NULL, 0, MPI_BYTE, 0, TAG_DRAW, value_out, 1, MPI_INT64_T, 0,
                        TAG_DRAWN, mpi, MPI_STATUS_IGNORE));
  }
  return MT_OK;
}

void mt_counter_serve(mt_counter *counter)
{
  MPI_Comm mpi = counter->comm->mpi;
  MPI_Status who;
  int there = counter->comm->rank == 0;
  while (there) {
    MT_MPI(MPI_Iprobe(MPI_ANY_SOURCE, TAG_DRAW, mpi, &there, &who));
    if (!there) break;
    MT_MPI(
        MPI_Recv(NULL, 0, MPI_BYTE, who.MPI_SOURCE, TAG_DRAW, mpi, MPI_STATUS_IGNORE));
    MT_MPI(MPI_Send(&counter->value, 1, MPI_INT64_T, who.MPI_SOURCE, TAG_DRAWN, mpi));
    counter->value++;
  }
}

mt_status mt_counter_destroy(const mt_comm *comm, mt_counter **counter)
{
  MPI_Request all_here;
  int done = 0;
  if (*counter == NULL) return MT_OK;
  MT_MPI(MPI_Ibarrier(comm->mpi, &all_here)); /* until then rank 0 is asked */
  while (!done) {
    mt_counter_serve(*counter);
    MT_MPI(MPI_Test(&all_here, &done, MPI_STATUS_IGNORE));
  }
  free(*counter);
  *counter = NULL;
  return MT_OK;
}
