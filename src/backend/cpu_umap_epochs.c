/* Each rank moves its own points (umap/move.h); all positions are gathered after each turn
 * (a quarter of an epoch, mt_umap_turn): a place is never written while another point reads
 * it. */
#include "backend/backend.h"
#include "base/memory.h"
#include "base/progress.h"
#include "umap/move.h"
#include "umap/umap.h"

#include <stdlib.h>
#include <string.h>

enum { STOP_EVERY = 16 }; /* epochs between two looks at the stop flag */

static void turns_destroy(mt_turns *turns)
{
  free(turns->first);
  free(turns->others);
  free(turns->shares);
}

static mt_status turns_create(const mt_graph *graph, float heaviest, mt_turns *turns)
{
  mt_status status = MT_OK;
  int64_t at = 0, row = 0;
  turns->points = graph->local;
  MT_NEW(turns->first, graph->local * MT_UMAP_TURNS + 1);
  MT_NEW(turns->others, graph->indptr[graph->local]);
  MT_NEW(turns->shares, graph->indptr[graph->local]);
  for (int turn = 0; turn < MT_UMAP_TURNS; turn++)
    for (int64_t i = 0; i < graph->local; i++) {
      for (int64_t e = graph->indptr[i]; e < graph->indptr[i + 1]; e++) {
        if (mt_umap_turn(graph->first + i, graph->indices[e]) != turn) continue;
        turns->others[at] = graph->indices[e];
        turns->shares[at++] = graph->weights[e] / heaviest;
      }
      turns->first[++row] = at;
    }
done:
  return status;
}

/* next, from: (points, dims); next: where this rank's points go. */
static void run_turn(const mt_moment *now, float *from, float *next)
{
  const float *own = now->positions + now->first * now->dims;
  int64_t dims = now->dims, points = now->edges.points;
  memcpy(next, own, (size_t)(points * dims) * sizeof *next);
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t i = 0; i < points; i++) {
    if (dims == 2) /* known when compiling: faster */
      mt_umap_move_point(now, 2, i, from + i * 2, next + i * 2);
    else
      mt_umap_move_point(now, dims, i, from + i * dims, next + i * dims);
  }
}

static mt_status run_epochs(const mt_comm *comm, const mt_umap_options *options,
                            int64_t n_epochs, mt_moment *now, float *next,
                            float *positions)
{
  mt_status status = MT_OK;
  size_t row_bytes = (size_t)now->dims * sizeof *next;
  int64_t points = now->edges.points;
  float *own = positions + now->first * now->dims;
  for (now->epoch = 0; now->epoch < n_epochs; now->epoch++) {
    MT_TRY(now->epoch % STOP_EVERY == 0 && mt_stop_agreed(comm) ? MT_STOPPED : MT_OK);
    now->alpha = mt_umap_alpha(options->learning_rate, now->epoch, n_epochs);
    for (now->turn = 0; now->turn < MT_UMAP_TURNS; now->turn++) {
      run_turn(now, next + points * now->dims, next);
      memcpy(own, next, (size_t)points * row_bytes);
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
  mt_moment now = mt_umap_first_moment(options, graph->n, graph->first);
  float *next = NULL, heaviest = 0.0f;
  (void)be;

  now.positions = positions;
  MT_TRY(mt_graph_heaviest(comm, graph, &heaviest));
  MT_TRY(mt_agree(comm, turns_create(graph, heaviest, &now.edges)));
  MT_TRY(
      mt_agree(comm, mt_memory_new(2 * graph->local * now.dims, sizeof *next,
                                   "new positions and room to work", (void **)&next)));
  mt_progress_begin(comm->rank, "umap", n_epochs);
  status = run_epochs(comm, options, n_epochs, &now, next, positions);
  mt_progress_end();
done:
  turns_destroy(&now.edges);
  free(next);
  return status;
}
