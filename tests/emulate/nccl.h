/* NCCL as far as cuda/exchange.cu uses it, over MPI and host memory (emulate.h): every rank
 * is a GPU. Operations are done when ncclGroupEnd returns.
 * Environment  MT_EMULATED_NCCL: alone (no GPU finds the others), stuck (no operation ends), or
 *              failed (a peer is lost in the first operation) */
#ifndef MT_EMULATE_NCCL_H
#define MT_EMULATE_NCCL_H
#include <cuda_runtime.h>

#define NCCL_VERSION_CODE 22809
#define NCCL_CONFIG_INITIALIZER \
  {                             \
    1                           \
  }

typedef enum ncclResult_t {
  ncclSuccess = 0,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7
} ncclResult_t;
typedef enum ncclDataType_t { ncclInt8, ncclInt64, ncclUint64 } ncclDataType_t;
typedef enum ncclRedOp_t { ncclSum, ncclMax, ncclMin } ncclRedOp_t;
typedef struct ncclUniqueId {
  char internal[128];
} ncclUniqueId;
typedef struct ncclConfig_t {
  int blocking;
} ncclConfig_t;
typedef struct mt_emulated_nccl *ncclComm_t;

ncclResult_t ncclGetVersion(int *version);
const char *ncclGetErrorString(ncclResult_t code);
const char *ncclGetLastError(ncclComm_t comm);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id,
                                    int rank, ncclConfig_t *config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);

ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllGather(const void *send, void *recv, size_t count,
                           ncclDataType_t type, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count,
                           ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream);

#endif
