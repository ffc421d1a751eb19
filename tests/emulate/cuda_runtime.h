/* CUDA's runtime and device functions as far as cuda/ uses them, on the CPU (emulate.h). What
 * is not here does not compile: add it, as CUDA's manual says. */
#ifndef MT_EMULATE_CUDA_RUNTIME_H
#define MT_EMULATE_CUDA_RUNTIME_H
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "emulate.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__      static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

#include "vector_types.h"
#include "device_functions.h"

/* ---- errors ------------------------------------------------------------------------------- */

typedef enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidDevicePointer = 17,
  cudaErrorInsufficientDriver = 35,
  cudaErrorDevicesUnavailable = 46,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNotReady = 600,
  cudaErrorNotSupported = 801,
  cudaErrorUnknown = 999
} cudaError_t;
const char *cudaGetErrorString(cudaError_t code);
const char *cudaGetErrorName(cudaError_t code);
cudaError_t cudaGetLastError(void); /* forgets it */
cudaError_t cudaPeekAtLastError(void);

/* ---- devices ------------------------------------------------------------------------------ */

typedef struct cudaUUID {
  char bytes[16];
} cudaUUID_t;
typedef struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin;
  size_t sharedMemPerMultiprocessor;
  int major, minor, multiProcessorCount, warpSize;
  int maxThreadsPerBlock, maxThreadsPerMultiProcessor;
  int pciDomainID, pciBusID, pciDeviceID;
  int l2CacheSize, memoryBusWidth, regsPerBlock;
} cudaDeviceProp;
typedef enum cudaDeviceAttr {
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrL2CacheSize = 38,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMemoryPoolsSupported = 115
} cudaDeviceAttr;
#define CUDART_VERSION 13000
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaInitDevice(int device, unsigned flags, unsigned more);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int device);
cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);

/* ---- streams and events --------------------------------------------------------------------- */

typedef struct mt_emulated_stream *cudaStream_t;
typedef struct mt_emulated_event *cudaEvent_t;
enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2 };
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags,
                                         int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned flags = 0);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to);

/* ---- memory --------------------------------------------------------------------------------- */

typedef enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
} cudaMemcpyKind;
enum { cudaHostAllocDefault = 0, cudaHostAllocPortable = 1 };
enum { cudaHostRegisterDefault = 0, cudaHostRegisterReadOnly = 8 };

cudaError_t mt_emulate_malloc(void **memory, size_t bytes);
template <class T> static inline cudaError_t cudaMalloc(T **memory, size_t bytes)
{
  return mt_emulate_malloc((void **)memory, bytes);
}
template <class T>
static inline cudaError_t cudaMallocAsync(T **memory, size_t bytes, cudaStream_t)
{
  return mt_emulate_malloc((void **)memory, bytes);
}
cudaError_t cudaFree(void *memory);
cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream);
cudaError_t mt_emulate_host_malloc(void **memory, size_t bytes);
template <class T> static inline cudaError_t cudaMallocHost(T **memory, size_t bytes)
{
  return mt_emulate_host_malloc((void **)memory, bytes);
}
template <class T>
static inline cudaError_t cudaHostAlloc(T **memory, size_t bytes, unsigned)
{
  return mt_emulate_host_malloc((void **)memory, bytes);
}
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *memory);

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
                              size_t from_pitch, size_t width, size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void *memory, int byte, size_t bytes);
cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemset2DAsync(void *memory, size_t pitch, int byte, size_t width,
                              size_t height, cudaStream_t stream = nullptr);
template <class T>
static inline cudaError_t cudaMemcpyToSymbol(T &symbol, const void *from, size_t bytes)
{
  if (bytes > sizeof symbol) return cudaErrorInvalidValue;
  memcpy((void *)&symbol, from, bytes);
  return cudaSuccess;
}

typedef struct mt_emulated_pool *cudaMemPool_t;
typedef enum cudaMemPoolAttr {
  cudaMemPoolReuseFollowEventDependencies = 1,
  cudaMemPoolReuseAllowOpportunistic = 2,
  cudaMemPoolReuseAllowInternalDependencies = 3,
  cudaMemPoolAttrReleaseThreshold = 4,
  cudaMemPoolAttrReservedMemCurrent = 5,
  cudaMemPoolAttrReservedMemHigh = 6,
  cudaMemPoolAttrUsedMemCurrent = 7,
  cudaMemPoolAttrUsedMemHigh = 8
} cudaMemPoolAttr;
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute,
                                    void *value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute,
                                    void *value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);

/* ---- kernels' properties ----------------------------------------------------------------------- */

typedef enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9
} cudaFuncAttribute;
template <class T>
static inline cudaError_t cudaFuncSetAttribute(T *, cudaFuncAttribute attribute,
                                               int value)
{
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize && value > 227 << 10)
    return cudaErrorInvalidValue;
  return cudaSuccess;
}
template <class T>
static inline cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, T *, int threads, size_t)
{
  *blocks = threads > 1024 ? 0 : 2048 / (threads > 0 ? threads : 1);
  return cudaSuccess;
}

#endif
