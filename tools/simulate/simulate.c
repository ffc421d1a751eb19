/* simulate: what a run of many fits would take. The schedule is the program's own
 * (mt_lda_plan, mt_lda_lanes), the memory too (mt_memory_need); what is simulated is time:
 * ranks make their wide fits in the order of the plan, then draw from the queue, and a fit
 * takes what the measured rates say, times a spread of its own that the plan does not know.
 * doc/scaling.md tells where the rates come from and how well it fits runs. */
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "deck/deck.h"
#include "lda/lda.h"
#include "lda/plan.h"
#include "memory_need.h"
#include "stage/stage.h"

#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum shape { SHAPE_REUTERS, SHAPE_HEAVY, SHAPE_EVEN, SHAPES } shape;
static const char *const shape_names[SHAPES] = {"reuters", "heavy", "even"};

typedef struct job {
  shape shape;
  int64_t months, seeds, topics, terms;
  double counts;            /* stored in a month, on average */
  double ns_count, ns_term; /* of a stored count and topic; of a term and topic */
  double spread;            /* of a fit's time: the standard deviation of its log */
  int64_t gpus;             /* for the memory of the last stages; 0: CPU ranks */
  const char *ranks;        /* "1,10,100" */
  int64_t n;                /* fits */
  mt_lda_size *sizes;       /* (n) */
  double *seconds;          /* (n) on one rank */
  int64_t largest;          /* stored in the largest month */
} job;

/* ---- fits -------------------------------------------------------------------------------- */

/* A month's stored counts beside those of others. */
static double weight_of(const job *j, int64_t month)
{
  static const double reuters[] = {14225, 750430, 338345, 162200, 73124};
  if (j->shape == SHAPE_REUTERS) return reuters[month % 5];
  return j->shape == SHAPE_HEAVY ? pow(1.0 + (double)month, -1.1) : 1.0;
}

static double spread_of(const job *j, int64_t fit)
{
  return exp(j->spread * mt_random_normal(1, MT_STREAM_TEST, (uint64_t)fit, 0));
}

static mt_status make_fits(job *j)
{
  mt_status status = MT_OK;
  double sum = 0.0;
  j->n = j->months * j->seeds;
  MT_NEW(j->sizes, j->n);
  MT_NEW(j->seconds, j->n);
  for (int64_t m = 0; m < j->months; m++) sum += weight_of(j, m);
  for (int64_t i = 0; i < j->n; i++) {
    double mean = j->counts * (double)j->months;
    int64_t stored = (int64_t)(mean * weight_of(j, i / j->seeds) / sum);
    j->sizes[i] =
        (mt_lda_size){stored, j->terms, j->topics, mt_lda_lanes(stored, j->terms)};
    j->seconds[i] = 1e-9 * (double)j->topics *
                    (j->ns_count * (double)stored + j->ns_term * (double)j->terms) *
                    spread_of(j, i);
    if (stored > j->largest) j->largest = stored;
  }
done:
  return status;
}

/* ---- the schedule ------------------------------------------------------------------------ */

typedef struct outcome {
  int64_t wide, most_ranks; /* fits that are split; over how many ranks at most */
  double longest, seconds;  /* of a fit; until the last is done */
} outcome;

/* Moves the rank at the top of a heap of times down to its place. */
static void sift(int n, double *heap)
{
  for (int i = 0, next; (next = 2 * i + 1) < n; i = next) {
    if (next + 1 < n && heap[next + 1] < heap[next]) next++;
    if (heap[i] <= heap[next]) break;
    double swap = heap[i];
    heap[i] = heap[next];
    heap[next] = swap;
  }
}

