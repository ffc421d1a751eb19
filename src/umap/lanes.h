/* What the epochs need of vectors, for AVX-512 (16 lanes) and for AVX2 (8): floats (vf) and
 * int32 (vi) in one register, doubles (vd) and 64-bit words (vl) in two, `low` the first
 * lanes. + - * / and comparisons are C's operators on vectors, rounded in each lane as
 * scalars are. */
#ifndef MT_UMAP_LANES_H
#define MT_UMAP_LANES_H
#include "base/vectors.h"

#include <immintrin.h>
#include <stdint.h>

#if defined(__AVX512F__)
enum { LANES = 16 };
#else
enum { LANES = 8 };
#endif

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));
typedef double vd_half __attribute__((vector_size(4 * LANES)));
typedef uint64_t vl_half __attribute__((vector_size(4 * LANES)));

typedef struct vl {
  vl_half low, high;
} vl;

MT_INLINE vf f_set(float a)
{
  return (vf){0} + a;
}

MT_INLINE vl_half l_set(uint64_t a)
{
  return (vl_half){0} + a;
}

#if defined(__AVX512F__)

typedef __mmask16 vm; /* which lanes */

MT_INLINE vm m_none(void)
{
  return 0;
}
MT_INLINE uint32_t m_bits(vm m)
{
  return m;
}
MT_INLINE vm m_and_not(vm a, vm b) /* a and not b */
{
  return a & (vm)~b;
}
MT_INLINE vm m_more(vi a, vi b)
{
  return _mm512_cmpgt_epi32_mask((__m512i)a, (__m512i)b);
}
MT_INLINE vm m_equal(vl a, vl b)
{
  uint32_t low = _mm512_cmpeq_epi64_mask((__m512i)a.low, (__m512i)b.low);
  uint32_t high = _mm512_cmpeq_epi64_mask((__m512i)a.high, (__m512i)b.high);
  return (vm)(high << 8 | low);
}
/* least <= a < most; not NaN */
MT_INLINE vm m_within(vf a, float least, float most)
{
  return _mm512_cmp_ps_mask((__m512)a, _mm512_set1_ps(least), _CMP_GE_OQ) &
         _mm512_cmp_ps_mask((__m512)a, _mm512_set1_ps(most), _CMP_LT_OQ);
}
MT_INLINE vf f_select(vm m, vf yes, vf no)
{
  return (vf)_mm512_mask_blend_ps(m, (__m512)no, (__m512)yes);
}
/* a > b ? a : b, and a < b ? a : b: b if one is NaN */
MT_INLINE vf f_max(vf a, vf b)
{
  return (vf)_mm512_max_ps((__m512)a, (__m512)b);
}
MT_INLINE vf f_min(vf a, vf b)
{
  return (vf)_mm512_min_ps((__m512)a, (__m512)b);
}
MT_INLINE vd_half d_low(vf a)
{
  return (vd_half)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)a));
}
MT_INLINE vd_half d_high(vf a)
{
  return (vd_half)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)a, 1));
}
MT_INLINE vf f_join(vd_half low, vd_half high)
{
  return (vf)_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)low)),
                                _mm512_cvtpd_ps((__m512d)high), 1);
}
MT_INLINE vd_half d_floor(vd_half a)
{
  return (vd_half)_mm512_roundscale_pd((__m512d)a,
                                       _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
MT_INLINE vd_half d_low_of_i(vi a)
{
  return (vd_half)_mm512_cvtepi32_pd(_mm512_castsi512_si256((__m512i)a));
}
MT_INLINE vd_half d_high_of_i(vi a)
{
  return (vd_half)_mm512_cvtepi32_pd(_mm512_extracti32x8_epi32((__m512i)a, 1));
}
MT_INLINE vl l_of_i(vi a)
{
  return (vl){(vl_half)_mm512_cvtepi32_epi64(_mm512_castsi512_si256((__m512i)a)),
              (vl_half)_mm512_cvtepi32_epi64(_mm512_extracti32x8_epi32((__m512i)a, 1))};
}
/* The products of the lower 32 bits. */
MT_INLINE vl_half l_multiply(vl_half a, vl_half b)
{
  return (vl_half)_mm512_mul_epu32((__m512i)a, (__m512i)b);
}
MT_INLINE vl_half l_xor3(vl_half a, vl_half b, vl_half c)
{
  return (vl_half)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, 0x96);
}
MT_INLINE vd_half d_lookup16(const double table[16], vl_half i)
{
  return (vd_half)_mm512_permutex2var_pd(_mm512_loadu_pd(table), (__m512i)i,
                                         _mm512_loadu_pd(table + 8));
}
/* Of the lower 5 bits. */
MT_INLINE vd_half d_lookup32(const double table[32], vl_half i)
{
  __mmask8 upper = _mm512_test_epi64_mask((__m512i)i, _mm512_set1_epi64(16));
  return (vd_half)_mm512_mask_blend_pd(upper, (__m512d)d_lookup16(table, i),
                                       (__m512d)d_lookup16(table + 16, i));
}
MT_INLINE vl l_gather(const int64_t *from, vl at)
{
  return (vl){(vl_half)_mm512_i64gather_epi64((__m512i)at.low, from, 8),
              (vl_half)_mm512_i64gather_epi64((__m512i)at.high, from, 8)};
}
/* x and y of points that lie side by side. */
MT_INLINE void f_gather2(const float *from, vl at, vf *x, vf *y)
{
  const __m512i even =
      _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  __m512 low = (__m512)_mm512_i64gather_pd((__m512i)at.low, from, 8);
  __m512 high = (__m512)_mm512_i64gather_pd((__m512i)at.high, from, 8);
  *x = (vf)_mm512_permutex2var_ps(low, even, high);
  *y = (vf)_mm512_permutex2var_ps(low, odd, high);
}
MT_INLINE uint32_t d_more_bits(vd_half a, vd_half b)
{
  return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_GT_OQ);
}
/* Those of from[0 .. LANES) that have a bit, to the front of `to`, of which LANES are written. */
MT_INLINE void l_keep(uint32_t bits, const int64_t *from, int64_t *to)
{
  __m512i low = _mm512_loadu_si512(from), high = _mm512_loadu_si512(from + 8);
  _mm512_storeu_si512(to, _mm512_maskz_compress_epi64((__mmask8)bits, low));
  _mm512_storeu_si512(to + __builtin_popcount(bits & 0xff),
                      _mm512_maskz_compress_epi64((__mmask8)(bits >> 8), high));
}

