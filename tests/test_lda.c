/* RANKS 1 2 3 4 7
 * LDA fits: against scikit-learn's (tools/reference/lda.py), the float fit against the
 * double reference, the same bits for any ranks and threads, and hostile corpora. */
#include "test.h"

#include "base/hash.h"
#include "base/memory.h"
#include "lda/bound.h"
#include "lda/kernel.h"
#include "lda/lda.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kernels[] = {"avx512", "avx2", "portable"};
enum { N_KERNELS = 3 };

static const mt_lda_options usual = {.n_components = 15,
                                     .max_iter = 5,
                                     .max_doc_update_iter = 100,
                                     .mean_change_tol = 1e-3,
                                     .batch_size = 128,
                                     .learning_decay = 0.7,
                                     .learning_offset = 10.0,
                                     .perp_tol = 0.1,
                                     .evaluate_every = -1};

/* ---- the kernels' arithmetic ---- */

enum { GRID = 16 * 4096 };
static float grid[GRID] __attribute__((aligned(64)));
static float values[N_KERNELS][GRID] __attribute__((aligned(64)));

static double exact_psi(double x) /* absolute error 1e-15 and less */
{
  double result = 0.0;
  for (; x < 20.0; x += 1.0) result -= 1.0 / x;
  double q = 1.0 / (x * x);
  return result + log(x) - 0.5 / x -
         q * (1.0 / 12 - q * (1.0 / 120 - q * (1.0 / 252 - q * (1.0 / 240 - q / 132))));
}

static void test_exp_digamma(void **state)
{
  (void)state;
  for (int i = 0; i < GRID; i++) grid[i] = (float)exp(-5.0 + 30.0 * i / GRID);
  for (int m = 0; m < N_KERNELS; m++) {
    const mt_lda_kernel *kernel = mt_lda_kernel_find(kernels[m]);
    if (kernel == NULL) continue;
    kernel->exp_digamma(GRID, grid, values[m]);
    for (int i = 0; i < GRID; i++) {
      double want = exact_psi(grid[i]), got = values[m][i];
      if (want < -85.0) { /* flushed to zero, if not all of it yet */
        assert_true(got >= 0.0 && got < 2e-37);
        continue;
      }
      /* the rounding of 1 / x weighs 1 / x in the exponent */
      double allowed = 4e-7 + 3e-7 * (want < 0 ? -want : 0.0);
      assert_true(fabs(got / exp(want) - 1.0) < allowed);
    }
  }
}

static void test_log(void **state)
{
  (void)state;
  for (int i = 0; i < GRID; i++) grid[i] = (float)exp(-80.0 + 160.0 * i / GRID);
  for (int m = 0; m < N_KERNELS; m++) {
    const mt_lda_kernel *kernel = mt_lda_kernel_find(kernels[m]);
    if (kernel == NULL) continue;
    kernel->log(GRID, grid, values[m]);
    for (int i = 0; i < GRID; i++) {
      double want = log((double)grid[i]);
      assert_true(fabs(values[m][i] - want) < 1.2e-7 + 1.2e-7 * fabs(want));
    }
  }
}

static void test_psi(void **state)
{
  (void)state;
  for (int i = 0; i < GRID; i++) {
    double x = exp(-9.0 + 30.0 * i / GRID);
    assert_true(fabs(mt_lda_psi(x) - exact_psi(x)) < 4e-9);
  }
}

static void test_gamma(void **state)
{
  (void)state;
  enum { N = 20011 };
  for (int m = 0; m < N_KERNELS; m++) {
    const mt_lda_kernel *kernel = mt_lda_kernel_find(kernels[m]);
    if (kernel == NULL) continue;
    kernel->gamma(7, MT_STREAM_TEST, 5000000000, 3, N, grid);
    double sum = 0.0, squares = 0.0;
    for (int i = 0; i < N; i++) {
      double want =
          mt_random_gamma(7, MT_STREAM_TEST, 5000000000 + (uint64_t)i, 3, 100.0, 0.01);
      assert_true(fabs(grid[i] / want - 1.0) < 1e-5);
      sum += grid[i];
      squares += (double)grid[i] * grid[i];
    }
    assert_true(fabs(sum / N - 1.0) < 4 * 0.1 / sqrt(N));
    assert_true(fabs(squares / N - sum / N * sum / N - 0.01) < 0.0005);
  }
}

