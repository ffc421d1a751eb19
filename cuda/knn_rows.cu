/* Rows before the search: checked, transformed, centred, rounded to half precision. */
#include "knn_parts.h"

#include <cuda_fp16.h>

enum { LANES = MT_METRIC_LANES, THREADS = 256 };

/* ---- looking: scale, largest coordinate, bad rows ---------------------------------------------- */

/* Over the rows of all launches; the size as the bits of a double >= 0. */
typedef struct sight {
  unsigned long long largest; /* of the coordinates */
  unsigned long long bad;     /* least number of a row that the metric does not allow */
} sight;

/* LANES threads a row: the sums are metric.h's. first: the number of row 0. */
static __global__ void look_kernel(mt_metric metric, int64_t first, int64_t count,
                                   int64_t d, const float *raw, double *scale,
                                   sight *seen)
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
  double own = metric == MT_METRIC_COSINE ? (sum > 0.0 ? 1.0 / sqrt(sum) : 0.0) : 1.0;
  scale[row] = bad ? 0.0 : own;
  if (bad) {
    atomicMin(&seen->bad, (unsigned long long)(first + row));
    return;
  }
  double size = mt_metric_coordinate(metric, own, most);
  unsigned long long bits = (unsigned long long)__double_as_longlong(size);
  if (bits > *(volatile unsigned long long *)&seen->largest)
    atomicMax(&seen->largest, bits);
}

static mt_status look_at(mt_knn_search *s, int64_t first, int64_t count,
                         const float *raw, double *scale, sight *seen)
{
  unsigned blocks = (unsigned)((count * LANES + THREADS - 1) / THREADS);
  if (count == 0) return MT_OK;
  return MT_LAUNCH(s->gpu, look_kernel, blocks, THREADS, 0, s->bound.metric, first,
                   count, s->d, raw, scale, seen);
}

static mt_status open_eyes(mt_knn_search *s, sight *seen)
{
  sight nothing = {0, ULLONG_MAX};
  MT_PASS(mt_to_device(s->gpu, 1, &nothing, seen));
  return mt_gpu_wait(s->gpu);
}

/* bad_out: the first bad row's number over all rows, or -1. */
static mt_status close_eyes(mt_knn_search *s, const sight *seen, double *largest_out,
                            int64_t *bad_out)
{
  sight host;
  MT_PASS(mt_to_host(s->gpu, 1, seen, &host));
  *bad_out = host.bad == ULLONG_MAX ? -1 : (int64_t)host.bad;
  memcpy(largest_out, &host.largest, sizeof *largest_out);
  return MT_OK;
}

/* ---- centre and zoom, from a sample of the rows ---------------------------------------------------- */

static const int64_t SAMPLE = 512; /* rows of each GPU */

static int64_t sampled(const mt_knn_search *s, int rank)
{
  int64_t count = mt_part_count(s->n, s->comm->size, rank);
  return count < SAMPLE ? count : SAMPLE;
}

/* Every so many of this GPU's rows, to out (sampled, d) on the device. */
static mt_status take_sample(mt_knn_search *s, float *out)
{
  int64_t many = sampled(s, s->comm->rank), d = s->d, local = s->local;
  const float *raw = s->raw;
  if (raw == nullptr) {
    for (int64_t i = 0; i < many; i++)
      MT_PASS(mt_knn_read(s, s->first + i * local / many, 1, out + i * d));
    return MT_OK;
  }
  return mt_gpu_each(s->gpu, many * d, [=] __device__(int64_t at) {
    out[at] = raw[at / d * local / many * d + at % d];
  });
}

/* Sums of the columns of the sample. */
static mt_status add_columns(mt_knn_search *s, int64_t count, const float *raw,
                             const double *scale, double *sums)
{
  int64_t d = s->d;
  mt_metric metric = s->bound.metric;
  return mt_gpu_each(s->gpu, d, [=] __device__(int64_t t) {
    double sum = 0.0;
#pragma unroll 8
    for (int64_t i = 0; i < count; i++)
      sum += mt_metric_coordinate(metric, scale[i], raw[i * d + t]);
    sums[t] = sum;
  });
}

static mt_status look_at_sample(mt_knn_search *s, double *sums, double *largest_out)
{
  mt_array<sight> seen;
  mt_array<float> rows;
  mt_array<double> scale;
  int64_t many = sampled(s, s->comm->rank), bad;
  MT_PASS(seen.make(s->gpu, 1, "what was seen"));
  MT_PASS(rows.make(s->gpu, many * s->d, "a sample of the rows"));
  MT_PASS(scale.make(s->gpu, many, "scales of the sample"));
  MT_PASS(open_eyes(s, seen.data));
  MT_PASS(take_sample(s, rows.data));
  MT_PASS(look_at(s, 0, many, rows.data, scale.data, seen.data));
  MT_PASS(add_columns(s, many, rows.data, scale.data, sums));
  return close_eyes(s, seen.data, largest_out, &bad);
}

