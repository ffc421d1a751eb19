#include "backend/cpu_kdtree.h"
#include "base/memory.h"
#include "base/vectors.h"

#include <stdlib.h>
#include <string.h>

void mt_kdtree_destroy(mt_kdtree *tree)
{
  free(tree->first);
  free(tree->order);
  free(tree->block);
  free(tree->box);
  memset(tree, 0, sizeof *tree);
}

typedef struct entry {
  float key;
  int64_t point;
} entry;

static inline int entry_before(entry p, entry q)
{
  return p.key != q.key ? p.key < q.key : p.point < q.point;
}

static void swap_entries(entry *p, entry *q)
{
  entry kept = *p;
  *p = *q;
  *q = kept;
}

/* Of three places that depend on the bounds alone, scattered against sorted patterns. */
static entry pivot_of(const entry *e, int64_t low, int64_t high)
{
  uint64_t width = (uint64_t)(high - low + 1),
           state = (uint64_t)high * 0x9e3779b97f4a7c15u;
  entry p = e[low + (int64_t)((state >> 33) % width)];
  entry q = e[low + (int64_t)(((state * 0xbf58476d1ce4e5b9u) >> 33) % width)];
  entry r = e[low + (int64_t)width / 2];
  if (entry_before(q, p)) swap_entries(&p, &q);
  if (entry_before(r, p)) return p;
  return entry_before(r, q) ? r : q;
}

/* Rearranges so that the `rank` smallest of n come first (Hoare's quickselect). */
static void select_smallest(entry *e, int64_t n, int64_t rank)
{
  int64_t low = 0, high = n - 1;
  while (low < high) {
    entry pivot = pivot_of(e, low, high);
    int64_t i = low, j = high;
    while (i <= j) {
      while (entry_before(e[i], pivot)) i++;
      while (entry_before(pivot, e[j])) j--;
      if (i <= j) swap_entries(&e[i++], &e[j--]);
    }
    if (rank <= j)
      high = j;
    else if (rank >= i)
      low = i;
    else
      return;
  }
}

/* The axis along which points order[0..n) spread most; the first of equals. */
static int64_t widest_axis(int64_t n, int64_t d, const float *points,
                           const int64_t *order, float *low, float *high)
{
  int64_t widest = 0;
  for (int64_t t = 0; t < d; t++) low[t] = high[t] = points[order[0] * d + t];
  for (int64_t i = 1; i < n; i++) {
    const float *point = points + order[i] * d;
    for (int64_t t = 0; t < d; t++) {
      if (point[t] < low[t]) low[t] = point[t];
      if (point[t] > high[t]) high[t] = point[t];
    }
  }
  for (int64_t t = 1; t < d; t++)
    if ((double)high[t] - (double)low[t] > (double)high[widest] - (double)low[widest])
      widest = t;
  return widest;
}

/* Cuts a node's points at `middle` along its widest axis. */
static void split_node(mt_kdtree *tree, const float *points, int64_t node,
                       int64_t first, int64_t middle, int64_t last, entry *entries)
{
  int64_t d = tree->d, *order = tree->order;
  int64_t axis = widest_axis(last - first, d, points, order + first,
                             tree->box + 2 * d * node, tree->box + 2 * d * node + d);
  for (int64_t i = first; i < last; i++)
    entries[i] = (entry){points[order[i] * d + axis], order[i]};
  select_smallest(entries + first, last - first, middle - first);
  for (int64_t i = first; i < last; i++) order[i] = entries[i].point;
}

/* Node j of those that have `wide` leaves below. */
static void split_one(mt_kdtree *tree, const float *points, int64_t wide, int64_t j,
                      entry *entries)
{
  const int64_t *first = tree->first + j * wide;
  split_node(tree, points, tree->n_leaves / wide + j, first[0], first[wide / 2],
             first[wide], entries);
}

/* Large nodes level by level, then all below each of the others by one thread, whose cache
 * holds them. */
