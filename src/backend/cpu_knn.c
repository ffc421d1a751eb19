/* Exact nearest neighbours: blocks of rows go round half of the ring of ranks; a product of
 * transformed rows, rounded to 16-bit integers, says which pairs could matter, with a bound on its
 * error, and only their distances are computed, in double from differences. What a row keeps
 * is then what a brute force in double keeps, whatever the blocks, the ranks and the threads.
 *
 * Each product serves both its rows: a tile of this rank's rows (queries) is multiplied with
 * the rows that visit; then each query looks through its row of the product, and each visitor
 * through its column. What a visitor keeps travels with it and is merged with what its own
 * rank has found. So two ranks need to meet once; where both are visited by the other (a rank
 * by itself; ranks opposite in a ring of even size) each takes the visitors whose numbers
 * within their rank are not below the tile's first, and only queries look at the tile's own.
 *
 * The bound. Let z be a row as metric.h transforms it, c a centre common to all rows,
 * y = zoom (z - c), r = step x integers the row as rounded, and e >= |y - r|, which is measured.
 * A pair (i, j) whose length |z_i - z_j| is at most q has
 *     |r_i - r_j| <= Q + e_j,   Q = zoom q + e_i,
 * thus, squared and halved, r_i.r_j + Q e_j - (|r_j|^2 - e_j^2)/2 >= (|r_i|^2 - Q^2)/2. The
 * products of integers are exact; what follows them in float is off by less than 8 u b_i b_j and
 * a share of the other terms, u = 2^-24, b a little above |r|. With e at least 2^-14 b that is
 * 2^-7 b_i e_j, so the pair can be left out if
 *     r_i.r_j + w_i e_j - h_j < t_i,
 * with w_i a little above Q + 2^-7 b_i, h_j a little below (|r_j|^2 - e_j^2)/2, t_i a little
 * below (|r_i|^2 - Q^2)/2. The centre makes e small where rows are alike. Where many rows far
 * from it are alike, rounded rows cannot tell them apart; then zoom |z_i - z_j|, summed in float
 * from differences, is compared with zoom q, which only the rounding of z to float blurs. */
#include "backend/cpu_knn.h"
#include "backend/cpu_product.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/stop.h"
#include "base/vectors.h"
#include "knn/knn.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum {
  STRIPE = 32,      /* visitors whose columns are looked through together */
  MOST_TILE = 256,  /* queries in a product: 512 of their columns stay in the cache */
  MOST_BLOCK = 8192 /* visitors */
};
static const double unit = 0x1p-24; /* relative rounding error of a float */
static const int64_t memory_bytes = (int64_t)1 << 30; /* of rows, per rank */
static const int64_t most_products = (int64_t)1 << 25;

/* Of a row: what is needed beside its values. */
typedef struct row_facts {
  double scale;  /* mt_metric_scale */
  double square; /* |r|^2 */
  double error;  /* e */
  double reach;  /* b */
  double norm;   /* a little above zoom |z| */
} row_facts;

typedef struct neighbour {
  double distance;
  int64_t index;
} neighbour;
static const neighbour none = {INFINITY, INT64_MAX}; /* after all others */

/* Rows, and the best that each has seen so far. */
typedef struct band {
  int64_t first, count; /* row numbers over all ranks */
  float *raw;           /* (count, d) as read */
  mt_product_pair *rounded;
  row_facts *facts;           /* (count) */
  float *step, *error, *half; /* (count) what a row's integers stand for; e, h */
  neighbour *best;            /* (count, k) ascending; `none` where fewer are known */
} band;

typedef struct hit {
  float key;      /* larger: nearer */
  int32_t column; /* row within the block */
} hit;

typedef struct worker { /* a thread's own memory */
  int32_t *columns;     /* (stripe, slab) of a product */
  hit *heap;            /* (slab or block) */
  double *z;            /* (d) the row that looks, transformed */
  float *near;          /* (d) and zoomed */
  bool has_z;
  int32_t *integers; /* (d + 1) */
  int64_t exact;
} worker;

typedef struct search {
  const mt_comm *comm;
  const mt_rows *rows;
  mt_metric metric;
  int64_t n, d, k, first, local, pairs_of_columns;
  const mt_product_kernel *kernel;
  mt_cpu_knn_sizes sizes;
  int n_threads;
  worker *workers;
  double zoom, *centre; /* (d) */
  double tiny;
  bool whole;             /* all of this rank's rows are in hand, and stay */
  neighbour *best;        /* (local, k) of all of this rank's rows */
  band own;               /* (query) those of them that are in hand */
  band here;              /* (block) visitors */
  float *coming;          /* (block, d) of visitors on their way, as read */
  neighbour *coming_best; /* (block, k) */
  int32_t *product;       /* (slab, block) of integers */
  int64_t pairs;          /* looked at so far */
} search;

/* ---- a row's k best ------------------------------------------------------------------ */

static bool comes_before(neighbour a, neighbour b)
{
  return a.distance < b.distance || (a.distance == b.distance && a.index < b.index);
}

