/* NN-Descent (knn/nn_descent.h) on GPUs: each holds the matrix and works on its own rows; what
 * they find is gathered after each step. A block works on a row: it gathers the candidates,
 * each once, compares them a batch at a time, eight threads a pair, and merges the batch's best
 * into the row's neighbours, which bounds the next batch. */
#include "backend.h"
#include "knn_parts.h"
#include "primitives.h"

extern "C" {
#include "knn/nn_descent.h"
}

enum {
  LANES = MT_METRIC_LANES,
  THREADS = 256,
  GROUPS = THREADS / LANES, /* pairs at a time */
  SLOTS = 1024,             /* candidates gathered at a time */
  BATCH = 128,              /* compared before they are merged */
  PIECE = 32 * LANES,       /* columns between two looks at the bound */
};

/* What kernels read. */
typedef struct view {
  mt_nn_plan plan;
  mt_metric metric;
  int64_t d, first, local;
  const float *matrix;   /* (n, d) */
  const double *scale;   /* (n) */
  const uint32_t *order; /* (trees, n) */
  const uint32_t *place; /* (trees, local) */
  const uint32_t *visit; /* (local) this GPU's rows, those of a leaf together */
  uint32_t *graph;       /* (n, width) */
  double *distance;      /* (local, width) */
  const uint32_t *links; /* (n, 2, links) */
  unsigned long long *changes, *compared; /* counts */
} view;

typedef struct descent {
  mt_gpu *gpu;
  const mt_comm *comm;
  view v;
  int64_t k;
  mt_array<float> matrix;
  mt_array<double> scale, distance;
  mt_array<uint32_t> order, place, visit, graph, links;
  mt_array<unsigned long long> counts; /* changes, compared */
} descent;

/* ---- sums of LANES threads, as metric.h's ------------------------------------------------------ */

static __device__ __forceinline__ double add_lanes(double sum)
{
  for (int apart = LANES / 2; apart > 0; apart /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, apart, LANES);
  return sum;
}

static unsigned blocks_for(int64_t pairs)
{
  return (unsigned)((pairs + GROUPS - 1) / GROUPS);
}

/* ---- the matrix ---------------------------------------------------------------------------------- */

/* LANES threads a row: its scale, and is it allowed? */
static __global__ void look_kernel(mt_metric metric, int64_t count, int64_t d,
                                   const float *rows, double *scale,
                                   unsigned long long *bad)
{
  int64_t row = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / LANES;
  int lane = (int)threadIdx.x % LANES;
  float lowest = metric == MT_METRIC_HELLINGER ? 0.0f : -FLT_MAX;
  double sum = 0.0;
  if (row < count)
    for (int64_t t = lane; t < d; t += LANES) {
      float value = rows[row * d + t];
      sum += (double)value * (double)value;
      if (!(value >= lowest && value <= FLT_MAX))
        atomicMin(bad, (unsigned long long)row);
    }
  sum = add_lanes(sum);
  if (row < count && lane == 0)
    scale[row] = metric != MT_METRIC_COSINE ? 1.0 : sum > 0.0 ? 1.0 / sqrt(sum) : 0.0;
}

/* Which value of a bad row the metric does not allow. */
static mt_status refuse(descent *s, int64_t bad)
{
  mt_status status = MT_OK;
  float *row = NULL;
  int64_t found, column = 0;
  MT_NEW(row, s->v.d);
  MT_TRY(mt_to_host(s->gpu, s->v.d, s->matrix.data + bad * s->v.d, row));
  mt_knn_check(s->v.metric, bad, 1, s->v.d, row, &found, &column);
  status = mt_knn_refuse(s->v.metric, bad, column, row[column]);
done:
  free(row);
  return status;
}

static mt_status look(descent *s, int64_t *bad_out)
{
  mt_array<unsigned long long> bad;
  unsigned long long host = ULLONG_MAX;
  const view &v = s->v;
  MT_PASS(bad.make(s->gpu, 1, "bad rows"));
  MT_PASS(mt_to_device(s->gpu, 1, &host, bad.data));
  if (v.local > 0)
    MT_PASS(MT_LAUNCH(s->gpu, look_kernel, blocks_for(v.local), THREADS, 0, v.metric,
                      v.local, v.d, v.matrix + v.first * v.d, s->scale.data + v.first,
                      bad.data));
  MT_PASS(mt_to_host(s->gpu, 1, bad.data, &host));
  *bad_out = host == ULLONG_MAX ? v.plan.n : v.first + (int64_t)host;
  return MT_OK;
}

