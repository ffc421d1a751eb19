/* What the files of the GPU's nearest neighbours share (knn.h).
 *
 * The bound. Let z be a row as knn/metric.h transforms it, c a centre common to all rows and
 * y = half(zoom (z - c)), zoom a power of two. Known of each row: r a little above |y|, and e
 * a little above |y - zoom (z - c)|, both summed in double. With p the computed product
 * y_i.y_j, the computed g = |y_i|^2/2 + |y_j|^2/2 - p is off by at most
 *     A_ij = gamma r_i r_j + 2^-21 (|y_i|^2/2 + |y_j|^2/2),
 * so that the zoomed length D_ij = zoom |z_i - z_j| lies within
 *     sqrt(2 (g - A)) - e_i - e_j <= D_ij <= sqrt(2 (g + A)) + e_i + e_j.
 * gamma: tensor cores multiply halves exactly and add them in groups of 16 (or 8) to a float,
 * cutting each term below 2^-24 of the largest one (Fasi, Higham, Mikaitis, Pranesh 2021, and
 * later measurements of Hopper: 2^-25). We allow 10 units of 2^-23 for every 16 columns: what
 * groups of 8 come to at worst (half a unit a term and one a sum), twice what Hopper's do, and
 * more than any order of float additions can be off by. Products over many columns are added
 * up panel by panel to keep it small.
 *
 * A row's list holds the `keep` best candidates seen, by (g, number); `limit` is the worst of
 * them, so that all pairs left out have g >= limit. Beyond which r_j no row can be within Q of
 * row i: D_ij >= r_j - e_j - r_i - e_i, and e_j <= ratio r_j + least for all rows. */
#ifndef MT_CUDA_KNN_PARTS_H
#define MT_CUDA_KNN_PARTS_H
#include "exchange.h"
#include "knn.h"

extern "C" {
#include "knn/knn.h"
}

/* ---- the bound --------------------------------------------------------------------------- */

typedef struct mt_knn_bound {
  mt_metric metric;
  double zoom, gamma;
  double rounding;     /* of the sum of norms: 2^-21 for float */
  double ratio, least; /* e_j <= ratio r_j + least */
} mt_knn_bound;

/* A_ij. */
MT_BOTH double mt_knn_blur(const mt_knn_bound *b, double reach_i, double reach_j,
                           double half_i, double half_j)
{
  return b->gamma * reach_i * reach_j + b->rounding * (half_i + half_j);
}

/* The zoomed length that a distance stands for, a little more. */
MT_BOTH double mt_knn_length(const mt_knn_bound *b, double distance)
{
  return b->zoom * mt_metric_length(b->metric, distance) * (1.0 + 1e-9);
}

/* What every row within `length` of row i has at most: its reach, its error; and A. */
typedef struct mt_knn_within {
  double reach, error, blur;
} mt_knn_within;
MT_BOTH mt_knn_within mt_knn_near(const mt_knn_bound *b, double length, double reach,
                                  double error, double half)
{
  mt_knn_within w;
  double most = (length + reach + error + b->least) / (1.0 - b->ratio);
  w.reach = most * (1.0 + 4e-6); /* reaches are up to 2^-20 + 2^-24 too large */
  w.error = b->ratio * w.reach + b->least;
  w.blur = mt_knn_blur(b, reach, w.reach, half, 0.5 * w.reach * w.reach);
  return w;
}

/* ---- lists of candidates -------------------------------------------------------------------- */

/* A candidate: g so that keys sort as numbers, then the row's number. */
static __device__ __forceinline__ uint64_t mt_knn_key(float g, uint32_t number)
{
  uint32_t bits = __float_as_uint(g);
  bits ^= (bits >> 31) != 0 ? 0xffffffffu : 0x80000000u;
  return (uint64_t)bits << 32 | number;
}
static __device__ __forceinline__ float mt_knn_key_value(uint64_t key)
{
  uint32_t bits = (uint32_t)(key >> 32);
  bits ^= (bits >> 31) != 0 ? 0x80000000u : 0xffffffffu;
  return __uint_as_float(bits);
}

#define MT_KNN_OPEN \
  UINT64_MAX /* the limit of a row that has not yet seen `keep` others */

typedef struct mt_knn_lists {
  mt_array<uint64_t> keys;  /* (rows, room) */
  mt_array<uint32_t> count; /* (rows) candidates; above room: more than fit */
  mt_array<uint64_t> limit; /* (rows) only keys below it are good */
  mt_array<float> level;    /* (rows) g of the limit; -infinity while it is open */
} mt_knn_lists;

/* One side of a block of products: its rows, and the lists of those it looks for. */
typedef struct mt_knn_side {
  int64_t first;           /* number of its first row, */
  const uint32_t *numbers; /* or the numbers of all */
  int64_t rows;
  const float *half;
  uint64_t *keys; /* NULL: not looked for */
  uint32_t *count;
  uint64_t *limit;
  float *level;
  const uint32_t *last; /* NULL, or the largest number that may be listed, by row */
} mt_knn_side;

