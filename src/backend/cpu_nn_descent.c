/* NN-Descent (knn/nn_descent.h): every rank holds the matrix and works on its own rows; what
 * it finds is gathered after each step. A row is left as soon as its distance is known to be
 * beyond the neighbours there are, which changes no result: mostly by the product of both rows
 * rounded to 16-bit integers (cpu_product.h), since with r a transformed row as rounded and
 * e >= |z - r|, |z_i - z_j| >= |r_i - r_j| - e_i - e_j; else by a part of its columns. */
#include "backend/cpu_nn_descent.h"
#include "backend/cpu_product.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/stop.h"
#include "base/vectors.h"
#include "knn/knn.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

typedef struct candidate {
  double square; /* as the rounded rows have it */
  uint32_t row;
} candidate;

typedef struct worker { /* a thread's own memory */
  double *z;            /* (d) row `of_z` transformed; or a - b of the split in hand */
  int64_t of_z;         /* -1: none */
  int64_t split[3];     /* tree, level and segment; or none */
  int32_t *integers;    /* (2 pairs) */
  uint32_t *seen;       /* (n) stamp of the row that met this one last */
  uint32_t stamp;       /* even: a neighbour before; odd: a candidate */
  candidate *waiting;   /* (slots) for the row in hand */
  int64_t n_waiting;
  int64_t compared; /* pairs */
} worker;

typedef struct descent {
  const mt_comm *comm;
  const mt_rows *rows;
  mt_metric metric;
  mt_nn_plan plan;
  int64_t n, d, k, first, local;
  int n_threads;
  worker *workers;
  float *matrix; /* (n, d) */
  double *scale; /* (n) mt_metric_scale */
  const mt_product_kernel *kernel;
  int64_t pairs;            /* of a rounded row */
  mt_product_pair *rounded; /* (n, pairs), and some rows of 0 */
  mt_rounded *facts;        /* (n) */
  uint32_t *order;          /* (trees, n) rows by place */
  uint32_t *place;          /* (trees, local) places of this rank's rows */
  int64_t
      *visit; /* (local) its rows, those of a leaf together: they share candidates */
  uint32_t *graph;    /* (n, width) entries */
  double *distance;   /* (local, width) */
  uint32_t *links;    /* (n, 2, links) rows: new, old; the rest MT_NN_NONE */
  int64_t *indptr;    /* (local + 1) */
  uint32_t *incoming; /* (indptr[local]) entries: whose neighbour the row is */
  int64_t incoming_room;
} descent;

/* ---- pairs ------------------------------------------------------------------------------- */

/* Infinity if it is found to be beyond most. */
MT_INLINE double square_up_to(mt_metric metric, int64_t d, const double *z,
                              double scale, const float *y, double most)
{
  enum { PIECE = 256 };
  double lane[MT_METRIC_LANES] = {0.0};
  for (int64_t t = 0; t < d; t += PIECE) {
    int64_t columns = d - t < PIECE ? d - t : PIECE;
    mt_metric_add_squares(metric, columns, z + t, scale, y + t, lane);
    if (mt_metric_add_lanes(lane) > most) return INFINITY;
  }
  return mt_metric_add_lanes(lane);
}

MT_FOR_VECTORS static double square_of(mt_metric metric, int64_t d, const double *z,
                                       double scale, const float *y, double most)
{
  switch (metric) { /* a constant in each: one loop without branches */
  case MT_METRIC_COSINE:
    return square_up_to(MT_METRIC_COSINE, d, z, scale, y, most);
  case MT_METRIC_HELLINGER:
    return square_up_to(MT_METRIC_HELLINGER, d, z, scale, y, most);
  default:
    return square_up_to(MT_METRIC_EUCLIDEAN, d, z, scale, y, most);
  }
}

