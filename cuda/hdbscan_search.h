/* Searching from many positions at once: through the kd-tree, a thread for each, or where
 * there is none through tiles of the matrix of distances. For the files cuda/hdbscan*.cu.
 * A job is what is looked for, a visitor one search:
 *   job.position(i)            where search i starts
 *   job.begin(i, &visitor)
 *   visitor.skips(node)        nothing of use lies below it
 *   visitor.is_beyond(d2)      nothing of use lies that far off
 *   visitor.offer(at, d2)      the point at that position; the start itself too
 *   visitor.pause()            after a leaf
 *   job.end(i, visitor)
 * Squared distances as mt_distance2 gives them, to the bit. */
#ifndef MT_CUDA_HDBSCAN_SEARCH_H
#define MT_CUDA_HDBSCAN_SEARCH_H
#include "hdbscan_space.h"

/* ---- through the tree -------------------------------------------------------------------- */

/* Coordinates that move in as few loads as they allow. */
template <int D> struct alignas(D % 4 == 0 ? 16 : D % 2 == 0 ? 8 : 4) mt_coordinates {
  float x[D];
};

/* The start of a search, its coordinates in registers; D = 0: any number, in memory. */
template <int D> struct mt_start {
  mt_coordinates<D> point;

  __device__ mt_start(const mt_places &s, int64_t at)
      : point(((const mt_coordinates<D> *)s.points)[at])
  {
  }
  __device__ double to_box(const mt_places &s, uint32_t node) const
  {
    mt_coordinates<2 *D> box = ((const mt_coordinates<2 * D> *)s.boxes)[node];
    return mt_box_distance2(D, box.x, box.x + D, point.x);
  }
  __device__ double to_point(const mt_places &s, int64_t at) const
  {
    mt_coordinates<D> other = ((const mt_coordinates<D> *)s.points)[at];
    return mt_distance2(D, point.x, other.x);
  }
};

template <> struct mt_start<0> {
  const float *point;

  __device__ mt_start(const mt_places &s, int64_t at) : point(s.points + at * s.d) {}
  __device__ double to_box(const mt_places &s, uint32_t node) const
  {
    const float *low = s.boxes + (int64_t)node * 2 * s.d;
    return mt_box_distance2(s.d, low, low + s.d, point);
  }
  __device__ double to_point(const mt_places &s, int64_t at) const
  {
    return mt_distance2(s.d, point, s.points + at * s.d);
  }
};

template <int D, class V>
static __device__ void mt_visit_leaf(const mt_places &s, const mt_start<D> &start,
                                     uint32_t leaf, V &visitor)
{
  int64_t last = mt_node_first(s.n, s.depth, (int64_t)leaf + 1);
  for (int64_t at = mt_node_first(s.n, s.depth, leaf); at < last; at++)
    visitor.offer(at, start.to_point(s, at));
  visitor.pause();
}

/* From an inner node down to a leaf, always to the nearer child; the further ones are marked
 * in the trail. Stops above where both are of no use. */
template <int D, class V>
static __device__ uint32_t mt_go_down(const mt_places &s, const mt_start<D> &start,
                                      uint32_t node, const V &visitor, uint32_t *trail)
{
  while (node >> s.depth == 0) {
    bool left = !visitor.skips(2 * node), right = !visitor.skips(2 * node + 1);
    double to_left = left ? start.to_box(s, 2 * node) : 0.0,
           to_right = right ? start.to_box(s, 2 * node + 1) : 0.0;
    left = left && !visitor.is_beyond(to_left);
    right = right && !visitor.is_beyond(to_right);
    if (!left && !right) break;
    bool go_left = left && (!right || to_left <= to_right);
    node = 2 * node + (go_left ? 0 : 1);
    *trail = *trail << 1 | (left && right ? 1 : 0);
  }
  return node;
}

/* Bit j of the trail: the sibling of the j-th node above is still to be visited. So there is
 * no stack, and the start's own leaf comes first, with everything else on the trail. */
template <int D, class V>
static __device__ void mt_walk(const mt_places &s, int64_t at, V &visitor)
{
  mt_start<D> start(s, at);
  uint32_t leaves = 1u << s.depth,
           node = leaves + (uint32_t)mt_node_of(s.n, s.depth, at), trail = leaves - 1;
  if (!visitor.skips(node)) mt_visit_leaf(s, start, node - leaves, visitor);
  while (trail != 0) {
    int up = __ffs((int)trail) - 1;
    node = (node >> up) ^ 1;
    trail = trail >> up & ~1u;
    if (visitor.skips(node) || visitor.is_beyond(start.to_box(s, node))) continue;
    node = mt_go_down(s, start, node, visitor, &trail);
    if (node >= leaves) mt_visit_leaf(s, start, node - leaves, visitor);
  }
}

