/* RANKS 1 2 3 4 7
 * The stages lda and matrix on a made-up corpus.h5, and the plan of who fits what. */
#include "test.h"

#include "base/memory.h"
#include "base/stop.h"
#include "deck/deck.h"
#include "lda/fits.h"
#include "lda/lda.h"
#include "lda/plan.h"
#include "stage/stage.h"
#include "store/folder.h"
#include "store/store.h"

#include <math.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the plan ------------------------------------------------------------------------ */

static mt_lda_size size_of(int64_t n_stored)
{
  return (mt_lda_size){.n_stored = n_stored,
                       .n_terms = 13713,
                       .n_components = 15,
                       .lanes = mt_lda_lanes(n_stored, 13713)};
}

/* Every fit once; ranks in range; no rank in two places at a time; the longest that any
 * rank works. */
static double check_plan(int64_t n, const mt_lda_size *sizes, int n_ranks,
                         int64_t *n_wide_out)
{
  mt_lda_place *places = calloc((size_t)n + 1, sizeof *places);
  double *busy = calloc((size_t)n_ranks, sizeof *busy), longest = 0.0;
  char *seen = calloc((size_t)n + 1, 1);
  assert_int_equal(mt_lda_plan(n, sizes, n_ranks, places, n_wide_out), MT_OK);
  for (int64_t i = 0; i < n; i++) {
    const mt_lda_place *p = &places[i];
    assert_in_range(p->fit, 0, n - 1);
    assert_int_equal(seen[p->fit]++, 0);
    assert_true(p->first_rank >= 0 && p->n_ranks >= 1);
    assert_true(p->first_rank + p->n_ranks <= n_ranks);
    assert_true((p->n_ranks > 1) == (i < *n_wide_out));
    assert_true(p->n_ranks <= sizes[p->fit].lanes);
    for (int r = p->first_rank; r < p->first_rank + p->n_ranks; r++) {
      assert_true(busy[r] <= p->start);
      busy[r] = p->end;
    }
    if (p->end > longest) longest = p->end;
  }
  free(places);
  free(busy);
  free(seen);
  return longest;
}

/* Reuters: 15 fits; March has 56 % of the counts. */
static void test_plan(void **state)
{
  (void)state;
  static const int64_t stored[] = {14225, 750430, 338345, 162200, 73124};
  mt_lda_size sizes[15];
  double total = 0.0;
  int64_t n_wide;
  for (int i = 0; i < 15; i++) {
    sizes[i] = size_of(stored[i / 3]);
    total += (double)(sizes[i].n_stored + sizes[i].n_terms) * 15.0;
  }
  for (int ranks = 1; ranks < 200; ranks++) {
    double longest = check_plan(15, sizes, ranks, &n_wide);
    if (ranks <= 2) assert_int_equal(n_wide, 0); /* even without */
    if (ranks >= 8) assert_true(n_wide >= 3);
    if (ranks <= 10) assert_true(longest < 1.35 * total / ranks);
    if (ranks <= 25) assert_true(longest < 1.7 * total / ranks);
  }
  for (int ranks = 1; ranks < 20; ranks++) { /* alike, and more of them than ranks */
    mt_lda_size alike[100];
    for (int i = 0; i < 100; i++) alike[i] = size_of(100000);
    double longest = check_plan(100, alike, ranks, &n_wide);
    assert_int_equal(n_wide, 0);
    assert_true(longest < 113713 * 15.0 * ((99 + ranks) / ranks) + 1);
  }
  mt_lda_size one = size_of(2000000), few[3] = {one, one, one};
  assert_true(check_plan(1, &one, 8, &n_wide) < 2013713 * 15.0 / 5);
  assert_int_equal(n_wide, 1);
  assert_true(check_plan(3, few, 4, &n_wide) < 2013713 * 15.0);
  check_plan(0, NULL, 3, &n_wide);
  assert_int_equal(n_wide, 0);
}

/* ---- a corpus ------------------------------------------------------------------------ */

enum { PERIODS = 4, TERMS = 60, LONGEST = 20, MOST = 30 };
static const int64_t documents[PERIODS] = {30, 9, 25, 12}; /* the second is too small */
static char folder[200];