MT_FOR_VECTORS static void between(mt_metric metric, int64_t d, const float *a,
                                   double a_scale, const float *b, double b_scale,
                                   double *out)
{
  switch (metric) {
  case MT_METRIC_COSINE:
    mt_nn_between(MT_METRIC_COSINE, d, a_scale, a, b_scale, b, out);
    return;
  case MT_METRIC_HELLINGER:
    mt_nn_between(MT_METRIC_HELLINGER, d, a_scale, a, b_scale, b, out);
    return;
  default:
    mt_nn_between(MT_METRIC_EUCLIDEAN, d, a_scale, a, b_scale, b, out);
  }
}

MT_FOR_VECTORS static double side_of(mt_metric metric, int64_t d, const float *x,
                                     double scale, const double *between)
{
  switch (metric) {
  case MT_METRIC_COSINE:
    return mt_nn_side(MT_METRIC_COSINE, d, scale, x, between);
  case MT_METRIC_HELLINGER:
    return mt_nn_side(MT_METRIC_HELLINGER, d, scale, x, between);
  default:
    return mt_nn_side(MT_METRIC_EUCLIDEAN, d, scale, x, between);
  }
}

/* The neighbours that a row has so far. */
typedef struct list {
  int64_t row, width;
  double *distances;
  uint32_t *entries;
} list;

static list list_of(const descent *s, int64_t i)
{
  int64_t row = s->first + i, width = s->plan.width;
  return (list){row, width, s->distance + i * width, s->graph + row * width};
}

static void transform(const descent *s, worker *w, int64_t row)
{
  if (w->of_z == row) return;
  const float *x = s->matrix + row * s->d;
  for (int64_t t = 0; t < s->d; t++)
    w->z[t] = mt_metric_coordinate(s->metric, s->scale[row], x[t]);
  w->of_z = row;
}

/* Takes a row in hand: its neighbours, and it itself, are no candidates. */
static void take_up(const descent *s, worker *w, const list *l)
{
  w->stamp += 2;
  if (w->stamp == 0) {
    memset(w->seen, 0, (size_t)s->n * sizeof *w->seen);
    w->stamp = 2;
  }
  w->seen[l->row] = w->stamp;
  for (int64_t m = 0; m < l->width; m++) {
    uint32_t other = mt_nn_row(l->entries[m]);
    if (other != MT_NN_NONE) w->seen[other] = w->stamp;
  }
}

/* The square between two rows as rounded, from the product of their integers. */
static double rounded_square(const descent *s, int64_t row, int64_t other,
                             int32_t product)
{
  const mt_rounded *a = s->facts + row, *b = s->facts + other;
  return a->square + b->square - 2.0 * (double)a->step * (double)b->step * product;
}

/* Does it tell that the other row is beyond all that the list has, however the sums of d terms
 * are rounded? Not of zero rows. */
static bool is_beyond(const descent *s, const list *l, int64_t other, double square)
{
  const mt_rounded *a = s->facts + l->row, *b = s->facts + other;
  double most = mt_metric_most_square(s->metric, l->distances[l->width - 1]);
  double gap = sqrt(most) + a->error + b->error;
  double off = 1e-12 + (double)s->d * 0x1p-55;
  if (s->scale[l->row] == 0.0 || s->scale[other] == 0.0) return false;
  return square - 1e-12 * (a->square + b->square) > gap * gap * (1.0 + off);
}

/* Compares a list's row with one that it does not have, and keeps that if it is near enough. */
static void compare(const descent *s, worker *w, const list *l, uint32_t other)
{
  double scale = s->scale[l->row], other_scale = s->scale[other], square = 0.0;
  if (scale != 0.0 && other_scale != 0.0) {
    double most = mt_metric_most_square(s->metric, l->distances[l->width - 1]);
    transform(s, w, l->row);
    square =
        square_of(s->metric, s->d, w->z, other_scale, s->matrix + other * s->d, most);
    if (square == INFINITY) return;
  }
  mt_nn_keep(l->width, mt_metric_distance(s->metric, scale, other_scale, square), other,
             l->distances, l->entries);
}

