/* The points of HDBSCAN on the device: distinct ones, ordered so that near ones lie side by
 * side, with a kd-tree over them. For the files cuda/hdbscan*.cu.
 * Positions are below 2^31, points' numbers too. */
#ifndef MT_CUDA_HDBSCAN_SPACE_H
#define MT_CUDA_HDBSCAN_SPACE_H
#include "gpu.h"

extern "C" {
#include "hdbscan/reachability.h"
}

enum {
  MT_TREE_MOST_D = 16, /* more coordinates: no tree */
  MT_TREE_LEAF = 16 /* a leaf holds at most so many points, and half of it at least */
};

/* What searches read, as kernels get it. The tree is complete: leaf l is node
 * (1 << depth) + l, node i has the children 2 i and 2 i + 1, the root is 1. */
typedef struct mt_places {
  int64_t n; /* positions: distinct points */
  int d;
  int depth;             /* of the tree; -1: no tree */
  const float *points;   /* (n, d) by position */
  const float *boxes;    /* (2 << depth, 2, d) each node's low and high */
  const uint32_t *name;  /* (n) the point there; of equal points the first */
  const uint32_t *count; /* (n) points that lie there */
} mt_places;

typedef struct mt_space {
  int64_t n; /* points */
  mt_places places;
  mt_array<float> all; /* (n, d) as given; dropped once the tree is there */
  mt_array<float> points, boxes;
  mt_array<uint32_t> name, count;
  mt_array<uint32_t> place_of; /* (n) position of each point */
  mt_array<uint64_t> twins;    /* (n - places.n) a first << 32 | another like it */
} mt_space;

/* Bytes of device memory that mt_space_create takes at most, and those that stay. */
int64_t mt_space_bytes(int64_t n, int64_t d);

/* points: (n, d) on the host; n >= 1. Collective, as is create: each GPU sends the others what
 * it has read, and then the order of the part of the tree that it has made. */
mt_status mt_space_upload(mt_gpu *gpu, const mt_comm *comm, int64_t n, int64_t d,
                          const float *points, mt_space *space);
/* After upload. */
mt_status mt_space_create(mt_gpu *gpu, const mt_comm *comm, mt_space *space);

/* ---- the tree's shape -------------------------------------------------------------------- */

/* The first position of node number j of a level: of 2^level nodes of as many points. */
static __host__ __device__ inline int64_t mt_node_first(int64_t n, int level, int64_t j)
{
  return (int64_t)(((uint64_t)n * (uint64_t)j) >> level);
}

/* Which node of a level holds a position. */
static __host__ __device__ inline int64_t mt_node_of(int64_t n, int level,
                                                     int64_t position)
{
  return (int64_t)((((uint64_t)(position + 1) << level) - 1) / (uint64_t)n);
}

#endif
