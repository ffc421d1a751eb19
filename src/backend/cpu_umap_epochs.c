/* Each rank moves its own points; all positions are gathered after each turn (a quarter of
 * an epoch, mt_umap_turn). In a turn the other points stand where the turn before left them:
 * a place is never written while another point reads it. A point adds up pulls along its
 * edges, read from where it stands (again after every few of them), and is pushed off random
 * points from where it has got to, one after the other, so that pushes cannot add up to more
 * than they would in umap-learn's loop. */
#include "backend/backend.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/random.h"
#include "umap/formulas.h"
#include "umap/umap.h"

#include <stdlib.h>
#include <string.h>

enum { STOP_EVERY = 16 }; /* epochs between two looks at the stop flag */

/* This rank's edges, each point's sorted by turn. */
typedef struct {
  int64_t *first;  /* (local x turns + 1) where a point's edges of a turn begin */
  int64_t *others; /* the other ends */
  float *shares;   /* weight over the heaviest */
} mt_turns;

/* What is the same for all points in a turn. */
typedef struct {
  int64_t n, first, local, dims;
  mt_turns edges;
  const float *positions; /* (n, dims) that the turn before left */
  int64_t epoch;
  int turn;
  float a, b, strength, alpha;
  int64_t negatives; /* for each edge that acts */
  uint32_t seed;
} mt_epoch;

static void turns_destroy(mt_turns *turns)
{
  free(turns->first);
  free(turns->others);
  free(turns->shares);
}

static mt_status turns_create(const mt_graph *graph, float heaviest, mt_turns *turns)
{
  mt_status status = MT_OK;
  int64_t at = 0;
  MT_NEW(turns->first, graph->local * MT_UMAP_TURNS + 1);
  MT_NEW(turns->others, graph->indptr[graph->local]);
  MT_NEW(turns->shares, graph->indptr[graph->local]);
  for (int64_t i = 0; i < graph->local; i++)
    for (int turn = 0; turn < MT_UMAP_TURNS; turn++) {
      for (int64_t e = graph->indptr[i]; e < graph->indptr[i + 1]; e++) {
        if (mt_umap_turn(graph->first + i, graph->indices[e]) != turn) continue;
        turns->others[at] = graph->indices[e];
        turns->shares[at++] = graph->weights[e] / heaviest;
      }
      turns->first[i * MT_UMAP_TURNS + turn + 1] = at;
    }
done:
  return status;
}

static inline float squared_distance(int64_t dims, const float *x, const float *y)
{
  float sum = 0.0f;
  for (int64_t c = 0; c < dims; c++) sum += (x[c] - y[c]) * (x[c] - y[c]);
  return sum;
}

/* `to` goes along the difference of `from` and `other`; from may be to. */
static inline void add_move(int64_t dims, float gradient, float rate, const float *from,
                            const float *other, float *to)
{
  for (int64_t c = 0; c < dims; c++)
    to[c] += rate * mt_umap_clip(gradient * (from[c] - other[c]));
}

/* The point's draw-th random point of this turn; two come out of a block of words. */
static inline int64_t draw_point(const mt_epoch *now, int64_t point, int64_t draw,
                                 uint32_t words[4])
{
  if (draw % 2 == 0)
    mt_random_words(now->seed, MT_STREAM_UMAP_NEGATIVE, (uint64_t)point,
                    (uint32_t)(now->epoch * MT_UMAP_TURNS + now->turn),
                    (uint32_t)(draw / 2), words);
  const uint32_t *pair = words + draw % 2 * 2;
  return mt_random_below_of(pair[0], pair[1], now->n);
}

/* Pushes `to` off as many random points as an acting edge brings. */
static inline void push_point(const mt_epoch *now, int64_t dims, int64_t point,
                              int64_t *draws, uint32_t words[4], float *to)
{
  for (int64_t s = 0; s < now->negatives; s++) {
    int64_t stranger = draw_point(now, point, (*draws)++, words);
    if (stranger == point) continue;
    const float *other = now->positions + stranger * dims;
    float squared = squared_distance(dims, to, other);
    add_move(dims, mt_umap_push(squared, now->a, now->b, now->strength), now->alpha, to,
             other, to);
  }
}