/* The row in hand is to be compared with another, once. */
static void meet(worker *w, uint32_t other)
{
  if (w->seen[other] - w->stamp <= 1) return;
  w->seen[other] = w->stamp + 1;
  w->waiting[w->n_waiting++].row = other;
}

static int by_square(const void *a, const void *b)
{
  const candidate *p = a, *q = b;
  return (p->square > q->square) - (p->square < q->square);
}

/* Compares the row in hand with those that wait: the nearest first, so that they put most of the
 * others beyond the list. */
static void compare_waiting(const descent *s, worker *w, const list *l)
{
  candidate *all = w->waiting;
  int64_t count = 0;
  for (int64_t c = 0; c < w->n_waiting; c++) {
    uint32_t other = all[c].row;
    if (c + 1 < w->n_waiting) {
      const mt_product_pair *next = s->rounded + all[c + 1].row * s->pairs;
      for (int64_t p = 0; p < s->pairs; p += MT_PRODUCT_GROUP)
        __builtin_prefetch(next + p);
    }
    int32_t product = s->kernel->of_two(s->pairs, s->rounded + l->row * s->pairs,
                                        s->rounded + other * s->pairs);
    double square = rounded_square(s, l->row, other, product);
    if (!is_beyond(s, l, other, square)) all[count++] = (candidate){square, other};
  }
  qsort(all, (size_t)count, sizeof *all, by_square);
  for (int64_t c = 0; c < count; c++)
    if (!is_beyond(s, l, all[c].row, all[c].square)) compare(s, w, l, all[c].row);
  w->compared += w->n_waiting;
  w->n_waiting = 0;
}

/* How many neighbours the row has now that it had not when it was taken up. */
static int64_t count_changes(const worker *w, const list *l)
{
  int64_t changes = 0;
  for (int64_t m = 0; m < l->width; m++) {
    uint32_t other = mt_nn_row(l->entries[m]);
    changes += other != MT_NN_NONE && w->seen[other] == w->stamp + 1;
  }
  return changes;
}

/* ---- the trees ----------------------------------------------------------------------------- */

typedef struct placed {
  uint32_t side, place, row;
} placed;

static int by_side(const void *a, const void *b)
{
  const placed *p = a, *q = b;
  if (p->side != q->side) return p->side < q->side ? -1 : 1;
  return (p->place > q->place) - (p->place < q->place);
}

/* Of place p of a tree. Places that follow each other mostly share their split. */
static uint32_t side_at(const descent *s, worker *w, int64_t tree, int64_t level,
                        int64_t p)
{
  const uint32_t *order = s->order + tree * s->n;
  int64_t segment = mt_nn_segment_of(s->n, level, p), a, b, x = order[p];
  int64_t first = mt_nn_segment_first(s->n, level, segment);
  int64_t end = mt_nn_segment_first(s->n, level, segment + 1);
  if (w->split[0] != tree || w->split[1] != level || w->split[2] != segment) {
    mt_nn_pivots(tree, level, segment, end - first, &a, &b);
    a = order[first + a];
    b = order[first + b];
    between(s->metric, s->d, s->matrix + a * s->d, s->scale[a], s->matrix + b * s->d,
            s->scale[b], w->z);
    w->split[0] = tree;
    w->split[1] = level;
    w->split[2] = segment;
  }
  return mt_nn_side_key(
      side_of(s->metric, s->d, s->matrix + x * s->d, s->scale[x], w->z));
}

