/* RANKS 1 2 3
 * The stage from the files of a small run to pictures and tables: what it leaves, when it is
 * kept, and what it says of files that do not fit one another. */
#include "test.h"

#include "deck/deck.h"
#include "report/findings.h"
#include "report/tables.h"
#include "stage/stage.h"
#include "store/folder.h"
#include "store/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N = 12, V = 9, TOP = 3, PERIODS = 4 };

static char folder[64];

static int make_folder(void **state)
{
  (void)state;
  strcpy(folder, "/tmp/mt-stage-XXXXXX");
  bool made = mt_test_world.rank != 0 || mkdtemp(folder) != NULL;
  mt_bcast(&mt_test_world, 0, sizeof folder, folder);
  return !made;
}

static int remove_folder(void **state)
{
  (void)state;
  char command[96];
  mt_barrier(&mt_test_world);
  snprintf(command, sizeof command, "rm -r %s", folder);
  return mt_test_world.rank == 0 ? system(command) : 0;
}

/* One file with these datasets, written by rank 0's rows alone. */
typedef struct mt_column {
  mt_dataset set;
  int64_t rows, width;
  const void *data;
} mt_column;

static void write_file(const char *name, int64_t n, const mt_column *columns)
{
  mt_comm *comm = &mt_test_world;
  mt_hash *hash = mt_hash_begin();
  mt_hash_text(hash, name);
  mt_fingerprint made_by = mt_hash_end(hash);
  mt_file *file = NULL;
  char *path = mt_path_join(folder, name);
  assert_int_equal(mt_store_create(comm, path, &made_by, &file), MT_OK);
  for (int64_t i = 0; i < n; i++)
    assert_int_equal(mt_store_write(comm, file, &columns[i].set,
                                    comm->rank == 0 ? columns[i].rows : 0,
                                    columns[i].width, columns[i].data),
                     MT_OK);
  assert_int_equal(mt_store_commit(comm, &file), MT_OK);
  free(path);
}

/* Four periods, the second without a fit; seeds 5 and 2; clusters of 4 and 3, noise. */
static void write_run(int64_t axes, int64_t matrix_width)
{
  static const char *const terms[V] = {
      "a_b", "bank",  "c,d", "\xD0\xBC\xD0\xB8\xD1\x80", "oil", "say \"no\"",
      "tin", "wheat", "zinc"};
  static const char *const periods[PERIODS] = {"1987-01", "1987-02", "1987-03",
                                               "1987-04"};
  static const int64_t zeros[PERIODS] = {0};
  static const int64_t period[N] = {0, 0, 0, 2, 2, 2, 3, 3, 3, 3, 3, 3};
  static const int64_t seed[N] = {5, 5, 2, 5, 5, 2, 5, 5, 5, 2, 2, 2};
  static const int64_t topic[N] = {0, 1, 0, 0, 1, 0, 0, 1, 2, 0, 1, 2};
  static const int32_t labels[N] = {0, -1, 0, 0, -1, 0, 1, 1, -1, 1, -1, -1};
  static const double persistence[2] = {0.5, 0.25};
  float matrix[N * (V + 1)] = {0}, embedding[N * 3] = {0};
  double chances[N], scores[N];
  int64_t top[N * TOP];
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < TOP; j++) {
      top[i * TOP + j] = (labels[i] + 1 + j) % V;
      matrix[i * matrix_width + top[i * TOP + j]] = (float)(TOP - j) / 6.0f;
    }
    embedding[i * axes] = (float)(labels[i] * 5 + i % 3);
    if (axes > 1) embedding[i * axes + 1] = (float)(i % 5);
    chances[i] = labels[i] < 0 ? 0.0 : 0.5;
    scores[i] = 0.125 * i;
  }
  const mt_column corpus[] = {
      {{"/vocabulary/terms", MT_TEXT, "terms", "1", {"term"}}, V, 0, terms},
      {{"/periods/name", MT_TEXT, "periods", "1", {"period"}}, PERIODS, 0, periods},
      {{"/periods/first_document", MT_INT64, "first", "1", {"period"}},
       PERIODS,
       0,
       zeros},
      {{"/periods/n_documents", MT_INT64, "number", "1", {"period"}},
       PERIODS,
       0,
       zeros},
      {{"/periods/skipped", MT_INT64, "skipped", "1", {"period"}}, PERIODS, 0, zeros},
      {{"/periods/n_stored", MT_INT64, "stored", "1", {"period"}}, PERIODS, 0, zeros},
      {{"/counts/indptr", MT_INT64, "no documents", "1", {"document"}}, 1, 0, zeros},
      {{"/counts/indices", MT_INT32, "no counts", "1", {"count"}}, 0, 0, zeros},
      {{"/counts/data", MT_INT32, "no counts", "1", {"count"}}, 0, 0, zeros}};
  const mt_column topics[] = {
      {{"/matrix", MT_FLOAT32, "matrix", "1", {"topic", "term"}},
       N,
       matrix_width,
       matrix},
      {{"/period", MT_INT64, "period", "1", {"topic"}}, N, 0, period},
      {{"/seed", MT_INT64, "seed", "1", {"topic"}}, N, 0, seed},
      {{"/topic", MT_INT64, "topic", "1", {"topic"}}, N, 0, topic},
      {{"/top_terms", MT_INT64, "top terms", "1", {"topic", "rank"}}, N, TOP, top}};
  const mt_column layout[] = {
      {{"/embedding", MT_FLOAT32, "positions", "1", {"topic", "axis"}},
       N,
       axes,
       embedding}};
  const mt_column clusters[] = {
      {{"/labels", MT_INT32, "labels", "1", {"topic"}}, N, 0, labels},
      {{"/probabilities", MT_FLOAT64, "chances", "1", {"topic"}}, N, 0, chances},
      {{"/outlier_scores", MT_FLOAT64, "scores", "1", {"topic"}}, N, 0, scores},
      {{"/persistence", MT_FLOAT64, "persistence", "1", {"cluster"}},
       2,
       0,
       persistence}};
  write_file("corpus.h5", sizeof corpus / sizeof *corpus, corpus);
  write_file("topics.h5", 5, topics);
  write_file("umap.h5", 1, layout);
  write_file("hdbscan.h5", 4, clusters);
}

