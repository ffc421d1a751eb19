/* Which rank fits what. A pure function of the fits' sizes and the number of ranks, so that
 * `check` can print it and every rank works it out for itself. Not collective.
 *
 * A fit costs (stored counts + terms) x topics. A wide fit is split by lanes of documents
 * over a group of neighbouring ranks; it costs the exchange of the statistics on top. How
 * many ranks a fit gets: the fewest that have it done by a deadline, for the deadline, from
 * a rank's even share of all the work up to 3.4 times that, that ends soonest. (Fits below
 * an eighth of an even share are not split.) Wide fits come first, the largest first. All
 * others go, the largest first, to whichever rank is free: a shared counter hands them
 * out. */
#ifndef MT_LDA_PLAN_H
#define MT_LDA_PLAN_H
#include "base/status.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct mt_lda_size {
  int64_t n_stored, n_terms, n_components;
  int64_t lanes; /* that can be worked on at a time, >= 1 */
} mt_lda_size;

typedef struct mt_lda_place {
  int64_t fit; /* which of the sizes */
  int first_rank,
      n_ranks;       /* n_ranks > 1: wide; 1: the rank that should come to it first */
  double start, end; /* expected, in units of cost */
} mt_lda_place;

/**
 * places_out (n) in the order of work: wide fits, then the queue; every fit is in one
 * n_wide_out how many are wide
 * Errors     MT_ERR_MEMORY; MT_ERR_ARG: negative n, fewer than 1 rank
 */
mt_status mt_lda_plan(int64_t n, const mt_lda_size *sizes, int n_ranks,
                      mt_lda_place *places_out, int64_t *n_wide_out);

#endif