static void keep(int64_t k, neighbour *best, neighbour found)
{
  int64_t at = k - 1;
  if (!comes_before(found, best[at])) return;
  for (; at > 0 && comes_before(found, best[at - 1]); at--) best[at] = best[at - 1];
  best[at] = found;
}

static bool is_kept(int64_t k, const neighbour *best, int64_t index)
{
  for (int64_t m = 0; m < k && best[m].index != none.index; m++)
    if (best[m].index == index) return true;
  return false;
}

static bool is_full(int64_t k, const neighbour *best)
{
  return best[k - 1].index != none.index;
}

static void keep_none(int64_t count, neighbour *best)
{
  for (int64_t m = 0; m < count; m++) best[m] = none;
}

/* ---- distances in double --------------------------------------------------------------- */

MT_FOR_VECTORS static double square_of(mt_metric metric, int64_t d, const double *z,
                                       double scale, const float *y)
{
  switch (metric) { /* a constant in each: one loop without branches */
  case MT_METRIC_COSINE:
    return mt_metric_square(MT_METRIC_COSINE, d, z, scale, y);
  case MT_METRIC_HELLINGER:
    return mt_metric_square(MT_METRIC_HELLINGER, d, z, scale, y);
  default:
    return mt_metric_square(MT_METRIC_EUCLIDEAN, d, z, scale, y);
  }
}

MT_FOR_VECTORS static void transform(mt_metric metric, int64_t d, double scale,
                                     const float *x, double *z)
{
  if (metric == MT_METRIC_COSINE)
    for (int64_t t = 0; t < d; t++)
      z[t] = mt_metric_coordinate(MT_METRIC_COSINE, scale, x[t]);
  else if (metric == MT_METRIC_HELLINGER)
    for (int64_t t = 0; t < d; t++)
      z[t] = mt_metric_coordinate(MT_METRIC_HELLINGER, scale, x[t]);
  else
    for (int64_t t = 0; t < d; t++)
      z[t] = mt_metric_coordinate(MT_METRIC_EUCLIDEAN, scale, x[t]);
}

/* The row that looks is row i of a. */
static void look_from(const search *s, worker *w, const band *a, int64_t i)
{
  if (w->has_z) return;
  transform(s->metric, s->d, a->facts[i].scale, a->raw + i * s->d, w->z);
  for (int64_t t = 0; t < s->d; t++) w->near[t] = (float)(s->zoom * w->z[t]);
  w->has_z = true;
}

/* Computes the distance of row i of a to row j of b, and keeps it if it is good. */
static void measure(const search *s, worker *w, const band *a, int64_t i, const band *b,
                    int64_t j)
{
  double scale = a->facts[i].scale, other = b->facts[j].scale, square = 0.0;
  if (other != 0.0) { /* a zero row's distances are known */
    look_from(s, w, a, i);
    square = square_of(s->metric, s->d, w->z, other, b->raw + j * s->d);
    w->exact++;
  }
  double distance = mt_metric_distance(s->metric, scale, other, square);
  keep(s->k, a->best + i * s->k, (neighbour){distance, b->first + j});
}

/* ---- which pairs could matter ------------------------------------------------------------ */

/* w and t of the test above, t -inf while the row has fewer than k; the row's step, and zoom q. */
typedef struct threshold {
  float slope, level, step;
  double most;
} threshold;

static threshold limit_of(const search *s, const band *a, int64_t i)
{
  const row_facts *facts = a->facts + i;
  const neighbour *best = a->best + i * s->k;
  if (!is_full(s->k, best)) return (threshold){0.0f, -INFINITY, a->step[i], INFINITY};
  double length = mt_metric_length(s->metric, best[s->k - 1].distance);
  double most = s->zoom * length * (1.0 + 1e-9), wide = most + facts->error;
  double level = 0.5 * (facts->square - wide * wide);
  level -= fabs(level) * 0x1p-22 + s->tiny;
  double slope = (wide + 0x1p-7 * facts->reach) * (1.0 + 1e-5);
  return (threshold){(float)slope, (float)level, a->step[i], most};
}

/* A column's key: larger, nearer. */
__attribute__((always_inline)) static inline float
key_of(threshold limit, int32_t product, float step, float error, float half)
{
  return (float)product * step * limit.step + limit.slope * error - half;
}

/* The columns of b that pass the test, with their keys. */
MT_FOR_VECTORS static int64_t collect(const band *b, const int32_t *product,
                                      threshold limit, hit *hits_out)
{
  enum { GROUP = 32 };
  const float *step = b->step, *error = b->error, *half = b->half;
  int64_t hits = 0, count = b->count;
  for (int64_t from = 0; from < count; from += GROUP) {
    int64_t to = from + GROUP < count ? from + GROUP : count;
    int any = 0;
    for (int64_t j = from; j < to; j++)
      any |= key_of(limit, product[j], step[j], error[j], half[j]) >= limit.level;
    if (!any) continue;
    for (int64_t j = from; j < to; j++) {
      float key = key_of(limit, product[j], step[j], error[j], half[j]);
      if (key >= limit.level) hits_out[hits++] = (hit){key, (int32_t)j};
    }
  }
  return hits;
}

/* Squared difference of a row and another that is not transformed yet; all terms are positive,
 * so its relative error is below (d / lanes + lanes) u but for the rows' own. */
