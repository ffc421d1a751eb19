/* Seconds of the exact nearest neighbours on rows like topic vectors, beside the plain
 * matrix product of the same size in the same run.
 *   bench_knn [rows [columns [neighbours [metric [file]]]]]
 * Under mpirun too. For other programs (tools/bench/knn.py) the rows are left in `file`
 * (float32, row-major) and, by one rank, the neighbours in `file`.indices (int64). */
#include "save.h"
#include "backend/cpu_knn.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "knn/knn.h"

#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FIT = 15 }; /* topics of a fit: row i is theme i mod FIT, or one of its own */

/* A fit's components: a few hundred terms hold the mass, the rest a floor. */
static void fill_row(int64_t i, int64_t d, float *row)
{
  int64_t theme = i % FIT + (i / FIT % 12 < 9 ? 0 : FIT * (1 + i / FIT % 12));
  double sum = 0.0;
  for (int64_t t = 0; t < d; t++) {
    double weight = mt_random_unit(1, MT_STREAM_TEST, (uint64_t)(theme * d + t), 0);
    double noise = mt_random_unit(1, MT_STREAM_TEST, (uint64_t)(i * d + t), 1);
    row[t] = (float)(pow(weight, 40.0) * (0.2 + noise) + 1e-4 * noise);
    sum += row[t];
  }
  for (int64_t t = 0; t < d; t++) row[t] = (float)(row[t] / sum);
}

/* Seconds on the clock and of the processor (of this rank, all threads). */
typedef struct elapsed {
  double clock, processor;
} elapsed;

static elapsed now(void)
{
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return (elapsed){mt_seconds(), (double)used.tv_sec + 1e-9 * (double)used.tv_nsec};
}

static void tell(const char *name, elapsed start, double flops, const char *more)
{
  elapsed end = now();
  double seconds = end.clock - start.clock;
  printf("  %-12s %8.3f s (processor %8.3f s)  %7.1f GFLOP/s%s\n", name, seconds,
         end.processor - start.processor, flops / seconds * 1e-9, more);
}

/* Rows of all against the first `many` rows, in one call a block: what BLAS can do. */
static void multiply(int64_t n, int64_t d, const float *rows, float *product,
                     int64_t block)
{
  for (int64_t from = 0; from < n; from += block) {
    int64_t many = n - from < block ? n - from : block;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)many, (blasint)n,
                (blasint)d, 1.0f, rows + from * d, (blasint)d, rows, (blasint)d, 0.0f,
                product, (blasint)n);
  }
}

static mt_status bench(const mt_comm *comm, int64_t n, int64_t d, int64_t k,
                       mt_metric metric, const char *path)
{
  mt_status status = MT_OK;
  int64_t *indices = NULL, block = 1024;
  float *rows = NULL, *distances = NULL, *product = NULL;
  mt_cpu_knn_sizes sizes = {0};
  mt_cpu_knn_cost cost;
  MT_NEW(rows, n * d);
  MT_NEW(product, block * n);
  MT_NEW(indices, n * k);
  MT_NEW(distances, n * k);
#pragma omp parallel for schedule(dynamic)
  for (int64_t i = 0; i < n; i++) fill_row(i, d, rows + i * d);
  if (path != NULL && comm->rank == 0)
    MT_TRY(mt_bench_save(path, "", (size_t)(n * d) * sizeof *rows, rows));
  mt_rows source = mt_rows_memory(n, d, rows);
  double flops = 2.0 * (double)n * (double)n * (double)d;
  int threads = omp_get_max_threads();
  if (comm->rank == 0)
    printf("%lld x %lld, %lld neighbours, %s, ranks %d, threads %d\n", (long long)n,
           (long long)d, (long long)k, mt_metric_name(metric), comm->size, threads);
  if (comm->size == 1) {
    openblas_set_num_threads(threads);
    elapsed start = now();
    multiply(n, d, rows, product, block);
    tell("sgemm", start, flops, "");
  }
  for (int again = 0; again < 2; again++) {
    mt_barrier(comm);
    elapsed start = now();
    char more[64];
    MT_TRY(
        mt_cpu_knn_sized(comm, metric, k, &source, &sizes, indices, distances, &cost));
    MT_TRY(mt_sum_i64(comm, 1, &cost.exact));
    snprintf(more, sizeof more, ", %.1f distances in double a row",
             (double)cost.exact / (double)n);
    if (comm->rank == 0) tell("metatopics", start, flops, more);
  }
  if (path != NULL && comm->size == 1)
    MT_TRY(mt_bench_save(path, ".indices", (size_t)(n * k) * sizeof *indices, indices));
done:
  free(rows);
  free(product);
  free(indices);
  free(distances);
  return status;
}

int main(int argc, char **argv)
{
  mt_comm world;
  int64_t n = argc > 1 ? atoll(argv[1]) : 5000, d = argc > 2 ? atoll(argv[2]) : 13713;
  int64_t k = argc > 3 ? atoll(argv[3]) : 14;
  mt_metric metric = MT_METRIC_COSINE;
  if (mt_comm_start(&argc, &argv, &world) != MT_OK) return 1;
  mt_log_setup(world.rank, world.size, MT_LOG_WARN);
  for (int m = 0; m < 3 && argc > 4; m++)
    if (strcmp(argv[4], mt_metric_name((mt_metric)m)) == 0) metric = (mt_metric)m;
  mt_status status = bench(&world, n, d, k, metric, argc > 5 ? argv[5] : NULL);
  mt_comm_stop(&world);
  return mt_exit_code(status);
}
