/* What every file of the CUDA backend shares: one process's GPU, its memory, its errors, its
 * kernels. C++ for its destructors and templates alone; no exceptions, errors are mt_status.
 * tests/emulate/ compiles these files with g++ and runs them on the CPU: kernels are started
 * with mt_gpu_each or MT_LAUNCH, dynamic shared memory is taken with MT_SHARED, and what CUB
 * and NCCL do stands behind primitives.h and exchange.h.
 * Same bits as the CPU backend: compiled with -fmad=false; nothing here uses fast-math,
 * floating-point atomics or libm where a result depends on it (base/both.h). */
#ifndef MT_CUDA_GPU_H
#define MT_CUDA_GPU_H
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <Random123/philox.h> /* has C++ of its own: not in the braces below */
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <mpi.h>

extern "C" {
#include "backend/backend.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/status.h"
#include "comm/comm.h"
#include "deck/parameters.h"
}

struct mt_exchange; /* exchange.h */

/* This process's GPU. The table comes first: an mt_backend * is an mt_gpu *. */
typedef struct mt_gpu {
  mt_backend table;
  int device;          /* as CUDA numbers it in this process; -1 before start */
  cudaStream_t stream; /* all work, in order */
  cublasHandle_t blas; /* on that stream */
  int processors;      /* multiprocessors */
  int64_t
      memory; /* bytes that this backend may use (METATOPICS_GPU_MEMORY, or what is free) */
  int64_t used, peak;    /* bytes taken from the pool */
  mt_exchange *exchange; /* between the GPUs of the team */
} mt_gpu;

static inline mt_gpu *mt_gpu_of(mt_backend *be)
{
  return (mt_gpu *)be;
}

/* ---- errors: functions return at the first --------------------------------------------- */

/* Logs it; MT_ERR_MEMORY or MT_ERR_LIBRARY. All but out of memory ends the job if the GPU has
 * others to work with: see mt_exchange_lose. */
mt_status mt_cuda_error(cudaError_t code, const char *call, const char *file, int line);
mt_status mt_cublas_error(cublasStatus_t code, const char *call, const char *file,
                          int line);

#define MT_PASS(call)                         \
  do {                                        \
    mt_status mt_passed = (call);             \
    if (mt_passed != MT_OK) return mt_passed; \
  } while (0)