static int64_t draw(uint64_t index, uint32_t step, int64_t n)
{
  return (int64_t)(mt_random_unit(12, MT_STREAM_TEST, index, step) * (double)n);
}

typedef struct column {
  mt_dataset dataset;
  int64_t count;
  const void *data;
} column;

static void write_corpus(void)
{
  static char names[TERMS][16];
  static const char *terms[TERMS];
  static const char *const periods[PERIODS] = {"1987-01", "1987-02", "1987-03",
                                               "1987-04"};
  int64_t n = 0, total = 0, indptr[PERIODS * MOST + 1] = {0}, first[PERIODS],
          zeros[PERIODS] = {0}, stored[PERIODS];
  int32_t *indices = malloc(PERIODS * MOST * LONGEST * 4);
  int32_t *data = malloc(PERIODS * MOST * LONGEST * 4);
  for (int i = 0; i < TERMS; i++) {
    snprintf(names[i], sizeof names[i], "term%02d", i);
    terms[i] = names[i];
  }
  for (int p = 0; p < PERIODS; p++) {
    first[p] = total;
    stored[p] = n;
    for (int64_t d = 0; d < documents[p]; d++, total++) {
      int64_t w = draw((uint64_t)total, 1, 8), count = 0;
      if (p == 3) w = TERMS; /* the last period has documents, but not one count */
      for (; w < TERMS && count < LONGEST;
           w += 1 + draw((uint64_t)n, 2, 6), n++, count++) {
        indices[n] = (int32_t)w;
        data[n] = 1 + (int32_t)draw((uint64_t)n, 3, 5);
      }
      indptr[total + 1] = n;
    }
    stored[p] = n - stored[p];
  }
  const column columns[] = {
      {{"/vocabulary/terms", MT_TEXT, "terms", "1", {"term"}}, TERMS, terms},
      {{"/periods/name", MT_TEXT, "names", "1", {"period"}}, PERIODS, periods},
      {{"/periods/first_document", MT_INT64, "first", "1", {"period"}}, PERIODS, first},
      {{"/periods/n_documents", MT_INT64, "n", "1", {"period"}}, PERIODS, documents},
      {{"/periods/skipped", MT_INT64, "skipped", "1", {"period"}}, PERIODS, zeros},
      {{"/periods/n_stored", MT_INT64, "stored", "1", {"period"}}, PERIODS, stored},
      {{"/counts/indptr", MT_INT64, "indptr", "1", {"document"}}, total + 1, indptr},
      {{"/counts/indices", MT_INT32, "indices", "1", {"count"}}, n, indices},
      {{"/counts/data", MT_INT32, "data", "1", {"count"}}, n, data}};
  mt_comm self = mt_comm_self();
  mt_fingerprint made_by = {"0123456789abcdef0123456789abcdef"};
  mt_file *file = NULL;
  char *path = mt_path_join(folder, "corpus.h5");
  assert_int_equal(mt_store_create(&self, path, &made_by, &file), MT_OK);
  for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
    assert_int_equal(mt_store_write(&self, file, &columns[i].dataset, columns[i].count,
                                    0, columns[i].data),
                     MT_OK);
  assert_int_equal(mt_store_commit(&self, &file), MT_OK);
  free(path);
  free(indices);
  free(data);
}

static mt_parameters parameters;
static mt_run run;

static void set(const char *assignment)
{
  assert_int_equal(mt_parameters_set(&parameters, assignment), MT_OK);
}

static int begin(void **state)
{
  (void)state;
  const char *temporary = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/metatopics-ensemble-XXXXXX",
           temporary != NULL && strlen(temporary) < 100 ? temporary : "/tmp");
  if (mt_test_world.rank == 0 && mkdtemp(folder) == NULL) return -1;
  mt_bcast(&mt_test_world, 0, sizeof folder, folder);
  if (mt_test_world.rank == 0) write_corpus();
  run = (mt_run){.parameters = &parameters, .out = folder};
  if (mt_parameters_default(&parameters) != MT_OK) return -1;
  set("lda.seeds=4 0 2");
  set("lda.min_docs=10");
  set("lda.n_components=3");
  set("lda.top_terms=4");
  mt_barrier(&mt_test_world);
  return 0;
}

