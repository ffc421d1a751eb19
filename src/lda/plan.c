#include "lda/plan.h"
#include "base/memory.h"

#include <math.h>
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

/* ---- who is free when ----------------------------------------------------------------- */

/* For groups of one size, from its multiples on: until when each is busy, as the leaves of
 * a tree of minima. A group that would end beyond the last rank is busy for ever. */
typedef struct groups {
  int size;            /* ranks of a group */
  struct groups *next; /* another size */
  int n;               /* leaves, a power of two */
  double *
      minima; /* (2 n) node i has the nodes 2 i and 2 i + 1 below it; leaves from n on */
} groups;

typedef struct calendar {
  int n_ranks;
  double *busy;     /* (n_ranks) until when */
  groups **of_size; /* [n_ranks + 1] those that were asked for; else NULL */
  groups *all;
} calendar;

static void find_minima(groups *g)
{
  for (int i = g->n - 1; i >= 1; i--)
    g->minima[i] = fmin(g->minima[2 * i], g->minima[2 * i + 1]);
}

/* From the ranks' own times. */
static void fill_groups(const calendar *c, groups *g)
{
  int size = g->size, whole = c->n_ranks / size;
  for (int i = 0; i < g->n; i++) {
    double last = i < whole ? 0.0 : INFINITY;
    for (int r = size * i; i < whole && r < size * (i + 1); r++)
      last = fmax(last, c->busy[r]);
    g->minima[g->n + i] = last;
  }
  find_minima(g);
}

static mt_status groups_of(calendar *c, int size, groups **out)
{
  mt_status status = MT_OK;
  if (c->of_size[size] == NULL) {
    MT_NEW(c->of_size[size], 1); /* destroyed with the calendar */
    groups *g = c->of_size[size];
    g->size = size;
    g->next = c->all;
    c->all = g;
    for (g->n = 1; g->n < c->n_ranks / size;) g->n *= 2;
    MT_NEW(g->minima, 2 * g->n);
    fill_groups(c, g);
  }
  *out = c->of_size[size];
done:
  return status;
}

static void calendar_clear(calendar *c)
{
  for (int r = 0; r < c->n_ranks; r++) c->busy[r] = 0.0;
  for (groups *g = c->all; g != NULL; g = g->next) fill_groups(c, g);
}

static void calendar_destroy(calendar *c)
{
  for (groups *g = c->all, *next; g != NULL; g = next) {
    next = g->next;
    free(g->minima);
    free(g);
  }
  free(c->of_size);
  free(c->busy);
}

/* The first of the groups that are free first. */
static int first_free(const groups *g, double *start_out)
{
  int i = 1;
  while (i < g->n) i = g->minima[2 * i] <= g->minima[2 * i + 1] ? 2 * i : 2 * i + 1;
  *start_out = g->minima[i];
  return i - g->n;
}

/* Ranks [first, first + n) are busy until `end`, which is later than they were. */
static void occupy(calendar *c, int first, int n, double end)
{
  for (int r = first; r < first + n; r++) c->busy[r] = end;
  for (groups *g = c->all; g != NULL; g = g->next)
    for (int i = first / g->size; i <= (first + n - 1) / g->size && i < g->n; i++) {
      int at = g->n + i;
      g->minima[at] = fmax(g->minima[at], end);
      while (at > 1) {
        at /= 2;
        g->minima[at] = fmin(g->minima[2 * at], g->minima[2 * at + 1]);
      }
    }
}

/* ---- a trial: groups such that each fit is done by a deadline, if that can be ---------- */

typedef struct trial {
  const mt_lda_size *sizes;
  calendar calendar;
  double work; /* rank time given out */
} trial;

static mt_status give(trial *t, mt_lda_place *place, int n)
{
  mt_status status = MT_OK;
  groups *g;
  double time = time_on(&t->sizes[place->fit], n);
  MT_TRY(groups_of(&t->calendar, n, &g));
  place->n_ranks = n;
  place->first_rank = n * first_free(g, &place->start);
  place->end = place->start + time;
  occupy(&t->calendar, place->first_rank, n, place->end);
  t->work += time * n;
done:
  return status;
}

/* The smallest group that is done by the deadline, else the one that is done first. Of the
 * sizes that take as many rounds the smallest is tried. */