/* ---- the search --------------------------------------------------------------------------- */

enum {
  MT_KNN_LOOK,
  MT_KNN_ROUND,
  MT_KNN_SELECT,
  MT_KNN_MEASURE,
  MT_KNN_REPEAT,
  MT_KNN_PHASES
};

typedef struct mt_knn_search {
  mt_gpu *gpu;
  const mt_comm *comm;
  int64_t k, n, d, padded; /* columns of a rounded row: a multiple of 64 */
  int64_t first, local, widest;
  mt_gpu_knn_sizes sizes;
  mt_knn_bound bound;
  const float *raw; /* (local, d) this GPU's rows; NULL: they come through feed */
  struct mt_knn_feed *feed;
  bool resident;                 /* raw is there, on all GPUs */
  bool whole;                    /* near holds all local rows at once */
  mt_array<double> centre;       /* (d) */
  mt_array<double> scale;        /* of all n rows: mt_metric_scale, */
  mt_array<float> half;          /* |y|^2/2, */
  mt_array<float> reach;         /* r, */
  mt_array<float> error;         /* e */
  mt_array<uint16_t> near;       /* (local, padded) y as bits of half precision */
  mt_array<uint16_t> near_block; /* (block of the feed, padded), if rows are streamed */
  mt_array<float> product;       /* (tile, tile) */
  mt_knn_lists own;              /* of the local rows */
  mt_array<double> kth;          /* (local) the k-th distance found */
  int64_t *indices;              /* (local, k) on the device */
  float *distances;              /* (local, k) */
  int64_t done; /* rows of all GPUs that are through, for the display */
  mt_gpu_knn_cost cost;
} mt_knn_search;

/* ---- knn_feed.cu: rows that are read while the GPU works --------------------------------------- */

typedef struct mt_knn_feed {
  mt_gpu *gpu = nullptr;
  const mt_rows *rows = nullptr;
  int64_t block = 0; /* rows read at a time */
  int64_t bytes = 0; /* read so far */
  int turn = 0;
  float *host[2] = {nullptr, nullptr}; /* (block, d) pinned */
  mt_array<float> there[2];            /* (block, d) on the device, if asked for */
  cudaStream_t stream;                 /* of the copies */
  cudaEvent_t copied[2], freed[2];
  int made = 0; /* how many of these there are */
  ~mt_knn_feed();
} mt_knn_feed;

/* feed: empty. What will be written to is allocated before. */
mt_status mt_knn_feed_open(mt_gpu *gpu, const mt_rows *rows, int64_t block,
                           bool buffers, mt_knn_feed *feed);
/* Rows [first, first + count), at most block, to the device, beside the stream's work; the
 * stream then waits for them. */
mt_status mt_knn_feed_copy(mt_knn_feed *feed, int64_t first, int64_t count, float *to);
/* The stream's work so far is all that needs the buffer of the last copy. */
mt_status mt_knn_feed_free(mt_knn_feed *feed);
/* Rows [first, first + count) to the device, where they stay. Not collective. */
mt_status mt_knn_upload(mt_gpu *gpu, const mt_rows *rows, int64_t first, int64_t count,
                        float *to);
/* Any rows to the device, when the feed is the source. */
mt_status mt_knn_read(mt_knn_search *s, int64_t first, int64_t count, float *to);
/* Rows of this GPU (numbers within the local ones) in hand: raw_out and pick_out stand for
 * them; hold keeps what had to be read. */
mt_status mt_knn_gather(mt_knn_search *s, int64_t count, const uint32_t *pick,
                        mt_array<float> *hold, const float **raw_out);

/* Memory that is left when as much as possible is filled with rows. */
static inline int64_t mt_knn_reserve(const mt_gpu *gpu)
{
  int64_t share = gpu->memory / 16, most = (int64_t)1 << 26;
  return share < most ? share : most;
}

/* each(rows, first, count) for blocks of rows [first, first + count). */
template <class F>
static mt_status mt_knn_feed_each(mt_knn_feed *feed, int64_t first, int64_t count,
                                  F each)
{
  for (int64_t at = 0; at < count; at += feed->block) {
    int64_t many = count - at < feed->block ? count - at : feed->block;
    float *to = feed->there[feed->turn % 2].data;
    MT_PASS(mt_knn_feed_copy(feed, first + at, many, to));
    MT_PASS(each((const float *)to, first + at, many));
    MT_PASS(mt_knn_feed_free(feed));
  }
  return MT_OK;
}