/* Reads this GPU's rows, checks them, and gathers all. */
static mt_status gather_matrix(descent *s, const mt_rows *rows)
{
  int64_t bad = 0, n = s->v.plan.n;
  mt_status status = mt_knn_upload(s->gpu, rows, s->v.first, s->v.local,
                                   s->matrix.data + s->v.first * s->v.d);
  if (status == MT_OK) status = look(s, &bad);
  MT_PASS(mt_agree(s->comm, status));
  int64_t first_bad = bad;
  MT_PASS(mt_min_i64(s->comm, 1, &first_bad));
  if (first_bad < n && first_bad == bad) status = refuse(s, bad);
  MT_PASS(mt_agree(s->comm, status));
  MT_PASS(mt_gpu_allgather_rows(s->gpu, s->comm, n, sizeof(double), s->scale.data));
  return mt_gpu_allgather_rows(s->gpu, s->comm, n, s->v.d * (int64_t)sizeof(float),
                               s->matrix.data);
}

/* ---- the trees --------------------------------------------------------------------------------------- */

/* LANES threads a place: [from, from + count) of all trees' places. */
static __global__ void side_kernel(view v, int64_t level, int64_t from, int64_t count,
                                   uint32_t *sides)
{
  int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / LANES;
  int lane = (int)threadIdx.x % LANES;
  int64_t n = v.plan.n, p = from + (i < count ? i : 0), tree = p / n, a, b;
  int64_t segment = mt_nn_segment_of(n, level, p % n);
  int64_t first = mt_nn_segment_first(n, level, segment);
  const uint32_t *order = v.order + tree * n;
  mt_nn_pivots(tree, level, segment, mt_nn_segment_first(n, level, segment + 1) - first,
               &a, &b);
  int64_t x = order[p % n];
  a = order[first + a];
  b = order[first + b];
  const float *row = v.matrix + x * v.d, *of_a = v.matrix + a * v.d;
  const float *of_b = v.matrix + b * v.d;
  double sum = 0.0;
#pragma unroll 4
  for (int64_t t = lane; t < v.d; t += LANES)
    sum += mt_metric_coordinate(v.metric, v.scale[x], row[t]) *
           (mt_metric_coordinate(v.metric, v.scale[a], of_a[t]) -
            mt_metric_coordinate(v.metric, v.scale[b], of_b[t]));
  sum = add_lanes(sum);
  if (i < count && lane == 0) sides[p] = mt_nn_side_key(sum);
}

static int bits_of(int64_t most)
{
  int bits = 0;
  while (most >> bits > 0) bits++;
  return bits;
}

/* Splits every segment of a level. */
static mt_status split(descent *s, int64_t level, uint32_t *sides, uint64_t *keys)
{
  mt_gpu *gpu = s->gpu;
  int64_t n = s->v.plan.n, all = s->v.plan.trees * n;
  int64_t from = mt_part_first(all, s->comm->size, s->comm->rank);
  int64_t count = mt_part_count(all, s->comm->size, s->comm->rank);
  if (count > 0)
    MT_PASS(MT_LAUNCH(gpu, side_kernel, blocks_for(count), THREADS, 0, s->v, level,
                      from, count, sides));
  MT_PASS(mt_gpu_allgather_rows(gpu, s->comm, all, sizeof *sides, sides));
  MT_PASS(mt_gpu_each(gpu, all, [=] __device__(int64_t p) {
    int64_t segment = ((p / n) << level) + mt_nn_segment_of(n, level, p % n);
    keys[p] = (uint64_t)segment << 32 | sides[p];
  }));
  return mt_gpu_sort_pairs(gpu, all, keys, s->order.data, 0,
                           32 + bits_of(s->v.plan.trees << level));
}

/* Places of this GPU's rows, and the rows in the order of the first tree. */
static mt_status find_places(descent *s)
{
  mt_array<uint8_t> is_own;
  mt_array<uint32_t> found;
  int64_t n = s->v.plan.n, first = s->v.first, local = s->v.local, own;
  const uint32_t *order = s->order.data;
  uint32_t *place = s->place.data, *visit = s->visit.data;
  MT_PASS(is_own.make(s->gpu, n, "own rows"));
  MT_PASS(found.make(s->gpu, n, "places"));
  uint8_t *flag = is_own.data;
  const uint32_t *at = found.data;
  MT_PASS(mt_gpu_each(s->gpu, s->v.plan.trees * n, [=] __device__(int64_t p) {
    int64_t i = (int64_t)order[p] - first;
    bool mine = i >= 0 && i < local;
    if (p < n) flag[p] = mine;
    if (mine) place[p / n * local + i] = (uint32_t)(p % n);
  }));
  MT_PASS(mt_gpu_select(s->gpu, n, is_own.data, found.data, &own));
  return mt_gpu_each(s->gpu, local, [=] __device__(int64_t v) {
    visit[v] = (uint32_t)((int64_t)order[at[v]] - first);
  });
}

