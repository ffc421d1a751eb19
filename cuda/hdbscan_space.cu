#include "hdbscan_space.h"
#include "exchange.h"
#include "primitives.h"

/* Bits whose order is that of the numbers; -0 as +0. */
static __device__ uint32_t ordered(float x)
{
  uint32_t bits = __float_as_uint(x + 0.0f);
  return bits ^ (bits >> 31 != 0 ? 0xffffffffu : 0x80000000u);
}

static __device__ float unordered(uint32_t bits)
{
  return __uint_as_float(bits ^ (bits >> 31 != 0 ? 0x80000000u : 0xffffffffu));
}

/* ---- distinct points ----------------------------------------------------------------------- */

/* Points by their coordinates, equal ones by number. */
static mt_status sort_points(mt_gpu *gpu, int64_t n, int64_t d, const float *points,
                             uint32_t *order)
{
  mt_array<uint64_t> keys;
  MT_PASS(keys.make(gpu, n, "coordinates to sort"));
  uint64_t *key = keys.data;
  MT_PASS(mt_gpu_each(gpu, n, [=] __device__(int64_t i) { order[i] = (uint32_t)i; }));
  for (int64_t t = (d - 1) / 2 * 2; t >= 0; t -= 2) {
    bool two = t + 1 < d;
    MT_PASS(mt_gpu_each(gpu, n, [=] __device__(int64_t i) {
      const float *at = points + order[i] * d + t;
      key[i] = two ? (uint64_t)ordered(at[0]) << 32 | ordered(at[1]) : ordered(at[0]);
    }));
    MT_PASS(mt_gpu_sort_pairs(gpu, n, key, order, 0, two ? 64 : 32));
  }
  return MT_OK;
}

/* Distinct points before each of the sorted ones: (n + 1). */
static mt_status count_heads(mt_gpu *gpu, const mt_space *space, const uint32_t *order,
                             int64_t *before)
{
  int64_t n = space->n, d = space->places.d;
  const float *points = space->all.data;
  mt_array<int32_t> heads;
  MT_PASS(heads.make(gpu, n, "distinct points"));
  int32_t *head = heads.data;
  MT_PASS(mt_gpu_each(gpu, n, [=] __device__(int64_t i) {
    bool differs = i == 0;
    for (int64_t t = 0; t < d && !differs; t++)
      differs = points[order[i] * d + t] != points[order[i - 1] * d + t];
    head[i] = differs;
  }));
  return mt_gpu_scan(gpu, n, head, before);
}

/* first, start: (places.n) the first of each distinct point, and where it is sorted to;
 * group: (n) the distinct point of each. */
static mt_status list_heads(mt_gpu *gpu, mt_space *space, const uint32_t *order,
                            const int64_t *before, uint32_t *first, uint32_t *group)
{
  int64_t n = space->n, m = space->places.n;
  mt_array<uint32_t> starts;
  MT_PASS(starts.make(gpu, m, "distinct points"));
  MT_PASS(space->count.make(gpu, m, "distinct points"));
  MT_PASS(space->twins.make(gpu, n - m, "equal points"));
  uint32_t *start = starts.data, *count = space->count.data;
  uint64_t *twin = space->twins.data;
  MT_PASS(mt_gpu_each(gpu, n, [=] __device__(int64_t i) {
    int64_t g = before[i + 1] - 1;
    group[order[i]] = (uint32_t)g;
    if (before[i] != g) return;
    first[g] = order[i];
    start[g] = (uint32_t)i;
  }));
  MT_PASS(mt_gpu_each(gpu, m, [=] __device__(int64_t g) {
    count[g] = (g + 1 < m ? start[g + 1] : (uint32_t)n) - start[g];
  }));
  return mt_gpu_each(gpu, n, [=] __device__(int64_t i) {
    int64_t g = before[i + 1] - 1;
    if (before[i] != g) twin[i - before[i]] = (uint64_t)first[g] << 32 | order[i];
  });
}

static mt_status find_distinct(mt_gpu *gpu, mt_space *space, mt_array<uint32_t> *first,
                               mt_array<uint32_t> *group)
{
  mt_array<uint32_t> order;
  mt_array<int64_t> before;
  int64_t n = space->n;
  MT_PASS(order.make(gpu, n, "sorted points"));
  MT_PASS(sort_points(gpu, n, space->places.d, space->all.data, order.data));
  MT_PASS(before.make(gpu, n + 1, "distinct points"));
  MT_PASS(count_heads(gpu, space, order.data, before.data));
  MT_PASS(mt_to_host(gpu, 1, before.data + n, &space->places.n));
  MT_PASS(first->make(gpu, space->places.n, "distinct points"));
  MT_PASS(group->make(gpu, n, "distinct points"));
  return list_heads(gpu, space, order.data, before.data, first->data, group->data);
}

