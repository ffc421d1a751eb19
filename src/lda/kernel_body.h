/* The kernels of kernel.h, for the instruction set that this is compiled for. Included
 * once by each kernel_*.c, which defines KERNEL (the table's name), KERNEL_NAME, USABLE
 * and GROUP: how many topics' sums fit in registers. */
#include "lda/bound.h"
#include "lda/kernel.h"
#include "lda/vector.h"

#include <float.h>
#include <math.h>

/* exp(-s) for s >= 0, 0 from 86 on: 2^n 2^r, n an integer and r in [-1/2, 1/2], 2^r by a
 * polynomial (relative error 2e-9). */
MT_INLINE v16 exp_minus(v16 s)
{
  const v16 magic = v_set(12582912.0f); /* 1.5 x 2^23: its last bits become n */
  v16 shifted = v_fma(s, v_set(-1.44269504f), magic);
  v16 r = v_fma(s, v_set(-1.44269504f), v_sub(magic, shifted)), q = v_mul(r, r);
  v16 a = v_fma(r, v_set(0.6931472029f), v_set(1.0f));
  v16 b = v_fma(r, v_set(0.0555033247f), v_set(0.2402264791f));
  v16 c = v_fma(r, v_set(0.0013398874f), v_set(0.0096184374f));
  c = v_fma(q, v_set(0.0001535336f), c);
  v16 p = v_fma(v_fma(c, q, b), q, a);
  return v_below(s, v_set(86.0f), v_bits_add_left(p, shifted, 23));
}

/**
 * exp(psi(x)), x > 0, where psi(x) = psi(x + 2) - 1/x - 1/(x + 1). With z = x + 1.5,
 * exp(psi(z + 1/2)) = z + (1/24 - 37/5760 z^-2 + ...) / z: a polynomial fitted for
 * z >= 1.5 (relative error 4e-8), so that no logarithm is taken.
 */
MT_INLINE v16 exp_digamma(v16 x)
{
  v16 one = v_set(1.0f);
  v16 s = v_div(v_fma(v_set(2.0f), x, one), v_fma(x, x, x));
  v16 z = v_add(x, v_set(1.5f)), w = v_div(one, z), u = v_mul(w, w);
  v16 c = v_fma(u, v_set(-0.0011891851f), v_set(0.0028728460f));
  c = v_fma(c, u, v_set(-0.0063425978f));
  c = v_fma(c, u, v_set(0.0416634344f));
  return v_mul(v_fma(c, w, z), exp_minus(s));
}

/* log(x) of positive normal floats (relative error 1e-7, absolute below 1e-7 near 1). */
MT_INLINE v16 natural_log(v16 x)
{
  v16 e = v_exponent(x), m = v_significand(x), one = v_set(1.0f);
  v16 half = v_below(v_set(1.41421356f), m, v_set(0.5f)); /* 0.5 where m > sqrt 2 */
  e = v_fma(half, v_set(2.0f), e);
  m = v_sub(v_sub(m, v_mul(m, half)), one);
  v16 p = v_set(-0.0763227195f);
  p = v_fma(p, m, v_set(0.1276085586f));
  p = v_fma(p, m, v_set(-0.1316063570f));
  p = v_fma(p, m, v_set(0.1420188308f));
  p = v_fma(p, m, v_set(-0.1662332717f));
  p = v_fma(p, m, v_set(0.2000122069f));
  p = v_fma(p, m, v_set(-0.2500082168f));
  p = v_fma(p, m, v_set(0.3333333178f));
  v16 q = v_mul(m, m);
  v16 tail = v_fma(v_mul(p, m), q, v_mul(e, v_set(-2.12194440e-4f)));
  tail = v_fma(q, v_set(-0.5f), tail);
  return v_fma(e, v_set(0.693359375f), v_add(m, tail));
}

/* ---- update steps ---- */

/* Up to so many topics are a step's norms and sums in one sweep; a document with more is
 * worked on alone. */
