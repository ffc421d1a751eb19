/* Distances in double of the candidates, the k best of each row, and the proof that they are. */
#include "knn_parts.h"
#include "primitives.h"

enum { LANES = MT_METRIC_LANES, THREADS = 256, UNROLL = 8 };

/* ---- one distance: LANES threads, metric.h's sums --------------------------------------------- */

/* This lane's part of the squares of z - y over many columns, added to sum in order. */
template <int METRIC, class X>
static __device__ __forceinline__ double
add_squares(int64_t many, X z, const float *y, double y_scale, int lane, double sum)
{
  const mt_metric metric = (mt_metric)METRIC;
  int64_t t = lane;
  for (; t + (UNROLL - 1) * LANES < many; t += UNROLL * LANES) {
    float value[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; u++) value[u] = y[t + u * LANES];
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
      double off = z[t + u * LANES] - mt_metric_coordinate(metric, y_scale, value[u]);
      sum += off * off;
    }
  }
  for (; t < many; t += LANES) {
    double off = z[t] - mt_metric_coordinate(metric, y_scale, y[t]);
    sum += off * off;
  }
  return sum;
}

/* As mt_metric_add_lanes, of LANES neighbouring threads. */
static __device__ __forceinline__ double add_lanes(double sum)
{
  unsigned group = 0xffu << (threadIdx.x % 32 / LANES * LANES);
  for (int apart = LANES / 2; apart > 0; apart /= 2)
    sum += __shfl_xor_sync(group, sum, apart, LANES);
  return sum;
}

/* Rows that are at hand: [first, first + count) of all. */
typedef struct hand {
  const float *rows;
  int64_t first, count;
} hand;

/* A block for each row: its coordinates lie in shared memory in double, CHUNK at a time, and
 * LANES threads work on each of its pairs, ABREAST at a time. */
enum { CHUNK = 1024, ABREAST = 24 };

template <int METRIC>
static __global__ void measure_kernel(int64_t d, int64_t own, hand x, hand y,
                                      const double *scale, const int64_t *first,
                                      const uint32_t *row, const uint32_t *column,
                                      double *distance)
{
  __shared__ double z[CHUNK];
  const mt_metric metric = (mt_metric)METRIC;
  int64_t from = first[blockIdx.x], to = first[blockIdx.x + 1];
  int lane = (int)threadIdx.x % LANES;
  if (from == to) return;
  int64_t i = own + row[from] - x.first;
  if (i < 0 || i >= x.count) return;
  double x_scale = scale[x.first + i];
  for (; from < to; from += ABREAST) {
    int64_t pair = from + threadIdx.x / LANES, j = -1;
    if (pair < to) j = (int64_t)column[pair] - y.first;
    bool here = j >= 0 && j < y.count;
    if (!__syncthreads_or(here)) continue;
    const float *at = y.rows + (here ? j : 0) * d;
    double y_scale = scale[y.first + (here ? j : 0)], sum = 0.0;
    for (int64_t start = 0; start < d; start += CHUNK) {
      int many = d - start < CHUNK ? (int)(d - start) : CHUNK;
      for (int t = (int)threadIdx.x; t < many; t += ABREAST * LANES)
        z[t] = mt_metric_coordinate(metric, x_scale, x.rows[i * d + start + t]);
      __syncthreads();
      if (here) sum = add_squares<METRIC>(many, z, at + start, y_scale, lane, sum);
      __syncthreads();
    }
    sum = add_lanes(sum);
    if (here && lane == 0)
      distance[pair] = mt_metric_distance(metric, x_scale, y_scale, sum);
  }
}