__attribute__((always_inline)) static inline float
near_square(mt_metric metric, int64_t d, const float *near, float factor,
            const float *y)
{
  enum { LANES = 32 };
  float lane[LANES] = {0.0f}, sum = 0.0f;
  for (int64_t from = 0; from < d; from += LANES) {
    int many = d - from < LANES ? (int)(d - from) : LANES;
    for (int l = 0; l < many; l++) {
      float value = y[from + l];
      if (metric == MT_METRIC_HELLINGER) value = sqrtf(value);
      float off = near[from + l] - value * factor;
      lane[l] += off * off;
    }
  }
  for (int l = 0; l < LANES; l++) sum += lane[l];
  return sum;
}

MT_FOR_VECTORS static float near_square_of(mt_metric metric, int64_t d,
                                           const float *near, float factor,
                                           const float *y)
{
  if (metric == MT_METRIC_HELLINGER)
    return near_square(MT_METRIC_HELLINGER, d, near, factor, y);
  return near_square(MT_METRIC_COSINE, d, near, factor, y);
}

/* The second test, quicker than a distance in double. The other row's values are off by 2 u of
 * themselves: its factor is rounded, and their products with it. */
static bool may_be_near(const search *s, worker *w, const band *a, int64_t i,
                        const band *b, int64_t j, double most)
{
  double factor = s->zoom * b->facts[j].scale;
  if (!(factor > 0x1p-100 && factor < 0x1p100)) return true;
  look_from(s, w, a, i);
  double off = ((double)s->d / 32.0 + 40.0) * unit;
  double square =
      near_square_of(s->metric, s->d, w->near, (float)factor, b->raw + j * s->d);
  double reach = most + unit * (a->facts[i].norm + 2.0 * b->facts[j].norm);
  return (square - s->tiny) * (1.0 - off) <= reach * reach;
}

static bool above(hit a, hit b)
{
  return a.key > b.key || (a.key == b.key && a.column < b.column);
}

static void sink(hit *heap, int64_t n, int64_t at)
{
  hit moving = heap[at];
  for (int64_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && above(heap[child + 1], heap[child])) child++;
    if (!above(heap[child], moving)) break;
    heap[at] = heap[child];
  }
  heap[at] = moving;
}

static void make_heap(hit *heap, int64_t n)
{
  for (int64_t at = n / 2 - 1; at >= 0; at--) sink(heap, n, at);
}

static hit pop(hit *heap, int64_t *n)
{
  hit top = heap[0];
  heap[0] = heap[--*n];
  sink(heap, *n, 0);
  return top;
}

/* Nothing can be nearer than 0, and a later row does not win a tie. */
static bool is_settled(int64_t k, const neighbour *best, int64_t index)
{
  return best[k - 1].distance == 0.0 && index > best[k - 1].index;
}

/* Takes out all the hits that are settled: duplicates of the row, by the thousand. */
static int64_t drop_settled(const search *s, const neighbour *best, const band *b,
                            int64_t n, hit *heap)
{
  int64_t left = 0;
  for (int64_t h = 0; h < n; h++)
    if (!is_settled(s->k, best, b->first + heap[h].column)) heap[left++] = heap[h];
  make_heap(heap, left);
  return left;
}

/* Could a hit still be among the best of a row that has k? The second test is left out where
 * the first is sure enough to know its answer. */
static bool may_win(const search *s, worker *w, const band *a, int64_t i, const band *b,
                    hit next)
{
  threshold limit = limit_of(s, a, i);
  if (next.key < limit.level) return false;
  if (next.key - 2.0f * limit.slope * b->error[next.column] >= limit.level) return true;
  return may_be_near(s, w, a, i, b, next.column, limit.most);
}

/* A zero row under cosine: all distances are known. */
static void search_zero_row(const search *s, const band *a, int64_t i, const band *b)
{
  for (int64_t j = 0; j < b->count; j++)
    if (b->first + j != a->first + i) {
      double distance = mt_metric_distance(s->metric, 0.0, b->facts[j].scale, 0.0);
      keep(s->k, a->best + i * s->k, (neighbour){distance, b->first + j});
    }
}

/* Row i of a looks through b, product: (b->count) of it. Best first, so that few distances
 * are computed: each good one lowers the limit for the rest. */
static void search_row(const search *s, worker *w, const band *a, int64_t i,
                       const band *b, const int32_t *product)
{
  const neighbour *best = a->best + i * s->k;
  bool was_full = false;
  w->has_z = false;
  while (!was_full && !is_settled(s->k, best, b->first)) {
    was_full = is_full(s->k, best); /* keys made with a full row's limit bound all */
    int64_t n = collect(b, product, limit_of(s, a, i), w->heap);
    make_heap(w->heap, n);
    while (n > 0 && (was_full || !is_full(s->k, best))) {
      hit next = pop(w->heap, &n);
      int64_t index = b->first + next.column;
      if (is_settled(s->k, best, index))
        n = drop_settled(s, best, b, n, w->heap);
      else if (index != a->first + i && !is_kept(s->k, best, index) &&
               (!was_full || may_win(s, w, a, i, b, next)))
        measure(s, w, a, i, b, next.column);
      else if (was_full && next.key < limit_of(s, a, i).level)
        break; /* the rest have smaller keys */
    }
    if (!is_full(s->k, best)) return; /* all of b is in */
  }
}

