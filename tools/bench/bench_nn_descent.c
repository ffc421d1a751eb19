/* NN-Descent on rows like topic vectors: recall and seconds, beside the exact search.
 *   bench_nn_descent [kind [rows [columns [neighbours [metric [file]]]]]]
 * kind: planted (fits that share themes), groups (of 20 rows that are alike, all as far from
 * one another), loose (no groups at all). Under mpirun too. For other programs
 * (tools/bench/nn_descent.py) the rows are left in `file` (float32, row-major) and, by one rank,
 * the exact distances in `file`.distances (float32). */
#include "backend/cpu_knn.h"
#include "backend/cpu_nn_descent.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "knn/knn.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIT = 15, GROUP = 20 };

/* The theme that a row is one of, and how wide the noise about it is. */
static int64_t theme_of(char kind, int64_t i, double *width_out)
{
  *width_out = kind == 'g' ? 0.1 : 0.5;
  if (kind == 'g') return i / GROUP;
  if (kind == 'l') return i;
  return i % FIT + (i / FIT % 12 < 9 ? 0 : FIT * (1 + i / FIT % 12));
}

/* A few hundred terms hold the mass, the rest a floor. */
static void fill_row(char kind, int64_t i, int64_t d, float *row)
{
  double width, sum = 0.0;
  int64_t theme = theme_of(kind, i, &width);
  for (int64_t t = 0; t < d; t++) {
    double weight = mt_random_unit(1, MT_STREAM_TEST, (uint64_t)(theme * d + t), 0);
    double noise = mt_random_unit(1, MT_STREAM_TEST, (uint64_t)(i * d + t), 1);
    row[t] =
        (float)(pow(weight, 40.0) * (1.0 + width * (2.0 * noise - 1.0)) + 1e-4 * noise);
    sum += row[t];
  }
  for (int64_t t = 0; t < d; t++) row[t] = (float)(row[t] / sum);
}

static mt_status save(const char *path, const char *ending, size_t bytes,
                      const void *data)
{
  char name[4096];
  snprintf(name, sizeof name, "%s%s", path, ending);
  FILE *file = fopen(name, "wb");
  if (file == NULL) return mt_fail(MT_ERR_IO, "cannot write %s", name);
  size_t wrote = fwrite(data, 1, bytes, file);
  if (fclose(file) != 0 || wrote != bytes)
    return mt_fail(MT_ERR_IO, "cannot write %s", name);
  return MT_OK;
}

static double share_alike(int64_t count, const float *a, const float *b, int64_t k)
{
  int64_t hits = 0;
  for (int64_t e = 0; e < count; e++) hits += a[e] <= b[e / k * k + k - 1];
  return (double)hits / (double)count;
}

static mt_status bench(const mt_comm *comm, char kind, int64_t n, int64_t d, int64_t k,
                       mt_metric metric, const mt_nn_plan *plan, const char *path)
{
  mt_status status = MT_OK;
  int64_t *indices = NULL;
  float *rows = NULL, *distances = NULL, *exact = NULL;
  mt_cpu_knn_sizes sizes = {0, 0, 0};
  mt_knn_quality quality;
  MT_NEW(rows, n * d);
  MT_NEW(indices, n * k);
  MT_NEW(distances, n * k);
  MT_NEW(exact, n * k);
#pragma omp parallel for schedule(dynamic)
  for (int64_t i = 0; i < n; i++) fill_row(kind, i, d, rows + i * d);
  if (path != NULL && comm->rank == 0)
    MT_TRY(save(path, "", (size_t)(n * d) * sizeof *rows, rows));
  mt_rows source = mt_rows_memory(n, d, rows);
  double start = mt_seconds();
  MT_TRY(
      mt_cpu_knn_planned(comm, metric, k, &source, plan, indices, distances, &quality));
  double seconds = mt_seconds() - start;
  if (comm->rank == 0)
    printf("  nn_descent   %8.3f s, recall %.4f (of %lld rows), %lld rounds, %.1f "
           "compared a row\n",
           seconds, quality.recall, (long long)quality.sampled,
           (long long)quality.rounds, (double)quality.compared / (double)n);
  start = mt_seconds();
  MT_TRY(mt_cpu_knn_sized(comm, metric, k, &source, &sizes, indices, exact, NULL));
  seconds = mt_seconds() - start;
  if (comm->rank == 0) printf("  brute_force  %8.3f s\n", seconds);
  if (path != NULL && comm->size == 1) {
    printf("  recall over all rows %.5f\n", share_alike(n * k, distances, exact, k));
    MT_TRY(save(path, ".distances", (size_t)(n * k) * sizeof *exact, exact));
  }
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
  char kind = argc > 1 ? argv[1][0] : 'p';
  int64_t n = argc > 2 ? atoll(argv[2]) : 20000, d = argc > 3 ? atoll(argv[3]) : 2000;
  int64_t k = argc > 4 ? atoll(argv[4]) : 14;
  mt_metric metric = MT_METRIC_COSINE;
  if (mt_comm_start(&argc, &argv, &world) != MT_OK) return 1;
  mt_log_setup(world.rank, world.size, MT_LOG_WARN);
  for (int m = 0; m < 3 && argc > 5; m++)
    if (strcmp(argv[5], mt_metric_name((mt_metric)m)) == 0) metric = (mt_metric)m;
  mt_nn_plan plan;
  if (mt_nn_plan_make(n, k, &plan) != MT_OK) return 2;
  if (world.rank == 0)
    printf("%s, %lld x %lld, %lld neighbours, %s, ranks %d, threads %d\n",
           argc > 1 ? argv[1] : "planted", (long long)n, (long long)d, (long long)k,
           mt_metric_name(metric), world.size, omp_get_max_threads());
  mt_status status =
      bench(&world, kind, n, d, k, metric, &plan, argc > 6 ? argv[6] : NULL);
  mt_comm_stop(&world);
  return mt_exit_code(status);
}
