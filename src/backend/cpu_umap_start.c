#include "backend/backend.h"
#include "umap/start.h"

mt_status mt_cpu_umap_start(mt_backend *be, const mt_comm *comm,
                            const mt_umap_options *options, mt_metric metric,
                            const mt_graph *graph, const mt_rows *rows,
                            float *positions_out)
{
  mt_spectral_graph source = mt_spectral_graph_on_host(graph);
  (void)be;
  return mt_umap_start(comm, options, metric, &source, rows, positions_out);
}