static int end(void **state)
{
  (void)state;
  char command[300];
  mt_barrier(&mt_test_world);
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  mt_parameters_destroy(&parameters);
  return mt_test_world.rank == 0 && system(command) != 0 ? -1 : 0;
}

static mt_fingerprint print_of(const mt_stage *stage)
{
  mt_fingerprint made_by = {""};
  if (mt_test_world.rank == 0)
    assert_int_equal(stage->fingerprint(&run, &made_by), MT_OK);
  mt_bcast(&mt_test_world, 0, sizeof made_by, &made_by);
  return made_by;
}

/* *made_out: how many fits were made now */
static mt_status make(const mt_stage *stage, int64_t *made_out)
{
  mt_fingerprint made_by = print_of(stage);
  mt_stage_result result = {.metrics = mt_test_world.rank == 0 ? json_object() : NULL};
  mt_status status = stage->work(&mt_test_world, &run, &made_by, &result);
  if (mt_test_world.rank == 0 && made_out != NULL)
    *made_out = json_integer_value(json_object_get(result.metrics, "fits_made"));
  json_decref(result.metrics);
  return status;
}

static bool is_there(const char *name)
{
  char path[300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return access(path, R_OK) == 0;
}

/* ---- the stages ---------------------------------------------------------------------- */

static void test_fits(void **state)
{
  (void)state;
  int64_t made = 0;
  assert_int_equal(make(&mt_stage_lda, &made), MT_OK);
  if (mt_test_world.rank == 0) {
    mt_fingerprint made_by = print_of(&mt_stage_lda);
    assert_int_equal(made, 9);
    assert_true(mt_stage_lda.is_done(&run, &made_by));
    assert_true(is_there("lda/1987-01/seed-4.h5") && is_there("lda/1987-04/seed-0.h5"));
    assert_false(is_there("lda/1987-02"));
  } else {
    print_of(&mt_stage_lda);
  }
}

static void remove_fit(const char *name)
{
  char path[300];
  snprintf(path, sizeof path, "%s/lda/%s", folder, name);
  if (mt_test_world.rank == 0) assert_int_equal(remove(path), 0);
  mt_barrier(&mt_test_world);
}

static void test_only_what_is_missing(void **state)
{
  (void)state;
  int64_t made = -1;
  assert_int_equal(make(&mt_stage_lda, &made), MT_OK);
  if (mt_test_world.rank == 0) assert_int_equal(made, 0);
  remove_fit("1987-03/seed-2.h5");
  assert_int_equal(make(&mt_stage_lda, &made), MT_OK);
  if (mt_test_world.rank == 0) assert_int_equal(made, 1);
  set("lda.seeds=4 0 2 9"); /* three more fits; those that are there stay */
  set("lda.batch_size=7");  /* of no matter to batch learning */
  assert_int_equal(make(&mt_stage_lda, &made), MT_OK);
  if (mt_test_world.rank == 0) assert_int_equal(made, 3);
  set("lda.max_iter=4"); /* all again */
  assert_int_equal(make(&mt_stage_lda, &made), MT_OK);
  if (mt_test_world.rank == 0) assert_int_equal(made, 12);
  run.force = true;
  assert_int_equal(make(&mt_stage_lda, &made), MT_OK);
  run.force = false;
  if (mt_test_world.rank == 0) assert_int_equal(made, 12);
}

/* Row i of the matrix is topic i % K of fit i / K, as a fit of its own gives it. */
static void check_matrix(mt_file *topics)
{
  mt_fits fits = {0};
  mt_counts counts;
  mt_lda_model model = {0};
  mt_comm self = mt_comm_self();
  int64_t rows, width, K = parameters.lda.n_components, period[36], seed[36],
                       top[36 * 4];
  float matrix[36 * TERMS], want[36 * TERMS];
  assert_int_equal(mt_store_shape(topics, "/matrix", &rows, &width), MT_OK);
  assert_int_equal(rows, 36);
  assert_int_equal(width, TERMS);
  assert_int_equal(mt_store_read(topics, "/matrix", MT_FLOAT32, 0, rows, matrix),
                   MT_OK);
  assert_int_equal(mt_store_read(topics, "/period", MT_INT64, 0, rows, period), MT_OK);
  assert_int_equal(mt_store_read(topics, "/seed", MT_INT64, 0, rows, seed), MT_OK);
  assert_int_equal(mt_store_read(topics, "/top_terms", MT_INT64, 0, rows, top), MT_OK);
  assert_int_equal(mt_fits_list(&run, &fits), MT_OK);
  for (int64_t i = 0; i < fits.n; i++) {
    const mt_fit *fit = &fits.fits[i];
    const mt_period *p = &fits.periods[fit->period];
    assert_int_equal(period[i * K], fit->period);
    assert_int_equal(seed[i * K], fit->seed);
    assert_int_equal(
        mt_corpus_counts(fits.corpus, p->first_document, p->n_documents, &counts),
        MT_OK);
    assert_int_equal(
        mt_lda_fit(&self, &parameters.lda, fit->seed, &counts, NULL, &model), MT_OK);
    mt_lda_normalize(&model, want + i * K * TERMS);
    mt_lda_model_destroy(&model);
    mt_counts_destroy(&counts);
  }
  assert_memory_equal(matrix, want, sizeof want);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < 4;
         j++) { /* in order, and no other term is above the last */
      const float *row = matrix + i * TERMS;
      int64_t w = top[i * 4 + j], above = 0;
      for (int64_t v = 0; v < TERMS; v++)
        above += row[v] > row[w] || (row[v] == row[w] && v < w);
      assert_int_equal(above, j);
    }
  mt_fits_close(&fits);
}