/* ---- scikit-learn ---- */

typedef struct fixture {
  int64_t integers[9]; /* documents, terms, topics, max_iter, online, batch_size, ... */
  double reals[7];
  mt_counts counts;
  mt_lda_options options;
  double *start, *documents, *components;
} fixture;

static void *read_array(FILE *file, int64_t n, size_t size)
{
  void *array = malloc((size_t)n * size + 1);
  assert_non_null(array);
  assert_int_equal(fread(array, size, (size_t)n, file), n);
  return array;
}

static void open_fixture(const char *name, fixture *f)
{
  char path[100];
  snprintf(path, sizeof path, "tests/data/lda-%s.bin", name);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fread(f->integers, 8, 9, file), 9);
  assert_int_equal(fread(f->reals, 8, 7, file), 7);
  int64_t D = f->integers[0], V = f->integers[1], K = f->integers[2],
          n = f->integers[8];
  f->counts = (mt_counts){.n_documents = D, .n_terms = V};
  f->counts.indptr = read_array(file, D + 1, 8);
  f->counts.indices = read_array(file, n, 4);
  f->counts.data = read_array(file, n, 4);
  f->start = read_array(file, K * V, 8);
  f->documents = read_array(file, f->integers[3] * D * K, 8);
  f->components = read_array(file, K * V, 8);
  fclose(file);
  f->options = (mt_lda_options){.n_components = K,
                                .max_iter = f->integers[3],
                                .learning_method = f->integers[4] ? MT_LEARNING_ONLINE
                                                                  : MT_LEARNING_BATCH,
                                .batch_size = f->integers[5],
                                .evaluate_every = f->integers[6],
                                .max_doc_update_iter = 100,
                                .doc_topic_prior = f->reals[0],
                                .topic_word_prior = f->reals[1],
                                .mean_change_tol = f->reals[2],
                                .perp_tol = f->reals[3],
                                .learning_decay = f->reals[4],
                                .learning_offset = f->reals[5]};
}

static void free_counts(mt_counts *counts)
{
  free(counts->indptr);
  free(counts->indices);
  free(counts->data);
}

static void close_fixture(fixture *f)
{
  free_counts(&f->counts);
  free(f->start);
  free(f->documents);
  free(f->components);
}

static void start_of(void *context, int64_t pass, int64_t document, double *gamma_out)
{
  const fixture *f = context;
  int64_t K = f->integers[2], D = f->integers[0];
  memcpy(gamma_out, f->documents + (pass * D + document) * K, (size_t)K * 8);
}

static const char *const fixtures[] = {"batch", "online", "wide", "stop"};

static void check_fixture(const fixture *f, const mt_lda_model *model, double relative,
                          double perplexity)
{
  int64_t n = f->integers[1] * f->integers[2];
  assert_int_equal(model->n_iter, f->integers[7]);
  MT_TEST_CLOSE(model->components, f->components, n, relative, 0.0);
  MT_TEST_CLOSE(&model->perplexity, &f->reals[6], 1, perplexity, 0.0);
}

static void test_reference_is_sklearn(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof fixtures / sizeof fixtures[0]; i++) {
    fixture f;
    mt_lda_model model = {0};
    open_fixture(fixtures[i], &f);
    mt_lda_extras extras = {
        .components = f.start, .document = start_of, .document_context = &f};
    assert_int_equal(mt_lda_fit_ref(&f.options, 0, &f.counts, &extras, &model), MT_OK);
    check_fixture(&f, &model, 1e-6, 1e-9);
    mt_lda_model_destroy(&model);
    close_fixture(&f);
  }
}

static void test_fit_is_sklearn(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof fixtures / sizeof fixtures[0]; i++)
    for (int m = 0; m < N_KERNELS; m++) {
      fixture f;
      mt_lda_model model = {0};
      if (mt_lda_kernel_find(kernels[m]) == NULL) continue;
      open_fixture(fixtures[i], &f);
      mt_lda_extras extras = {.components = f.start,
                              .document = start_of,
                              .document_context = &f,
                              .kernel = kernels[m]};
      assert_int_equal(
          mt_lda_fit(&mt_test_world, &f.options, 0, &f.counts, &extras, &model), MT_OK);
      check_fixture(&f, &model, 1e-4, 1e-6);
      mt_lda_model_destroy(&model);
      close_fixture(&f);
    }
}

