#include "lda/plan.h"
#include "base/memory.h"

#include <stdlib.h>

enum { TRIALS = 25, SMALL = 8 }; /* see plan.h */

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

/* ---- a trial: groups such that each fit is done by a deadline, if that can be ---------- */

typedef struct trial {
  const mt_lda_size *sizes;
  int n_ranks;
  double *busy; /* (n_ranks) until when */
  double work;  /* rank time given out */
} trial;

static void give(trial *t, mt_lda_place *place, int n)
{
  double start, time = time_on(&t->sizes[place->fit], n);
  int first = free_first(t->n_ranks, n, t->busy, &start);
  occupy(place, first, n, start, start + time, t->busy);
  t->work += time * n;
}

/* The smallest group that is done by the deadline, else the one that is done first. */
static int group_for(const trial *t, int64_t fit, double deadline)
{
  const mt_lda_size *size = &t->sizes[fit];
  int64_t most = size->lanes < t->n_ranks ? size->lanes : t->n_ranks;
  int best = 1;
  double best_end = -1.0;
  for (int n = 1; n <= most; n++) {
    double start;
    free_first(t->n_ranks, n, t->busy, &start);
    double end = start + time_on(size, n);
    if (best_end >= 0.0 && end >= best_end) continue;
    best = n;
    best_end = end;
    if (end <= deadline) break;
  }
  return best;
}

static void begin(trial *t)
{
  for (int r = 0; r < t->n_ranks; r++) t->busy[r] = 0.0;
  t->work = 0.0;
}

/* Finds the groups as if all were placed by size, then places them as they will be worked
 * on, wide ones first: when the last is done, or all of the work with the small ones. */
static double try_deadline(trial *t, int64_t n, mt_lda_place *places, double deadline,
                           double small_work)
{
  double last = 0.0;
  begin(t);
  for (int64_t i = 0; i < n; i++)
    give(t, &places[i], group_for(t, places[i].fit, deadline));
  begin(t);
  for (int wide = 1; wide >= 0; wide--)
    for (int64_t i = 0; i < n; i++)
      if ((places[i].n_ranks > 1) == wide) give(t, &places[i], places[i].n_ranks);
  for (int r = 0; r < t->n_ranks; r++)
    if (t->busy[r] > last) last = t->busy[r];
  double even = (t->work + small_work) / t->n_ranks;
  return last > even ? last : even;
}

/* The n largest fits' groups, for the best of some deadlines. */
static void find_groups(trial *t, int64_t n, mt_lda_place *places, double even,
                        double small_work)
{
  double best = -1.0, best_deadline = even;
  for (int i = 0; i < TRIALS; i++) {
    double deadline = even * (1.0 + 0.1 * i);
    double last = try_deadline(t, n, places, deadline, small_work);
    if (best >= 0.0 && last >= best) continue;
    best = last;
    best_deadline = deadline;
  }
  try_deadline(t, n, places, best_deadline, small_work);
}

mt_status mt_lda_plan(int64_t n, const mt_lda_size *sizes, int n_ranks,
                      mt_lda_place *places_out, int64_t *n_wide_out)
{
  mt_status status = MT_OK;
  mt_lda_place *places = NULL;
  trial t = {.sizes = sizes, .n_ranks = n_ranks};
  double even = 0.0, small_work = 0.0;
  int64_t large = 0, put = 0;
  MT_REQUIRE(n >= 0 && n_ranks >= 1, MT_ERR_ARG, "%lld fits on %d ranks", (long long)n,
             n_ranks);
  MT_NEW(t.busy, n_ranks);
  MT_NEW(places, n);
  for (int64_t i = 0; i < n; i++) {
    places[i] = (mt_lda_place){.fit = i, .n_ranks = 1, .end = cost_of(&sizes[i])};
    even += places[i].end / n_ranks;
  }
  qsort(places, (size_t)n, sizeof *places, compare);
  while (large < n && places[large].end > even / SMALL) large++;
  for (int64_t i = large; i < n; i++) small_work += places[i].end;
  if (n_ranks > 1 && large > 0) find_groups(&t, large, places, even, small_work);
  begin(&t);
  for (int wide = 1; wide >= 0; wide--) {
    for (int64_t i = 0; i < n; i++) {
      if ((places[i].n_ranks > 1) != wide) continue;
      give(&t, &places[i], places[i].n_ranks);
      places_out[put++] = places[i];
    }
    if (wide) *n_wide_out = put;
  }
done:
  free(t.busy);
  free(places);
  return status;
}