static void look_through(const search *s, worker *w, const band *a, int64_t i,
                         const band *b, const int32_t *product)
{
  if (a->facts[i].scale == 0.0)
    search_zero_row(s, a, i, b);
  else if (b->count > 0)
    search_row(s, w, a, i, b, product);
}

/* ---- blocks ------------------------------------------------------------------------------ */

/* z becomes y; returns a little above zoom |z|. */
MT_FOR_VECTORS static double centre(const search *s, double *z)
{
  enum { LANES = MT_METRIC_LANES };
  double lane[LANES] = {0.0};
  const double zoom = s->zoom, *centre = s->centre;
  for (int64_t from = 0; from < s->d; from += LANES) {
    int many = s->d - from < LANES ? (int)(s->d - from) : LANES;
    for (int l = 0; l < many; l++) {
      double zoomed = z[from + l] * zoom;
      lane[l] += zoomed * zoomed;
      z[from + l] = (z[from + l] - centre[from + l]) * zoom;
    }
  }
  return sqrt(mt_metric_add_lanes(lane)) * 1.001;
}

/* Row i: what the product and the tests need. */
static void round_row(const search *s, worker *w, band *rows, int64_t i)
{
  const double least = (1.0 + sqrt((double)s->d)) * 0x1p-125; /* of denormals */
  row_facts *facts = rows->facts + i;
  mt_rounded row;
  facts->scale = mt_metric_scale(s->metric, s->d, rows->raw + i * s->d);
  transform(s->metric, s->d, facts->scale, rows->raw + i * s->d, w->z);
  facts->norm = centre(s, w->z) + least;
  mt_product_round(s->d, w->z, w->integers, &row);
  facts->square = row.square;
  facts->reach = sqrt(row.square) * 1.001;
  facts->error = fmax(row.error, 0x1p-14 * facts->reach) + least;
  rows->step[i] = row.step;
  rows->error[i] = (float)(facts->error * (1.0 + 1e-6));
  rows->half[i] = (float)(0.5 * (facts->square * (1.0 - 16.0 * unit) -
                                 facts->error * facts->error * (1.0 + 16.0 * unit)));
  mt_product_pair *out = rows->rounded + mt_product_place(s->pairs_of_columns, i);
  for (int64_t p = 0; p < s->pairs_of_columns; p++)
    out[p * MT_PRODUCT_GROUP] =
        (uint32_t)(uint16_t)w->integers[2 * p] | (uint32_t)w->integers[2 * p + 1] << 16;
}

static void prepare(const search *s, band *rows)
{
#pragma omp parallel for num_threads(s->n_threads) schedule(static, MT_PRODUCT_GROUP)
  for (int64_t i = 0; i < rows->count; i++)
    round_row(s, s->workers + omp_get_thread_num(), rows, i);
}

/* Its rows [from, from + count), from a multiple of MT_PRODUCT_GROUP. */
static band part_of(const search *s, const band *rows, int64_t from, int64_t count)
{
  return (band){.first = rows->first + from,
                .count = count,
                .raw = rows->raw + from * s->d,
                .rounded = rows->rounded + from * s->pairs_of_columns,
                .facts = rows->facts + from,
                .step = rows->step + from,
                .error = rows->error + from,
                .half = rows->half + from,
                .best = rows->best + from * s->k};
}

static int64_t between(int64_t low, int64_t value, int64_t high)
{
  if (value > high) value = high;
  return value < low ? low : value;
}

/* Queries and visitors that meet. */
typedef struct meeting {
  const band *queries, *visitors;
  int64_t lead;  /* the first visitor's number where the first query's is 0 */
  int64_t width; /* queries that any rank has in hand now */
} meeting;

/* The first of the visitors that the tile at `from` is multiplied with. */
static int64_t first_visitor(const meeting *m, int64_t from)
{
  return between(0, from - m->lead, m->visitors->count);
}

/* How many queries from the first on see visitor j as a column. */
static int64_t queries_above(const search *s, const meeting *m, int64_t j)
{
  int64_t number = m->lead + j, tile = s->sizes.tile;
  if (number < m->width) number -= number > 0 ? number % tile : number;
  return between(0, number, m->queries->count);
}

/* Multiplies queries [from, to) with the visitors; they look through their rows. */
static void search_rows(search *s, const meeting *m, int64_t from, int64_t to,
                        mt_ring *ring)
{
  int64_t tile = s->sizes.tile;
#pragma omp parallel for num_threads(s->n_threads) schedule(dynamic)
  for (int64_t first = from; first < to; first += tile) {
    worker *w = s->workers + omp_get_thread_num();
    int64_t skipped = first_visitor(m, first);
    band a = part_of(s, m->queries, first, to - first < tile ? to - first : tile);
    band b = part_of(s, m->visitors, skipped, m->visitors->count - skipped);
    int32_t *product = s->product + (first - from) * s->sizes.block + skipped;
    if (b.count == 0) continue;
    mt_product_multiply(s->kernel, s->pairs_of_columns, mt_product_groups(a.count),
                        a.rounded, mt_product_groups(b.count), b.rounded,
                        s->sizes.block, product);
    for (int64_t i = 0; i < a.count; i++)
      look_through(s, w, &a, i, &b, product + i * s->sizes.block);
    if (w == s->workers) mt_ring_progress(ring);
  }
}

