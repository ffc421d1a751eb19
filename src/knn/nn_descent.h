/* NN-Descent: nearly all of each row's nearest neighbours, for sizes where comparing all
 * pairs takes too long. What both backends share; they give the same bits.
 * Source   Dong, Charikar, Li 2011: neighbours of neighbours are likely neighbours; only
 *          pairs of which one is new are compared. Candidates from both directions of the
 *          graph, capped, and a start from trees that split rows by two of them, as in
 *          pynndescent; rounds that read the round before alone, so that rows can be
 *          worked on in any order and anywhere.
 *
 * Start. Each of `trees` trees splits all rows `levels` times in two halves of equal size:
 * a segment's rows are sorted by how much nearer they are to one of two of its rows, drawn at
 * random, than to the other; ties keep their order. A row's first candidates are those in its
 * leaves.
 *
 * Round. Every pair (v, w) where w is one of v's `width` neighbours is an edge, new if w has
 * not yet taken part in a round as v's neighbour. A row's links are, of its new and of its old
 * edges in either direction, `links` each with the least random numbers; new edges among
 * its links become old. A row u is then compared with every w that is a link of its link v,
 * unless both links are old.
 *
 * Distances are those of metric.h, in double. A row's neighbours are sorted by (distance,
 * index); a row is compared with another once a round at most. */
#ifndef MT_KNN_NN_DESCENT_H
#define MT_KNN_NN_DESCENT_H
#include "base/both.h"
#include "base/random.h"
#include "base/status.h"
#include "knn/metric.h"

#include <string.h>

typedef struct mt_nn_plan {
  int64_t n;             /* rows */
  int64_t width;         /* neighbours that a row keeps while it searches */
  int64_t links;         /* most links of a row, new and old each */
  int64_t trees, levels; /* a tree has 2^levels leaves */
  int64_t rounds;        /* at most */
  int64_t enough;        /* a round with no more new neighbours than that is the last */
} mt_nn_plan;

/* For k neighbours of n rows. Errors: MT_ERR_ARG unless 1 <= k < n; MT_ERR_INPUT more than
 * MT_NN_MOST_ROWS rows. */
mt_status mt_nn_plan_make(int64_t n, int64_t k, mt_nn_plan *plan_out);

/* A neighbour as the graph holds it: a row's number, and whether the edge is new. */
#define MT_NN_NEW       0x80000000u
#define MT_NN_NONE      0x7fffffffu /* no neighbour: sorts behind all */
#define MT_NN_MOST_ROWS ((int64_t)0x7fffffff)
enum { MT_NN_MOST_LINKS = 32 };
MT_BOTH uint32_t mt_nn_row(uint32_t entry)
{
  return entry & ~MT_NN_NEW;
}

/* ---- trees ------------------------------------------------------------------------------- */

/* Where segment s of a level begins among the places 0..n-1 of a tree (s = 2^level: n), and
 * which one a place is in. Each is split in two by the next level. */
MT_BOTH int64_t mt_nn_segment_first(int64_t n, int64_t level, int64_t s)
{
  return (n * s) >> level;
}

MT_BOTH int64_t mt_nn_segment_of(int64_t n, int64_t level, int64_t place)
{
  return (((place + 1) << level) - 1) / n;
}

/* The two places of a segment of `count` >= 2 places, from its first on, whose rows split it. */
MT_BOTH void mt_nn_pivots(int64_t tree, int64_t level, int64_t s, int64_t count,
                          int64_t *a_out, int64_t *b_out)
{
  uint32_t word[4];
  mt_random_words((uint32_t)tree, MT_STREAM_KNN, (uint64_t)s, (uint32_t)level, 1, word);
  *a_out = mt_random_below_of(word[0], word[1], count);
  *b_out = mt_random_below_of(word[2], word[3], count - 1);
  if (*b_out >= *a_out) ++*b_out;
}

/* What a split measures rows by, of both its rows: a - b, transformed. */
MT_METRIC_INLINE void mt_nn_between(mt_metric metric, int64_t d, double a_scale,
                                    const float *a, double b_scale, const float *b,
                                    double *between_out)
{
  for (int64_t t = 0; t < d; t++)
    between_out[t] = mt_metric_coordinate(metric, a_scale, a[t]) -
                     mt_metric_coordinate(metric, b_scale, b[t]);
}

/* How much nearer a row is to a than to b: x.(a - b), transformed. */
MT_METRIC_INLINE double mt_nn_side(mt_metric metric, int64_t d, double x_scale,
                                   const float *x, const double *between)
{
  double lane[MT_METRIC_LANES] = {0.0};
  int64_t whole = d - d % MT_METRIC_LANES;
  for (int64_t t = 0; t < whole; t += MT_METRIC_LANES)
    for (int l = 0; l < MT_METRIC_LANES; l++)
      lane[l] += mt_metric_coordinate(metric, x_scale, x[t + l]) * between[t + l];
  for (int64_t t = whole; t < d; t++)
    lane[t - whole] += mt_metric_coordinate(metric, x_scale, x[t]) * between[t];
  return mt_metric_add_lanes(lane);
}

