#include "umap_parts.h"

/* Seconds since *at, once the stream is through; *at = now. */
static mt_status take_time(mt_gpu *gpu, double *at, double *seconds)
{
  MT_PASS(mt_gpu_wait(gpu));
  double now = mt_seconds();
  *seconds = now - *at;
  *at = now;
  return MT_OK;
}

mt_status mt_gpu_umap_graph(mt_backend *be, const mt_comm *comm,
                            const mt_umap_options *options, int64_t n, int64_t k,
                            const int64_t *indices, const float *distances,
                            mt_graph *graph_out)
{
  mt_gpu *gpu = mt_gpu_of(be);
  mt_gpu_lists lists;
  mt_gpu_graph graph;
  MT_PASS(mt_gpu_lists_copy(gpu, comm, n, k, indices, distances, &lists));
  MT_PASS(mt_gpu_graph_make(gpu, comm, options, &lists, 0, &graph));
  return mt_gpu_graph_fetch(gpu, comm, &graph, graph_out);
}

mt_status mt_gpu_umap_start(mt_backend *be, const mt_comm *comm,
                            const mt_umap_options *options, mt_metric metric,
                            const mt_graph *graph, const mt_rows *rows,
                            float *positions_out)
{
  mt_gpu *gpu = mt_gpu_of(be);
  mt_gpu_graph copy;
  mt_gpu_umap_cost cost = {};
  MT_PASS(mt_gpu_graph_copy(gpu, comm, graph, &copy));
  return mt_gpu_start(gpu, comm, options, metric, &copy, rows, positions_out, &cost);
}

mt_status mt_gpu_umap_epochs(mt_backend *be, const mt_comm *comm,
                             const mt_umap_options *options, const mt_graph *graph,
                             float *positions)
{
  mt_gpu *gpu = mt_gpu_of(be);
  mt_gpu_graph copy;
  MT_PASS(mt_gpu_graph_copy(gpu, comm, graph, &copy));
  return mt_gpu_epochs(gpu, comm, options, &copy, positions);
}

static mt_status count_edges(mt_gpu *gpu, const mt_comm *comm,
                             const mt_gpu_graph *graph, mt_umap_result *result)
{
  mt_array<int64_t> labels;
  int64_t both = graph->edges;
  MT_PASS(mt_gpu_graph_components(gpu, comm, graph, &labels, &result->components));
  MT_PASS(mt_sum_i64(comm, 1, &both));
  result->edges = both / 2;
  return MT_OK;
}

mt_status mt_gpu_umap_costs(mt_backend *be, const mt_comm *comm,
                            const mt_umap_options *options, mt_metric metric, int64_t k,
                            const int64_t *indices, const float *distances,
                            const mt_rows *rows, float *positions_out,
                            mt_umap_result *result, mt_gpu_umap_cost *cost_out)
{
  mt_gpu *gpu = mt_gpu_of(be);
  mt_gpu_graph graph;
  mt_gpu_umap_cost cost = {};
  double at = mt_seconds();
  {
    mt_gpu_lists lists;
    MT_PASS(mt_gpu_lists_copy(gpu, comm, rows->n, k, indices, distances, &lists));
    MT_PASS(take_time(gpu, &at, &cost.copy));
    MT_PASS(mt_gpu_graph_make(gpu, comm, options, &lists,
                              mt_umap_n_epochs(options, rows->n), &graph));
  }
  MT_PASS(take_time(gpu, &at, &cost.graph));
  MT_PASS(count_edges(gpu, comm, &graph, result));
  MT_PASS(take_time(gpu, &at, &cost.components));
  MT_PASS(mt_gpu_start(gpu, comm, options, metric, &graph, rows, positions_out, &cost));
  MT_PASS(take_time(gpu, &at, &cost.start));
  MT_PASS(mt_gpu_epochs(gpu, comm, options, &graph, positions_out));
  MT_PASS(take_time(gpu, &at, &cost.epochs));
  cost.edges = graph.edges;
  *cost_out = cost;
  return MT_OK;
}

mt_status mt_gpu_umap_layout(mt_backend *be, const mt_comm *comm,
                             const mt_umap_options *options, mt_metric metric,
                             int64_t k, const int64_t *indices, const float *distances,
                             const mt_rows *rows, float *positions_out,
                             mt_umap_result *result)
{
  mt_gpu_umap_cost cost;
  return mt_gpu_umap_costs(be, comm, options, metric, k, indices, distances, rows,
                           positions_out, result, &cost);
}
