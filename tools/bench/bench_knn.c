/* Nearest neighbours of FOLDER/rows by the CPU backend, timed:
 *   bench_knn FOLDER ROWS COLUMNS NEIGHBOURS METRIC brute_force|nn_descent
 * One rank leaves them in FOLDER/indices (int64) and FOLDER/distances (float32). */
#include "bench.h"
#include "backend/backend.h"
#include "base/memory.h"
#include "knn/knn.h"

#include <stdlib.h>
#include <string.h>

typedef struct job {
  const char *folder;
  int64_t n, d, k;
  mt_metric metric;
  bool approximate;
} job;

static mt_status find(const mt_comm *comm, mt_backend *be, const job *j)
{
  mt_status status = MT_OK;
  int64_t *indices = NULL, local = mt_part_count(j->n, comm->size, comm->rank);
  float *matrix = NULL, *distances = NULL;
  mt_elapsed took;
  mt_knn_quality quality = {.recall = 1.0};
  MT_NEW(matrix, j->n * j->d);
  MT_NEW(indices, local * j->k);
  MT_NEW(distances, local * j->k);
  MT_TRY(
      mt_bench_load(j->folder, "rows", (size_t)(j->n * j->d) * sizeof *matrix, matrix));
  mt_rows rows = mt_rows_memory(j->n, j->d, matrix);
  MT_TRY(mt_barrier(comm));
  mt_elapsed begin = mt_bench_now();
  if (j->approximate)
    MT_TRY(be->knn_approximate(be, comm, j->metric, j->k, &rows, indices, distances,
                               &quality));
  else
    MT_TRY(be->knn(be, comm, j->metric, j->k, &rows, indices, distances));
  MT_TRY(mt_bench_since(comm, begin, &took));
  if (comm->rank == 0)
    printf("{\"seconds\": %.6f, \"cpu\": %.6f, \"recall\": %.6f, \"rounds\": %lld}\n",
           took.clock, took.processor, quality.recall, (long long)quality.rounds);
  if (comm->size > 1) goto done;
  MT_TRY(mt_bench_save(j->folder, "indices", (size_t)(j->n * j->k) * sizeof *indices,
                       indices));
  MT_TRY(mt_bench_save(j->folder, "distances",
                       (size_t)(j->n * j->k) * sizeof *distances, distances));
done:
  free(matrix);
  free(indices);
  free(distances);
  return status;
}

static mt_status read_job(int argc, char **argv, job *j)
{
  mt_status status = MT_OK;
  bool known = false;
  MT_REQUIRE(argc == 7, MT_ERR_INPUT,
             "bench_knn FOLDER ROWS COLUMNS NEIGHBOURS METRIC "
             "brute_force|nn_descent");
  *j = (job){.folder = argv[1], .approximate = strcmp(argv[6], "nn_descent") == 0};
  MT_TRY(mt_bench_sizes(argv + 2, &j->n, &j->d, &j->k));
  for (int m = 0; m < 3; m++)
    if (strcmp(argv[5], mt_metric_name((mt_metric)m)) == 0) {
      j->metric = (mt_metric)m;
      known = true;
    }
  MT_REQUIRE(known, MT_ERR_INPUT, "%s is no metric", argv[5]);
  MT_REQUIRE(j->approximate || strcmp(argv[6], "brute_force") == 0, MT_ERR_INPUT,
             "%s: want brute_force or nn_descent", argv[6]);
done:
  return status;
}

int main(int argc, char **argv)
{
  mt_status status = MT_OK;
  mt_comm world;
  mt_backend *be = NULL;
  job j = {.folder = NULL};
  if (mt_comm_start(&argc, &argv, &world) != MT_OK) return 1;
  mt_log_setup(world.rank, world.size, MT_LOG_WARN);
  MT_TRY(read_job(argc, argv, &j));
  MT_TRY(mt_backend_cpu(&be));
  status = mt_agree(&world, find(&world, be, &j));
done:
  if (be != NULL) be->close(be);
  mt_comm_stop(&world);
  return mt_exit_code(status);
}
