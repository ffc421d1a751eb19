/* Start positions: what umap-learn's simplicial_set_embedding does before the epochs. */
#include "backend/backend.h"
#include "base/memory.h"
#include "umap/start.h"

#include <stdlib.h>

mt_status mt_cpu_umap_start(mt_backend *be, const mt_comm *comm,
                            const mt_umap_options *options, mt_metric metric,
                            const mt_graph *graph, const mt_rows *rows,
                            float *positions_out)
{
  mt_status status = MT_OK;
  int64_t n = graph->n, dims = options->n_components;
  double *layout = NULL;
  (void)be;

  MT_TRY(mt_agree(comm,
                  mt_memory_new(n * dims, sizeof *layout, "layout", (void **)&layout)));
  if (options->init == MT_INIT_SPECTRAL)
    MT_TRY(mt_umap_spectral(comm, options, metric, graph, rows, layout));
  else if (options->init == MT_INIT_PCA && n > dims)
    MT_TRY(mt_umap_pca(comm, options, rows, layout));
  else
    mt_umap_scatter_all(options, n, layout);
  mt_umap_finish_start(options, n, layout, positions_out);
done:
  free(layout);
  return status;
}
