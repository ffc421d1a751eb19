#include "hdbscan/hdbscan.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void mt_condensed_tree_destroy(mt_condensed_tree *tree)
{
  free(tree->parent);
  free(tree->child);
  free(tree->lambda);
  free(tree->child_size);
  memset(tree, 0, sizeof *tree);
}

double mt_lambda_of_zero(double smallest, double largest)
{
  if (largest == 0.0) return 1.0;
  double nearest = 1.0 / smallest, step = 0x1p24 / largest;
  return 2.0 * (nearest > step ? nearest : step);
}

static int64_t size_of(int64_t n, const mt_merge *merges, int64_t node)
{
  return node < n ? 1 : merges[node - n].size;
}

/* The points so ordered that those below any node are contiguous: from start[node] on. */
static void order_points(int64_t n, const mt_merge *merges, int64_t *start,
                         int64_t *order)
{
  start[2 * n - 2] = 0;
  for (int64_t i = n - 2; i >= 0; i--) {
    int64_t left = merges[i].left, right = merges[i].right;
    start[left] = start[n + i];
    start[right] = start[n + i] + size_of(n, merges, left);
  }
  for (int64_t i = 0; i < n; i++) order[start[i]] = i;
}

static void add_row(mt_condensed_tree *tree, int64_t parent, int64_t child,
                    double lambda, int64_t size)
{
  int64_t row = tree->n_rows++;
  tree->parent[row] = parent;
  tree->child[row] = child;
  tree->lambda[row] = lambda;
  tree->child_size[row] = size;
}

/* What one pass over the dendrogram needs. */
typedef struct walk {
  const mt_merge *merges;
  int64_t min_size;
  double lambda_of_zero;
  int64_t *start, *order; /* see order_points */
  int64_t *queue;         /* (n) merges still to split, as nodes */
  int64_t *cluster;       /* (n) the cluster each queued one is in */
  int64_t head, tail;
} walk;

static void enqueue(walk *w, int64_t node, int64_t cluster)
{
  w->queue[w->tail] = node;
  w->cluster[w->tail++] = cluster;
}

/* A side of a split: a new cluster, the cluster going on, or points that fall out. */
static void follow(walk *w, mt_condensed_tree *tree, int64_t node, int64_t size,
                   bool other_is_large, int64_t cluster, double lambda)
{
  if (size < w->min_size) {
    for (int64_t i = 0; i < size; i++)
      add_row(tree, cluster, w->order[w->start[node] + i], lambda, 1);
    return;
  }
  if (other_is_large) {
    int64_t born = tree->n + tree->n_clusters++;
    add_row(tree, cluster, born, lambda, size);
    cluster = born;
  }
  enqueue(w, node, cluster); /* never a point: min_size >= 2 */
}

static void condense(walk *w, mt_condensed_tree *tree)
{
  int64_t n = tree->n;
  tree->n_clusters = 1;
  enqueue(w, 2 * n - 2, n);
  while (w->head < w->tail) {
    int64_t cluster = w->cluster[w->head];
    const mt_merge *merge = &w->merges[w->queue[w->head++] - n];
    int64_t left = size_of(n, w->merges, merge->left), right = merge->size - left;
    double lambda = merge->distance > 0.0 ? 1.0 / merge->distance : w->lambda_of_zero;
    follow(w, tree, merge->left, left, right >= w->min_size, cluster, lambda);
    follow(w, tree, merge->right, right, left >= w->min_size, cluster, lambda);
  }
}

mt_status mt_condense(int64_t n, const mt_merge *merges, int64_t min_cluster_size,
                      double lambda_of_zero, mt_condensed_tree *tree_out)
{
  mt_status status = MT_OK;
  mt_condensed_tree tree = {.n = n};
  walk w = {
      .merges = merges, .min_size = min_cluster_size, .lambda_of_zero = lambda_of_zero};

  MT_REQUIRE(n >= 0 && min_cluster_size >= 2, MT_ERR_ARG,
             "min_cluster_size is %lld, and must be 2 or more",
             (long long)min_cluster_size);
  /* every point once; half of the clusters have no children, and points that no other has */
  int64_t most = n + 2 * (n / min_cluster_size);
  MT_NEW(tree.parent, most);
  MT_NEW(tree.child, most);
  MT_NEW(tree.lambda, most);
  MT_NEW(tree.child_size, most);
  MT_NEW(w.start, 2 * n);
  MT_NEW(w.order, n);
  MT_NEW(w.queue, n);
  MT_NEW(w.cluster, n);
  if (n >= 2) {
    order_points(n, merges, w.start, w.order);
    condense(&w, &tree);
  }
  *tree_out = tree;
  memset(&tree, 0, sizeof tree);
done:
  mt_condensed_tree_destroy(&tree);
  free(w.start);
  free(w.order);
  free(w.queue);
  free(w.cluster);
  return status;
}

mt_status mt_condensed_tree_find(int64_t min_cluster_size, int64_t n,
                                 const mt_edge *tree, mt_condensed_tree *tree_out)
{
  mt_status status = MT_OK;
  mt_merge *merges = NULL;
  double of_zero = 1.0;
  MT_NEW(merges, n);
  if (n >= 2) {
    MT_TRY(mt_single_linkage(n, tree, merges));
    int64_t i = 0;
    while (i < n - 2 && tree[i].weight == 0.0) i++; /* they ascend */
    of_zero = mt_lambda_of_zero(tree[i].weight, tree[n - 2].weight);
  }
  MT_TRY(mt_condense(n, merges, min_cluster_size, of_zero, tree_out));
done:
  free(merges);
  return status;
}