static void test_matrix(void **state)
{
  (void)state;
  mt_fingerprint before = print_of(&mt_stage_matrix);
  assert_int_equal(make(&mt_stage_matrix, NULL), MT_OK);
  char *path = mt_path_join(folder, "topics.h5");
  mt_fingerprint there = mt_store_fingerprint(path);
  assert_true(mt_fingerprint_equal(&there, &before));
  if (mt_test_world.rank == 0) {
    mt_file *topics = NULL;
    assert_int_equal(mt_store_open(path, &topics), MT_OK);
    check_matrix(topics);
    mt_store_close(topics);
  }
  free(path);
}

static void test_missing_fit(void **state)
{
  (void)state;
  remove_fit("1987-01/seed-9.h5");
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_SILENT);
  assert_int_equal(make(&mt_stage_matrix, NULL), MT_ERR_INPUT);
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_WARN);
}

static void test_no_fit(void **state)
{
  (void)state;
  int64_t made = -1;
  set("lda.min_docs=1000");
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_ERROR);
  assert_int_equal(make(&mt_stage_lda, &made), MT_OK);
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_WARN);
  assert_int_equal(make(&mt_stage_matrix, NULL), MT_OK);
  if (mt_test_world.rank == 0) assert_int_equal(made, 0);
  set("lda.min_docs=10");
}

/* The last rank is asked to stop before it begins: all ranks leave, and nothing is half
 * made. (This is the last test: the request stays.) */
static void test_stop(void **state)
{
  (void)state;
  set("lda.max_iter=3");
  mt_stop_install();
  if (mt_test_world.rank == mt_test_world.size - 1) raise(SIGTERM);
  assert_int_equal(make(&mt_stage_lda, NULL), MT_STOPPED);
  mt_fingerprint made_by = print_of(&mt_stage_lda);
  if (mt_test_world.rank == 0) assert_false(mt_stage_lda.is_done(&run, &made_by));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_plan),
    cmocka_unit_test(test_fits),
    cmocka_unit_test(test_only_what_is_missing),
    cmocka_unit_test(test_matrix),
    cmocka_unit_test(test_missing_fit),
    cmocka_unit_test(test_no_fit),
    cmocka_unit_test(test_stop),
};

MT_TEST_MAIN_AROUND(tests, begin, end)
