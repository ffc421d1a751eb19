/* Rows that are searched again often lie in groups: thousands that are alike and far from the
 * common centre, so that rounding blurs all that tells them apart. Take one of them as pivot.
 * With its exact distances to all rows, the triangle inequality says which rows can matter to
 * those near it; rounded about the pivot, half precision is relative to the differences. */
#include "knn_parts.h"
#include "primitives.h"

enum { LANES = MT_METRIC_LANES, THREADS = 256, MOST_IN_VAIN = 3 };

/* What all GPUs know of the pivot. */
typedef struct pivot {
  mt_array<float> row;     /* (d) */
  mt_array<double> centre; /* (d) transformed */
  double scale;
  double length; /* that its k-th distance stands for, not zoomed */
} pivot;

/* One round on this GPU. */
typedef struct group {
  pivot p;
  mt_array<double> away; /* (local) Euclidean distance of the transformed rows to it */
  mt_array<uint32_t> rows;  /* searched again now: numbers within the local rows */
  mt_array<uint32_t> stand; /* rows of this GPU that can matter to any of them */
  int64_t row_count, stand_count;
  int64_t all_rows, all_stand; /* over all GPUs */
} group;

static int64_t least(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

/* The row and its k-th distance go to all GPUs. number: over all rows. */
static mt_status share_pivot(mt_knn_search *s, int64_t number, pivot *p)
{
  const mt_comm *comm = s->comm;
  int owner = mt_part_owner(s->n, comm->size, number);
  int64_t at = number - s->first;
  double facts[2] = {0.0, 0.0}; /* scale, k-th distance */
  float *row = NULL;
  mt_status status = mt_memory_new(s->d, sizeof *row, "pivot", (void **)&row);
  if (status == MT_OK) status = p->row.make(s->gpu, s->d, "pivot");
  if (status == MT_OK) status = p->centre.make(s->gpu, s->d, "pivot");
  if (status == MT_OK && comm->rank == owner)
    status = mt_to_host(s->gpu, s->d, s->raw + at * s->d, row);
  if (status == MT_OK && comm->rank == owner)
    status = mt_to_host(s->gpu, 1, s->scale.data + number, &facts[0]);
  if (status == MT_OK && comm->rank == owner)
    status = mt_to_host(s->gpu, 1, s->kth.data + at, &facts[1]);
  status = mt_agree(comm, status);
  if (status == MT_OK) status = mt_bcast(comm, owner, sizeof facts, facts);
  if (status == MT_OK) status = mt_bcast(comm, owner, (size_t)s->d * sizeof *row, row);
  if (status == MT_OK) status = mt_to_device(s->gpu, s->d, row, p->row.data);
  if (status == MT_OK) status = mt_gpu_wait(s->gpu);
  free(row);
  MT_PASS(mt_agree(comm, status));
  mt_metric metric = s->bound.metric;
  p->scale = facts[0];
  p->length = mt_metric_length(metric, facts[1]);
  double scale = p->scale, *centre = p->centre.data;
  const float *raw = p->row.data;
  return mt_gpu_each(s->gpu, s->d, [=] __device__(int64_t t) {
    centre[t] = mt_metric_coordinate(metric, scale, raw[t]);
  });
}

/* LANES threads for each row. */
static __global__ void away_kernel(mt_metric metric, int64_t count, int64_t d,
                                   const double *centre, const float *raw,
                                   const double *scale, double *away)
{
  int64_t row = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / LANES;
  double sum = 0.0;
  if (row < count) {
    const float *x = raw + row * d;
    double own = scale[row];
#pragma unroll 8
    for (int64_t t = (int64_t)threadIdx.x % LANES; t < d; t += LANES) {
      double off = mt_metric_coordinate(metric, own, x[t]) - centre[t];
      sum += off * off;
    }
  }
  for (int apart = LANES / 2; apart > 0; apart /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, apart, LANES);
  if (row < count && threadIdx.x % LANES == 0) away[row] = sqrt(sum);
}

static mt_status measure_away(mt_knn_search *s, group *g)
{
  unsigned blocks = (unsigned)((s->local * LANES + THREADS - 1) / THREADS);
  if (s->local == 0) return MT_OK;
  return MT_LAUNCH(s->gpu, away_kernel, blocks, THREADS, 0, s->bound.metric, s->local,
                   s->d, g->p.centre.data, s->raw, s->scale.data + s->first,
                   g->away.data);
}

/* The rows still to do that lie near the pivot; wide_out: beyond which distance from the
 * pivot, not zoomed, no row matters to any of them. */
static mt_status pick_rows(mt_knn_search *s, const uint8_t *to_do, group *g,
                           double *wide_out)
{
  mt_array<uint8_t> flags;
  mt_array<double> wide;
  MT_PASS(flags.make(s->gpu, s->local, "flags"));
  MT_PASS(wide.make(s->gpu, s->local, "lengths"));
  mt_metric metric = s->bound.metric;
  const double *away = g->away.data, *kth = s->kth.data;
  double near = 1.5 * g->p.length * (1.0 + 1e-9), *out = wide.data;
  uint8_t *flag = flags.data;
  MT_PASS(mt_gpu_each(s->gpu, s->local, [=] __device__(int64_t i) {
    flag[i] = to_do[i] && away[i] <= near;
    out[i] = flag[i] ? away[i] + mt_metric_length(metric, kth[i]) : 0.0;
  }));
  g->row_count = 0;
  *wide_out = 0.0;
  if (s->local == 0) return MT_OK;
  MT_PASS(mt_gpu_max(s->gpu, s->local, out, wide_out));
  return mt_gpu_select(s->gpu, s->local, flags.data, g->rows.data, &g->row_count);
}

static mt_status pick_standing(mt_knn_search *s, double wide, group *g)
{
  mt_array<uint8_t> flags;
  MT_PASS(flags.make(s->gpu, s->local, "flags"));
  const double *away = g->away.data;
  uint8_t *flag = flags.data;
  MT_PASS(mt_gpu_each(s->gpu, s->local,
                      [=] __device__(int64_t i) { flag[i] = away[i] <= wide; }));
  g->stand_count = 0;
  if (s->local == 0) return MT_OK;
  return mt_gpu_select(s->gpu, s->local, flags.data, g->stand.data, &g->stand_count);
}

/* ---- a group's rows, rounded about the pivot -------------------------------------------------- */

typedef struct rounded {
  mt_array<uint16_t> near;
  mt_array<float> half, reach, error;
} rounded;

static mt_status new_rounded(mt_knn_search *s, int64_t count, rounded *out)
{
  MT_PASS(out->near.make(s->gpu, count * s->padded, "a group's rows"));
  MT_PASS(out->half.make(s->gpu, count, "a group's norms"));
  MT_PASS(out->reach.make(s->gpu, count, "a group's norms"));
  return out->error.make(s->gpu, count, "a group's rounding errors");
}

static mt_status round_some(mt_knn_search *s, const group *g, double zoom,
                            int64_t count, const uint32_t *pick, int64_t at,
                            rounded *out)
{
  mt_knn_rounded to = {out->near.data + at * s->padded, out->half.data + at,
                       out->reach.data + at, out->error.data + at};
  return mt_knn_round_about(s, g->p.centre.data, zoom, count, pick, s->raw,
                            s->scale.data + s->first, to);
}

/* Blocks of `each` bytes a row of the group, from all GPUs. */
static mt_status gather_rows(mt_knn_search *s, const int64_t *first, int64_t each,
                             void *rows)
{
  mt_status status = MT_OK;
  int64_t *bytes = NULL;
  int size = s->comm->size;
  MT_TRY(mt_agree(s->comm,
                  mt_memory_new(size + 1, sizeof *bytes, "sizes", (void **)&bytes)));
  for (int r = 0; r <= size; r++) bytes[r] = first[r] * each;
  MT_TRY(mt_gpu_allgather_blocks(s->gpu, s->comm, bytes, rows));
done:
  free(bytes);
  return status;
}

/* All rows that matter, on every GPU. first: where each GPU's begin, (size + 1). */
static mt_status round_standing(mt_knn_search *s, const group *g, double zoom,
                                const int64_t *first, rounded *out,
                                mt_array<uint32_t> *numbers)
{
  int64_t at = first[s->comm->rank], own = s->first;
  mt_status status = new_rounded(s, g->all_stand, out);
  if (status == MT_OK)
    status = numbers->make(s->gpu, g->all_stand, "a group's numbers");
  if (status == MT_OK)
    status = round_some(s, g, zoom, g->stand_count, g->stand.data, at, out);
  MT_PASS(mt_agree(s->comm, status));
  uint32_t *number = numbers->data + at;
  const uint32_t *stand = g->stand.data;
  MT_PASS(mt_gpu_each(s->gpu, g->stand_count, [=] __device__(int64_t i) {
    number[i] = (uint32_t)(own + stand[i]);
  }));
  if (s->comm->size == 1) return MT_OK;
  MT_PASS(gather_rows(s, first, s->padded * 2, out->near.data));
  MT_PASS(gather_rows(s, first, sizeof(float), out->half.data));
  MT_PASS(gather_rows(s, first, sizeof(float), out->reach.data));
  MT_PASS(gather_rows(s, first, sizeof(float), out->error.data));
  return gather_rows(s, first, sizeof(uint32_t), numbers->data);
}

/* Some of the group's rows against all that matter to it. */
static mt_status search_some(mt_knn_search *s, const group *g, mt_knn_bound bound,
                             int64_t count, const uint32_t *pick, const rounded *all,
                             const uint32_t *numbers, uint32_t *left_over,
                             int64_t *left_out)
{
  mt_knn_seekers q;
  rounded r;
  mt_status status = mt_knn_new_seekers(s, count, pick, &q);
  if (status == MT_OK) status = new_rounded(s, count, &r);
  if (status == MT_OK) status = round_some(s, g, bound.zoom, count, pick, 0, &r);
  if (status == MT_OK)
    status =
        mt_knn_settle_levels(s, bound, r.half.data, r.reach.data, r.error.data, &q);
  if (status == MT_OK)
    status = mt_knn_seek(s, &q, r.near.data, r.half.data, g->all_stand, all->near.data,
                         all->half.data, numbers, 0);
  MT_PASS(mt_agree(s->comm, status));
  return mt_knn_measure_seekers(s, &q, left_over, left_out);
}

/* Searches for the neighbours of the group's rows. wide: see pick_rows. */
static mt_status search_group(mt_knn_search *s, const group *g, double wide,
                              const int64_t *first, uint32_t *left_over,
                              int64_t *left_out)
{
  rounded all;
  mt_array<uint32_t> numbers;
  mt_knn_bound bound = s->bound;
  int exponent = 0;
  int64_t most = g->row_count, some = least(s->sizes.tile, 4096);
  frexp(wide, &exponent); /* coordinates are below 2^exponent */
  bound.zoom = wide > 0.0 ? ldexp(1.0, 15 - exponent) : 1.0;
  MT_PASS(round_standing(s, g, bound.zoom, first, &all, &numbers));
  MT_PASS(mt_agree(s->comm, mt_knn_settle_ratio(s, g->all_stand, all.reach.data,
                                                all.error.data, &bound)));
  MT_PASS(mt_max_i64(s->comm, 1, &most));
  for (int64_t at = 0; at < most; at += some) {
    int64_t many = at >= g->row_count ? 0 : least(some, g->row_count - at);
    const uint32_t *pick = g->rows.data + (many > 0 ? at : 0);
    MT_PASS(
        search_some(s, g, bound, many, pick, &all, numbers.data, left_over, left_out));
  }
  return MT_OK;
}

/* ---- rounds ---------------------------------------------------------------------------------------- */

/* Which rows are to do still: flags of the local rows. */
static mt_status set_flags(mt_knn_search *s, int64_t count, const uint32_t *rows,
                           uint8_t value, uint8_t *to_do)
{
  return mt_gpu_each(s->gpu, count,
                     [=] __device__(int64_t i) { to_do[rows[i]] = value; });
}

/* The first row that is to do, over all GPUs; n: none. host: room for the local flags. */
static mt_status next_pivot(mt_knn_search *s, const uint8_t *to_do, uint8_t *host,
                            int64_t *next)
{
  mt_status status = mt_to_host(s->gpu, s->local, to_do, host);
  MT_PASS(mt_agree(s->comm, status));
  const void *at = s->local > 0 ? memchr(host, 1, (size_t)s->local) : nullptr;
  *next = at == nullptr ? s->n : s->first + ((const uint8_t *)at - host);
  return mt_min_i64(s->comm, 1, next);
}

/* Around a pivot. good_out: was the group worth it? Then its rows are done. */
static mt_status search_around(mt_knn_search *s, int64_t number, const uint8_t *to_do,
                               group *g, int64_t *first, bool *good_out,
                               uint32_t *left_over, int64_t *left_out)
{
  const mt_comm *comm = s->comm;
  double wide = 0.0;
  MT_PASS(share_pivot(s, number, &g->p));
  mt_status status = measure_away(s, g);
  if (status == MT_OK) status = pick_rows(s, to_do, g, &wide);
  MT_PASS(mt_agree(comm, status));
  MT_PASS(mt_max_f64(comm, 1, &wide));
  wide *= 1.0 + 1e-9;
  MT_PASS(mt_agree(comm, pick_standing(s, wide, g)));
  int64_t sums[2] = {g->row_count, g->stand_count};
  MT_PASS(mt_sum_i64(comm, 2, sums));
  g->all_rows = sums[0];
  g->all_stand = sums[1];
  MT_PASS(mt_allgather(comm, sizeof *first, &g->stand_count, first + 1));
  first[0] = 0;
  for (int r = 0; r < comm->size; r++) first[r + 1] += first[r];
  int64_t visits = least(comm->size - 1, 2) * s->widest * s->d * (int64_t)sizeof(float);
  int64_t fits = (s->gpu->memory - s->gpu->used - visits) / 3 / (s->padded * 2 + 16);
  MT_PASS(mt_min_i64(comm, 1, &fits));
  *good_out = g->all_rows >= s->sizes.group && g->all_stand <= fits &&
              g->all_stand <= (s->n + 1) / 2;
  if (!*good_out) return MT_OK;
  return search_group(s, g, wide, first, left_over, left_out);
}

static mt_status search_rounds(mt_knn_search *s, group *g, uint8_t *to_do,
                               uint8_t *host, int64_t *first, uint32_t *left_over,
                               int64_t *left_out)
{
  int64_t number = 0;
  for (int in_vain = 0; in_vain < MOST_IN_VAIN;) {
    bool good = false;
    MT_PASS(next_pivot(s, to_do, host, &number));
    if (number == s->n) return MT_OK;
    if (mt_stop_agreed(s->comm)) return MT_STOPPED;
    MT_PASS(search_around(s, number, to_do, g, first, &good, left_over, left_out));
    in_vain = good ? 0 : in_vain + 1;
    if (!good) { /* they may be few: let others have a try, and leave these */
      mt_knn_search *search = s;
      const uint32_t *rows = g->rows.data;
      uint32_t *to = left_over + *left_out;
      MT_PASS(mt_gpu_each(search->gpu, g->row_count,
                          [=] __device__(int64_t i) { to[i] = rows[i]; }));
      *left_out += g->row_count;
    }
    MT_PASS(set_flags(s, g->row_count, g->rows.data, 0, to_do));
  }
  return MT_OK;
}

/* Rows that are to do still are left over, too. */
static mt_status leave_rest(mt_knn_search *s, const uint8_t *to_do, group *g,
                            uint32_t *left_over, int64_t *left_out)
{
  int64_t rest = 0;
  uint32_t *to = left_over + *left_out;
  if (s->local > 0)
    MT_PASS(mt_gpu_select(s->gpu, s->local, to_do, g->rows.data, &rest));
  *left_out += rest;
  return mt_on_device(s->gpu, rest, g->rows.data, to);
}

mt_status mt_knn_repeat_groups(mt_knn_search *s, int64_t count, const uint32_t *pick,
                               uint32_t *left_over, int64_t *left_out)
{
  mt_status status = MT_OK;
  mt_array<uint8_t> to_do;
  group g;
  uint8_t *host = NULL;
  int64_t *first = NULL, all = count;
  *left_out = 0;
  MT_PASS(mt_sum_i64(s->comm, 1, &all));
  status = to_do.make_zeroed(s->gpu, s->local, "flags");
  if (status == MT_OK) status = g.away.make(s->gpu, s->local, "distances to the pivot");
  if (status == MT_OK) status = g.rows.make(s->gpu, s->local, "a group's rows");
  if (status == MT_OK) status = g.stand.make(s->gpu, s->local, "a group's rows");
  if (status == MT_OK) status = set_flags(s, count, pick, 1, to_do.data);
  if (status == MT_OK) status = mt_memory_new(s->local, 1, "flags", (void **)&host);
  if (status == MT_OK)
    status = mt_memory_new(s->comm->size + 1, sizeof *first, "sizes", (void **)&first);
  status = mt_agree(s->comm, status);
  if (status == MT_OK && s->resident && all >= s->sizes.group)
    status = search_rounds(s, &g, to_do.data, host, first, left_over, left_out);
  if (status == MT_OK) status = leave_rest(s, to_do.data, &g, left_over, left_out);
  free(host);
  free(first);
  return mt_agree(s->comm, status);
}
