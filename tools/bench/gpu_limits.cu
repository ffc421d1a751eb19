#include "gpu_limits.h"

#include <algorithm>
#include <cuda_fp16.h>

#include "exchange.h"

mt_stopwatch::~mt_stopwatch()
{
  if (begun != nullptr) cudaEventDestroy(begun);
  if (ended != nullptr) cudaEventDestroy(ended);
}

mt_status mt_stopwatch::begin(mt_gpu *gpu)
{
  if (begun == nullptr) MT_CUDA(cudaEventCreate(&begun));
  if (ended == nullptr) MT_CUDA(cudaEventCreate(&ended));
  MT_CUDA(cudaEventRecord(begun, gpu->stream));
  return MT_OK;
}

mt_status mt_stopwatch::end(mt_gpu *gpu, double *seconds_out)
{
  float milliseconds = 0.0f;
  MT_CUDA(cudaEventRecord(ended, gpu->stream));
  MT_PASS(mt_gpu_wait(gpu));
  MT_CUDA(cudaEventElapsedTime(&milliseconds, begun, ended));
  *seconds_out = 1e-3 * (double)milliseconds;
  return MT_OK;
}

/* Median seconds of work(), which is given to the stream; one run before does not count. */
template <class F> static mt_status median(mt_gpu *gpu, F work, double *seconds_out)
{
  enum { RUNS = 5 };
  double seconds[RUNS];
  mt_stopwatch watch;
  MT_PASS(work());
  for (int run = 0; run < RUNS; run++) {
    MT_PASS(watch.begin(gpu));
    MT_PASS(work());
    MT_PASS(watch.end(gpu, &seconds[run]));
  }
  std::sort(seconds, seconds + RUNS);
  *seconds_out = std::max(seconds[RUNS / 2], 1e-9);
  return MT_OK;
}

/* Not zeros: they multiply faster than data do. */
static mt_status fill(mt_gpu *gpu, int64_t count, __half *out)
{
  return mt_gpu_each(gpu, count, [=] __device__(int64_t i) {
    uint32_t hash = (uint32_t)i * 2654435761u;
    out[i] = __float2half((float)(hash >> 8) * 0x1p-24f - 0.5f);
  });
}

