/* RANKS 1 2 3 4 7
 * EMULATED 1 2 3:2
 * Approximate nearest neighbours: how many are right, and that those given are exact. */
#include "backend.h"

#include "base/hash.h"
#include "base/memory.h"
#include "deck/deck.h"
#include "knn/knn.h"
#include "knn/nn_descent.h"
#include "stage/stage.h"
#include "store/folder.h"
#include "store/store.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct data {
  int64_t n, d;
  float *rows; /* (n, d) */
} data;

/* Small whole numbers: exact in any arithmetic, hence the same rows on any machine. */
static float whole(int64_t i, uint32_t step, int64_t below)
{
  return floorf((float)below *
                (float)mt_random_unit(3, MT_STREAM_TEST, (uint64_t)i, step));
}

static data new_data(int64_t n, int64_t d)
{
  data out = {n, d, NULL};
  assert_int_equal(mt_memory_new(n * d, sizeof(float), "rows", (void **)&out.rows),
                   MT_OK);
  return out;
}

/* Rows of `themes` kinds: a few large values and a floor; `noise` added to every column. */
static data new_themes(int64_t n, int64_t d, int64_t themes, int64_t noise)
{
  data out = new_data(n, d);
  for (int64_t i = 0; i < n; i++)
    for (int64_t t = 0; t < d; t++) {
      float theme = whole(i % themes * d + t, 1, 100);
      out.rows[i * d + t] =
          (theme > 90.0f ? 50.0f * theme : 1.0f) + whole(i * d + t, 2, noise);
    }
  return out;
}

/* A size, smaller where the CPU plays the GPU. */
static int64_t size(int64_t n)
{
  return mt_test_small() ? n / 5 : n;
}

typedef struct found {
  int64_t k, local, *indices; /* (local, k) */
  float *distances;
  mt_knn_quality quality;
} found;

static found new_found(const data *in, int64_t k)
{
  found f = {.k = k,
             .local = mt_part_count(in->n, mt_test_world.size, mt_test_world.rank)};
  assert_int_equal(mt_memory_new(f.local * k, 8, "indices", (void **)&f.indices),
                   MT_OK);
  assert_int_equal(mt_memory_new(f.local * k, 4, "distances", (void **)&f.distances),
                   MT_OK);
  return f;
}

static void forget(found *f)
{
  free(f->indices);
  free(f->distances);
}

static found find(const data *in, mt_metric metric, int64_t k)
{
  found f = new_found(in, k);
  mt_rows rows = mt_rows_memory(in->n, in->d, in->rows);
  assert_int_equal(mt_test_backend->knn_approximate(mt_test_backend, &mt_test_world,
                                                    metric, k, &rows, f.indices,
                                                    f.distances, &f.quality),
                   MT_OK);
  return f;
}

/* Every distance is that of metric.h to the bit; neighbours differ, in order. */
static void check_rows(const data *in, mt_metric metric, const found *f)
{
  int64_t first = mt_part_first(in->n, mt_test_world.size, mt_test_world.rank);
  double *z = calloc((size_t)in->d + 1, sizeof *z);
  for (int64_t i = 0; i < f->local; i++) {
    const float *x = in->rows + (first + i) * in->d;
    double scale = mt_metric_scale(metric, in->d, x), before = -1.0;
    for (int64_t t = 0; t < in->d; t++)
      z[t] = mt_metric_coordinate(metric, scale, x[t]);
    for (int64_t m = i * f->k; m < (i + 1) * f->k; m++) {
      assert_in_range(f->indices[m], 0, in->n - 1);
      assert_int_not_equal(f->indices[m], first + i);
      const float *y = in->rows + f->indices[m] * in->d;
      double y_scale = mt_metric_scale(metric, in->d, y);
      double distance = mt_metric_distance(
          metric, scale, y_scale, mt_metric_square(metric, in->d, z, y_scale, y));
      assert_true(f->distances[m] == mt_metric_store(distance));
      assert_true(distance > before ||
                  (distance == before && f->indices[m] > f->indices[m - 1]));
      before = distance;
    }
  }
  free(z);
}

