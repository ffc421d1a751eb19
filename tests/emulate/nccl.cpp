#include "nccl.h"

#include <mpi.h>
#include <vector>

enum { TAG_SETUP = 9001, TAG_DATA = 9002 };
static const size_t most = (size_t)1 << 28; /* bytes of a message */

struct mt_emulated_nccl {
  MPI_Comm mpi;
  int rank, size;
  ncclResult_t state;
};

/* Is that what MT_EMULATED_NCCL asks for? */
static bool is_broken(const char *how)
{
  const char *asked = getenv("MT_EMULATED_NCCL");
  return asked != nullptr && strcmp(asked, how) == 0;
}

/* What ncclGroupStart and ncclGroupEnd hold together. */
static struct {
  int depth;
  ncclComm_t comm; /* of the last operation */
  mt_emulated_access *access;
  std::vector<MPI_Request> requests;
} group;

ncclResult_t ncclGetVersion(int *version)
{
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t code)
{
  if (code == ncclRemoteError)
    return "remote process exited or there was a network error";
  return code == ncclSuccess ? "no error" : "wrong use of the emulated NCCL";
}

const char *ncclGetLastError(ncclComm_t)
{
  return "";
}

/* Who answers: the others ask this rank of the world. */
ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  memset(id, 0, sizeof *id);
  memcpy(id->internal, &rank, sizeof rank);
  return ncclSuccess;
}

/* The root learns who is which, and tells all. */
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id,
                                    int rank, ncclConfig_t *)
{
  int me, root;
  std::vector<int> ranks(size);
  if (is_broken("alone")) {
    *comm = new mt_emulated_nccl{MPI_COMM_NULL, rank, size, ncclInProgress};
    return ncclInProgress;
  }
  MPI_Group world, team;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  memcpy(&root, id.internal, sizeof root);
  MPI_Request request;
  int introduction[2] = {rank, me};
  MPI_Isend(introduction, 2, MPI_INT, root, TAG_SETUP, MPI_COMM_WORLD, &request);
  if (me == root) {
    for (int r = 0; r < size; r++) {
      int heard[2];
      MPI_Recv(heard, 2, MPI_INT, MPI_ANY_SOURCE, TAG_SETUP, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
      ranks[heard[0]] = heard[1];
    }
    for (int r = 0; r < size; r++)
      if (ranks[r] != me)
        MPI_Send(ranks.data(), size, MPI_INT, ranks[r], TAG_DATA, MPI_COMM_WORLD);
  } else {
    MPI_Recv(ranks.data(), size, MPI_INT, root, TAG_DATA, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  ncclComm_t made = new mt_emulated_nccl{MPI_COMM_NULL, rank, size, ncclSuccess};
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, size, ranks.data(), &team);
  MPI_Comm_create_group(MPI_COMM_WORLD, team, TAG_SETUP, &made->mpi);
  MPI_Group_free(&team);
  MPI_Group_free(&world);
  *comm = made;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
  *state = comm->state;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t)
{
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
  MPI_Comm_free(&comm->mpi);
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
  if (group.depth++ == 0) group.access = new mt_emulated_access;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
  if (--group.depth > 0) return ncclSuccess;
  if (group.depth < 0) return ncclInvalidUsage;
  if (is_broken("stuck") || is_broken("failed")) {
    if (group.comm != nullptr)
      group.comm->state = is_broken("stuck") ? ncclInProgress : ncclRemoteError;
    return ncclInProgress;
  }
  MPI_Waitall((int)group.requests.size(), group.requests.data(), MPI_STATUSES_IGNORE);
  group.requests.clear();
  delete group.access;
  group.access = nullptr;
  return ncclSuccess;
}

static size_t bytes_of(ncclDataType_t type, size_t count)
{
  return type == ncclInt8 ? count : 8 * count;
}

/* In slices, which both sides cut alike. */
ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t)
{
  if (group.depth == 0 || peer < 0 || peer >= comm->size) return ncclInvalidUsage;
  size_t bytes = bytes_of(type, count);
  group.comm = comm;
  for (size_t at = 0; at < bytes; at += most) {
    group.requests.push_back(MPI_REQUEST_NULL);
    MPI_Isend((const char *)send + at, (int)(bytes - at < most ? bytes - at : most),
              MPI_BYTE, peer, TAG_DATA, comm->mpi, &group.requests.back());
  }
  return ncclSuccess;
}

ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t)
{
  if (group.depth == 0 || peer < 0 || peer >= comm->size) return ncclInvalidUsage;
  size_t bytes = bytes_of(type, count);
  group.comm = comm;
  for (size_t at = 0; at < bytes; at += most) {
    group.requests.push_back(MPI_REQUEST_NULL);
    MPI_Irecv((char *)recv + at, (int)(bytes - at < most ? bytes - at : most), MPI_BYTE,
              peer, TAG_DATA, comm->mpi, &group.requests.back());
  }
  return ncclSuccess;
}

ncclResult_t ncclAllGather(const void *send, void *recv, size_t count,
                           ncclDataType_t type, ncclComm_t comm, cudaStream_t)
{
  mt_emulated_access access;
  size_t bytes = bytes_of(type, count);
  group.comm = comm;
  char *mine = (char *)recv + (size_t)comm->rank * bytes;
  if (bytes > most) return ncclInvalidArgument;
  if (mine != send) memmove(mine, send, bytes);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, recv, (int)bytes, MPI_BYTE, comm->mpi);
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count,
                           ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t)
{
  mt_emulated_access access;
  if (type == ncclInt8 || count > most) return ncclInvalidArgument;
  group.comm = comm;
  MPI_Allreduce(send == recv ? MPI_IN_PLACE : send, recv, (int)count,
                type == ncclInt64 ? MPI_INT64_T : MPI_UINT64_T,
                op == ncclSum   ? MPI_SUM
                : op == ncclMax ? MPI_MAX
                                : MPI_MIN,
                comm->mpi);
  return ncclSuccess;
}