static void split_all(mt_kdtree *tree, const float *points, entry *entries)
{
  enum { SMALL = 256 }; /* leaves */
  int64_t n_leaves = tree->n_leaves, wide = n_leaves;
  for (; wide > SMALL; wide /= 2) {
#pragma omp parallel for schedule(dynamic, 1)
    for (int64_t j = 0; j < n_leaves / wide; j++)
      split_one(tree, points, wide, j, entries);
  }
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t j = 0; j < n_leaves / wide; j++)
    for (int64_t below = wide; below > 1; below /= 2)
      for (int64_t k = j * (wide / below); k < (j + 1) * (wide / below); k++)
        split_one(tree, points, below, k, entries);
}

/* Copies a leaf's coordinates, and finds its box. */
static void fill_leaf(mt_kdtree *tree, const float *points, int64_t leaf)
{
  int64_t first = tree->first[leaf], size = mt_kdtree_leaf_size(tree, leaf),
          d = tree->d;
  float *box = tree->box + 2 * d * (tree->n_leaves + leaf);
  for (int64_t t = 0; t < d; t++)
    for (int64_t i = 0; i < size; i++)
      tree->block[first * d + t * size + i] = points[tree->order[first + i] * d + t];
  widest_axis(size, d, points, tree->order + first, box, box + d);
}

mt_status mt_kdtree_build(int64_t n, int64_t d, const float *points,
                          const int64_t *choice, mt_kdtree *tree_out)
{
  mt_status status = MT_OK;
  mt_kdtree tree = {.n = n, .d = d, .n_leaves = 1};
  entry *entries = NULL;

  MT_REQUIRE(n >= 1 && d >= 1, MT_ERR_ARG, "kd-tree: no points");
  while (tree.n_leaves * MT_KDTREE_LEAF < n) tree.n_leaves *= 2;
  MT_NEW(tree.first, tree.n_leaves + 1);
  MT_NEW(tree.order, n);
  MT_NEW(tree.block, n * d);
  MT_NEW(tree.box, 4 * tree.n_leaves * d);
  MT_NEW(entries, n);
  for (int64_t i = 0; i <= tree.n_leaves; i++)
    tree.first[i] =
        (int64_t)((unsigned __int128)n * (uint64_t)i / (uint64_t)tree.n_leaves);
  for (int64_t i = 0; i < n; i++) tree.order[i] = choice != NULL ? choice[i] : i;
  split_all(&tree, points, entries);
#pragma omp parallel for schedule(static)
  for (int64_t leaf = 0; leaf < tree.n_leaves; leaf++) fill_leaf(&tree, points, leaf);
  *tree_out = tree;
  memset(&tree, 0, sizeof tree);
done:
  mt_kdtree_destroy(&tree);
  free(entries);
  return status;
}

/* In a plane: the same sums in one pass. */
MT_FOR_VECTORS static void distances_2d(int64_t size, const float *block, float x,
                                        float y, double *out)
{
  for (int64_t i = 0; i < size; i++) {
    double across = (double)x - (double)block[i],
           along = (double)y - (double)block[size + i];
    out[i] = across * across + along * along;
  }
}

void mt_kdtree_distances(const mt_kdtree *tree, int64_t leaf, const float *point,
                         double *out)
{
  int64_t size = mt_kdtree_leaf_size(tree, leaf);
  const float *block = tree->block + tree->first[leaf] * tree->d;
  if (tree->d == 2) {
    distances_2d(size, block, point[0], point[1], out);
    return;
  }
  for (int64_t i = 0; i < size; i++) out[i] = 0.0;
  for (int64_t t = 0; t < tree->d; t++)
    for (int64_t i = 0; i < size; i++) {
      double difference = (double)point[t] - (double)block[t * size + i];
      out[i] += difference * difference;
    }
}

void mt_kdtree_point(const mt_kdtree *tree, int64_t leaf, int64_t at, float *out)
{
  int64_t size = mt_kdtree_leaf_size(tree, leaf);
  const float *block = tree->block + tree->first[leaf] * tree->d;
  for (int64_t t = 0; t < tree->d; t++) out[t] = block[t * size + at];
}
