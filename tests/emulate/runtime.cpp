/* The runtime's functions: devices that are not there, streams that wait for nothing, memory
 * that is the host's. */
#include "cuda_runtime.h"
#include <cstdio>
#include <execinfo.h>
#include <map>
#include <mutex>
#include <string>
#include <time.h>
#include <unistd.h>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes)   ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

/* ---- errors -------------------------------------------------------------------------------- */

static const struct {
  cudaError_t code;
  const char *name, *text;
} errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidDevicePointer, "cudaErrorInvalidDevicePointer",
     "invalid device pointer"},
    {cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable",
     "CUDA-capable device(s) is/are busy or unavailable"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};
static cudaError_t last = cudaSuccess;

static cudaError_t failed(cudaError_t code)
{
  if (code != cudaSuccess) last = code;
  return code;
}

const char *cudaGetErrorString(cudaError_t code)
{
  for (const auto &e : errors)
    if (e.code == code) return e.text;
  return "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t code)
{
  for (const auto &e : errors)
    if (e.code == code) return e.name;
  return "cudaErrorUnknown";
}

cudaError_t cudaPeekAtLastError(void)
{
  return last;
}

cudaError_t cudaGetLastError(void)
{
  cudaError_t code = last;
  last = cudaSuccess;
  return code;
}

/* ---- devices ------------------------------------------------------------------------------- */

static int64_t from_environment(const char *name, int64_t otherwise)
{
  const char *text = getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : strtoll(text, nullptr, 10);
}

/* The GPUs that this process sees, numbered as in the machine. */
static std::vector<int> visible(void)
{
  int there = (int)from_environment("MT_EMULATED_GPUS", 1);
  std::vector<int> gpus;
  const char *list = getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr)
    for (int i = 0; i < there; i++) gpus.push_back(i);
  while (list != nullptr && *list != '\0') {
    char *end;
    long gpu = strtol(list, &end, 10);
    if (end == list || gpu < 0 || gpu >= there)
      break; /* hides the rest, as CUDA does */
    gpus.push_back((int)gpu);
    list = *end == ',' ? end + 1 : end;
  }
  return gpus;
}

static int current;