/* Sides in the order of these numbers, which a row's side is sorted by: as a float. */
MT_BOTH uint32_t mt_nn_side_key(double side)
{
  float value = (float)(side < -FLT_MAX  ? -FLT_MAX
                        : side > FLT_MAX ? FLT_MAX
                                         : side) +
                0.0f;
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* A row's candidates from the trees, by slots; MT_NN_NONE where there is none.
 * order   (trees, n) rows by place
 * places  the row's place in each tree, `stride` apart */
MT_BOTH int64_t mt_nn_leaf_slots(const mt_nn_plan *plan)
{
  return plan->trees * ((plan->n >> plan->levels) + 1);
}

MT_BOTH uint32_t mt_nn_leaf_at(const mt_nn_plan *plan, const uint32_t *order,
                               const uint32_t *places, int64_t stride, int64_t slot)
{
  int64_t widest = (plan->n >> plan->levels) + 1, tree = slot / widest;
  int64_t leaf = mt_nn_segment_of(plan->n, plan->levels, places[tree * stride]);
  int64_t place = mt_nn_segment_first(plan->n, plan->levels, leaf) + slot % widest;
  if (place >= mt_nn_segment_first(plan->n, plan->levels, leaf + 1)) return MT_NN_NONE;
  return order[tree * plan->n + place];
}

/* ---- links ------------------------------------------------------------------------------- */

/* An edge's random number in a round, the same from both of its ends, with the other end's
 * number below it. */
MT_BOTH uint64_t mt_nn_priority(int64_t n, int64_t round, int64_t row, int64_t other)
{
  uint32_t word[4];
  uint64_t low = (uint64_t)(row < other ? row : other);
  uint64_t high = (uint64_t)(row < other ? other : row);
  mt_random_words(0, MT_STREAM_KNN, low * (uint64_t)n + high, (uint32_t)round, 0, word);
  return (uint64_t)word[0] << 32 | (uint64_t)other;
}

/* Adds a number to ascending ones, once, if it is among the `most` least; how many now. */
MT_BOTH int64_t mt_nn_add(int64_t most, int64_t count, uint64_t number,
                          uint64_t *numbers)
{
  int64_t at = count;
  while (at > 0 && numbers[at - 1] > number) at--;
  if (at == most || (at > 0 && numbers[at - 1] == number)) return count;
  if (count < most) count++;
  for (int64_t i = count - 1; i > at; i--) numbers[i] = numbers[i - 1];
  numbers[at] = number;
  return count;
}

/* A row's links among its new (kind MT_NN_NEW) or old edges (0). New edges that are links
 * become old.
 * entries      (width) its neighbours
 * incoming     (n_incoming) whose neighbour it is, and if that edge is new; in any order
 * links_out    (links) */
MT_BOTH void mt_nn_choose(const mt_nn_plan *plan, int64_t round, int64_t row,
                          uint32_t kind, uint32_t *entries, int64_t n_incoming,
                          const uint32_t *incoming, uint32_t *links_out)
{
  uint64_t numbers[MT_NN_MOST_LINKS];
  int64_t count = 0;
  for (int64_t e = 0; e < plan->width + n_incoming; e++) {
    uint32_t edge = e < plan->width ? entries[e] : incoming[e - plan->width];
    if ((edge & MT_NN_NEW) != kind || edge == MT_NN_NONE) continue;
    uint64_t number = mt_nn_priority(plan->n, round, row, mt_nn_row(edge));
    count = mt_nn_add(plan->links, count, number, numbers);
  }
  for (int64_t m = 0; m < plan->links; m++)
    links_out[m] = m < count ? (uint32_t)numbers[m] : MT_NN_NONE;
  if (kind != MT_NN_NEW) return;
  for (int64_t e = 0; e < plan->width; e++)
    for (int64_t m = 0; m < count; m++)
      if (entries[e] == (links_out[m] | MT_NN_NEW)) entries[e] = links_out[m];
}

/* A row's candidates of a round, by slots.
 * links   (n, 2, links): of each row the new ones, then the old ones */
MT_BOTH int64_t mt_nn_link_slots(const mt_nn_plan *plan)
{
  return 3 * plan->links * plan->links;
}

MT_BOTH uint32_t mt_nn_link_at(const mt_nn_plan *plan, const uint32_t *links,
                               int64_t row, int64_t slot)
{
  int64_t both =
      2 * plan->links; /* a new link's links; below: an old link's new ones */
  int64_t old = slot - both * plan->links;
  int64_t via = old < 0 ? slot / both : plan->links + old / plan->links;
  uint32_t link = links[row * both + via];
  if (link == MT_NN_NONE) return MT_NN_NONE;
  return links[link * both + (old < 0 ? slot % both : old % plan->links)];
}

/* ---- neighbours -------------------------------------------------------------------------- */

MT_BOTH bool mt_nn_before(double distance, uint32_t row, double other_distance,
                          uint32_t other_row)
{
  return distance < other_distance || (distance == other_distance && row < other_row);
}

/* Keeps a row that is not there yet, as a new edge, if it is among the width nearest.
 * distances, entries   (width) in order */
MT_BOTH void mt_nn_keep(int64_t width, double distance, uint32_t row, double *distances,
                        uint32_t *entries)
{
  int64_t at = width - 1;
  if (!mt_nn_before(distance, row, distances[at], mt_nn_row(entries[at]))) return;
  for (; at > 0 &&
         mt_nn_before(distance, row, distances[at - 1], mt_nn_row(entries[at - 1]));
       at--) {
    distances[at] = distances[at - 1];
    entries[at] = entries[at - 1];
  }
  distances[at] = distance;
  entries[at] = row | MT_NN_NEW;
}

/* Rows whose recall is measured: how many; the i-th of `count`, from equal parts of the rows,
 * hence ascending. */
MT_BOTH int64_t mt_nn_sample_size(int64_t n)
{
  return n < 1000 ? n : 1000;
}

MT_BOTH int64_t mt_nn_sampled_row(int64_t n, int64_t count, int64_t i)
{
  uint32_t word[4];
  int64_t first = n * i / count, end = n * (i + 1) / count;
  mt_random_words(0, MT_STREAM_KNN, (uint64_t)i, 0, 2, word);
  return first + mt_random_below_of(word[0], word[1], end - first);
}

#endif
