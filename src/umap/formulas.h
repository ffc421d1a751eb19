/* The formulas of UMAP that every backend computes, one at a time, in float32 as umap-learn
 * does. Compiled by gcc and nvcc.
 * Source   McInnes, Healy, Melville 2018 (arXiv 1802.03426); umap-learn 0.5: smooth_knn_dist,
 *          compute_membership_strengths, fuzzy_simplicial_set, make_epochs_per_sample,
 *          optimize_layout_euclidean */
#ifndef MT_UMAP_FORMULAS_H
#define MT_UMAP_FORMULAS_H
#include "base/elementary.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- graph -------------------------------------------------------------------------- */

static const double mt_umap_tolerance = 1e-5; /* of the bisection, in neighbours */
static const double mt_umap_min_sigma = 1e-3; /* in mean distances */

/* Distance to the local_connectivity-th neighbour that is not at distance 0; between two
 * of them when it has a fraction. distances: k, ascending, the point itself not in them. */
MT_BOTH float mt_umap_rho(int64_t k, const float *distances, double local_connectivity)
{
  int64_t zeros = 0;
  while (zeros < k && !(distances[zeros] > 0.0f)) zeros++;
  const float *there = distances + zeros;
  int64_t left = k - zeros;
  if (left == 0) return 0.0f;
  if ((double)left < local_connectivity) return there[left - 1];
  int64_t index = (int64_t)floor(local_connectivity);
  double fraction = local_connectivity - (double)index;
  if (index == 0) return (float)(fraction * there[0]);
  float rho = there[index - 1];
  if (fraction > mt_umap_tolerance)
    rho = (float)(rho + fraction * (there[index] - there[index - 1]));
  return rho;
}

/* How many neighbours a bandwidth counts: sum of exp(-(d - rho) / sigma), at most 1 each. */
MT_BOTH float mt_umap_count(int64_t k, const float *distances, float rho, float sigma)
{
  float sum = 0.0f;
  for (int64_t j = 0; j < k; j++) {
    float beyond = distances[j] - rho;
    sum += beyond > 0.0f ? mt_exp(-(beyond / sigma)) : 1.0f;
  }
  return sum;
}

/**
 * Bandwidth by bisection: the one that counts `target` neighbours, log2(k + 1).
 * mean     of all points' distances, each point's own 0 counted too
 */
MT_BOTH float mt_umap_sigma(int64_t k, const float *distances, float rho, double target,
                            double mean)
{
  double own = 0.0;
  float low = 0.0f, high = FLT_MAX, sigma = 1.0f;
  for (int step = 0; step < 64; step++) {
    float count = mt_umap_count(k, distances, rho, sigma);
    if (fabs(count - target) < mt_umap_tolerance) break;
    if (count > target) {
      high = sigma;
      sigma = (low + high) / 2.0f;
    } else {
      low = sigma;
      sigma = high >= FLT_MAX ? 2.0f * sigma : (low + high) / 2.0f;
    }
  }
  for (int64_t j = 0; j < k; j++) own += distances[j];
  double least = mt_umap_min_sigma * (rho > 0.0f ? own / (double)(k + 1) : mean);
  return sigma < least ? (float)least : sigma;
}

/* The mean of n k distances and n zeros is a sum of integers, so that it does not depend on
 * the order: each distance counts in units of the largest one's share that fit 63 bits. */
static inline double mt_umap_units(int64_t n, int64_t k)
{
  return ldexp(1.0, 62 - (int)ceil(log2((double)n * (double)k + 1.0)));
}

MT_BOTH int64_t mt_umap_in_units(float distance, double largest, double units)
{
  return (int64_t)(distance / largest * units);
}

static inline double mt_umap_mean(int64_t n, int64_t k, int64_t sum, double largest,
                                  double units)
{
  return (double)sum / units * largest / ((double)n * (double)(k + 1));
}

/* Membership strength of a neighbour, in [0, 1]. */
MT_BOTH float mt_umap_membership(float distance, float rho, float sigma)
{
  float beyond = distance - rho;
  return beyond <= 0.0f || sigma == 0.0f ? 1.0f : mt_exp(-(beyond / sigma));
}

/* An edge's weight from the strengths of its two directions (0: not there); symmetric. */
MT_BOTH float mt_umap_union(float there, float back, float mix_ratio)
{
  float both = there * back;
  return mix_ratio * (there + back - both) + (1.0f - mix_ratio) * both;
}

/* ---- epochs ------------------------------------------------------------------------- */

/* Does an edge act in an epoch? The heaviest acts in every one but the first, lighter ones
 * in proportion. share: its weight over the heaviest, in (0, 1]. */
MT_BOTH bool mt_umap_acts(float share, int64_t epoch)
{
  if (epoch <= 0) return false;
  return (int64_t)((double)epoch * share) > (int64_t)((double)(epoch - 1) * share);
}

/* An epoch takes the edges in as many turns, so that pulls read positions that are not too
 * old; the two copies of an edge, each of which moves both ends, are two turns apart. And a
 * point with many edges stops after every MT_UMAP_PULLS acting ones: further pulls of the
 * turn are read from where it has got to. All at once, the sums overshoot: points with
 * hundreds of edges were thrown ten times too far, and 0.005 of the neighbours were lost. */
enum { MT_UMAP_TURNS = 4, MT_UMAP_PULLS = 8 };

/* The turn of the copy from i to j (Murmur3's finalizer). */
MT_BOTH int mt_umap_turn(int64_t i, int64_t j)
{
  uint64_t low = (uint64_t)(i < j ? i : j), high = (uint64_t)(i < j ? j : i);
  uint64_t hash = low * 0x9e3779b97f4a7c15u ^ high * 0xc2b2ae3d27d4eb4fu;
  hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
  return (int)(((hash ^ hash >> 33) + (i > j ? MT_UMAP_TURNS / 2 : 0)) % MT_UMAP_TURNS);
}

/* The learning rate falls to 0; the first two epochs share it, as in umap-learn. */
MT_BOTH float mt_umap_alpha(double learning_rate, int64_t epoch, int64_t n_epochs)
{
  double past = epoch > 0 ? (double)(epoch - 1) : 0.0;
  return (float)(learning_rate * (1.0 - past / (double)n_epochs));
}

/* Gradient of attraction over the difference vector, for a squared distance; <= 0. */
MT_BOTH float mt_umap_pull(float squared, float a, float b)
{
  if (!(squared > 0.0f)) return 0.0f;
  float power = mt_pow(squared, b);
  float pull = -2.0f * a * b * power / (squared * (a * power + 1.0f));
  return pull < -FLT_MAX ? -FLT_MAX : pull; /* tiny distances, small b */
}

/* Likewise of repulsion; >= 0. */
MT_BOTH float mt_umap_push(float squared, float a, float b, float strength)
{
  if (!(squared > 0.0f)) return 0.0f;
  return 2.0f * strength * b / ((0.001f + squared) * (a * mt_pow(squared, b) + 1.0f));
}

MT_BOTH float mt_umap_clip(float value)
{
  return value > 4.0f ? 4.0f : value < -4.0f ? -4.0f : value;
}

#endif
