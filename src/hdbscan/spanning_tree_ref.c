#include "hdbscan/hdbscan.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

/* The k-th smallest squared distance from point i to another; nearest: (k). */
static double core2_of(int64_t n, int64_t d, const float *points, int64_t i, int64_t k,
                       double *nearest)
{
  for (int64_t j = 0; j < k; j++) nearest[j] = INFINITY;
  for (int64_t j = 0; j < n; j++) {
    double value = mt_distance2(d, points + i * d, points + j * d);
    if (j == i || value >= nearest[k - 1]) continue;
    int64_t at = k - 1;
    for (; at > 0 && nearest[at - 1] > value; at--) nearest[at] = nearest[at - 1];
    nearest[at] = value;
  }
  return nearest[k - 1];
}

typedef struct prim {
  bool *in_tree;  /* (n) */
  double *weight; /* (n) squared, of the best edge to the tree */
  int64_t *from;  /* (n) its end in the tree */
} prim;

/* Measures everyone outside against the newest member; the nearest one outside. */
static int64_t prim_step(int64_t n, int64_t d, const float *points, const double *core2,
                         double scale, int64_t newest, prim *state)
{
  int64_t next = -1;
  for (int64_t j = 0; j < n; j++) {
    if (state->in_tree[j]) continue;
    double reach =
        mt_reach2(core2[newest], core2[j],
                  mt_distance2(d, points + newest * d, points + j * d), scale);
    if (reach < state->weight[j]) state->weight[j] = reach, state->from[j] = newest;
    if (next < 0 || state->weight[j] < state->weight[next]) next = j;
  }
  return next;
}

static void prim_run(int64_t n, int64_t d, const float *points, const double *core2,
                     double scale, prim *state, mt_edge *tree_out)
{
  for (int64_t i = 0; i < n; i++) state->weight[i] = INFINITY;
  for (int64_t i = 0, newest = 0; i < n - 1; i++) {
    state->in_tree[newest] = true;
    newest = prim_step(n, d, points, core2, scale, newest, state);
    int64_t from = state->from[newest];
    tree_out[i] = (mt_edge){.a = from < newest ? from : newest,
                            .b = from < newest ? newest : from,
                            .weight = sqrt(state->weight[newest])};
  }
}

mt_status mt_spanning_tree_ref(const mt_hdbscan_options *options, int64_t n, int64_t d,
                               const float *points, mt_edge *tree_out, double *core_out)
{
  mt_status status = MT_OK;
  prim state = {0};
  double *core2 = NULL, *nearest = NULL;

  MT_REQUIRE(n >= 2 && d >= 1 && options->min_samples >= 1 && options->alpha > 0.0,
             MT_ERR_ARG, "spanning tree: n, d, min_samples or alpha out of range");
  int64_t k = options->min_samples < n - 1 ? options->min_samples : n - 1;
  MT_NEW(nearest, k);
  MT_NEW(core2, n);
  MT_NEW(state.in_tree, n);
  MT_NEW(state.weight, n);
  MT_NEW(state.from, n);
  for (int64_t i = 0; i < n; i++) core2[i] = core2_of(n, d, points, i, k, nearest);
  prim_run(n, d, points, core2, 1.0 / (options->alpha * options->alpha), &state,
           tree_out);
  MT_TRY(mt_edges_sort(n - 1, tree_out));
  for (int64_t i = 0; i < n && core_out != NULL; i++) core_out[i] = sqrt(core2[i]);
done:
  free(nearest);
  free(core2);
  free(state.in_tree);
  free(state.weight);
  free(state.from);
  return status;
}
