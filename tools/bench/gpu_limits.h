/* What the machine can do at most, measured in the same run as what is held against it. All
 * figures are medians after a warm-up, by CUDA events. */
#ifndef MT_BENCH_GPU_LIMITS_H
#define MT_BENCH_GPU_LIMITS_H
#include "gpu.h"

/* Between two points of the GPU's stream. */
struct mt_stopwatch {
  cudaEvent_t begun = nullptr, ended = nullptr;
  mt_stopwatch() = default;
  mt_stopwatch(const mt_stopwatch &) = delete;
  mt_stopwatch &operator=(const mt_stopwatch &) = delete;
  ~mt_stopwatch();
  mt_status begin(mt_gpu *gpu);
  mt_status end(mt_gpu *gpu, double *seconds_out); /* waits */
};

/* FLOP/s of cuBLAS: (m, d) x (d, m) in fp16, rows padded to whole 128 bytes, sums and result in float32, m = n but at most
 * 16,384; over some 0.2 s, so that clocks settle. */
mt_status mt_limit_product(mt_gpu *gpu, int64_t n, int64_t d, double *rate_out);

/* Bytes/s read and written by a copy within device memory. */
mt_status mt_limit_copy(mt_gpu *gpu, double *rate_out);

/* Bytes/s from pinned host memory to the device or back, the slower of both. */
mt_status mt_limit_link(mt_gpu *gpu, double *rate_out);

/* Random reads of 8 bytes a second from an array of that many bytes: L2 if it fits. */
mt_status mt_limit_gather(mt_gpu *gpu, int64_t bytes, double *rate_out);

/* Bytes/s that a GPU receives while n rows of row_bytes are gathered on all. Collective. */
mt_status mt_limit_allgather(mt_gpu *gpu, const mt_comm *comm, int64_t n,
                             int64_t row_bytes, double *rate_out);

#endif
