#include "base/memory.h"
#include "umap/umap.h"

#include <stdlib.h>
#include <string.h>

static mt_status count_edges(const mt_comm *comm, const mt_graph *graph,
                             mt_umap_result *result)
{
  mt_status status = MT_OK;
  int64_t *labels = NULL, both = graph->indptr[graph->local];
  MT_TRY(mt_agree(comm,
                  mt_memory_new(graph->n, sizeof *labels, "labels", (void **)&labels)));
  MT_TRY(mt_graph_components(comm, graph, labels, &result->components));
  MT_TRY(mt_sum_i64(comm, 1, &both));
  result->edges = both / 2;
done:
  free(labels);
  return status;
}

mt_status mt_umap_by_steps(struct mt_backend *be, const mt_comm *comm,
                           const mt_umap_options *options, mt_metric metric, int64_t k,
                           const int64_t *indices, const float *distances,
                           const mt_rows *rows, float *positions_out,
                           mt_umap_result *result)
{
  mt_status status = MT_OK;
  mt_graph graph = {0};

  MT_TRY(be->umap_graph(be, comm, options, rows->n, k, indices, distances, &graph));
  MT_TRY(mt_graph_prune(comm, mt_umap_n_epochs(options, rows->n), &graph));
  MT_TRY(count_edges(comm, &graph, result));
  MT_TRY(be->umap_start(be, comm, options, metric, &graph, rows, positions_out));
  MT_TRY(be->umap_epochs(be, comm, options, &graph, positions_out));
done:
  mt_graph_destroy(&graph);
  return status;
}

mt_status mt_umap_layout(struct mt_backend *be, const mt_comm *comm,
                         const mt_umap_options *options, mt_metric metric, int64_t k,
                         const int64_t *indices, const float *distances,
                         const mt_rows *rows, float *positions_out,
                         mt_umap_result *result_out)
{
  mt_status status = MT_OK;
  int64_t n = rows->n;
  mt_umap_result result = {.n_epochs = mt_umap_n_epochs(options, n), .components = n};

  mt_umap_ab(options, &result.a, &result.b);
  if (n < 2) {
    memset(positions_out, 0,
           (size_t)(n * options->n_components) * sizeof *positions_out);
    goto done;
  }
  MT_REQUIRE(k >= 1 && k < n, MT_ERR_ARG, "%lld neighbours of %lld points",
             (long long)k, (long long)n);
  MT_TRY(be->umap_layout(be, comm, options, metric, k, indices, distances, rows,
                         positions_out, &result));
done:
  if (status == MT_OK) *result_out = result;
  return status;
}
