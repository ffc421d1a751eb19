/* Products of rounded rows on the tensor cores, and the lists of candidates that they give. */
#include "knn_parts.h"

extern "C" {
#include "base/stop.h"
}

/* ---- products ------------------------------------------------------------------------------- */

double mt_knn_gamma(int64_t padded, int64_t panel)
{
  if (panel > padded) panel = padded;
  double groups = ceil((double)panel / 16.0);
  double panels =
      ceil((double)padded / (double)panel) + 16.0; /* and splits within one */
  return (10.0 * groups + panels) * 0x1p-23 * 1.01;
}

mt_status mt_knn_multiply(mt_knn_search *s, int64_t rows, const uint16_t *a,
                          int64_t columns, const uint16_t *b, int64_t panel)
{
  const float one = 1.0f, zero = 0.0f;
  int padded = (int)s->padded, stride = (int)s->sizes.tile;
  for (int64_t from = 0; from < s->padded; from += panel) {
    int64_t many = s->padded - from < panel ? s->padded - from : panel;
    MT_CUBLAS(cublasGemmEx(s->gpu->blas, CUBLAS_OP_T, CUBLAS_OP_N, (int)columns,
                           (int)rows, (int)many, &one, b + from, CUDA_R_16F, padded,
                           a + from, CUDA_R_16F, padded, from == 0 ? &zero : &one,
                           s->product.data, CUDA_R_32F, stride, CUBLAS_COMPUTE_32F,
                           CUBLAS_GEMM_DEFAULT));
  }
  return MT_OK;
}

/* ---- filtering -------------------------------------------------------------------------------- */

static __device__ __forceinline__ uint32_t number_of(const mt_knn_side &side, int64_t i)
{
  return side.numbers != nullptr ? side.numbers[i] : (uint32_t)(side.first + i);
}

/* Appends a candidate to row i's list of a side, if it is good. */
static __device__ void append(const mt_knn_side &side, int64_t i, uint32_t self,
                              uint32_t other, float g, int64_t room)
{
  uint64_t key = mt_knn_key(g, other);
  if (key >= side.limit[i] || self == other) return;
  if (side.last != nullptr && other > side.last[i]) return;
  if (*(volatile uint32_t *)(side.count + i) > room) return; /* it will be done again */
  uint32_t at = atomicAdd(side.count + i, 1u);
  if (at < room) side.keys[i * room + at] = key;
}

/* 4 columns, STRIP rows. */
enum { STRIP = 32, ACROSS = 4, AHEAD = 8 };

template <class T> struct mt_four {
  T at[ACROSS];
};
static __device__ __forceinline__ mt_four<float> load_four(const float *from)
{
  float4 v = *(const float4 *)from;
  return mt_four<float>{{v.x, v.y, v.z, v.w}};
}
static __device__ __forceinline__ mt_four<double> load_four(const double *from)
{
  return mt_four<double>{{from[0], from[1], from[2], from[3]}};
}

template <class T> struct mt_filter {
  const T *product; /* (rows, stride); stride a multiple of 4 */
  int64_t stride, room;
  mt_knn_side rows, columns;
  const T *row_half, *column_half, *row_level;
  const float *column_level; /* NULL: columns are not looked for */
};

template <class T>
static __device__ void found(const mt_filter<T> &f, int64_t i, int64_t j, T g,
                             bool for_row, bool for_column)
{
  uint32_t row = number_of(f.rows, i), column = number_of(f.columns, j);
  if (for_row) append(f.rows, i, row, column, (float)g, f.room);
  if (for_column) append(f.columns, j, column, row, (float)g, f.room);
}

template <class T>
static __device__ void filter_strip(const mt_filter<T> &f, int64_t item)
{
  int64_t across = (f.columns.rows + ACROSS - 1) / ACROSS;
  int64_t column = item % across * ACROSS, from = item / across * STRIP;
  int64_t to = from + STRIP < f.rows.rows ? from + STRIP : f.rows.rows;
  T half[ACROSS], level[ACROSS];
  for (int q = 0; q < ACROSS; q++) {
    bool there = column + q < f.columns.rows;
    half[q] = there ? f.column_half[column + q] : (T)INFINITY; /* never found */
    level[q] = there && f.column_level != nullptr ? (T)f.column_level[column + q]
                                                  : -(T)INFINITY;
  }
  for (; from < to; from += AHEAD) {
    mt_four<T> p[AHEAD];
#pragma unroll
    for (int a = 0; a < AHEAD; a++)
      if (from + a < to) p[a] = load_four(f.product + (from + a) * f.stride + column);
#pragma unroll
    for (int a = 0; a < AHEAD; a++) {
      if (from + a >= to) break;
      T row_half = f.row_half[from + a], row_level = f.row_level[from + a];
#pragma unroll
      for (int q = 0; q < ACROSS; q++) {
        T g = row_half + half[q] - p[a].at[q];
        bool for_row = g <= row_level && g < (T)INFINITY, for_column = g <= level[q];
        if (for_row || for_column)
          found(f, from + a, column + q, g, for_row, for_column);
      }
    }
  }
}

