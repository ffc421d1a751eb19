/* Rows before the search: checked, transformed, centred, rounded to half precision. */
#include "knn_parts.h"

#include <cuda_fp16.h>

enum { LANES = MT_METRIC_LANES, THREADS = 256 };

/* ---- looking: scale, largest coordinate, bad rows ---------------------------------------------- */

/* Over all rows of a launch; sizes as bits of doubles >= 0. */
typedef struct sight {
  unsigned long long largest; /* of the coordinates */
  unsigned long long bad;     /* least number of a row that the metric does not allow */
} sight;

/* LANES threads a row: the sums are metric.h's. */
static __global__ void look_kernel(mt_metric metric, int64_t count, int64_t d,
                                   const float *raw, double *scale, sight *seen)
{
  int64_t row = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / LANES;
  int lane = (int)threadIdx.x % LANES;
  float lowest = metric == MT_METRIC_HELLINGER ? 0.0f : -FLT_MAX, most = 0.0f;
  double sum = 0.0;
  int bad = 0;
  if (row < count) {
    const float *x = raw + row * d;
#pragma unroll 8
    for (int64_t t = lane; t < d; t += LANES) {
      float value = x[t];
      sum += (double)value * (double)value;
      most = fmaxf(most, fabsf(value));
      bad |= !(value >= lowest && value <= FLT_MAX);
    }
  }
  for (int apart = LANES / 2; apart > 0; apart /= 2) { /* as mt_metric_add_lanes */
    sum += __shfl_xor_sync(0xffffffffu, sum, apart, LANES);
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, apart, LANES));
    bad |= __shfl_xor_sync(0xffffffffu, bad, apart, LANES);
  }
  if (row >= count || lane != 0) return;
  if (bad) {
    atomicMin(&seen->bad, (unsigned long long)row);
    return;
  }
  double own = metric == MT_METRIC_COSINE ? (sum > 0.0 ? 1.0 / sqrt(sum) : 0.0) : 1.0;
  scale[row] = own;
  double size = mt_metric_coordinate(metric, own, most);
  unsigned long long bits = (unsigned long long)__double_as_longlong(size);
  if (bits > *(volatile unsigned long long *)&seen->largest)
    atomicMax(&seen->largest, bits);
}

/* Adds coordinates of every stride-th row to the columns' sums. */
static mt_status add_columns(mt_knn_search *s, int64_t count, int64_t stride,
                             const float *raw, const double *scale, double *sums)
{
  int64_t d = s->d;
  mt_metric metric = s->bound.metric;
  return mt_gpu_each(s->gpu, d, [=] __device__(int64_t t) {
    double sum = 0.0;
#pragma unroll 8
    for (int64_t i = 0; i < count; i += stride)
      sum += mt_metric_coordinate(metric, scale[i], raw[i * d + t]);
    sums[t] += sum;
  });
}

/* This GPU's rows. bad_out: the first bad row's number over all rows, or -1. */
static mt_status look_own(mt_knn_search *s, double *sums, double *largest_out,
                          int64_t *bad_out)
{
  mt_array<sight> seen;
  sight host = {0, ULLONG_MAX};
  enum { SAMPLE = 1024 };
  int64_t stride = s->local > SAMPLE ? s->local / SAMPLE : 1;
  unsigned blocks = (unsigned)((s->local * LANES + THREADS - 1) / THREADS);
  double *scale = s->scale.data + s->first;
  MT_PASS(seen.make(s->gpu, 1, "what was seen"));
  MT_PASS(mt_to_device(s->gpu, 1, &host, seen.data));
  if (s->local > 0)
    MT_PASS(MT_LAUNCH(s->gpu, look_kernel, blocks, THREADS, 0, s->bound.metric,
                      s->local, s->d, s->raw, scale, seen.data));
  MT_PASS(mt_to_host(s->gpu, 1, seen.data, &host));
  *bad_out = host.bad == ULLONG_MAX ? -1 : s->first + (int64_t)host.bad;
  memcpy(largest_out, &host.largest, sizeof *largest_out);
  if (*bad_out < 0) MT_PASS(add_columns(s, s->local, stride, s->raw, scale, sums));
  return MT_OK;
}

