#include "gpu_trust.h"

#include "base/memory.h"

#include <stdlib.h>

static void distances(int64_t n, int64_t d, const float *points, int64_t from,
                      float *out)
{
  for (int64_t i = 0; i < n; i++) {
    float sum = 0.0f;
    for (int64_t t = 0; t < d; t++) {
      float difference = points[i * d + t] - points[from * d + t];
      sum += difference * difference;
    }
    out[i] = sum;
  }
}

/* The k smallest but self, nearest first. */
static void nearest(int64_t n, const float *distance, int64_t self, int64_t k,
                    int64_t *out)
{
  int64_t have = 0;
  for (int64_t i = 0; i < n; i++) {
    if (i == self || (have == k && !(distance[i] < distance[out[k - 1]]))) continue;
    int64_t at = have < k ? have++ : k - 1;
    for (; at > 0 && distance[i] < distance[out[at - 1]]; at--) out[at] = out[at - 1];
    out[at] = i;
  }
}

/* Points, but self, that come before j: nearer, or as near with a lower number. */
static int64_t rank_of(int64_t n, const float *distance, int64_t self, int64_t j)
{
  int64_t before = 0;
  float own = distance[j];
  for (int64_t i = 0; i < n; i++) before += distance[i] < own;
  for (int64_t i = 0; i < j; i++) before += distance[i] == own && i != self;
  return before - (distance[self] < own) + 1;
}

mt_status mt_bench_trust(int64_t n, int64_t d, const float *points, int64_t e,
                         const float *positions, int64_t k, int64_t m,
                         double *trust_out)
{
  mt_status worst = MT_OK;
  int64_t beyond = 0;
#pragma omp parallel reduction(+ : beyond)
  {
    mt_status status = MT_OK;
    float *space = NULL, *layout = NULL;
    int64_t *near = NULL;
    MT_NEW(space, n);
    MT_NEW(layout, n);
    MT_NEW(near, k);
  done:
    if (status != MT_OK) {
#pragma omp atomic write
      worst = status;
    }
#pragma omp barrier
#pragma omp for schedule(dynamic)
    for (int64_t s = 0; s < m; s++) {
      int64_t self = s * n / m;
      if (worst != MT_OK) continue;
      distances(n, d, points, self, space);
      distances(n, e, positions, self, layout);
      nearest(n, layout, self, k, near);
      for (int64_t j = 0; j < k; j++) {
        int64_t rank = rank_of(n, space, self, near[j]);
        beyond += rank > k ? rank - k : 0;
      }
    }
    free(space);
    free(layout);
    free(near);
  }
  *trust_out = 1.0 - 2.0 * (double)beyond /
                         ((double)m * (double)k * (double)(2 * n - 3 * k - 1));
  return worst;
}
