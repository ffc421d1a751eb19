#include "base/memory.h"
#include "base/random.h"
#include "umap/formulas.h"
#include "umap/umap.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* ---- graph -------------------------------------------------------------------------- */

static double rho_of(double local_connectivity, int64_t k, const float *distances)
{
  int64_t zeros = 0, index = (int64_t)floor(local_connectivity);
  while (zeros < k && distances[zeros] == 0.0f) zeros++;
  if (zeros == k) return 0.0;
  if ((double)(k - zeros) < local_connectivity) return distances[k - 1];
  double below = index > 0 ? distances[zeros + index - 1] : 0.0;
  double fraction = local_connectivity - (double)index;
  return fraction > 0.0 ? below + fraction * (distances[zeros + index] - below) : below;
}

static double sigma_of(int64_t k, const float *distances, double rho, double mean)
{
  double low = 0.0, high = INFINITY, sigma = 1.0, own = 0.0;
  for (int step = 0; step < 64; step++) {
    double count = 0.0;
    for (int64_t j = 0; j < k; j++)
      count += exp(-fmax(distances[j] - rho, 0.0) / sigma);
    if (fabs(count - log2((double)(k + 1))) < 1e-5) break;
    if (count > log2((double)(k + 1)))
      high = sigma;
    else
      low = sigma;
    sigma = isinf(high) ? 2.0 * sigma : 0.5 * (low + high);
  }
  for (int64_t j = 0; j < k; j++) own += distances[j] / (double)(k + 1);
  return fmax(sigma, 1e-3 * (rho > 0.0 ? own : mean));
}

mt_status mt_umap_graph_ref(const mt_umap_options *options, int64_t n, int64_t k,
                            const int64_t *indices, const float *distances,
                            double *weights_out)
{
  mt_status status = MT_OK;
  double mean = 0.0, mix = options->set_op_mix_ratio, *strength = NULL;

  MT_NEW(strength, n * n);
  for (int64_t at = 0; at < n * k; at++)
    mean += distances[at] / ((double)n * (double)(k + 1));
  for (int64_t i = 0; i < n; i++) {
    const float *own = distances + i * k;
    double rho = rho_of(options->local_connectivity, k, own);
    double sigma = sigma_of(k, own, rho, mean);
    for (int64_t j = 0; j < k; j++)
      strength[i * n + indices[i * k + j]] =
          own[j] > rho && sigma > 0.0 ? exp(-(own[j] - rho) / sigma) : 1.0;
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) {
      double p = strength[i * n + j], q = strength[j * n + i];
      weights_out[i * n + j] = mix * (p + q - p * q) + (1.0 - mix) * p * q;
    }
done:
  free(strength);
  return status;
}

/* ---- epochs ------------------------------------------------------------------------- */

/* `to` goes away from `other` along the difference (gradient > 0) or towards it (< 0). */
static void move(int64_t dims, double gradient, double rate, const double *from,
                 const double *other, double *to)
{
  for (int64_t c = 0; c < dims; c++) {
    double along = gradient * (from[c] - other[c]);
    to[c] += rate * fmin(fmax(along, -4.0), 4.0);
  }
}

static double square(int64_t dims, const double *x, const double *y)
{
  double sum = 0.0;
  for (int64_t c = 0; c < dims; c++) sum += (x[c] - y[c]) * (x[c] - y[c]);
  return sum;
}

static void attract(const mt_umap_options *options, const double *from,
                    const double *other, double *to)
{
  double a = options->a, b = options->b,
         squared = square(options->n_components, from, other);
  if (squared == 0.0) return;
  double pull = -2.0 * a * b * pow(squared, b - 1.0) / (a * pow(squared, b) + 1.0);
  move(options->n_components, pull, options->learning_rate, from, other, to);
}

static void repel(const mt_umap_options *options, const double *other, double *to)
{
  double a = options->a, b = options->b,
         squared = square(options->n_components, to, other);
  if (squared == 0.0) return;
  double push = 2.0 * options->repulsion_strength * b /
                ((0.001 + squared) * (a * pow(squared, b) + 1.0));
  move(options->n_components, push, options->learning_rate, to, other, to);
}

static int64_t stranger(const mt_umap_options *options, int64_t n, int64_t i,
                        int64_t turn, int64_t draw)
{
  uint32_t words[4];
  mt_random_words((uint32_t)options->random_state, MT_STREAM_UMAP_NEGATIVE, (uint64_t)i,
                  (uint32_t)turn, (uint32_t)(draw / 2), words);
  return mt_random_below_of(words[draw % 2 * 2], words[draw % 2 * 2 + 1], n);
}

/* Does an edge act in this epoch? If so, sets when it does next. */
static bool acts(double epoch, double interval, double *due)
{
  if (*due > epoch) return false;
  *due += interval;
  return true;
}

/* Point i's moves in a turn, counted from 0 over all epochs. due: (2, n) of its edges and of
 * their copies from the other end, the epoch in which each acts next. from: n_components. */
static void move_point(const mt_umap_options *now, int64_t n, int64_t i, int64_t turn,
                       double heaviest, const float *weights, double *due,
                       const double *old, double *from, double *to)
{
  int64_t dims = now->n_components, draws = 0, acting = 0;
  for (int64_t at = 0; at < 2 * n; at++) {
    int64_t j = at % n, copy = at < n ? mt_umap_turn(i, j) : mt_umap_turn(j, i);
    if (weights[j] == 0.0f || copy != turn % MT_UMAP_TURNS) continue;
    if (!acts((double)(turn / MT_UMAP_TURNS), heaviest / weights[j], &due[at]))
      continue;
    if (acting++ % MT_UMAP_PULLS == 0)
      for (int64_t c = 0; c < dims; c++) from[c] = to[c];
    attract(now, from, old + j * dims, to);
    for (int64_t s = 0; s < now->negative_sample_rate && at < n; s++) {
      int64_t other = stranger(now, n, i, turn, draws++);
      if (other != i) repel(now, old + other * dims, to);
    }
  }
}

mt_status mt_umap_epochs_ref(const mt_umap_options *options, int64_t n,
                             const float *weights, double *positions)
{
  mt_status status = MT_OK;
  int64_t dims = options->n_components, n_epochs = mt_umap_n_epochs(options, n);
  double *old = NULL, *due = NULL, *from = NULL, heaviest = 0.0;
  mt_umap_options now = *options;

  MT_NEW(old, n * dims);
  MT_NEW(due, 2 * n * n);
  MT_NEW(from, dims);
  mt_umap_ab(options, &now.a, &now.b);
  for (int64_t at = 0; at < n * n; at++) heaviest = fmax(heaviest, weights[at]);
  for (int64_t at = 0; at < 2 * n * n; at++)
    due[at] = heaviest / weights[at / (2 * n) * n + at % n];
  for (int64_t turn = 0; turn < n_epochs * MT_UMAP_TURNS; turn++) {
    double past = fmax((double)(turn / MT_UMAP_TURNS) - 1.0, 0.0) / (double)n_epochs;
    now.learning_rate = options->learning_rate * (1.0 - past);
    for (int64_t at = 0; at < n * dims; at++) old[at] = positions[at];
    for (int64_t i = 0; i < n; i++)
      move_point(&now, n, i, turn, heaviest, weights + i * n, due + i * 2 * n, old,
                 from, positions + i * dims);
  }
done:
  free(old);
  free(due);
  free(from);
  return status;
}