enum { FEW = 16 };

/* The norm of a tile, eps + sum over topics of weight x column, is added up in four chains,
 * topic k in chain k mod 4. */
MT_INLINE v16 norm_of(const v16 c[4])
{
  return v_add(v_add(c[0], c[1]), v_add(c[2], c[3]));
}

MT_INLINE void store_ratio(const mt_lda_slot *slot, int64_t tile, const v16 c[4])
{
  v16 count = v_load(slot->counts + 16 * tile);
  v_store(slot->ratio + 16 * tile, v_div(count, norm_of(c)));
}

/* The chains of `tiles` <= 4 tiles, a constant, each weight loaded once for all. */
MT_INLINE void add_chains(const int tiles, const mt_lda_slot *slot, int64_t first,
                          v16 eps, v16 c[][4])
{
  int64_t n = slot->topics, stride = 16 * n, k = 4;
  const float *weight = slot->weight, *block = slot->block + stride * first;
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) {
    v16 w = v_set(j < n ? weight[j] : 0.0f);
#pragma GCC unroll 4
    for (int t = 0; t < tiles; t++) {
      v16 column = v_load(block + stride * t + 16 * (j < n ? j : 0));
      c[t][j] = j == 0 ? v_fma(w, column, eps) : v_mul(w, column);
    }
  }
  for (; k < n; k += 4)
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
      if (k + j >= n) break;
      v16 w = v_set(weight[k + j]);
#pragma GCC unroll 4
      for (int t = 0; t < tiles; t++)
        c[t][j] = v_fma(w, v_load(block + stride * t + 16 * (k + j)), c[t][j]);
    }
}

MT_INLINE void ratios_of(const int tiles, const mt_lda_slot *slot, int64_t first)
{
  v16 c[4][4];
  add_chains(tiles, slot, first, v_set(slot->eps), c);
#pragma GCC unroll 4
  for (int t = 0; t < tiles; t++) store_ratio(slot, first + t, c[t]);
}

/* ratio = count / norm, unless they came with the columns. */
static void ratios(mt_lda_slot *slot)
{
  int64_t t = 0;
  bool there = slot->has_ratios;
  slot->has_ratios = false;
  if (there) return;
#if GROUP >= 16
  for (; t + 4 <= slot->tiles; t += 4) ratios_of(4, slot, t);
  if (slot->tiles - t == 3) return ratios_of(3, slot, t);
  if (slot->tiles - t == 2) return ratios_of(2, slot, t);
#endif
  for (; t < slot->tiles; t++) ratios_of(1, slot, t);
}

/* New gamma and weight of 16 topics from their sums of ratio x column; how much gamma
 * changes. Beyond the topics in work the sums are 0, gamma is the prior and weight what goes
 * with it, which drop_settled counts on. */
MT_INLINE v16 update_topics(const mt_lda_pass *pass, int64_t first, v16 sums,
                            mt_lda_slot *slot)
{
  v16 weight = v_load(slot->weight + first), old = v_load(slot->gamma + first);
  v16 gamma = v_fma(weight, sums, v_set((float)pass->prior));
  v_store(slot->gamma + first, gamma);
  v_store(slot->weight + first, exp_digamma(gamma));
  return v_abs(v_sub(gamma, old));
}

/* sums[k] = sum over tiles of ratio x column, for n <= GROUP topics, n a constant. */
MT_INLINE void gather_group(const int n, int64_t tiles, int64_t stride,
                            const float *block, const float *ratio, v16 *sums)
{
  v16 sum[GROUP];
#pragma GCC unroll 16
  for (int k = 0; k < n; k++) sum[k] = v_set(0.0f);
  for (int64_t t = 0; t < tiles; t++) {
    v16 r = v_load(ratio + 16 * t);
#pragma GCC unroll 16
    for (int k = 0; k < n; k++)
      sum[k] = v_fma(r, v_load(block + t * stride + 16 * k), sum[k]);
  }
#pragma GCC unroll 16
  for (int k = 0; k < n; k++) sums[k] = sum[k];
}