static void begin(mt_run *run, mt_parameters *parameters)
{
  *run = (mt_run){.parameters = parameters, .out = folder};
  assert_int_equal(mt_parameters_default(parameters), MT_OK);
  assert_int_equal(mt_parameters_set(parameters, "corpus.path=/data/a_corpus.tar.gz"),
                   MT_OK);
}

static mt_status make(const mt_run *run, mt_fingerprint *made_by,
                      mt_stage_result *result)
{
  memset(made_by, 0, sizeof *made_by);
  *result =
      (mt_stage_result){.metrics = mt_test_world.rank == 0 ? json_object() : NULL};
  if (mt_test_world.rank == 0)
    assert_int_equal(mt_stage_map.fingerprint(run, made_by), MT_OK);
  mt_bcast(&mt_test_world, 0, sizeof *made_by, made_by);
  mt_status status = mt_stage_map.work(&mt_test_world, run, made_by, result);
  json_decref(result->metrics);
  return status;
}

static bool have_gnuplot(void)
{
  return system("gnuplot --version > /dev/null 2>&1") == 0;
}

static void test_stage(void **state)
{
  (void)state;
  mt_run run;
  mt_parameters parameters;
  mt_fingerprint made_by, other;
  mt_stage_result result;
  begin(&run, &parameters);
  for (int64_t axes = 1; axes <= 3; axes++) {
    write_run(axes, V);
    assert_int_equal(make(&run, &made_by, &result), MT_OK);
  }
  if (mt_test_world.rank == 0) {
    assert_int_equal(result.rows, 2);
    json_t *summary = mt_summary_load(folder);
    json_t *metas = json_object_get(summary, "meta_topics"),
           *first = json_array_get(metas, 0);
    assert_string_equal(json_string_value(json_object_get(summary, "corpus")),
                        "a_corpus");
    assert_string_equal(json_string_value(json_object_get(summary, "fingerprint")),
                        made_by.hex);
    assert_string_equal(json_string_value(json_object_get(first, "label")),
                        "bank, c,d, \xD0\xBC\xD0\xB8\xD1\x80");
    assert_string_equal(json_string_value(json_object_get(first, "kind")),
                        "persistent");
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(metas, 1), "kind")), "local");
    json_t *periods = json_object_get(first, "per_period");
    assert_int_equal(json_object_size(periods), 3); /* 1987-02 has no fit */
    assert_int_equal(json_integer_value(json_object_get(periods, "1987-01")), 2);
    json_t *seeds = json_object_get(first, "per_seed");
    assert_int_equal(json_integer_value(json_object_get(seeds, "2")), 2);
    assert_int_equal(json_integer_value(json_object_get(seeds, "5")), 2);
    assert_true(fabs(json_real_value(json_object_get(summary, "noise_share")) -
                     5.0 / 12) < 1e-8);
    json_decref(summary);
    assert_int_equal(mt_stage_map.is_done(&run, &made_by), have_gnuplot());
    assert_int_equal(mt_parameters_set(&parameters, "map.label_terms=2"), MT_OK);
    assert_int_equal(mt_stage_map.fingerprint(&run, &other), MT_OK);
    assert_false(mt_fingerprint_equal(&made_by, &other));
    assert_false(mt_stage_map.is_done(&run, &other));
  }
  mt_parameters_destroy(&parameters);
}

/* topics.h5 of another vocabulary: an error, and on all ranks. */
static void test_files_that_do_not_fit(void **state)
{
  (void)state;
  mt_run run;
  mt_parameters parameters;
  mt_fingerprint made_by;
  mt_stage_result result;
  begin(&run, &parameters);
  write_run(2, V + 1);
  mt_log_setup(1, 1, MT_LOG_ERROR); /* the error is expected: say nothing */
  mt_log_replicated(true);
  assert_int_equal(make(&run, &made_by, &result), MT_ERR_IO);
  mt_log_replicated(false);
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_WARN);
  if (mt_test_world.rank == 0) assert_false(mt_stage_map.is_done(&run, &made_by));
  mt_parameters_destroy(&parameters);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_stage, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(test_files_that_do_not_fit, make_folder,
                                    remove_folder),
};

MT_TEST_MAIN(tests)