template <int D, class J>
static mt_status mt_search_tree(mt_gpu *gpu, const mt_places &s, int64_t count, J job)
{
  return mt_gpu_each(gpu, count, [=] __device__(int64_t i) {
    typename J::visitor visitor;
    job.begin(i, &visitor);
    mt_walk<D>(s, job.position(i), visitor);
    job.end(i, visitor);
  });
}

/* ---- through tiles ------------------------------------------------------------------------ */

enum { MT_TILE = 64, MT_TILE_DEPTH = 16, MT_TILE_THREADS = 256 };

/* Coordinates [t, t + MT_TILE_DEPTH) of MT_TILE points, 0 where there are none. */
static __device__ inline void mt_load_tile(const mt_places &s, const int64_t *places,
                                           int64_t first, int64_t t,
                                           float (*out)[MT_TILE_DEPTH + 1])
{
  for (int i = (int)threadIdx.x; i < MT_TILE * MT_TILE_DEPTH; i += MT_TILE_THREADS) {
    int row = i / MT_TILE_DEPTH, column = i % MT_TILE_DEPTH;
    int64_t at = places != nullptr ? places[row] : first + row;
    bool there = at >= 0 && at < s.n && t + column < s.d;
    out[row][column] = there ? s.points[at * s.d + t + column] : 0.0f;
  }
}

/* Each thread sums 4 by 4 distances, along the coordinates in order. */
static __device__ inline void mt_tile_distances(const mt_places &s,
                                                const int64_t *places, int64_t first,
                                                float (*rows)[MT_TILE_DEPTH + 1],
                                                float (*columns)[MT_TILE_DEPTH + 1],
                                                double (*tile)[MT_TILE + 1])
{
  int x = (int)threadIdx.x % 16, y = (int)threadIdx.x / 16;
  double sum[4][4] = {};
  for (int64_t t = 0; t < s.d; t += MT_TILE_DEPTH) {
    mt_load_tile(s, places, 0, t, rows);
    mt_load_tile(s, nullptr, first, t, columns);
    __syncthreads();
    for (int k = 0; k < MT_TILE_DEPTH; k++)
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
          double difference =
              (double)rows[y + 16 * i][k] - (double)columns[x + 16 * j][k];
          sum[i][j] += difference * difference;
        }
    __syncthreads();
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) tile[y + 16 * i][x + 16 * j] = sum[i][j];
}

/* A block does MT_TILE searches: all threads the distances, one each the search. */
template <class J>
static __global__ void mt_search_block(mt_places s, int64_t count, J job)
{
  __shared__ float rows[MT_TILE][MT_TILE_DEPTH + 1],
      columns[MT_TILE][MT_TILE_DEPTH + 1];
  __shared__ double tile[MT_TILE][MT_TILE + 1];
  __shared__ int64_t places[MT_TILE];
  int64_t search = (int64_t)blockIdx.x * MT_TILE + threadIdx.x;
  bool searches = threadIdx.x < MT_TILE && search < count;
  typename J::visitor visitor = {};
  if (searches) job.begin(search, &visitor);
  if (threadIdx.x < MT_TILE) places[threadIdx.x] = searches ? job.position(search) : -1;
  __syncthreads();
  for (int64_t first = 0; first < s.n; first += MT_TILE) {
    mt_tile_distances(s, places, first, rows, columns, tile);
    __syncthreads();
    for (int j = 0; searches && j < MT_TILE && first + j < s.n; j++)
      visitor.offer(first + j, tile[threadIdx.x][j]);
    if (searches) visitor.pause();
    __syncthreads();
  }
  if (searches) job.end(search, visitor);
}

template <class J>
static mt_status mt_search_tiles(mt_gpu *gpu, const mt_places &s, int64_t count, J job)
{
  return MT_LAUNCH(gpu, mt_search_block<J>, (unsigned)((count + MT_TILE - 1) / MT_TILE),
                   MT_TILE_THREADS, 0, s, count, job);
}

/* `count` searches, in any order and at once. */
template <class J>
static mt_status mt_search(mt_gpu *gpu, const mt_places &s, int64_t count, J job)
{
  if (count == 0) return MT_OK;
  if (s.depth < 0) return mt_search_tiles(gpu, s, count, job);
  if (s.d == 2) return mt_search_tree<2>(gpu, s, count, job);
  if (s.d == 3) return mt_search_tree<3>(gpu, s, count, job);
  return mt_search_tree<0>(gpu, s, count, job);
}

#endif