/* ---- the kd-tree, from the root down ----------------------------------------------------------- */

/* Nodes [first, last) of a level, and the positions that they hold. */
typedef struct mt_span {
  int level;
  int64_t first, last, begin, end;
} mt_span;

static mt_span span_of(int64_t n, int level, int64_t first, int64_t last)
{
  return {level, first, last, mt_node_first(n, level, first),
          mt_node_first(n, level, last)};
}

/* What splitting needs: by position the distinct points in their order so far, and keys to
 * sort them by; by node, along each axis, the largest coordinate and the inverse of the
 * smallest as ordered bits; the axis that a node is split along. */
typedef struct splitting {
  const uint32_t *first; /* by distinct point: the point */
  uint32_t *order;
  mt_array<uint64_t> keys;
  mt_array<uint32_t> extents, axes;
} splitting;

static mt_status find_extents(mt_gpu *gpu, const mt_space *space, const splitting *w,
                              mt_span span)
{
  enum { RUN = 32 }; /* positions a thread takes, to save atomics */
  int64_t n = space->places.n, d = space->places.d;
  const float *points = space->all.data;
  const uint32_t *first = w->first, *order = w->order;
  uint32_t *extents = w->extents.data;
  MT_CUDA(cudaMemsetAsync(extents, 0, ((size_t)2 * d << span.level) * sizeof *extents,
                          gpu->stream));
  int64_t runs = (span.end - span.begin + RUN - 1) / RUN;
  return mt_gpu_each(gpu, runs, [=] __device__(int64_t run) {
    int64_t at = span.begin + run * RUN,
            stop = at + RUN < span.end ? at + RUN : span.end;
    for (int64_t node = mt_node_of(n, span.level, at); at < stop; node++) {
      int64_t end = mt_node_first(n, span.level, node + 1),
              last = end < stop ? end : stop;
      for (int64_t t = 0; t < d; t++) {
        uint32_t high = 0, low = 0;
        for (int64_t i = at; i < last; i++) {
          uint32_t value = ordered(points[first[order[i]] * d + t]);
          high = value > high ? value : high;
          low = ~value > low ? ~value : low;
        }
        uint32_t *extent = extents + (node * d + t) * 2;
        if (high > extent[0]) atomicMax(extent, high);
        if (low > extent[1]) atomicMax(extent + 1, low);
      }
      at = last;
    }
  });
}

/* The axis along which a node spreads most. */
static __device__ int64_t widest_axis(int64_t d, const uint32_t *extent)
{
  int64_t widest = 0;
  double most = -1.0;
  for (int64_t t = 0; t < d; t++) {
    double spread =
        (double)unordered(extent[2 * t]) - (double)unordered(~extent[2 * t + 1]);
    if (spread > most) most = spread, widest = t;
  }
  return widest;
}

/* Sorts the points of each node along its widest axis. */
static mt_status split_nodes(mt_gpu *gpu, const mt_space *space, splitting *w,
                             mt_span span)
{
  int64_t n = space->places.n, d = space->places.d, count = span.end - span.begin;
  const float *points = space->all.data;
  const uint32_t *first = w->first;
  uint32_t *order = w->order + span.begin, *axis = w->axes.data,
           *extents = w->extents.data;
  uint64_t *key = w->keys.data;
  MT_PASS(find_extents(gpu, space, w, span));
  MT_PASS(mt_gpu_each(gpu, span.last - span.first, [=] __device__(int64_t i) {
    int64_t node = span.first + i;
    axis[node] = (uint32_t)widest_axis(d, extents + node * d * 2);
  }));
  MT_PASS(mt_gpu_each(gpu, count, [=] __device__(int64_t i) {
    int64_t node = mt_node_of(n, span.level, span.begin + i);
    uint32_t value = ordered(points[first[order[i]] * d + axis[node]]);
    key[i] = (uint64_t)node << 32 | value;
  }));
  return mt_gpu_sort_pairs(gpu, count, key, order, 0, 32 + span.level);
}

/* ---- small nodes: a block splits each down to the leaves, in shared memory ---- */

enum { SMALL = 1024, SMALL_THREADS = 256, SMALL_NODES = 2 * SMALL / MT_TREE_LEAF };

