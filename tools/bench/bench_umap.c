/* Seconds of UMAP by part, on planted points in five dimensions (planted.h) whose nearest
 * neighbours are given: bench_umap [N [FILE]]. Under mpirun too. For other programs
 * (tools/bench/umap_learn.py) FILE.points (n, 5), FILE.indices (n, 14), FILE.distances and
 * FILE.positions (n, 2) are left: float32, indices int64, row-major. */
#include "backend/backend.h"
#include "base/log.h"
#include "base/memory.h"
#include "deck/deck.h"
#include "planted.h"
#include "save.h"
#include "umap/umap.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { DIMENSIONS = 5, NEIGHBORS = 14 };

/* All of it whole on every rank. */
typedef struct {
  int64_t n;
  float *points;    /* (n, DIMENSIONS) */
  int64_t *indices; /* (n, NEIGHBORS) */
  float *distances;
  float *positions; /* (n, n_components) */
} mt_bench_map;

static mt_status map_create(int64_t n, int64_t n_components, mt_bench_map *map)
{
  mt_status status = MT_OK;
  mt_scatter scatter = mt_scatter_default(n, DIMENSIONS);
  map->n = n;
  MT_NEW(map->points, n * DIMENSIONS);
  MT_NEW(map->indices, n * NEIGHBORS);
  MT_NEW(map->distances, n * NEIGHBORS);
  MT_NEW(map->positions, n * n_components);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; i++)
    mt_scatter_point(&scatter, i, map->points + i * DIMENSIONS);
done:
  return status;
}

static void map_destroy(mt_bench_map *map)
{
  free(map->points);
  free(map->indices);
  free(map->distances);
  free(map->positions);
}

/* Nearly all of the true ones. */
static mt_status find_neighbors(const mt_comm *comm, const mt_rows *rows,
                                mt_bench_map *map)
{
  mt_status status = MT_OK;
  mt_knn_quality quality;
  int64_t first = mt_part_first(map->n, comm->size, comm->rank) * NEIGHBORS;
  double start = mt_seconds();
  MT_TRY(mt_cpu_knn_approximate(NULL, comm, MT_METRIC_EUCLIDEAN, NEIGHBORS, rows,
                                map->indices + first, map->distances + first,
                                &quality));
  MT_TRY(
      mt_allgather_rows(comm, map->n, NEIGHBORS * sizeof *map->indices, map->indices));
  MT_TRY(mt_allgather_rows(comm, map->n, NEIGHBORS * sizeof *map->distances,
                           map->distances));
  if (comm->rank == 0)
    printf(
        "umap, %lld points, ranks %d, threads %d (neighbours: %.1f s, recall %.4f)\n",
        (long long)map->n, comm->size, omp_get_max_threads(), mt_seconds() - start,
        quality.recall);
done:
  return status;
}

static mt_status save(const char *path, int64_t n_components, const mt_bench_map *map)
{
  mt_status status = MT_OK;
  size_t n = (size_t)map->n;
  MT_TRY(mt_bench_save(path, ".points", n * DIMENSIONS * sizeof *map->points,
                       map->points));
  MT_TRY(mt_bench_save(path, ".indices", n * NEIGHBORS * sizeof *map->indices,
                       map->indices));
  MT_TRY(mt_bench_save(path, ".distances", n * NEIGHBORS * sizeof *map->distances,
                       map->distances));
  MT_TRY(mt_bench_save(path, ".positions",
                       n * (size_t)n_components * sizeof *map->positions,
                       map->positions));
done:
  return status;
}

/* As mt_umap_by_steps. */
static mt_status lay_out(const mt_comm *comm, const mt_umap_options *options,
                         const mt_rows *rows, mt_bench_map *map)
{
  mt_status status = MT_OK;
  mt_graph graph = {0};
  int64_t n = map->n, edges;
  int64_t first = mt_part_first(n, comm->size, comm->rank) * NEIGHBORS;
  double start = mt_seconds();
  MT_TRY(mt_cpu_umap_graph(NULL, comm, options, n, NEIGHBORS, map->indices + first,
                           map->distances + first, &graph));
  MT_TRY(mt_graph_prune(comm, mt_umap_n_epochs(options, n), &graph));
  double graph_done = mt_seconds();
  MT_TRY(mt_cpu_umap_start(NULL, comm, options, MT_METRIC_EUCLIDEAN, &graph, rows,
                           map->positions));
  double start_done = mt_seconds();
  MT_TRY(mt_cpu_umap_epochs(NULL, comm, options, &graph, map->positions));
  double end = mt_seconds();
  edges = graph.indptr[graph.local];
  MT_TRY(mt_sum_i64(comm, 1, &edges));
  if (comm->rank == 0)
    printf("  ours        graph %7.3f, start %7.3f, epochs %7.3f, all %7.3f s"
           " (%lld edges)\n",
           graph_done - start, start_done - graph_done, end - start_done, end - start,
           (long long)(edges / 2));
done:
  mt_graph_destroy(&graph);
  return status;
}

static mt_status bench(const mt_comm *comm, int64_t n, const char *path)
{
  mt_status status = MT_OK;
  mt_parameters parameters = {0};
  mt_bench_map map = {0};
  MT_TRY(mt_parameters_default(&parameters));
  MT_TRY(mt_agree(comm, map_create(n, parameters.umap.n_components, &map)));
  mt_rows rows = mt_rows_memory(n, DIMENSIONS, map.points);
  MT_TRY(find_neighbors(comm, &rows, &map));
  MT_TRY(lay_out(comm, &parameters.umap, &rows, &map));
  if (path != NULL && comm->rank == 0)
    MT_TRY(save(path, parameters.umap.n_components, &map));
done:
  mt_parameters_destroy(&parameters);
  map_destroy(&map);
  return status;
}

int main(int argc, char **argv)
{
  mt_comm world;
  if (mt_comm_start(&argc, &argv, &world) != MT_OK) return 1;
  mt_log_setup(world.rank, world.size,
               getenv("VERBOSE") != NULL ? MT_LOG_DEBUG : MT_LOG_WARN);
  mt_status status =
      bench(&world, argc > 1 ? atoll(argv[1]) : 100000, argc > 2 ? argv[2] : NULL);
  mt_comm_stop(&world);
  return mt_exit_code(status);
}
