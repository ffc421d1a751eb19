/* UMAP on GPUs: the same bits as the CPU backend's, for any number of GPUs, by the formulas of
 * umap/formulas.h and umap/move.h and sums in the same order. The graph stays on the devices
 * from the lists of neighbours to the positions; the host makes the start's small matrices,
 * its noise, small parts of a disconnected graph, and the start by init="pca". */
#ifndef MT_CUDA_UMAP_H
#define MT_CUDA_UMAP_H
#include "gpu.h"

extern "C" {
#include "umap/start.h"
}

/* What a layout cost this GPU: seconds until its stream was through with each phase. */
typedef struct mt_gpu_umap_cost {
  double copy;            /* lists of neighbours to the device, and their check */
  double graph;           /* strengths, links to their owners, sorting, merging */
  double components;      /* parts that no edge joins */
  double start;           /* start positions, all of it */
  mt_start_cost start_of; /* of that, if it is spectral */
  double epochs;      /* with the edges' turns before, and the copy to the host after */
  int64_t edges;      /* of this GPU's points, both directions counted */
  int64_t n_products; /* matrix by block of vectors */
} mt_gpu_umap_cost;

/* The backend table's (backend/backend.h). n up to 2^31 - 1. */
mt_status mt_gpu_umap_graph(mt_backend *be, const mt_comm *comm,
                            const mt_umap_options *options, int64_t n, int64_t k,
                            const int64_t *indices, const float *distances,
                            mt_graph *graph_out);
mt_status mt_gpu_umap_start(mt_backend *be, const mt_comm *comm,
                            const mt_umap_options *options, mt_metric metric,
                            const mt_graph *graph, const mt_rows *rows,
                            float *positions_out);
mt_status mt_gpu_umap_epochs(mt_backend *be, const mt_comm *comm,
                             const mt_umap_options *options, const mt_graph *graph,
                             float *positions);
mt_status mt_gpu_umap_layout(mt_backend *be, const mt_comm *comm,
                             const mt_umap_options *options, mt_metric metric,
                             int64_t k, const int64_t *indices, const float *distances,
                             const mt_rows *rows, float *positions_out,
                             mt_umap_result *result);

/* Likewise, with what it cost. */
mt_status mt_gpu_umap_costs(mt_backend *be, const mt_comm *comm,
                            const mt_umap_options *options, mt_metric metric, int64_t k,
                            const int64_t *indices, const float *distances,
                            const mt_rows *rows, float *positions_out,
                            mt_umap_result *result, mt_gpu_umap_cost *cost_out);

#endif