/* The same for n <= 16 topics, n a constant; zero for the rest. */
MT_INLINE v16 gather_topics(const int n, int64_t tiles, int64_t stride,
                            const float *block, const float *ratio)
{
  v16 sums[16];
#pragma GCC unroll 16
  for (int k = 0; k < n; k += GROUP)
    gather_group(n - k < GROUP ? n - k : GROUP, tiles, stride, block + 16 * k, ratio,
                 sums + k);
#pragma GCC unroll 16
  for (int k = n; k < 16; k++) sums[k] = v_set(0.0f);
  return v_sums(n, sums);
}

/* The same, n not known to the compiler. */
static v16 gather_sums(int64_t n, int64_t tiles, int64_t stride, const float *block,
                       const float *ratio)
{
#define CASE(m) \
  case m:       \
    return gather_topics(m, tiles, stride, block, ratio);
  switch (n) {
    /* clang-format off */
    CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8)
    CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14) CASE(15)
    /* clang-format on */
  }
#undef CASE
  return gather_topics(16, tiles, stride, block, ratio);
}

/* One update step of a document: the sum of the changes of gamma over the topics. */
static float step_any(const mt_lda_pass *pass, mt_lda_slot *slot)
{
  int64_t n = slot->topics;
  v16 change = v_set(0.0f);
  ratios(slot);
  for (int64_t k = 0; k < n; k += 16) {
    v16 sums =
        gather_sums(n - k, slot->tiles, 16 * n, slot->block + 16 * k, slot->ratio);
    change = v_add(change, update_topics(pass, k, sums, slot));
  }
  return v_sum(change);
}

#if GROUP >= 16
/* Keeps a value in a register: it is not loaded again. */
MT_INLINE v16 held(v16 a)
{
  __asm__("" : "+v"(a));
  return a;
}

/* The same for n <= 16 topics, n a constant: norms and sums in one sweep, in registers.
 * The sums take n registers; the first HELD columns stay in registers between their two
 * uses, and the weights that go with them come from memory (a load is the scarcer). */
MT_INLINE float step_few(const int n, const mt_lda_pass *pass, mt_lda_slot *slot)
{
  enum { HELD = 10 };
  v16 sums[16], eps = v_set(slot->eps);
  int64_t t = 0;
#pragma GCC unroll 16
  for (int k = 0; k < 16; k++) sums[k] = v_set(0.0f);
  do {
    const float *block = slot->block + 16 * n * t, *weight = slot->weight;
    v16 column[16], chain[4] = {eps, v_set(0.0f), v_set(0.0f), v_set(0.0f)};
    __asm__("" : "+r"(weight));
#pragma GCC unroll 16
    for (int k = 0; k < n; k++) {
      v16 w = v_set((k < HELD ? weight : slot->weight)[k]);
      column[k] = v_load(block + 16 * k);
      if (k < HELD) column[k] = held(column[k]);
      chain[k % 4] =
          k < 4 && k > 0 ? v_mul(w, column[k]) : v_fma(w, column[k], chain[k % 4]);
    }
    v16 ratio = v_div(v_load(slot->counts + 16 * t), norm_of(chain));
#pragma GCC unroll 16
    for (int k = 0; k < n; k++) sums[k] = v_fma(ratio, column[k], sums[k]);
  } while (++t < slot->tiles);
  return v_sum(update_topics(pass, 0, v_sums(n, sums), slot));
}

#define STEP(n)                                                     \
  static float step_##n(const mt_lda_pass *pass, mt_lda_slot *slot) \
  {                                                                 \
    return step_few(n, pass, slot);                                 \
  }
/* clang-format off */
STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7) STEP(8)
STEP(9) STEP(10) STEP(11) STEP(12) STEP(13) STEP(14) STEP(15) STEP(16)
/* clang-format on */
#undef STEP
#endif

        typedef float step_function(const mt_lda_pass *pass, mt_lda_slot *slot);

