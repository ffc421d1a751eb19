#include "lda/plan.h"
#include "base/memory.h"

#include <stdlib.h>

static const double wide = 1.2; /* even shares; see plan.h */

static double cost_of(const mt_lda_size *size)
{
  return ((double)size->n_stored + (double)size->n_terms) * (double)size->n_components;
}

/* What a fit takes on n ranks: rounds of a lane each, and after each round the exchange of
 * the statistics, which moves about as much in the time of a stored count a term. */
static double time_on(const mt_lda_size *size, int n)
{
  if (n == 1) return cost_of(size);
  double rounds = (double)((size->lanes + n - 1) / n);
  double exchange = (double)size->n_terms * (double)size->n_components;
  return rounds * (cost_of(size) / (double)size->lanes + exchange) + exchange;
}

/* By cost, the largest first, ties by number: the places in that order. */
static int compare(const void *a, const void *b)
{
  const mt_lda_place *x = a, *y = b;
  if (x->end != y->end) return x->end > y->end ? -1 : 1;
  return x->fit < y->fit ? -1 : x->fit > y->fit;
}

static void occupy(mt_lda_place *place, int first, int n, double start, double end,
                   double *busy)
{
  place->first_rank = first;
  place->n_ranks = n;
  place->start = start;
  place->end = end;
  for (int r = first; r < first + n; r++) busy[r] = end;
}

/* The group of n ranks, from a multiple of n on, that is free first. */
static int free_first(int n_ranks, int n, const double *busy, double *start_out)
{
  int best = 0;
  *start_out = -1.0;
  for (int first = 0; first + n <= n_ranks; first += n) {
    double start = 0.0;
    for (int r = first; r < first + n; r++)
      if (busy[r] > start) start = busy[r];
    if (*start_out >= 0.0 && start >= *start_out) continue;
    *start_out = start;
    best = first;
  }
  return best;
}

static void place_wide(const mt_lda_size *size, int n_ranks, double even,
                       mt_lda_place *place, double *busy)
{
  int64_t most = size->lanes < n_ranks ? size->lanes : n_ranks;
  int best_first = 0, best_n = 1;
  double best_start = 0.0, best_end = -1.0;
  for (int n = 1; n <= most; n++) {
    double start, time = time_on(size, n);
    int first = free_first(n_ranks, n, busy, &start);
    if (best_end >= 0.0 && start + time >= best_end) continue;
    best_first = first;
    best_n = n;
    best_start = start;
    best_end = start + time;
    if (best_end <= even) break;
  }
  occupy(place, best_first, best_n, best_start, best_end, busy);
}

mt_status mt_lda_plan(int64_t n, const mt_lda_size *sizes, int n_ranks,
                      mt_lda_place *places_out, int64_t *n_wide_out)
{
  mt_status status = MT_OK;
  double *busy = NULL, even = 0.0;
  mt_lda_place *queue = NULL;
  int64_t n_wide = 0, queued = 0;
  MT_REQUIRE(n >= 0 && n_ranks >= 1, MT_ERR_ARG, "%lld fits on %d ranks", (long long)n,
             n_ranks);
  MT_NEW(busy, n_ranks);
  MT_NEW(queue, n);
  for (int64_t i = 0; i < n; i++) {
    queue[i] = (mt_lda_place){.fit = i, .end = cost_of(&sizes[i])};
    even += queue[i].end / n_ranks;
  }
  qsort(queue, (size_t)n, sizeof *queue, compare);
  for (int64_t i = 0; i < n; i++) { /* wide fits are in front; one may end up on one rank */
    mt_lda_place *place = &queue[i];
    const mt_lda_size *size = &sizes[place->fit];
    if (place->end <= wide * even || size->lanes < 2 || n_ranks < 2) continue;
    place_wide(size, n_ranks, even, place, busy);
    if (place->n_ranks > 1) places_out[n_wide++] = *place;
  }
  for (int64_t i = 0; i < n; i++) {
    if (queue[i].n_ranks > 1) continue;
    double start;
    int rank = free_first(n_ranks, 1, busy, &start);
    occupy(&queue[i], rank, 1, start, start + cost_of(&sizes[queue[i].fit]), busy);
    places_out[n_wide + queued++] = queue[i];
  }
  *n_wide_out = n_wide;
done:
  free(busy);
  free(queue);
  return status;
}