#define MT_CUDA(call)                                           \
  do {                                                          \
    cudaError_t mt_code = (call);                               \
    if (mt_code != cudaSuccess)                                 \
      return mt_cuda_error(mt_code, #call, __FILE__, __LINE__); \
  } while (0)
#define MT_CUBLAS(call)                                           \
  do {                                                            \
    cublasStatus_t mt_code = (call);                              \
    if (mt_code != CUBLAS_STATUS_SUCCESS)                         \
      return mt_cublas_error(mt_code, #call, __FILE__, __LINE__); \
  } while (0)

/* ---- memory ----------------------------------------------------------------------------- */

/**
 * bytes of the device's pool (cudaMallocAsync on the stream), not zeroed. 0 bytes: NULL.
 * Errors   MT_ERR_MEMORY naming `what`, the bytes wanted, used and allowed; out untouched
 */
mt_status mt_gpu_take(mt_gpu *gpu, int64_t bytes, const char *what, void **out);
void mt_gpu_give(mt_gpu *gpu, int64_t bytes, void *memory); /* NULL is fine */

/* Would that many more bytes fit? */
static inline bool mt_gpu_fits(const mt_gpu *gpu, int64_t bytes)
{
  return bytes <= gpu->memory - gpu->used;
}

/* An array on the device that frees itself. Give it to kernels as .data. */
template <class T> struct mt_array {
  mt_gpu *gpu = nullptr;
  T *data = nullptr;
  int64_t count = 0;
  mt_array() = default;
  mt_array(const mt_array &) = delete;
  mt_array &operator=(const mt_array &) = delete;
  ~mt_array()
  {
    drop();
  }

  void drop()
  {
    if (gpu != nullptr) mt_gpu_give(gpu, count * (int64_t)sizeof(T), data);
    data = nullptr;
    count = 0;
  }
  /* count_wanted elements, not initialised; what was there is dropped. */
  mt_status make(mt_gpu *owner, int64_t count_wanted, const char *what)
  {
    drop();
    void *memory = nullptr;
    MT_PASS(mt_gpu_take(owner, count_wanted * (int64_t)sizeof(T), what, &memory));
    gpu = owner;
    data = (T *)memory;
    count = count_wanted;
    return MT_OK;
  }
  mt_status make_zeroed(mt_gpu *owner, int64_t count_wanted, const char *what)
  {
    MT_PASS(make(owner, count_wanted, what));
    if (count > 0)
      MT_CUDA(cudaMemsetAsync(data, 0, (size_t)count * sizeof(T), gpu->stream));
    return MT_OK;
  }
  void swap(mt_array &other)
  {
    mt_gpu *g = gpu;
    gpu = other.gpu;
    other.gpu = g;
    T *d = data;
    data = other.data;
    other.data = d;
    int64_t c = count;
    count = other.count;
    other.count = c;
  }
};

/* Copies of `count` elements on the stream. Host memory need not be pinned; to_host waits
 * until the data are there. */
template <class T>
static inline mt_status mt_to_device(mt_gpu *gpu, int64_t count, const T *host,
                                     T *device)
{
  if (count > 0)
    MT_CUDA(cudaMemcpyAsync(device, host, (size_t)count * sizeof(T),
                            cudaMemcpyHostToDevice, gpu->stream));
  return MT_OK;
}
mt_status
mt_gpu_wait(mt_gpu *gpu); /* for the stream; polls NCCL's errors, see exchange.h */
template <class T>
static inline mt_status mt_to_host(mt_gpu *gpu, int64_t count, const T *device, T *host)
{
  if (count > 0)
    MT_CUDA(cudaMemcpyAsync(host, device, (size_t)count * sizeof(T),
                            cudaMemcpyDeviceToHost, gpu->stream));
  return mt_gpu_wait(gpu);
}
template <class T>
static inline mt_status mt_on_device(mt_gpu *gpu, int64_t count, const T *from, T *to)
{
  if (count > 0)
    MT_CUDA(cudaMemcpyAsync(to, from, (size_t)count * sizeof(T),
                            cudaMemcpyDeviceToDevice, gpu->stream));
  return MT_OK;
}

/* ---- kernels ---------------------------------------------------------------------------- */

#ifdef MT_EMULATE
#include "emulate_launch.h"
#else
/* Starts kernel<<<blocks, threads, shared bytes>>>(...) on the stream; answers mt_status. */
#define MT_LAUNCH(gpu, kernel, blocks, threads, shared, ...)              \
  (kernel<<<(blocks), (threads), (shared), (gpu)->stream>>>(__VA_ARGS__), \
   mt_gpu_started(#kernel))
/* In a kernel: the block's dynamic shared memory as an array of T. */
#define MT_SHARED(T, name)                                   \
  extern __shared__ __align__(16) unsigned char mt_shared[]; \
  T *name = reinterpret_cast<T *>(mt_shared)

static inline mt_status mt_gpu_started(const char *kernel)
{
  cudaError_t code = cudaGetLastError();
  return code == cudaSuccess ? MT_OK : mt_cuda_error(code, kernel, __FILE__, __LINE__);
}

template <class F> __global__ void mt_run_each(int64_t n, F each)
{
  int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
    each(i);
}

/* each(i) for i in [0, n), in any order and at once; threads do not cooperate (no shared
 * memory, no warp functions; atomics are fine). each: [=] __device__ (int64_t i) {...} */
template <class F> static inline mt_status mt_gpu_each(mt_gpu *gpu, int64_t n, F each)
{
  enum { THREADS = 256 };
  if (n <= 0) return MT_OK;
  int64_t blocks = (n + THREADS - 1) / THREADS, most = (int64_t)gpu->processors * 64;
  return MT_LAUNCH(gpu, mt_run_each<F>, (unsigned)(blocks < most ? blocks : most),
                   THREADS, 0, n, each);
}
#endif

#endif
