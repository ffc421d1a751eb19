/* RANKS 1 2 3 4 7   EMULATED 1 2 3:2
 * The hdbscan stage: an embedding in umap.h5 becomes hdbscan.h5, whatever its size. */
#include "backend.h"
#include "base/memory.h"
#include "deck/deck.h"
#include "hdbscan/hdbscan.h"
#include "stage/stage.h"
#include "store/folder.h"
#include "store/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[64]; /* of this test, the same on all ranks */
static mt_parameters parameters;

static int set_up(void **state)
{
  (void)state;
  if (mt_test_world.rank == 0) {
    strcpy(folder, "/tmp/mt-hdbscan-XXXXXX");
    if (mkdtemp(folder) == NULL) return 1;
  }
  if (mt_parameters_default(&parameters) != MT_OK) return 1;
  return mt_bcast(&mt_test_world, 0, sizeof folder, folder) != MT_OK;
}

static int tear_down(void **state)
{
  (void)state;
  char command[128];
  mt_parameters_destroy(&parameters);
  mt_barrier(&mt_test_world);
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return mt_test_world.rank == 0 ? system(command) : 0;
}

/* Three tight groups and a few points between them. */
static float *make_points(int64_t n)
{
  void *memory = NULL;
  assert_int_equal(mt_memory_new(2 * n, sizeof(float), "points", &memory), MT_OK);
  float *points = memory;
  for (int64_t i = 0; i < 2 * n; i++) {
    double unit = mt_random_unit(3, MT_STREAM_TEST, (uint64_t)i, 0);
    points[i] =
        (float)(i / 2 % 8 == 7 ? 30.0 * unit : 10.0 * (double)(i / 2 % 3) + unit);
  }
  return points;
}

static void write_embedding(int64_t n, const float *points,
                            const mt_fingerprint *made_by)
{
  static const mt_dataset embedding = {
      "/embedding", MT_FLOAT32, "places", "1", {"topic", "axis"}};
  const mt_comm *comm = &mt_test_world;
  mt_file *file = NULL;
  char *path = mt_path_join(folder, "umap.h5");
  assert_int_equal(mt_store_create(comm, path, made_by, &file), MT_OK);
  assert_int_equal(
      mt_store_write(comm, file, &embedding, mt_part_count(n, comm->size, comm->rank),
                     2, points + 2 * mt_part_first(n, comm->size, comm->rank)),
      MT_OK);
  assert_int_equal(mt_store_commit(comm, &file), MT_OK);
  free(path);
}

static mt_fingerprint fingerprint_now(const mt_run *run)
{
  mt_fingerprint made_by = {""};
  if (mt_test_world.rank == 0)
    assert_int_equal(mt_stage_hdbscan.fingerprint(run, &made_by), MT_OK);
  assert_int_equal(mt_bcast(&mt_test_world, 0, sizeof made_by, &made_by), MT_OK);
  return made_by;
}

static void compare(mt_file *file, const char *name, mt_type type, int64_t n,
                    const void *want)
{
  int64_t rows = -1, width = -1;
  void *found = NULL;
  size_t size = mt_type_size(type);
  assert_int_equal(mt_store_shape(file, name, &rows, &width), MT_OK);
  assert_int_equal(rows, n);
  assert_int_equal(width, 0);
  assert_int_equal(mt_memory_new(n, size, name, &found), MT_OK);
  assert_int_equal(mt_store_read(file, name, type, 0, n, found), MT_OK);
  if (n > 0) assert_memory_equal(found, want, (size_t)n * size);
  free(found);
}

static void compare_file(const char *path, const mt_clusters *want)
{
  mt_file *file = NULL;
  const mt_condensed_tree *tree = &want->tree;
  assert_int_equal(mt_store_open(path, &file), MT_OK);
  compare(file, "/labels", MT_INT32, want->n, want->labels);
  compare(file, "/probabilities", MT_FLOAT64, want->n, want->probabilities);
  compare(file, "/outlier_scores", MT_FLOAT64, want->n, want->outlier_scores);
  compare(file, "/persistence", MT_FLOAT64, want->n_clusters, want->persistence);
  compare(file, "/condensed_tree/parent", MT_INT64, tree->n_rows, tree->parent);
  compare(file, "/condensed_tree/child", MT_INT64, tree->n_rows, tree->child);
  compare(file, "/condensed_tree/lambda", MT_FLOAT64, tree->n_rows, tree->lambda);
  compare(file, "/condensed_tree/child_size", MT_INT64, tree->n_rows, tree->child_size);
  mt_store_close(file);
}