/* Bitonic; for all threads of a block. */
static __device__ void sort_small(uint64_t *key)
{
  for (int width = 2; width <= SMALL; width *= 2)
    for (int step = width / 2; step > 0; step /= 2) {
      for (int i = (int)threadIdx.x; i < SMALL; i += SMALL_THREADS) {
        int other = i ^ step;
        bool ascends = (i & width) == 0;
        if (other < i || (key[i] > key[other]) != ascends) continue;
        uint64_t kept = key[i];
        key[i] = key[other];
        key[other] = kept;
      }
      __syncthreads();
    }
}

/* A node and its splits at a level below, as a block has them. */
typedef struct small_node {
  int64_t n, d;
  const float *points;
  const uint32_t *first; /* by distinct point: the point */
  int64_t begin;         /* its first position */
  int count;             /* positions */
  int level;             /* of the splits */
  int64_t before;        /* nodes of that level before its own */
} small_node;

static __device__ uint32_t small_value(const small_node &s, uint32_t place, int64_t t)
{
  return ordered(s.points[s.first[place] * s.d + t]);
}

static __device__ int64_t small_part(const small_node &s, int i)
{
  return mt_node_of(s.n, s.level, s.begin + i) - s.before;
}

static __device__ void measure_small(const small_node &s, int n_parts,
                                     const uint32_t *place, uint32_t *extents)
{
  for (int i = (int)threadIdx.x; i < n_parts * (int)s.d * 2; i += SMALL_THREADS)
    extents[i] = 0;
  __syncthreads();
  for (int i = (int)threadIdx.x; i < s.count; i += SMALL_THREADS)
    for (int64_t t = 0; t < s.d; t++) {
      uint32_t value = small_value(s, place[i], t),
               *extent = extents + (small_part(s, i) * s.d + t) * 2;
      atomicMax(extent, value);
      atomicMax(extent + 1, ~value);
    }
  __syncthreads();
}

/* By part, then by the coordinate along its axis, then as they are. */
static __device__ void sort_parts(const small_node &s, const uint32_t *extents,
                                  const uint32_t *place, uint64_t *key)
{
  for (int i = (int)threadIdx.x; i < SMALL; i += SMALL_THREADS) {
    key[i] = UINT64_MAX;
    if (i >= s.count) continue;
    int64_t part = small_part(s, i), axis = widest_axis(s.d, extents + part * s.d * 2);
    uint64_t value = small_value(s, place[i], axis);
    key[i] = (uint64_t)part << 48 | value << 16 | (uint64_t)i;
  }
  __syncthreads();
  sort_small(key);
}

static __device__ void follow_keys(const small_node &s, const uint64_t *key,
                                   uint32_t *place)
{
  uint32_t moved[SMALL / SMALL_THREADS] = {};
  for (int j = 0; j < SMALL / SMALL_THREADS; j++) {
    int i = (int)threadIdx.x + j * SMALL_THREADS;
    if (i < s.count) moved[j] = place[key[i] & 0xffff];
  }
  __syncthreads();
  for (int j = 0; j < SMALL / SMALL_THREADS; j++) {
    int i = (int)threadIdx.x + j * SMALL_THREADS;
    if (i < s.count) place[i] = moved[j];
  }
  __syncthreads();
}

/* A block for each node of the span; every split as split_nodes makes it. */
static __global__ void split_small(mt_span span, int depth, int64_t n, int64_t d,
                                   const float *points, const uint32_t *first,
                                   uint32_t *order)
{
  __shared__ uint64_t key[SMALL];
  __shared__ uint32_t place[SMALL], extents[SMALL_NODES * MT_TREE_MOST_D * 2];
  int64_t node = span.first + blockIdx.x, begin = mt_node_first(n, span.level, node);
  int count = (int)(mt_node_first(n, span.level, node + 1) - begin);
  for (int i = (int)threadIdx.x; i < count; i += SMALL_THREADS)
    place[i] = order[begin + i];
  __syncthreads();
  for (int below = 0; span.level + below < depth; below++) {
    small_node s = {
        n, d, points, first, begin, count, span.level + below, node << below};
    measure_small(s, 1 << below, place, extents);
    sort_parts(s, extents, place, key);
    follow_keys(s, key, place);
  }
  for (int i = (int)threadIdx.x; i < count; i += SMALL_THREADS)
    order[begin + i] = place[i];
}

/* ---- all nodes: together the upper levels; then each GPU what is below its share ---- */

static int shared_levels(const mt_space *space, int gpus)
{
  enum { NODES_EACH = 4 };
  int levels = 0;
  while (levels < space->places.depth && 1 << levels < NODES_EACH * gpus) levels++;
  return levels;
}

