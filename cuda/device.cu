/* The process's GPU: what there is, its memory, its errors. */
#include "exchange.h"

#include <cctype>
#include <cerrno>
#include <cstdio>

/* One process, one GPU: errors tell of it. */
static const mt_gpu *current;

void mt_gpu_is_current(const mt_gpu *gpu)
{
  current = gpu;
}

/* ---- errors ------------------------------------------------------------------------------ */

/* "GPU 0000:18:00.0", or what it is called before it is ours. */
static const char *device_name(void)
{
  static char name[64] = "GPU";
  char id[32] = "";
  if (current != nullptr && current->device >= 0 &&
      cudaDeviceGetPCIBusId(id, sizeof id, current->device) == cudaSuccess)
    snprintf(name, sizeof name, "GPU %d (%s)", current->device, id);
  return name;
}

mt_status mt_cuda_error(cudaError_t code, const char *call, const char *file, int line)
{
  cudaGetLastError(); /* forgotten: said once */
  mt_status status = code == cudaErrorMemoryAllocation ? MT_ERR_MEMORY : MT_ERR_LIBRARY;
  if (current == nullptr)
    return mt_fail(status, "%s:%d: %s: %s (%s)", file, line, call,
                   cudaGetErrorString(code), cudaGetErrorName(code));
  mt_fail(status, "%s, %s:%d: %s: %s (%s); %.0f MB of %.0f MB are in use",
          device_name(), file, line, call, cudaGetErrorString(code),
          cudaGetErrorName(code), (double)current->used / 1e6,
          (double)current->memory / 1e6);
  if (status != MT_ERR_MEMORY) mt_exchange_lose(current);
  return status;
}

mt_status mt_cublas_error(cublasStatus_t code, const char *call, const char *file,
                          int line)
{
  mt_status status =
      code == CUBLAS_STATUS_ALLOC_FAILED ? MT_ERR_MEMORY : MT_ERR_LIBRARY;
  mt_fail(status, "%s, %s:%d: %s: %s", device_name(), file, line, call,
          cublasGetStatusString(code));
  if (status != MT_ERR_MEMORY && current != nullptr) mt_exchange_lose(current);
  return status;
}

/* ---- memory ------------------------------------------------------------------------------ */

/* METATOPICS_GPU_MEMORY: bytes, or with K, M, G, T behind (powers of 1024); INT64_MAX if not set. */
static mt_status memory_limit(int64_t *limit_out)
{
  static const char suffixes[] = "KMGT";
  const char *text = getenv("METATOPICS_GPU_MEMORY");
  *limit_out = INT64_MAX;
  if (text == nullptr || text[0] == '\0') return MT_OK;
  char *end;
  double value = strtod(text, &end);
  const char *suffix = *end != '\0' ? strchr(suffixes, toupper(*end)) : nullptr;
  if (suffix != nullptr) {
    value *= (double)((int64_t)1 << (10 * (suffix - suffixes + 1)));
    end++;
  }
  if (end == text || *end != '\0' || !(value >= 1.0 && value < 9e18))
    return mt_fail(
        MT_ERR_INPUT,
        "METATOPICS_GPU_MEMORY=%s: not a number of bytes (as 4000000000, 512M or 40G)",
        text);
  *limit_out = (int64_t)value;
  return MT_OK;
}

mt_status mt_gpu_measure_memory(mt_gpu *gpu)
{
  size_t free_bytes, total;
  int64_t limit, reserve;
  MT_PASS(memory_limit(&limit));
  MT_CUDA(cudaMemGetInfo(&free_bytes, &total));
  reserve =
      (int64_t)(total / 16); /* NCCL, cuBLAS, and what does not fit between blocks */
  if (reserve > (int64_t)1 << 30) reserve = (int64_t)1 << 30;
  gpu->memory = (int64_t)free_bytes - reserve;
  if (gpu->memory < 0) gpu->memory = 0;
  if (gpu->memory > limit) gpu->memory = limit;
  return MT_OK;
}

/* The pool keeps what it has got from the driver. */
mt_status mt_gpu_open_pool(int device)
{
  cudaMemPool_t pool;
  uint64_t keep = UINT64_MAX;
  MT_CUDA(cudaDeviceGetDefaultMemPool(&pool, device));
  MT_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  return MT_OK;
}

/* Few bytes are told as such, many as MB. */
static const char *amount(int64_t bytes, char text[32])
{
  if (bytes < 10000000)
    snprintf(text, 32, "%lld bytes", (long long)bytes);
  else
    snprintf(text, 32, "%.0f MB", (double)bytes / 1e6);
  return text;
}