/* The share of this rank's neighbours as near as the reference's k-th, over all ranks. */
static double recall_of(const data *in, mt_metric metric, const found *f)
{
  int64_t first = mt_part_first(in->n, mt_test_world.size, mt_test_world.rank),
          hits = 0;
  int64_t *indices = calloc((size_t)(in->n * f->k), sizeof *indices);
  double *distances = calloc((size_t)(in->n * f->k), sizeof *distances);
  if (mt_test_world.rank == 0)
    assert_int_equal(
        mt_knn_ref(metric, in->n, in->d, in->rows, f->k, indices, distances), MT_OK);
  mt_bcast(&mt_test_world, 0, (size_t)(in->n * f->k) * 8, distances);
  for (int64_t m = 0; m < f->local * f->k; m++) {
    int64_t last = (first + m / f->k) * f->k + f->k - 1;
    hits += f->distances[m] <= mt_metric_store(distances[last]);
  }
  mt_sum_i64(&mt_test_world, 1, &hits);
  free(indices);
  free(distances);
  return (double)hits / (double)(in->n * f->k);
}

/* What is found is right, and what is said of it is true. */
static void check(const data *in, mt_metric metric, int64_t k, double least)
{
  found f = find(in, metric, k);
  check_rows(in, metric, &f);
  double recall = recall_of(in, metric, &f);
  if (recall < least)
    fail_msg("%lld x %lld, %s, k %lld: recall %.4f, want %.4f", (long long)in->n,
             (long long)in->d, mt_metric_name(metric), (long long)k, recall, least);
  assert_int_equal(f.quality.sampled, mt_nn_sample_size(in->n));
  if (f.quality.sampled == in->n)
    assert_true(fabs(f.quality.recall - recall) < 1e-12);
  else
    assert_true(fabs(f.quality.recall - recall) < 0.01);
  forget(&f);
}

/* Few rows: all pairs are in one leaf. */
static void test_small(void **state)
{
  (void)state;
  static const int64_t some_n[] = {2, 3, 5, 17, 40}, some_d[] = {0, 1, 9, 300};
  for (int a = 0; a < 5; a++)
    for (int b = a % 2; b < 4; b += 2) {
      data in = new_themes(some_n[a], some_d[b], 3, 20);
      for (int64_t k = 1; k < in.n; k += 1 + 3 * k)
        check(&in, (mt_metric)(b % 3), k, 1.0);
      free(in.rows);
    }
}

/* A few large groups, and many small ones that are all as far from one another. */
static void test_themes(void **state)
{
  (void)state;
  data in = new_themes(size(1100), 60, 11, 40);
  check(&in, MT_METRIC_COSINE, 14, 0.995);
  free(in.rows);
  in = new_themes(size(900), 60, size(60), 3);
  check(&in, MT_METRIC_HELLINGER, 14, 0.999);
  check(&in, MT_METRIC_EUCLIDEAN, 14, 0.999);
  free(in.rows);
}

/* No groups at all: the hardest. */
static void test_loose(void **state)
{
  (void)state;
  data in = new_themes(size(800), 40, 800, 10);
  check(&in, MT_METRIC_COSINE, 10, 0.9);
  free(in.rows);
}

/* In a plane, neighbours of neighbours lead anywhere. */
static void test_plane(void **state)
{
  (void)state;
  data in = new_data(size(1000), 2);
  for (int64_t i = 0; i < in.n * in.d; i++) in.rows[i] = whole(i, 4, 1 << 20);
  check(&in, MT_METRIC_EUCLIDEAN, 8, 0.999);
  free(in.rows);
}

/* Many rows the same, or zero: ties go by number, nothing is lost for good. */
static void test_alike(void **state)
{
  (void)state;
  data in = new_themes(size(600), 30, 7, 1);
  check(&in, MT_METRIC_HELLINGER, 14, 1.0);
  for (int64_t i = 0; i < in.n; i += 3)
    memset(in.rows + i * in.d, 0, (size_t)in.d * sizeof *in.rows);
  check(&in, MT_METRIC_COSINE, 14, 1.0);
  check(&in, MT_METRIC_EUCLIDEAN, 14, 1.0);
  memset(in.rows, 0, (size_t)(in.n * in.d) * sizeof *in.rows);
  check(&in, MT_METRIC_COSINE, 14, 1.0);
  free(in.rows);
}

/* Squares beyond a float's range. */
static void test_large(void **state)
{
  (void)state;
  data in = new_themes(size(300), 20, 6, 9);
  for (int64_t i = 0; i < in.n * in.d; i++) in.rows[i] *= 1e33f;
  check(&in, MT_METRIC_COSINE, 5, 0.99);
  check(&in, MT_METRIC_EUCLIDEAN, 5, 0.99);
  free(in.rows);
}

