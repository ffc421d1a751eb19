#include "backend/backend.h"
#include "base/memory.h"
#include "hdbscan/hdbscan.h"
#include "umap/umap.h"

#include <stdlib.h>

static mt_status start(mt_backend *be, const mt_comm *team, int device)
{
  (void)be;
  (void)team;
  (void)device;
  return MT_OK;
}

static void close_backend(mt_backend *be)
{
  free(be);
}

mt_status mt_backend_cpu(mt_backend **backend_out)
{
  mt_status status = MT_OK;
  mt_backend *be = NULL;

  MT_NEW(be, 1);
  *be = (mt_backend){
      .name = "cpu",
      .start = start,
      .knn = mt_cpu_knn,
      .knn_approximate = mt_cpu_knn_approximate,
      .umap_graph = mt_cpu_umap_graph,
      .umap_start = mt_cpu_umap_start,
      .umap_epochs = mt_cpu_umap_epochs,
      .umap_layout = mt_umap_by_steps,
      .spanning_tree = mt_cpu_spanning_tree,
      .condensed_tree = mt_cpu_condensed_tree,
      .clusters = mt_clusters_by_steps,
      .close = close_backend,
  };
  *backend_out = be;
done:
  return status;
}