/* Splits every segment of a level. Every rank computes its part of the sides. */
static mt_status split(descent *s, int64_t level, uint32_t *sides, placed *places)
{
  int64_t all = s->plan.trees * s->n, segments = (int64_t)1 << level;
  int64_t first = mt_part_first(all, s->comm->size, s->comm->rank);
  int64_t end = first + mt_part_count(all, s->comm->size, s->comm->rank);
#pragma omp parallel for num_threads(s->n_threads) schedule(dynamic, 64)
  for (int64_t p = first; p < end; p++)
    sides[p] = side_at(s, s->workers + omp_get_thread_num(), p / s->n, level, p % s->n);
  mt_status status = mt_allgather_rows(s->comm, all, sizeof *sides, sides);
  if (status != MT_OK) return status;
  for (int64_t p = 0; p < all; p++)
    places[p] = (placed){sides[p], (uint32_t)(p % s->n), s->order[p]};
#pragma omp parallel for num_threads(s->n_threads) schedule(dynamic)
  for (int64_t i = 0; i < s->plan.trees * segments; i++) {
    int64_t from = mt_nn_segment_first(s->n, level, i % segments);
    int64_t to = mt_nn_segment_first(s->n, level, i % segments + 1);
    qsort(places + i / segments * s->n + from, (size_t)(to - from), sizeof *places,
          by_side);
  }
  for (int64_t p = 0; p < all; p++) s->order[p] = places[p].row;
  return MT_OK;
}

static mt_status grow_trees(descent *s)
{
  mt_status status = MT_OK;
  int64_t all = s->plan.trees * s->n, visited = 0;
  uint32_t *sides = NULL;
  placed *places = NULL;
  status = mt_memory_new(all, sizeof *sides, "sides", (void **)&sides);
  if (status == MT_OK)
    status = mt_memory_new(all, sizeof *places, "places", (void **)&places);
  MT_TRY(mt_agree(s->comm, status));
  for (int64_t p = 0; p < all; p++) s->order[p] = (uint32_t)(p % s->n);
  for (int64_t level = 0; level < s->plan.levels; level++) {
    MT_TRY(mt_agree(s->comm, mt_stop_requested() ? MT_STOPPED : MT_OK));
    MT_TRY(split(s, level, sides, places));
  }
  for (int64_t p = 0; p < all; p++) {
    int64_t i = (int64_t)s->order[p] - s->first;
    if (i < 0 || i >= s->local) continue;
    s->place[p / s->n * s->local + i] = (uint32_t)(p % s->n);
    if (p < s->n) s->visit[visited++] = i;
  }
done:
  free(sides);
  free(places);
  return status;
}

/* ---- links --------------------------------------------------------------------------------- */

/* For each of this rank's rows, who has it as a neighbour. */
static mt_status turn_round(descent *s)
{
  int64_t width = s->plan.width, entries = s->n * width, total = 0;
  int64_t *next = s->indptr + 1; /* where a row's next one goes; in the end, its end */
  memset(s->indptr, 0, (size_t)(s->local + 1) * sizeof *s->indptr);
  for (int64_t e = 0; e < entries; e++) {
    int64_t i = (int64_t)mt_nn_row(s->graph[e]) - s->first;
    if (i >= 0 && i < s->local) next[i]++;
  }
  for (int64_t i = 0; i < s->local; i++) {
    int64_t many = next[i];
    next[i] = total;
    total += many;
  }
  mt_status status = mt_memory_grow(total, sizeof *s->incoming, "edges",
                                    &s->incoming_room, (void **)&s->incoming);
  if (status != MT_OK) return status;
  for (int64_t e = 0; e < entries; e++) {
    int64_t i = (int64_t)mt_nn_row(s->graph[e]) - s->first;
    if (i < 0 || i >= s->local) continue;
    s->incoming[next[i]++] = (uint32_t)(e / width) | (s->graph[e] & MT_NN_NEW);
  }
  return MT_OK;
}