/* The mean of the samples, the same on all GPUs; any centre would do. */
static mt_status settle_centre(mt_knn_search *s, const double *sums)
{
  mt_status status = MT_OK;
  double *own = NULL, *all = NULL, rows = 0.0;
  int size = s->comm->size;
  status = mt_memory_new(s->d, sizeof *own, "sums", (void **)&own);
  if (status == MT_OK)
    status = mt_memory_new(s->d * size, sizeof *all, "all sums", (void **)&all);
  if (status == MT_OK) status = mt_to_host(s->gpu, s->d, sums, own);
  MT_TRY(mt_agree(s->comm, status));
  MT_TRY(mt_allgather(s->comm, (size_t)s->d * sizeof *own, own, all));
  for (int r = 0; r < size; r++) rows += (double)sampled(s, r);
  for (int64_t t = 0; t < s->d; t++) {
    own[t] = 0.0;
    for (int r = 0; r < size; r++) own[t] += all[r * s->d + t];
    own[t] = isfinite(own[t]) ? own[t] / rows : 0.0;
  }
  status = mt_to_device(s->gpu, s->d, own, s->centre.data);
  if (status == MT_OK) status = mt_gpu_wait(s->gpu);
  MT_TRY(mt_agree(s->comm, status));
done:
  free(own);
  free(all);
  return status;
}

/* Coordinates below 2^exponent: |z - c| is below 2^(exponent + 1), |y| below 2^15. */
static double zoom_for(int exponent)
{
  return ldexp(1.0, 14 - exponent);
}

