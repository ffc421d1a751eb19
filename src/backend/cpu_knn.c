/* Exact nearest neighbours: blocks of rows go round the ring of ranks; a float product of
 * transformed rows says which pairs could matter, with a bound on its error, and only their
 * distances are computed, in double from differences. What a row keeps is then what a brute
 * force in double keeps, whatever the blocks, the ranks and the threads.
 *
 * The bound. Let z be a row as metric.h transforms it, c a centre common to all rows, and
 * y = float(zoom (z - c)). With u = 2^-24, |y - zoom (z - c)| <= u b for b a little above
 * |y|. A pair (i, j) whose length |z_i - z_j| is at most q has
 *     |y_i - y_j| <= Q + u b_j,   Q = zoom q + u b_i,
 * thus, squared and halved, y_i.y_j + u Q b_j - |y_j|^2/2 >= (|y_i|^2 - Q^2)/2 (up to
 * (u b_j)^2). The product is summed in panels, so that it is off by less than
 * gamma b_i b_j, gamma = m u / (1 - m u), m = columns of a panel + number of panels
 * (Higham 2002, section 3.1: any order of summation). So the pair can be left out if
 *     product + w_i b_j - h_j < t_i,
 * with w_i = gamma b_i + u Q, h_j a little below |y_j|^2/2, t_i a little below
 * (|y_i|^2 - Q^2)/2. The centre makes b small where rows are alike. Where many rows far from
 * it are alike, the product cannot tell them apart; then |y_i - y_j|, summed in float from
 * differences, is compared with Q + u b_j, which only the rounding of y blurs. */
#include "backend/cpu_knn.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/stop.h"
#include "knn/knn.h"

#include <cblas.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GLIBC__)
/* No fused multiply-add in either: both give the same bits. */
#define FOR_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define FOR_VECTORS
#endif

enum { PANEL = 512 };               /* columns of a product */
static const double unit = 0x1p-24; /* relative rounding error of a float */
static const int64_t memory_bytes = (int64_t)1 << 30; /* of rows, per rank */

/* Of a row: what is needed beside its values. */
typedef struct row_facts {
  double scale;  /* mt_metric_scale */
  double square; /* |y|^2 */
  double reach;  /* b: a little above |y| */
} row_facts;

/* Rows that are searched in now. */
typedef struct visitors {
  int64_t first, count;    /* row numbers over all ranks */
  const float *raw, *near; /* (count, d) as read; transformed, centred, zoomed */
  const row_facts *facts;  /* (count) */
} visitors;

typedef struct hit {
  float key;      /* larger: nearer */
  int32_t column; /* row within the block */
} hit;

typedef struct worker { /* a thread's own memory */
  float *product;       /* (tile, block) */
  hit *heap;            /* (block) */
  double *z;            /* (d) a query row, transformed */
  int64_t exact;
} worker;

typedef struct search {
  const mt_comm *comm;
  const mt_rows *rows;
  mt_metric metric;
  int64_t n, d, k, first, local;
  mt_cpu_knn_sizes sizes;
  int n_threads;
  worker *workers;
  double zoom, *centre; /* (d) */
  double gamma, tiny;
  bool whole;                /* all of this rank's rows are in hand, and stay */
  float *query, *query_near; /* (query, d) as read; transformed, centred, zoomed */
  row_facts *query_facts;
  float *here, *coming; /* (block, d) visitors as read, and those on their way */
  float *near;          /* (block, d) visitors, transformed */
  row_facts *facts;     /* (block) */
  float *reach, *half;  /* (block) b and h of the visitors */
  double *best;         /* (query, k) distances, ascending */
  int64_t *best_index;  /* (query, k) */
  int64_t *filled;      /* (query) how many of the k are there */
} search;

/* ---- a row's k best ------------------------------------------------------------------ */

static bool comes_before(double distance, int64_t index, double other,
                         int64_t other_index)
{
  return distance < other || (distance == other && index < other_index);
}

