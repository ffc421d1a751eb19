#include <algorithm>
#include <vector>

#include "gpu_bench.h"

extern "C" {
#include "knn/knn.h"
}

/* ---- distances in double ---------------------------------------------------------------- */

enum { SAMPLES = 1000, TILE = 16, STEP = 32 };

/* What a metric compares: x / |x| for cosine, sqrt x for hellinger, x. */
static __device__ double changed(mt_metric metric, float value, double norm)
{
  if (metric == MT_METRIC_COSINE) return norm > 0.0 ? (double)value / norm : 0.0;
  return metric == MT_METRIC_HELLINGER ? sqrt((double)value) : (double)value;
}

static mt_status norms(mt_gpu *gpu, int64_t n, int64_t d, const float *rows,
                       double *out)
{
  return mt_gpu_each(gpu, n, [=] __device__(int64_t i) {
    double sum = 0.0;
    for (int64_t t = 0; t < d; t++)
      sum += (double)rows[i * d + t] * (double)rows[i * d + t];
    out[i] = sqrt(sum);
  });
}

struct side {
  int64_t n;
  const float *rows;
  const double *norms;
};

/* Squared distances of (y, x), TILE x TILE a block, STEP columns at a time. */
static __global__ void distances_kernel(mt_metric metric, int64_t d, side y, side x,
                                        double *out)
{
  __shared__ double a[TILE][STEP + 1], b[TILE][STEP + 1];
  int64_t i0 = (int64_t)blockIdx.y * TILE, j0 = (int64_t)blockIdx.x * TILE;
  int64_t i = i0 + threadIdx.x / TILE, j = j0 + threadIdx.x % TILE;
  double sum = 0.0;
  for (int64_t t0 = 0; t0 < d; t0 += STEP) {
    for (int at = threadIdx.x; at < TILE * STEP; at += blockDim.x) {
      int64_t row = at / STEP, t = t0 + at % STEP;
      bool in = t < d;
      a[row][at % STEP] =
          in && i0 + row < y.n
              ? changed(metric, y.rows[(i0 + row) * d + t], y.norms[i0 + row])
              : 0.0;
      b[row][at % STEP] =
          in && j0 + row < x.n
              ? changed(metric, x.rows[(j0 + row) * d + t], x.norms[j0 + row])
              : 0.0;
    }
    __syncthreads();
    for (int t = 0; t < STEP; t++) {
      double difference = a[threadIdx.x / TILE][t] - b[threadIdx.x % TILE][t];
      sum += difference * difference;
    }
    __syncthreads();
  }
  if (i < y.n && j < x.n) out[i * x.n + j] = sum;
}

static double distance_of(mt_metric metric, double squared)
{
  if (metric == MT_METRIC_COSINE) return 0.5 * squared;
  return sqrt(metric == MT_METRIC_HELLINGER ? 0.5 * squared : squared);
}

/* A sampled row's k nearest so far, as a heap, and the true distances of those it was told. */
struct sample {
  int64_t row;
  std::vector<double> heap, told;
};

static void look(mt_metric metric, int64_t k, int64_t first, int64_t count,
                 const double *squared, const int64_t *indices, sample *s)
{
  for (int64_t j = 0; j < count; j++) {
    double distance = distance_of(metric, squared[j]);
    if (first + j == s->row) continue;
    if ((int64_t)s->heap.size() < k) {
      s->heap.push_back(distance);
      std::push_heap(s->heap.begin(), s->heap.end());
    } else if (distance < s->heap[0]) {
      std::pop_heap(s->heap.begin(), s->heap.end());
      s->heap.back() = distance;
      std::push_heap(s->heap.begin(), s->heap.end());
    }
  }
  for (int64_t m = 0; m < k; m++) {
    int64_t at = indices[s->row * k + m] - first;
    if (at >= 0 && at < count) s->told[(size_t)m] = distance_of(metric, squared[at]);
  }
}

/* Told neighbours no further than the k-th (ties to 1e-9 of it), all of them found once. */
static void judge(const std::vector<sample> &samples, int64_t k, const float *distances,
                  mt_bench_row *row)
{
  int64_t right = 0;
  double worst = 0.0, relative = 0.0;
  for (const sample &s : samples)
    for (int64_t m = 0; m < k; m++) {
      double told = s.told[(size_t)m], got = (double)distances[s.row * k + m];
      right += told >= 0.0 && told <= s.heap[0] * (1.0 + 1e-9);
      worst = std::max(worst, fabs(got - told));
      if (told > 0.0) relative = std::max(relative, fabs(got - told) / told);
    }
  mt_bench_note(
      row, "recall %.6f of %zu sampled rows, distances off by %.1e (%.1e relative)",
      (double)right / (double)((int64_t)samples.size() * k), samples.size(), worst,
      relative);
}

mt_status mt_bench_check_knn(mt_gpu *gpu, const mt_planted *planted, mt_metric metric,
                             int64_t n, int64_t k, const int64_t *indices,
                             const float *distances, mt_bench_row *row)
{
  const int64_t d = planted->n_terms, m = std::min<int64_t>(SAMPLES, n);
  const int64_t most = std::min<int64_t>(n, 4096);
  std::vector<sample> samples((size_t)m);
  std::vector<double> squared((size_t)(m * most));
  mt_array<float> chosen, tile;
  mt_array<double> chosen_norms, tile_norms, between;
  MT_PASS(chosen.make(gpu, m * d, "sampled rows"));
  MT_PASS(tile.make(gpu, most * d, "rows"));
  MT_PASS(chosen_norms.make(gpu, m, "norms"));
  MT_PASS(tile_norms.make(gpu, most, "norms"));
  MT_PASS(between.make(gpu, m * most, "distances"));
  for (int64_t i = 0; i < m; i++) {
    samples[(size_t)i].row = i * n / m;
    samples[(size_t)i].told.assign((size_t)k, -1.0);
    MT_PASS(mt_planted_rows(gpu, planted, i * n / m, 1, chosen.data + i * d));
  }
  MT_PASS(norms(gpu, m, d, chosen.data, chosen_norms.data));
  for (int64_t first = 0; first < n; first += most) {
    const int64_t count = std::min(most, n - first);
    MT_PASS(mt_planted_rows(gpu, planted, first, count, tile.data));
    MT_PASS(norms(gpu, count, d, tile.data, tile_norms.data));
    MT_PASS(MT_LAUNCH(
        gpu, distances_kernel,
        dim3((unsigned)((count + TILE - 1) / TILE), (unsigned)((m + TILE - 1) / TILE)),
        TILE * TILE, 0, metric, d, side{m, chosen.data, chosen_norms.data},
        side{count, tile.data, tile_norms.data}, between.data));
    MT_PASS(mt_to_host(gpu, m * count, between.data, squared.data()));
    for (int64_t i = 0; i < m; i++)
      look(metric, k, first, count, squared.data() + i * count, indices,
           &samples[(size_t)i]);
  }
  judge(samples, k, distances, row);
  return MT_OK;
}
