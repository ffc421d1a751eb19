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
  MT_NEW(periods, n);
  MT_NEW(names, n);
  MT_NEW(values, 4 * n);
  for (int c = 0; c < 4; c++)
    MT_TRY(mt_store_read(corpus, columns[c], MT_INT64, 0, n, values + c * n));
  MT_TRY(mt_store_read(corpus, "/periods/name", MT_TEXT, 0, n, names));
  for (int64_t p = 0; p < n; p++)
    periods[p] = (mt_period){names[p], values[p], values[n + p], values[2 * n + p],
                             values[3 * n + p]};
  *n_out = n;
  *periods_out = periods;
  periods = NULL; /* the names are theirs */
done:
  free(periods);
  free(names);
  free(values);
  return status;
}

mt_status mt_corpus_counts(mt_file *corpus, int64_t first, int64_t count,
                           mt_counts *out)
{
  mt_status status = MT_OK;
  mt_counts counts = {.n_documents = count};
  int64_t width = 0;

  MT_TRY(mt_store_shape(corpus, "/vocabulary/terms", &counts.n_terms, &width));
  MT_NEW(counts.indptr, count + 1);
  MT_TRY(mt_store_read(corpus, "/counts/indptr", MT_INT64, first, count + 1,
                       counts.indptr));
  int64_t begin = counts.indptr[0], n = counts.indptr[count] - begin;
  for (int64_t i = 0; i <= count; i++) counts.indptr[i] -= begin;
  MT_NEW(counts.indices, n);
  MT_NEW(counts.data, n);
  MT_TRY(mt_store_read(corpus, "/counts/indices", MT_INT32, begin, n, counts.indices));
  MT_TRY(mt_store_read(corpus, "/counts/data", MT_INT32, begin, n, counts.data));
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
  MT_NEW(terms, n);
  MT_TRY(mt_store_read(corpus, "/vocabulary/terms", MT_TEXT, 0, n, terms));
  *n_terms_out = n;
  *terms_out = terms;
  terms = NULL;
done:
  free(terms);
  return status;
}