/* Columns [first, last) of the product's first `count` rows, one after the other. */
static void turn(const search *s, int64_t count, int64_t first, int64_t last,
                 int32_t *columns_out)
{
  enum { STEP = 16 }; /* a cache line */
  for (int64_t from = 0; from < count; from += STEP) {
    int64_t to = from + STEP < count ? from + STEP : count;
    for (int64_t j = first; j < last; j++)
      for (int64_t i = from; i < to; i++)
        columns_out[(j - first) * s->sizes.slab + i] =
            s->product[i * s->sizes.block + j];
  }
}

/* The visitors look through their columns, as far as queries [from, to) made them. */
static void search_columns(search *s, const meeting *m, int64_t from, int64_t to,
                           mt_ring *ring)
{
  int64_t slab = s->sizes.slab, count = m->visitors->count;
#pragma omp parallel for num_threads(s->n_threads) schedule(dynamic)
  for (int64_t first = 0; first < count; first += STRIPE) {
    worker *w = s->workers + omp_get_thread_num();
    int64_t last = first + STRIPE < count ? first + STRIPE : count;
    int64_t most = queries_above(s, m, last - 1) - from;
    turn(s, between(0, most, to - from), first, last, w->columns);
    for (int64_t j = first; j < last; j++) {
      int64_t above = between(0, queries_above(s, m, j) - from, to - from);
      band b = part_of(s, m->queries, from, above);
      look_through(s, w, m->visitors, j, &b, w->columns + (j - first) * slab);
    }
    if (w == s->workers) mt_ring_progress(ring);
  }
}

static void meet(search *s, const meeting *m, mt_ring *ring)
{
  int64_t queries = m->queries->count;
  for (int64_t from = 0; from < queries; from += s->sizes.slab) {
    int64_t to = between(from, from + s->sizes.slab, queries);
    search_rows(s, m, from, to, ring);
    search_columns(s, m, from, to, ring);
  }
  for (int64_t j = 0; j < m->visitors->count; j++) s->pairs += queries_above(s, m, j);
}

/* Rows [at, at + block) of those of rank r, as far as there are any. */
static int64_t block_count(const search *s, int r, int64_t at)
{
  int64_t left = mt_part_count(s->n, s->comm->size, r) - at;
  return left < 0 ? 0 : left < s->sizes.block ? left : s->sizes.block;
}

/* This rank's own rows [at, at + block) as visitors: read, if they are not in hand. */
static mt_status visit_own(search *s, int64_t at, band *v)
{
  mt_status status = MT_OK;
  int64_t count = block_count(s, s->comm->rank, at);
  *v = s->whole && count > 0 ? part_of(s, &s->own, at, count) : s->here;
  v->first = s->first + at;
  v->count = count;
  v->best = s->best + (count > 0 ? at * s->k : 0);
  if (count == 0 || s->whole) return MT_OK;
  status = s->rows->read(s->rows, v->first, count, v->raw);
  if (status == MT_OK) prepare(s, v);
  return status;
}

/* The rank that is `step` ranks before this one in the ring. */
static int rank_before(const search *s, int step)
{
  return (s->comm->rank - step % s->comm->size + s->comm->size) % s->comm->size;
}

/* What the visitors keep goes on with them. */
static mt_status pass_on(search *s, int64_t next, band *v)
{
  mt_ring *ring = NULL;
  size_t each = (size_t)s->k * sizeof *v->best;
  mt_status status = mt_ring_begin(s->comm, (size_t)v->count * each, v->best,
                                   (size_t)next * each, s->coming_best, &ring);
  return status == MT_OK ? mt_ring_end(s->comm, &ring) : status;
}

/* The visitors that were on their way are here. */
static void receive(search *s, int64_t first, int64_t count, band *v)
{
  float *raw = s->here.raw;
  neighbour *best = s->here.best;
  s->here.raw = s->coming;
  s->here.best = s->coming_best;
  s->coming = raw;
  s->coming_best = best;
  *v = s->here;
  v->first = first;
  v->count = count;
  prepare(s, v);
}

/* Adds what this rank's rows [at, at + count) have found elsewhere. */
static void merge(search *s, int64_t at, int64_t count, const neighbour *found)
{
#pragma omp parallel for num_threads(s->n_threads) schedule(static)
  for (int64_t i = 0; i < count; i++) {
    neighbour *best = s->best + (at + i) * s->k;
    const neighbour *other = found + i * s->k;
    for (int64_t m = 0; m < s->k && other[m].index != none.index; m++)
      if (!is_kept(s->k, best, other[m].index)) keep(s->k, best, other[m]);
  }
}

