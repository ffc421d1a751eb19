/* The stage: umap.h5's embedding in, hdbscan.h5's clusters out. */
#include "stage/stage.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/progress.h"
#include "deck/deck.h"
#include "hdbscan/hdbscan.h"
#include "store/folder.h"
#include "store/store.h"

#include <stdlib.h>

static mt_status fingerprint(const mt_run *run, mt_fingerprint *out)
{
  mt_status status = MT_OK;
  mt_hash *hash = mt_hash_begin();
  MT_REQUIRE(hash != NULL, MT_ERR_MEMORY, "no memory");
  mt_hash_text(hash, "hdbscan 1"); /* the number changes when the method does */
  MT_TRY(mt_store_hash(run->out, "umap.h5", hash));
  MT_TRY(mt_parameters_hash(run->parameters, "hdbscan", NULL, hash));
done:
  *out = mt_hash_end(hash);
  return status;
}

/* Room for the whole embedding, with this rank's rows in it; owned by the caller. */
static mt_status read_own(const mt_comm *comm, const char *folder, int64_t *n_out,
                          int64_t *d_out, float **points_out)
{
  mt_status status = MT_OK;
  mt_file *file = NULL;
  float *points = NULL;
  int64_t n = 0, d = 0;

  MT_TRY(mt_store_open_in(folder, "umap.h5", &file));
  MT_TRY(mt_store_shape(file, "/embedding", &n, &d));
  MT_REQUIRE(d >= 1, MT_ERR_IO, "%s/umap.h5: /embedding has no columns", folder);
  MT_NEW(points, n * d);
  mt_part own = mt_part_of(n, comm->size, comm->rank);
  MT_TRY(mt_store_read(file, "/embedding", MT_FLOAT32, own.first, own.count,
                       points + own.first * d));
  *n_out = n;
  *d_out = d;
  *points_out = points;
  points = NULL;
done:
  free(points);
  mt_store_close(file);
  return status;
}

/* The whole embedding, on every rank. The file is read once over all of them. */
static mt_status read_embedding(const mt_comm *comm, const char *folder, int64_t *n_out,
                                int64_t *d_out, float **points_out)
{
  mt_status status = mt_agree(comm, read_own(comm, folder, n_out, d_out, points_out));
  if (status != MT_OK) return status;
  return mt_allgather_rows(comm, *n_out, (size_t)*d_out * sizeof **points_out,
                           *points_out);
}

static const mt_dataset labels_set = {"/labels",
                                      MT_INT32,
                                      "meta-topic of each topic, -1 for noise",
                                      "1",
                                      {"topic", NULL}};
static const mt_dataset probabilities_set = {
    "/probabilities",
    MT_FLOAT64,
    "strength of each topic's membership, 0 for noise",
    "1",
    {"topic", NULL}};
static const mt_dataset outliers_set = {"/outlier_scores",
                                        MT_FLOAT64,
                                        "GLOSH outlier score of each topic",
                                        "1",
                                        {"topic", NULL}};
static const mt_dataset persistence_set = {
    "/persistence",
    MT_FLOAT64,
    "how long each meta-topic lasts, of the longest possible",
    "1",
    {"meta_topic", NULL}};
static const mt_dataset parent_set = {
    "/condensed_tree/parent",
    MT_INT64,
    "cluster that the child leaves; the first is the root",
    "1",
    {"row", NULL}};
static const mt_dataset child_set = {
    "/condensed_tree/child",
    MT_INT64,
    "topic, or cluster if not below the number of topics",
    "1",
    {"row", NULL}};
static const mt_dataset lambda_set = {"/condensed_tree/lambda",
                                      MT_FLOAT64,
                                      "1 / distance at which the child leaves",
                                      "1 / unit of the embedding",
                                      {"row", NULL}};
static const mt_dataset child_size_set = {
    "/condensed_tree/child_size", MT_INT64, "topics in the child", "1", {"row", NULL}};