/* More neighbours than links. */
static void test_wide(void **state)
{
  (void)state;
  data in = new_themes(size(700), 30, 4, 50);
  check(&in, MT_METRIC_HELLINGER, 100, 0.99);
  free(in.rows);
}

/* The same bits for every number of ranks and threads, and of those that one rank found. */
static void test_same_bits(void **state)
{
  (void)state;
  enum { K = 6 };
  data in = new_themes(250, 33, 12, 40);
  int64_t *all = calloc((size_t)in.n * K, sizeof *all);
  int64_t first = mt_part_first(in.n, mt_test_world.size, mt_test_world.rank);
  for (int threads = 1; threads <= (mt_test_world.size <= 2 ? 2 : 1); threads++) {
    omp_set_num_threads(threads);
    found f = find(&in, MT_METRIC_EUCLIDEAN, K);
    memcpy(all + first * K, f.indices, (size_t)(f.local * K) * sizeof *all);
    assert_int_equal(mt_allgather_rows(&mt_test_world, in.n, K * sizeof *all, all),
                     MT_OK);
    assert_int_equal(mt_hash_key(all, (size_t)in.n * K * sizeof *all),
                     0xf5eda057eed2743b);
    if (f.quality.rounds != 2 || f.quality.compared != 31011)
      fail_msg("%lld rounds, %lld pairs", (long long)f.quality.rounds,
               (long long)f.quality.compared);
    forget(&f);
  }
  omp_set_num_threads(1);
  free(all);
  free(in.rows);
}

/* A row that the metric does not allow, and one that cannot be read, end it on all ranks. */
static mt_status fail_to_read(const mt_rows *rows, int64_t first, int64_t count,
                              float *out)
{
  for (int64_t i = 0; i < count * rows->d; i++) out[i] = 1.0f;
  return first <= 11 && 11 < first + count ? MT_ERR_IO : MT_OK;
}

static void test_refusals(void **state)
{
  (void)state;
  data in = new_themes(25, 11, 5, 9);
  found f = new_found(&in, 2);
  mt_rows rows = mt_rows_memory(in.n, in.d, in.rows);
  const struct {
    mt_rows rows;
    int64_t k;
    mt_status want;
  } cases[] = {
      {rows, 0, MT_ERR_ARG},
      {rows, 25, MT_ERR_ARG},
      {{.n = 25, .d = 11, .read = fail_to_read}, 2, MT_ERR_IO},
      {{.n = 1000000000, .d = 100000, .read = fail_to_read}, 2, MT_ERR_MEMORY},
      {{.n = (int64_t)1 << 31, .d = 1, .read = fail_to_read}, 2, MT_ERR_INPUT},
  };
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_SILENT);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    assert_int_equal(mt_test_backend->knn_approximate(mt_test_backend, &mt_test_world,
                                                      MT_METRIC_HELLINGER, cases[c].k,
                                                      &cases[c].rows, f.indices,
                                                      f.distances, &f.quality),
                     cases[c].want);
  in.rows[17 * in.d + 3] = -1.0f;
  for (int metric = 0; metric < 3; metric++)
    assert_int_equal(mt_test_backend->knn_approximate(
                         mt_test_backend, &mt_test_world, (mt_metric)metric, 2, &rows,
                         f.indices, f.distances, &f.quality),
                     metric == MT_METRIC_HELLINGER ? MT_ERR_INPUT : MT_OK);
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_WARN);
  forget(&f);
  free(in.rows);
}

/* auto hangs on the sizes and the backend alone. */
static void test_choice(void **state)
{
  (void)state;
  char reason[MT_KNN_REASON];
  assert_int_equal(mt_knn_choose(MT_BUILD_AUTO, false, 500000, 13713, reason),
                   MT_BUILD_BRUTE_FORCE);
  assert_int_equal(mt_knn_choose(MT_BUILD_AUTO, false, 520000, 13713, reason),
                   MT_BUILD_NN_DESCENT);
  assert_non_null(strstr(reason, "auto takes nn_descent"));
  assert_int_equal(mt_knn_choose(MT_BUILD_AUTO, true, 520000, 13713, NULL),
                   MT_BUILD_BRUTE_FORCE);
  assert_int_equal(mt_knn_choose(MT_BUILD_NN_DESCENT, true, 10, 10, NULL),
                   MT_BUILD_NN_DESCENT);
  assert_int_equal(mt_knn_choose(MT_BUILD_BRUTE_FORCE, false, 9000000, 13713, NULL),
                   MT_BUILD_BRUTE_FORCE);
}