static mt_status measure_at_hand(mt_knn_search *s, mt_knn_pairs *p, hand x, hand y)
{
  if (p->count == 0 || x.count == 0 || y.count == 0) return MT_OK;
#define MEASURE(metric)                                                           \
  MT_LAUNCH(s->gpu, measure_kernel<metric>, (unsigned)p->rows, ABREAST *LANES, 0, \
            s->d, s->first, x, y, s->scale.data, p->first.data, p->row.data,      \
            p->column.data, p->distance.data)
  switch (s->bound.metric) {
  case MT_METRIC_COSINE:
    return MEASURE(MT_METRIC_COSINE);
  case MT_METRIC_HELLINGER:
    return MEASURE(MT_METRIC_HELLINGER);
  default:
    return MEASURE(MT_METRIC_EUCLIDEAN);
  }
}

/* How many own rows can be in hand while all others go by. */
static int64_t rows_in_hand(const mt_knn_search *s)
{
  int64_t row = s->d * (int64_t)sizeof(float) + 1;
  int64_t most = (s->gpu->memory - s->gpu->used - mt_knn_reserve(s->gpu)) / row;
  if (s->sizes.query > 0) most = s->sizes.query;
  if (most > s->local) most = s->local;
  return most > 1 ? most : 1;
}

/* Own rows are read some at a time, and the others go by. Of the own ones only those that
 * come later: a distance is the same from either side. */
static mt_status measure_streamed(mt_knn_search *s, mt_knn_pairs *pairs)
{
  mt_array<float> query;
  int64_t step = rows_in_hand(s), end = s->first + s->local;
  if (pairs->count == 0) return MT_OK;
  MT_PASS(query.make(s->gpu, step * s->d, "rows in hand"));
  for (int64_t at = s->first; at < end; at += step) {
    hand x = {query.data, at, end - at < step ? end - at : step};
    MT_PASS(mt_knn_read(s, at, x.count, query.data));
    auto one_way = [=](const float *rows, int64_t first, int64_t count) {
      return measure_at_hand(s, pairs, x, hand{rows, first, count});
    };
    auto both_ways = [=](const float *rows, int64_t first, int64_t count) {
      hand y = {rows, first, count};
      MT_PASS(measure_at_hand(s, pairs, x, y));
      return measure_at_hand(s, pairs, y, x);
    };
    MT_PASS(measure_at_hand(s, pairs, x, x));
    MT_PASS(mt_knn_feed_each(s->feed, 0, s->first, one_way));
    MT_PASS(mt_knn_feed_each(s->feed, at + x.count, end - at - x.count, both_ways));
    MT_PASS(mt_knn_feed_each(s->feed, end, s->n - end, one_way));
  }
  return MT_OK;
}

mt_status mt_knn_measure(mt_knn_search *s, mt_knn_pairs *pairs)
{
  hand x = {s->raw, s->first, s->local};
  s->cost.exact += pairs->count;
  if (s->raw == nullptr) return mt_agree(s->comm, measure_streamed(s, pairs));
  return mt_knn_visit(s, s->raw, s->d,
                      [=](const float *rows, int64_t first, int64_t count) {
                        return measure_at_hand(s, pairs, x, hand{rows, first, count});
                      });
}

/* ---- which pairs --------------------------------------------------------------------------------- */

static mt_status new_pairs(mt_knn_search *s, int64_t rows,
                           const mt_array<int64_t> &counts, mt_knn_pairs *out)
{
  out->rows = rows;
  MT_PASS(out->first.make(s->gpu, rows + 1, "numbers of pairs"));
  MT_PASS(mt_gpu_scan<int64_t>(s->gpu, rows, counts.data, out->first.data));
  MT_PASS(mt_to_host(s->gpu, 1, out->first.data + rows, &out->count));
  MT_PASS(out->row.make(s->gpu, out->count, "rows of pairs"));
  MT_PASS(out->column.make(s->gpu, out->count, "columns of pairs"));
  return out->distance.make(s->gpu, out->count, "distances of pairs");
}

typedef struct candidates {
  mt_knn_bound bound;
  int64_t k, room, first; /* first: number of row 0 over all rows */
  const uint64_t *keys, *limit;
  const uint32_t *count;
  const double *scale;
  const float *half, *reach, *error; /* of all rows */
} candidates;