static mt_status write_clusters(const mt_comm *comm, const char *path,
                                const mt_fingerprint *made_by,
                                const mt_clusters *clusters)
{
  mt_status status = MT_OK;
  mt_file *file = NULL;
  const mt_condensed_tree *tree = &clusters->tree;
  int64_t points = clusters->points.count, rows = clusters->rows.count;
  mt_part persistence =
      mt_part_of(clusters->n_clusters, comm->size, comm->rank); /* all have it whole */

  MT_TRY(mt_store_create(comm, path, made_by, &file));
  MT_TRY(mt_store_write(comm, file, &labels_set, points, 0, clusters->labels));
  MT_TRY(mt_store_write(comm, file, &probabilities_set, points, 0,
                        clusters->probabilities));
  MT_TRY(
      mt_store_write(comm, file, &outliers_set, points, 0, clusters->outlier_scores));
  MT_TRY(mt_store_write(comm, file, &persistence_set, persistence.count, 0,
                        clusters->persistence + persistence.first));
  MT_TRY(mt_store_write(comm, file, &parent_set, rows, 0, tree->parent));
  MT_TRY(mt_store_write(comm, file, &child_set, rows, 0, tree->child));
  MT_TRY(mt_store_write(comm, file, &lambda_set, rows, 0, tree->lambda));
  MT_TRY(mt_store_write(comm, file, &child_size_set, rows, 0, tree->child_size));
  MT_TRY(mt_store_commit(comm, &file));
done:
  mt_store_abandon(comm, &file);
  return status;
}

/* Rank 0 says what came out, and what to turn if nothing did. */
static void tell(const mt_hdbscan_options *options, const mt_clusters *clusters,
                 mt_stage_result *result)
{
  int64_t noise = clusters->n_noise;
  double share = clusters->n > 0 ? (double)noise / (double)clusters->n : 0.0;
  if (clusters->n > 0 && noise == clusters->n)
    mt_warn(
        "hdbscan: all %lld topics are noise; try a smaller hdbscan.min_cluster_size "
        "(now %lld) or another hdbscan.min_samples (now %lld)",
        (long long)clusters->n, (long long)options->min_cluster_size,
        (long long)options->min_samples);
  else
    mt_info("hdbscan: %lld meta-topics from %lld topics, %.1f %% noise",
            (long long)clusters->n_clusters, (long long)clusters->n, 100.0 * share);
  if (result->metrics == NULL) return;
  json_object_set_new(result->metrics, "meta_topics",
                      json_integer(clusters->n_clusters));
  json_object_set_new(result->metrics, "noise", json_integer(noise));
  json_object_set_new(result->metrics, "noise_share", json_real(share));
}

static mt_status work(const mt_comm *comm, const mt_run *run,
                      const mt_fingerprint *made_by, mt_stage_result *result)
{
  mt_status status = MT_OK;
  const mt_hdbscan_options *options = &run->parameters->hdbscan;
  int64_t n = 0, d = 0;
  float *points = NULL;
  mt_clusters clusters = {0};
  char *path = mt_path_join(run->out, "hdbscan.h5");

  MT_TRY(mt_agree(comm, path == NULL ? MT_ERR_MEMORY : MT_OK));
  MT_TRY(read_embedding(comm, run->out, &n, &d, &points));
  mt_progress_begin(comm->rank, "hdbscan", n);
  status = mt_hdbscan(run->backend, comm, options, n, d, points, &clusters);
  mt_progress_end();
  MT_TRY(status);
  MT_TRY(write_clusters(comm, path, made_by, &clusters));
  result->rows = n;
  if (comm->rank == 0) tell(options, &clusters, result);
done:
  mt_clusters_destroy(&clusters);
  free(points);
  free(path);
  return status;
}

const mt_stage mt_stage_hdbscan = {.name = "hdbscan",
                                   .file = "hdbscan.h5",
                                   .fingerprint = fingerprint,
                                   .work = work,
                                   .on_team = true};
