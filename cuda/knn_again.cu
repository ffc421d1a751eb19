/* Rows whose first candidates did not show that they are enough. The k-th distance that they
 * found bounds what is missing: all candidates within it are listed, from products of rounded
 * rows, then from products in double, and measured. Where even those are too many (thousands
 * of rows that differ in the last places only) all distances are computed. */
#include "knn_parts.h"
#include "primitives.h"

static int64_t least(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

/* Equal distances go to the lower number: at 0 nothing else can win. */
mt_status mt_knn_new_seekers(mt_knn_search *s, int64_t count, const uint32_t *pick,
                             mt_knn_seekers *out)
{
  out->count = count;
  out->pick = pick;
  MT_PASS(mt_knn_new_lists(s, count, s->sizes.again, &out->lists));
  MT_PASS(out->numbers.make(s->gpu, count, "rows to search again"));
  MT_PASS(out->last.make(s->gpu, count, "last numbers"));
  uint32_t *numbers = out->numbers.data, *last = out->last.data;
  const double *kth = s->kth.data;
  const int64_t *indices = s->indices;
  int64_t first = s->first, k = s->k;
  return mt_gpu_each(s->gpu, count, [=] __device__(int64_t q) {
    int64_t row = pick[q];
    numbers[q] = (uint32_t)(first + row);
    last[q] = kth[row] == 0.0 ? (uint32_t)indices[row * k + k - 1] : UINT32_MAX;
  });
}

static mt_knn_side seeking(const mt_knn_seekers *q)
{
  mt_knn_side side = {};
  side.numbers = q->numbers.data;
  side.rows = q->count;
  side.keys = q->lists.keys.data;
  side.count = q->lists.count.data;
  side.limit = q->lists.limit.data;
  side.last = q->last.data;
  return side;
}

static mt_knn_side standing(int64_t first, int64_t rows)
{
  mt_knn_side side = {};
  side.first = first;
  side.rows = rows;
  return side;
}

mt_status mt_knn_measure_seekers(mt_knn_search *s, const mt_knn_seekers *q,
                                 uint32_t *left_over, int64_t *left_out)
{
  mt_knn_pairs pairs;
  mt_array<uint8_t> flags;
  mt_array<uint32_t> places;
  int64_t left = 0, again = s->sizes.again;
  mt_status status = mt_knn_list_pairs(s, q->count, q->pick, &q->lists, again, &pairs);
  if (status == MT_OK) status = flags.make(s->gpu, q->count, "flags");
  if (status == MT_OK) status = places.make(s->gpu, q->count, "rows left over");
  MT_PASS(mt_agree(s->comm, status));
  MT_PASS(mt_knn_measure(s, &pairs));
  MT_PASS(mt_agree(s->comm, mt_knn_finish(s, q->count, q->pick, &pairs, again)));
  const uint32_t *count = q->lists.count.data, *pick = q->pick;
  uint8_t *flag = flags.data;
  MT_PASS(mt_gpu_each(s->gpu, q->count, [=] __device__(int64_t i) {
    flag[i] = (int64_t)count[i] > again;
  }));
  if (q->count > 0)
    MT_PASS(mt_gpu_select(s->gpu, q->count, flags.data, places.data, &left));
  const uint32_t *place = places.data;
  uint32_t *to = left_over + *left_out;
  *left_out += left;
  return mt_gpu_each(s->gpu, left,
                     [=] __device__(int64_t i) { to[i] = pick[place[i]]; });
}

/* ---- with rounded rows ---------------------------------------------------------------------- */

mt_status mt_knn_settle_levels(mt_knn_search *s, mt_knn_bound bound, const float *half,
                               const float *reach, const float *error,
                               mt_knn_seekers *q)
{
  const uint32_t *pick = q->pick;
  const double *kth = s->kth.data;
  bound.gamma = mt_knn_gamma(s->padded, s->sizes.fine);
  MT_PASS(q->level.make(s->gpu, q->count, "levels"));
  float *level = q->level.data;
  return mt_gpu_each(s->gpu, q->count, [=] __device__(int64_t i) {
    double length = mt_knn_length(&bound, kth[pick[i]]);
    mt_knn_within w = mt_knn_near(&bound, length, reach[i], error[i], half[i]);
    double sum = length + error[i] + w.error, most = 0.5 * sum * sum + w.blur;
    bool known = bound.ratio < 0.5 && most < 1e30;
    level[i] = known ? (float)(most * (1.0 + 0x1p-20)) : INFINITY;
  });
}

mt_status mt_knn_seek(mt_knn_search *s, const mt_knn_seekers *q, const uint16_t *near,
                      const float *half, int64_t count, const uint16_t *others,
                      const float *others_half, const uint32_t *numbers, int64_t first)
{
  for (int64_t j = 0; q->count > 0 && j < count; j += s->sizes.tile) {
    mt_knn_side columns = {};
    columns.first = first + j;
    columns.numbers = numbers == nullptr ? nullptr : numbers + j;
    columns.rows = least(s->sizes.tile, count - j);
    MT_PASS(mt_knn_multiply(s, q->count, near, columns.rows, others + j * s->padded,
                            s->sizes.fine));
    MT_PASS(mt_knn_filter<float>(s, s->product.data, s->sizes.tile, seeking(q), columns,
                                 half, others_half + j, q->level.data, s->sizes.again));
  }
  return MT_OK;
}

/* The seekers' rounded rows. */
typedef struct rounded {
  mt_array<uint16_t> near; /* (count, padded) */
  mt_array<float> half, reach, error;
} rounded;

static mt_status gather(mt_knn_search *s, mt_knn_seekers *q, rounded *out)
{
  mt_array<float> hold;
  mt_array<double> scale;
  const float *raw;
  MT_PASS(out->near.make(s->gpu, q->count * s->padded, "rows to search again"));
  MT_PASS(out->half.make(s->gpu, q->count, "norms"));
  MT_PASS(out->reach.make(s->gpu, q->count, "norms"));
  MT_PASS(out->error.make(s->gpu, q->count, "rounding errors"));
  MT_PASS(scale.make(s->gpu, q->count, "scales"));
  MT_PASS(mt_knn_gather(s, q->count, q->pick, &hold, &raw));
  const double *scales = s->scale.data;
  const uint32_t *numbers = q->numbers.data;
  double *picked = scale.data;
  MT_PASS(mt_gpu_each(s->gpu, q->count,
                      [=] __device__(int64_t i) { picked[i] = scales[numbers[i]]; }));
  mt_knn_rounded to = {out->near.data, out->half.data, out->reach.data,
                       out->error.data};
  MT_PASS(mt_knn_round_about(s, s->centre.data, s->bound.zoom, q->count, nullptr, raw,
                             picked, to));
  return mt_knn_settle_levels(s, s->bound, to.half, to.reach, to.error, q);
}

static mt_status repeat_rounded(mt_knn_search *s, int64_t count, const uint32_t *pick,
                                uint32_t *left_over, int64_t *left_out)
{
  mt_knn_seekers q;
  rounded r;
  mt_status status = mt_knn_new_seekers(s, count, pick, &q);
  if (status == MT_OK) status = gather(s, &q, &r);
  MT_PASS(mt_agree(s->comm, status));
  const mt_knn_seekers *seek = &q;
  const rounded *rows = &r;
  MT_PASS(mt_knn_visit_near(s, [=](const uint16_t *near, int64_t first, int64_t many) {
    return mt_knn_seek(s, seek, rows->near.data, rows->half.data, many, near,
                       s->half.data + first, nullptr, first);
  }));
  return mt_knn_measure_seekers(s, &q, left_over, left_out);
}

/* ---- in double ------------------------------------------------------------------------------- */

typedef struct expanded {
  int64_t tile;                                    /* of columns */
  mt_array<double> rows, half, reach, level;       /* of the seekers */
  mt_array<double> block, block_half, block_reach; /* (tile, d), (tile), (tile) */
  mt_array<double> product;                        /* (seekers, tile) */
} expanded;

static mt_knn_bound bound_in_double(const mt_knn_search *s)
{
  mt_knn_bound bound = s->bound;
  bound.gamma = ((double)s->d + 16.0) * 0x1p-52;
  bound.rounding = 0x1p-50;
  bound.ratio = 0x1p-51;
  bound.least = 0.0;
  return bound;
}

static mt_status new_expanded(mt_knn_search *s, const mt_knn_seekers *q, expanded *out)
{
  mt_array<float> hold;
  const float *raw;
  out->tile = (least(s->sizes.tile, 2048) + 3) / 4 * 4;
  MT_PASS(out->rows.make(s->gpu, q->count * s->d, "rows in double"));
  MT_PASS(out->half.make(s->gpu, q->count, "norms"));
  MT_PASS(out->reach.make(s->gpu, q->count, "norms"));
  MT_PASS(out->level.make(s->gpu, q->count, "levels"));
  MT_PASS(out->block.make(s->gpu, out->tile * s->d, "a block in double"));
  MT_PASS(out->block_half.make(s->gpu, out->tile, "norms"));
  MT_PASS(out->block_reach.make(s->gpu, out->tile, "norms"));
  MT_PASS(out->product.make_zeroed(s->gpu, q->count * out->tile, "products in double"));
  MT_PASS(mt_knn_gather(s, q->count, q->pick, &hold, &raw));
  MT_PASS(mt_knn_expand(s, q->count, raw, q->numbers.data, 0, out->rows.data,
                        out->half.data, out->reach.data));
  mt_knn_bound bound = bound_in_double(s);
  const uint32_t *pick = q->pick;
  const double *kth = s->kth.data, *half = out->half.data, *reach = out->reach.data;
  double *level = out->level.data;
  return mt_gpu_each(s->gpu, q->count, [=] __device__(int64_t i) {
    double length = mt_knn_length(&bound, kth[pick[i]]), error = 0x1p-51 * reach[i];
    mt_knn_within w = mt_knn_near(&bound, length, reach[i], error, half[i]);
    double sum = length + error + w.error;
    level[i] = (0.5 * sum * sum + w.blur) * (1.0 + 1e-12);
  });
}

static mt_status seek_expanded(mt_knn_search *s, const mt_knn_seekers *q,
                               const expanded *e, const float *raw, int64_t first,
                               int64_t count)
{
  const double one = 1.0, zero = 0.0;
  int d = (int)s->d, stride = d > 0 ? d : 1;
  for (int64_t j = 0; q->count > 0 && j < count; j += e->tile) {
    int64_t many = least(e->tile, count - j);
    MT_PASS(mt_knn_expand(s, many, raw + j * s->d, nullptr, first + j, e->block.data,
                          e->block_half.data, e->block_reach.data));
    MT_CUBLAS(cublasDgemm(s->gpu->blas, CUBLAS_OP_T, CUBLAS_OP_N, (int)many,
                          (int)q->count, d, &one, e->block.data, stride, e->rows.data,
                          stride, &zero, e->product.data, (int)e->tile));
    MT_PASS(mt_knn_filter<double>(s, e->product.data, e->tile, seeking(q),
                                  standing(first + j, many), e->half.data,
                                  e->block_half.data, e->level.data, s->sizes.again));
  }
  return MT_OK;
}

static mt_status repeat_expanded(mt_knn_search *s, int64_t count, const uint32_t *pick,
                                 uint32_t *left_over, int64_t *left_out)
{
  mt_knn_seekers q;
  expanded e;
  mt_status status = mt_knn_new_seekers(s, count, pick, &q);
  if (status == MT_OK) status = new_expanded(s, &q, &e);
  MT_PASS(mt_agree(s->comm, status));
  const mt_knn_seekers *seek = &q;
  const expanded *rows = &e;
  MT_PASS(mt_knn_visit_raw(s, [=](const float *raw, int64_t first, int64_t many) {
    return seek_expanded(s, seek, rows, raw, first, many);
  }));
  return mt_knn_measure_seekers(s, &q, left_over, left_out);
}

/* ---- one after the other ------------------------------------------------------------------------ */

typedef mt_status repeat(mt_knn_search *s, int64_t count, const uint32_t *pick,
                         uint32_t *left_over, int64_t *left_out);

/* Rows in pieces that fit; every GPU does as many pieces. */
static mt_status in_pieces(mt_knn_search *s, repeat *search, int64_t piece,
                           int64_t count, const uint32_t *pick, uint32_t *left_over,
                           int64_t *left_out)
{
  int64_t most = count;
  *left_out = 0;
  MT_PASS(mt_max_i64(s->comm, 1, &most));
  for (int64_t at = 0; at < most; at += piece) {
    int64_t many = at >= count ? 0 : least(piece, count - at);
    if (mt_stop_agreed(s->comm)) return MT_STOPPED;
    MT_PASS(search(s, many, pick + (at < count ? at : 0), left_over, left_out));
  }
  return MT_OK;
}

static mt_status repeat_brute(mt_knn_search *s, int64_t count, const uint32_t *pick,
                              uint32_t *left_over, int64_t *left_out)
{
  (void)left_over;
  (void)left_out;
  return mt_knn_brute(s, count, pick);
}

mt_status mt_knn_repeat(mt_knn_search *s)
{
  mt_array<uint32_t> all, first, second, third;
  int64_t count = 0, first_count = 0, second_count = 0, third_count = 0, none;
  mt_status status = mt_knn_unproven(s, &all, &count);
  if (status == MT_OK) status = first.make(s->gpu, count, "rows left over");
  if (status == MT_OK) status = second.make(s->gpu, count, "rows left over");
  if (status == MT_OK) status = third.make(s->gpu, count, "rows left over");
  MT_PASS(mt_agree(s->comm, status));
  int64_t tile = s->sizes.tile, brute = ((int64_t)1 << 28) / (12 * s->n) + 1;
  MT_PASS(mt_knn_repeat_groups(s, count, all.data, first.data, &first_count));
  MT_PASS(in_pieces(s, repeat_rounded, least(tile, 4096), first_count, first.data,
                    second.data, &second_count));
  MT_PASS(in_pieces(s, repeat_expanded, least(tile, 1024), second_count, second.data,
                    third.data, &third_count));
  s->cost.again += count;
  s->cost.ungrouped += first_count;
  s->cost.with_double += second_count;
  return in_pieces(s, repeat_brute, brute, third_count, third.data, nullptr, &none);
}