#else

typedef __m256 vm;

MT_INLINE vm m_none(void)
{
  return _mm256_setzero_ps();
}
MT_INLINE uint32_t m_bits(vm m)
{
  return (uint32_t)_mm256_movemask_ps(m);
}
MT_INLINE vm m_and_not(vm a, vm b)
{
  return _mm256_andnot_ps(b, a);
}
MT_INLINE vm m_more(vi a, vi b)
{
  return (vm)_mm256_cmpgt_epi32((__m256i)a, (__m256i)b);
}
/* Every second of the 16 floats of both, from the first or from the second on. */
MT_INLINE __m256 every_second(__m256 low, __m256 high, int second)
{
  __m256 mixed =
      second ? _mm256_shuffle_ps(low, high, 0xdd) : _mm256_shuffle_ps(low, high, 0x88);
  return (__m256)_mm256_permute4x64_pd((__m256d)mixed, 0xd8);
}
MT_INLINE vm m_equal(vl a, vl b)
{
  return every_second((__m256)_mm256_cmpeq_epi64((__m256i)a.low, (__m256i)b.low),
                      (__m256)_mm256_cmpeq_epi64((__m256i)a.high, (__m256i)b.high), 0);
}
MT_INLINE vm m_within(vf a, float least, float most)
{
  return _mm256_and_ps(_mm256_cmp_ps((__m256)a, _mm256_set1_ps(least), _CMP_GE_OQ),
                       _mm256_cmp_ps((__m256)a, _mm256_set1_ps(most), _CMP_LT_OQ));
}
MT_INLINE vf f_select(vm m, vf yes, vf no)
{
  return (vf)_mm256_blendv_ps((__m256)no, (__m256)yes, m);
}
MT_INLINE vf f_max(vf a, vf b)
{
  return (vf)_mm256_max_ps((__m256)a, (__m256)b);
}
MT_INLINE vf f_min(vf a, vf b)
{
  return (vf)_mm256_min_ps((__m256)a, (__m256)b);
}
MT_INLINE vd_half d_low(vf a)
{
  return (vd_half)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)a));
}
MT_INLINE vd_half d_high(vf a)
{
  return (vd_half)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)a, 1));
}
MT_INLINE vf f_join(vd_half low, vd_half high)
{
  return (vf)_mm256_set_m128(_mm256_cvtpd_ps((__m256d)high),
                             _mm256_cvtpd_ps((__m256d)low));
}
MT_INLINE vd_half d_floor(vd_half a)
{
  return (vd_half)_mm256_floor_pd((__m256d)a);
}
MT_INLINE vd_half d_low_of_i(vi a)
{
  return (vd_half)_mm256_cvtepi32_pd(_mm256_castsi256_si128((__m256i)a));
}
MT_INLINE vd_half d_high_of_i(vi a)
{
  return (vd_half)_mm256_cvtepi32_pd(_mm256_extracti128_si256((__m256i)a, 1));
}
MT_INLINE vl l_of_i(vi a)
{
  return (vl){(vl_half)_mm256_cvtepi32_epi64(_mm256_castsi256_si128((__m256i)a)),
              (vl_half)_mm256_cvtepi32_epi64(_mm256_extracti128_si256((__m256i)a, 1))};
}
MT_INLINE vl_half l_multiply(vl_half a, vl_half b)
{
  return (vl_half)_mm256_mul_epu32((__m256i)a, (__m256i)b);
}
MT_INLINE vl_half l_xor3(vl_half a, vl_half b, vl_half c)
{
  return a ^ b ^ c;
}
MT_INLINE vd_half d_lookup16(const double table[16], vl_half i)
{
  return (vd_half)_mm256_i64gather_pd(table, (__m256i)i, 8);
}
MT_INLINE vd_half d_lookup32(const double table[32], vl_half i)
{
  return (vd_half)_mm256_i64gather_pd(table, (__m256i)(i & 31), 8);
}
MT_INLINE vl l_gather(const int64_t *from, vl at)
{
  const long long *base = (const long long *)from;
  return (vl){(vl_half)_mm256_i64gather_epi64(base, (__m256i)at.low, 8),
              (vl_half)_mm256_i64gather_epi64(base, (__m256i)at.high, 8)};
}
MT_INLINE void f_gather2(const float *from, vl at, vf *x, vf *y)
{
  const double *base = (const double *)from;
  __m256 low = (__m256)_mm256_i64gather_pd(base, (__m256i)at.low, 8);
  __m256 high = (__m256)_mm256_i64gather_pd(base, (__m256i)at.high, 8);
  *x = (vf)every_second(low, high, 0);
  *y = (vf)every_second(low, high, 1);
}
MT_INLINE uint32_t d_more_bits(vd_half a, vd_half b)
{
  return (uint32_t)_mm256_movemask_pd(
      _mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_GT_OQ));
}
MT_INLINE void l_keep(uint32_t bits, const int64_t *from, int64_t *to)
{
  for (; bits != 0; bits &= bits - 1) *to++ = from[__builtin_ctz(bits)];
}

#endif
#endif