static mt_status grow_trees(descent *s)
{
  mt_array<uint32_t> sides;
  mt_array<uint64_t> keys;
  int64_t n = s->v.plan.n, all = s->v.plan.trees * n;
  uint32_t *order = s->order.data;
  mt_status status = sides.make(s->gpu, all, "sides of rows");
  if (status == MT_OK) status = keys.make(s->gpu, all, "keys of rows");
  if (status == MT_OK)
    status = mt_gpu_each(s->gpu, all,
                         [=] __device__(int64_t p) { order[p] = (uint32_t)(p % n); });
  for (int64_t level = 0; level < s->v.plan.levels; level++) {
    MT_PASS(mt_agree(s->comm, status));
    status = split(s, level, sides.data, keys.data);
  }
  if (status == MT_OK) status = find_places(s);
  return mt_agree(s->comm, status);
}

/* ---- links -------------------------------------------------------------------------------------------- */

/* For each of this GPU's rows, who has it as a neighbour (in any order). */
static mt_status turn_round(descent *s, mt_array<int64_t> *indptr,
                            mt_array<uint32_t> *incoming)
{
  mt_gpu *gpu = s->gpu;
  mt_array<int32_t> counts;
  int64_t entries = s->v.plan.n * s->v.plan.width, width = s->v.plan.width;
  int64_t first = s->v.first, local = s->v.local, total;
  const uint32_t *graph = s->graph.data;
  MT_PASS(counts.make_zeroed(gpu, local, "counts of edges"));
  MT_PASS(indptr->make(gpu, local + 1, "places of edges"));
  int32_t *count = counts.data;
  MT_PASS(mt_gpu_each(gpu, entries, [=] __device__(int64_t e) {
    int64_t i = (int64_t)mt_nn_row(graph[e]) - first;
    if (i >= 0 && i < local) atomicAdd(count + i, 1);
  }));
  MT_PASS(mt_gpu_scan(gpu, local, count, indptr->data));
  MT_PASS(mt_to_host(gpu, 1, indptr->data + local, &total));
  MT_PASS(incoming->make(gpu, total, "edges"));
  const int64_t *start = indptr->data;
  uint32_t *to = incoming->data;
  return mt_gpu_each(gpu, entries, [=] __device__(int64_t e) {
    int64_t i = (int64_t)mt_nn_row(graph[e]) - first;
    if (i < 0 || i >= local) return;
    int32_t left = atomicAdd(count + i, -1); /* each count once, down to 1 */
    to[start[i] + left - 1] = (uint32_t)(e / width) | (graph[e] & MT_NN_NEW);
  });
}

static mt_status choose(descent *s, int64_t round)
{
  mt_array<int64_t> indptr;
  mt_array<uint32_t> incoming;
  mt_nn_plan plan = s->v.plan;
  int64_t first = s->v.first;
  MT_PASS(turn_round(s, &indptr, &incoming));
  const int64_t *start = indptr.data;
  const uint32_t *edges = incoming.data;
  uint32_t *graph = s->graph.data, *all_links = s->links.data;
  return mt_gpu_each(s->gpu, s->v.local, [=] __device__(int64_t i) {
    int64_t row = first + i, many = start[i + 1] - start[i];
    uint32_t *entries = graph + row * plan.width;
    uint32_t *links = all_links + row * 2 * plan.links;
    mt_nn_choose(&plan, round, row, 0, entries, many, edges + start[i],
                 links + plan.links);
    mt_nn_choose(&plan, round, row, MT_NN_NEW, entries, many, edges + start[i], links);
  });
}

/* ---- a row's search ------------------------------------------------------------------------------------- */

/* A block's memory: shared if there is room, else of the device. */
typedef struct memory {
  double *distances,
      *next_distances;              /* (width) the row's neighbours, and once merged */
  uint64_t *entries, *next_entries; /* (width) FRESH if found by this kernel */
  double *taken_distances;          /* (BATCH) */
  uint32_t *taken;                  /* (BATCH) rows */
  uint32_t *candidates;             /* (SLOTS) */
  uint32_t *known;                  /* (known_size) a hash table of rows */
} memory;

static const uint64_t FRESH = (uint64_t)1 << 32;