static step_function *step_for(int64_t topics)
{
#if GROUP >= 16
  static step_function *const few[17] = {
      NULL,   step_1,  step_2,  step_3,  step_4,  step_5,  step_6,  step_7, step_8,
      step_9, step_10, step_11, step_12, step_13, step_14, step_15, step_16};
  if (topics <= FEW) return few[topics];
#endif
  (void)topics;
  return step_any;
}

/* ---- topics that a document is done with ---- */

/* Which of 16 topics have weight 0: such a topic adds nothing, gamma is the prior after one
 * more step, and changes no more. (exp(psi(prior)) is 0 in float for priors below 1 / 86,
 * and gamma is never below the prior.) */
MT_INLINE uint32_t settled_of(const mt_lda_slot *slot, int64_t first)
{
  return v_which_below(v_load(slot->weight + first), v_set(FLT_MIN));
}

/* The columns of the topics that are kept, of n. What comes next needs their norms, and
 * has them for nothing: moving waits for stores. */
static void move_columns(mt_lda_slot *slot, int64_t n)
{
  int64_t kept = slot->topics;
  const int32_t *which = slot->kept;
  const float *from = slot->block;
  float *to = slot->block;
  slot->has_ratios = kept > FEW;
  if (!slot->has_ratios) {
    for (int64_t t = 0; t < slot->tiles; t++, from += 16 * n)
      for (int64_t k = 0; k < kept; k++, to += 16)
        v_store(to, v_load(from + 16 * which[k]));
    return;
  }
  for (int64_t t = 0; t < slot->tiles; t++, from += 16 * n) {
    v16 c[4] = {v_set(slot->eps), v_set(0.0f), v_set(0.0f), v_set(0.0f)};
    const float *weight = slot->weight;
    for (int64_t k = 0; k < kept; k += 4)
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++, to += 16) {
        if (k + j >= kept) break;
        v16 column = v_load(from + 16 * which[k + j]);
        v_store(to, column);
        c[j] = v_fma(v_set(weight[k + j]), column, c[j]);
      }
    store_ratio(slot, t, c);
  }
}

/* Keeps the topics that are not settled. */
static void pack_topics(mt_lda_slot *slot, float prior)
{
  int64_t n = slot->topics, kept = 0;
  v16 fall = v_set(0.0f);
  for (int64_t k = 0; k < n; k += 16) {
    v16 above = v_sub(v_load(slot->gamma + k), v_set(prior));
    fall = v_add(fall, v_below(v_load(slot->weight + k), v_set(FLT_MIN), above));
    uint32_t keep = 0xffff & ~settled_of(slot, k);
    if (n - k < 16) keep &= (1u << (n - k)) - 1;
    for (int j = 0; j < 16; j++) slot->kept[k + j] = (int32_t)k + j;
    v_pack(slot->kept + kept, keep, slot->kept + k);
    v_pack(slot->topic + kept, keep, slot->topic + k);
    v_pack(slot->gamma + kept, keep, slot->gamma + k);
    v_pack(slot->weight + kept, keep, slot->weight + k);
    kept += __builtin_popcount(keep);
  }
  for (int64_t k = kept; k < (n + 15) / 16 * 16; k++) slot->gamma[k] = prior;
  slot->topics = kept;
  slot->fall = v_sum(fall);
  move_columns(slot, n);
}

/* Goes on without those that are settled, once they are a quarter. It changes no norm and no
 * sum but by the order of their terms, and each document does it on its own; what their
 * gamma has yet to fall is part of the next step's change. */
static void drop_settled(const mt_lda_pass *pass, mt_lda_slot *slot)
{
  int64_t n = slot->topics, settled = 0;
  for (int64_t k = 0; k < n; k += 16)
    settled += __builtin_popcount(settled_of(slot, k));
  settled -= (n + 15) / 16 * 16 - n; /* those beyond are */
  if (4 * settled >= n && settled < n) pack_topics(slot, (float)pass->prior);
}

