/* The formulas of the mutual reachability distance, for gcc and nvcc. Squares are compared,
 * in double: the difference of two floats and its square are nearly always exact. Sums run
 * over the coordinates in order. Nothing here may be contracted to fused operations
 * (-ffp-contract=off, -fmad=false), or backends differ in the last bit. */
#ifndef MT_HDBSCAN_REACHABILITY_H
#define MT_HDBSCAN_REACHABILITY_H
#include "base/both.h"

#include <stdint.h>

/* Squared Euclidean distance. */
MT_BOTH double mt_distance2(int64_t d, const float *p, const float *q)
{
  double sum = 0.0;
  for (int64_t t = 0; t < d; t++) {
    double difference = (double)p[t] - (double)q[t];
    sum += difference * difference;
  }
  return sum;
}

/* Squared distance from a point to a box [low, high], low <= high: never above mt_distance2
 * to any point in it, since every rounding is monotone and the sum runs in the same order. */
MT_BOTH double mt_box_distance2(int64_t d, const float *low, const float *high,
                                const float *point)
{
  double sum = 0.0;
  for (int64_t t = 0; t < d; t++) {
    double below = (double)low[t] - (double)point[t],
           above = (double)point[t] - (double)high[t];
    double gap = below > above ? below : above;
    gap = gap > 0.0 ? gap : 0.0;
    sum += gap * gap;
  }
  return sum;
}

/* Likewise between two boxes: never above mt_distance2 of a point in one and one in the other. */
MT_BOTH double mt_boxes_distance2(int64_t d, const float *p_low, const float *p_high,
                                  const float *q_low, const float *q_high)
{
  double sum = 0.0;
  for (int64_t t = 0; t < d; t++) {
    double below = (double)p_low[t] - (double)q_high[t],
           above = (double)q_low[t] - (double)p_high[t];
    double gap = below > above ? below : above;
    gap = gap > 0.0 ? gap : 0.0;
    sum += gap * gap;
  }
  return sum;
}

/* Squared mutual reachability. core2: squared core distances; scale: 1 / alpha^2. */
MT_BOTH double mt_reach2(double core2_p, double core2_q, double distance2, double scale)
{
  double reach = distance2 * scale;
  if (core2_p > reach) reach = core2_p;
  if (core2_q > reach) reach = core2_q;
  return reach;
}

/* Is the edge (a, b) of weight v before (c, e) of weight w? a < b, c < e. The total order
 * that makes a minimum spanning tree unique. */
MT_BOTH int mt_edge_before(double v, int64_t a, int64_t b, double w, int64_t c,
                           int64_t e)
{
  if (v != w) return v < w;
  if (a != c) return a < c;
  return b < e;
}

#endif