cudaError_t cudaRuntimeGetVersion(int *version)
{
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
  *count = (int)visible().size();
  return *count > 0 ? cudaSuccess : failed(cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int *device)
{
  *device = current;
  return cudaSuccess;
}

static bool there_is(int device)
{
  return device >= 0 && (size_t)device < visible().size();
}

cudaError_t cudaSetDevice(int device)
{
  if (!there_is(device)) return failed(cudaErrorInvalidDevice);
  if (visible()[(size_t)device] == from_environment("MT_EMULATED_BROKEN", -1))
    return failed(cudaErrorDevicesUnavailable);
  current = device;
  return cudaSuccess;
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned)
{
  return cudaSetDevice(device);
}

static size_t memory_of_a_device(void)
{
  return (size_t)from_environment("MT_EMULATED_MEMORY", (int64_t)8 << 30);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device)
{
  if (!there_is(device)) return failed(cudaErrorInvalidDevice);
  int gpu = visible()[(size_t)device];
  *properties = cudaDeviceProp{};
  snprintf(properties->name, sizeof properties->name, "emulated GPU");
  properties->uuid.bytes[15] = (char)gpu;
  properties->totalGlobalMem = memory_of_a_device();
  properties->sharedMemPerBlock = 48 << 10;
  properties->sharedMemPerBlockOptin = 227 << 10;
  properties->sharedMemPerMultiprocessor = 228 << 10;
  properties->major = 9;
  properties->multiProcessorCount = 4;
  properties->warpSize = warpSize;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->pciBusID = gpu + 1;
  properties->l2CacheSize = 50 << 20;
  properties->memoryBusWidth = 5120;
  properties->regsPerBlock = 65536;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
  cudaDeviceProp properties;
  cudaError_t code = cudaGetDeviceProperties(&properties, device);
  if (code != cudaSuccess) return code;
  switch (attribute) {
  case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    *value = (int)properties.sharedMemPerBlockOptin;
    return cudaSuccess;
  case cudaDevAttrMultiProcessorCount:
    *value = properties.multiProcessorCount;
    return cudaSuccess;
  case cudaDevAttrL2CacheSize:
    *value = properties.l2CacheSize;
    return cudaSuccess;
  case cudaDevAttrComputeCapabilityMajor:
    *value = properties.major;
    return cudaSuccess;
  case cudaDevAttrComputeCapabilityMinor:
    *value = properties.minor;
    return cudaSuccess;
  case cudaDevAttrMemoryPoolsSupported:
    *value = 1;
    return cudaSuccess;
  }
  return failed(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int device)
{
  if (!there_is(device)) return failed(cudaErrorInvalidDevice);
  int length = snprintf(id, (size_t)bytes, "0000:%02X:00.0",
                        (unsigned)visible()[(size_t)device] + 1);
  return length < bytes ? cudaSuccess : failed(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id)
{
  char other[32];
  for (int i = 0; there_is(i); i++)
    if (cudaDeviceGetPCIBusId(other, sizeof other, i) == cudaSuccess &&
        strcmp(id, other) == 0) {
      *device = i;
      return cudaSuccess;
    }
  return failed(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceSynchronize(void)
{
  return cudaSuccess;
}

cudaError_t cudaDeviceReset(void)
{
  return cudaSuccess;
}

/* ---- streams and events ---------------------------------------------------------------------- */

struct mt_emulated_stream {
  unsigned flags;
};

struct mt_emulated_event {
  double seconds; /* < 0: not recorded */
};

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
  *stream = new mt_emulated_stream{flags};
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int)
{
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
  if (stream == nullptr) return failed(cudaErrorInvalidValue);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t)
{
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t)
{
  bool lost = there_is(current) &&
              visible()[(size_t)current] == from_environment("MT_EMULATED_LOST", -1);
  return lost ? failed(cudaErrorUnknown) : cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t event, unsigned)
{
  return event != nullptr ? cudaSuccess : failed(cudaErrorInvalidValue);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
  *event = new mt_emulated_event{-1.0};
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
  if (event == nullptr) return failed(cudaErrorInvalidValue);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  event->seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t)
{
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t)
{
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
  if (from->seconds < 0 || to->seconds < 0) return failed(cudaErrorInvalidValue);
  *milliseconds = (float)(1e3 * (to->seconds - from->seconds));
  return cudaSuccess;
}

/* ---- memory ---------------------------------------------------------------------------------- */

enum { UNWRITTEN = 0xDB };

static std::mutex lock;
static size_t used;
static int at_work; /* accesses that there are */

static void look_for_leaks(void)
{
  if (used == 0) return;
  fprintf(stderr, "emulated GPU: %zu bytes have not been freed\n", used);
  _exit(1);
}

static std::map<const char *, size_t> &allocations(void) /* address: bytes */
{
  static auto *all = new std::map<const char *, size_t>;
  static int watched = atexit(look_for_leaks);
  (void)watched;
  return *all;
}

mt_emulated_access::mt_emulated_access()
{
  std::lock_guard<std::mutex> guard(lock);
  if (at_work++ > 0) return;
  for (const auto &a : allocations()) ASAN_UNPOISON_MEMORY_REGION(a.first, a.second);
}

mt_emulated_access::~mt_emulated_access()
{
  std::lock_guard<std::mutex> guard(lock);
  if (--at_work > 0) return;
  for (const auto &a : allocations()) ASAN_POISON_MEMORY_REGION(a.first, a.second);
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
  *total = memory_of_a_device();
  *free = *total > used ? *total - used : 0;
  return cudaSuccess;
}

/* A test may have memory run out: once for each place in the code that asks for some, told by
 * the functions that lead there. It does so twice in a row, for the backend tries again. */
extern "C" __attribute__((weak)) bool mt_test_fails(int64_t place);

static bool runs_out(size_t bytes)
{
  static size_t again;
  void *frames[8];
  uint64_t place = 0;
  if (mt_test_fails == nullptr) return false;
  if (again == bytes) {
    again = 0;
    return true;
  }
  int n = backtrace(frames, 8);
  for (int i = 0; i < n; i++)
    place = (place ^ (uintptr_t)frames[i]) * 0x9E3779B97F4A7C15u;
  if (!mt_test_fails((int64_t)place)) return false;
  again = bytes;
  return true;
}

cudaError_t mt_emulate_malloc(void **memory, size_t bytes)
{
  std::lock_guard<std::mutex> guard(lock);
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  size_t total = memory_of_a_device();
  if (runs_out(bytes) || used > total || bytes > total - used ||
      posix_memalign(memory, 256, bytes) != 0)
    return failed(cudaErrorMemoryAllocation);
  memset(*memory, UNWRITTEN, bytes);
  if (at_work == 0) ASAN_POISON_MEMORY_REGION(*memory, bytes);
  allocations()[(const char *)*memory] = bytes;
  used += bytes;
  return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
  std::lock_guard<std::mutex> guard(lock);
  if (memory == nullptr) return cudaSuccess;
  auto found = allocations().find((const char *)memory);
  if (found == allocations().end()) return failed(cudaErrorInvalidDevicePointer);
  used -= found->second;
  ASAN_UNPOISON_MEMORY_REGION(memory, found->second);
  allocations().erase(found);
  free(memory);
  return cudaSuccess;
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t)
{
  return memory == nullptr ? failed(cudaErrorInvalidValue) : cudaFree(memory);
}

cudaError_t mt_emulate_host_malloc(void **memory, size_t bytes)
{
  *memory = malloc(bytes);
  return *memory != nullptr || bytes == 0 ? cudaSuccess
                                          : failed(cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void *memory)
{
  free(memory);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned)
{
  return memory != nullptr && bytes > 0 ? cudaSuccess : failed(cudaErrorInvalidValue);
}

cudaError_t cudaHostUnregister(void *)
{
  return cudaSuccess;
}

/* Is that within one allocation of the device's; touches it any? */
static void find(const void *at, size_t bytes, bool *within, bool *touches)
{
  std::lock_guard<std::mutex> guard(lock);
  const char *first = (const char *)at, *end = first + bytes;
  auto next = allocations().lower_bound(end);
  *within = *touches = false;
  if (next == allocations().begin()) return;
  --next;
  *touches = next->first + next->second > first;
  *within = next->first <= first && end <= next->first + next->second;
}

static bool fits(const void *at, size_t bytes, bool on_device)
{
  bool within, touches;
  if (bytes == 0) return true;
  find(at, bytes, &within, &touches);
  return on_device ? within : !touches;
}

static bool copy_fits(const void *to, size_t to_bytes, const void *from,
                      size_t from_bytes, cudaMemcpyKind kind)
{
  if (kind == cudaMemcpyDefault) return true;
  bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return fits(to, to_bytes, to_device) && fits(from, from_bytes, from_device);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
  if (!copy_fits(to, bytes, from, bytes, kind)) return failed(cudaErrorInvalidValue);
  mt_emulated_access access;
  if (bytes > 0) memmove(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t)
{
  return cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind)
{
  if (width == 0 || height == 0) return cudaSuccess;
  if (width > to_pitch || width > from_pitch ||
      !copy_fits(to, to_pitch * (height - 1) + width, from,
                 from_pitch * (height - 1) + width, kind))
    return failed(cudaErrorInvalidValue);
  mt_emulated_access access;
  for (size_t i = 0; i < height; i++)
    memmove((char *)to + i * to_pitch, (const char *)from + i * from_pitch, width);
  return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
                              size_t from_pitch, size_t width, size_t height,
                              cudaMemcpyKind kind, cudaStream_t)
{
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}

cudaError_t cudaMemset(void *memory, int byte, size_t bytes)
{
  if (!fits(memory, bytes, true)) return failed(cudaErrorInvalidValue);
  mt_emulated_access access;
  if (bytes > 0) memset(memory, byte, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes, cudaStream_t)
{
  return cudaMemset(memory, byte, bytes);
}

cudaError_t cudaMemset2DAsync(void *memory, size_t pitch, int byte, size_t width,
                              size_t height, cudaStream_t)
{
  if (width == 0 || height == 0) return cudaSuccess;
  if (!fits(memory, pitch * (height - 1) + width, true))
    return failed(cudaErrorInvalidValue);
  mt_emulated_access access;
  for (size_t i = 0; i < height; i++) memset((char *)memory + i * pitch, byte, width);
  return cudaSuccess;
}

/* ---- the pool: one, and cudaMalloc's ------------------------------------------------------------ */

struct mt_emulated_pool {
  uint64_t threshold;
};
static mt_emulated_pool pool_of_all;

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
  if (!there_is(device)) return failed(cudaErrorInvalidDevice);
  *pool = &pool_of_all;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
  return cudaDeviceGetDefaultMemPool(pool, device);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute,
                                    void *value)
{
  if (attribute == cudaMemPoolAttrReleaseThreshold)
    pool->threshold = *(uint64_t *)value;
  return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute,
                                    void *value)
{
  switch (attribute) {
  case cudaMemPoolAttrReleaseThreshold:
    *(uint64_t *)value = pool->threshold;
    break;
  case cudaMemPoolAttrReservedMemCurrent:
  case cudaMemPoolAttrUsedMemCurrent:
    *(uint64_t *)value = used;
    break;
  default:
    return failed(cudaErrorNotSupported);
  }
  return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t)
{
  return cudaSuccess;
}
