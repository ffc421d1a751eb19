/* The stage knn: topics.h5 -> knn.h5. */
#include "base/log.h"
#include "base/memory.h"
#include "deck/deck.h"
#include "knn/knn.h"
#include "stage/stage.h"
#include "store/folder.h"
#include "store/store.h"

#include <stdlib.h>

static const char algorithm[] = "brute_force"; /* what auto stands for, too */

static mt_status fingerprint(const mt_run *run, mt_fingerprint *out)
{
  static const char *const leave_out[] = {"build_algo", NULL}; /* one result for all */
  mt_status status = MT_OK;
  mt_hash *hash = mt_hash_begin();
  MT_REQUIRE(hash != NULL, MT_ERR_MEMORY, "no memory");
  mt_hash_text(hash, "knn 1"); /* the number changes when the results do */
  MT_TRY(mt_store_hash(run->out, "topics.h5", hash));
  MT_TRY(mt_parameters_hash(run->parameters, "knn", leave_out, hash));
done:
  *out = mt_hash_end(hash);
  return status;
}

/* Neighbours of each row, as many as there are. */
static int64_t settle_k(const mt_comm *comm, const mt_knn_options *options, int64_t n)
{
  int64_t k = options->n_neighbors - 1, most = n > 0 ? n - 1 : 0;
  if (k <= most) return k;
  if (comm->rank == 0)
    mt_warn("knn: n_neighbors is %lld, more than there are topic vectors (%lld): each "
            "gets %lld neighbours",
            (long long)options->n_neighbors, (long long)n, (long long)most);
  return most;
}

/* No neighbours to look for: still no row may be bad. */
static mt_status check_only(mt_metric metric, const mt_rows *rows)
{
  mt_status status = MT_OK;
  float *row = NULL;
  int64_t bad, column;
  MT_NEW(row, rows->d);
  for (int64_t i = 0; i < rows->n; i++) {
    MT_TRY(rows->read(rows, i, 1, row));
    mt_knn_check(metric, i, 1, rows->d, row, &bad, &column);
    if (bad >= 0) MT_TRY(mt_knn_refuse(metric, bad, column, row[column]));
  }
done:
  free(row);
  return status;
}

static mt_status find(const mt_comm *comm, const mt_run *run, const mt_rows *rows,
                      int64_t k, int64_t *indices, float *distances)
{
  mt_backend *be = run->backend;
  mt_metric metric = run->parameters->knn.metric;
  if (k > 0) return be->knn(be, comm, metric, k, rows, indices, distances);
  mt_log_replicated(true);
  mt_status status = check_only(metric, rows); /* at most one row */
  mt_log_replicated(false);
  return mt_agree(comm, status);
}

static mt_status save(const mt_comm *comm, const mt_run *run,
                      const mt_fingerprint *made_by, int64_t local, int64_t k,
                      const int64_t *indices, const float *distances)
{
  static const mt_dataset index_of = {
      "/indices",
      MT_INT64,
      "number of each topic's neighbours, nearest first, ties by "
      "number; the topic itself left out",
      "1",
      {"topic", "neighbour"}};
  static const mt_dataset distance_of = {"/distances",
                                         MT_FLOAT32,
                                         "distance to each neighbour",
                                         "1",
                                         {"topic", "neighbour"}};
  const mt_knn_options *options = &run->parameters->knn;
  mt_status status = MT_OK;
  mt_file *file = NULL;
  char *path = mt_path_join(run->out, "knn.h5");
  MT_TRY(mt_agree(comm, path != NULL ? MT_OK : MT_ERR_MEMORY));
  MT_TRY(mt_store_create(comm, path, made_by, &file));
  MT_TRY(mt_store_set_text(comm, file, "metric", mt_metric_name(options->metric)));
  MT_TRY(mt_store_set_i64(comm, file, "n_neighbors", options->n_neighbors));
  MT_TRY(mt_store_set_text(comm, file, "build_algo", algorithm));
  MT_TRY(mt_store_write(comm, file, &index_of, local, k, indices));
  MT_TRY(mt_store_write(comm, file, &distance_of, local, k, distances));
  MT_TRY(mt_store_commit(comm, &file));
done:
  mt_store_abandon(comm, &file);
  free(path);
  return status;
}

static mt_status work(const mt_comm *comm, const mt_run *run,
                      const mt_fingerprint *made_by, mt_stage_result *result)
{
  mt_status status = MT_OK;
  mt_file *topics = NULL;
  mt_rows rows = {0};
  int64_t *indices = NULL;
  float *distances = NULL;

  MT_REQUIRE(run->parameters->knn.build_algo != MT_BUILD_NN_DESCENT, MT_ERR_INPUT,
             "nn_descent is not built yet: use brute_force");
  MT_TRY(mt_agree(comm, mt_store_open_in(run->out, "topics.h5", &topics)));
  mt_store_rows source = {topics, "/matrix"};
  MT_TRY(mt_agree(comm, mt_rows_stored(&source, &rows)));
  int64_t k = settle_k(comm, &run->parameters->knn, rows.n);
  int64_t local = mt_part_count(rows.n, comm->size, comm->rank);
  status = mt_memory_new(local * k, sizeof *indices, "indices", (void **)&indices);
  if (status == MT_OK)
    status =
        mt_memory_new(local * k, sizeof *distances, "distances", (void **)&distances);
  MT_TRY(mt_agree(comm, status));
  MT_TRY(find(comm, run, &rows, k, indices, distances));
  MT_TRY(save(comm, run, made_by, local, k, indices, distances));
  result->rows = rows.n;
  if (result->metrics != NULL)
    json_object_set_new(result->metrics, "neighbours", json_integer(k));
done:
  mt_store_close(topics);
  free(indices);
  free(distances);
  return status;
}

const mt_stage mt_stage_knn = {.name = "knn",
                               .file = "knn.h5",
                               .fingerprint = fingerprint,
                               .work = work,
                               .on_team = true};