/* What the visitors keep, having come `steps` ranks, goes to their own rank. */
static mt_status bring_home(search *s, int64_t at, int steps, const band *v)
{
  mt_status status = MT_OK;
  size_t *send = NULL, *receive = NULL, each = (size_t)s->k * sizeof *v->best;
  int64_t count = block_count(s, s->comm->rank, at);
  int size = s->comm->size;
  status = mt_memory_new(size, sizeof *send, "sizes", (void **)&send);
  if (status == MT_OK)
    status = mt_memory_new(size, sizeof *receive, "sizes", (void **)&receive);
  MT_TRY(mt_agree(s->comm, status));
  send[rank_before(s, steps)] = (size_t)v->count * each;
  receive[rank_before(s, size - steps)] = (size_t)count * each;
  MT_TRY(mt_alltoallv(s->comm, send, v->best, receive, s->coming_best));
  merge(s, at, count, s->coming_best);
done:
  free(send);
  free(receive);
  return status;
}

/* Every rank's rows [from, from + block) go round half of the ring; the queries in hand begin
 * with row `at` of their rank's. */
static mt_status search_round(search *s, int64_t at, int64_t from)
{
  const mt_comm *comm = s->comm;
  int64_t widest = mt_part_count(s->n, comm->size, 0);
  size_t row_bytes = (size_t)s->d * sizeof(float);
  bool met = from + s->sizes.block <= at; /* in an earlier round, the other way round */
  int last = met ? (comm->size - 1) / 2 : comm->size / 2;
  meeting m = {.queries = &s->own, .width = between(0, widest - at, s->sizes.query)};
  mt_ring *ring = NULL;
  band v;
  if (met && last == 0) return MT_OK;
  mt_status status = mt_stop_requested() ? MT_STOPPED : visit_own(s, from, &v);
  MT_TRY(mt_agree(comm, status));
  for (int step = 0;; step++) {
    bool twice = step == 0 || 2 * step == comm->size; /* or we visit them, too */
    int whose = rank_before(s, step + 1);
    int64_t next = block_count(s, whose, from);
    m.visitors = &v;
    m.lead = twice ? from - at : m.width;
    if (step < last)
      MT_TRY(mt_ring_begin(comm, (size_t)v.count * row_bytes, v.raw,
                           (size_t)next * row_bytes, s->coming, &ring));
    if (!met || step > 0) meet(s, &m, ring);
    MT_TRY(mt_ring_end(comm, &ring));
    if (step == last) break;
    MT_TRY(pass_on(s, next, &v));
    receive(s, mt_part_first(s->n, comm->size, whose) + from, next, &v);
  }
  if (last > 0) MT_TRY(bring_home(s, from, last, &v));
done:
  return status;
}

/* ---- centre and zoom ---------------------------------------------------------------------- */

/* Adds count rows to the columns' sums; returns the largest coordinate. */
static double add_rows(const search *s, int64_t count, const float *raw, double *sums)
{
  enum { PIECE = 512 };
  double largest = 0.0;
#pragma omp parallel for num_threads(s->n_threads) schedule(static)
  for (int64_t i = 0; i < count; i++)
    s->here.facts[i].scale = mt_metric_scale(s->metric, s->d, raw + i * s->d);
#pragma omp parallel for num_threads(s->n_threads) schedule(static) \
    reduction(max                                                   \
              : largest)
  for (int64_t from = 0; from < s->d; from += PIECE) {
    int64_t many = s->d - from < PIECE ? s->d - from : PIECE;
    double z[PIECE];
    for (int64_t i = 0; i < count; i++) {
      transform(s->metric, many, s->here.facts[i].scale, raw + i * s->d + from, z);
      for (int64_t t = 0; t < many; t++) {
        sums[from + t] += z[t];
        if (fabs(z[t]) > largest) largest = fabs(z[t]);
      }
    }
  }
  return largest;
}

/* This rank's rows: are they allowed, their sum and largest coordinate. */
static mt_status survey_own(const search *s, double *sums, double *largest_out,
                            int64_t *bad_out, int64_t *column_out, double *value_out)
{
  mt_status status = MT_OK;
  double largest = 0.0;
  *bad_out = -1;
  for (int64_t at = 0; at < s->local; at += s->sizes.block) {
    int64_t count = block_count(s, s->comm->rank, at);
    float *raw = s->whole ? s->own.raw + at * s->d : s->here.raw;
    MT_TRY(s->rows->read(s->rows, s->first + at, count, raw));
    mt_knn_check(s->metric, s->first + at, count, s->d, raw, bad_out, column_out);
    if (*bad_out >= 0) {
      *value_out = raw[(*bad_out - s->first - at) * s->d + *column_out];
      break;
    }
    largest = fmax(largest, add_rows(s, count, raw, sums));
  }
  *largest_out = largest;
done:
  return status;
}

/* Checks all rows; the first bad one's owner says so. Then settles on the mean as centre
 * (in fixed point, hence the same on all ranks; any centre gives the same neighbours). */
