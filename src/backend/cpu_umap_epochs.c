/* Each rank moves its own points (umap/kernel.h); all positions are gathered after each turn
 * (a quarter of an epoch, mt_umap_turn): a turn reads one copy of them and writes the other. */
#include "backend/backend.h"
#include "base/memory.h"
#include "base/progress.h"
#include "umap/kernel.h"
#include "umap/umap.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum {
  STOP_EVERY = 16,   /* epochs between two looks at the stop flag */
  LEAST_CHUNK = 256, /* points: fewer fill a vector's lanes badly */
  CHUNKS = 8         /* for each thread, if there are points enough */
};

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
  MT_NEW(turns->others, graph->indptr[graph->local] + MT_UMAP_SPARE);
  MT_NEW(turns->shares, graph->indptr[graph->local] + MT_UMAP_SPARE);
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

/* What a rank's threads move its points with. */
typedef struct {
  mt_moment now;
  const mt_umap_kernel *kernel;
  int threads;
  int64_t chunk;        /* points that a thread takes at a time */
  mt_umap_room **rooms; /* (threads) */
  float *places, *next; /* (n, dims) of this turn, of the next one */
} mt_epochs;

static void epochs_destroy(mt_epochs *e)
{
  turns_destroy(&e->now.edges);
  for (int t = 0; e->rooms != NULL && t < e->threads; t++)
    mt_umap_room_free(e->rooms[t]);
  free(e->rooms);
  free(e->places);
  free(e->next);
}

static int64_t choose_chunk(int64_t points, int threads)
{
  int64_t chunk = points / ((int64_t)threads * CHUNKS) + 1;
  if (chunk < LEAST_CHUNK) return LEAST_CHUNK;
  return chunk < MT_UMAP_CHUNK ? chunk : MT_UMAP_CHUNK;
}

static mt_status epochs_create(const mt_graph *graph, float heaviest, mt_epochs *e)
{
  mt_status status = MT_OK;
  e->kernel = mt_umap_kernel_find(NULL, e->now.n, e->now.dims);
  e->threads = omp_get_max_threads();
  e->chunk = choose_chunk(graph->local, e->threads);
  MT_TRY(turns_create(graph, heaviest, &e->now.edges));
  MT_NEW(e->places, graph->n * e->now.dims);
  MT_NEW(e->next, graph->n * e->now.dims);
  MT_NEW(e->rooms, e->threads);
  for (int t = 0; t < e->threads; t++)
    MT_TRY(mt_umap_room_new(&e->now.edges, e->now.dims, e->chunk, &e->rooms[t]));
done:
  return status;
}

/* This rank's points, then all: places are the turn's again. */
static mt_status run_turn(const mt_comm *comm, mt_epochs *e)
{
  mt_status status = MT_OK;
  int64_t points = e->now.edges.points, dims = e->now.dims;
  float *own = e->next + e->now.first * dims, *places = e->places;
  e->now.positions = e->places;
#pragma omp parallel for schedule(dynamic) num_threads(e->threads)
  for (int64_t i = 0; i < points; i += e->chunk) {
    int64_t count = points - i < e->chunk ? points - i : e->chunk;
    e->kernel->move(&e->now, e->rooms[omp_get_thread_num()], i, count, own);
  }
  MT_TRY(mt_allgather_rows(comm, e->now.n, (size_t)dims * sizeof *own, e->next));
  e->places = e->next;
  e->next = places;
done:
  return status;
}

static mt_status run_epochs(const mt_comm *comm, const mt_umap_options *options,
                            int64_t n_epochs, mt_epochs *e)
{
  mt_status status = MT_OK;
  for (int64_t epoch = 0; epoch < n_epochs; epoch++) {
    MT_TRY(epoch % STOP_EVERY == 0 && mt_stop_agreed(comm) ? MT_STOPPED : MT_OK);
    e->now.epoch = epoch;
    e->now.alpha = mt_umap_alpha(options->learning_rate, epoch, n_epochs);
    for (int turn = 0; turn < MT_UMAP_TURNS; turn++) {
      e->now.turn = turn;
      MT_TRY(run_turn(comm, e));
    }
    mt_progress_update(epoch + 1);
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
  mt_epochs e = {.now = mt_umap_first_moment(options, graph->n, graph->first)};
  size_t bytes = (size_t)(graph->n * options->n_components) * sizeof *positions;
  float heaviest = 0.0f;
  (void)be;

  MT_TRY(mt_graph_heaviest(comm, graph, &heaviest));
  MT_TRY(mt_agree(comm, epochs_create(graph, heaviest, &e)));
  memcpy(e.places, positions, bytes);
  mt_progress_begin(comm->rank, "umap", n_epochs);
  status = run_epochs(comm, options, n_epochs, &e);
  mt_progress_end();
  memcpy(positions, e.places, bytes);
done:
  epochs_destroy(&e);
  return status;
}
