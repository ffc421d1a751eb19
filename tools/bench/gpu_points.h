/* Neighbour lists for benchmarks of UMAP: of planted points in a few dimensions. */
#ifndef MT_BENCH_GPU_POINTS_H
#define MT_BENCH_GPU_POINTS_H
#include "gpu.h"
#include "planted.h"

enum { MT_LIST_MOST = 64 };

/**
 * The k nearest of each point among those near to it in one of some orders along a curve
 * that fills the space (Morton's, from several corners): nearly all of the true ones, and as
 * tangled a graph as theirs. The same bits on any GPU.
 * points       device (n, d) float32, 2 <= d <= 8
 * k            1 <= k <= MT_LIST_MOST, k < n
 * indices_out, distances_out   device (n, k): nearest first, ties by lower index
 */
mt_status mt_bench_lists(mt_gpu *gpu, int64_t n, int64_t d, const float *points,
                         int64_t k, int64_t *indices_out, float *distances_out);

#endif
