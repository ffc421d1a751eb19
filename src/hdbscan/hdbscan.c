#include "hdbscan/hdbscan.h"
#include "base/log.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

static mt_status check_points(int64_t n, int64_t d, const float *points)
{
  if (n < 0 || d < 1) return mt_fail(MT_ERR_ARG, "hdbscan: negative size");
  int64_t first = n * d;
#pragma omp parallel for schedule(static) reduction(min : first)
  for (int64_t i = 0; i < n * d; i++)
    if (!isfinite(points[i]) && i < first) first = i;
  if (first < n * d)
    return mt_fail(
        MT_ERR_INPUT, "hdbscan: point %lld: coordinate %lld is %g, not a finite number",
        (long long)(first / d), (long long)(first % d), (double)points[first]);
  return MT_OK;
}

mt_status mt_clusters_by_steps(mt_backend *be, const mt_comm *comm,
                               const mt_hdbscan_options *options, int64_t n, int64_t d,
                               const float *points, mt_clusters *clusters_out)
{
  mt_status status = MT_OK;
  mt_edge *tree = NULL;
  mt_condensed_tree condensed = {0};

  MT_TRY(mt_agree(comm, mt_memory_new(n, sizeof *tree, "tree", (void **)&tree)));
  MT_TRY(be->spanning_tree(be, comm, options, n, d, points, tree, NULL));
  mt_log_replicated(true); /* all ranks do the same */
  status = be->condensed_tree(be, options->min_cluster_size, n, tree, &condensed);
  if (status == MT_OK) status = mt_clusters_select(options, &condensed, clusters_out);
  if (status == MT_OK)
    status = mt_clusters_keep_part(comm->size, comm->rank, clusters_out);
  mt_log_replicated(false);
  status = mt_agree(comm, status);
done:
  free(tree);
  return status;
}

mt_status mt_hdbscan(mt_backend *be, const mt_comm *comm,
                     const mt_hdbscan_options *options, int64_t n, int64_t d,
                     const float *points, mt_clusters *clusters_out)
{
  mt_log_replicated(true); /* all ranks look at the same points */
  mt_status local = check_points(n, d, points);
  if (local == MT_OK) local = mt_hdbscan_check(options);
  if (local == MT_OK && n < 2) local = mt_clusters_find(options, n, NULL, clusters_out);
  if (local == MT_OK && n < 2)
    local = mt_clusters_keep_part(comm->size, comm->rank, clusters_out);
  mt_log_replicated(false);
  mt_status status = mt_agree(comm, local);
  if (status != MT_OK || n < 2) return status;
  return be->clusters(be, comm, options, n, d, points, clusters_out);
}
