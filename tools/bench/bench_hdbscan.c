/* HDBSCAN of FOLDER/rows by the CPU backend, timed, all of it and its spanning tree:
 *   bench_hdbscan FOLDER POINTS COLUMNS [SECTION.NAME=VALUE]...
 * One rank leaves the labels in FOLDER/labels (int32). */
#include "bench.h"
#include "backend/backend.h"
#include "base/memory.h"
#include "hdbscan/hdbscan.h"

#include <stdlib.h>

static mt_status cluster(const mt_comm *comm, mt_backend *be,
                         const mt_hdbscan_options *options, const char *folder,
                         int64_t n, int64_t d)
{
  mt_status status = MT_OK;
  mt_clusters clusters = {0};
  float *points = NULL;
  mt_edge *tree = NULL;
  mt_elapsed begin, took, of_tree;
  MT_NEW(points, n * d);
  MT_NEW(tree, n);
  MT_TRY(mt_bench_load(folder, "rows", (size_t)(n * d) * sizeof *points, points));
  MT_TRY(mt_barrier(comm));
  begin = mt_bench_now();
  MT_TRY(mt_hdbscan(be, comm, options, n, d, points, &clusters));
  MT_TRY(mt_bench_since(comm, begin, &took));
  begin = mt_bench_now();
  MT_TRY(be->spanning_tree(be, comm, options, n, d, points, tree, NULL));
  MT_TRY(mt_bench_since(comm, begin, &of_tree));
  if (comm->rank == 0)
    printf("{\"seconds\": %.6f, \"cpu\": %.6f, \"tree\": %.6f, \"clusters\": %lld}\n",
           took.clock, took.processor, of_tree.clock, (long long)clusters.n_clusters);
  if (comm->size == 1)
    MT_TRY(mt_bench_save(folder, "labels", (size_t)n * sizeof *clusters.labels,
                         clusters.labels));
done:
  mt_clusters_destroy(&clusters);
  free(points);
  free(tree);
  return status;
}

int main(int argc, char **argv)
{
  mt_status status = MT_OK;
  mt_comm world;
  mt_backend *be = NULL;
  mt_parameters parameters = {0};
  if (mt_comm_start(&argc, &argv, &world) != MT_OK) return 1;
  mt_log_setup(world.rank, world.size,
               getenv("VERBOSE") != NULL ? MT_LOG_DEBUG : MT_LOG_WARN);
  MT_REQUIRE(argc >= 4 && atoll(argv[2]) >= 2 && atoll(argv[3]) >= 1, MT_ERR_INPUT,
             "bench_hdbscan FOLDER POINTS COLUMNS [SECTION.NAME=VALUE]...");
  MT_TRY(mt_bench_parameters(argc - 4, argv + 4, &parameters));
  MT_TRY(mt_backend_cpu(&be));
  status = mt_agree(&world, cluster(&world, be, &parameters.hdbscan, argv[1],
                                    atoll(argv[2]), atoll(argv[3])));
done:
  if (be != NULL) be->close(be);
  mt_parameters_destroy(&parameters);
  mt_comm_stop(&world);
  return mt_exit_code(status);
}