/* each(rows, first, count) for this GPU's rows. Not collective. */
template <class F> static mt_status mt_knn_own_raw(mt_knn_search *s, F each)
{
  if (s->raw != nullptr) return each(s->raw, s->first, s->local);
  return mt_knn_feed_each(s->feed, s->first, s->local, each);
}

/* ---- knn_rows.cu ---------------------------------------------------------------------------- */

/* Settles centre and a likely zoom. Collective: errors are agreed on. */
mt_status mt_knn_look(mt_knn_search *s);
/* Checks the rows; settles zoom, fills near if it is whole, and scale, half, reach, error of
 * all rows. Collective. */
mt_status mt_knn_round(mt_knn_search *s);
/* Rounded rows: y (rows, padded), |y|^2/2, r, e. */
typedef struct mt_knn_rounded {
  uint16_t *near;
  float *half, *reach, *error;
} mt_knn_rounded;
/* Rows of raw (all, or those that pick names) rounded about a centre (d) of their own. */
mt_status mt_knn_round_about(mt_knn_search *s, const double *centre, double zoom,
                             int64_t count, const uint32_t *pick, const float *raw,
                             const double *scale, mt_knn_rounded out);
/* ratio and least: so that e <= ratio r + least for the rows. */
mt_status mt_knn_settle_ratio(mt_knn_search *s, int64_t count, const float *reach,
                              const float *error, mt_knn_bound *bound);
/* Rows [first, first + count) of all once more, to near (count, padded). */
mt_status mt_knn_round_rows(mt_knn_search *s, int64_t first, int64_t count,
                            const float *raw, uint16_t *near);
/* raw (count, d) as zoom (z - c) in double to out (count, d), with halved squares and norms.
 * numbers: the rows' over all rows, or NULL: from first on. */
mt_status mt_knn_expand(mt_knn_search *s, int64_t count, const float *raw,
                        const uint32_t *numbers, int64_t first, double *out,
                        double *half_out, double *reach_out);

/* ---- knn_select.cu -------------------------------------------------------------------------- */

mt_status mt_knn_new_lists(mt_knn_search *s, int64_t rows, int64_t room,
                           mt_knn_lists *lists);
/* Fills own. Collective. */
mt_status mt_knn_select(mt_knn_search *s);
/* Products of two blocks of rounded rows, rows x columns to s->product. */
mt_status mt_knn_multiply(mt_knn_search *s, int64_t rows, const uint16_t *a,
                          int64_t columns, const uint16_t *b, int64_t panel);
double mt_knn_gamma(int64_t padded, int64_t panel);
/* Lists what is below the rows' levels; room: of the lists. T: float or double, as g. */
template <class T>
mt_status mt_knn_filter(mt_knn_search *s, const T *product, int64_t stride,
                        mt_knn_side rows, mt_knn_side columns, const T *row_half,
                        const T *column_half, const T *row_level, int64_t room);

/* ---- knn_measure.cu -------------------------------------------------------------------------- */

/* Pairs whose distances are to be computed, by row. */
typedef struct mt_knn_pairs {
  int64_t rows, count;
  mt_array<uint32_t> row;    /* (count) number within the local rows */
  mt_array<uint32_t> column; /* (count) number over all rows */
  mt_array<double> distance; /* (count) */
  mt_array<int64_t> first;   /* (rows + 1) where each row's pairs begin */
} mt_knn_pairs;

/* The candidates in own that could be among the k nearest. */
mt_status mt_knn_plan_pairs(mt_knn_search *s, mt_knn_pairs *out);
/* All candidates of the lists of some rows (numbers within the local ones). */
mt_status mt_knn_list_pairs(mt_knn_search *s, int64_t rows, const uint32_t *pick,
                            const mt_knn_lists *lists, int64_t room, mt_knn_pairs *out);
/* Computes the distances. Collective. */
mt_status mt_knn_measure(mt_knn_search *s, mt_knn_pairs *pairs);
/* The k best of each row's pairs to indices, distances and kth. pick: as above, or NULL for
 * all; longest: pairs that a row has at most; short rows (fewer than k) are left alone. */
mt_status mt_knn_finish(mt_knn_search *s, int64_t rows, const uint32_t *pick,
                        const mt_knn_pairs *pairs, int64_t longest);
/* Under cosine: the neighbours of rows without length. */
mt_status mt_knn_zero_rows(mt_knn_search *s);
/* Rows that have not shown that their neighbours are the nearest; their number. */
mt_status mt_knn_unproven(mt_knn_search *s, mt_array<uint32_t> *rows_out,
                          int64_t *count_out);
/* All distances of some rows, sorted. Collective. */
mt_status mt_knn_brute(mt_knn_search *s, int64_t rows, const uint32_t *pick);

/* ---- knn_again.cu --------------------------------------------------------------------------- */

/* Searches the unproven rows again. Collective. */
mt_status mt_knn_repeat(mt_knn_search *s);

