/* The three distances between topic rows, in double. Compiled by gcc and by nvcc.
 * Every metric is the Euclidean distance between transformed rows, up to a monotone
 * function, so that nothing cancels for near-identical rows:
 *   cosine     1 - x.y / (|x| |y|) = 1/2 |x/|x| - y/|y||^2
 *   hellinger  sqrt(1/2 sum_t (sqrt x_t - sqrt y_t)^2), rows >= 0
 *   euclidean  |x - y|
 * A zero row has cosine distance 0 to every zero row and 1 to every other row (as
 * umap-learn's; scikit-learn gives 1 for both). No result is NaN for finite rows.
 * A sum has MT_METRIC_LANES partial sums, element t in sum t mod MT_METRIC_LANES, added
 * pairwise: vectors of any width give the same bits. */
#ifndef MT_KNN_METRIC_H
#define MT_KNN_METRIC_H
#include "base/both.h"
#include "deck/parameters.h"
#include <float.h>
#include <math.h>

#ifdef __CUDACC__
#define MT_METRIC_INLINE MT_BOTH
#else
#define MT_METRIC_INLINE MT_BOTH __attribute__((always_inline))
#endif

enum { MT_METRIC_LANES = 8 };

MT_METRIC_INLINE double mt_metric_add_lanes(const double *lane)
{
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
         ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* What a row's elements are multiplied by: 1 / |x| for cosine (0 for a zero row), else 1. */
MT_METRIC_INLINE double mt_metric_scale(mt_metric metric, int64_t d, const float *x)
{
  double lane[MT_METRIC_LANES] = {0.0};
  if (metric != MT_METRIC_COSINE) return 1.0;
  int64_t whole = d - d % MT_METRIC_LANES;
  for (int64_t t = 0; t < whole; t += MT_METRIC_LANES)
    for (int l = 0; l < MT_METRIC_LANES; l++)
      lane[l] += (double)x[t + l] * (double)x[t + l];
  for (int64_t t = whole; t < d; t++) lane[t - whole] += (double)x[t] * (double)x[t];
  double square = mt_metric_add_lanes(lane);
  return square > 0.0 ? 1.0 / sqrt(square) : 0.0;
}

/* An element of the transformed row. */
MT_METRIC_INLINE double mt_metric_coordinate(mt_metric metric, double scale,
                                             float value)
{
  if (metric == MT_METRIC_COSINE) return (double)value * scale;
  if (metric == MT_METRIC_HELLINGER) return sqrt((double)value);
  return (double)value;
}

/* Adds d columns' squared differences to the lanes: z is transformed already, y is not.
 * Columns may come in pieces, all but the last of them whole multiples of the lanes. */
MT_METRIC_INLINE void mt_metric_add_squares(mt_metric metric, int64_t d,
                                            const double *z, double y_scale,
                                            const float *y, double *lane)
{
  int64_t whole = d - d % MT_METRIC_LANES;
  for (int64_t t = 0; t < whole; t += MT_METRIC_LANES)
    for (int l = 0; l < MT_METRIC_LANES; l++) {
      double off = z[t + l] - mt_metric_coordinate(metric, y_scale, y[t + l]);
      lane[l] += off * off;
    }
  for (int64_t t = whole; t < d; t++) {
    double off = z[t] - mt_metric_coordinate(metric, y_scale, y[t]);
    lane[t - whole] += off * off;
  }
}

/* Squared Euclidean distance between transformed rows: z is one already, y is not. */
MT_METRIC_INLINE double mt_metric_square(mt_metric metric, int64_t d, const double *z,
                                         double y_scale, const float *y)
{
  double lane[MT_METRIC_LANES] = {0.0};
  mt_metric_add_squares(metric, d, z, y_scale, y, lane);
  return mt_metric_add_lanes(lane);
}

/* The distance, from the squared one and both rows' scales. */
MT_METRIC_INLINE double mt_metric_distance(mt_metric metric, double x_scale,
                                           double y_scale, double square)
{
  if (metric == MT_METRIC_HELLINGER) return sqrt(0.5 * square);
  if (metric == MT_METRIC_EUCLIDEAN) return sqrt(square);
  if (x_scale == 0.0 || y_scale == 0.0) return x_scale == y_scale ? 0.0 : 1.0;
  return 0.5 * square;
}

/* Euclidean distance between the transformed rows that a distance stands for (the other
 * way round; for a zero row under cosine: more than it is). */
MT_METRIC_INLINE double mt_metric_length(mt_metric metric, double distance)
{
  if (metric == MT_METRIC_COSINE) return sqrt(2.0 * distance);
  return metric == MT_METRIC_HELLINGER ? sqrt(2.0) * distance : distance;
}

/* Two transformed rows further apart than this, squared, are at more than the distance. The
 * sum of squares only grows, also as rounded: what is beyond it after some columns can be
 * left there. */
MT_METRIC_INLINE double mt_metric_most_square(mt_metric metric, double distance)
{
  double square = metric == MT_METRIC_COSINE ? 2.0 * distance : distance * distance;
  if (metric == MT_METRIC_HELLINGER) square *= 2.0;
  return square * (1.0 + 0x1p-40) + 1e-300; /* roundings, also of denormals */
}

/* As it is stored; beyond float's range, its largest number. */
MT_METRIC_INLINE float mt_metric_store(double distance)
{
  return distance < FLT_MAX ? (float)distance : FLT_MAX;
}

#endif
