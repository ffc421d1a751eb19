/* From every rank's terms to the one vocabulary, as CountVectorizer chooses it. */
#ifndef MT_CORPUS_VOCABULARY_H
#define MT_CORPUS_VOCABULARY_H
#include "comm/comm.h"
#include "corpus/terms.h"
#include "deck/parameters.h"

/* What can take a term, in this order; each term is counted at the first that does. */
typedef enum mt_filter {
  MT_FILTER_STOP_WORDS,
  MT_FILTER_MIN_DF,
  MT_FILTER_MAX_DF,
  MT_FILTER_MAX_FEATURES,
  MT_FILTERS
} mt_filter;
const char *mt_filter_name(mt_filter filter); /* "stop_words", ... */

typedef struct mt_vocabulary {
  mt_terms terms;   /* ascending, by bytes = by code points; with df and tf */
  int64_t distinct; /* terms before the filters */
  int64_t removed[MT_FILTERS];
} mt_vocabulary;
void mt_vocabulary_destroy(mt_vocabulary *vocabulary);

/**
 * Counts every term over all ranks (each by the rank that its hash names), then filters:
 * stop words; min_df and max_df, where a share is that of n_documents and is not rounded;
 * max_features keeps the highest term frequencies, of equal ones the first in order.
 * n_documents  over all ranks
 * local        this rank's terms, with df and tf in its documents
 * out          the same on all ranks; the caller destroys it
 * Errors       MT_ERR_INPUT: no term is left (the message says what each filter took)
 */
mt_status mt_vocabulary_build(const mt_comm *comm, const mt_corpus_options *options,
                              int64_t n_documents, const mt_terms *local,
                              mt_vocabulary *out);

#endif