/* ---- made-up corpora ---- */

typedef struct shape {
  int64_t documents, terms, topics,
      longest; /* distinct terms of a document: 0 to longest */
} shape;

static int64_t draw(uint64_t index, uint32_t step, int64_t n)
{
  return (int64_t)(mt_random_unit(11, MT_STREAM_TEST, index, step) * (double)n);
}

/* Documents of one planted topic each: its terms are those equal to it modulo the topics,
 * and one in five is any other. */
static mt_counts make_counts(shape s)
{
  mt_counts c = {.n_documents = s.documents, .n_terms = s.terms};
  int64_t n = 0;
  char *used = malloc((size_t)s.terms);
  c.indptr = calloc((size_t)s.documents + 1, 8);
  c.indices = malloc((size_t)(s.documents * s.longest) * 4 + 4);
  c.data = malloc((size_t)(s.documents * s.longest) * 4 + 4);
  for (int64_t d = 0; d < s.documents; d++) {
    uint64_t at = (uint64_t)(d * (s.longest + 1));
    int64_t words = draw(at, 1, s.longest + 1), topic = d % s.topics;
    memset(used, 0, (size_t)s.terms);
    for (int64_t i = 0; i < words; i++) {
      int64_t term = draw(at + (uint64_t)i, 2, s.terms);
      if (draw(at + (uint64_t)i, 3, 5) > 0) term = term / s.topics * s.topics + topic;
      if (term < s.terms) used[term] = 1;
    }
    for (int64_t w = 0; w < s.terms; w++) {
      if (!used[w]) continue;
      c.indices[n] = (int32_t)w;
      c.data[n] = 1 + (int32_t)draw((uint64_t)n, 4, 4);
      n++;
    }
    c.indptr[d + 1] = n;
  }
  free(used);
  return c;
}

static void check_rows(const mt_lda_model *model)
{
  int64_t K = model->n_components, V = model->n_terms;
  float *rows = malloc((size_t)(K * V) * sizeof *rows);
  mt_lda_normalize(model, rows);
  for (int64_t k = 0; k < K; k++) {
    double sum = 0.0;
    for (int64_t w = 0; w < V; w++) {
      assert_true(rows[k * V + w] >= 0.0f && rows[k * V + w] <= 1.0f);
      sum += rows[k * V + w];
    }
    assert_true(fabs(sum - 1.0) < 1e-6);
  }
  assert_true(isfinite(model->bound) && isfinite(model->perplexity));
  free(rows);
}

static void compare(shape s, const mt_lda_options *options, double relative)
{
  mt_counts c = make_counts(s);
  mt_lda_model fast = {0}, ref = {0};
  assert_int_equal(mt_lda_fit_ref(options, 3, &c, NULL, &ref), MT_OK);
  for (int m = 0; m < N_KERNELS; m++) {
    mt_lda_extras extras = {.kernel = kernels[m]};
    if (mt_lda_kernel_find(kernels[m]) == NULL) continue;
    assert_int_equal(mt_lda_fit(&mt_test_world, options, 3, &c, &extras, &fast), MT_OK);
    MT_TEST_CLOSE(fast.components, ref.components, s.terms * options->n_components,
                  relative, 0.0);
    MT_TEST_CLOSE(&fast.perplexity, &ref.perplexity, 1, 1e-5, 0.0);
    assert_int_equal(fast.n_iter, ref.n_iter);
    check_rows(&fast);
    mt_lda_model_destroy(&fast);
  }
  mt_lda_model_destroy(&ref);
  free_counts(&c);
}

static void test_fit_is_reference(void **state)
{
  (void)state;
  static const int64_t topics[] = {1, 2, 3, 15, 16, 17, 33, 100};
  for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++)
    for (int online = 0; online < 2; online++) {
      mt_lda_options o = usual;
      o.n_components = topics[i];
      o.max_iter = 2;
      o.learning_method = online ? MT_LEARNING_ONLINE : MT_LEARNING_BATCH;
      o.batch_size = 13;
      compare((shape){31 + (int64_t)i, 70 + 17 * (int64_t)i, 3, 40}, &o, 1e-3);
    }
}