template <class T>
mt_status mt_knn_filter(mt_knn_search *s, const T *product, int64_t stride,
                        mt_knn_side rows, mt_knn_side columns, const T *row_half,
                        const T *column_half, const T *row_level, int64_t room)
{
  mt_filter<T> f = {product,  stride,      room,      rows,         columns,
                    row_half, column_half, row_level, columns.level};
  int64_t across = (columns.rows + ACROSS - 1) / ACROSS;
  int64_t down = (rows.rows + STRIP - 1) / STRIP;
  return mt_gpu_each(s->gpu, across * down,
                     [=] __device__(int64_t item) { filter_strip(f, item); });
}
template mt_status mt_knn_filter(mt_knn_search *, const float *, int64_t, mt_knn_side,
                                 mt_knn_side, const float *, const float *,
                                 const float *, int64_t);
template mt_status mt_knn_filter(mt_knn_search *, const double *, int64_t, mt_knn_side,
                                 mt_knn_side, const double *, const double *,
                                 const double *, int64_t);

/* ---- settling: lists are cut to the best, and filled again if they ran over ------------------- */

/* Sorts the first `size` (a power of 2) of the block's shared keys. */
static __device__ void sort_keys(uint64_t *keys, unsigned size)
{
  for (unsigned width = 2; width <= size; width *= 2)
    for (unsigned apart = width / 2; apart > 0; apart /= 2) {
      for (unsigned p = threadIdx.x; p < size / 2; p += blockDim.x) {
        unsigned a = 2 * p - (p & (apart - 1)), b = a + apart;
        uint64_t low = keys[a], high = keys[b];
        if ((low > high) == ((a & width) == 0)) {
          keys[a] = high;
          keys[b] = low;
        }
      }
      __syncthreads();
    }
}

/* Sorts the list and cuts it to `keep`; the limit follows. Called by the whole block. */
static __device__ void cut(uint64_t *keys, unsigned *count, uint64_t *limit,
                           unsigned keep)
{
  __syncthreads();
  unsigned many = *count, size = 2;
  while (size < many) size *= 2;
  for (unsigned p = many + threadIdx.x; p < size; p += blockDim.x) keys[p] = UINT64_MAX;
  __syncthreads();
  sort_keys(keys, size);
  if (threadIdx.x == 0 && many >= keep) {
    *count = keep;
    if (keys[keep - 1] < *limit) *limit = keys[keep - 1];
  }
  __syncthreads();
}

/* The block of products, as one side's rows see it. */
typedef struct view {
  const float *product;
  int64_t row_step, other_step;
} view;

/* A block for each row of a side. Shared: room keys. others.rows 0: only to sort. */
static __global__ void settle_kernel(mt_knn_side side, mt_knn_side others, view in,
                                     unsigned keep, unsigned room, bool always)
{
  MT_SHARED(uint64_t, keys);
  __shared__ unsigned count;
  __shared__ uint64_t limit;
  int64_t i = blockIdx.x;
  unsigned listed = side.count[i];
  uint64_t before = side.limit[i];
  bool again = others.rows > 0 && (listed > room || before == MT_KNN_OPEN);
  if (!again && !always && listed <= room / 2) return;
  uint32_t self = (uint32_t)(side.first + i);
  uint32_t first = (uint32_t)others.first, many = (uint32_t)others.rows;
  if (threadIdx.x == 0) {
    count = 0;
    limit = before;
  }
  __syncthreads();
  for (unsigned p = threadIdx.x; p < (listed < room ? listed : room); p += blockDim.x) {
    uint64_t key = side.keys[i * room + p];
    if (!again || (uint32_t)key - first >= many) /* not of this block */
      keys[atomicAdd(&count, 1u)] = key;
  }
  __syncthreads();
  for (int64_t from = 0; again && from < others.rows; from += blockDim.x) {
    bool full = count > room - blockDim.x;
    __syncthreads(); /* all have read it before any adds to it */
    if (full) cut(keys, &count, &limit, keep);
    int64_t j = from + threadIdx.x;
    uint64_t key = UINT64_MAX;
    if (j < others.rows && first + (uint32_t)j != self)
      key = mt_knn_key(side.half[i] + others.half[j] -
                           in.product[i * in.row_step + j * in.other_step],
                       first + (uint32_t)j);
    if (key < limit) keys[atomicAdd(&count, 1u)] = key;
    __syncthreads();
  }
  cut(keys, &count, &limit, keep);
  for (unsigned p = threadIdx.x; p < count; p += blockDim.x)
    side.keys[i * room + p] = keys[p];
  if (threadIdx.x != 0) return;
  side.count[i] = count;
  side.limit[i] = limit;
  side.level[i] = limit == MT_KNN_OPEN ? -INFINITY : mt_knn_key_value(limit);
}