/* All K of them, again; and the groups of 16 that hold one in work. */
static void fill_whole(const mt_lda_pass *pass, mt_lda_slot *slot)
{
  for (int64_t k = 0; k < pass->padded; k++) {
    slot->whole_gamma[k] = (float)pass->prior;
    slot->whole_weight[k] = 0.0f;
  }
  slot->n_groups = 0;
  for (int64_t k = 0; k < slot->topics; k++) {
    int32_t topic = slot->topic[k], group = topic / 16 * 16;
    slot->whole_gamma[topic] = slot->gamma[k];
    slot->whole_weight[topic] = slot->weight[k];
    if (slot->n_groups == 0 || slot->groups[slot->n_groups - 1] != group)
      slot->groups[slot->n_groups++] = group;
  }
}

/* ---- starting values ---- */

/* Philox4x32-10 of 16 consecutive indices (see base/random.h). */
MT_INLINE void random_words16(uint32_t seed, uint32_t stream, uint64_t first,
                              uint32_t step, uint32_t block, v16u w[4])
{
  uint32_t k0 = seed, k1 = stream;
  w[0] = u_count(first);
  w[1] = u_upper(w[0]);
  w[2] = u_set(step);
  w[3] = u_set(block);
  for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    v16u p = u_mul(w[0], 0xD2511F53u), q = u_mul(w[2], 0xCD9E8D57u);
    w[0] = u_xor3(u_upper(q), w[1], k0);
    w[1] = q;
    w[2] = u_xor3(u_upper(p), w[3], k1);
    w[3] = p;
  }
}

MT_INLINE v16 cos_turn(v16 turn) /* cos(2 pi turn), turn in [0, 1]; absolute 3e-7 */
{
  v16 v = v_sub(turn, v_set(0.5f)), q = v_mul(v, v), p = v_set(6.529610365f);
  p = v_fma(p, q, v_set(-25.968313266f));
  p = v_fma(p, q, v_set(60.167831721f));
  p = v_fma(p, q, v_set(-85.450165549f));
  p = v_fma(p, q, v_set(64.939118984f));
  p = v_fma(p, q, v_set(-19.739204532f));
  p = v_fma(p, q, v_set(0.9999999892f));
  return v_sub(v_set(0.0f), p);
}

/**
 * Marsaglia and Tsang's gamma with the words of mt_random_gamma. Its test accepts when
 * log u < h(x), and 1 - exp(h(x)) <= 1.05e-4 x^4 for shape 100 and |x| < 6.9: so u below
 * 1 - 1.2e-4 x^4 - 1e-6 is accepted without a logarithm, and the few others (4 in 10,000)
 * are drawn by mt_random_gamma itself.
 */
static void gamma16(uint32_t seed, mt_stream stream, uint64_t first, uint32_t step,
                    float *out)
{
  const float d = 100.0f - 1.0f / 3.0f, c = 0.033388999f; /* 1 / sqrt(9 d) */
  v16u w[4], u[4];
  random_words16(seed, (uint32_t)stream, first, step, 0, w);
  random_words16(seed, (uint32_t)stream, first, step, 1, u);
  v16 radius = v_sqrt(v_mul(v_set(-2.0f), natural_log(u_unit(w[0]))));
  v16 x = v_mul(radius, cos_turn(u_unit(w[2])));
  v16 v = v_fma(v_set(c), x, v_set(1.0f)), x2 = v_mul(x, x);
  v16 limit = v_fma(v_mul(x2, x2), v_set(-1.2e-4f), v_set(1.0f - 1e-6f));
  uint32_t unsure = 0xffff & ~v_which_below(u_unit(u[0]), limit);
  v_store(out, v_mul(v_mul(v, v_mul(v, v)), v_set(d * 0.01f)));
  for (; unsure != 0; unsure &= unsure - 1) {
    int i = __builtin_ctz(unsure);
    out[i] =
        (float)mt_random_gamma(seed, stream, first + (uint64_t)i, step, 100.0, 0.01);
  }
}