static mt_status group_for(trial *t, int64_t fit, double deadline, int *n_out)
{
  mt_status status = MT_OK;
  const mt_lda_size *size = &t->sizes[fit];
  int n_ranks = t->calendar.n_ranks;
  double best_end = -1.0;
  *n_out = 1;
  for (int64_t n = 1; n <= size->lanes && n <= n_ranks;) {
    groups *g;
    double start;
    MT_TRY(groups_of(&t->calendar, (int)n, &g));
    first_free(g, &start);
    double end = start + time_on(size, (int)n);
    if (best_end < 0.0 || end < best_end) {
      *n_out = (int)n;
      best_end = end;
      if (end <= deadline) break;
    }
    int64_t fewer = (size->lanes + n - 1) / n - 1; /* rounds */
    n = fewer > 0 ? (size->lanes + fewer - 1) / fewer : size->lanes + 1;
  }
done:
  return status;
}

static void begin(trial *t)
{
  calendar_clear(&t->calendar);
  t->work = 0.0;
}

/* Finds the groups as if all were placed by size, then places them as they will be worked
 * on, wide ones first: when the last is done, or all of the work with the small ones. */
static mt_status try_deadline(trial *t, int64_t n, mt_lda_place *places,
                              double deadline, double small_work, double *last_out)
{
  mt_status status = MT_OK;
  double last = 0.0;
  int group = 1;
  begin(t);
  for (int64_t i = 0; i < n; i++) {
    MT_TRY(group_for(t, places[i].fit, deadline, &group));
    MT_TRY(give(t, &places[i], group));
  }
  begin(t);
  for (int wide = 1; wide >= 0; wide--)
    for (int64_t i = 0; i < n; i++)
      if ((places[i].n_ranks > 1) == wide)
        MT_TRY(give(t, &places[i], places[i].n_ranks));
  for (int64_t i = 0; i < n; i++) last = fmax(last, places[i].end);
  *last_out = fmax(last, (t->work + small_work) / t->calendar.n_ranks);
done:
  return status;
}

/* The n largest fits' groups, for the best of some deadlines. */
static mt_status find_groups(trial *t, int64_t n, mt_lda_place *places, double even,
                             double small_work)
{
  mt_status status = MT_OK;
  double best = -1.0, best_deadline = even, last;
  for (int i = 0; i < TRIALS; i++) {
    double deadline = even * (1.0 + 0.1 * i);
    MT_TRY(try_deadline(t, n, places, deadline, small_work, &last));
    if (best >= 0.0 && last >= best) continue;
    best = last;
    best_deadline = deadline;
  }
  MT_TRY(try_deadline(t, n, places, best_deadline, small_work, &last));
done:
  return status;
}

/* All of them as they will be worked on. */
static mt_status place_all(trial *t, int64_t n, mt_lda_place *places,
                           mt_lda_place *places_out, int64_t *n_wide_out)
{
  mt_status status = MT_OK;
  int64_t put = 0;
  begin(t);
  for (int wide = 1; wide >= 0; wide--) {
    for (int64_t i = 0; i < n; i++) {
      if ((places[i].n_ranks > 1) != wide) continue;
      MT_TRY(give(t, &places[i], places[i].n_ranks));
      places_out[put++] = places[i];
    }
    if (wide) *n_wide_out = put;
  }
done:
  return status;
}

mt_status mt_lda_plan(int64_t n, const mt_lda_size *sizes, int n_ranks,
                      mt_lda_place *places_out, int64_t *n_wide_out)
{
  mt_status status = MT_OK;
  mt_lda_place *places = NULL;
  trial t = {.sizes = sizes, .calendar = {.n_ranks = n_ranks}};
  double even = 0.0, small_work = 0.0;
  int64_t large = 0;
  MT_REQUIRE(n >= 0 && n_ranks >= 1, MT_ERR_ARG, "%lld fits on %d ranks", (long long)n,
             n_ranks);
  MT_NEW(t.calendar.busy, n_ranks);
  MT_NEW(t.calendar.of_size, n_ranks + 1);
  MT_NEW(places, n);
  for (int64_t i = 0; i < n; i++) {
    places[i] = (mt_lda_place){.fit = i, .n_ranks = 1, .end = cost_of(&sizes[i])};
    even += places[i].end / n_ranks;
  }
  qsort(places, (size_t)n, sizeof *places, compare);
  while (large < n && places[large].end > even / SMALL) large++;
  for (int64_t i = large; i < n; i++) small_work += places[i].end;
  if (n_ranks > 1 && large > 0)
    MT_TRY(find_groups(&t, large, places, even, small_work));
  MT_TRY(place_all(&t, n, places, places_out, n_wide_out));
done:
  calendar_destroy(&t.calendar);
  free(places);
  return status;
}