/* Bounds of the zoomed length that a candidate of row i stands for. */
static __device__ void bounds_of(const candidates &c, int64_t i, uint64_t key,
                                 double *low, double *high)
{
  int64_t self = c.first + i, other = (uint32_t)key;
  double g = (double)mt_knn_key_value(key);
  double blur =
      mt_knn_blur(&c.bound, c.reach[self], c.reach[other], c.half[self], c.half[other]);
  double off = (double)c.error[self] + (double)c.error[other];
  *low = g > blur ? sqrt(2.0 * (g - blur)) * (1.0 - 1e-12) - off : 0.0;
  *high = g > -blur ? sqrt(2.0 * (g + blur)) * (1.0 + 1e-12) + off : off;
  if (c.bound.metric == MT_METRIC_COSINE && c.scale[other] == 0.0)
    *high = fmax(*high, mt_knn_length(&c.bound, 1.0)); /* its distance is 1 */
}

/* Is all that row i has left out further than a zoomed length? */
static __device__ bool proves(const candidates &c, int64_t i, double length)
{
  int64_t self = c.first + i;
  if (c.limit[i] == MT_KNN_OPEN) return true; /* nothing was left out */
  mt_knn_within w =
      mt_knn_near(&c.bound, length, c.reach[self], c.error[self], c.half[self]);
  double left = 2.0 * ((double)mt_knn_key_value(c.limit[i]) - w.blur);
  return c.bound.ratio < 0.5 && left > 0.0 &&
         sqrt(left) * (1.0 - 1e-12) - c.error[self] - w.error > length;
}

/* Those of row i whose lower bound is not above k upper bounds; to row and column, if not
 * NULL. Returns how many. A row that will have to be searched again, to all appearance, is
 * content with k. */
static __device__ int64_t pick_pairs(const candidates &c, int64_t i, uint32_t *row,
                                     uint32_t *column)
{
  const uint64_t *keys = c.keys + i * c.room;
  int64_t listed = c.count[i], picked = 0;
  double most = 0.0, low, high;
  if (c.scale[c.first + i] == 0.0) return 0; /* known without */
  for (int64_t p = 0; p < listed && p < c.k; p++) {
    bounds_of(c, i, keys[p], &low, &high);
    most = fmax(most, high);
  }
  if (listed > c.k) {
    double g = fmax((double)mt_knn_key_value(keys[c.k - 1]), 0.0);
    if (!proves(c, i, sqrt(2.0 * g))) listed = c.k;
  }
  for (int64_t p = 0; p < listed; p++) {
    bounds_of(c, i, keys[p], &low, &high);
    if (low > most) continue;
    if (row != nullptr) {
      row[picked] = (uint32_t)i;
      column[picked] = (uint32_t)keys[p];
    }
    picked++;
  }
  return picked;
}

static candidates candidates_of(const mt_knn_search *s)
{
  candidates c;
  c.bound = s->bound;
  c.k = s->k;
  c.room = s->sizes.room;
  c.first = s->first;
  c.keys = s->own.keys.data;
  c.limit = s->own.limit.data;
  c.count = s->own.count.data;
  c.scale = s->scale.data;
  c.half = s->half.data;
  c.reach = s->reach.data;
  c.error = s->error.data;
  return c;
}

mt_status mt_knn_plan_pairs(mt_knn_search *s, mt_knn_pairs *out)
{
  mt_array<int64_t> counts;
  candidates c = candidates_of(s);
  MT_PASS(counts.make(s->gpu, s->local, "numbers of pairs"));
  int64_t *picked = counts.data;
  MT_PASS(mt_gpu_each(s->gpu, s->local, [=] __device__(int64_t i) {
    picked[i] = pick_pairs(c, i, nullptr, nullptr);
  }));
  MT_PASS(new_pairs(s, s->local, counts, out));
  const int64_t *first = out->first.data;
  uint32_t *row = out->row.data, *column = out->column.data;
  return mt_gpu_each(s->gpu, s->local, [=] __device__(int64_t i) {
    pick_pairs(c, i, row + first[i], column + first[i]);
  });
}

