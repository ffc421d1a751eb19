/* RANKS 2
 * The 15 fits of Reuters-21578 (REUTERS_TARBALL): each one's perplexity against the span of
 * scikit-learn's over three seeds, rows that sum to 1, and every fit one file. */
#include "test.h"

#include "deck/deck.h"
#include "lda/fits.h"
#include "stage/stage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CountVectorizer and LatentDirichletAllocation with the deck's defaults, seeds 0, 1, 2 */
static const struct {
  const char *period;
  double lowest, highest;
} spans[] = {{"1987-02", 2717, 2889},
             {"1987-03", 1420, 1458},
             {"1987-04", 1625, 1701},
             {"1987-06", 1949, 2005},
             {"1987-10", 1336, 1403}};

static char folder[200];
static mt_parameters parameters;

static void make(const mt_stage *stage, const mt_run *run)
{
  mt_fingerprint made_by = {""};
  mt_stage_result result = {.metrics = mt_test_world.rank == 0 ? json_object() : NULL};
  if (mt_test_world.rank == 0)
    assert_int_equal(stage->fingerprint(run, &made_by), MT_OK);
  mt_bcast(&mt_test_world, 0, sizeof made_by, &made_by);
  assert_int_equal(stage->work(&mt_test_world, run, &made_by, &result), MT_OK);
  json_decref(result.metrics);
}

static void check_fit(const mt_fits *fits, const mt_fit *fit)
{
  const char *period = fits->periods[fit->period].name;
  mt_file *file = NULL;
  double perplexity = 0.0;
  float *rows = malloc((size_t)(15 * fits->n_terms) * sizeof *rows);
  assert_int_equal(mt_store_open(fit->path, &file), MT_OK);
  assert_int_equal(mt_store_get_f64(file, "perplexity", &perplexity), MT_OK);
  assert_int_equal(mt_store_read(file, "/components", MT_FLOAT32, 0, 15, rows), MT_OK);
  mt_store_close(file);
  for (int64_t k = 0; k < 15; k++) {
    double sum = 0.0;
    for (int64_t w = 0; w < fits->n_terms; w++) {
      assert_true(rows[k * fits->n_terms + w] >= 0.0f);
      sum += rows[k * fits->n_terms + w];
    }
    assert_true(fabs(sum - 1.0) < 1e-5);
  }
  free(rows);
  for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++)
    if (strcmp(spans[i].period, period) == 0) {
      if (perplexity < 0.98 * spans[i].lowest || perplexity > 1.02 * spans[i].highest)
        fail_msg("%s, seed %lld: perplexity %.1f, not within 2 %% of %.0f to %.0f",
                 period, (long long)fit->seed, perplexity, spans[i].lowest,
                 spans[i].highest);
      return;
    }
  fail_msg("a fit of %s", period);
}

static void test_perplexities(void **state)
{
  (void)state;
  const char *tarball = getenv("REUTERS_TARBALL");
  char assignment[1000];
  if (tarball == NULL || tarball[0] == '\0') skip();
  snprintf(assignment, sizeof assignment, "corpus.path=%s", tarball);
  assert_int_equal(mt_parameters_set(&parameters, assignment), MT_OK);
  mt_run run = {.parameters = &parameters, .out = folder};
  make(&mt_stage_corpus, &run);
  make(&mt_stage_lda, &run);
  if (mt_test_world.rank != 0) return;
  mt_fits fits = {0};
  assert_int_equal(mt_fits_list(&run, &fits), MT_OK);
  assert_int_equal(fits.n, 15);
  for (int64_t i = 0; i < fits.n; i++) check_fit(&fits, &fits.fits[i]);
  mt_fits_close(&fits);
}

static int begin(void **state)
{
  (void)state;
  const char *temporary = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/metatopics-reuters-XXXXXX",
           temporary != NULL && strlen(temporary) < 100 ? temporary : "/tmp");
  if (mt_test_world.rank == 0 && mkdtemp(folder) == NULL) return -1;
  mt_bcast(&mt_test_world, 0, sizeof folder, folder);
  return mt_parameters_default(&parameters) == MT_OK ? 0 : -1;
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

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_perplexities)};

MT_TEST_MAIN_AROUND(tests, begin, end)
