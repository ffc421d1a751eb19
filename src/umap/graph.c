#include "base/memory.h"
#include "base/search.h"
#include "umap/umap.h"

#include <stdlib.h>
#include <string.h>

void mt_graph_destroy(mt_graph *graph)
{
  free(graph->indptr);
  free(graph->indices);
  free(graph->weights);
  *graph = (mt_graph){0};
}

int64_t mt_umap_n_epochs(const mt_umap_options *options, int64_t n)
{
  if (options->n_epochs > 0) return options->n_epochs;
  return n <= 10000 ? 500 : 200;
}

mt_status mt_graph_heaviest(const mt_comm *comm, const mt_graph *graph,
                            float *heaviest_out)
{
  double most = 0.0;
  for (int64_t e = 0; e < graph->indptr[graph->local]; e++)
    if (graph->weights[e] > most) most = graph->weights[e];
  mt_status status = mt_max_f64(comm, 1, &most);
  *heaviest_out = (float)most;
  return status;
}

float mt_umap_least(int64_t n, int64_t n_epochs, float heaviest)
{
  mt_umap_options automatic = {.n_epochs = 0};
  if (n_epochs <= 10) n_epochs = mt_umap_n_epochs(&automatic, n);
  return (float)(heaviest / (double)n_epochs);
}

mt_status mt_graph_prune(const mt_comm *comm, int64_t n_epochs, mt_graph *graph)
{
  mt_status status = MT_OK;
  float heaviest = 0.0f;
  int64_t kept = 0, at = 0;

  MT_TRY(mt_graph_heaviest(comm, graph, &heaviest));
  float least = mt_umap_least(graph->n, n_epochs, heaviest);
  for (int64_t i = 0; i < graph->local; i++) {
    for (; at < graph->indptr[i + 1]; at++) {
      if (graph->weights[at] < least) continue;
      graph->indices[kept] = graph->indices[at];
      graph->weights[kept++] = graph->weights[at];
    }
    graph->indptr[i + 1] = kept;
  }
done:
  return status;
}

/* ---- components: union-find on each rank, labels agreed by their least --------------- */

/* The lower root becomes the root. */
static void join(int64_t *parent, int64_t i, int64_t j)
{
  i = mt_root_of(parent, i);
  j = mt_root_of(parent, j);
  if (i < j) parent[j] = i;
  if (j < i) parent[i] = j;
}

/* One round: joins this rank's edges, then takes every vertex' lowest root over the ranks.
 * What a rank knows of old roots is not lost: it joins its edges again in each round. */
static mt_status join_edges(const mt_comm *comm, const mt_graph *graph, int64_t *roots,
                            int64_t *changed_out)
{
  int64_t changed = 0;
  for (int64_t i = 0; i < graph->local; i++)
    for (int64_t e = graph->indptr[i]; e < graph->indptr[i + 1]; e++) {
      int64_t a = mt_root_of(roots, graph->first + i),
              b = mt_root_of(roots, graph->indices[e]);
      if (a == b) continue;
      join(roots, a, b);
      changed = 1;
    }
  for (int64_t i = 0; i < graph->n; i++) roots[i] = mt_root_of(roots, i);
  mt_status status = mt_max_i64(comm, 1, &changed);
  if (status == MT_OK && changed && comm->size > 1)
    status = mt_min_i64(comm, graph->n, roots);
  *changed_out = changed;
  return status;
}

/* Lowest vertex of each part to 0, 1, ... */
static int64_t number_roots(int64_t n, int64_t *labels)
{
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) /* a root comes before its vertices */
    labels[i] = labels[i] == i ? count++ : labels[labels[i]];
  return count;
}

mt_status mt_graph_components(const mt_comm *comm, const mt_graph *graph,
                              int64_t *labels_out, int64_t *count_out)
{
  mt_status status = MT_OK;
  int64_t changed = 1;
  for (int64_t i = 0; i < graph->n; i++) labels_out[i] = i;
  while (changed) MT_TRY(join_edges(comm, graph, labels_out, &changed));
  *count_out = number_roots(graph->n, labels_out);
done:
  return status;
}