mt_status mt_knn_list_pairs(mt_knn_search *s, int64_t rows, const uint32_t *pick,
                            const mt_knn_lists *lists, int64_t room, mt_knn_pairs *out)
{
  mt_array<int64_t> counts;
  const uint32_t *count = lists->count.data;
  const uint64_t *keys = lists->keys.data;
  MT_PASS(counts.make(s->gpu, rows, "numbers of pairs"));
  int64_t *listed = counts.data;
  MT_PASS(mt_gpu_each(s->gpu, rows, [=] __device__(int64_t i) {
    listed[i] = (int64_t)count[i] <= room ? (int64_t)count[i] : 0;
  }));
  MT_PASS(new_pairs(s, rows, counts, out));
  const int64_t *first = out->first.data;
  uint32_t *row = out->row.data, *column = out->column.data;
  return mt_gpu_each(s->gpu, rows * room, [=] __device__(int64_t at) {
    int64_t i = at / room, p = at % room;
    if (p >= first[i + 1] - first[i]) return;
    row[first[i] + p] = pick[i];
    column[first[i] + p] = (uint32_t)keys[at];
  });
}

/* ---- the k best ------------------------------------------------------------------------------------ */

static __device__ __forceinline__ bool comes_after(double a, uint32_t a_column,
                                                   double b, uint32_t b_column)
{
  return a > b || (a == b && a_column > b_column);
}

/* Sorts the first `size` (a power of 2) pairs in shared memory by (distance, column). */
static __device__ void sort_pairs(double *distance, uint32_t *column, unsigned size)
{
  for (unsigned width = 2; width <= size; width *= 2)
    for (unsigned apart = width / 2; apart > 0; apart /= 2) {
      for (unsigned p = threadIdx.x; p < size / 2; p += blockDim.x) {
        unsigned a = 2 * p - (p & (apart - 1)), b = a + apart;
        double low = distance[a], high = distance[b];
        uint32_t low_column = column[a], high_column = column[b];
        if (comes_after(low, low_column, high, high_column) == ((a & width) == 0)) {
          distance[a] = high;
          distance[b] = low;
          column[a] = high_column;
          column[b] = low_column;
        }
      }
      __syncthreads();
    }
}

/* A block for each row. Shared: `most` distances and columns, a power of 2. */
static __global__ void finish_kernel(int64_t k, unsigned most, const uint32_t *pick,
                                     const int64_t *first, const double *distance,
                                     const uint32_t *column, int64_t *indices,
                                     float *distances, double *kth)
{
  MT_SHARED(double, by);
  uint32_t *number = (uint32_t *)(by + most);
  int64_t from = first[blockIdx.x],
          row = pick == nullptr ? blockIdx.x : pick[blockIdx.x];
  unsigned many = (unsigned)(first[blockIdx.x + 1] - from), size = 2;
  if (many < k) return;
  while (size < many) size *= 2;
  for (unsigned p = threadIdx.x; p < size; p += blockDim.x) {
    by[p] = p < many ? distance[from + p] : INFINITY;
    number[p] = p < many ? column[from + p] : UINT32_MAX;
  }
  __syncthreads();
  sort_pairs(by, number, size);
  for (unsigned p = threadIdx.x; p < k; p += blockDim.x) {
    indices[row * k + p] = number[p];
    distances[row * k + p] = mt_metric_store(by[p]);
  }
  if (threadIdx.x == 0) kth[row] = by[k - 1];
}

