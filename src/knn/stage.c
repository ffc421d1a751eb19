/* The stage knn: topics.h5 -> knn.h5. */
#include "base/log.h"
#include "base/memory.h"
#include "deck/deck.h"
#include "knn/knn.h"
#include "stage/stage.h"
#include "store/folder.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

/* Which algorithm, for the matrix that topics.h5 holds. */
static mt_status choose(const mt_run *run, mt_build_algo *algorithm_out,
                        char *reason_out)
{
  mt_file *topics = NULL;
  int64_t n, d;
  mt_status status = mt_store_open_in(run->out, "topics.h5", &topics);
  if (status == MT_OK) status = mt_store_shape(topics, "/matrix", &n, &d);
  mt_store_close(topics);
  if (status == MT_OK)
    *algorithm_out =
        mt_knn_choose(run->parameters->knn.build_algo,
                      strcmp(run->backend->name, "cuda") == 0, n, d, reason_out);
  return status;
}

static mt_status fingerprint(const mt_run *run, mt_fingerprint *out)
{
  static const char *const leave_out[] = {"build_algo", NULL}; /* what it stands for */
  mt_status status = MT_OK;
  mt_build_algo algorithm;
  char reason[MT_KNN_REASON];
  mt_hash *hash = mt_hash_begin();
  MT_REQUIRE(hash != NULL, MT_ERR_MEMORY, "no memory");
  MT_TRY(choose(run, &algorithm, reason));
  mt_hash_text(hash, "knn 2"); /* the number changes when the results do */
  mt_hash_text(hash, mt_build_algo_name(algorithm));
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

/* What is found, and how. */
typedef struct neighbours {
  int64_t k;
  mt_build_algo algorithm;
  int64_t *indices;       /* (local, k) */
  float *distances;       /* (local, k) */
  mt_knn_quality quality; /* of nn_descent */
} neighbours;

static mt_status find(const mt_comm *comm, const mt_run *run, const mt_rows *rows,
                      neighbours *found)
{
  mt_backend *be = run->backend;
  mt_metric metric = run->parameters->knn.metric;
  if (found->k > 0 && found->algorithm == MT_BUILD_NN_DESCENT)
    return be->knn_approximate(be, comm, metric, found->k, rows, found->indices,
                               found->distances, &found->quality);
  if (found->k > 0)
    return be->knn(be, comm, metric, found->k, rows, found->indices, found->distances);
  mt_log_replicated(true);
  mt_status status = check_only(metric, rows); /* at most one row */
  mt_log_replicated(false);
  return mt_agree(comm, status);
}

static bool is_measured(const neighbours *found)
{
  return found->k > 0 && found->algorithm == MT_BUILD_NN_DESCENT;
}

static mt_status save(const mt_comm *comm, const mt_run *run,
                      const mt_fingerprint *made_by, int64_t local,
                      const neighbours *found)
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
  MT_TRY(mt_store_set_text(comm, file, "build_algo",
                           mt_build_algo_name(found->algorithm)));
  if (is_measured(found))
    MT_TRY(mt_store_set_f64(comm, file, "recall", found->quality.recall));
  MT_TRY(mt_store_write(comm, file, &index_of, local, found->k, found->indices));
  MT_TRY(mt_store_write(comm, file, &distance_of, local, found->k, found->distances));
  MT_TRY(mt_store_commit(comm, &file));
done:
  mt_store_abandon(comm, &file);
  free(path);
  return status;
}

/* On rank 0: what run.json says. */
static void report(const neighbours *found, json_t *metrics)
{
  const mt_knn_quality *quality = &found->quality;
  json_object_set_new(metrics, "neighbours", json_integer(found->k));
  json_object_set_new(metrics, "build_algo",
                      json_string(mt_build_algo_name(found->algorithm)));
  if (!is_measured(found)) return;
  json_object_set_new(metrics, "recall", json_real(quality->recall));
  json_object_set_new(metrics, "recall_rows", json_integer(quality->sampled));
  json_object_set_new(metrics, "rounds", json_integer(quality->rounds));
  json_object_set_new(metrics, "compared_pairs", json_integer(quality->compared));
}

static mt_status work(const mt_comm *comm, const mt_run *run,
                      const mt_fingerprint *made_by, mt_stage_result *result)
{
  mt_status status = MT_OK;
  mt_file *topics = NULL;
  mt_rows rows = {0};
  neighbours found = {.k = 0};
  char reason[MT_KNN_REASON];

  MT_TRY(mt_agree(comm, choose(run, &found.algorithm, reason)));
  if (comm->rank == 0) mt_info("knn: %s", reason);
  MT_TRY(mt_agree(comm, mt_store_open_in(run->out, "topics.h5", &topics)));
  mt_store_rows source = {topics, "/matrix"};
  MT_TRY(mt_agree(comm, mt_rows_stored(&source, &rows)));
  found.k = settle_k(comm, &run->parameters->knn, rows.n);
  int64_t local = mt_part_count(rows.n, comm->size, comm->rank);
  status = mt_memory_new(local * found.k, sizeof *found.indices, "indices",
                         (void **)&found.indices);
  if (status == MT_OK)
    status = mt_memory_new(local * found.k, sizeof *found.distances, "distances",
                           (void **)&found.distances);
  MT_TRY(mt_agree(comm, status));
  MT_TRY(find(comm, run, &rows, &found));
  MT_TRY(save(comm, run, made_by, local, &found));
  result->rows = rows.n;
  if (result->metrics != NULL) report(&found, result->metrics);
done:
  mt_store_close(topics);
  free(found.indices);
  free(found.distances);
  return status;
}

const mt_stage mt_stage_knn = {.name = "knn",
                               .file = "knn.h5",
                               .fingerprint = fingerprint,
                               .work = work,
                               .on_team = true};
