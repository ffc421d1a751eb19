/* A balanced kd-tree over points whose positions follow the tree's order: the leaves lie
 * side by side, each holds 8 to 16 points (fewer only if it is the root). Heap layout: the
 * root is node 1, the children of i are 2 i and 2 i + 1, so no pointers and no recursion. */
#ifndef MT_BACKEND_CPU_KDTREE_H
#define MT_BACKEND_CPU_KDTREE_H
#include "base/status.h"
#include "hdbscan/reachability.h"
#include <stdint.h>

enum { MT_KDTREE_LEAF = 16, MT_KDTREE_DEPTH = 48 };

typedef struct mt_kdtree {
  int64_t n, d;
  int64_t n_leaves; /* a power of two; node n_leaves + i is leaf i */
  int64_t *first;   /* (n_leaves + 1) positions; owned */
  int64_t *order;   /* (n) the point at each position; owned */
  float *block; /* (n, d) coordinates, leaf by leaf, in each leaf axis by axis; owned */
  float *box;   /* (2 n_leaves, 2, d) each node's lowest and highest; owned */
} mt_kdtree;

/**
 * Not collective; the same tree for any number of threads. n >= 1, d >= 1.
 * points   (m, d) float32, finite
 * choice   (n) which of them to put in, or NULL for all m = n
 */
mt_status mt_kdtree_build(int64_t n, int64_t d, const float *points,
                          const int64_t *choice, mt_kdtree *tree_out);
void mt_kdtree_destroy(mt_kdtree *tree); /* frees the arrays; empties the struct */

static inline int64_t mt_kdtree_leaf_size(const mt_kdtree *tree, int64_t leaf)
{
  return tree->first[leaf + 1] - tree->first[leaf];
}

/* mt_box_distance2 from a point (d) to a node's box. */
static inline double mt_kdtree_gap2(const mt_kdtree *tree, int64_t node,
                                    const float *point)
{
  int64_t d = tree->d;
  const float *box = tree->box + 2 * d * node;
  if (d == 2) return mt_box_distance2(2, box, box + 2, point); /* unrolled */
  return mt_box_distance2(d, box, box + d, point);
}

/* mt_boxes_distance2 of two nodes. */
static inline double mt_kdtree_gap2_between(const mt_kdtree *tree, int64_t p, int64_t q)
{
  int64_t d = tree->d;
  const float *a = tree->box + 2 * d * p, *b = tree->box + 2 * d * q;
  if (d == 2) return mt_boxes_distance2(2, a, a + 2, b, b + 2);
  return mt_boxes_distance2(d, a, a + d, b, b + d);
}

/* mt_distance2 from a point (d) to every point of a leaf; out: (MT_KDTREE_LEAF). */
void mt_kdtree_distances(const mt_kdtree *tree, int64_t leaf, const float *point,
                         double *out);

/* The coordinates of the point at `at` in a leaf; out: (d). */
void mt_kdtree_point(const mt_kdtree *tree, int64_t leaf, int64_t at, float *out);

#endif