static mt_status survey(search *s)
{
  mt_status status = MT_OK;
  double *sums = NULL, largest = 0.0, value = 0.0;
  int64_t *fixed = NULL, bad = -1, column = 0, first_bad;
  int exponent = 0;

  status = mt_memory_new(s->d, sizeof *sums, "sums", (void **)&sums);
  if (status == MT_OK)
    status = mt_memory_new(s->d, sizeof *fixed, "fixed", (void **)&fixed);
  if (status == MT_OK) status = survey_own(s, sums, &largest, &bad, &column, &value);
  MT_TRY(mt_agree(s->comm, status));
  first_bad = bad < 0 ? s->n : bad;
  MT_TRY(mt_min_i64(s->comm, 1, &first_bad));
  if (first_bad < s->n && first_bad == bad)
    status = mt_knn_refuse(s->metric, bad, column, value);
  MT_TRY(mt_agree(s->comm, status));
  MT_TRY(mt_max_f64(s->comm, 1, &largest));
  frexp(largest * sqrt((double)s->d), &exponent); /* norms are below 2^exponent */
  s->zoom = largest > 0.0 ? ldexp(1.0, -exponent - 1) : 1.0;
  for (int64_t t = 0; t < s->d; t++)
    fixed[t] = llround(sums[t] * s->zoom / (double)s->n * 0x1p60);
  MT_TRY(mt_sum_i64(s->comm, s->d, fixed));
  for (int64_t t = 0; t < s->d; t++)
    s->centre[t] = (double)fixed[t] * 0x1p-60 / s->zoom;
done:
  free(sums);
  free(fixed);
  return status;
}

/* ---- memory -------------------------------------------------------------------------------- */

static int64_t whole_groups(int64_t rows)
{
  return MT_PRODUCT_GROUP * mt_product_groups(rows);
}

/* Sizes that were left to us: most of the memory for the queries, as each of their rounds reads all
 * others anew; an eighth for the blocks. All are whole groups. */
static void settle_sizes(int64_t widest, int64_t d, int64_t threads,
                         mt_cpu_knn_sizes *sizes)
{
  int64_t query_row = 6 * (d + 1), block_row = 10 * (d + 1), part = memory_bytes / 8;
  if (sizes->block <= 0) sizes->block = between(16, part / block_row, MOST_BLOCK);
  if (sizes->query <= 0) sizes->query = between(16, 7 * part / query_row, INT32_MAX);
  sizes->block = whole_groups(between(1, sizes->block, widest));
  sizes->query = whole_groups(between(1, sizes->query, widest));
  if (sizes->tile <= 0) { /* as many for each thread */
    int64_t each = (sizes->query - 1) / threads + 1;
    int64_t turns = between(4, (each - 1) / MOST_TILE + 1, INT32_MAX);
    sizes->tile = between(16, (each - 1) / turns + 1, MOST_TILE);
  }
  sizes->tile = between(1, whole_groups(sizes->tile), sizes->query);
  if (sizes->slab <= 0) sizes->slab = most_products / sizes->block;
  sizes->slab = between(sizes->tile, sizes->slab, sizes->query);
  if (sizes->slab < sizes->query) sizes->slab -= sizes->slab % sizes->tile;
}

int64_t mt_cpu_knn_bytes(int64_t n, int64_t d, int64_t k, int64_t ranks,
                         int64_t threads)
{
  int64_t widest = mt_part_count(n, (int)ranks, 0);
  mt_cpu_knn_sizes sizes = {0};
  if (widest == 0) return 0;
  settle_sizes(widest, d, threads, &sizes);
  int64_t facts = (int64_t)(sizeof(row_facts) + 3 * sizeof(float)), kept = 16 * k;
  int64_t foreign = ranks > 1 ? 10 * d + 2 * kept : sizes.query < widest ? 6 * d : 0;
  int64_t work = sizes.slab * STRIPE * 4 + (sizes.slab + sizes.block) * 8 + 16 * d;
  return sizes.query * (6 * d + facts) + sizes.block * (foreign + facts) +
         widest * kept + sizes.slab * sizes.block * 4 + threads * work;
}

static mt_status new_workers(search *s)
{
  mt_status status = MT_OK;
  const mt_cpu_knn_sizes *sizes = &s->sizes;
  MT_NEW(s->workers, s->n_threads);
  for (int i = 0; i < s->n_threads; i++) {
    worker *w = s->workers + i;
    MT_NEW(w->columns, STRIPE * sizes->slab);
    MT_NEW(w->heap, sizes->block > sizes->slab ? sizes->block : sizes->slab);
    MT_NEW(w->z, s->d);
    MT_NEW(w->near, s->d);
    MT_NEW(w->integers, s->d + 1);
  }
done:
  return status;
}

/* kept: how many rows as read and as rounded; a multiple of MT_PRODUCT_GROUP. */
static mt_status new_band(const search *s, int64_t count, int64_t kept, band *out)
{
  mt_status status = MT_OK;
  MT_NEW(out->raw, kept * s->d);
  MT_NEW(out->rounded, kept * s->pairs_of_columns);
  MT_NEW(out->facts, count);
  MT_NEW(out->step, count);
  MT_NEW(out->error, count);
  MT_NEW(out->half, count);
done:
  return status;
}

static void free_band(band *rows)
{
  free(rows->raw);
  free(rows->rounded);
  free(rows->facts);
  free(rows->step);
  free(rows->error);
  free(rows->half);
}