mt_status mt_knn_finish(mt_knn_search *s, int64_t rows, const uint32_t *pick,
                        const mt_knn_pairs *pairs, int64_t longest)
{
  unsigned most = 2, threads = 32;
  if (rows == 0) return MT_OK;
  while (most < longest) most *= 2;
  while (threads < most / 2 && threads < THREADS) threads *= 2;
  size_t shared = most * (sizeof(double) + sizeof(uint32_t));
#ifndef MT_EMULATE
  MT_CUDA(cudaFuncSetAttribute(
      finish_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
#endif
  return MT_LAUNCH(s->gpu, finish_kernel, (unsigned)rows, threads, shared, s->k, most,
                   pick, pairs->first.data, pairs->distance.data, pairs->column.data,
                   s->indices, s->distances, s->kth.data);
}

/* ---- rows without length ---------------------------------------------------------------------------- */

/* The numbers of rows whose scale is 0, or is not. */
static mt_status list_rows(mt_knn_search *s, bool zero, mt_array<uint32_t> *out,
                           int64_t *count_out)
{
  mt_array<uint8_t> flags;
  MT_PASS(flags.make(s->gpu, s->n, "flags"));
  MT_PASS(out->make(s->gpu, s->n, "rows"));
  const double *scale = s->scale.data;
  uint8_t *flag = flags.data;
  MT_PASS(mt_gpu_each(s->gpu, s->n, [=] __device__(int64_t i) {
    flag[i] = (scale[i] == 0.0) == zero;
  }));
  return mt_gpu_select(s->gpu, s->n, flags.data, out->data, count_out);
}

/* They are at 0 from one another and at 1 from all others. */
mt_status mt_knn_zero_rows(mt_knn_search *s)
{
  mt_array<uint32_t> zero, other;
  int64_t zeros = 0, others = 0, k = s->k;
  if (s->bound.metric != MT_METRIC_COSINE) return MT_OK;
  MT_PASS(list_rows(s, true, &zero, &zeros));
  if (zeros == 0) return MT_OK;
  MT_PASS(list_rows(s, false, &other, &others));
  const uint32_t *without = zero.data, *with = other.data;
  int64_t first = s->first, local = s->local, *indices = s->indices;
  float *distances = s->distances;
  return mt_gpu_each(s->gpu, zeros, [=] __device__(int64_t z) {
    int64_t row = (int64_t)without[z] - first, at = 0;
    if (row < 0 || row >= local) return;
    for (int64_t p = 0; p < zeros && at < k; p++) {
      if (p == z) continue;
      indices[row * k + at] = without[p];
      distances[row * k + at++] = 0.0f;
    }
    for (int64_t p = 0; at < k; p++) {
      indices[row * k + at] = with[p];
      distances[row * k + at++] = 1.0f;
    }
  });
}

/* ---- proof ------------------------------------------------------------------------------------------- */

mt_status mt_knn_unproven(mt_knn_search *s, mt_array<uint32_t> *rows_out,
                          int64_t *count_out)
{
  mt_array<uint8_t> flags;
  MT_PASS(flags.make(s->gpu, s->local, "flags"));
  MT_PASS(rows_out->make(s->gpu, s->local, "rows to search again"));
  candidates c = candidates_of(s);
  const double *kth = s->kth.data;
  uint8_t *flag = flags.data;
  MT_PASS(mt_gpu_each(s->gpu, s->local, [=] __device__(int64_t i) {
    flag[i] =
        c.scale[c.first + i] != 0.0 && !proves(c, i, mt_knn_length(&c.bound, kth[i]));
  }));
  return mt_gpu_select(s->gpu, s->local, flags.data, rows_out->data, count_out);
}

/* ---- all distances of a few rows ------------------------------------------------------------------- */

/* A row's coordinates, computed as they are asked for. */
template <int METRIC> struct coordinates {
  const float *x;
  double scale;
  __device__ double operator[](int64_t t) const
  {
    return mt_metric_coordinate((mt_metric)METRIC, scale, x[t]);
  }
};

template <int METRIC>
static __global__ void brute_kernel(int64_t rows, const uint32_t *pick, int64_t own,
                                    int64_t n, int64_t d, const float *x, hand y,
                                    const double *scale, uint64_t *bits,
                                    uint32_t *column)
{
  int64_t pair = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / LANES;
  int lane = (int)threadIdx.x % LANES;
  if (pair >= rows * y.count) return;
  int64_t q = pair / y.count, j = pair % y.count, i = own + pick[q];
  double y_scale = scale[y.first + j];
  coordinates<METRIC> z = {x + q * d, scale[i]};
  double sum = add_squares<METRIC>(d, z, y.rows + j * d, y_scale, lane, 0.0);
  double found =
      mt_metric_distance((mt_metric)METRIC, z.scale, y_scale, add_lanes(sum));
  if (lane != 0) return;
  bool self = i == y.first + j;
  bits[q * n + y.first + j] =
      self ? UINT64_MAX : (uint64_t)__double_as_longlong(found); /* >= 0: in order */
  column[q * n + y.first + j] = (uint32_t)(y.first + j);
}

static mt_status brute_at_hand(mt_knn_search *s, int64_t rows, const uint32_t *pick,
                               const float *x, hand y, uint64_t *bits, uint32_t *column)
{
  unsigned blocks = (unsigned)((rows * y.count * LANES + THREADS - 1) / THREADS);
  if (blocks == 0) return MT_OK;
#define BRUTE(metric)                                                               \
  MT_LAUNCH(s->gpu, brute_kernel<metric>, blocks, THREADS, 0, rows, pick, s->first, \
            s->n, s->d, x, y, s->scale.data, bits, column)
  switch (s->bound.metric) {
  case MT_METRIC_COSINE:
    return BRUTE(MT_METRIC_COSINE);
  case MT_METRIC_HELLINGER:
    return BRUTE(MT_METRIC_HELLINGER);
  default:
    return BRUTE(MT_METRIC_EUCLIDEAN);
  }
}

/* The first k of each row of sorted distances. */
static mt_status take_best(mt_knn_search *s, int64_t rows, const uint32_t *pick,
                           const uint64_t *bits, const uint32_t *column)
{
  int64_t k = s->k, n = s->n, *indices = s->indices;
  float *distances = s->distances;
  return mt_gpu_each(s->gpu, rows * k, [=] __device__(int64_t at) {
    int64_t q = at / k, p = at % k, row = pick[q];
    indices[row * k + p] = column[q * n + p];
    distances[row * k + p] =
        mt_metric_store(__longlong_as_double((long long)bits[q * n + p]));
  });
}

mt_status mt_knn_brute(mt_knn_search *s, int64_t rows, const uint32_t *pick)
{
  mt_array<uint64_t> bits;
  mt_array<uint32_t> column;
  mt_array<float> hold;
  const float *x = nullptr;
  mt_status status = bits.make(s->gpu, rows * s->n, "all distances of some rows");
  if (status == MT_OK) status = column.make(s->gpu, rows * s->n, "numbers of all rows");
  if (status == MT_OK) status = mt_knn_gather(s, rows, pick, &hold, &x);
  MT_PASS(mt_agree(s->comm, status));
  uint64_t *by = bits.data;
  uint32_t *number = column.data;
  s->cost.brute += rows;
  s->cost.exact += rows * s->n;
  MT_PASS(mt_knn_visit_raw(s, [=](const float *at, int64_t first, int64_t count) {
    return brute_at_hand(s, rows, pick, x, hand{at, first, count}, by, number);
  }));
  for (int64_t q = 0; q < rows && status == MT_OK; q++) /* stable: ties by number */
    status = mt_gpu_sort_pairs(s->gpu, s->n, by + q * s->n, number + q * s->n, 0, 64);
  if (status == MT_OK) status = take_best(s, rows, pick, by, number);
  return mt_agree(s->comm, status);
}