static void gamma_fill(uint32_t seed, mt_stream stream, uint64_t first, uint32_t step,
                       int64_t n, float *out)
{
  float drawn[16] __attribute__((aligned(64)));
  for (int64_t i = 0; i < n; i += 16) {
    gamma16(seed, stream, first + (uint64_t)i, step, drawn);
    if (n - i >= 16)
      memcpy(out + i, drawn, sizeof drawn);
    else
      memcpy(out + i, drawn, (size_t)(n - i) * sizeof *out);
  }
}

/* ---- a document comes in, and its sums go out ---- */

static void start_gamma(const mt_lda_pass *pass, mt_lda_slot *slot)
{
  int64_t n = pass->n_components, d = slot->document;
  for (int64_t k = n; k < pass->padded; k++) slot->gamma[k] = (float)pass->prior;
  if (pass->start_ones)
    for (int64_t k = 0; k < n; k++) slot->gamma[k] = 1.0f;
  else if (pass->given != NULL)
    memcpy(slot->gamma, pass->given + d * n, (size_t)n * sizeof *slot->gamma);
  else
    gamma_fill(pass->seed, MT_STREAM_LDA_DOCUMENT, (uint64_t)(d * n), pass->pass, n,
               slot->gamma);
}

/* scikit-learn's EPS for exp(psi(gamma)) that are not yet divided by exp(psi(total)). Of a
 * document without a word total can be so small that it would be 0, and ratios 0 / 0. */
MT_INLINE float eps_of(double total)
{
  float value[16] __attribute__((aligned(64)));
  v_store(value, exp_digamma(v_set((float)total)));
  return fmaxf(2.220446049250313e-16f * value[0], 1e-30f);
}

/* 16 terms' rows of the table become K columns of 16; norms, a constant: with their ratios.
 */
MT_INLINE void pack_tile(const bool norms, const mt_lda_pass *pass, const int32_t *ids,
                         int64_t n, mt_lda_slot *slot, int64_t tile)
{
  int64_t K = pass->n_components;
  float *block = slot->block + 16 * K * tile;
  v16 c[4] = {v_set(slot->eps), v_set(0.0f), v_set(0.0f), v_set(0.0f)};
  for (int64_t k = 0; k < K; k += 16, block += 256) {
    v16 rows[16];
    for (int64_t i = 0; i < 16; i++)
      rows[i] = i < n ? v_load(pass->table + ids[i] * pass->padded + k) : v_set(0.0f);
    v_transpose(rows);
#pragma GCC unroll 16
    for (int64_t j = 0; j < 16; j++) {
      if (k + j >= K) break;
      v_store(block + 16 * j, rows[j]);
      if (norms) c[j % 4] = v_fma(v_set(slot->weight[k + j]), rows[j], c[j % 4]);
    }
  }
  if (norms) store_ratio(slot, tile, c);
}

static void pack_document(const mt_lda_pass *pass, mt_lda_slot *slot)
{
  const int32_t *ids = pass->indices + pass->indptr[slot->document];
  slot->has_ratios = slot->topics > FEW;
  for (int64_t t = 0; t < slot->tiles; t++)
    if (slot->has_ratios)
      pack_tile(true, pass, ids + 16 * t, slot->n - 16 * t, slot, t);
    else
      pack_tile(false, pass, ids + 16 * t, slot->n - 16 * t, slot, t);
}

/* Asks for the rows of a document that comes soon. */
MT_INLINE void fetch_ahead(const mt_lda_pass *pass, int64_t document,
                           const float *stats)
{
  for (int64_t i = pass->indptr[document]; i < pass->indptr[document + 1]; i++)
    for (int64_t k = 0; k < pass->padded; k += 16) {
      int64_t at = pass->indices[i] * pass->padded + k;
      __builtin_prefetch(pass->table + at, 0, 2);
      if (stats != NULL) __builtin_prefetch(stats + at, 1, 2);
    }
}