static mt_status new_memory(search *s)
{
  mt_status status = MT_OK;
  int64_t query = s->sizes.query, block = s->sizes.block;
  int64_t foreign = s->comm->size > 1 ? block : 0;
  int64_t visitors = s->whole ? foreign : block;
  MT_TRY(new_workers(s));
  MT_TRY(new_band(s, query, query, &s->own));
  MT_TRY(new_band(s, block, visitors, &s->here));
  MT_NEW(s->coming, foreign * s->d);
  MT_NEW(s->here.best, foreign * s->k);
  MT_NEW(s->coming_best, foreign * s->k);
  MT_NEW(s->best, s->local * s->k);
  MT_NEW(s->product, s->sizes.slab * block);
  MT_NEW(s->centre, s->d);
  keep_none(s->local * s->k, s->best);
done:
  return status;
}

static void free_memory(search *s)
{
  for (int i = 0; s->workers != NULL && i < s->n_threads; i++) {
    free(s->workers[i].columns);
    free(s->workers[i].heap);
    free(s->workers[i].z);
    free(s->workers[i].near);
    free(s->workers[i].integers);
  }
  free(s->workers);
  free_band(&s->own);
  free_band(&s->here);
  free(s->coming);
  free(s->here.best);
  free(s->coming_best);
  free(s->best);
  free(s->product);
  free(s->centre);
}

/* ---- the search ---------------------------------------------------------------------------- */

/* This rank's rows [at, at + query) meet all that they have not met yet. */
static mt_status search_queries(search *s, int64_t at)
{
  mt_status status = MT_OK;
  int64_t widest = mt_part_count(s->n, s->comm->size, 0);
  int64_t count = between(0, s->local - at, s->sizes.query);
  s->own.first = s->first + at;
  s->own.count = count;
  s->own.best = s->best + (count > 0 ? at * s->k : 0);
  if (count > 0 && !s->whole)
    status = s->rows->read(s->rows, s->own.first, count, s->own.raw);
  MT_TRY(mt_agree(s->comm, status));
  prepare(s, &s->own);
  for (int64_t from = 0; from < widest; from += s->sizes.block) {
    MT_TRY(search_round(s, at, from));
    mt_progress_update(between(0, 2 * s->pairs / widest, s->n));
  }
done:
  return status;
}

static void store(const search *s, int64_t *indices_out, float *distances_out)
{
  for (int64_t m = 0; m < s->local * s->k; m++) {
    indices_out[m] = s->best[m].index;
    distances_out[m] = mt_metric_store(s->best[m].distance);
  }
}

mt_status mt_cpu_knn_sized(const mt_comm *comm, mt_metric metric, int64_t k,
                           const mt_rows *rows, const mt_cpu_knn_sizes *sizes,
                           int64_t *indices_out, float *distances_out,
                           mt_cpu_knn_cost *cost_out)
{
  mt_status status = MT_OK;
  int64_t widest = mt_part_count(rows->n, comm->size, 0);
  int64_t threads = omp_get_max_threads();
  search s = {
      .comm = comm,
      .rows = rows,
      .metric = metric,
      .n = rows->n,
      .d = rows->d,
      .k = k,
      .first = mt_part_first(rows->n, comm->size, comm->rank),
      .local = mt_part_count(rows->n, comm->size, comm->rank),
      .pairs_of_columns = mt_product_pairs(rows->d),
      .kernel = mt_product_kernel_find(NULL),
      .sizes = *sizes,
      .n_threads = omp_get_max_threads(),
      .tiny = (double)(rows->d + 8) * 0x1p-124,
  };

  if (k < 1 || k >= rows->n)
    return mt_fail(MT_ERR_ARG, "%lld neighbours of %lld rows", (long long)k,
                   (long long)rows->n);
  if (rows->d > INT32_MAX)
    return mt_fail(MT_ERR_ARG, "%lld columns are too many", (long long)rows->d);
  MT_TRY(mt_max_i64(comm, 1, &threads));
  settle_sizes(widest, rows->d, threads, &s.sizes);
  s.whole = s.sizes.query >= widest;
  MT_TRY(mt_agree(comm, new_memory(&s)));
  MT_TRY(survey(&s));
  mt_progress_begin(comm->rank, "knn", rows->n);
  for (int64_t at = 0; at < widest; at += s.sizes.query) MT_TRY(search_queries(&s, at));
  store(&s, indices_out, distances_out);
  if (cost_out != NULL) {
    cost_out->exact = 0;
    for (int i = 0; i < s.n_threads; i++) cost_out->exact += s.workers[i].exact;
  }
done:
  mt_progress_end();
  free_memory(&s);
  return status;
}

mt_status mt_cpu_knn(mt_backend *be, const mt_comm *comm, mt_metric metric, int64_t k,
                     const mt_rows *rows, int64_t *indices_out, float *distances_out)
{
  (void)be;
  mt_cpu_knn_sizes sizes = {0};
  return mt_cpu_knn_sized(comm, metric, k, rows, &sizes, indices_out, distances_out,
                          NULL);
}
