/* Random numbers from a counter: a value depends on (seed, stream, index, step) alone,
 * never on the rank, the thread or what was drawn before.
 * Source   Salmon et al. 2011, Philox4x32-10, as in Random123 (also compiled by nvcc) */
#ifndef MT_BASE_RANDOM_H
#define MT_BASE_RANDOM_H
#include "base/both.h"

#include <stdint.h>
#include <Random123/philox.h>

/* What a number is for: no two uses share a stream. */
typedef enum mt_stream {
  MT_STREAM_LDA_COMPONENTS = 1, /* index: topic x terms + term */
  MT_STREAM_LDA_DOCUMENT,       /* index: document x K + topic, step: pass, from 1 */
  MT_STREAM_LDA_SHUFFLE,        /* index: document, step: pass */
  MT_STREAM_UMAP_INIT,          /* index: point x dimensions + axis */
  MT_STREAM_UMAP_NEGATIVE,      /* index: edge or point, step: epoch */
  MT_STREAM_EIGEN,              /* index: row */
  MT_STREAM_KNN,
  MT_STREAM_NEWSWIRE,
  MT_STREAM_TEST,
} mt_stream;

/* Four 32-bit words. 64 bits of index; 32 of step; seed and stream are the key. */
MT_BOTH void mt_random_words(uint32_t seed, mt_stream stream, uint64_t index,
                             uint32_t step, uint32_t block, uint32_t out[4])
{
  philox4x32_ctr_t counter = {{(uint32_t)index, (uint32_t)(index >> 32), step, block}};
  philox4x32_key_t key = {{seed, (uint32_t)stream}};
  philox4x32_ctr_t words = philox4x32(counter, key);
  for (int i = 0; i < 4; i++) out[i] = words.v[i];
}

/* Uniform in (0, 1), 53 bits: never 0, never 1. */
MT_BOTH double mt_random_unit_of(uint32_t high, uint32_t low)
{
  uint64_t bits = ((uint64_t)high << 32 | low) >> 12; /* 52 bits */
  return ((double)bits + 0.5) * 0x1p-52;
}

MT_BOTH double mt_random_unit(uint32_t seed, mt_stream stream, uint64_t index,
                              uint32_t step)
{
  uint32_t w[4];
  mt_random_words(seed, stream, index, step, 0, w);
  return mt_random_unit_of(w[0], w[1]);
}

/* Uniform integer in [0, n), n >= 1, by the multiply-shift of a 64-bit word. */
MT_BOTH int64_t mt_random_below_of(uint32_t high, uint32_t low, int64_t n)
{
  unsigned __int128 product =
      (unsigned __int128)((uint64_t)high << 32 | low) * (uint64_t)n;
  return (int64_t)(product >> 64);
}

/* Standard normal (Box-Muller, one value a call). */
double mt_random_normal(uint32_t seed, mt_stream stream, uint64_t index, uint32_t step);

/* Gamma(shape, scale), shape >= 1 (Marsaglia and Tsang 2000; tries are counter blocks). */
double mt_random_gamma(uint32_t seed, mt_stream stream, uint64_t index, uint32_t step,
                       double shape, double scale);

#endif