/* Says which value of a bad row the metric does not allow. */
static mt_status refuse(mt_knn_search *s, int64_t bad)
{
  mt_status status = MT_OK;
  float *row = NULL;
  int64_t first, column = 0;
  MT_NEW(row, s->d);
  MT_TRY(mt_to_host(s->gpu, s->d, s->raw + (bad - s->first) * s->d, row));
  mt_knn_check(s->bound.metric, bad, 1, s->d, row, &first, &column);
  status = mt_knn_refuse(s->bound.metric, bad, column, row[column]);
done:
  free(row);
  return status;
}

/* Checks all rows; the first bad one's owner says so. */
static mt_status agree_on_rows(mt_knn_search *s, int64_t bad, double *largest)
{
  int64_t first_bad = bad < 0 ? s->n : bad;
  mt_status status = MT_OK;
  MT_PASS(mt_min_i64(s->comm, 1, &first_bad));
  if (first_bad < s->n && first_bad == bad) status = refuse(s, bad);
  MT_PASS(mt_agree(s->comm, status));
  return mt_max_f64(s->comm, 1, largest);
}

/* The mean of the rows that were added up, the same on all GPUs; any centre would do. */
static mt_status settle_centre(mt_knn_search *s, double *sums)
{
  mt_status status = MT_OK;
  double *own = NULL, *all = NULL;
  enum { SAMPLE = 1024 };
  double rows = 0.0;
  status = mt_memory_new(s->d, sizeof *own, "sums", (void **)&own);
  if (status == MT_OK)
    status =
        mt_memory_new(s->d * s->comm->size, sizeof *all, "all sums", (void **)&all);
  if (status == MT_OK) status = mt_to_host(s->gpu, s->d, sums, own);
  MT_TRY(mt_agree(s->comm, status));
  MT_TRY(mt_allgather(s->comm, (size_t)s->d * sizeof *own, own, all));
  for (int r = 0; r < s->comm->size; r++) {
    int64_t count = mt_part_count(s->n, s->comm->size, r);
    int64_t stride = count > SAMPLE ? count / SAMPLE : 1;
    rows += (double)((count + stride - 1) / stride);
  }
  for (int64_t t = 0; t < s->d; t++) {
    own[t] = 0.0;
    for (int r = 0; r < s->comm->size; r++) own[t] += all[r * s->d + t];
    own[t] /= rows;
  }
  status = mt_to_device(s->gpu, s->d, own, s->centre.data);
  if (status == MT_OK) status = mt_gpu_wait(s->gpu);
  MT_TRY(mt_agree(s->comm, status));
done:
  free(own);
  free(all);
  return status;
}

mt_status mt_knn_look(mt_knn_search *s)
{
  mt_array<double> sums;
  int64_t bad = -1;
  double largest = 0.0;
  int exponent = 0;
  mt_status status = sums.make_zeroed(s->gpu, s->d, "sums of the columns");
  if (status == MT_OK) status = look_own(s, sums.data, &largest, &bad);
  MT_PASS(mt_agree(s->comm, status));
  MT_PASS(agree_on_rows(s, bad, &largest));
  frexp(largest, &exponent); /* |z - c| is below 2^(exponent + 1), |y| below 2^15 */
  s->bound.zoom = largest > 0.0 ? ldexp(1.0, 14 - exponent) : 1.0;
  MT_PASS(settle_centre(s, sums.data));
  return mt_gpu_allgather_rows(s->gpu, s->comm, s->n, sizeof(double), s->scale.data);
}

/* ---- rounding ------------------------------------------------------------------------------------ */

/* The sum over the block's threads, to all of them; shared: blockDim.x doubles. */
static __device__ double sum_block(double value, double *shared)
{
  shared[threadIdx.x] = value;
  __syncthreads();
  for (unsigned apart = blockDim.x / 2; apart > 0; apart /= 2) {
    if (threadIdx.x < apart) shared[threadIdx.x] += shared[threadIdx.x + apart];
    __syncthreads();
  }
  double sum = shared[0];
  __syncthreads();
  return sum;
}

static __device__ __forceinline__ float a_little_above(double value)
{
  float least = value > 0.0 ? FLT_MIN : 0.0f;
  return fmaxf((float)(value * (1.0 + 0x1p-20)), least);
}