static mt_status link_rows(descent *s, int64_t round)
{
  const mt_nn_plan *plan = &s->plan;
  mt_status status = mt_agree(s->comm, turn_round(s));
  if (status != MT_OK) return status;
#pragma omp parallel for num_threads(s->n_threads) schedule(dynamic, 64)
  for (int64_t i = 0; i < s->local; i++) {
    int64_t row = s->first + i, n_incoming = s->indptr[i + 1] - s->indptr[i];
    const uint32_t *incoming = s->incoming + s->indptr[i];
    uint32_t *entries = s->graph + row * plan->width;
    uint32_t *links = s->links + row * 2 * plan->links;
    mt_nn_choose(plan, round, row, 0, entries, n_incoming, incoming,
                 links + plan->links);
    mt_nn_choose(plan, round, row, MT_NN_NEW, entries, n_incoming, incoming, links);
  }
  return mt_allgather_rows(s->comm, s->n, 2 * (size_t)plan->links * sizeof *s->links,
                           s->links);
}

/* ---- rounds -------------------------------------------------------------------------------- */

/* The row in hand with the links of its links, as mt_nn_link_at has them. */
static void search_links(const descent *s, worker *w, const list *l)
{
  int64_t links = s->plan.links, both = 2 * links;
  const uint32_t *own = s->links + l->row * both;
  for (int64_t via = 0; via < both; via++) {
    if (own[via] == MT_NN_NONE) continue;
    const uint32_t *theirs = s->links + own[via] * both;
    for (int64_t m = 0; m < (via < links ? both : links); m++)
      if (theirs[m] != MT_NN_NONE) meet(w, theirs[m]);
  }
}

/* With the rows in its leaves. */
static void search_leaves(const descent *s, worker *w, const list *l)
{
  int64_t n = s->n, levels = s->plan.levels;
  for (int64_t tree = 0; tree < s->plan.trees; tree++) {
    uint32_t place = s->place[tree * s->local + l->row - s->first];
    int64_t leaf = mt_nn_segment_of(n, levels, place);
    int64_t end = mt_nn_segment_first(n, levels, leaf + 1);
    for (int64_t p = mt_nn_segment_first(n, levels, leaf); p < end; p++)
      meet(w, s->order[tree * n + p]);
  }
}

/* Searches for all own rows; *changes_out, over all ranks, new neighbours. */
static mt_status search_all(descent *s,
                            void (*search)(const descent *, worker *, const list *),
                            int64_t *changes_out)
{
  int64_t changes = 0;
  if (mt_stop_agreed(s->comm)) return MT_STOPPED;
#pragma omp parallel for num_threads(s->n_threads) schedule(dynamic, 16) \
    reduction(+ : changes)
  for (int64_t v = 0; v < s->local; v++) {
    worker *w = s->workers + omp_get_thread_num();
    const list l = list_of(s, s->visit[v]);
    take_up(s, w, &l);
    search(s, w, &l);
    compare_waiting(s, w, &l);
    changes += count_changes(w, &l);
  }
  mt_status status = mt_sum_i64(s->comm, 1, &changes);
  *changes_out = changes;
  if (status != MT_OK) return status;
  return mt_allgather_rows(s->comm, s->n, (size_t)s->plan.width * sizeof *s->graph,
                           s->graph);
}

static mt_status descend(descent *s, int64_t *rounds_out)
{
  mt_status status = MT_OK;
  int64_t changes;
  for (int64_t e = 0; e < s->n * s->plan.width; e++) s->graph[e] = MT_NN_NONE;
  for (int64_t e = 0; e < s->local * s->plan.width; e++) s->distance[e] = INFINITY;
  MT_TRY(search_all(s, search_leaves, &changes));
  for (int64_t round = 0; round < s->plan.rounds && changes > s->plan.enough; round++) {
    MT_TRY(link_rows(s, round));
    MT_TRY(search_all(s, search_links, &changes));
    *rounds_out = round + 1;
    mt_progress_update(round + 1);
  }
done:
  return status;
}

/* ---- recall --------------------------------------------------------------------------------- */

enum { TOGETHER = MT_PRODUCT_GROUP }; /* rows whose recall is measured at a time */

