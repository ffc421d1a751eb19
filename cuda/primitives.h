/* Sorting, scanning, selecting on the device (CUB). All on the GPU's stream; temporary memory
 * from its pool. Exact and stable, hence the same result on any device. */
#ifndef MT_CUDA_PRIMITIVES_H
#define MT_CUDA_PRIMITIVES_H
#include "gpu.h"

/* Sorts keys ascending, values along, stably, by bits [low, high) of the keys. In place.
 * K: uint32_t or uint64_t. V: int32_t, uint32_t, int64_t or uint64_t. */
template <class K, class V>
mt_status mt_gpu_sort_pairs(mt_gpu *gpu, int64_t n, K *keys, V *values, int low,
                            int high);
template <class K>
mt_status mt_gpu_sort_keys(mt_gpu *gpu, int64_t n, K *keys, int low, int high);

/* out[i] = sum of in[0..i), i in [0, n]: out has n + 1 elements; in and out may not overlap.
 * T: int32_t (to int64_t sums) or int64_t. */
template <class T>
mt_status mt_gpu_scan(mt_gpu *gpu, int64_t n, const T *in, int64_t *out);

/* Numbers i with flags[i] != 0, ascending, to out (room for n); how many, on the host. */
template <class I>
mt_status mt_gpu_select(mt_gpu *gpu, int64_t n, const uint8_t *flags, I *out,
                        int64_t *count_out);

/* The largest of n values (>= 0 for n = 0: 0), the least, and the sum; on the host. T: float,
 * double, int32_t, int64_t, uint64_t; sums of int64_t alone. */
template <class T> mt_status mt_gpu_max(mt_gpu *gpu, int64_t n, const T *in, T *out);
template <class T> mt_status mt_gpu_min(mt_gpu *gpu, int64_t n, const T *in, T *out);
mt_status mt_gpu_sum_i64(mt_gpu *gpu, int64_t n, const int64_t *in, int64_t *out);

#endif