static int by_time(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* A fit's seconds on its ranks: the plan knows what splitting costs. */
static double time_of(const job *j, const mt_lda_place *place)
{
  const mt_lda_size *size = &j->sizes[place->fit];
  double alone = (double)(size->n_stored + size->n_terms) * (double)size->n_components;
  return j->seconds[place->fit] * (place->end - place->start) / alone;
}

static void run_plan(const job *j, int ranks, int64_t n_wide,
                     const mt_lda_place *places, double *free_at, outcome *out)
{
  *out = (outcome){.wide = n_wide, .most_ranks = 1};
  for (int64_t i = 0; i < j->n; i++) {
    const mt_lda_place *place = &places[i];
    double time = time_of(j, place), start = 0.0;
    if (time > out->longest) out->longest = time;
    if (i == n_wide) qsort(free_at, (size_t)ranks, sizeof *free_at, by_time);
    if (i >= n_wide) { /* to the rank that is free first: a sorted array is a heap */
      free_at[0] += time;
      if (free_at[0] > out->seconds) out->seconds = free_at[0];
      sift(ranks, free_at);
      continue;
    }
    if (place->n_ranks > out->most_ranks) out->most_ranks = place->n_ranks;
    for (int r = place->first_rank; r < place->first_rank + place->n_ranks; r++)
      start = fmax(start, free_at[r]);
    for (int r = place->first_rank; r < place->first_rank + place->n_ranks; r++)
      free_at[r] = start + time;
    if (start + time > out->seconds) out->seconds = start + time;
  }
}

static mt_status simulate(const job *j, int ranks, bool split, outcome *out)
{
  mt_status status = MT_OK;
  mt_lda_size *sizes = NULL;
  mt_lda_place *places = NULL;
  double *free_at = NULL;
  int64_t n_wide = 0;
  MT_NEW(sizes, j->n);
  MT_NEW(places, j->n);
  MT_NEW(free_at, ranks);
  for (int64_t i = 0; i < j->n; i++) {
    sizes[i] = j->sizes[i];
    if (!split) sizes[i].lanes = 1;
  }
  MT_TRY(mt_lda_plan(j->n, sizes, ranks, places, &n_wide));
  run_plan(j, ranks, n_wide, places, free_at, out);
done:
  free(sizes);
  free(places);
  free(free_at);
  return status;
}

/* ---- tables ------------------------------------------------------------------------------ */

static mt_status schedule_row(const job *j, int ranks)
{
  mt_status status = MT_OK;
  outcome split, whole;
  double work = 0.0;
  for (int64_t i = 0; i < j->n; i++) work += j->seconds[i];
  MT_TRY(simulate(j, ranks, true, &split));
  MT_TRY(simulate(j, ranks, false, &whole));
  printf("%7d %9lld %6lld %11.2f %12.2f %8.1f %12.2f %8.1f %7.2f\n", ranks,
         (long long)split.wide, (long long)split.most_ranks, split.longest,
         split.seconds, 100.0 * work / (ranks * split.seconds), whole.seconds,
         100.0 * work / (ranks * whole.seconds), whole.seconds / split.seconds);
done:
  return status;
}

static mt_status memory_row(const job *j, int ranks)
{
  mt_status status = MT_OK;
  mt_parameters parameters = {0};
  int64_t bytes[MT_N_STAGES], gpu[MT_N_GPU_STAGES];
  mt_sizes sizes = {.documents = (int64_t)(j->counts * (double)j->months / 75.0),
                    .stored = (int64_t)(j->counts * (double)j->months),
                    .terms = j->terms,
                    .period_documents = j->largest / 75, /* counts a document */
                    .period_stored = j->largest,
                    .topics = j->n * j->topics,
                    .ranks = ranks,
                    .team = j->gpus > 0 ? j->gpus : ranks,
                    .threads = 1,
                    .base = 60 << 20};
  MT_TRY(mt_parameters_default(&parameters));
  parameters.lda.n_components = j->topics;
  mt_memory_need(&sizes, &parameters, bytes);
  printf("%7d", ranks);
  for (int s = 0; s < MT_N_STAGES; s++) printf(" %9.2f", (double)bytes[s] / 0x1p30);
  mt_device_memory_need(&sizes, &parameters, gpu);
  for (int s = 0; j->gpus > 0 && s < MT_N_GPU_STAGES; s++)
    printf(" %9.2f", (double)gpu[s] / 0x1p30);
  printf("\n");
done:
  mt_parameters_destroy(&parameters);
  return status;
}

/* A row for each number in the list. */
static mt_status table(const job *j, mt_status (*row)(const job *, int))
{
  mt_status status = MT_OK;
  for (const char *at = j->ranks; *at != '\0';) {
    char *end;
    long ranks = strtol(at, &end, 10);
    MT_REQUIRE(end > at && (*end == ',' || *end == '\0') && ranks >= 1 &&
                   ranks < 1 << 24,
               MT_ERR_INPUT, "--ranks %s: numbers of ranks with commas between them",
               j->ranks);
    MT_TRY(row(j, (int)ranks));
    at = *end == ',' ? end + 1 : end;
  }
done:
  return status;
}

static mt_status all(job *j)
{
  mt_status status = MT_OK;
  MT_TRY(make_fits(j));
  double work = 0.0;
  for (int64_t i = 0; i < j->n; i++) work += j->seconds[i];
  printf("%lld fits (%lld months, %s; %lld seeds; %lld topics of %lld terms), %.3g "
         "stored counts a month, %lld in the largest: %.2f core hours, %lld topic "
         "vectors\n\n",
         (long long)j->n, (long long)j->months, shape_names[j->shape],
         (long long)j->seeds, (long long)j->topics, (long long)j->terms, j->counts,
         (long long)j->largest, work / 3600.0, (long long)(j->n * j->topics));
  printf("%7s %9s %6s %11s %12s %8s %12s %8s %7s\n", "", "fits", "over", "longest",
         "all fits", "ranks", "not split", "ranks", "");
  printf("%7s %9s %6s %11s %12s %8s %12s %8s %7s\n", "ranks", "split", "ranks",
         "fit, s", "done, s", "busy, %", "done, s", "busy, %", "gain");
  MT_TRY(table(j, schedule_row));
  printf("\nGiB of the rank that needs most (one thread)%s\n%7s",
         j->gpus > 0 ? "; of the GPU: knn, umap, hdbscan" : "", "ranks");
  for (int s = 0; s < MT_N_STAGES; s++) printf(" %9s", mt_stage_names[s]);
  printf("\n");
  MT_TRY(table(j, memory_row));
done:
  free(j->sizes);
  free(j->seconds);
  return status;
}

/* ---- the command line ---------------------------------------------------------------------- */

static const struct argp_option options[] = {
    {"months", 'm', "N", 0, "periods (120)", 0},
    {"seeds", 's', "N", 0, "fits of each (1000)", 0},
    {"topics", 'k', "N", 0, "of a fit (100)", 0},
    {"terms", 'v', "N", 0, "of the vocabulary (20000)", 0},
    {"counts", 'c', "N", 0, "stored counts of a month, on average (815000)", 0},
    {"shape", 'p', "reuters|heavy|even", 0,
     "how months differ: as Reuters-21578's, 1 / rank^1.1, or not (reuters)", 0},
    {"ns-count", 'a', "NS", 0, "nanoseconds of a stored count and topic (12)", 0},
    {"ns-term", 'b', "NS", 0, "nanoseconds of a term and topic (30)", 0},
    {"spread", 'd', "X", 0, "of a fit's time, in logarithms (0.1)", 0},
    {"gpus", 'g', "N", 0, "of the last stages; 0: CPU ranks (0)", 0},
    {"ranks", 'r', "N,N,...", 0, "(1,10,100,1000,10000)", 0},
    {0}};

static int64_t number_of(const char *text, struct argp_state *state)
{
  char *end;
  long long value = strtoll(text, &end, 10);
  if (*end != '\0' || end == text || value < 0 || value > (int64_t)1 << 40)
    argp_error(state, "%s: a whole number, 0 or more", text);
  return value;
}

static double real_of(const char *text, struct argp_state *state)
{
  char *end;
  double value = strtod(text, &end);
  if (*end != '\0' || end == text || !(value >= 0.0 && value < 1e15))
    argp_error(state, "%s: a number, 0 or more", text);
  return value;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
  job *j = state->input;
  switch (key) {
  case 'm':
    j->months = number_of(text, state);
    break;
  case 's':
    j->seeds = number_of(text, state);
    break;
  case 'k':
    j->topics = number_of(text, state);
    break;
  case 'v':
    j->terms = number_of(text, state);
    break;
  case 'g':
    j->gpus = number_of(text, state);
    break;
  case 'c':
    j->counts = real_of(text, state);
    break;
  case 'a':
    j->ns_count = real_of(text, state);
    break;
  case 'b':
    j->ns_term = real_of(text, state);
    break;
  case 'd':
    j->spread = real_of(text, state);
    break;
  case 'r':
    j->ranks = text;
    break;
  case 'p':
    for (j->shape = 0; j->shape < SHAPES; j->shape++)
      if (strcmp(text, shape_names[j->shape]) == 0) return 0;
    argp_error(state, "--shape %s: allowed: reuters, heavy, even", text);
    break;
  case ARGP_KEY_END:
    if (j->months < 1 || j->seeds < 1 || j->topics < 1 || j->terms < 1)
      argp_error(state, "months, seeds, topics and terms are 1 or more");
    break;
  default:
    return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

int main(int argc, char **argv)
{
  job j = {.months = 120,
           .seeds = 1000,
           .topics = 100,
           .terms = 20000,
           .counts = 815000,
           .ns_count = 12,
           .ns_term = 30,
           .spread = 0.1,
           .ranks = "1,10,100,1000,10000"};
  static const struct argp argp = {
      options, parse,
      NULL,    "Simulates the schedule of all fits with the program's own plan.",
      NULL,    NULL,
      NULL};
  argp_parse(&argp, argc, argv, 0, NULL, &j);
  mt_log_setup(0, 1, MT_LOG_WARN);
  return mt_exit_code(all(&j));
}
