/* The parts of UMAP on GPUs, as umap.cu puts them together. */
#ifndef MT_CUDA_UMAP_PARTS_H
#define MT_CUDA_UMAP_PARTS_H
#include "exchange.h"
#include "primitives.h"
#include "umap.h"

extern "C" {
#include "umap/eigen.h"
#include "umap/move.h"
#include "umap/start.h"
#include "umap/umap.h"
}

/* A symmetric weighted graph on the device, this GPU's rows (mt_graph). */
struct mt_gpu_graph {
  int64_t n = 0, first = 0, local = 0, edges = 0;
  mt_array<int64_t> indptr;  /* (local + 1), from 0 */
  mt_array<int32_t> indices; /* (edges) ascending in each row */
  mt_array<float> weights;   /* (edges) */
};

/* ---- umap_graph.cu ---------------------------------------------------------------------- */

/* Lists of neighbours on the device, this GPU's. */
struct mt_gpu_lists {
  int64_t n = 0, k = 0, first = 0, local = 0;
  mt_array<int64_t> indices; /* (local, k) */
  mt_array<float> distances; /* (local, k) */
};

/* From the host, checked. Errors agreed on: those of mt_umap_check_neighbors; too many points. */
mt_status mt_gpu_lists_copy(mt_gpu *gpu, const mt_comm *comm, int64_t n, int64_t k,
                            const int64_t *indices, const float *distances,
                            mt_gpu_lists *lists);

/* The graph; n_epochs: without the edges too light to act in so many; 0: all of it. */
mt_status mt_gpu_graph_make(mt_gpu *gpu, const mt_comm *comm,
                            const mt_umap_options *options, const mt_gpu_lists *lists,
                            int64_t n_epochs, mt_gpu_graph *graph);

/* To and from the host. Errors agreed on. */
mt_status mt_gpu_graph_copy(mt_gpu *gpu, const mt_comm *comm, const mt_graph *from,
                            mt_gpu_graph *graph);
mt_status mt_gpu_graph_fetch(mt_gpu *gpu, const mt_comm *comm,
                             const mt_gpu_graph *graph, mt_graph *out);

/* As mt_graph_heaviest, and mt_graph_components with labels (n) on every device. */
mt_status mt_gpu_graph_heaviest(mt_gpu *gpu, const mt_comm *comm,
                                const mt_gpu_graph *graph, float *heaviest_out);
mt_status mt_gpu_graph_components(mt_gpu *gpu, const mt_comm *comm,
                                  const mt_gpu_graph *graph, mt_array<int64_t> *labels,
                                  int64_t *count_out);

/* ---- umap_start.cu ---------------------------------------------------------------------- */

/* Start positions to host memory (mt_umap_start). cost: products are added. */
mt_status mt_gpu_start(mt_gpu *gpu, const mt_comm *comm, const mt_umap_options *options,
                       mt_metric metric, const mt_gpu_graph *graph, const mt_rows *rows,
                       float *positions_out, mt_gpu_umap_cost *cost);

/* ---- umap_epochs.cu --------------------------------------------------------------------- */

/* All epochs; positions in host memory, start in, result out. */
mt_status mt_gpu_epochs(mt_gpu *gpu, const mt_comm *comm,
                        const mt_umap_options *options, const mt_gpu_graph *graph,
                        float *positions);

#endif