/* Rows that are searched again, some at a time. */
typedef struct mt_knn_seekers {
  int64_t count;
  const uint32_t *pick;       /* (count) numbers within the local rows */
  mt_array<uint32_t> numbers; /* (count) over all rows */
  mt_array<uint32_t> last;    /* (count) largest number that may win */
  mt_array<float> level;      /* (count) what they look for lies below it */
  mt_knn_lists lists;
} mt_knn_seekers;

mt_status mt_knn_new_seekers(mt_knn_search *s, int64_t count, const uint32_t *pick,
                             mt_knn_seekers *out);
/* Their levels: half, reach, error (count) as they were rounded, under that bound. */
mt_status mt_knn_settle_levels(mt_knn_search *s, mt_knn_bound bound, const float *half,
                               const float *reach, const float *error,
                               mt_knn_seekers *q);
/* Lists what seekers (near, half: (count, padded), (count)) find among rounded rows, which
 * numbers names, or which are first and following. */
mt_status mt_knn_seek(mt_knn_search *s, const mt_knn_seekers *q, const uint16_t *near,
                      const float *half, int64_t count, const uint16_t *others,
                      const float *others_half, const uint32_t *numbers, int64_t first);
/* Measures what was listed; rows that found more than fits are added to left_over, and
 * *left_out counts these. Collective. */
mt_status mt_knn_measure_seekers(mt_knn_search *s, const mt_knn_seekers *q,
                                 uint32_t *left_over, int64_t *left_out);

/* ---- knn_group.cu --------------------------------------------------------------------------- */

/* Of count rows to search again, those that lie in groups of near-identical ones; the rest
 * goes to left_over, *left_out of them. Collective. */
mt_status mt_knn_repeat_groups(mt_knn_search *s, int64_t count, const uint32_t *pick,
                               uint32_t *left_over, int64_t *left_out);

/* ---- visits: every GPU's rows, one GPU after the other ---------------------------------------- */

/* each(rows, first, count) for the rows of each GPU in turn, its own first, while the next are
 * on their way. own: (local, width) of T on the device. Collective; errors are agreed on. */
template <class T, class F>
static mt_status mt_knn_visit(mt_knn_search *s, const T *own, int64_t width, F each)
{
  const mt_comm *comm = s->comm;
  mt_array<T> there[2];
  mt_status status = MT_OK;
  int64_t row_bytes = width * (int64_t)sizeof(T);
  for (int b = 0; b < 2 && b + 1 < comm->size && status == MT_OK; b++)
    status = there[b].make(s->gpu, s->widest * width, "rows of other GPUs");
  MT_PASS(mt_agree(comm, status));
  for (int step = 0; step < comm->size; step++) {
    int whose = (comm->rank + comm->size - step) % comm->size;
    int next = (whose + comm->size - 1) % comm->size;
    if (step + 1 < comm->size)
      MT_PASS(mt_gpu_shift_begin(s->gpu, comm, step + 1, s->local * row_bytes, own,
                                 mt_part_count(s->n, comm->size, next) * row_bytes,
                                 there[step % 2].data));
    status = each(step == 0 ? own : there[(step + 1) % 2].data,
                  mt_part_first(s->n, comm->size, whose),
                  mt_part_count(s->n, comm->size, whose));
    if (step + 1 < comm->size) MT_PASS(mt_gpu_shift_end(s->gpu, comm));
    MT_PASS(mt_agree(comm, status));
  }
  return MT_OK;
}

/* Likewise for all rows as given, wherever they are. */
template <class F> static mt_status mt_knn_visit_raw(mt_knn_search *s, F each)
{
  if (s->raw != nullptr) return mt_knn_visit(s, s->raw, s->d, each);
  return mt_agree(s->comm, mt_knn_feed_each(s->feed, 0, s->n, each));
}

/* Rounds a block of the feed and has it visited. */
template <class F> static mt_status mt_knn_visit_rounded(mt_knn_search *s, F each)
{
  int64_t block = s->feed->block;
  if (s->near_block.data == nullptr)
    MT_PASS(s->near_block.make(s->gpu, block * s->padded, "a block of rounded rows"));
  uint16_t *near = s->near_block.data;
  return mt_knn_feed_each(s->feed, 0, s->n,
                          [=](const float *raw, int64_t first, int64_t count) {
                            MT_PASS(mt_knn_round_rows(s, first, count, raw, near));
                            return each((const uint16_t *)near, first, count);
                          });
}

/* Likewise for all rows rounded. */
template <class F> static mt_status mt_knn_visit_near(mt_knn_search *s, F each)
{
  if (s->whole) return mt_knn_visit(s, (const uint16_t *)s->near.data, s->padded, each);
  return mt_agree(s->comm, mt_knn_visit_rounded(s, each));
}

#endif