static mt_status settle(mt_knn_search *s, mt_knn_side side, mt_knn_side others, view in,
                        bool always)
{
  unsigned keep = (unsigned)s->sizes.keep, room = (unsigned)s->sizes.room,
           threads = 256;
  size_t shared = room * sizeof(uint64_t);
  if (side.rows == 0) return MT_OK;
  while (threads > 32 && keep + threads > room) threads /= 2;
#ifndef MT_EMULATE
  MT_CUDA(cudaFuncSetAttribute(
      settle_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
#endif
  return MT_LAUNCH(s->gpu, settle_kernel, (unsigned)side.rows, threads, shared, side,
                   others, in, keep, room, always);
}

/* Sorts all lists of a side. */
static mt_status settle_all(mt_knn_search *s, mt_knn_side side)
{
  mt_knn_side nobody = {};
  return settle(s, side, nobody, view{}, true);
}

/* ---- blocks ------------------------------------------------------------------------------------- */

mt_status mt_knn_new_lists(mt_knn_search *s, int64_t rows, int64_t room,
                           mt_knn_lists *lists)
{
  MT_PASS(lists->keys.make(s->gpu, rows * room, "candidates"));
  MT_PASS(lists->count.make_zeroed(s->gpu, rows, "numbers of candidates"));
  MT_PASS(lists->limit.make(s->gpu, rows, "limits"));
  MT_PASS(lists->level.make(s->gpu, rows, "levels"));
  uint64_t *limit = lists->limit.data;
  float *level = lists->level.data;
  return mt_gpu_each(s->gpu, rows, [=] __device__(int64_t i) {
    limit[i] = MT_KNN_OPEN;
    level[i] = -INFINITY;
  });
}

/* Rounded rows of one GPU, and the lists of what they look for. */
typedef struct shard {
  int64_t first, count; /* numbers over all rows */
  const uint16_t *near;
  mt_knn_lists *lists;
} shard;

static mt_knn_side side_of(const mt_knn_search *s, const shard *of, int64_t at,
                           int64_t rows)
{
  mt_knn_lists *lists = of->lists;
  mt_knn_side side = {};
  side.first = of->first + at;
  side.rows = rows;
  side.half = s->half.data + side.first;
  side.keys = lists->keys.data + at * s->sizes.room;
  side.count = lists->count.data + at;
  side.limit = lists->limit.data + at;
  side.level = lists->level.data + at;
  return side;
}

/* Two blocks of rounded rows. The rows look for columns; columns with lists look for rows,
 * unless the block lies on the diagonal, where each pair is there twice. */
static mt_status search_block(mt_knn_search *s, mt_knn_side rows, const uint16_t *a,
                              mt_knn_side columns, const uint16_t *b)
{
  int64_t tile = s->sizes.tile;
  const float *product = s->product.data;
  bool both = columns.keys != nullptr && rows.first != columns.first;
  mt_knn_side seen = columns; /* as the filter is to see it */
  if (!both) seen.level = nullptr;
  MT_PASS(mt_knn_multiply(s, rows.rows, a, columns.rows, b, s->sizes.panel));
  MT_PASS(mt_knn_filter<float>(s, product, tile, rows, seen, rows.half, columns.half,
                               rows.level, s->sizes.room));
  MT_PASS(settle(s, rows, columns, view{product, tile, 1}, false));
  if (!both) return MT_OK;
  return settle(s, columns, rows, view{product, 1, tile}, false);
}

static int64_t least(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

/* Rows [from, to) of a against all of b; or against those from themselves on, if b is a. */
static mt_status search_shards(mt_knn_search *s, const shard *a, int64_t from,
                               int64_t to, const shard *b, int64_t b_from, int64_t b_to,
                               int64_t *done)
{
  int64_t tile = s->sizes.tile;
  for (int64_t i = from; i < to; i += tile) {
    for (int64_t j = a == b ? i : b_from; j < b_to; j += tile) {
      int64_t rows = least(tile, to - i), columns = least(tile, b_to - j);
      MT_PASS(search_block(s, side_of(s, a, i, rows), a->near + i * s->padded,
                           side_of(s, b, j, columns), b->near + j * s->padded));
      *done += rows * columns * (a == b && i == j ? 1 : 2);
    }
    MT_PASS(mt_gpu_wait(s->gpu)); /* the display tells the truth */
    mt_progress_update((int64_t)((double)*done / (double)s->n * s->comm->size));
    if (s->comm->size == 1 && mt_stop_requested()) return MT_STOPPED;
  }
  return MT_OK;
}

/* The visitors' lists go home, where they are merged into the own ones. */
static mt_status send_home(mt_knn_search *s, int step, const shard *visitors)
{
  const mt_comm *comm = s->comm;
  int64_t keep = s->sizes.keep, room = s->sizes.room, local = s->local;
  mt_array<uint64_t> going, coming;
  shard own = {s->first, s->local, s->near.data, &s->own};
  mt_knn_side mine = side_of(s, &own, 0, local);
  mt_status status = settle_all(s, side_of(s, visitors, 0, visitors->count));
  if (status == MT_OK) status = settle_all(s, mine);
  if (status == MT_OK)
    status = going.make(s->gpu, visitors->count * keep, "candidates to send");
  if (status == MT_OK)
    status = coming.make(s->gpu, local * keep, "candidates received");
  MT_PASS(mt_agree(comm, status));
  const uint64_t *from = visitors->lists->keys.data;
  const uint32_t *count = visitors->lists->count.data;
  uint64_t *packed = going.data;
  MT_PASS(mt_gpu_each(s->gpu, visitors->count * keep, [=] __device__(int64_t at) {
    int64_t i = at / keep, p = at % keep;
    packed[at] = p < (int64_t)count[i] ? from[i * room + p] : MT_KNN_OPEN;
  }));
  int64_t key = sizeof(uint64_t);
  MT_PASS(mt_gpu_shift_begin(s->gpu, comm, comm->size - step,
                             visitors->count * keep * key, going.data,
                             local * keep * key, coming.data));
  MT_PASS(mt_gpu_shift_end(s->gpu, comm));
  const uint64_t *arrived = coming.data;
  MT_PASS(mt_gpu_each(s->gpu, local, [=] __device__(int64_t i) {
    for (int64_t p = 0; p < keep; p++) {
      uint64_t found = arrived[i * keep + p];
      if (found >= mine.limit[i]) return; /* sorted: so are the rest */
      mine.keys[i * room + mine.count[i]++] = found;
    }
  }));
  return settle_all(s, mine);
}

/* Of two GPUs that hold each other's rows at once, each takes half of the pairs: the lower
 * rank its own first half, the other one the rest. */
static void share_pairs(const mt_knn_search *s, int step, const shard *visitors,
                        int64_t own[2], int64_t their[2])
{
  own[0] = their[0] = 0;
  own[1] = s->local;
  their[1] = visitors->count;
  if (2 * step != s->comm->size) return;
  if (s->first < visitors->first)
    own[1] = s->local / 2;
  else
    their[0] = visitors->count / 2;
}

/* The GPU whose rows come by in a step. */
static shard visitors_of(const mt_knn_search *s, int step, const uint16_t *near,
                         mt_knn_lists *lists)
{
  int size = s->comm->size, whose = (s->comm->rank + size - step) % size;
  return shard{mt_part_first(s->n, size, whose), mt_part_count(s->n, size, whose), near,
               lists};
}

/* One step of the ring: the own rows against the visitors, for both. */
static mt_status search_visitors(mt_knn_search *s, int step, const shard *visitors,
                                 const uint64_t *limits, int64_t *done)
{
  shard own = {s->first, s->local, s->near.data, &s->own};
  int64_t mine[2], their[2];
  uint64_t *limit = visitors->lists->limit.data;
  float *level = visitors->lists->level.data;
  uint32_t *count = visitors->lists->count.data;
  const uint64_t *from = limits + visitors->first;
  MT_PASS(mt_gpu_each(s->gpu, visitors->count, [=] __device__(int64_t i) {
    count[i] = 0;
    limit[i] = from[i];
    level[i] = from[i] == MT_KNN_OPEN ? -INFINITY : mt_knn_key_value(from[i]);
  }));
  share_pairs(s, step, visitors, mine, their);
  return search_shards(s, &own, mine[0], mine[1], visitors, their[0], their[1], done);
}

/* Every row's limit, on every GPU. */
static mt_status share_limits(mt_knn_search *s, uint64_t *limits)
{
  mt_status status =
      mt_on_device(s->gpu, s->local, s->own.limit.data, limits + s->first);
  MT_PASS(mt_agree(s->comm, status));
  return mt_gpu_allgather_rows(s->gpu, s->comm, s->n, sizeof(uint64_t), limits);
}

/* The own rows among themselves, then the other GPUs' rows as they come by: half of the ring
 * is enough, for each pair is searched for both. */
static mt_status select_on_ring(mt_knn_search *s)
{
  const mt_comm *comm = s->comm;
  int size = comm->size, steps = size / 2;
  int64_t row_bytes = s->padded * (int64_t)sizeof(uint16_t), done = 0;
  shard own = {s->first, s->local, s->near.data, &s->own};
  mt_array<uint16_t> there[2];
  mt_array<uint64_t> limits;
  mt_knn_lists lists;
  mt_status status = MT_OK;
  for (int b = 0; b < 2 && b < steps && status == MT_OK; b++)
    status = there[b].make(s->gpu, s->widest * s->padded, "rows of other GPUs");
  if (status == MT_OK && size > 1)
    status = limits.make(s->gpu, s->n, "limits of all rows");
  if (status == MT_OK && size > 1)
    status = mt_knn_new_lists(s, s->widest, s->sizes.room, &lists);
  MT_PASS(mt_agree(comm, status));
  for (int step = 0; step <= steps; step++) {
    shard visitors = visitors_of(s, step, there[(step + 1) % 2].data, &lists);
    if (step < steps)
      MT_PASS(mt_gpu_shift_begin(
          s->gpu, comm, step + 1, s->local * row_bytes, s->near.data,
          visitors_of(s, step + 1, nullptr, &lists).count * row_bytes,
          there[step % 2].data));
    status = step == 0 ? search_shards(s, &own, 0, s->local, &own, 0, s->local, &done)
                       : search_visitors(s, step, &visitors, limits.data, &done);
    if (step < steps) MT_PASS(mt_gpu_shift_end(s->gpu, comm));
    if (status == MT_OK && mt_stop_requested()) status = MT_STOPPED;
    MT_PASS(mt_agree(comm, status));
    if (step > 0)
      MT_PASS(send_home(s, step, &visitors));
    else if (size > 1)
      MT_PASS(share_limits(s, limits.data));
  }
  return MT_OK;
}

/* The own rows against a block of any rows, for the own ones alone. */
static mt_status search_one_sided(mt_knn_search *s, const uint16_t *near, int64_t first,
                                  int64_t count)
{
  shard own = {s->first, s->local, s->near.data, &s->own};
  int64_t tile = s->sizes.tile;
  for (int64_t i = 0; i < s->local; i += tile)
    for (int64_t j = 0; j < count; j += tile) {
      mt_knn_side rows = side_of(s, &own, i, least(tile, s->local - i)), columns = {};
      columns.first = first + j;
      columns.rows = least(tile, count - j);
      columns.half = s->half.data + columns.first;
      MT_PASS(search_block(s, rows, own.near + i * s->padded, columns,
                           near + j * s->padded));
    }
  if (mt_stop_requested()) return MT_STOPPED;
  mt_progress_update(s->done + (int64_t)((double)(first + count) / (double)s->n *
                                         (double)(s->local * s->comm->size)));
  return MT_OK;
}

mt_status mt_knn_select(mt_knn_search *s)
{
  shard own = {s->first, s->local, s->near.data, &s->own};
  if (s->whole)
    MT_PASS(select_on_ring(s));
  else
    MT_PASS(
        mt_knn_visit_near(s, [=](const uint16_t *near, int64_t first, int64_t count) {
          return search_one_sided(s, near, first, count);
        }));
  return settle_all(s, side_of(s, &own, 0, s->local));
}