/* Runs the stage on n points, and holds its file against the same call in memory by one rank. */
static void check_stage(int64_t n, int64_t clusters_wanted)
{
  mt_comm self = mt_comm_self();
  mt_run run = {.parameters = &parameters, .out = folder, .backend = mt_test_backend};
  mt_stage_result result = {.rows = -1};
  mt_clusters want = {0};
  mt_fingerprint embedding = {"0123456789abcdef0123456789abcdef"};
  float *points = make_points(n);
  char *path = mt_path_join(folder, mt_stage_hdbscan.file);

  if (mt_test_world.rank == 0) result.metrics = json_object();
  write_embedding(n, points, &embedding);
  mt_fingerprint made_by = fingerprint_now(&run);
  assert_int_equal(mt_stage_hdbscan.work(&mt_test_world, &run, &made_by, &result),
                   MT_OK);
  assert_int_equal(
      mt_hdbscan(mt_test_cpu, &self, &parameters.hdbscan, n, 2, points, &want), MT_OK);
  assert_int_equal(want.n_clusters, clusters_wanted);
  compare_file(path, &want);
  mt_fingerprint stored = mt_store_fingerprint(path);
  assert_true(mt_fingerprint_equal(&stored, &made_by));
  assert_int_equal(result.rows, n);
  if (mt_test_world.rank == 0) {
    json_t *found = json_object_get(result.metrics, "meta_topics");
    assert_int_equal(json_integer_value(found), clusters_wanted);
  }
  json_decref(result.metrics);
  mt_clusters_destroy(&want);
  free(points);
  free(path);
  mt_barrier(&mt_test_world);
}

static void test_three_groups(void **state)
{
  (void)state;
  parameters.hdbscan.min_cluster_size = 40;
  check_stage(400, 3);
}

/* That is a result, not an error. */
static void test_all_noise(void **state)
{
  (void)state;
  parameters.hdbscan.min_cluster_size = 300;
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_ERROR);
  check_stage(400, 0);
  for (int64_t n = 0; n <= 3; n++) check_stage(n, 0);
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_WARN);
}

static void test_fingerprint(void **state)
{
  (void)state;
  mt_run run = {.parameters = &parameters, .out = folder, .backend = mt_test_backend};
  mt_fingerprint first = fingerprint_now(&run), again = fingerprint_now(&run);
  assert_true(mt_fingerprint_equal(&first, &again));
  parameters.hdbscan.min_samples++;
  again = fingerprint_now(&run);
  assert_false(mt_fingerprint_equal(&first, &again));
  parameters.hdbscan.min_samples--;
  parameters.umap.min_dist /= 2; /* umap.h5 tells, not its parameters */
  again = fingerprint_now(&run);
  assert_true(mt_fingerprint_equal(&first, &again));
  mt_fingerprint other = {"fedcba9876543210fedcba9876543210"};
  mt_barrier(&mt_test_world);
  write_embedding(0, NULL, &other);
  again = fingerprint_now(&run);
  assert_false(mt_fingerprint_equal(&first, &again));
}

/* A missing or spoiled embedding is an error on every rank, and leaves no file. */
static void test_bad_embedding(void **state)
{
  (void)state;
  mt_run run = {.parameters = &parameters, .out = folder, .backend = mt_test_backend};
  mt_stage_result result = {0};
  mt_fingerprint made_by = {"0123456789abcdef0123456789abcdef"};
  char *path = mt_path_join(folder, mt_stage_hdbscan.file);
  char *umap = mt_path_join(folder, "umap.h5");
  float points[8] = {0.0f, 1.0f, NAN, 2.0f, 3.0f, 1.0f, 2.0f, 5.0f};
  if (mt_test_world.rank == 0) remove(path), remove(umap);
  mt_barrier(&mt_test_world);
  assert_int_equal(mt_stage_hdbscan.work(&mt_test_world, &run, &made_by, &result),
                   MT_ERR_IO);
  write_embedding(4, points, &made_by);
  assert_int_equal(mt_stage_hdbscan.work(&mt_test_world, &run, &made_by, &result),
                   MT_ERR_INPUT);
  mt_fingerprint none = mt_store_fingerprint(path);
  assert_int_equal(none.hex[0], '\0');
  free(path);
  free(umap);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_three_groups),
    cmocka_unit_test(test_all_noise),
    cmocka_unit_test(test_fingerprint),
    cmocka_unit_test(test_bad_embedding),
};

MT_TEST_BACKEND_MAIN_AROUND(tests, set_up, tear_down)