static mt_span share_of(const mt_space *space, int level, int gpus, int gpu)
{
  int shared = shared_levels(space, gpus);
  int64_t nodes = (int64_t)1 << shared;
  return span_of(space->places.n, level,
                 mt_part_first(nodes, gpus, gpu) << (level - shared),
                 mt_part_first(nodes, gpus, gpu + 1) << (level - shared));
}

static mt_status split_own(mt_gpu *gpu, const mt_comm *comm, const mt_space *space,
                           const uint32_t *first, uint32_t *order)
{
  int depth = space->places.depth, shared = shared_levels(space, comm->size),
      small = shared;
  int64_t n = space->places.n, d = space->places.d;
  splitting w;
  if (depth < 1) return MT_OK;
  w.first = first;
  w.order = order;
  MT_PASS(w.keys.make(gpu, n, "coordinates to sort"));
  MT_PASS(w.extents.make(gpu, d << depth, "kd-tree"));
  MT_PASS(w.axes.make(gpu, (int64_t)1 << (depth - 1), "kd-tree"));
  while (small < depth && (n >> small) + 1 > SMALL) small++;
  for (int level = 0; level < shared; level++)
    MT_PASS(split_nodes(gpu, space, &w, span_of(n, level, 0, (int64_t)1 << level)));
  for (int level = shared; level < small; level++)
    MT_PASS(
        split_nodes(gpu, space, &w, share_of(space, level, comm->size, comm->rank)));
  if (small == depth) return MT_OK;
  mt_span span = share_of(space, small, comm->size, comm->rank);
  return MT_LAUNCH(gpu, split_small, (unsigned)(span.last - span.first), SMALL_THREADS,
                   0, span, depth, n, d, space->all.data, first, order);
}

/* Collective: everyone gets the order within the others' nodes. */
static mt_status gather_order(mt_gpu *gpu, const mt_comm *comm, const mt_space *space,
                              uint32_t *order)
{
  mt_status status = MT_OK;
  int64_t *first = nullptr;
  int shared = shared_levels(space, comm->size);
  if (shared == space->places.depth) return MT_OK;
  MT_TRY(mt_agree(
      comm, mt_memory_new(comm->size + 1, sizeof *first, "shares", (void **)&first)));
  for (int r = 0; r < comm->size; r++)
    first[r + 1] = share_of(space, shared, comm->size, r).end * (int64_t)sizeof *order;
  MT_TRY(mt_gpu_allgather_blocks(gpu, comm, first, order));
done:
  free(first);
  return status;
}

/* ---- by position -------------------------------------------------------------------------------- */

static mt_status arrange(mt_gpu *gpu, const uint32_t *first, const uint32_t *group,
                         const uint32_t *order, mt_space *space)
{
  int64_t n = space->n, m = space->places.n, d = space->places.d;
  mt_array<uint32_t> counts, position;
  MT_PASS(space->points.make(gpu, m * d, "points"));
  MT_PASS(space->name.make(gpu, m, "points"));
  MT_PASS(space->place_of.make(gpu, n, "points"));
  MT_PASS(counts.make(gpu, m, "points"));
  MT_PASS(position.make(gpu, m, "points"));
  counts.swap(space->count);
  const float *from = space->all.data;
  float *to = space->points.data;
  const uint32_t *old_count = counts.data;
  uint32_t *name = space->name.data, *count = space->count.data,
           *place_of = space->place_of.data, *at = position.data;
  MT_PASS(mt_gpu_each(gpu, m, [=] __device__(int64_t i) {
    uint32_t g = order[i], point = first[g];
    name[i] = point;
    count[i] = old_count[g];
    at[g] = (uint32_t)i;
    for (int64_t t = 0; t < d; t++) to[i * d + t] = from[point * d + t];
  }));
  return mt_gpu_each(gpu, n, [=] __device__(int64_t i) { place_of[i] = at[group[i]]; });
}