/* A block for each row. */
static __global__ void round_kernel(mt_metric metric, int64_t d, int64_t padded,
                                    double zoom, const double *centre, const float *raw,
                                    const double *scale, uint16_t *near, float *half,
                                    float *reach, float *error)
{
  __shared__ double shared[THREADS];
  int64_t row = blockIdx.x;
  double factor = scale[row], square = 0.0, off = 0.0;
  for (int64_t t = threadIdx.x; t < padded; t += blockDim.x) {
    double v = 0.0;
    if (t < d)
      v = (mt_metric_coordinate(metric, factor, raw[row * d + t]) - centre[t]) * zoom;
    __half y = __float2half_rn((float)v);
    double value = (double)__half2float(y);
    near[row * padded + t] = __half_as_ushort(y);
    square += value * value;
    off += (v - value) * (v - value);
  }
  square = sum_block(square, shared);
  off = sum_block(off, shared);
  if (threadIdx.x != 0) return;
  half[row] = (float)(0.5 * square);
  reach[row] = a_little_above(sqrt(square));
  /* the rest: z - c is rounded to double */
  error[row] = a_little_above(sqrt(off) * (1.0 + 1e-9) + sqrt((double)d) * 0x1p-36);
}

/* ratio: so that e <= ratio r + least for all rows. */
static mt_status settle_ratio(mt_knn_search *s)
{
  mt_array<unsigned> largest;
  unsigned bits = 0;
  float ratio;
  const float *reach = s->reach.data, *error = s->error.data;
  double least = sqrt((double)s->d) * (0x1p-25 + 0x1p-36) * (1.0 + 1e-5);
  MT_PASS(largest.make_zeroed(s->gpu, 1, "ratio"));
  unsigned *out = largest.data;
  MT_PASS(mt_gpu_each(s->gpu, s->n, [=] __device__(int64_t i) {
    double beyond = (double)error[i] - least;
    if (beyond <= 0.0) return;
    float own = a_little_above(beyond / (double)reach[i]);
    unsigned own_bits = __float_as_uint(own);
    if (own_bits > *(volatile unsigned *)out) atomicMax(out, own_bits);
  }));
  MT_PASS(mt_to_host(s->gpu, 1, out, &bits));
  memcpy(&ratio, &bits, sizeof ratio);
  s->bound.least = least;
  s->bound.ratio = (double)ratio;
  return MT_OK;
}

mt_status mt_knn_round(mt_knn_search *s)
{
  mt_status status = MT_OK;
  if (s->local > 0)
    status =
        MT_LAUNCH(s->gpu, round_kernel, (unsigned)s->local, THREADS, 0, s->bound.metric,
                  s->d, s->padded, s->bound.zoom, s->centre.data, s->raw,
                  s->scale.data + s->first, s->near.data, s->half.data + s->first,
                  s->reach.data + s->first, s->error.data + s->first);
  MT_PASS(mt_agree(s->comm, status));
  MT_PASS(mt_gpu_allgather_rows(s->gpu, s->comm, s->n, sizeof(float), s->half.data));
  MT_PASS(mt_gpu_allgather_rows(s->gpu, s->comm, s->n, sizeof(float), s->reach.data));
  MT_PASS(mt_gpu_allgather_rows(s->gpu, s->comm, s->n, sizeof(float), s->error.data));
  return mt_agree(s->comm, settle_ratio(s));
}

/* ---- in double ----------------------------------------------------------------------------------- */

static __global__ void expand_kernel(mt_metric metric, int64_t d, double zoom,
                                     const double *centre, const uint32_t *pick,
                                     const float *raw, const double *scale, double *out,
                                     double *half, double *reach)
{
  __shared__ double shared[THREADS];
  int64_t row = blockIdx.x, from = pick == nullptr ? row : (int64_t)pick[row];
  double factor = scale[from], square = 0.0;
  for (int64_t t = threadIdx.x; t < d; t += blockDim.x) {
    double v =
        (mt_metric_coordinate(metric, factor, raw[from * d + t]) - centre[t]) * zoom;
    out[row * d + t] = v;
    square += v * v;
  }
  square = sum_block(square, shared);
  if (threadIdx.x != 0) return;
  half[row] = 0.5 * square;
  reach[row] = sqrt(square) * (1.0 + 1e-9);
}

mt_status mt_knn_expand(mt_knn_search *s, int64_t count, const uint32_t *pick,
                        const float *raw, const double *scale, double *out,
                        double *half_out, double *reach_out)
{
  if (count == 0) return MT_OK;
  return MT_LAUNCH(s->gpu, expand_kernel, (unsigned)count, THREADS, 0, s->bound.metric,
                   s->d, s->bound.zoom, s->centre.data, pick, raw, scale, out, half_out,
                   reach_out);
}