mt_status mt_limit_product(mt_gpu *gpu, int64_t n, int64_t d, double *rate_out)
{
  const int64_t m = std::min<int64_t>(n, 16384), padded = (d + 63) / 64 * 64;
  const double flop = 2.0 * (double)m * (double)m * (double)d;
  const int repeats = std::max(1, (int)std::min(20.0, 3e13 / flop));
  const float one = 1.0f, zero = 0.0f;
  mt_array<__half> a, b;
  mt_array<float> c;
  double seconds = 0.0;
  MT_PASS(a.make(gpu, m * padded, "a factor"));
  MT_PASS(b.make(gpu, m * padded, "a factor"));
  MT_PASS(c.make(gpu, m * m, "a product"));
  MT_PASS(fill(gpu, m * padded, a.data));
  MT_PASS(fill(gpu, m * padded, b.data));
  auto multiply = [&]() -> mt_status {
    for (int i = 0; i < repeats; i++)
      MT_CUBLAS(cublasGemmEx(gpu->blas, CUBLAS_OP_T, CUBLAS_OP_N, (int)m, (int)m,
                             (int)padded, &one, a.data, CUDA_R_16F, (int)padded, b.data,
                             CUDA_R_16F, (int)padded, &zero, c.data, CUDA_R_32F, (int)m,
                             CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    return MT_OK;
  };
  MT_PASS(median(gpu, multiply, &seconds));
  *rate_out = flop * repeats / seconds;
  return MT_OK;
}

#ifdef MT_EMULATE
enum { COPY_BYTES = 1 << 20, LINK_BYTES = 1 << 16, GATHERS = 16, GATHER_BLOCKS = 4 };
#else
enum {
  COPY_BYTES = 1 << 30,
  LINK_BYTES = 1 << 28,
  GATHERS = 512,
  GATHER_BLOCKS = 132 * 8
};
#endif

mt_status mt_limit_copy(mt_gpu *gpu, double *rate_out)
{
  mt_array<char> from, to;
  double seconds = 0.0;
  MT_PASS(from.make(gpu, COPY_BYTES, "a copy's source"));
  MT_PASS(to.make(gpu, COPY_BYTES, "a copy"));
  MT_CUDA(cudaMemsetAsync(from.data, 1, COPY_BYTES, gpu->stream));
  auto copy = [&] {
    return mt_on_device(gpu, (int64_t)COPY_BYTES, from.data, to.data);
  };
  MT_PASS(median(gpu, copy, &seconds));
  *rate_out = 2.0 * COPY_BYTES / seconds;
  return MT_OK;
}

static mt_status measure_link(mt_gpu *gpu, char *host, char *device, double *rate_out)
{
  double up, down;
  auto send = [&] { return mt_to_device(gpu, (int64_t)LINK_BYTES, host, device); };
  auto fetch = [&]() -> mt_status {
    MT_CUDA(
        cudaMemcpyAsync(host, device, LINK_BYTES, cudaMemcpyDeviceToHost, gpu->stream));
    return MT_OK;
  };
  MT_PASS(median(gpu, send, &up));
  MT_PASS(median(gpu, fetch, &down));
  *rate_out = LINK_BYTES / std::max(up, down);
  return MT_OK;
}

mt_status mt_limit_link(mt_gpu *gpu, double *rate_out)
{
  mt_array<char> device;
  char *host = nullptr;
  MT_PASS(device.make(gpu, LINK_BYTES, "a copy"));
  MT_CUDA(cudaMallocHost(&host, LINK_BYTES));
  memset(host, 1, LINK_BYTES);
  mt_status status = measure_link(gpu, host, device.data, rate_out);
  cudaFreeHost(host);
  return status;
}

/* GATHERS reads a thread, eight in flight. */
static __global__ void gather_kernel(int64_t count, const float2 *from, float *out)
{
  uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t state = thread * 2654435761u + 1;
  float sum = 0.0f;
  for (int i = 0; i < GATHERS; i += 8) {
    float2 got[8];
    for (int j = 0; j < 8; j++) {
      state = state * 1664525u + 1013904223u;
      got[j] = from[(uint64_t)state * (uint64_t)count >> 32];
    }
    for (int j = 0; j < 8; j++) sum += got[j].x + got[j].y;
  }
  out[thread] = sum;
}

mt_status mt_limit_gather(mt_gpu *gpu, int64_t bytes, double *rate_out)
{
  enum { THREADS = 256 };
  const int64_t count = std::max<int64_t>(1, bytes / (int64_t)sizeof(float2));
  mt_array<float2> from;
  mt_array<float> out;
  double seconds = 0.0;
  MT_PASS(from.make_zeroed(gpu, count, "what is gathered from"));
  MT_PASS(out.make(gpu, (int64_t)GATHER_BLOCKS * THREADS, "sums"));
  auto gather = [&] {
    return MT_LAUNCH(gpu, gather_kernel, GATHER_BLOCKS, THREADS, 0, count, from.data,
                     out.data);
  };
  MT_PASS(median(gpu, gather, &seconds));
  *rate_out = (double)GATHER_BLOCKS * THREADS * GATHERS / seconds;
  return MT_OK;
}

mt_status mt_limit_allgather(mt_gpu *gpu, const mt_comm *comm, int64_t n,
                             int64_t row_bytes, double *rate_out)
{
  mt_array<char> rows;
  double seconds = 0.0;
  MT_PASS(mt_agree(comm, rows.make_zeroed(gpu, n * row_bytes, "gathered rows")));
  auto all = [&] { return mt_gpu_allgather_rows(gpu, comm, n, row_bytes, rows.data); };
  MT_PASS(median(gpu, all, &seconds));
  MT_PASS(mt_max_f64(comm, 1, &seconds));
  *rate_out =
      (double)((n - mt_part_count(n, comm->size, comm->rank)) * row_bytes) / seconds;
  return mt_min_f64(comm, 1, rate_out);
}