static void load_document(const mt_lda_pass *pass, int64_t document, mt_lda_slot *slot)
{
  int64_t at = pass->indptr[document], K = pass->n_components, words = 0;
  double total = 0.0;
  slot->document = document;
  slot->n = pass->indptr[document + 1] - at;
  slot->tiles = slot->n > 0 ? (slot->n + 15) / 16 : 1; /* never none */
  slot->steps = 0;
  slot->fall = 0.0f;
  slot->topics = K;
  for (int64_t k = 0; k < K; k++) slot->topic[k] = (int32_t)k;
  start_gamma(pass, slot);
  for (int64_t k = 0; k < K; k++) total += slot->gamma[k];
  for (int64_t k = 0; k < pass->padded; k += 16)
    v_store(slot->weight + k, exp_digamma(v_load(slot->gamma + k)));
  float *counts = slot->counts;
  const int32_t *data = pass->data + at;
  for (int64_t i = 0; i < slot->n; i++) counts[i] = (float)data[i], words += data[i];
  for (int64_t i = slot->n; i < 16 * slot->tiles; i++) counts[i] = 0.0f;
  slot->eps = eps_of(total);
  slot->eps_later = eps_of((double)words + pass->prior * (double)K);
  pack_document(pass, slot);
}

static void add_stats(const mt_lda_pass *pass, mt_lda_slot *slot, float *stats)
{
  const int32_t *ids = pass->indices + pass->indptr[slot->document];
  ratios(slot);
  for (int64_t i = 0; i < slot->n; i++) {
    float *row = stats + ids[i] * pass->padded;
    v16 ratio = v_set(slot->ratio[i]);
    for (int64_t g = 0; g < slot->n_groups; g++) {
      int64_t k = slot->groups[g];
      v_store(row + k, v_fma(ratio, v_load(slot->whole_weight + k), v_load(row + k)));
    }
  }
}

/* Sum over words of count x log(sum over topics of exp(E[log theta]) exp(E[log beta])). */
static double score_words(const mt_lda_pass *pass, const mt_lda_slot *slot)
{
  const int32_t *ids = pass->indices + pass->indptr[slot->document];
  int64_t n = pass->n_components;
  double score = 0.0, shift = mt_lda_psi_total(n, slot->whole_gamma);
  for (int64_t t = 0; t < slot->tiles; t++) {
    float norm[16] __attribute__((aligned(64))), value[16] __attribute__((aligned(64)));
    v16 c[1][4];
    add_chains(1, slot, t, v_set(0.0f), c);
    v16 norms = norm_of(c[0]);
    v_store(norm, norms);
    v_store(value, natural_log(norms));
    for (int64_t i = 0; i < 16 && 16 * t + i < slot->n; i++) {
      double word = value[i];
      if (!(norm[i] > 1e-30f)) /* some of it underflowed */
        word = mt_lda_word_log(n, slot->whole_gamma,
                               pass->lambda + ids[16 * t + i] * pass->padded,
                               pass->psi_total);
      score += slot->counts[16 * t + i] * (word - shift);
    }
  }
  return score;
}

static void finish_document(const mt_lda_pass *pass, mt_lda_slot *slot,
                            mt_lda_lane *lane)
{
  fill_whole(pass, slot);
  if (lane->stats != NULL) add_stats(pass, slot, lane->stats);
  if (pass->lambda != NULL)
    lane->score +=
        score_words(pass, slot) +
        mt_lda_document_score(pass->n_components, pass->prior, slot->whole_gamma);
  lane->updates += slot->n * slot->steps;
}

/* ---- a lane ---- */

/* Steps of a document: one, or more while so many topics are in work that its block would
 * have to come into the first cache anew. True when it is done. */