/* The sampled rows [from, to) that this rank has, and their neighbours so far. */
static int64_t take_samples(const descent *s, int64_t from, int64_t to, list *lists_out)
{
  int64_t count = 0, all = mt_nn_sample_size(s->n);
  for (int64_t j = from; j < to; j++) {
    int64_t i = mt_nn_sampled_row(s->n, all, j) - s->first;
    if (i < 0 || i >= s->local) continue;
    const list found = list_of(s, i);
    list *exact = lists_out + count++;
    exact->row = found.row;
    memcpy(exact->distances, found.distances, (size_t)s->k * sizeof *found.distances);
    memcpy(exact->entries, found.entries, (size_t)s->k * sizeof *found.entries);
  }
  return count;
}

static bool has(const list *l, uint32_t other)
{
  for (int64_t m = 0; m < l->width; m++)
    if (mt_nn_row(l->entries[m]) == other) return true;
  return l->row == other;
}

/* How many of their k neighbours are as near as their exact k-th. Comparing the lists that
 * there are with all rows makes them exact.
 * group   (pairs, TOGETHER) for the lists' rows as rounded */
static int64_t count_hits(const descent *s, worker *w, int64_t count, const list *lists,
                          mt_product_pair *group)
{
  int64_t hits = 0;
  int32_t products[MT_PRODUCT_ROWS * TOGETHER];
  for (int64_t p = 0; p < s->pairs; p++)
    for (int64_t j = 0; j < count; j++)
      group[p * TOGETHER + j] = s->rounded[lists[j].row * s->pairs + p];
  for (int64_t other = 0; other < s->n; other++) {
    int64_t row = other % MT_PRODUCT_ROWS;
    if (row == 0)
      s->kernel->of_group(s->pairs, s->rounded + other * s->pairs, group, products);
    for (int64_t j = 0; j < count; j++) {
      const list *l = lists + j;
      double square = rounded_square(s, l->row, other, products[row * TOGETHER + j]);
      if (!is_beyond(s, l, other, square) && !has(l, (uint32_t)other))
        compare(s, w, l, (uint32_t)other);
    }
  }
  for (int64_t j = 0; j < count; j++) {
    const list found = list_of(s, lists[j].row - s->first);
    double exact = lists[j].distances[s->k - 1];
    for (int64_t m = 0; m < s->k && found.distances[m] <= exact; m++) hits++;
  }
  return hits;
}

static mt_status measure_recall(descent *s, mt_knn_quality *quality)
{
  mt_status status = MT_OK;
  int64_t count = mt_nn_sample_size(s->n), hits = 0, room = s->n_threads * TOGETHER;
  double *distances = NULL;
  uint32_t *entries = NULL;
  list *lists = NULL;
  mt_product_pair *groups = NULL;
  status = mt_memory_new(room * s->pairs, sizeof *groups, "groups", (void **)&groups);
  if (status == MT_OK)
    status =
        mt_memory_new(room * s->k, sizeof *distances, "distances", (void **)&distances);
  if (status == MT_OK)
    status = mt_memory_new(room * s->k, sizeof *entries, "entries", (void **)&entries);
  if (status == MT_OK)
    status = mt_memory_new(room, sizeof *lists, "lists", (void **)&lists);
  MT_TRY(mt_agree(s->comm, status));
  for (int64_t i = 0; i < room; i++)
    lists[i] = (list){0, s->k, distances + i * s->k, entries + i * s->k};
#pragma omp parallel for num_threads(s->n_threads) schedule(dynamic) reduction(+ : hits)
  for (int64_t j = 0; j < count; j += TOGETHER) {
    int64_t thread = omp_get_thread_num(),
            to = j + TOGETHER < count ? j + TOGETHER : count;
    list *mine = lists + thread * TOGETHER;
    int64_t many = take_samples(s, j, to, mine);
    hits += count_hits(s, s->workers + thread, many, mine,
                       groups + thread * TOGETHER * s->pairs);
  }
  MT_TRY(mt_sum_i64(s->comm, 1, &hits));
  quality->sampled = count;
  quality->recall = (double)hits / (double)(count * s->k);
done:
  free(distances);
  free(entries);
  free(lists);
  free(groups);
  return status;
}