static void test_hostile(void **state)
{
  (void)state;
  mt_lda_options o = usual;
  o.max_iter = 3;
  compare((shape){40, 50, 2, 1}, &o, 1e-3);   /* half of the documents are empty */
  compare((shape){5, 300, 1, 250}, &o, 1e-3); /* more topics than documents */
  compare((shape){12, 1, 1, 1}, &o, 1e-3);    /* one term */
  compare((shape){9, 20, 1, 0}, &o, 1e-3);    /* not one count */
  compare((shape){0, 20, 1, 0}, &o, 1e-3);    /* not one document */
  o.doc_topic_prior = 1e-4; /* exp(psi(15 priors)) of an empty document is 0 in float */
  compare((shape){40, 50, 2, 1}, &o, 1e-3);
  o.doc_topic_prior = usual.doc_topic_prior;
  o.n_components = 1;
  compare((shape){20, 30, 2, 20}, &o, 1e-3);
  o.n_components = 200; /* exp(psi(1 / 200)) is below the smallest float */
  compare((shape){20, 30, 2, 20}, &o, 1e-3);
  o = usual;
  o.max_doc_update_iter = 0;
  compare((shape){20, 30, 2, 20}, &o, 1e-3);
  o.max_iter = 0;
  compare((shape){20, 30, 2, 20}, &o, 1e-3);
}

static void test_identical_documents(void **state)
{
  (void)state;
  mt_counts one = make_counts((shape){2, 40, 1, 30}),
            c = {.n_documents = 60, .n_terms = 40};
  int64_t n = one.indptr[2] - one.indptr[1];
  c.indptr = calloc(61, 8);
  c.indices = malloc((size_t)n * 60 * 4 + 4);
  c.data = malloc((size_t)n * 60 * 4 + 4);
  for (int64_t d = 0; d < 60; d++) {
    memcpy(c.indices + d * n, one.indices + one.indptr[1], (size_t)n * 4);
    memcpy(c.data + d * n, one.data + one.indptr[1], (size_t)n * 4);
    c.indptr[d + 1] = (d + 1) * n;
  }
  mt_lda_model model = {0};
  assert_int_equal(mt_lda_fit(&mt_test_world, &usual, 1, &c, NULL, &model), MT_OK);
  check_rows(&model);
  mt_lda_model_destroy(&model);
  free_counts(&one);
  free_counts(&c);
}

static int hush(void **state)
{
  (void)state;
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_SILENT);
  return 0;
}

static int speak(void **state)
{
  (void)state;
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_WARN);
  return 0;
}

static void test_wrong_sizes(void **state)
{
  (void)state;
  mt_counts c = make_counts((shape){3, 5, 1, 3});
  mt_lda_model model = {0};
  mt_lda_options o = usual;
  mt_lda_extras extras = {.kernel = "abacus"};
  assert_int_equal(mt_lda_fit(&mt_test_world, &o, 0, &c, &extras, &model), MT_ERR_ARG);
  o.n_components = 0;
  assert_int_equal(mt_lda_fit(&mt_test_world, &o, 0, &c, NULL, &model), MT_ERR_ARG);
  assert_int_equal(mt_lda_fit_ref(&o, 0, &c, NULL, &model), MT_ERR_ARG);
  assert_null(model.components);
  free_counts(&c);
}

/* ---- ranks and threads ---- */

static uint64_t fingerprint_of(const mt_comm *comm, const mt_counts *c,
                               const mt_lda_options *o, int threads, const char *kernel)
{
  mt_lda_model model = {0};
  mt_lda_extras extras = {.kernel = kernel};
  omp_set_num_threads(threads);
  assert_int_equal(mt_lda_fit(comm, o, 4294967295, c, &extras, &model), MT_OK);
  uint64_t key =
      mt_hash_key(model.components, (size_t)(model.n_components * model.n_terms) * 8);
  key ^= mt_hash_key(&model.bound, sizeof model.bound) + (uint64_t)model.updates;
  mt_lda_model_destroy(&model);
  omp_set_num_threads(1);
  return key;
}