static bool advance(const mt_lda_pass *pass, mt_lda_slot *slot, float tolerance,
                    bool settles)
{
  do {
    if (slot->steps >= pass->max_steps) return true;
    float change = step_for(slot->topics)(pass, slot) + slot->fall;
    slot->fall = 0.0f;
    slot->eps = slot->eps_later;
    if (++slot->steps >= pass->max_steps || change < tolerance) return true;
    /* where few are left, a look costs more than it finds */
    if (settles && (slot->topics > FEW || slot->steps % 4 == 1))
      drop_settled(pass, slot);
  } while (slot->topics > FEW);
  return false;
}

/* Documents are worked on in pairs, in turn, so that the processor has something to do
 * while one with few topics waits for its exp(psi(gamma)). What the lane adds up to
 * depends on the order in which they finish: on the documents, not on who works. */
static void documents(const mt_lda_pass *pass, mt_lda_room *room, mt_lda_lane *lane)
{
  const int64_t poll_after = (int64_t)1 << 24; /* count x topic x step: about 2 ms */
  float least[16] __attribute__((aligned(64)));
  v_store(least, exp_digamma(v_set((float)pass->prior)));
  bool settles = least[0] == 0.0f;
  float tolerance = (float)(pass->tolerance * (double)pass->n_components);
  mt_lda_slot *slots[MT_LDA_SLOTS];
  int64_t next = lane->first, polled = 0;
  int active = 0;
  lane->gave_up = false;
  for (; active < MT_LDA_SLOTS && next < lane->last; active++, next++) {
    slots[active] = &room->slots[active];
    load_document(pass, next, slots[active]);
  }
  while (active > 0)
    for (int s = 0; s < active; s++) {
      mt_lda_slot *slot = slots[s];
      if (!advance(pass, slot, tolerance, settles)) continue;
      finish_document(pass, slot, lane);
      if (lane->poll != NULL &&
          (lane->updates - polled) * pass->n_components > poll_after) {
        polled = lane->updates;
        lane->gave_up = lane->poll(lane->context);
        if (lane->gave_up) return;
      }
      if (next < lane->last) {
        load_document(pass, next++, slot);
        if (next < lane->last) fetch_ahead(pass, next, lane->stats);
      } else
        slots[s--] = slots[--active];
    }
}

static void expect(int64_t rows, int64_t padded, const double *lambda,
                   const float *scale, float *table)
{
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < padded; k += 16) {
      float value[16] __attribute__((aligned(64)));
      for (int j = 0; j < 16; j++) value[j] = (float)lambda[i * padded + k + j];
      v_store(table + i * padded + k,
              v_mul(exp_digamma(v_load(value)), v_load(scale + k)));
    }
}

static void update(int64_t rows, int64_t padded, const mt_lda_update *how,
                   const double *sums, const float *table, double *lambda,
                   double *total)
{
  double prior = how->prior, weight = how->weight, ratio = how->ratio;
  for (int64_t k = 0; k < padded; k++) total[k] = 0.0;
  for (int64_t i = 0; i < rows * padded; i += padded)
#pragma GCC ivdep /* where sums is lambda, element by element */
    for (int64_t k = 0; k < padded; k++) {
      double now = prior + ratio * sums[i + k] * table[i + k];
      lambda[i + k] = (1.0 - weight) * lambda[i + k] + weight * now;
      total[k] += lambda[i + k];
    }
}

static void exp_digamma_array(int64_t n, const float *x, float *out)
{
  for (int64_t i = 0; i < n; i += 16) v_store(out + i, exp_digamma(v_load(x + i)));
}

static void log_array(int64_t n, const float *x, float *out)
{
  for (int64_t i = 0; i < n; i += 16) v_store(out + i, natural_log(v_load(x + i)));
}

static bool usable(void)
{
  return USABLE;
}

const mt_lda_kernel KERNEL = {.name = KERNEL_NAME,
                              .usable = usable,
                              .documents = documents,
                              .expect = expect,
                              .update = update,
                              .gamma = gamma_fill,
                              .exp_digamma = exp_digamma_array,
                              .log = log_array};
