/* NN-Descent on rows like topic vectors: recall and seconds, beside the exact search.
 *   bench_nn_descent [kind [rows [columns [neighbours [metric [backend [file]]]]]]]
 * kind: planted (planted.h), groups (of 20 rows that are alike, all as far from one another),
 * loose (no groups at all). Under mpirun too. For other programs (tools/bench/nn_descent.py)
 * the rows are left in `file` (float32, row-major) and, by one rank, the exact distances in
 * `file`.distances (float32). */
#include "save.h"
#include "backend/backend.h"
#include "base/log.h"
#include "base/memory.h"
#include "knn/knn.h"
#include "planted.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 20 };

/* A few hundred terms of a theme hold the mass, the rest a floor. */
static void fill_themed(int64_t i, int64_t theme, float width, int64_t d, float *row)
{
  double sum = 0.0;
  for (int64_t t = 0; t < d; t++) {
    double weight = mt_random_unit(1, MT_STREAM_TEST, (uint64_t)(theme * d + t), 0);
    double noise = mt_random_unit(1, MT_STREAM_TEST, (uint64_t)(i * d + t), 1);
    row[t] =
        (float)(pow(weight, 40.0) * (1.0 + width * (2.0 * noise - 1.0)) + 1e-4 * noise);
    sum += row[t];
  }
  for (int64_t t = 0; t < d; t++) row[t] = (float)(row[t] / sum);
}

static void fill(const char *kind, int64_t n, int64_t d, float *rows)
{
  mt_planted planted = mt_planted_default(d);
#pragma omp parallel for schedule(dynamic)
  for (int64_t i = 0; i < n; i++) {
    if (strcmp(kind, "groups") == 0)
      fill_themed(i, i / GROUP, 0.1f, d, rows + i * d);
    else if (strcmp(kind, "loose") == 0)
      fill_themed(i, i, 0.0f, d, rows + i * d);
    else
      mt_planted_fill(&planted, i, rows + i * d);
  }
}

/* The share of distances that are among the exact ones. */
static mt_status recall_of(const mt_comm *comm, int64_t n, int64_t k, int64_t local,
                           const float *distances, const float *exact,
                           double *recall_out)
{
  int64_t hits = 0;
  for (int64_t e = 0; e < local * k; e++)
    hits += distances[e] <= exact[e / k * k + k - 1];
  mt_status status = mt_sum_i64(comm, 1, &hits);
  *recall_out = (double)hits / (double)(n * k);
  return status;
}

static mt_status bench(const mt_comm *comm, mt_backend *be, const char *kind, int64_t n,
                       int64_t d, int64_t k, mt_metric metric, const char *path)
{
  mt_status status = MT_OK;
  int64_t *indices = NULL, local = mt_part_count(n, comm->size, comm->rank);
  float *rows = NULL, *distances = NULL, *exact = NULL;
  double recall;
  mt_knn_quality quality;
  MT_NEW(rows, n * d);
  MT_NEW(indices, local * k);
  MT_NEW(distances, local * k);
  MT_NEW(exact, local * k);
  fill(kind, n, d, rows);
  if (path != NULL && comm->rank == 0)
    MT_TRY(mt_bench_save(path, "", (size_t)(n * d) * sizeof *rows, rows));
  mt_rows source = mt_rows_memory(n, d, rows);
  double start = mt_seconds();
  MT_TRY(
      be->knn_approximate(be, comm, metric, k, &source, indices, distances, &quality));
  double middle = mt_seconds();
  MT_TRY(be->knn(be, comm, metric, k, &source, indices, exact));
  double end = mt_seconds();
  MT_TRY(recall_of(comm, n, k, local, distances, exact, &recall));
  if (comm->rank == 0)
    printf("  nn_descent   %8.3f s, recall %.4f (%.4f of %lld rows), %lld rounds, %.1f "
           "compared a row\n  brute_force  %8.3f s\n",
           middle - start, recall, quality.recall, (long long)quality.sampled,
           (long long)quality.rounds, (double)quality.compared / (double)n,
           end - middle);
  if (path != NULL && comm->size == 1)
    MT_TRY(mt_bench_save(path, ".distances", (size_t)(n * k) * sizeof *exact, exact));
done:
  free(rows);
  free(indices);
  free(distances);
  free(exact);
  return status;
}

int main(int argc, char **argv)
{
  mt_comm world;
  mt_devices devices;
  mt_layout layout = {.n_nodes = 0};
  mt_backend *be = NULL;
  mt_status status = MT_OK;
  const char *kind = argc > 1 ? argv[1] : "planted";
  int64_t n = argc > 2 ? atoll(argv[2]) : 20000, d = argc > 3 ? atoll(argv[3]) : 2000;
  int64_t k = argc > 4 ? atoll(argv[4]) : 14;
  bool cuda = argc > 6 && strcmp(argv[6], "cuda") == 0;
  mt_metric metric = MT_METRIC_COSINE;
  if (mt_comm_start(&argc, &argv, &world) != MT_OK) return 1;
  mt_log_setup(world.rank, world.size, cuda ? MT_LOG_DEBUG : MT_LOG_WARN);
  for (int m = 0; m < 3 && argc > 5; m++)
    if (strcmp(argv[5], mt_metric_name((mt_metric)m)) == 0) metric = (mt_metric)m;
  MT_TRY(mt_backend_find(&world, cuda ? MT_BACKEND_CUDA : MT_BACKEND_CPU, &devices));
  MT_TRY(mt_layout_create(&world, &devices, &layout));
  MT_TRY(mt_backend_open(&world, &layout, &be));
  if (world.rank == 0)
    printf("%s, %lld x %lld, %lld neighbours, %s, %s, ranks %d, threads %d\n", kind,
           (long long)n, (long long)d, (long long)k, mt_metric_name(metric),
           cuda ? "cuda" : "cpu", layout.team.size, omp_get_max_threads());
  if (layout.team.size > 0)
    status = bench(&layout.team, be, kind, n, d, k, metric, argc > 7 ? argv[7] : NULL);
done:
  if (be != NULL) be->close(be);
  if (layout.n_nodes > 0) mt_layout_destroy(&layout);
  mt_comm_stop(&world);
  return mt_exit_code(status);
}