/* to: the place of this rank's i-th point, which moves. from: (dims) for its use. The turn's
 * copies are of the edges that begin here, then of those whose copy from here is two turns
 * away: their other ends bring the random points. */
static inline void move_point(const mt_epoch *now, int64_t dims, int64_t i, float *from,
                              float *to)
{
  int64_t draws = 0, acting = 0;
  uint32_t words[4];
  for (int side = 0; side < 2; side++) {
    int turn = (now->turn + side * MT_UMAP_TURNS / 2) % MT_UMAP_TURNS;
    const int64_t *edges = now->edges.first + i * MT_UMAP_TURNS + turn;
    for (int64_t e = edges[0]; e < edges[1]; e++) {
      if (!mt_umap_acts(now->edges.shares[e], now->epoch)) continue;
      if (acting++ % MT_UMAP_PULLS == 0) memcpy(from, to, (size_t)dims * sizeof *from);
      const float *other = now->positions + now->edges.others[e] * dims;
      float pull = mt_umap_pull(squared_distance(dims, from, other), now->a, now->b);
      add_move(dims, pull, now->alpha, from, other, to);
      if (side == 0) push_point(now, dims, now->first + i, &draws, words, to);
    }
  }
}

/* next, from: (local, dims); next: where this rank's points go. */
static void run_turn(const mt_epoch *now, float *from, float *next)
{
  const float *own = now->positions + now->first * now->dims;
  int64_t dims = now->dims;
  memcpy(next, own, (size_t)(now->local * dims) * sizeof *next);
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t i = 0; i < now->local; i++) {
    if (dims == 2) /* known when compiling: faster */
      move_point(now, 2, i, from + i * 2, next + i * 2);
    else
      move_point(now, dims, i, from + i * dims, next + i * dims);
  }
}

static mt_status run_epochs(const mt_comm *comm, const mt_umap_options *options,
                            int64_t n_epochs, mt_epoch *now, float *next,
                            float *positions)
{
  mt_status status = MT_OK;
  size_t row_bytes = (size_t)now->dims * sizeof *next;
  float *own = positions + now->first * now->dims;
  for (now->epoch = 0; now->epoch < n_epochs; now->epoch++) {
    MT_TRY(now->epoch % STOP_EVERY == 0 && mt_stop_agreed(comm) ? MT_STOPPED : MT_OK);
    now->alpha = mt_umap_alpha(options->learning_rate, now->epoch, n_epochs);
    for (now->turn = 0; now->turn < MT_UMAP_TURNS; now->turn++) {
      run_turn(now, next + now->local * now->dims, next);
      memcpy(own, next, (size_t)now->local * row_bytes);
      MT_TRY(mt_allgather_rows(comm, now->n, row_bytes, positions));
    }
    mt_progress_update(now->epoch + 1);
  }
done:
  return status;
}

mt_status mt_cpu_umap_epochs(mt_backend *be, const mt_comm *comm,
                             const mt_umap_options *options, const mt_graph *graph,
                             float *positions)
{
  mt_status status = MT_OK;
  int64_t n_epochs = mt_umap_n_epochs(options, graph->n);
  mt_epoch now = {.n = graph->n,
                  .first = graph->first,
                  .local = graph->local,
                  .dims = options->n_components,
                  .positions = positions,
                  .strength = (float)options->repulsion_strength,
                  .negatives = options->negative_sample_rate,
                  .seed = (uint32_t)options->random_state};
  float *next = NULL, heaviest = 0.0f;
  double a, b;
  (void)be;

  mt_umap_ab(options, &a, &b);
  now.a = (float)a;
  now.b = (float)b;
  MT_TRY(mt_graph_heaviest(comm, graph, &heaviest));
  MT_TRY(mt_agree(comm, turns_create(graph, heaviest, &now.edges)));
  MT_TRY(
      mt_agree(comm, mt_memory_new(2 * now.local * now.dims, sizeof *next,
                                   "new positions and room to work", (void **)&next)));
  mt_progress_begin(comm->rank, "umap", n_epochs);
  status = run_epochs(comm, options, n_epochs, &now, next, positions);
  mt_progress_end();
done:
  turns_destroy(&now.edges);
  free(next);
  return status;
}