static mt_status no_memory(const mt_gpu *gpu, int64_t bytes, const char *what)
{
  char wanted[32], used[32], all[32];
  return mt_fail(
      MT_ERR_MEMORY,
      "%s: out of device memory: %s: %s wanted, %s of %s are in use; more GPUs, "
      "or a larger METATOPICS_GPU_MEMORY if that is set, give more",
      device_name(), what, amount(bytes, wanted), amount(gpu->used, used),
      amount(gpu->memory, all));
}

/* What lies free in the pool in pieces is given back, and asked for again as a whole. */
static cudaError_t take_compacted(mt_gpu *gpu, int64_t bytes, void **out)
{
  cudaMemPool_t pool;
  cudaGetLastError();
  cudaError_t code = cudaStreamSynchronize(gpu->stream);
  if (code == cudaSuccess) code = cudaDeviceGetDefaultMemPool(&pool, gpu->device);
  if (code == cudaSuccess) code = cudaMemPoolTrimTo(pool, 0);
  if (code == cudaSuccess) code = cudaMallocAsync(out, (size_t)bytes, gpu->stream);
  return code;
}

mt_status mt_gpu_take(mt_gpu *gpu, int64_t bytes, const char *what, void **out)
{
  void *memory = nullptr;
  if (bytes == 0) {
    *out = nullptr;
    return MT_OK;
  }
  if (bytes < 0 || !mt_gpu_fits(gpu, bytes)) return no_memory(gpu, bytes, what);
  cudaError_t code = cudaMallocAsync(&memory, (size_t)bytes, gpu->stream);
  if (code == cudaErrorMemoryAllocation) code = take_compacted(gpu, bytes, &memory);
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return no_memory(gpu, bytes, what);
  }
  MT_CUDA(code);
  gpu->used += bytes;
  if (gpu->used > gpu->peak) gpu->peak = gpu->used;
  *out = memory;
  return MT_OK;
}

void mt_gpu_give(mt_gpu *gpu, int64_t bytes, void *memory)
{
  if (memory == nullptr) return;
  cudaFreeAsync(memory, gpu->stream);
  gpu->used -= bytes;
}

/* ---- what there is ------------------------------------------------------------------------- */

/* The least compute capability that the machine code and PTX here are made for. */
#ifndef MT_CUDA_LEAST
#define MT_CUDA_LEAST 80
#endif

static bool describe(int number, mt_device *out, char *why_out, size_t why_size)
{
  cudaDeviceProp about;
  cudaError_t code = cudaGetDeviceProperties(&about, number);
  if (code == cudaSuccess)
    code = cudaDeviceGetPCIBusId(out->id, sizeof out->id, number);
  if (code != cudaSuccess) {
    snprintf(why_out, why_size, "GPU %d: %s", number, cudaGetErrorString(code));
    return false;
  }
  if (10 * about.major + about.minor < MT_CUDA_LEAST) {
    snprintf(why_out, why_size,
             "GPU %d (%s) has compute capability %d.%d, and this build is for %d.%d on "
             "(./configure --with-cuda-arch)",
             number, about.name, about.major, about.minor, MT_CUDA_LEAST / 10,
             MT_CUDA_LEAST % 10);
    return false;
  }
  snprintf(out->name, sizeof out->name, "%.43s", about.name);
  out->memory = (int64_t)about.totalGlobalMem;
  out->number = number;
  return true;
}

void mt_gpu_find(mt_devices *devices_out, char *why_out, size_t why_size)
{
  int count = 0;
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  cudaError_t code = cudaGetDeviceCount(&count);
  cudaGetLastError();
  memset(devices_out, 0, sizeof *devices_out);
  if (code != cudaSuccess || count == 0)
    snprintf(why_out, why_size, "CUDA finds no GPU: %s (CUDA_VISIBLE_DEVICES is %s%s)",
             code != cudaSuccess ? cudaGetErrorString(code) : "none is there",
             visible == nullptr   ? "not set"
             : visible[0] == '\0' ? "empty"
                                  : "",
             visible == nullptr ? "" : visible);
  for (int i = 0; code == cudaSuccess && i < count; i++) {
    if (devices_out->n == MT_MOST_DEVICES) break;
    if (describe(i, &devices_out->at[devices_out->n], why_out, why_size))
      devices_out->n++;
  }
}