/* ---- the matrix ------------------------------------------------------------------------------ */

static void round_matrix(descent *s)
{
#pragma omp parallel for num_threads(s->n_threads) schedule(static)
  for (int64_t i = 0; i < s->n; i++) {
    worker *w = s->workers + omp_get_thread_num();
    mt_product_pair *out = s->rounded + i * s->pairs;
    transform(s, w, i);
    mt_product_round(s->d, w->z, w->integers, s->facts + i);
    for (int64_t p = 0; p < s->pairs; p++)
      out[p] = (uint32_t)(uint16_t)w->integers[2 * p] | (uint32_t)w->integers[2 * p + 1]
                                                            << 16;
  }
}

/* Reads this rank's rows, checks them, and gathers all. */
static mt_status gather_matrix(descent *s)
{
  mt_status status = MT_OK;
  float *own = s->matrix + s->first * s->d;
  int64_t bad = -1, column = 0, first_bad;
  MT_TRY(mt_agree(
      s->comm, s->local > 0 ? s->rows->read(s->rows, s->first, s->local, own) : MT_OK));
  mt_knn_check(s->metric, s->first, s->local, s->d, own, &bad, &column);
  first_bad = bad < 0 ? s->n : bad;
  MT_TRY(mt_min_i64(s->comm, 1, &first_bad));
  if (first_bad < s->n && first_bad == bad)
    status =
        mt_knn_refuse(s->metric, bad, column, own[(bad - s->first) * s->d + column]);
  MT_TRY(mt_agree(s->comm, status));
#pragma omp parallel for num_threads(s->n_threads) schedule(static)
  for (int64_t i = 0; i < s->local; i++)
    s->scale[s->first + i] = mt_metric_scale(s->metric, s->d, own + i * s->d);
  MT_TRY(mt_allgather_rows(s->comm, s->n, sizeof *s->scale, s->scale));
  MT_TRY(mt_allgather_rows(s->comm, s->n, (size_t)s->d * sizeof *s->matrix, s->matrix));
  round_matrix(s);
done:
  return status;
}

/* ---- memory ----------------------------------------------------------------------------------- */

/* The whole matrix, on every rank: does it fit on this node? */
static mt_status require_memory(const mt_comm *comm, const mt_rows *rows)
{
  mt_comm node;
  mt_status status = mt_comm_node(comm, &node);
  if (status != MT_OK) return status;
  double bytes = (double)rows->n * (double)rows->d * 6.0;
  double needed = bytes * node.size, there = (double)mt_memory_available();
  if (needed > there && node.rank == 0)
    status =
        mt_fail(MT_ERR_MEMORY,
                "nn_descent needs the whole matrix (%lld x %lld x 6 bytes = %.1f GB) "
                "in the memory of each rank: %.1f GB for the %d on this node, where "
                "%.1f GB are free; use fewer ranks with more threads, or "
                "knn.build_algo=\"brute_force\"",
                (long long)rows->n, (long long)rows->d, bytes / 1e9, needed / 1e9,
                node.size, there / 1e9);
  mt_comm_free(&node);
  return mt_agree(comm, status);
}

static mt_status new_memory(descent *s)
{
  mt_status status = MT_OK;
  const mt_nn_plan *plan = &s->plan;
  int64_t leaves = mt_nn_leaf_slots(plan), links = mt_nn_link_slots(plan);
  MT_NEW(s->workers, s->n_threads);
  for (int t = 0; t < s->n_threads; t++) {
    MT_NEW(s->workers[t].z, s->d);
    MT_NEW(s->workers[t].integers, 2 * s->pairs);
    s->workers[t].of_z = s->workers[t].split[0] = -1;
    MT_NEW(s->workers[t].seen, s->n);
    MT_NEW(s->workers[t].waiting, leaves > links ? leaves : links);
  }
  MT_NEW(s->matrix, s->n * s->d);
  MT_NEW(s->scale, s->n);
  MT_NEW(s->rounded, (s->n + MT_PRODUCT_ROWS) * s->pairs);
  MT_NEW(s->facts, s->n);
  MT_NEW(s->order, plan->trees * s->n);
  MT_NEW(s->place, plan->trees * s->local);
  MT_NEW(s->visit, s->local);
  MT_NEW(s->graph, s->n * plan->width);
  MT_NEW(s->distance, s->local * plan->width);
  MT_NEW(s->links, s->n * 2 * plan->links);
  MT_NEW(s->indptr, s->local + 1);
done:
  return status;
}

