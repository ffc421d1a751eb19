/* Rows and points with a known structure, made from a counter: any process, any GPU, can make
 * any of them, and gcc and nvcc give the same bits (base/both.h).
 *
 * Topic vectors   like the components of many LDA fits over one vocabulary. Terms have Zipf-like
 *   weights: each planted topic has its own order of them, over an order that all share (the
 *   background). Row i belongs to period i / period_rows and to one planted topic, early ones
 *   more often. Its period changes the topic's weights, its seed changes them again, each term
 *   by a factor of its own: (1 + x) / (1 - x), x uniform in +- drift and +- noise. Twins are rows
 *   whose seeds found nearly the same topic; odd rows belong to no planted topic.
 * Points   in d dimensions, as an embedding scatters them: bent clusters of very different
 *   sizes and densities, some of them over one another, and points anywhere between. */
#ifndef MT_BENCH_PLANTED_H
#define MT_BENCH_PLANTED_H
#include "base/random.h"

#include <stdbool.h>

/* ---- topic vectors ------------------------------------------------------------------- */

typedef struct mt_planted {
  uint32_t seed;
  int64_t n_terms;     /* columns, 1 .. 2^20 */
  int64_t n_topics;    /* planted, >= 1 */
  int64_t period_rows; /* >= 1 */
  float background; /* share of a row's mass that all topics have in common, [0, 1] */
  float drift;      /* of a topic from period to period, [0, 1) */
  float noise;      /* of a row: between a quarter of it and all, [0, 1) */
  float twins;      /* share of the rows that are twins, [0, 1] */
  float twin_noise; /* of a twin: up to this, one in two below an eighth of it */
  float odd;        /* share of the rows that are odd; twins + odd <= 1 */
} mt_planted;

/* 200 topics, 25 rows for each in a period, of which 5 are twins to 1e-3 or better. */
static inline mt_planted mt_planted_default(int64_t n_terms)
{
  mt_planted p = {.seed = 1,
                  .n_terms = n_terms,
                  .n_topics = 200,
                  .period_rows = 5000,
                  .background = 0.4f,
                  .drift = 0.4f,
                  .noise = 0.3f,
                  .twins = 0.2f,
                  .twin_noise = 1e-3f,
                  .odd = 0.01f};
  return p;
}

/* What a row is. */
typedef struct mt_planted_row {
  int64_t index, period;
  int64_t topic; /* below n_topics; an odd row's is n_topics + its index */
  float noise;
} mt_planted_row;

/* What a number is for: the counter's step. */
enum {
  MT_PLANTED_ROW,
  MT_PLANTED_TOPIC, /* 0: the background; topic + 1 */
  MT_PLANTED_DRIFT,
  MT_PLANTED_NOISE,
  MT_PLANTED_CLUSTER,
  MT_PLANTED_POINT
};

/* Uniform in [0, 1), and in [-1, 1): 24 bits, exact in float32. */
MT_BOTH float mt_planted_unit(uint32_t word)
{
  return (float)(word >> 8) * 0x1p-24f;
}

MT_BOTH float mt_planted_signed(uint32_t word)
{
  return 2.0f * mt_planted_unit(word) - 1.0f;
}

MT_BOTH mt_planted_row mt_planted_describe(const mt_planted *p, int64_t i)
{
  uint32_t w[4];
  mt_random_words(p->seed, MT_STREAM_TEST, (uint64_t)i, MT_PLANTED_ROW, 0, w);
  double popular = mt_random_unit_of(w[0], w[1]);
  float kind = mt_planted_unit(w[2]), u = mt_planted_unit(w[3]);
  mt_planted_row row;
  row.index = i;
  row.period = i / p->period_rows;
  row.topic = (int64_t)(popular * popular * (double)p->n_topics);
  row.noise = p->noise * (0.25f + 0.75f * u);
  if (kind < p->odd)
    row.topic = p->n_topics + i;
  else if (kind < p->odd + p->twins)
    row.noise = p->twin_noise * (u * u * u);
  return row;
}

