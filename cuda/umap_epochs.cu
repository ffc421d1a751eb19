/* The epochs on GPUs: a thread moves a point (umap/move.h). Two places for each: the turn
 * reads one and writes the other. */
#include "umap_parts.h"

extern "C" {
#include "base/progress.h"
}

enum { STOP_EVERY = 16 }; /* epochs between two looks at the stop flag */

struct mt_gpu_turns {
  mt_array<int64_t> first, others;
  mt_array<float> shares;
};

/* The edges of each turn and point, in the order of the graph (mt_turns). */
static mt_status make_turns(mt_gpu *gpu, const mt_gpu_graph *graph, float heaviest,
                            mt_gpu_turns *turns)
{
  mt_array<int32_t> counts;
  const int64_t points = graph->local, first = graph->first;
  MT_PASS(counts.make(gpu, points * MT_UMAP_TURNS, "edges of each turn"));
  MT_PASS(turns->first.make(gpu, points * MT_UMAP_TURNS + 1, "turns"));
  MT_PASS(turns->others.make(gpu, graph->edges, "edges by turn"));
  MT_PASS(turns->shares.make(gpu, graph->edges, "shares by turn"));
  const int64_t *indptr = graph->indptr.data;
  const int32_t *indices = graph->indices.data;
  const float *weights = graph->weights.data;
  int32_t *count = counts.data;
  const int64_t *begin = turns->first.data;
  int64_t *others = turns->others.data;
  float *shares = turns->shares.data;
  MT_PASS(mt_gpu_each(gpu, points * MT_UMAP_TURNS, [=] __device__(int64_t at) {
    int turn = (int)(at / points);
    int64_t i = at % points;
    int32_t found = 0;
    for (int64_t e = indptr[i]; e < indptr[i + 1]; e++)
      found += mt_umap_turn(first + i, indices[e]) == turn;
    count[at] = found;
  }));
  MT_PASS(mt_gpu_scan(gpu, points * MT_UMAP_TURNS, counts.data, turns->first.data));
  return mt_gpu_each(gpu, points * MT_UMAP_TURNS, [=] __device__(int64_t at) {
    int turn = (int)(at / points);
    int64_t i = at % points, to = begin[at];
    for (int64_t e = indptr[i]; e < indptr[i + 1]; e++) {
      if (mt_umap_turn(first + i, indices[e]) != turn) continue;
      others[to] = indices[e];
      shares[to++] = weights[e] / heaviest;
    }
  });
}

/* next: (n, dims), this GPU's rows of which are written. from: (points, dims) for its use. */
static mt_status run_turn(mt_gpu *gpu, const mt_moment *now, float *from, float *next)
{
  const mt_moment moment = *now;
  const int64_t dims = now->dims;
  const float *own = now->positions + now->first * dims;
  float *own_next = next + now->first * dims;
  if (dims == 2) /* known when compiling: the places stay in registers */
    return mt_gpu_each(gpu, now->edges.points, [=] __device__(int64_t i) {
      float read[2] = {}, to[2] = {own[2 * i], own[2 * i + 1]};
      mt_umap_move_point(&moment, 2, i, read, to);
      own_next[2 * i] = to[0];
      own_next[2 * i + 1] = to[1];
    });
  return mt_gpu_each(gpu, now->edges.points, [=] __device__(int64_t i) {
    float *to = own_next + i * dims;
    for (int64_t c = 0; c < dims; c++) to[c] = own[i * dims + c];
    mt_umap_move_point(&moment, dims, i, from + i * dims, to);
  });
}

static mt_status run_epoch(mt_gpu *gpu, const mt_comm *comm, mt_moment *now,
                           float *from, mt_array<float> *places, mt_array<float> *next)
{
  for (now->turn = 0; now->turn < MT_UMAP_TURNS; now->turn++) {
    now->positions = places->data;
    MT_PASS(run_turn(gpu, now, from, next->data));
    MT_PASS(mt_gpu_allgather_rows(gpu, comm, now->n, now->dims * (int64_t)sizeof(float),
                                  next->data));
    places->swap(*next);
  }
  return MT_OK;
}

static mt_status run_epochs(mt_gpu *gpu, const mt_comm *comm,
                            const mt_umap_options *options, mt_moment *now, float *from,
                            mt_array<float> *places, mt_array<float> *next)
{
  const int64_t n_epochs = mt_umap_n_epochs(options, now->n);
  for (now->epoch = 0; now->epoch < n_epochs; now->epoch++) {
    if (now->epoch % STOP_EVERY == 0) {
      MT_PASS(mt_gpu_wait(gpu));
      if (mt_stop_agreed(comm)) return MT_STOPPED;
      mt_progress_update(now->epoch);
    }
    now->alpha = mt_umap_alpha(options->learning_rate, now->epoch, n_epochs);
    MT_PASS(run_epoch(gpu, comm, now, from, places, next));
  }
  return MT_OK;
}

/* Everything that the epochs need on this GPU. */
static mt_status set_up(mt_gpu *gpu, const mt_gpu_graph *graph, float heaviest,
                        const float *positions, mt_moment *now, mt_gpu_turns *turns,
                        mt_array<float> *places, mt_array<float> *next,
                        mt_array<float> *from)
{
  MT_PASS(make_turns(gpu, graph, heaviest, turns));
  MT_PASS(places->make(gpu, graph->n * now->dims, "positions"));
  MT_PASS(next->make(gpu, graph->n * now->dims, "new positions"));
  if (now->dims != 2)
    MT_PASS(from->make(gpu, graph->local * now->dims, "room to work"));
  MT_PASS(mt_to_device(gpu, graph->n * now->dims, positions, places->data));
  now->edges.points = graph->local;
  now->edges.first = turns->first.data;
  now->edges.others = turns->others.data;
  now->edges.shares = turns->shares.data;
  return MT_OK;
}

mt_status mt_gpu_epochs(mt_gpu *gpu, const mt_comm *comm,
                        const mt_umap_options *options, const mt_gpu_graph *graph,
                        float *positions)
{
  mt_moment now = mt_umap_first_moment(options, graph->n, graph->first);
  mt_gpu_turns turns;
  mt_array<float> places, next, from;
  float heaviest = 0.0f;
  MT_PASS(mt_gpu_graph_heaviest(gpu, comm, graph, &heaviest));
  MT_PASS(mt_agree(comm, set_up(gpu, graph, heaviest, positions, &now, &turns, &places,
                                &next, &from)));
  mt_progress_begin(comm->rank, "umap", mt_umap_n_epochs(options, graph->n));
  mt_status status = run_epochs(gpu, comm, options, &now, from.data, &places, &next);
  mt_progress_end();
  MT_PASS(mt_agree(comm, status));
  return mt_agree(comm, mt_to_host(gpu, graph->n * now.dims, places.data, positions));
}
