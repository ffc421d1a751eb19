/* The steps of the spanning tree, each in a file of its name (cuda/hdbscan_NAME.cu). */
#ifndef MT_CUDA_HDBSCAN_PARTS_H
#define MT_CUDA_HDBSCAN_PARTS_H
#include "exchange.h"
#include "hdbscan_space.h"
#include "primitives.h"

extern "C" {
#include "hdbscan/hdbscan.h"
}

/* A float64 as integers that sort alike; the number must not be negative. */
static __device__ inline uint64_t mt_bits_of(double x)
{
  return (uint64_t)__double_as_longlong(x);
}

static __device__ inline double mt_of_bits(uint64_t bits)
{
  return __longlong_as_double((long long)bits);
}

/* ---- cores: core2_out (places.n) squared core distances by position ------------------------ */

/* Collective over comm: everyone searches for its share and gets all. */
mt_status mt_find_cores(mt_gpu *gpu, const mt_comm *comm, const mt_space *space,
                        int64_t min_samples, double *core2_out);
/* Bytes it takes beyond core2. */
int64_t mt_cores_bytes(int64_t n, int64_t min_samples);

/* ---- rounds: Boruvka -------------------------------------------------------------------- */

/* The edges of the tree over distinct points, in any order: pair_out a << 32 | b, a < b;
 * weight2_out their squared weights; (places.n - 1). Collective over comm. */
mt_status mt_run_rounds(mt_gpu *gpu, const mt_comm *comm, const mt_space *space,
                        const double *core2, double scale, uint64_t *pair_out,
                        double *weight2_out, int *n_rounds_out);
int64_t mt_rounds_bytes(int64_t n, int64_t d);

/* ---- edges ---------------------------------------------------------------------------------- */

/* pair, weight: n edges, weights >= 0; both are used up. tree_out: by (weight, a, b). */
mt_status mt_sort_edges(mt_gpu *gpu, int64_t n, uint64_t *pair, double *weight,
                        mt_edge *tree_out);
int64_t mt_edges_bytes(int64_t n);

#endif