static void free_memory(descent *s)
{
  for (int t = 0; s->workers != NULL && t < s->n_threads; t++) {
    free(s->workers[t].z);
    free(s->workers[t].integers);
    free(s->workers[t].waiting);
    free(s->workers[t].seen);
  }
  free(s->workers);
  free(s->matrix);
  free(s->scale);
  free(s->rounded);
  free(s->facts);
  free(s->order);
  free(s->place);
  free(s->visit);
  free(s->graph);
  free(s->distance);
  free(s->links);
  free(s->indptr);
  free(s->incoming);
}

/* ---- all of it ----------------------------------------------------------------------------------- */

static int64_t compared(const descent *s)
{
  int64_t sum = 0;
  for (int t = 0; t < s->n_threads; t++) sum += s->workers[t].compared;
  return sum;
}

mt_status mt_cpu_knn_planned(const mt_comm *comm, mt_metric metric, int64_t k,
                             const mt_rows *rows, const mt_nn_plan *plan,
                             int64_t *indices_out, float *distances_out,
                             mt_knn_quality *quality_out)
{
  mt_status status = MT_OK;
  descent s = {
      .comm = comm,
      .rows = rows,
      .metric = metric,
      .plan = *plan,
      .n = rows->n,
      .d = rows->d,
      .k = k,
      .first = mt_part_first(rows->n, comm->size, comm->rank),
      .local = mt_part_count(rows->n, comm->size, comm->rank),
      .n_threads = omp_get_max_threads(),
      .kernel = mt_product_kernel_find(NULL),
      .pairs = MT_PRODUCT_GROUP * mt_product_groups(mt_product_pairs(rows->d)),
  };
  *quality_out = (mt_knn_quality){.recall = 0.0};
  MT_TRY(require_memory(comm, rows));
  MT_TRY(mt_agree(comm, new_memory(&s)));
  MT_TRY(gather_matrix(&s));
  mt_progress_begin(comm->rank, "knn", plan->rounds);
  MT_TRY(grow_trees(&s));
  for (int t = 0; t < s.n_threads; t++) s.workers[t].of_z = -1; /* z was of splits */
  MT_TRY(descend(&s, &quality_out->rounds));
  quality_out->compared = compared(&s);
  MT_TRY(mt_sum_i64(comm, 1, &quality_out->compared));
  MT_TRY(measure_recall(&s, quality_out));
  for (int64_t i = 0; i < s.local; i++)
    for (int64_t m = 0; m < k; m++) {
      const list l = list_of(&s, i);
      indices_out[i * k + m] = mt_nn_row(l.entries[m]);
      distances_out[i * k + m] = mt_metric_store(l.distances[m]);
    }
done:
  mt_progress_end();
  free_memory(&s);
  return status;
}

mt_status mt_cpu_knn_approximate(mt_backend *be, const mt_comm *comm, mt_metric metric,
                                 int64_t k, const mt_rows *rows, int64_t *indices_out,
                                 float *distances_out, mt_knn_quality *quality_out)
{
  (void)be;
  mt_nn_plan plan;
  mt_status status = mt_nn_plan_make(rows->n, k, &plan);
  if (status != MT_OK) return status;
  return mt_cpu_knn_planned(comm, metric, k, rows, &plan, indices_out, distances_out,
                            quality_out);
}