/* Words for terms 4 four .. 4 four + 3 of the topic, or row, of that number. */
MT_BOTH void mt_planted_words(const mt_planted *p, int step, int64_t number,
                              int64_t four, uint32_t out[4])
{
  int64_t fours = (p->n_terms + 3) / 4;
  mt_random_words(p->seed, MT_STREAM_TEST, (uint64_t)(number * fours + four),
                  (uint32_t)step, 0, out);
}

MT_BOTH float mt_planted_change(float strength, uint32_t word)
{
  float x = strength * mt_planted_signed(word);
  return (1.0f + x) / (1.0f - x);
}

/* Weights of terms 4 four .. 4 four + 3 before the row is divided by their sum; those from
 * n_terms on mean nothing. Above 0 and below 32. */
MT_BOTH void mt_planted_weights(const mt_planted *p, const mt_planted_row *row,
                                int64_t four, float out[4])
{
  uint32_t common[4], own[4], drift[4], noise[4];
  float terms = (float)p->n_terms;
  mt_planted_words(p, MT_PLANTED_TOPIC, 0, four, common);
  mt_planted_words(p, MT_PLANTED_TOPIC, row->topic + 1, four, own);
  mt_planted_words(p, MT_PLANTED_DRIFT, row->period * p->n_topics + row->topic, four,
                   drift);
  mt_planted_words(p, MT_PLANTED_NOISE, row->index, four, noise);
  for (int j = 0; j < 4; j++) {
    /* a term's place in an order of all terms, by chance; its weight is Zipf's */
    float shared = p->background / (1.0f + terms * mt_planted_unit(common[j]));
    float topic = (1.0f - p->background) / (1.0f + terms * mt_planted_unit(own[j]));
    out[j] = (shared + topic * mt_planted_change(p->drift, drift[j])) *
             mt_planted_change(row->noise, noise[j]);
  }
}

/* A weight in fixed point: their sum is the same in any order. */
MT_BOTH uint64_t mt_planted_fixed(float weight)
{
  return (uint64_t)((double)weight * 0x1p38);
}

MT_BOTH float mt_planted_share(float weight, uint64_t sum)
{
  return (float)((double)weight * (0x1p38 / (double)sum));
}

/* Row i, whole: out (n_terms), above 0, sum 1 to float32's rounding. */
MT_BOTH void mt_planted_fill(const mt_planted *p, int64_t i, float *out)
{
  mt_planted_row row = mt_planted_describe(p, i);
  uint64_t sum = 0;
  for (int64_t t = 0; t < p->n_terms; t += 4) {
    float w[4];
    mt_planted_weights(p, &row, t / 4, w);
    for (int64_t j = 0; j < 4 && t + j < p->n_terms; j++) {
      out[t + j] = w[j];
      sum += mt_planted_fixed(w[j]);
    }
  }
  for (int64_t t = 0; t < p->n_terms; t++) out[t] = mt_planted_share(out[t], sum);
}

/* ---- points -------------------------------------------------------------------------- */

enum { MT_PLANTED_MOST_DIMENSIONS = 16 };

typedef struct mt_scatter {
  uint32_t seed;
  int64_t n_dimensions; /* 1 .. MT_PLANTED_MOST_DIMENSIONS */
  int64_t n_clusters;   /* >= 1 */
  float side;           /* centres lie in a cube [0, side) */
  float narrow, wide;   /* a cluster's standard deviation, most of them near narrow */
  float anywhere;       /* share of the points that belong to none, [0, 1] */
} mt_scatter;

/* About sqrt(n) clusters of sqrt(n) points: in the mean, for the first are the largest. */
static inline mt_scatter mt_scatter_default(int64_t n, int64_t n_dimensions)
{
  mt_scatter s = {.seed = 1,
                  .n_dimensions = n_dimensions,
                  .n_clusters = 4,
                  .side = 0.0f,
                  .narrow = 0.02f,
                  .wide = 1.5f,
                  .anywhere = 0.05f};
  while (s.n_clusters * s.n_clusters < n) s.n_clusters++;
  int64_t cells = 1, volume; /* a cell of side 2 for each cluster */
  do {
    cells++;
    volume = 1;
    for (int64_t t = 0; t < n_dimensions; t++) volume *= cells;
  } while (volume < s.n_clusters);
  s.side = 2.0f * (float)cells;
  return s;
}