static void keep(const search *s, int64_t q, double distance, int64_t index)
{
  double *best = s->best + q * s->k;
  int64_t *best_index = s->best_index + q * s->k, at = s->filled[q];
  if (at == s->k) {
    if (!comes_before(distance, index, best[at - 1], best_index[at - 1])) return;
    at--;
  } else {
    s->filled[q]++;
  }
  for (; at > 0 && comes_before(distance, index, best[at - 1], best_index[at - 1]);
       at--) {
    best[at] = best[at - 1];
    best_index[at] = best_index[at - 1];
  }
  best[at] = distance;
  best_index[at] = index;
}

static bool is_kept(const search *s, int64_t q, int64_t index)
{
  for (int64_t m = 0; m < s->filled[q]; m++)
    if (s->best_index[q * s->k + m] == index) return true;
  return false;
}

/* ---- distances in double --------------------------------------------------------------- */

FOR_VECTORS static double square_of(mt_metric metric, int64_t d, const double *z,
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

FOR_VECTORS static void transform(mt_metric metric, int64_t d, double scale,
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

/* Computes a pair's distance (z: the query transformed) and keeps it if it is good. */
static void measure(const search *s, worker *w, int64_t q, const visitors *v,
                    int64_t column)
{
  double scale = s->query_facts[q].scale, other = v->facts[column].scale, square = 0.0;
  if (other != 0.0) { /* a zero row's distances are known */
    square = square_of(s->metric, s->d, w->z, other, v->raw + column * s->d);
    w->exact++;
  }
  keep(s, q, mt_metric_distance(s->metric, scale, other, square), v->first + column);
}

/* ---- which pairs could matter ------------------------------------------------------------ */

/* w, t and Q of the tests above; level -inf while the row has fewer than k. */
typedef struct threshold {
  float slope, level;
  double most;
} threshold;

static threshold limit_of(const search *s, int64_t q)
{
  const row_facts *facts = s->query_facts + q;
  if (s->filled[q] < s->k)
    return (threshold){(float)(s->gamma * facts->reach), -INFINITY, INFINITY};
  double length = mt_metric_length(s->metric, s->best[q * s->k + s->k - 1]);
  double most = s->zoom * length * (1.0 + 1e-9) + unit * facts->reach;
  double level = 0.5 * (facts->square - most * most);
  level -= fabs(level) * 0x1p-22 + s->tiny;
  double slope = (s->gamma * facts->reach + unit * most) * (1.0 + 1e-5);
  return (threshold){(float)slope, (float)level, most};
}

/* The columns that pass the test, with their keys. */
FOR_VECTORS static int64_t collect(int64_t count, const float *product,
                                   const float *reach, const float *half,
                                   threshold limit, hit *hits_out)
{
  enum { GROUP = 32 };
  int64_t hits = 0;
  for (int64_t from = 0; from < count; from += GROUP) {
    int64_t to = from + GROUP < count ? from + GROUP : count;
    int any = 0;
    for (int64_t j = from; j < to; j++)
      any |= product[j] + limit.slope * reach[j] - half[j] >= limit.level;
    if (!any) continue;
    for (int64_t j = from; j < to; j++) {
      float key = product[j] + limit.slope * reach[j] - half[j];
      if (key >= limit.level) hits_out[hits++] = (hit){key, (int32_t)j};
    }
  }
  return hits;
}

/* Squared difference of two transformed rows; all terms are positive, so its relative error
 * is below (d / lanes + lanes) u. */
FOR_VECTORS static float near_square(int64_t d, const float *a, const float *b)
{
  enum { LANES = 32 };
  float lane[LANES] = {0.0f}, sum = 0.0f;
  int64_t whole = d - d % LANES;
  for (int64_t t = 0; t < whole; t += LANES)
    for (int l = 0; l < LANES; l++)
      lane[l] += (a[t + l] - b[t + l]) * (a[t + l] - b[t + l]);
  for (int64_t t = whole; t < d; t++) lane[t - whole] += (a[t] - b[t]) * (a[t] - b[t]);
  for (int l = 0; l < LANES; l++) sum += lane[l];
  return sum;
}

/* The second test, which costs a tenth of a distance in double. */
static bool may_be_near(const search *s, int64_t q, const visitors *v, int64_t column,
                        double most)
{
  double off = ((double)s->d / 32.0 + 40.0) * unit;
  double square = near_square(s->d, s->query_near + q * s->d, v->near + column * s->d);
  double reach = most + unit * v->facts[column].reach;
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
static bool is_settled(const search *s, int64_t q, int64_t index)
{
  int64_t last = q * s->k + s->k - 1;
  return s->filled[q] == s->k && s->best[last] == 0.0 && index > s->best_index[last];
}

/* Takes out all the hits that are settled: duplicates of the query row, by the thousand. */
static int64_t drop_settled(const search *s, int64_t q, const visitors *v, int64_t n,
                            hit *heap)
{
  int64_t left = 0;
  for (int64_t h = 0; h < n; h++)
    if (!is_settled(s, q, v->first + heap[h].column)) heap[left++] = heap[h];
  make_heap(heap, left);
  return left;
}

/* Could a hit still be among the best of a row that has k? */
static bool may_win(const search *s, int64_t q, const visitors *v, hit next)
{
  threshold limit = limit_of(s, q);
  if (next.key < limit.level) return false;
  return may_be_near(s, q, v, next.column, limit.most);
}

/* A zero row under cosine: all distances are known. */
static void search_zero_row(const search *s, int64_t q, int64_t self, const visitors *v)
{
  for (int64_t j = 0; j < v->count; j++)
    if (v->first + j != self)
      keep(s, q, mt_metric_distance(s->metric, 0.0, v->facts[j].scale, 0.0),
           v->first + j);
}

/* One query row against the visitors. Best first, so that few are computed: each good one
 * lowers the limit for the rest. */
static void search_row(const search *s, worker *w, int64_t q, int64_t self,
                       const visitors *v, const float *product)
{
  bool was_full = false;
  while (!was_full && !is_settled(s, q, v->first)) {
    was_full = s->filled[q] == s->k; /* keys made with a full row's limit bound all */
    int64_t n = collect(v->count, product, s->reach, s->half, limit_of(s, q), w->heap);
    make_heap(w->heap, n);
    while (n > 0 && (was_full || s->filled[q] < s->k)) {
      hit next = pop(w->heap, &n);
      int64_t index = v->first + next.column;
      if (is_settled(s, q, index))
        n = drop_settled(s, q, v, n, w->heap);
      else if (index != self && !is_kept(s, q, index) &&
               (!was_full || may_win(s, q, v, next)))
        measure(s, w, q, v, next.column);
      else if (was_full && next.key < limit_of(s, q).level)
        break; /* the rest have smaller keys */
    }
    if (s->filled[q] < s->k) return; /* the whole block is in */
  }
}

/* ---- blocks ------------------------------------------------------------------------------ */

FOR_VECTORS static double centred(int64_t d, double zoom, const double *centre,
                                  double *z, float *near_out)
{
  double lane[MT_METRIC_LANES] = {0.0};
  for (int64_t t = 0; t < d; t++) near_out[t] = (float)((z[t] - centre[t]) * zoom);
  int64_t whole = d - d % MT_METRIC_LANES;
  for (int64_t t = 0; t < whole; t += MT_METRIC_LANES)
    for (int l = 0; l < MT_METRIC_LANES; l++)
      lane[l] += (double)near_out[t + l] * near_out[t + l];
  for (int64_t t = whole; t < d; t++) lane[0] += (double)near_out[t] * near_out[t];
  return mt_metric_add_lanes(lane);
}

/* Transforms rows for the product. */
static void prepare(search *s, int64_t count, const float *raw, float *near_out,
                    row_facts *facts_out)
{
  double least = (1.0 + sqrt((double)s->d)) * 0x1p-125; /* rounding of denormals */
#pragma omp parallel for num_threads(s->n_threads) schedule(static)
  for (int64_t i = 0; i < count; i++) {
    double *z = s->workers[omp_get_thread_num()].z;
    row_facts *facts = facts_out + i;
    facts->scale = mt_metric_scale(s->metric, s->d, raw + i * s->d);
    transform(s->metric, s->d, facts->scale, raw + i * s->d, z);
    facts->square = centred(s->d, s->zoom, s->centre, z, near_out + i * s->d);
    facts->reach = sqrt(facts->square) * 1.001 + least;
  }
}

static void prepare_bounds(search *s, const visitors *v)
{
  for (int64_t j = 0; j < v->count; j++) {
    s->reach[j] = (float)(v->facts[j].reach * (1.0 + 1e-6));
    s->half[j] = (float)(0.5 * v->facts[j].square * (1.0 - 16.0 * unit));
  }
}

/* Products of queries [from, from + many) with the visitors. */
static void multiply(const search *s, int64_t from, int64_t many, const visitors *v,
                     float *product_out)
{
  if (s->d == 0)
    memset(product_out, 0, (size_t)(many * v->count) * sizeof *product_out);
  for (int64_t t = 0; t < s->d; t += PANEL) {
    int64_t columns = s->d - t < PANEL ? s->d - t : PANEL;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)many,
                (blasint)v->count, (blasint)columns, 1.0f,
                s->query_near + from * s->d + t, (blasint)s->d, v->near + t,
                (blasint)s->d, t > 0 ? 1.0f : 0.0f, product_out, (blasint)v->count);
  }
}

static void search_tile(const search *s, worker *w, int64_t query_first, int64_t from,
                        int64_t many, const visitors *v)
{
  multiply(s, from, many, v, w->product);
  for (int64_t q = from; q < from + many; q++) {
    transform(s->metric, s->d, s->query_facts[q].scale, s->query + q * s->d, w->z);
    if (s->query_facts[q].scale == 0.0)
      search_zero_row(s, q, query_first + q, v);
    else
      search_row(s, w, q, query_first + q, v, w->product + (q - from) * v->count);
  }
}

/* All queries in hand against the visitors. */
static void search_visitors(search *s, int64_t query_first, int64_t queries,
                            const visitors *v, mt_ring *ring)
{
  int64_t tiles = (queries + s->sizes.tile - 1) / s->sizes.tile;
  prepare_bounds(s, v);
#pragma omp parallel for num_threads(s->n_threads) schedule(dynamic)
  for (int64_t tile = 0; tile < tiles; tile++) {
    int thread = omp_get_thread_num();
    int64_t from = tile * s->sizes.tile;
    int64_t many = queries - from < s->sizes.tile ? queries - from : s->sizes.tile;
    search_tile(s, s->workers + thread, query_first, from, many, v);
    if (thread == 0) mt_ring_progress(ring);
  }
}

/* Rows [at, at + block) of those of rank r, as far as there are any. */
static int64_t block_count(const search *s, int r, int64_t at)
{
  int64_t left = mt_part_count(s->n, s->comm->size, r) - at;
  return left < 0 ? 0 : left < s->sizes.block ? left : s->sizes.block;
}

/* Transforms the rows that have come to s->here. */
static void receive(search *s, visitors *v)
{
  v->raw = s->here;
  v->near = s->near;
  v->facts = s->facts;
  prepare(s, v->count, s->here, s->near, s->facts);
}

/* This rank's own rows [at, at + block) as visitors: read, if they are not in hand. */
static mt_status visit_own(search *s, int64_t at, visitors *v)
{
  if (v->count == 0) return MT_OK;
  if (s->whole) {
    v->raw = s->query + at * s->d;
    v->near = s->query_near + at * s->d;
    v->facts = s->query_facts + at;
    return MT_OK;
  }
  mt_status status = s->rows->read(s->rows, s->first + at, v->count, s->here);
  if (status == MT_OK) receive(s, v);
  return status;
}

static visitors visitors_of(const search *s, int step, int64_t at)
{
  int size = s->comm->size, whose = (s->comm->rank + size - step) % size;
  return (visitors){.first = mt_part_first(s->n, size, whose) + at,
                    .count = block_count(s, whose, at)};
}

/* Every rank's rows [at, at + block) go round once. */
static mt_status search_round(search *s, int64_t query_first, int64_t queries,
                              int64_t at)
{
  const mt_comm *comm = s->comm;
  visitors v = visitors_of(s, 0, at);
  size_t row_bytes = (size_t)s->d * sizeof(float);
  mt_status status = mt_stop_requested() ? MT_STOPPED : visit_own(s, at, &v);
  MT_TRY(mt_agree(comm, status));
  for (int step = 0; step < comm->size; step++) {
    visitors next = visitors_of(s, step + 1, at);
    mt_ring *ring = NULL;
    if (step + 1 < comm->size)
      MT_TRY(mt_ring_begin(comm, (size_t)v.count * row_bytes, v.raw,
                           (size_t)next.count * row_bytes, s->coming, &ring));
    if (v.count > 0 && queries > 0) search_visitors(s, query_first, queries, &v, ring);
    MT_TRY(mt_ring_end(comm, &ring));
    if (step + 1 == comm->size) break;
    float *went = s->here;
    s->here = s->coming;
    s->coming = went;
    v = next;
    receive(s, &v);
  }
done:
  return status;
}

/* ---- centre and zoom ---------------------------------------------------------------------- */

/* Adds count rows to the columns' sums; returns the largest coordinate. */
static double add_rows(const search *s, int64_t count, const float *raw, double *sums)
{
  enum { STRIPE = 512 };
  double largest = 0.0;
#pragma omp parallel for num_threads(s->n_threads) schedule(static)
  for (int64_t i = 0; i < count; i++)
    s->facts[i].scale = mt_metric_scale(s->metric, s->d, raw + i * s->d);
#pragma omp parallel for num_threads(s->n_threads) schedule(static) \
    reduction(max                                                   \
              : largest)
  for (int64_t from = 0; from < s->d; from += STRIPE) {
    int64_t many = s->d - from < STRIPE ? s->d - from : STRIPE;
    double z[STRIPE];
    for (int64_t i = 0; i < count; i++) {
      transform(s->metric, many, s->facts[i].scale, raw + i * s->d + from, z);
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
    float *raw = s->whole ? s->query + at * s->d : s->here;
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

static int64_t between(int64_t low, int64_t value, int64_t high)
{
  if (value > high) value = high;
  return value < low ? low : value;
}

/* Sizes that were left to us, the same on all ranks: half of the memory for the queries
 * (each twice), half for the blocks (each three times). */
static void settle_sizes(search *s)
{
  int64_t widest = mt_part_count(s->n, s->comm->size, 0); /* rank 0 has most rows */
  int64_t row = (s->d + 1) * (int64_t)sizeof(float), half = memory_bytes / 2;
  mt_cpu_knn_sizes *sizes = &s->sizes;
  if (sizes->block <= 0) sizes->block = between(16, half / (3 * row), 8192);
  if (sizes->query <= 0) sizes->query = between(16, half / (2 * row), INT32_MAX);
  sizes->block = between(1, sizes->block, widest);
  sizes->query = between(1, sizes->query, widest);
  if (sizes->tile <= 0)
    sizes->tile = between(16, sizes->query / (4 * s->n_threads), 512);
  s->whole = sizes->query == widest;
  sizes->tile = between(1, sizes->tile, sizes->query);
}

static mt_status new_workers(search *s)
{
  mt_status status = MT_OK;
  MT_NEW(s->workers, s->n_threads);
  for (int i = 0; i < s->n_threads; i++) {
    worker *w = s->workers + i;
    MT_NEW(w->product, s->sizes.tile * s->sizes.block);
    MT_NEW(w->heap, s->sizes.block);
    MT_NEW(w->z, s->d);
  }
done:
  return status;
}

static mt_status new_memory(search *s)
{
  mt_status status = MT_OK;
  int64_t query = s->sizes.query, block = s->sizes.block;
  MT_TRY(new_workers(s));
  MT_NEW(s->centre, s->d);
  MT_NEW(s->query, query * s->d);
  MT_NEW(s->query_near, query * s->d);
  MT_NEW(s->query_facts, query);
  MT_NEW(s->here, s->whole && s->comm->size == 1 ? 0 : block * s->d);
  MT_NEW(s->coming, s->comm->size == 1 ? 0 : block * s->d);
  MT_NEW(s->near, s->whole && s->comm->size == 1 ? 0 : block * s->d);
  MT_NEW(s->facts, block);
  MT_NEW(s->reach, block);
  MT_NEW(s->half, block);
  MT_NEW(s->best, query * s->k);
  MT_NEW(s->best_index, query * s->k);
  MT_NEW(s->filled, query);
done:
  return status;
}

static void free_memory(search *s)
{
  for (int i = 0; s->workers != NULL && i < s->n_threads; i++) {
    free(s->workers[i].product);
    free(s->workers[i].heap);
    free(s->workers[i].z);
  }
  free(s->workers);
  free(s->centre);
  free(s->query);
  free(s->query_near);
  free(s->query_facts);
  free(s->here);
  free(s->coming);
  free(s->near);
  free(s->facts);
  free(s->reach);
  free(s->half);
  free(s->best);
  free(s->best_index);
  free(s->filled);
}

/* ---- the search ---------------------------------------------------------------------------- */

/* This rank's rows [at, at + query) against all rows. */
static mt_status search_queries(search *s, int64_t at, int64_t *indices_out,
                                float *distances_out)
{
  mt_status status = MT_OK;
  int64_t left = s->local - at;
  int64_t queries = left < 0 ? 0 : left < s->sizes.query ? left : s->sizes.query;
  int64_t widest = mt_part_count(s->n, s->comm->size, 0);
  memset(s->filled, 0, (size_t)s->sizes.query * sizeof *s->filled);
  if (queries > 0 && !s->whole)
    status = s->rows->read(s->rows, s->first + at, queries, s->query);
  MT_TRY(mt_agree(s->comm, status));
  prepare(s, queries, s->query, s->query_near, s->query_facts);
  for (int64_t from = 0; from < widest; from += s->sizes.block) {
    MT_TRY(search_round(s, s->first + at, queries, from));
    mt_progress_update((at + queries * from / widest) * s->n / widest);
  }
  for (int64_t m = 0; m < queries * s->k; m++) {
    indices_out[at * s->k + m] = s->best_index[m];
    distances_out[at * s->k + m] = mt_metric_store(s->best[m]);
  }
done:
  return status;
}

mt_status mt_cpu_knn_sized(const mt_comm *comm, mt_metric metric, int64_t k,
                           const mt_rows *rows, const mt_cpu_knn_sizes *sizes,
                           int64_t *indices_out, float *distances_out,
                           mt_cpu_knn_cost *cost_out)
{
  mt_status status = MT_OK;
  int blas_threads = openblas_get_num_threads();
  int64_t widest = mt_part_count(rows->n, comm->size, 0);
  double terms = PANEL + ceil((double)rows->d / PANEL) + 8.0;
  search s = {
      .comm = comm,
      .rows = rows,
      .metric = metric,
      .n = rows->n,
      .d = rows->d,
      .k = k,
      .first = mt_part_first(rows->n, comm->size, comm->rank),
      .local = mt_part_count(rows->n, comm->size, comm->rank),
      .sizes = *sizes,
      .n_threads = omp_get_max_threads(),
      .gamma = terms * unit / (1.0 - terms * unit) * 1.01,
      .tiny = (double)(rows->d + 8) * 0x1p-124,
  };

  if (k < 1 || k >= rows->n)
    return mt_fail(MT_ERR_ARG, "%lld neighbours of %lld rows", (long long)k,
                   (long long)rows->n);
  if (rows->d > INT32_MAX)
    return mt_fail(MT_ERR_ARG, "%lld columns are too many", (long long)rows->d);
  openblas_set_num_threads(1); /* threads work on a tile each */
  settle_sizes(&s);
  MT_TRY(mt_agree(comm, new_memory(&s)));
  MT_TRY(survey(&s));
  mt_progress_begin(comm->rank, "knn", rows->n);
  for (int64_t at = 0; at < widest; at += s.sizes.query)
    MT_TRY(search_queries(&s, at, indices_out, distances_out));
  if (cost_out != NULL) {
    cost_out->exact = 0;
    for (int i = 0; i < s.n_threads; i++) cost_out->exact += s.workers[i].exact;
  }
done:
  mt_progress_end();
  free_memory(&s);
  openblas_set_num_threads(blas_threads);
  return status;
}

mt_status mt_cpu_knn(mt_backend *be, const mt_comm *comm, mt_metric metric, int64_t k,
                     const mt_rows *rows, int64_t *indices_out, float *distances_out)
{
  (void)be;
  mt_cpu_knn_sizes sizes = {0, 0, 0};
  return mt_cpu_knn_sized(comm, metric, k, rows, &sizes, indices_out, distances_out,
                          NULL);
}