static mt_status find_boxes(mt_gpu *gpu, mt_space *space)
{
  int64_t n = space->places.n, d = space->places.d;
  int depth = space->places.depth;
  MT_PASS(space->boxes.make(gpu, ((int64_t)4 * d) << depth, "boxes"));
  float *boxes = space->boxes.data;
  const float *points = space->points.data;
  MT_PASS(mt_gpu_each(gpu, (int64_t)1 << depth, [=] __device__(int64_t leaf) {
    float *low = boxes + (((int64_t)1 << depth) + leaf) * 2 * d, *high = low + d;
    int64_t first = mt_node_first(n, depth, leaf),
            last = mt_node_first(n, depth, leaf + 1);
    for (int64_t t = 0; t < d; t++) low[t] = high[t] = points[first * d + t];
    for (int64_t i = (first + 1) * d; i < last * d; i++) {
      int64_t t = i % d;
      low[t] = points[i] < low[t] ? points[i] : low[t];
      high[t] = points[i] > high[t] ? points[i] : high[t];
    }
  }));
  for (int level = depth - 1; level >= 0; level--) {
    MT_PASS(mt_gpu_each(gpu, (int64_t)1 << level, [=] __device__(int64_t j) {
      int64_t node = ((int64_t)1 << level) + j;
      float *low = boxes + node * 2 * d, *high = low + d;
      const float *left = boxes + node * 4 * d, *right = left + 2 * d;
      for (int64_t t = 0; t < d; t++) {
        low[t] = left[t] < right[t] ? left[t] : right[t];
        high[t] = left[d + t] > right[d + t] ? left[d + t] : right[d + t];
      }
    }));
  }
  return MT_OK;
}

static mt_status upload_own(mt_gpu *gpu, const mt_comm *comm, int64_t n, int64_t d,
                            const float *points, mt_space *space)
{
  int64_t first = mt_part_first(n, comm->size, comm->rank);
  space->n = n;
  space->places.d = (int)d;
  MT_PASS(space->all.make(gpu, n * d, "points"));
  return mt_to_device(gpu, mt_part_count(n, comm->size, comm->rank) * d,
                      points + first * d, space->all.data + first * d);
}

mt_status mt_space_upload(mt_gpu *gpu, const mt_comm *comm, int64_t n, int64_t d,
                          const float *points, mt_space *space)
{
  MT_PASS(mt_agree(comm, upload_own(gpu, comm, n, d, points, space)));
  return mt_gpu_allgather_rows(gpu, comm, n, d * (int64_t)sizeof(float),
                               space->all.data);
}

static void describe(mt_space *space)
{
  space->places.points = space->points.data;
  space->places.boxes = space->boxes.data;
  space->places.name = space->name.data;
  space->places.count = space->count.data;
}

/* By distinct point: the first point; by point: the distinct one; by position: the distinct
 * point, so far as this GPU orders them. */
typedef struct numbering {
  mt_array<uint32_t> first, group, order;
} numbering;

static mt_status order_own(mt_gpu *gpu, const mt_comm *comm, mt_space *space,
                           numbering *w)
{
  MT_PASS(find_distinct(gpu, space, &w->first, &w->group));
  int64_t m = space->places.n;
  bool tree = space->places.d <= MT_TREE_MOST_D;
  space->places.depth = tree ? 0 : -1;
  while (tree && (int64_t)MT_TREE_LEAF << space->places.depth < m)
    space->places.depth++;
  MT_PASS(w->order.make(gpu, m, "points"));
  uint32_t *number = w->order.data;
  MT_PASS(mt_gpu_each(gpu, m, [=] __device__(int64_t i) { number[i] = (uint32_t)i; }));
  if (tree) MT_PASS(split_own(gpu, comm, space, w->first.data, w->order.data));
  return mt_gpu_wait(gpu);
}

static mt_status settle(mt_gpu *gpu, const numbering *w, mt_space *space)
{
  MT_PASS(arrange(gpu, w->first.data, w->group.data, w->order.data, space));
  space->all.drop();
  if (space->places.depth >= 0) MT_PASS(find_boxes(gpu, space));
  describe(space);
  return MT_OK;
}

mt_status mt_space_create(mt_gpu *gpu, const mt_comm *comm, mt_space *space)
{
  numbering w;
  MT_PASS(mt_gpu_wait(gpu));
  MT_PASS(mt_agree(comm, order_own(gpu, comm, space, &w)));
  if (space->places.depth >= 0) MT_PASS(gather_order(gpu, comm, space, w.order.data));
  MT_PASS(mt_gpu_wait(gpu));
  return mt_agree(comm, settle(gpu, &w, space));
}

int64_t mt_space_bytes(int64_t n, int64_t d)
{
  int64_t sorting = n * 2 * (int64_t)(sizeof(uint64_t) + sizeof(uint32_t));
  int64_t kept = n * (3 * (int64_t)sizeof(uint32_t) + d * (int64_t)sizeof(float));
  int64_t boxes = d <= MT_TREE_MOST_D ? n / 2 * d * (int64_t)sizeof(float) : 0;
  int64_t before =
      n * (int64_t)(d * sizeof(float) + 4 * sizeof(uint32_t) + 2 * sizeof(uint64_t));
  return kept + boxes + before + sorting;
}
