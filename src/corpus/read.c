/* corpus.h5 as later stages read it. */
#include "base/memory.h"
#include "corpus/corpus.h"

#include <stdlib.h>
#include <string.h>

void mt_counts_destroy(mt_counts *counts)
{
  free(counts->indptr);
  free(counts->indices);
  free(counts->data);
  memset(counts, 0, sizeof *counts);
}

void mt_periods_destroy(int64_t n, mt_period *periods)
{
  for (int64_t p = 0; periods != NULL && p < n; p++) free(periods[p].name);
  free(periods);
}

/* Do the periods follow one another, and cover all documents? A damaged file may say
 * anything. */
static mt_status check_periods(mt_file *corpus, int64_t n, const mt_period *periods)
{
  mt_status status = MT_OK;
  int64_t rows = 0, width = 0, documents = 0;
  MT_TRY(mt_store_shape(corpus, "/counts/indptr", &rows, &width));
  for (int64_t p = 0; p < n; p++) {
    const mt_period *period = &periods[p];
    MT_REQUIRE(
        period->first_document == documents && period->n_documents >= 0 &&
            period->n_documents <= rows - 1 - documents && period->n_stored >= 0,
        MT_ERR_IO,
        "corpus.h5 is damaged: period %lld has %lld of %lld documents, from %lld on, "
        "with %lld counts: remove it and run again",
        (long long)p, (long long)period->n_documents, (long long)(rows - 1),
        (long long)period->first_document, (long long)period->n_stored);
    documents += period->n_documents;
  }
  MT_REQUIRE(documents == rows - 1, MT_ERR_IO,
             "corpus.h5 is damaged: its periods have %lld documents, its counts %lld: "
             "remove it and run again",
             (long long)documents, (long long)(rows - 1));
done:
  return status;
}

mt_status mt_corpus_periods(mt_file *corpus, int64_t *n_out, mt_period **periods_out)
{
  mt_status status = MT_OK;
  static const char *const columns[] = {"/periods/first_document",
                                        "/periods/n_documents", "/periods/skipped",
                                        "/periods/n_stored"};
  int64_t n = 0, width = 0, *values = NULL;
  mt_period *periods = NULL;
  char **names = NULL;

  MT_TRY(mt_store_shape(corpus, "/periods/name", &n, &width));
  MT_TRY(mt_store_expect(corpus, "/periods/name", n, 0));
  MT_NEW(periods, n);
  MT_NEW(names, n);
  MT_NEW(values, 4 * n);
  for (int c = 0; c < 4; c++) {
    MT_TRY(mt_store_expect(corpus, columns[c], n, 0));
    MT_TRY(mt_store_read(corpus, columns[c], MT_INT64, 0, n, values + c * n));
  }
  MT_TRY(mt_store_read(corpus, "/periods/name", MT_TEXT, 0, n, names));
  for (int64_t p = 0; p < n; p++)
    periods[p] = (mt_period){names[p], values[p], values[n + p], values[2 * n + p],
                             values[3 * n + p]};
  MT_TRY(check_periods(corpus, n, periods));
  *n_out = n;
  *periods_out = periods;
  periods = NULL; /* the names are theirs */
done:
  if (status != MT_OK && names != NULL) mt_store_free_texts(n, names);
  free(periods);
  free(names);
  free(values);
  return status;
}

/* Whatever the file holds, nobody may be led outside the arrays. */
static mt_status check_counts(const mt_counts *c)
{
  for (int64_t e = 0; e < c->indptr[c->n_documents]; e++)
    if (c->indices[e] < 0 || c->indices[e] >= c->n_terms || c->data[e] < 1)
      return mt_fail(
          MT_ERR_IO,
          "corpus.h5 is damaged: term %d, %d times, of %lld terms: remove it "
          "and run again",
          c->indices[e], c->data[e], (long long)c->n_terms);
  return MT_OK;
}

static mt_status read_indptr(mt_file *corpus, int64_t first, int64_t count,
                             int64_t n_stored, int64_t *indptr)
{
  mt_status status =
      mt_store_read(corpus, "/counts/indptr", MT_INT64, first, count + 1, indptr);
  if (status != MT_OK) return status;
  for (int64_t i = 0; i <= count; i++)
    if (indptr[i] < (i > 0 ? indptr[i - 1] : 0) || indptr[i] > n_stored)
      return mt_fail(
          MT_ERR_IO,
          "corpus.h5 is damaged: /counts/indptr[%lld] is %lld: remove it and "
          "run again",
          (long long)(first + i), (long long)indptr[i]);
  return MT_OK;
}

mt_status mt_corpus_counts(mt_file *corpus, int64_t first, int64_t count,
                           mt_counts *out)
{
  mt_status status = MT_OK;
  mt_counts counts = {.n_documents = count};
  int64_t width = 0, documents = 0, stored = 0;

  MT_TRY(mt_store_shape(corpus, "/vocabulary/terms", &counts.n_terms, &width));
  MT_TRY(mt_store_shape(corpus, "/counts/indptr", &documents, &width));
  MT_TRY(mt_store_expect(corpus, "/counts/indptr", documents, 0));
  MT_TRY(mt_store_shape(corpus, "/counts/indices", &stored, &width));
  MT_TRY(mt_store_expect(corpus, "/counts/indices", stored, 0));
  MT_TRY(mt_store_expect(corpus, "/counts/data", stored, 0));
  MT_NEW(counts.indptr, count + 1);
  MT_TRY(read_indptr(corpus, first, count, stored, counts.indptr));
  int64_t begin = counts.indptr[0], n = counts.indptr[count] - begin;
  for (int64_t i = 0; i <= count; i++) counts.indptr[i] -= begin;
  MT_NEW(counts.indices, n);
  MT_NEW(counts.data, n);
  MT_TRY(mt_store_read(corpus, "/counts/indices", MT_INT32, begin, n, counts.indices));
  MT_TRY(mt_store_read(corpus, "/counts/data", MT_INT32, begin, n, counts.data));
  MT_TRY(check_counts(&counts));
  *out = counts;
  memset(&counts, 0, sizeof counts);
done:
  mt_counts_destroy(&counts);
  return status;
}

mt_status mt_corpus_terms(mt_file *corpus, int64_t *n_terms_out, char ***terms_out)
{
  mt_status status = MT_OK;
  int64_t n = 0, width = 0;
  char **terms = NULL;
  MT_TRY(mt_store_shape(corpus, "/vocabulary/terms", &n, &width));
  MT_TRY(mt_store_expect(corpus, "/vocabulary/terms", n, 0));
  MT_NEW(terms, n);
  MT_TRY(mt_store_read(corpus, "/vocabulary/terms", MT_TEXT, 0, n, terms));
  *n_terms_out = n;
  *terms_out = terms;
  terms = NULL;
done:
  free(terms);
  return status;
}
