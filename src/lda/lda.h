/* One LDA model of one period: variational Bayes, batch and online, with the update and
 * the stopping rules of scikit-learn's LatentDirichletAllocation 1.9.
 * Source   Hoffman, Blei, Bach 2010, "Online learning for latent Dirichlet allocation" */
#ifndef MT_LDA_LDA_H
#define MT_LDA_LDA_H
#include "comm/comm.h"
#include "corpus/corpus.h"
#include "deck/parameters.h"

typedef struct mt_lda_model {
  int64_t n_components, n_terms;
  double *components; /* (K, V) lambda, > 0, not normalised; owned */
  double bound;       /* of the finished model on its own documents */
  double perplexity;  /* exp(-bound / words); 1 if there is no word */
  int64_t n_iter;     /* passes, as scikit-learn counts them */
  int64_t updates;    /* stored counts x update steps of the passes; 4 K flops each */
} mt_lda_model;
void mt_lda_model_destroy(
    mt_lda_model *model); /* frees the arrays; empties the struct */

/* What a caller may set beside the options; all zero: nothing. Borrowed. */
typedef struct mt_lda_extras {
  /* Where to start instead of gamma(100, 0.01) from the seed: lambda (K, V), or NULL */
  const double *components;
  /* and the parameters (K) of a document in a pass (from 0), or NULL. */
  void (*document)(void *context, int64_t pass, int64_t document, double *gamma_out);
  void *document_context;
  /* Called by the main thread every few milliseconds; true drops the fit. NULL: never. */
  bool (*poll)(void *context);
  void *poll_context;
  const char *kernel; /* avx512, avx2, portable; NULL: the fastest here */
} mt_lda_extras;

/**
 * Fits the model in plain loops and double, the definition of what mt_lda_fit does.
 * Not collective.
 * options  n_components, priors (0: 1 / K), max_iter and so on; seeds are not looked at
 * seed     0 to 2^32 - 1
 * counts   any number of documents, also none; documents without a term are fine
 * extras   NULL is fine; poll and kernel are not looked at
 * model_out  empty on entry; the caller destroys it
 * Errors   MT_ERR_ARG sizes; MT_ERR_MEMORY
 */
mt_status mt_lda_fit_ref(const mt_lda_options *options, int64_t seed,
                         const mt_counts *counts, const mt_lda_extras *extras,
                         mt_lda_model *model_out);

/**
 * The same in float, over all ranks of comm and their OpenMP threads. Every rank holds
 * all counts and gets the model. Collective.
 * Accuracy components relative 1e-4 of mt_lda_fit_ref after 5 passes (1e-3 with hardly
 *          more documents than topics, and more where a word's share is decided by values
 *          that are 0 in float); the same bits for any number of ranks and threads
 * Errors   as above; MT_STOPPED if a rank's poll asked for it
 */
mt_status mt_lda_fit(const mt_comm *comm, const mt_lda_options *options, int64_t seed,
                     const mt_counts *counts, const mt_lda_extras *extras,
                     mt_lda_model *model_out);

/* Topics as distributions over the terms: (K, V) float32, each row >= 0 with sum 1. */
void mt_lda_normalize(const mt_lda_model *model, float *rows_out);

/* The lanes that documents [first, last) are cut into: as many as this says, a function of
 * the counts alone, at least 1; lane l is [bounds(l), bounds(l + 1)). */
int64_t mt_lda_lanes(int64_t n_stored, int64_t n_terms);
int64_t mt_lda_lane_first(const int64_t *indptr, int64_t first, int64_t last,
                          int64_t lanes, int64_t lane);

#endif