static int64_t memory_bytes(int64_t width, int64_t known_size)
{
  return 32 * width + 12 * BATCH + 4 * SLOTS + 4 * known_size;
}

static __device__ memory lay_out(unsigned char *room, int64_t width)
{
  memory m;
  m.distances = (double *)room;
  m.next_distances = m.distances + width;
  m.entries = (uint64_t *)(m.next_distances + width);
  m.next_entries = m.entries + width;
  m.taken_distances = (double *)(m.next_entries + width);
  m.taken = (uint32_t *)(m.taken_distances + BATCH);
  m.candidates = m.taken + BATCH;
  m.known = m.candidates + SLOTS;
  return m;
}

/* Is the row new to the table? If `add`, it is there afterwards. */
static __device__ bool is_unknown(uint32_t *known, uint32_t size, uint32_t row,
                                  bool add)
{
  for (uint32_t at = row * 2654435761u & (size - 1);; at = (at + 1) & (size - 1)) {
    uint32_t there = add ? atomicCAS(known + at, MT_NN_NONE, row) : known[at];
    if (there == row) return false;
    if (there == MT_NN_NONE) return true;
  }
}

/* Where candidates come from: slots of a row; `once` if a row may come twice. */
struct from_leaves {
  enum { ONCE = 1 };
  static __device__ int64_t slots(const view &v)
  {
    return mt_nn_leaf_slots(&v.plan);
  }
  static __device__ uint32_t at(const view &v, int64_t i, int64_t slot)
  {
    return mt_nn_leaf_at(&v.plan, v.order, v.place + i, v.local, slot);
  }
};

struct from_links {
  enum { ONCE = 1 };
  static __device__ int64_t slots(const view &v)
  {
    return mt_nn_link_slots(&v.plan);
  }
  static __device__ uint32_t at(const view &v, int64_t i, int64_t slot)
  {
    return mt_nn_link_at(&v.plan, v.links, v.first + i, slot);
  }
};

struct from_all {
  enum { ONCE = 0 };
  static __device__ int64_t slots(const view &v)
  {
    return v.plan.n;
  }
  static __device__ uint32_t at(const view &, int64_t, int64_t slot)
  {
    return (uint32_t)slot;
  }
};

/* Row i's neighbours, which are known, and itself. */
static __device__ void take_up(const view &v, int64_t i, int64_t width, const memory &m,
                               uint32_t known_size)
{
  for (uint32_t at = threadIdx.x; at < known_size; at += THREADS)
    m.known[at] = MT_NN_NONE;
  __syncthreads();
  if (threadIdx.x == 0) is_unknown(m.known, known_size, (uint32_t)(v.first + i), true);
  for (int64_t at = threadIdx.x; at < width; at += THREADS) {
    uint32_t entry = v.graph[(v.first + i) * v.plan.width + at];
    m.entries[at] = entry;
    m.distances[at] = v.distance[i * v.plan.width + at];
    if (mt_nn_row(entry) != MT_NN_NONE)
      is_unknown(m.known, known_size, mt_nn_row(entry), true);
  }
  __syncthreads();
}

/* Compares the row with candidates[from..to); those within the bound are taken. All groups of
 * a warp go on together, a piece of columns each; one that is through takes its next. */
template <int METRIC>
static __device__ void compare(const view &v, int64_t row, const memory &m,
                               unsigned from, unsigned to, double worst,
                               unsigned *n_taken)
{
  const mt_metric metric = (mt_metric)METRIC;
  const float *x = v.matrix + row * v.d;
  double scale = v.scale[row], most = mt_metric_most_square(metric, worst);
  unsigned at = from + threadIdx.x / LANES;
  int lane = (int)threadIdx.x % LANES;
  int64_t t = 0;
  double sum = 0.0;
  while (__any_sync(0xffffffffu, at < to)) {
    uint32_t other = m.candidates[at < to ? at : from];
    double other_scale = v.scale[other];
    bool needs_none = scale == 0.0 || other_scale == 0.0; /* a zero row's are known */
    const float *y = v.matrix + (int64_t)other * v.d;
    int64_t end = at >= to || needs_none ? t : t + PIECE < v.d ? t + PIECE : v.d;
#pragma unroll 8
    for (int64_t c = t + lane; c < end; c += LANES) {
      double off = mt_metric_coordinate(metric, scale, x[c]) -
                   mt_metric_coordinate(metric, other_scale, y[c]);
      sum += off * off;
    }
    double square = add_lanes(sum);
    t = end;
    if (at >= to) continue;
    bool is_through = t == v.d || needs_none, is_beyond = square > most;
    if (!is_through && !is_beyond) continue;
    double distance = mt_metric_distance(metric, scale, other_scale, square);
    if (lane == 0 && !is_beyond && distance <= worst) {
      unsigned place = atomicAdd(n_taken, 1u);
      m.taken_distances[place] = distance;
      m.taken[place] = other;
    }
    at += GROUPS;
    t = 0;
    sum = 0.0;
  }
}

