/* HDBSCAN's part of the CUDA backend: the same edges, order, labels and bits as the CPU
 * backend's on any number of GPUs. Each GPU holds all points and searches from its share of
 * them for the spanning tree of mutual reachability; what follows each does for itself.
 * Source   Boruvka by one query a point with bounds that components share: Prokopenko,
 *          Sao, Lebrun-Grandie 2022 (arXiv 2207.00514) */
#ifndef MT_CUDA_HDBSCAN_H
#define MT_CUDA_HDBSCAN_H
#include "gpu.h"

/* Where the time went: seconds by CUDA events, of this GPU. */
typedef struct mt_hdbscan_cost {
  double upload;     /* points to the device */
  double space;      /* distinct points, kd-tree */
  double cores;      /* core distances, and their exchange */
  double rounds;     /* Boruvka rounds, and their exchanges */
  double edges;      /* sorting the edges */
  double condensing; /* dendrogram and condensed tree */
  double selection;  /* clusters, labels and scores, and all to the host */
  int n_rounds;
  int64_t n_distinct; /* points that differ */
  int64_t bytes;      /* device memory taken at most */
} mt_hdbscan_cost;

/**
 * As mt_backend.spanning_tree. d up to 16: a kd-tree over the points; above: tiles of the
 * matrix of distances.
 * Errors   MT_ERR_ARG; MT_ERR_MEMORY naming the device memory needed and there, also for
 *          2^31 points or more; MT_STOPPED
 */
mt_status mt_cuda_spanning_tree(mt_backend *be, const mt_comm *comm,
                                const mt_hdbscan_options *options, int64_t n, int64_t d,
                                const float *points, mt_edge *tree_out,
                                double *core_out);
/* As mt_backend.condensed_tree. */
mt_status mt_cuda_condensed_tree(mt_backend *be, int64_t min_cluster_size, int64_t n,
                                 const mt_edge *tree, mt_condensed_tree *tree_out);
/* As mt_backend.clusters: both trees stay on the device. */
mt_status mt_cuda_clusters(mt_backend *be, const mt_comm *comm,
                           const mt_hdbscan_options *options, int64_t n, int64_t d,
                           const float *points, mt_clusters *clusters_out);
/* And tells what it cost: for benchmarks. */
extern "C" mt_status mt_cuda_clusters_cost(mt_backend *be, const mt_comm *comm,
                                           const mt_hdbscan_options *options, int64_t n,
                                           int64_t d, const float *points,
                                           mt_clusters *clusters_out,
                                           mt_hdbscan_cost *cost_out);

#endif
