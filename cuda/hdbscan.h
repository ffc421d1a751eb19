/* HDBSCAN's part of the CUDA backend: the minimum spanning tree of mutual reachability, with
 * the same edges, order and bits as the CPU backend's on any number of GPUs.
 * Source   Boruvka by one query a point with bounds that components share: Prokopenko,
 *          Sao, Lebrun-Grandie 2022 (arXiv 2207.00514) */
#ifndef MT_CUDA_HDBSCAN_H
#define MT_CUDA_HDBSCAN_H
#include "gpu.h"

/* Where the time went: seconds by CUDA events, of this GPU. */
typedef struct mt_spanning_tree_cost {
  double upload; /* points to the device */
  double space;  /* distinct points, kd-tree */
  double cores;  /* core distances, and their exchange */
  double rounds; /* Boruvka rounds, and their exchanges */
  double edges;  /* sorting the edges, and to the host */
  int n_rounds;
  int64_t n_distinct; /* points that differ */
  int64_t bytes;      /* device memory taken at most */
} mt_spanning_tree_cost;

/**
 * As mt_backend.spanning_tree. d up to 16: a kd-tree over the points; above: tiles of the
 * matrix of distances. Each GPU holds all points and searches for its share of them.
 * cost_out   or NULL
 * Errors     MT_ERR_ARG; MT_ERR_MEMORY naming the device memory needed and there, also for
 *            2^31 points or more; MT_STOPPED
 */
extern "C" mt_status mt_cuda_spanning_tree_cost(mt_backend *be, const mt_comm *comm,
                                                const mt_hdbscan_options *options,
                                                int64_t n, int64_t d,
                                                const float *points, mt_edge *tree_out,
                                                double *core_out,
                                                mt_spanning_tree_cost *cost_out);

/* The table's function. */
mt_status mt_cuda_spanning_tree(mt_backend *be, const mt_comm *comm,
                                const mt_hdbscan_options *options, int64_t n, int64_t d,
                                const float *points, mt_edge *tree_out,
                                double *core_out);
mt_status mt_cuda_condensed_tree(mt_backend *be, int64_t min_cluster_size, int64_t n,
                                 const mt_edge *tree, mt_condensed_tree *tree_out);

#endif
