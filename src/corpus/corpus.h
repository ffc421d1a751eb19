/* The corpus as counts: which documents hold which terms how often, by period.
 * The stage (mt_stage_corpus) reads the collection over all ranks and writes corpus.h5;
 * the functions here read that file, each rank for itself. */
#ifndef MT_CORPUS_CORPUS_H
#define MT_CORPUS_CORPUS_H
#include "store/store.h"

/* Documents x terms, CSR; term numbers ascend in each row. */
typedef struct mt_counts {
  int64_t n_documents, n_terms;
  int64_t *indptr;  /* (n_documents + 1), from 0; owned */
  int32_t *indices; /* (indptr[n_documents]) in [0, n_terms); owned */
  int32_t *data;    /* (indptr[n_documents]) >= 1; owned */
} mt_counts;
void mt_counts_destroy(mt_counts *counts); /* frees the arrays; empties the struct */

typedef struct mt_period {
  char *name;             /* 1987-03, 1987, 1987-Q1, 1987-W09, 1987-03-17; owned */
  int64_t first_document; /* documents of a period are contiguous */
  int64_t n_documents;
  int64_t skipped;  /* records with this period's date that gave no document */
  int64_t n_stored; /* counts stored for its documents */
} mt_period;
void mt_periods_destroy(int64_t n, mt_period *periods); /* the array too */

/* The periods of an open corpus.h5, in order. The caller owns them. A file whose numbers
 * do not fit together (a disk that lost bits) is an error here and below: MT_ERR_IO. */
mt_status mt_corpus_periods(mt_file *corpus, int64_t *n_out, mt_period **periods_out);

/* Rows [first, first + count) of the counts. */
mt_status mt_corpus_counts(mt_file *corpus, int64_t first, int64_t count,
                           mt_counts *out);

/* The vocabulary, lexicographic; n_terms texts, owned: mt_store_free_texts, then free. */
mt_status mt_corpus_terms(mt_file *corpus, int64_t *n_terms_out, char ***terms_out);

#endif