/* Merges what was taken into the neighbours: each goes where so many come before it. */
static __device__ void merge(memory *m, int64_t width, unsigned n_taken)
{
  for (int64_t e = threadIdx.x; e < width + n_taken; e += THREADS) {
    bool old = e < width;
    double distance = old ? m->distances[e] : m->taken_distances[e - width];
    uint64_t entry = old ? m->entries[e] : (m->taken[e - width] | MT_NN_NEW) | FRESH;
    uint32_t row = mt_nn_row((uint32_t)entry);
    int64_t rank = old ? e : 0;
    for (int64_t j = 0; !old && j < width && rank < width; j++)
      rank += mt_nn_before(m->distances[j], mt_nn_row((uint32_t)m->entries[j]),
                           distance, row);
    for (int64_t j = 0; j < n_taken && rank < width; j++)
      rank += mt_nn_before(m->taken_distances[j], m->taken[j], distance, row);
    if (rank >= width) continue;
    m->next_distances[rank] = distance;
    m->next_entries[rank] = entry;
  }
  double *distances = m->distances;
  uint64_t *entries = m->entries;
  m->distances = m->next_distances;
  m->entries = m->next_entries;
  m->next_distances = distances;
  m->next_entries = entries;
}

/* Candidates of slots [from, from + SLOTS), each that is not known yet. */
template <class SOURCE>
static __device__ void gather(const view &v, int64_t i, const memory &m,
                              uint32_t known_size, int64_t from, unsigned *count)
{
  int64_t end = SOURCE::slots(v) - from < SLOTS ? SOURCE::slots(v) : from + SLOTS;
  if (threadIdx.x == 0) *count = 0;
  __syncthreads();
  for (int64_t slot = from + threadIdx.x; slot < end; slot += THREADS) {
    uint32_t other = SOURCE::at(v, i, slot);
    if (other == MT_NN_NONE || !is_unknown(m.known, known_size, other, SOURCE::ONCE))
      continue;
    m.candidates[atomicAdd(count, 1u)] = other;
  }
  __syncthreads();
}

