#include "gpu_points.h"

#include <algorithm>

#include "primitives.h"

enum {
  CORNERS = 4, /* orders that are tried */
  MOVES = 5, /* fifths: the curve's cells of any size have other bounds in each order */
  WINDOW = 128, /* places on either side in each: more than MT_LIST_MOST */
  MOST_DIMENSIONS = 8
};

/* A point's place on the curve: the bits of its coordinates in turns. low, scale: of all
 * points; the corner moves the curve against them. */
static __device__ uint64_t place_of(int64_t d, const float *point, float low,
                                    float scale, int corner)
{
  const int bits = 60 / (int)d;
  const float cells = (float)((int64_t)1 << (bits - 1)); /* half: room for the move */
  uint64_t place = 0, cell[MOST_DIMENSIONS];
  for (int64_t t = 0; t < d; t++)
    cell[t] = (uint64_t)((point[t] - low) * scale * (cells - 1.0f) +
                         cells * (float)corner / MOVES);
  for (int bit = bits - 1; bit >= 0; bit--)
    for (int64_t t = 0; t < d; t++) place = place << 1 | (cell[t] >> bit & 1);
  return place;
}

/* A list that is kept in order: nearest first, ties by lower index. */
struct nearest {
  int64_t k, count;
  float squared[MT_LIST_MOST];
  int32_t index[MT_LIST_MOST];
};

static __device__ void offer(nearest *list, float squared, int32_t index)
{
  int64_t k = list->k, at = list->count;
  if (at == k && !(squared < list->squared[k - 1] ||
                   (squared == list->squared[k - 1] && index < list->index[k - 1])))
    return;
  for (int64_t j = 0; j < at; j++)
    if (list->index[j] == index) return;
  if (at == k) at--;
  for (; at > 0 && (squared < list->squared[at - 1] ||
                    (squared == list->squared[at - 1] && index < list->index[at - 1]));
       at--) {
    list->squared[at] = list->squared[at - 1];
    list->index[at] = list->index[at - 1];
  }
  list->squared[at] = squared;
  list->index[at] = index;
  if (list->count < k) list->count++;
}

/* What the point at a place of the order has so far, and those near it there. */
static __device__ void look_around(int64_t n, int64_t d, int64_t k, int64_t place,
                                   const int32_t *order, const float *sorted,
                                   bool first, int64_t *indices, float *distances)
{
  nearest list;
  int64_t self = order[place];
  list.k = k;
  list.count = 0;
  for (int64_t j = 0; j < k && !first; j++)
    offer(&list, distances[self * k + j], (int32_t)indices[self * k + j]);
  for (int64_t q = place - WINDOW; q <= place + WINDOW; q++) {
    if (q < 0 || q >= n || q == place) continue;
    float squared = 0.0f;
    for (int64_t t = 0; t < d; t++) {
      float difference = sorted[q * d + t] - sorted[place * d + t];
      squared += difference * difference;
    }
    offer(&list, squared, order[q]);
  }
  for (int64_t j = 0; j < k; j++) {
    indices[self * k + j] = list.index[j];
    distances[self * k + j] = list.squared[j];
  }
}

static mt_status extent(mt_gpu *gpu, int64_t count, const float *values, float *low_out,
                        float *scale_out)
{
  float low, high;
  MT_PASS(mt_gpu_min(gpu, count, values, &low));
  MT_PASS(mt_gpu_max(gpu, count, values, &high));
  *low_out = low;
  *scale_out = high > low ? 1.0f / (high - low) : 0.0f;
  return MT_OK;
}

mt_status mt_bench_lists(mt_gpu *gpu, int64_t n, int64_t d, const float *points,
                         int64_t k, int64_t *indices_out, float *distances_out)
{
  mt_array<uint64_t> places;
  mt_array<int32_t> order;
  mt_array<float> sorted;
  float low, scale;
  if (k < 1 || k >= n || k > MT_LIST_MOST || d < 2 || d > MOST_DIMENSIONS ||
      n > INT32_MAX)
    return mt_fail(MT_ERR_ARG,
                   "lists of %lld neighbours of %lld points in %lld dimensions",
                   (long long)k, (long long)n, (long long)d);
  MT_PASS(extent(gpu, n * d, points, &low, &scale));
  MT_PASS(places.make(gpu, n, "places on a curve"));
  MT_PASS(order.make(gpu, n, "the order of the points"));
  MT_PASS(sorted.make(gpu, n * d, "points in order"));
  uint64_t *place = places.data;
  int32_t *at = order.data;
  float *near = sorted.data;
  for (int corner = 0; corner < CORNERS; corner++) {
    MT_PASS(mt_gpu_each(gpu, n, [=] __device__(int64_t i) {
      place[i] = place_of(d, points + i * d, low, scale, corner);
      at[i] = (int32_t)i;
    }));
    MT_PASS(mt_gpu_sort_pairs(gpu, n, place, at, 0, 60));
    MT_PASS(mt_gpu_each(gpu, n * d, [=] __device__(int64_t i) {
      near[i] = points[(int64_t)at[i / d] * d + i % d];
    }));
    MT_PASS(mt_gpu_each(gpu, n, [=] __device__(int64_t i) {
      look_around(n, d, k, i, at, near, corner == 0, indices_out, distances_out);
    }));
  }
  return mt_gpu_each(gpu, n * k, [=] __device__(int64_t i) {
    distances_out[i] = sqrtf(distances_out[i]);
  });
}