mt_status mt_knn_look(mt_knn_search *s)
{
  mt_array<double> sums;
  double largest = 0.0;
  int exponent = 1; /* cosine: no coordinate is above 1 */
  mt_status status = sums.make(s->gpu, s->d, "sums of the columns");
  if (status == MT_OK) status = look_at_sample(s, sums.data, &largest);
  MT_PASS(mt_agree(s->comm, status));
  MT_PASS(mt_max_f64(s->comm, 1, &largest));
  if (s->bound.metric != MT_METRIC_COSINE && largest > 0.0) {
    frexp(largest, &exponent);
    exponent += 2; /* the others may have larger ones */
  }
  s->bound.zoom = zoom_for(exponent);
  return settle_centre(s, sums.data);
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

/* A block for each row, or each of those that pick names. */
static __global__ void round_kernel(mt_metric metric, int64_t d, int64_t padded,
                                    double zoom, const double *centre,
                                    const uint32_t *pick, const float *raw,
                                    const double *scale, mt_knn_rounded out)
{
  __shared__ double shared[THREADS];
  int64_t row = blockIdx.x, from = pick == nullptr ? row : (int64_t)pick[row];
  double factor = scale[from], square = 0.0, off = 0.0;
  for (int64_t t = threadIdx.x; t < padded; t += blockDim.x) {
    double v = 0.0;
    if (t < d)
      v = (mt_metric_coordinate(metric, factor, raw[from * d + t]) - centre[t]) * zoom;
    __half y = __float2half_rn((float)v);
    double value = (double)__half2float(y);
    out.near[row * padded + t] = __half_as_ushort(y);
    square += value * value;
    off += (v - value) * (v - value);
  }
  square = sum_block(square, shared);
  off = sum_block(off, shared);
  if (threadIdx.x != 0) return;
  out.half[row] = (float)(0.5 * square);
  out.reach[row] = a_little_above(sqrt(square));
  /* the rest: z - c is rounded to double */
  out.error[row] = a_little_above(sqrt(off) * (1.0 + 1e-9) + sqrt((double)d) * 0x1p-36);
}

mt_status mt_knn_settle_ratio(mt_knn_search *s, int64_t count, const float *reach,
                              const float *error, mt_knn_bound *bound)
{
  mt_array<unsigned> largest;
  unsigned bits = 0;
  float ratio;
  double least = sqrt((double)s->d) * (0x1p-25 + 0x1p-36) * (1.0 + 1e-5);
  MT_PASS(largest.make_zeroed(s->gpu, 1, "ratio"));
  unsigned *out = largest.data;
  MT_PASS(mt_gpu_each(s->gpu, count, [=] __device__(int64_t i) {
    double beyond = (double)error[i] - least;
    if (beyond <= 0.0) return;
    float own = a_little_above(beyond / (double)reach[i]);
    unsigned own_bits = __float_as_uint(own);
    if (own_bits > *(volatile unsigned *)out) atomicMax(out, own_bits);
  }));
  MT_PASS(mt_to_host(s->gpu, 1, out, &bits));
  memcpy(&ratio, &bits, sizeof ratio);
  bound->least = least;
  bound->ratio = (double)ratio;
  return MT_OK;
}

mt_status mt_knn_round_about(mt_knn_search *s, const double *centre, double zoom,
                             int64_t count, const uint32_t *pick, const float *raw,
                             const double *scale, mt_knn_rounded out)
{
  if (count == 0) return MT_OK;
  return MT_LAUNCH(s->gpu, round_kernel, (unsigned)count, THREADS, 0, s->bound.metric,
                   s->d, s->padded, zoom, centre, pick, raw, scale, out);
}

mt_status mt_knn_round_rows(mt_knn_search *s, int64_t first, int64_t count,
                            const float *raw, uint16_t *near)
{
  mt_knn_rounded out = {near, s->half.data + first, s->reach.data + first,
                        s->error.data + first};
  return mt_knn_round_about(s, s->centre.data, s->bound.zoom, count, nullptr, raw,
                            s->scale.data + first, out);
}

/* Says which value of a bad row the metric does not allow. */
static mt_status refuse(mt_knn_search *s, int64_t bad)
{
  mt_status status = MT_OK;
  float *row = NULL;
  int64_t first, column = 0;
  MT_NEW(row, s->d);
  if (s->raw != nullptr)
    MT_TRY(mt_to_host(s->gpu, s->d, s->raw + (bad - s->first) * s->d, row));
  else
    MT_TRY(s->feed->rows->read(s->feed->rows, bad, 1, row));
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

/* Looks at this GPU's rows and rounds them. */
static mt_status round_own(mt_knn_search *s, sight *seen, double *largest_out,
                           int64_t *bad_out)
{
  MT_PASS(open_eyes(s, seen));
  MT_PASS(mt_knn_own_raw(s, [=](const float *raw, int64_t first, int64_t count) {
    uint16_t *near = s->near.data + (s->whole ? (first - s->first) * s->padded : 0);
    MT_PASS(look_at(s, first, count, raw, s->scale.data + first, seen));
    return mt_knn_round_rows(s, first, count, raw, near);
  }));
  return close_eyes(s, seen, largest_out, bad_out);
}

/* Once more if the sample's zoom is too much for the largest coordinate of all. */
static mt_status round_until_it_fits(mt_knn_search *s)
{
  mt_array<sight> seen;
  mt_status status = seen.make(s->gpu, 1, "what was seen");
  for (bool fits = false; !fits;) {
    double largest = 0.0;
    int64_t bad = -1;
    int exponent = INT_MIN;
    if (status == MT_OK) status = round_own(s, seen.data, &largest, &bad);
    MT_PASS(mt_agree(s->comm, status));
    MT_PASS(agree_on_rows(s, bad, &largest));
    if (largest > 0.0) frexp(largest, &exponent);
    fits = largest == 0.0 || s->bound.zoom <= zoom_for(exponent);
    if (!fits) s->bound.zoom = zoom_for(exponent);
  }
  return MT_OK;
}

mt_status mt_knn_round(mt_knn_search *s)
{
  mt_gpu *gpu = s->gpu;
  MT_PASS(round_until_it_fits(s));
  MT_PASS(mt_gpu_allgather_rows(gpu, s->comm, s->n, sizeof(double), s->scale.data));
  MT_PASS(mt_gpu_allgather_rows(gpu, s->comm, s->n, sizeof(float), s->half.data));
  MT_PASS(mt_gpu_allgather_rows(gpu, s->comm, s->n, sizeof(float), s->reach.data));
  MT_PASS(mt_gpu_allgather_rows(gpu, s->comm, s->n, sizeof(float), s->error.data));
  return mt_agree(
      s->comm, mt_knn_settle_ratio(s, s->n, s->reach.data, s->error.data, &s->bound));
}

/* ---- in double ----------------------------------------------------------------------------------- */

static __global__ void expand_kernel(mt_metric metric, int64_t d, double zoom,
                                     const double *centre, const float *raw,
                                     const double *scale, const uint32_t *numbers,
                                     int64_t first, double *out, double *half,
                                     double *reach)
{
  __shared__ double shared[THREADS];
  int64_t row = blockIdx.x;
  double factor = scale[numbers == nullptr ? first + row : (int64_t)numbers[row]];
  double square = 0.0;
  for (int64_t t = threadIdx.x; t < d; t += blockDim.x) {
    double v =
        (mt_metric_coordinate(metric, factor, raw[row * d + t]) - centre[t]) * zoom;
    out[row * d + t] = v;
    square += v * v;
  }
  square = sum_block(square, shared);
  if (threadIdx.x != 0) return;
  half[row] = 0.5 * square;
  reach[row] = sqrt(square) * (1.0 + 1e-9);
}

mt_status mt_knn_expand(mt_knn_search *s, int64_t count, const float *raw,
                        const uint32_t *numbers, int64_t first, double *out,
                        double *half_out, double *reach_out)
{
  if (count == 0) return MT_OK;
  return MT_LAUNCH(s->gpu, expand_kernel, (unsigned)count, THREADS, 0, s->bound.metric,
                   s->d, s->bound.zoom, s->centre.data, raw, s->scale.data, numbers,
                   first, out, half_out, reach_out);
}