/* Row i with all its candidates. */
template <int METRIC, class SOURCE>
static __device__ void search_row(const view &v, int64_t i, int64_t width, memory *m,
                                  uint32_t known_size)
{
  __shared__ unsigned n_candidates, n_taken;
  take_up(v, i, width, *m, known_size);
  for (int64_t slot = 0; slot < SOURCE::slots(v); slot += SLOTS) {
    gather<SOURCE>(v, i, *m, known_size, slot, &n_candidates);
    unsigned count = n_candidates;
    __syncthreads(); /* all know it before it is 0 again */
    for (unsigned from = 0; from < count; from += BATCH) {
      if (threadIdx.x == 0) n_taken = 0;
      __syncthreads();
      compare<METRIC>(v, v.first + i, *m, from,
                      count < from + BATCH ? count : from + BATCH,
                      m->distances[width - 1], &n_taken);
      __syncthreads();
      unsigned taken = n_taken;
      if (taken > 0) merge(m, width, taken);
      __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(v.compared, (unsigned long long)count);
  }
}

static __device__ unsigned char *room_of(unsigned char *rooms, int64_t bytes)
{
  MT_SHARED(unsigned char, shared);
  return rooms == nullptr ? shared : rooms + blockIdx.x * bytes;
}

/* A block a row, in the order of visits. rooms: for all blocks, NULL: shared memory. */
template <int METRIC, class SOURCE>
static __global__ void __launch_bounds__(THREADS)
    search_kernel(view v, uint32_t known_size, unsigned char *rooms, int64_t bytes)
{
  int64_t width = v.plan.width;
  memory m = lay_out(room_of(rooms, bytes), width);
  for (int64_t at = blockIdx.x; at < v.local; at += gridDim.x) {
    int64_t i = v.visit[at];
    search_row<METRIC, SOURCE>(v, i, width, &m, known_size);
    for (int64_t e = threadIdx.x; e < width; e += THREADS) {
      v.graph[(v.first + i) * width + e] = (uint32_t)m.entries[e];
      v.distance[i * width + e] = m.distances[e];
      if (m.entries[e] & FRESH) atomicAdd(v.changes, 1ull);
    }
    __syncthreads();
  }
}

/* A block a sampled row: its k neighbours as near as its exact k-th are counted. Comparing what
 * there is with all rows makes it exact. */
template <int METRIC>
static __global__ void __launch_bounds__(THREADS)
    recall_kernel(view v, int64_t k, const uint32_t *sample, uint32_t known_size,
                  unsigned char *rooms, int64_t bytes, int64_t count,
                  unsigned long long *hits)
{
  memory m = lay_out(room_of(rooms, bytes), k);
  for (int64_t at = blockIdx.x; at < count; at += gridDim.x) {
    int64_t i = sample[at];
    search_row<METRIC, from_all>(v, i, k, &m, known_size);
    for (int64_t e = threadIdx.x; e < k; e += THREADS)
      if (v.distance[i * v.plan.width + e] <= m.distances[k - 1]) atomicAdd(hits, 1ull);
    __syncthreads();
  }
}

/* ---- starting them ------------------------------------------------------------------------------------------ */

/* How blocks for rows are started: how many, and with which memory. */
typedef struct start {
  uint32_t known_size;
  int64_t bytes;
  unsigned blocks;
  size_t shared;
  mt_array<unsigned char> rooms;
} start;

/* known: rows that a block must be able to know. */
static mt_status prepare(mt_gpu *gpu, int64_t width, int64_t known, int64_t rows,
                         start *out)
{
  enum { SHARED = (48 << 10) - 64 /* the kernels' own */, BLOCKS = 4 };
  out->known_size = 64;
  while (out->known_size < 2 * known) out->known_size *= 2;
  out->bytes = (memory_bytes(width, out->known_size) + 15) / 16 * 16;
  int64_t most = INT_MAX;
  if (out->bytes <= SHARED) {
    out->shared = (size_t)out->bytes;
  } else {
    most = (int64_t)gpu->processors * BLOCKS;
    if (most > rows) most = rows;
    MT_PASS(out->rooms.make(gpu, most * out->bytes, "a row's candidates"));
  }
  out->blocks = (unsigned)(rows < most ? rows : most);
  return MT_OK;
}

#define FOR_METRIC(status, call)        \
  switch (s->v.metric) {                \
  case MT_METRIC_COSINE:                \
    status = call(MT_METRIC_COSINE);    \
    break;                              \
  case MT_METRIC_HELLINGER:             \
    status = call(MT_METRIC_HELLINGER); \
    break;                              \
  default:                              \
    status = call(MT_METRIC_EUCLIDEAN); \
  }

template <class SOURCE> static mt_status search_own(descent *s, int64_t slots)
{
  start b = {};
  mt_status status = MT_OK;
  if (s->v.local == 0) return MT_OK;
  MT_PASS(
      prepare(s->gpu, s->v.plan.width, s->v.plan.width + 1 + slots, s->v.local, &b));
#define SEARCH(metric)                                                            \
  MT_LAUNCH(s->gpu, (search_kernel<metric, SOURCE>), b.blocks, THREADS, b.shared, \
            s->v, b.known_size, b.rooms.data, b.bytes)
  FOR_METRIC(status, SEARCH);
#undef SEARCH
  return status;
}

/* Searches for all own rows; *changes_out, over all GPUs, new neighbours. */
template <class SOURCE>
static mt_status search_all(descent *s, int64_t slots, int64_t *changes_out)
{
  unsigned long long changes = 0;
  mt_status status = mt_to_device(s->gpu, 1, &changes, s->v.changes);
  if (status == MT_OK) status = search_own<SOURCE>(s, slots);
  if (status == MT_OK) status = mt_to_host(s->gpu, 1, s->v.changes, &changes);
  MT_PASS(mt_agree(s->comm, status));
  *changes_out = (int64_t)changes;
  MT_PASS(mt_sum_i64(s->comm, 1, changes_out));
  return mt_gpu_allgather_rows(s->gpu, s->comm, s->v.plan.n,
                               s->v.plan.width * (int64_t)sizeof(uint32_t), s->v.graph);
}

/* Says how long a part took, since *since. */
static mt_status tell(descent *s, const char *part, double *since)
{
  MT_PASS(mt_agree(s->comm, mt_gpu_wait(s->gpu)));
  double now = mt_seconds();
  mt_debug("knn: nn_descent: %s %.3f s", part, now - *since);
  *since = now;
  return MT_OK;
}

static mt_status descend(descent *s, int64_t *rounds_out)
{
  const mt_nn_plan &plan = s->v.plan;
  int64_t changes;
  uint32_t *graph = s->graph.data;
  double *distance = s->distance.data;
  mt_status status = mt_gpu_each(s->gpu, plan.n * plan.width,
                                 [=] __device__(int64_t e) { graph[e] = MT_NN_NONE; });
  if (status == MT_OK)
    status = mt_gpu_each(s->gpu, s->v.local * plan.width,
                         [=] __device__(int64_t e) { distance[e] = INFINITY; });
  MT_PASS(mt_agree(s->comm, status));
  double since = mt_seconds();
  MT_PASS(search_all<from_leaves>(s, mt_nn_leaf_slots(&plan), &changes));
  MT_PASS(tell(s, "leaves", &since));
  for (int64_t round = 0; round < plan.rounds && changes > plan.enough; round++) {
    if (mt_stop_agreed(s->comm)) return MT_STOPPED;
    MT_PASS(mt_agree(s->comm, choose(s, round)));
    MT_PASS(mt_gpu_allgather_rows(s->gpu, s->comm, plan.n,
                                  2 * plan.links * (int64_t)sizeof(uint32_t),
                                  s->links.data));
    MT_PASS(search_all<from_links>(s, mt_nn_link_slots(&plan), &changes));
    *rounds_out = round + 1;
    mt_progress_update(round + 1);
    MT_PASS(tell(s, "a round", &since));
  }
  return MT_OK;
}

/* ---- recall --------------------------------------------------------------------------------------------------- */

/* The sampled rows among this GPU's. */
static mt_status list_sample(descent *s, int64_t count, mt_array<uint32_t> *sample,
                             int64_t *own_out)
{
  mt_status status = MT_OK;
  uint32_t *own = NULL;
  int64_t n_own = 0;
  MT_NEW(own, count);
  for (int64_t j = 0; j < count; j++) {
    int64_t i = mt_nn_sampled_row(s->v.plan.n, count, j) - s->v.first;
    if (i >= 0 && i < s->v.local) own[n_own++] = (uint32_t)i;
  }
  MT_TRY(sample->make(s->gpu, n_own, "sampled rows"));
  MT_TRY(mt_to_device(s->gpu, n_own, own, sample->data));
  MT_TRY(mt_gpu_wait(s->gpu));
  *own_out = n_own;
done:
  free(own);
  return status;
}

static mt_status count_hits(descent *s, int64_t count, int64_t *hits_out)
{
  mt_array<uint32_t> sample;
  mt_array<unsigned long long> hits;
  unsigned long long host = 0;
  int64_t own;
  start b = {};
  mt_status status = MT_OK;
  *hits_out = 0;
  MT_PASS(list_sample(s, count, &sample, &own));
  if (own == 0) return MT_OK;
  MT_PASS(hits.make_zeroed(s->gpu, 1, "hits"));
  MT_PASS(prepare(s->gpu, s->k, s->k + 1, own, &b));
#define RECALL(metric)                                                              \
  MT_LAUNCH(s->gpu, recall_kernel<metric>, b.blocks, THREADS, b.shared, s->v, s->k, \
            sample.data, b.known_size, b.rooms.data, b.bytes, own, hits.data)
  FOR_METRIC(status, RECALL);
#undef RECALL
  if (status == MT_OK) status = mt_to_host(s->gpu, 1, hits.data, &host);
  *hits_out = (int64_t)host;
  return status;
}

static mt_status measure_recall(descent *s, mt_knn_quality *quality)
{
  int64_t n = s->v.plan.n, count = mt_nn_sample_size(n), hits;
  MT_PASS(mt_agree(s->comm, count_hits(s, count, &hits)));
  MT_PASS(mt_sum_i64(s->comm, 1, &hits));
  quality->sampled = count;
  quality->recall = (double)hits / (double)(count * s->k);
  return MT_OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static mt_status require_memory(const descent *s)
{
  const mt_nn_plan &plan = s->v.plan;
  int64_t row = 8 + 4 * plan.trees * (int64_t)(1 + 4 + 8) + 4 * plan.width * 4 +
                8 * plan.links; /* beside the matrix; the trees' are given back */
  double bytes = 4.0 * (double)plan.n * (double)s->v.d;
  double needed = bytes + (double)plan.n * (double)row;
  double there = (double)(s->gpu->memory - s->gpu->used);
  if (needed <= there) return MT_OK;
  return mt_fail(
      MT_ERR_MEMORY,
      "nn_descent needs the whole matrix (%lld x %lld x 4 bytes = %.1f GB) in "
      "the memory of each GPU: %.1f GB with what it keeps of the rows, where "
      "%.1f GB are free; use knn.build_algo=\"brute_force\"",
      (long long)plan.n, (long long)s->v.d, bytes / 1e9, needed / 1e9, there / 1e9);
}

static mt_status new_memory(descent *s)
{
  view *v = &s->v;
  const mt_nn_plan &plan = v->plan;
  MT_PASS(require_memory(s));
  MT_PASS(s->matrix.make(s->gpu, plan.n * v->d, "all rows"));
  MT_PASS(s->scale.make(s->gpu, plan.n, "scales of rows"));
  MT_PASS(s->order.make(s->gpu, plan.trees * plan.n, "rows of leaves"));
  MT_PASS(s->place.make(s->gpu, plan.trees * v->local, "places of rows"));
  MT_PASS(s->visit.make(s->gpu, v->local, "visits"));
  MT_PASS(s->graph.make(s->gpu, plan.n * plan.width, "the graph"));
  MT_PASS(s->distance.make(s->gpu, v->local * plan.width, "distances"));
  MT_PASS(s->links.make(s->gpu, plan.n * 2 * plan.links, "links"));
  MT_PASS(s->counts.make_zeroed(s->gpu, 2, "counts"));
  v->matrix = s->matrix.data;
  v->scale = s->scale.data;
  v->order = s->order.data;
  v->place = s->place.data;
  v->visit = s->visit.data;
  v->graph = s->graph.data;
  v->distance = s->distance.data;
  v->links = s->links.data;
  v->changes = s->counts.data;
  v->compared = s->counts.data + 1;
  return MT_OK;
}

/* ---- all of it ----------------------------------------------------------------------------------------------------- */

static mt_status give_out(descent *s, int64_t *indices_out, float *distances_out)
{
  mt_array<int64_t> indices;
  mt_array<float> distances;
  int64_t k = s->k, width = s->v.plan.width, first = s->v.first, count = s->v.local * k;
  const uint32_t *graph = s->graph.data;
  const double *distance = s->distance.data;
  MT_PASS(indices.make(s->gpu, count, "neighbours"));
  MT_PASS(distances.make(s->gpu, count, "distances"));
  int64_t *to = indices.data;
  float *at = distances.data;
  MT_PASS(mt_gpu_each(s->gpu, count, [=] __device__(int64_t e) {
    int64_t i = e / k, m = e % k;
    to[e] = mt_nn_row(graph[(first + i) * width + m]);
    at[e] = mt_metric_store(distance[i * width + m]);
  }));
  MT_PASS(mt_to_host(s->gpu, count, to, indices_out));
  return mt_to_host(s->gpu, count, at, distances_out);
}

static mt_status compared(descent *s, int64_t *out)
{
  unsigned long long host = 0;
  MT_PASS(mt_agree(s->comm, mt_to_host(s->gpu, 1, s->v.compared, &host)));
  *out = (int64_t)host;
  return mt_sum_i64(s->comm, 1, out);
}

static mt_status run(descent *s, const mt_rows *rows, int64_t *indices_out,
                     float *distances_out, mt_knn_quality *quality)
{
  double since = mt_seconds();
  MT_PASS(mt_agree(s->comm, new_memory(s)));
  MT_PASS(gather_matrix(s, rows));
  MT_PASS(tell(s, "matrix", &since));
  MT_PASS(grow_trees(s));
  MT_PASS(tell(s, "trees", &since));
  MT_PASS(descend(s, &quality->rounds));
  since = mt_seconds();
  MT_PASS(compared(s, &quality->compared));
  MT_PASS(measure_recall(s, quality));
  MT_PASS(tell(s, "recall", &since));
  return mt_agree(s->comm, give_out(s, indices_out, distances_out));
}

mt_status mt_gpu_knn_approximate(mt_backend *be, const mt_comm *comm, mt_metric metric,
                                 int64_t k, const mt_rows *rows, int64_t *indices_out,
                                 float *distances_out, mt_knn_quality *quality_out)
{
  descent s = {};
  MT_PASS(mt_nn_plan_make(rows->n, k, &s.v.plan));
  *quality_out = {};
  s.gpu = mt_gpu_of(be);
  s.comm = comm;
  s.k = k;
  s.v.metric = metric;
  s.v.d = rows->d;
  s.v.first = mt_part_first(rows->n, comm->size, comm->rank);
  s.v.local = mt_part_count(rows->n, comm->size, comm->rank);
  mt_progress_begin(comm->rank, "knn", s.v.plan.rounds);
  mt_status status = run(&s, rows, indices_out, distances_out, quality_out);
  mt_progress_end();
  return status;
}
