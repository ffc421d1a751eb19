/* Each rank moves its own points; all positions are gathered after each epoch. A point goes
 * through its edges one after the other and moves with each, as umap-learn's do, while the
 * others stand where the epoch before left them: a sum of all pulls at once overshoots and
 * was seen to lose 0.01 of trustworthiness on graphs with hubs. Both copies of an edge act on
 * both ends in umap-learn: hence twice the pull. */
#include "backend/backend.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/random.h"
#include "umap/formulas.h"
#include "umap/umap.h"

#include <stdlib.h>
#include <string.h>

enum { STOP_EVERY = 16 }; /* epochs between two looks at the stop flag */

/* What is the same for all points of an epoch. */
typedef struct {
  const mt_graph *graph;
  const float *positions; /* of the epoch before */
  int64_t dims, epoch;
  float heaviest, a, b, strength, alpha;
  int64_t negatives; /* for each edge that acts */
  uint32_t seed;
} mt_epoch;

static inline float squared_distance(int64_t dims, const float *x, const float *y)
{
  float sum = 0.0f;
  for (int64_t c = 0; c < dims; c++) sum += (x[c] - y[c]) * (x[c] - y[c]);
  return sum;
}

static inline void move(int64_t dims, float gradient, float rate, const float *other, float *x)
{
  for (int64_t c = 0; c < dims; c++)
    x[c] += rate * mt_umap_clip(gradient * (x[c] - other[c]));
}

/* The point's draw-th random point of this epoch; two come out of a block of words. */
static inline int64_t draw_point(const mt_epoch *now, int64_t point, int64_t draw,
                                 uint32_t words[4])
{
  if (draw % 2 == 0)
    mt_random_words(now->seed, MT_STREAM_UMAP_NEGATIVE, (uint64_t)point,
                    (uint32_t)now->epoch, (uint32_t)(draw / 2), words);
  const uint32_t *pair = words + draw % 2 * 2;
  return mt_random_below_of(pair[0], pair[1], now->graph->n);
}

static inline void move_point(const mt_epoch *now, int64_t dims, int64_t i, float *x)
{
  const mt_graph *graph = now->graph;
  int64_t point = graph->first + i, draws = 0;
  uint32_t words[4];
  for (int64_t e = graph->indptr[i]; e < graph->indptr[i + 1]; e++) {
    if (!mt_umap_acts(graph->weights[e] / now->heaviest, now->epoch)) continue;
    const float *other = now->positions + graph->indices[e] * dims;
    float pull = mt_umap_pull(squared_distance(dims, x, other), now->a, now->b);
    move(dims, pull, 2.0f * now->alpha, other, x);
    for (int64_t s = 0; s < now->negatives; s++, draws++) {
      int64_t stranger = draw_point(now, point, draws, words);
      if (stranger == point) continue;
      other = now->positions + stranger * dims;
      float squared = squared_distance(dims, x, other);
      move(dims, mt_umap_push(squared, now->a, now->b, now->strength), now->alpha, other, x);
    }
  }
}

/* next: (local, dims) new positions of this rank's points. */
static void run_epoch(const mt_epoch *now, float *next)
{
  const float *own = now->positions + now->graph->first * now->dims;
  int64_t local = now->graph->local, dims = now->dims;
  memcpy(next, own, (size_t)(local * dims) * sizeof *next);
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t i = 0; i < local; i++) {
    if (dims == 2) /* known when compiling: twice as fast */
      move_point(now, 2, i, next + i * 2);
    else
      move_point(now, dims, i, next + i * dims);
  }
}

static mt_status run_epochs(const mt_comm *comm, const mt_umap_options *options,
                            int64_t n_epochs, const size_t *bytes, mt_epoch *now,
                            float *next, float *positions)
{
  float *own = positions + now->graph->first * now->dims;
  for (now->epoch = 0; now->epoch < n_epochs; now->epoch++) {
    if (now->epoch % STOP_EVERY == 0 && mt_stop_agreed(comm)) return MT_STOPPED;
    now->alpha = mt_umap_alpha(options->learning_rate, now->epoch, n_epochs);
    run_epoch(now, next);
    memcpy(own, next, bytes[comm->rank]);
    mt_allgatherv(comm, bytes, positions);
    mt_progress_update(now->epoch + 1);
  }
  return MT_OK;
}

static mt_status make_room(const mt_comm *comm, int64_t n, int64_t dims, size_t **bytes_out,
                           float **next_out)
{
  mt_status status = MT_OK;
  size_t *bytes = NULL;
  MT_NEW(bytes, comm->size);
  MT_TRY(mt_memory_new(mt_part_count(n, comm->size, comm->rank) * dims, sizeof(float),
                       "new positions", (void **)next_out));
  for (int r = 0; r < comm->size; r++)
    bytes[r] = (size_t)(mt_part_count(n, comm->size, r) * dims) * sizeof(float);
  *bytes_out = bytes;
  bytes = NULL;
done:
  free(bytes);
  return status;
}

mt_status mt_cpu_umap_epochs(mt_backend *be, const mt_comm *comm,
                             const mt_umap_options *options, const mt_graph *graph,
                             float *positions)
{
  mt_status status = MT_OK;
  int64_t n_epochs = mt_umap_n_epochs(options, graph->n);
  mt_epoch now = {.graph = graph, .positions = positions, .dims = options->n_components,
                  .strength = (float)options->repulsion_strength,
                  .negatives = options->negative_sample_rate,
                  .seed = (uint32_t)options->random_state};
  size_t *bytes = NULL;
  float *next = NULL;
  double a, b;
  (void)be;

  mt_umap_ab(options, &a, &b);
  now.a = (float)a;
  now.b = (float)b;
  MT_TRY(mt_graph_heaviest(comm, graph, &now.heaviest));
  MT_TRY(mt_agree(comm, make_room(comm, graph->n, now.dims, &bytes, &next)));
  mt_progress_begin(comm->rank, "umap", n_epochs);
  status = run_epochs(comm, options, n_epochs, bytes, &now, next, positions);
  mt_progress_end();
done:
  free(bytes);
  free(next);
  return status;
}