/* Four words for axis t of the thing with that number. */
MT_BOTH void mt_scatter_words(const mt_scatter *s, int step, int64_t number, int64_t t,
                              uint32_t out[4])
{
  uint64_t index = (uint64_t)(number * (MT_PLANTED_MOST_DIMENSIONS + 1) + t);
  mt_random_words(s->seed, MT_STREAM_TEST, index, (uint32_t)step, 0, out);
}

/* Point i: out (n_dimensions). A cluster is a bent stroke, thickened. */
MT_BOTH void mt_scatter_point(const mt_scatter *s, int64_t i, float *out)
{
  uint32_t what[4], how[4];
  int64_t d = s->n_dimensions;
  mt_scatter_words(s, MT_PLANTED_POINT, i, d, what);
  float popular = mt_planted_unit(what[0]), along = mt_planted_signed(what[1]);
  int64_t cluster = (int64_t)(popular * popular * (float)s->n_clusters);
  bool free_point = mt_planted_unit(what[2]) < s->anywhere;
  mt_scatter_words(s, MT_PLANTED_CLUSTER, cluster, d, how);
  float u = mt_planted_unit(how[0]), length = 4.0f * mt_planted_unit(how[1]);
  float width = s->narrow + (s->wide - s->narrow) * (u * u * u * u);
  for (int64_t t = 0; t < d; t++) {
    uint32_t w[4], c[4];
    mt_scatter_words(s, MT_PLANTED_POINT, i, t, w);
    mt_scatter_words(s, MT_PLANTED_CLUSTER, cluster, t, c);
    /* the sum of four uniforms is near enough to normal */
    float round = 0.0f;
    for (int j = 0; j < 4; j++) round += mt_planted_signed(w[j]);
    float stroke =
        mt_planted_signed(c[1]) * along + mt_planted_signed(c[2]) * (along * along);
    out[t] = free_point ? s->side * mt_planted_unit(w[0])
                        : s->side * mt_planted_unit(c[0]) +
                              width * (length * stroke + 0.866f * round);
  }
}

/* ---- on the device (after gpu.h) ------------------------------------------------------- */

#ifdef MT_CUDA_GPU_H
/* A block makes a row. */
static __global__ void mt_planted_kernel(mt_planted p, int64_t first, int64_t count,
                                         float *rows)
{
  __shared__ unsigned long long sum;
  for (int64_t i = blockIdx.x; i < count; i += gridDim.x) {
    mt_planted_row row = mt_planted_describe(&p, first + i);
    float *out = rows + i * p.n_terms;
    unsigned long long own = 0;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    for (int64_t t = 4 * (int64_t)threadIdx.x; t < p.n_terms; t += 4 * blockDim.x) {
      float w[4];
      mt_planted_weights(&p, &row, t / 4, w);
      for (int64_t j = 0; j < 4 && t + j < p.n_terms; j++) {
        out[t + j] = w[j];
        own += mt_planted_fixed(w[j]);
      }
    }
    atomicAdd(&sum, own);
    __syncthreads();
    for (int64_t t = 4 * (int64_t)threadIdx.x; t < p.n_terms; t += 4 * blockDim.x)
      for (int64_t j = 0; j < 4 && t + j < p.n_terms; j++)
        out[t + j] = mt_planted_share(out[t + j], sum);
    __syncthreads(); /* before the next row's sum */
  }
}

/* Rows [first, first + count) to device memory (count, n_terms). On the GPU's stream. */
static inline mt_status mt_planted_rows(mt_gpu *gpu, const mt_planted *p, int64_t first,
                                        int64_t count, float *rows)
{
  int64_t blocks = count < 65535 ? count : 65535;
  if (count == 0) return MT_OK;
  return MT_LAUNCH(gpu, mt_planted_kernel, (unsigned)blocks, 256, 0, *p, first, count,
                   rows);
}

/* Points [first, first + count) to device memory (count, n_dimensions). */
static inline mt_status mt_scatter_points(mt_gpu *gpu, const mt_scatter *s,
                                          int64_t first, int64_t count, float *points)
{
  mt_scatter scatter = *s;
  return mt_gpu_each(gpu, count, [=] __device__(int64_t i) {
    mt_scatter_point(&scatter, first + i, points + i * scatter.n_dimensions);
  });
}
#endif

#endif