static void test_same_bits(void **state)
{
  (void)state;
  mt_counts c = make_counts((shape){2500, 700, 5, 220});
  mt_comm self = mt_comm_self();
  for (int online = 0; online < 2; online++) {
    mt_lda_options o = usual;
    o.n_components = 9;
    o.max_iter = 2;
    o.max_doc_update_iter = 10;
    o.batch_size = 1300; /* two lanes, then one */
    o.learning_method = online ? MT_LEARNING_ONLINE : MT_LEARNING_BATCH;
    uint64_t alone = fingerprint_of(&self, &c, &o, 1, NULL);
    assert_true(mt_lda_lanes(c.indptr[c.n_documents], c.n_terms) >= 3);
    assert_true(fingerprint_of(&mt_test_world, &c, &o, 1, NULL) == alone);
    assert_true(fingerprint_of(&mt_test_world, &c, &o, 2, NULL) == alone);
    assert_true(fingerprint_of(&self, &c, &o, 2, NULL) == alone);
    int uneven = 1 + mt_test_world.rank % 2; /* ranks with more cores than others */
    assert_true(fingerprint_of(&mt_test_world, &c, &o, uneven, NULL) == alone);
  }
  free_counts(&c);
}

static void test_kernels_same_bits(void **state)
{
  (void)state;
  if (mt_lda_kernel_find("avx512") == NULL) skip(); /* nothing to compare */
  static const int64_t topics[] = {1,  2,  3,  4,  5,  7,  8,  11,
                                   14, 15, 16, 17, 31, 40, 100};
  mt_counts c = make_counts((shape){200, 300, 4, 90});
  mt_comm self = mt_comm_self();
  for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++) {
    mt_lda_options o = usual;
    o.n_components = topics[i];
    o.max_iter = 2;
    assert_true(fingerprint_of(&self, &c, &o, 1, "avx512") ==
                fingerprint_of(&self, &c, &o, 1, "avx2"));
  }
  free_counts(&c);
}

static void test_lanes(void **state)
{
  (void)state;
  mt_counts c = make_counts((shape){500, 100, 3, 60});
  for (int64_t lanes = 1; lanes < 40; lanes++)
    for (int64_t first = 0; first < 500; first += 111) {
      int64_t from = first, fair = (c.indptr[500] - c.indptr[first]) / lanes;
      for (int64_t l = 0; l < lanes; l++) {
        int64_t start = mt_lda_lane_first(c.indptr, first, 500, lanes, l);
        int64_t end = mt_lda_lane_first(c.indptr, first, 500, lanes, l + 1);
        assert_int_equal(start, from);
        assert_true(end >= start && c.indptr[end] - c.indptr[start] <= fair + 61);
        from = end;
      }
      assert_int_equal(from, 500);
    }
  assert_int_equal(mt_lda_lanes(0, 1), 1);
  assert_int_equal(mt_lda_lanes(750430, 13713), 11);
  free_counts(&c);
}

static bool stop_later(void *context)
{
  return ++*(int *)context > 3;
}

static void test_poll_drops_the_fit(void **state)
{
  (void)state;
  mt_counts c = make_counts((shape){2000, 700, 5, 220});
  mt_lda_model model = {0};
  int calls = mt_test_world.rank == 0 ? 0 : -1000000; /* one rank is asked to stop */
  mt_lda_extras extras = {.poll = stop_later, .poll_context = &calls};
  assert_int_equal(mt_lda_fit(&mt_test_world, &usual, 0, &c, &extras, &model),
                   MT_STOPPED);
  assert_null(model.components);
  free_counts(&c);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_exp_digamma),
    cmocka_unit_test(test_log),
    cmocka_unit_test(test_psi),
    cmocka_unit_test(test_gamma),
    cmocka_unit_test(test_reference_is_sklearn),
    cmocka_unit_test(test_fit_is_sklearn),
    cmocka_unit_test(test_fit_is_reference),
    cmocka_unit_test(test_hostile),
    cmocka_unit_test(test_identical_documents),
    cmocka_unit_test_setup_teardown(test_wrong_sizes, hush, speak),
    cmocka_unit_test(test_same_bits),
    cmocka_unit_test(test_kernels_same_bits),
    cmocka_unit_test(test_lanes),
    cmocka_unit_test(test_poll_drops_the_fit),
};

MT_TEST_MAIN(tests)
