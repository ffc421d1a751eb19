/* RANKS 20
 * One fit over 20 ranks gives the bits of one rank's, with a lane of documents each. */
#include "test.h"

#include "base/hash.h"
#include "base/random.h"
#include "deck/deck.h"
#include "lda/lda.h"

#include <omp.h>
#include <stdlib.h>

enum { DOCUMENTS = 13500, TERMS = 500, EACH = 100 };

/* EACH of the terms in each document, the distances between them drawn. */
static void make_counts(mt_counts *c)
{
  c->n_documents = DOCUMENTS;
  c->n_terms = TERMS;
  c->indptr = calloc(DOCUMENTS + 1, sizeof *c->indptr);
  c->indices = malloc(DOCUMENTS * EACH * sizeof *c->indices);
  c->data = malloc(DOCUMENTS * EACH * sizeof *c->data);
  for (int64_t i = 0; i < DOCUMENTS * EACH; i++) {
    uint32_t w[4];
    mt_random_words(5, MT_STREAM_TEST, (uint64_t)i, 0, 0, w);
    int32_t before = i % EACH == 0 ? -1 : c->indices[i - 1];
    c->indices[i] = before + 1 + (int32_t)(w[0] % (TERMS / EACH));
    c->data[i] = 1 + (int32_t)(w[1] % 3);
    c->indptr[i / EACH + 1] = i + 1;
  }
}

static uint64_t fit(const mt_comm *comm, const mt_counts *c, int64_t topics)
{
  mt_parameters parameters = {0};
  mt_lda_model model = {0};
  assert_int_equal(mt_parameters_default(&parameters), MT_OK);
  mt_lda_options options = parameters.lda;
  options.n_components = topics;
  options.max_iter = 2;
  options.max_doc_update_iter = 5;
  assert_int_equal(mt_lda_fit(comm, &options, 7, c, NULL, &model), MT_OK);
  uint64_t key = mt_hash_key(model.components, (size_t)(topics * TERMS) * 8) +
                 mt_hash_key(&model.bound, sizeof model.bound);
  mt_lda_model_destroy(&model);
  mt_parameters_destroy(&parameters);
  return key;
}

static void test_split(void **state)
{
  (void)state;
  mt_counts c = {0};
  mt_comm self = mt_comm_self();
  int64_t alone[2] = {0, 0};
  static const int64_t topics[] = {3, 90};
  make_counts(&c);
  assert_true(mt_lda_lanes(c.indptr[DOCUMENTS], TERMS) >= 20);
  omp_set_num_threads(1);
  for (int t = 0; t < 2 && mt_test_world.rank == 0; t++)
    alone[t] = (int64_t)fit(&self, &c, topics[t]);
  assert_int_equal(mt_bcast(&mt_test_world, 0, sizeof alone, alone), MT_OK);
  for (int t = 0; t < 2; t++)
    assert_true((int64_t)fit(&mt_test_world, &c, topics[t]) == alone[t]);
  mt_counts_destroy(&c);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_split)};

MT_TEST_MAIN(tests)