/* ---- the stage ------------------------------------------------------------------------- */

static void write_topics(const char *folder, const data *in)
{
  static const mt_dataset topic_rows = {
      "/matrix", MT_FLOAT32, "topic vectors", "1", {"topic", "term"}};
  static const mt_fingerprint print = {"0123456789abcdef0123456789abcdef"};
  int64_t first = mt_part_first(in->n, mt_test_world.size, mt_test_world.rank);
  int64_t local = mt_part_count(in->n, mt_test_world.size, mt_test_world.rank);
  mt_file *file = NULL;
  char *path = mt_path_join(folder, "topics.h5");
  assert_int_equal(mt_store_create(&mt_test_world, path, &print, &file), MT_OK);
  assert_int_equal(mt_store_write(&mt_test_world, file, &topic_rows, local, in->d,
                                  in->rows + first * in->d),
                   MT_OK);
  assert_int_equal(mt_store_commit(&mt_test_world, &file), MT_OK);
  free(path);
}

/* Runs the stage; what knn.h5 and the metrics say of the algorithm is as expected. */
static void run_stage(const mt_run *run, const char *algorithm, mt_fingerprint *made_by)
{
  mt_stage_result result = {.metrics = json_object()};
  mt_file *file = NULL;
  char *text = NULL;
  double recall = 0.0;
  bool approximate = strcmp(algorithm, "nn_descent") == 0;
  assert_int_equal(mt_stage_knn.fingerprint(run, made_by), MT_OK);
  mt_barrier(&mt_test_world);
  assert_int_equal(mt_stage_knn.work(&mt_test_world, run, made_by, &result), MT_OK);
  assert_int_equal(mt_store_open_in(run->out, "knn.h5", &file), MT_OK);
  assert_int_equal(mt_store_get_text(file, "build_algo", &text), MT_OK);
  assert_string_equal(text, algorithm);
  assert_string_equal(json_string_value(json_object_get(result.metrics, "build_algo")),
                      algorithm);
  json_t *said = json_object_get(result.metrics, "recall");
  assert_int_equal(said != NULL, approximate);
  if (approximate) {
    assert_int_equal(mt_store_get_f64(file, "recall", &recall), MT_OK);
    assert_true(recall > 0.9 && recall <= 1.0);
    assert_true(json_real_value(said) == recall);
  }
  mt_store_close(file);
  free(text);
  json_decref(result.metrics);
}

static void test_stage(void **state)
{
  (void)state;
  char folder[64] = "/tmp/mt-nnd-XXXXXX", command[128];
  mt_parameters parameters = {0};
  mt_fingerprint made_by[3];
  data in = new_themes(size(300), 30, 10, 9);
  if (mt_test_world.rank == 0) assert_non_null(mkdtemp(folder));
  mt_bcast(&mt_test_world, 0, sizeof folder, folder);
  assert_int_equal(mt_parameters_default(&parameters), MT_OK);
  mt_run run = {.parameters = &parameters, .out = folder, .backend = mt_test_backend};
  write_topics(folder, &in);
  parameters.knn.build_algo = MT_BUILD_NN_DESCENT;
  run_stage(&run, "nn_descent", &made_by[0]);
  parameters.knn.build_algo = MT_BUILD_BRUTE_FORCE;
  run_stage(&run, "brute_force", &made_by[1]);
  parameters.knn.build_algo = MT_BUILD_AUTO;
  run_stage(&run, "brute_force", &made_by[2]);
  assert_false(mt_fingerprint_equal(&made_by[0], &made_by[1]));
  assert_true(mt_fingerprint_equal(&made_by[1], &made_by[2]));
  mt_barrier(&mt_test_world);
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  if (mt_test_world.rank == 0) assert_int_equal(system(command), 0);
  mt_parameters_destroy(&parameters);
  free(in.rows);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_small),    cmocka_unit_test(test_themes),
    cmocka_unit_test(test_loose),    cmocka_unit_test(test_plane),
    cmocka_unit_test(test_alike),    cmocka_unit_test(test_large),
    cmocka_unit_test(test_wide),     cmocka_unit_test(test_same_bits),
    cmocka_unit_test(test_refusals), cmocka_unit_test(test_choice),
    cmocka_unit_test(test_stage),
};

MT_TEST_BACKEND_MAIN(tests)
