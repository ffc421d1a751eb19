/* 16 floats at a time, in three ways: AVX-512, AVX2 with FMA, and plain C. The first two
 * give the same bits: every multiply-add is one FMA, and sums over the 16 lanes go by
 * halves (8 + 8, 4 + 4, 2 + 2, 1 + 1). Plain C follows the same order but rounds the
 * product where the machine has no FMA. Pointers are aligned to 64 bytes unless the name
 * ends in u. */
#ifndef MT_LDA_VECTOR_H
#define MT_LDA_VECTOR_H
#include "base/vectors.h"

#include <stdint.h>
#include <string.h>

/* 16 unsigned numbers of 32 bits, each in the lower half of 64: the upper halves are
 * anything. The parts are as wide as the machine's vectors. */
#if defined(__AVX512F__)
enum { U_LANES = 8 };
#else
enum { U_LANES = 4 };
#endif
typedef uint64_t vu __attribute__((vector_size(8 * U_LANES)));
typedef struct v16u {
  vu part[16 / U_LANES];
} v16u;
#define U_PARTS(p) _Pragma("GCC unroll 4") for (int p = 0; p < 16 / U_LANES; p++)

MT_INLINE v16u u_set(uint32_t a)
{
  v16u x;
  U_PARTS(p) x.part[p] = (vu){0} + a;
  return x;
}
MT_INLINE v16u u_count(uint64_t first) /* first, first + 1, ..., with upper halves */
{
  static const uint64_t lane[16] = {0, 1, 2,  3,  4,  5,  6,  7,
                                    8, 9, 10, 11, 12, 13, 14, 15};
  v16u x;
  memcpy(&x, lane, sizeof x);
  U_PARTS(p) x.part[p] += first;
  return x;
}
MT_INLINE v16u u_xor3(v16u x, v16u y, uint32_t z)
{
  U_PARTS(p) x.part[p] ^= y.part[p] ^ z;
  return x;
}
MT_INLINE v16u u_upper(v16u x) /* the upper halves */
{
  U_PARTS(p) x.part[p] >>= 32;
  return x;
}

#if defined(__AVX512F__)
#include <immintrin.h>

typedef __m512 v16;

MT_INLINE v16 v_set(float a)
{
  return _mm512_set1_ps(a);
}
MT_INLINE v16 v_load(const float *p)
{
  return _mm512_load_ps(p);
}
MT_INLINE void v_store(float *p, v16 a)
{
  _mm512_store_ps(p, a);
}
MT_INLINE v16 v_add(v16 a, v16 b)
{
  return _mm512_add_ps(a, b);
}
MT_INLINE v16 v_sub(v16 a, v16 b)
{
  return _mm512_sub_ps(a, b);
}
MT_INLINE v16 v_mul(v16 a, v16 b)
{
  return _mm512_mul_ps(a, b);
}
MT_INLINE v16 v_div(v16 a, v16 b)
{
  return _mm512_div_ps(a, b);
}
MT_INLINE v16 v_sqrt(v16 a)
{
  return _mm512_sqrt_ps(a);
}
MT_INLINE v16 v_fma(v16 a, v16 b, v16 c)
{
  return _mm512_fmadd_ps(a, b, c);
} /* ab + c */
MT_INLINE v16 v_abs(v16 a)
{
  return _mm512_abs_ps(a);
}
/* a < b ? x : 0 */
MT_INLINE v16 v_below(v16 a, v16 b, v16 x)
{
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), x);
}
/* Bit i: whether a[i] < b[i]. */
MT_INLINE uint32_t v_which_below(v16 a, v16 b)
{
  return _cvtmask16_u32(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ));
}

/* Of 16 numbers of 32 bits those whose bit is set, to `to` on; anything behind them. Neither
 * need be aligned. */
MT_INLINE void v_pack(void *to, uint32_t which, const void *from)
{
  __m512i all = _mm512_loadu_si512(from);
  _mm512_storeu_si512(to, _mm512_maskz_compress_epi32((__mmask16)which, all));
}

/* The bits of a, plus the bits of b moved left by `left`. */
MT_INLINE v16 v_bits_add_left(v16 a, v16 b, int left)
{
  __m512i moved = _mm512_slli_epi32(_mm512_castps_si512(b), (unsigned)left);
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), moved));
}

/* Exponent of a positive normal float: a = 2^exponent x significand in [1, 2). */
MT_INLINE v16 v_exponent(v16 a)
{
  __m512i e = _mm512_srli_epi32(_mm512_castps_si512(a), 23);
  return _mm512_cvtepi32_ps(_mm512_sub_epi32(e, _mm512_set1_epi32(127)));
}

MT_INLINE v16 v_significand(v16 a)
{
  __m512i bits = _mm512_and_si512(_mm512_castps_si512(a), _mm512_set1_epi32(0x7fffff));
  return _mm512_castsi512_ps(_mm512_or_si512(bits, _mm512_set1_epi32(0x3f800000)));
}

MT_INLINE float v_sum(v16 a)
{
  __m256 half =
      _mm256_add_ps(_mm512_castps512_ps256(a),
                    _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a), 1)));
  __m128 four =
      _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

MT_INLINE v16 v_fold8(v16 a, v16 b)
{
  return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44),
                       _mm512_shuffle_f32x4(a, b, 0xee));
}

MT_INLINE v16 v_fold4(v16 a, v16 b)
{
  return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88),
                       _mm512_shuffle_f32x4(a, b, 0xdd));
}

/* Lane i of the result: the sum of the lanes of rows[i]. Rows from n on are 0, and cost
 * nothing where n is a constant. */
MT_INLINE v16 v_sums(const int n, const v16 rows[16])
{
  v16 q[4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) {
    v16 low = n > j ? v_fold8(rows[j], rows[j + 4]) : v_set(0.0f);
    v16 high = n > j + 8 ? v_fold8(rows[j + 8], rows[j + 12]) : v_set(0.0f);
    q[j] = n > j ? v_fold4(low, high) : v_set(0.0f);
  }
  v16 low =
      _mm512_add_ps(_mm512_unpacklo_ps(q[0], q[1]), _mm512_unpackhi_ps(q[0], q[1]));
  v16 high =
      _mm512_add_ps(_mm512_unpacklo_ps(q[2], q[3]), _mm512_unpackhi_ps(q[2], q[3]));
  return _mm512_add_ps(_mm512_shuffle_ps(low, high, 0x44),
                       _mm512_shuffle_ps(low, high, 0xee));
}

/* Rows become columns. */
MT_INLINE void v_transpose(v16 r[16])
{
  v16 t[16], u[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    u[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
    u[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
    u[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    u[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; i++) {
    v16 a = _mm512_shuffle_f32x4(u[i], u[i + 4], 0x88),
        b = _mm512_shuffle_f32x4(u[i + 8], u[i + 12], 0x88);
    v16 c = _mm512_shuffle_f32x4(u[i], u[i + 4], 0xdd),
        d = _mm512_shuffle_f32x4(u[i + 8], u[i + 12], 0xdd);
    r[i] = _mm512_shuffle_f32x4(a, b, 0x88);
    r[i + 8] = _mm512_shuffle_f32x4(a, b, 0xdd);
    r[i + 4] = _mm512_shuffle_f32x4(c, d, 0x88);
    r[i + 12] = _mm512_shuffle_f32x4(c, d, 0xdd);
  }
}

/* The 64-bit products of the lower halves. */
MT_INLINE v16u u_mul(v16u x, uint32_t y)
{
  U_PARTS(p)
  x.part[p] = (vu)_mm512_mul_epu32((__m512i)x.part[p], _mm512_set1_epi64(y));
  return x;
}
/* The upper 24 bits of the lower halves as numbers in (0, 1). */
MT_INLINE v16 u_unit(v16u x)
{
  __m256i a = _mm512_cvtepi64_epi32((__m512i)x.part[0]);
  __m256i b = _mm512_cvtepi64_epi32((__m512i)x.part[1]);
  __m512i low = _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
  v16 upper = _mm512_cvtepi32_ps(_mm512_srli_epi32(low, 8));
  return _mm512_fmadd_ps(upper, _mm512_set1_ps(0x1p-24f), _mm512_set1_ps(0x1p-25f));
}

#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

typedef struct v16 {
  __m256 a, b; /* lanes 0-7, 8-15 */
} v16;

MT_INLINE v16 v_set(float a)
{
  return (v16){_mm256_set1_ps(a), _mm256_set1_ps(a)};
}
MT_INLINE v16 v_load(const float *p)
{
  return (v16){_mm256_load_ps(p), _mm256_load_ps(p + 8)};
}
MT_INLINE void v_store(float *p, v16 x)
{
  _mm256_store_ps(p, x.a);
  _mm256_store_ps(p + 8, x.b);
}
MT_INLINE v16 v_add(v16 x, v16 y)
{
  return (v16){_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}
MT_INLINE v16 v_sub(v16 x, v16 y)
{
  return (v16){_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}
MT_INLINE v16 v_mul(v16 x, v16 y)
{
  return (v16){_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}
MT_INLINE v16 v_div(v16 x, v16 y)
{
  return (v16){_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
}
MT_INLINE v16 v_sqrt(v16 x)
{
  return (v16){_mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)};
}
MT_INLINE v16 v_fma(v16 x, v16 y, v16 z)
{
  return (v16){_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
MT_INLINE v16 v_abs(v16 x)
{
  __m256 sign = _mm256_set1_ps(-0.0f);
  return (v16){_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
}
MT_INLINE v16 v_below(v16 x, v16 y, v16 z)
{
  return (v16){_mm256_and_ps(_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), z.a),
               _mm256_and_ps(_mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ), z.b)};
}
MT_INLINE uint32_t v_which_below(v16 x, v16 y)
{
  int a = _mm256_movemask_ps(_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ));
  int b = _mm256_movemask_ps(_mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ));
  return (uint32_t)a | (uint32_t)b << 8;
}

MT_INLINE __m256 half_bits_add_left(__m256 a, __m256 b, int left)
{
  __m256i moved = _mm256_slli_epi32(_mm256_castps_si256(b), left);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), moved));
}
MT_INLINE v16 v_bits_add_left(v16 x, v16 y, int left)
{
  return (v16){half_bits_add_left(x.a, y.a, left), half_bits_add_left(x.b, y.b, left)};
}

MT_INLINE __m256 half_exponent(__m256 a)
{
  __m256i e = _mm256_srli_epi32(_mm256_castps_si256(a), 23);
  return _mm256_cvtepi32_ps(_mm256_sub_epi32(e, _mm256_set1_epi32(127)));
}
MT_INLINE v16 v_exponent(v16 x)
{
  return (v16){half_exponent(x.a), half_exponent(x.b)};
}

MT_INLINE __m256 half_significand(__m256 a)
{
  __m256i bits = _mm256_and_si256(_mm256_castps_si256(a), _mm256_set1_epi32(0x7fffff));
  return _mm256_castsi256_ps(_mm256_or_si256(bits, _mm256_set1_epi32(0x3f800000)));
}
MT_INLINE v16 v_significand(v16 x)
{
  return (v16){half_significand(x.a), half_significand(x.b)};
}

MT_INLINE float v_sum(v16 x)
{
  __m256 half = _mm256_add_ps(x.a, x.b);
  __m128 four =
      _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

/* Lanes 0-3: x's four sums of halves, 4-7: y's. */
MT_INLINE __m256 half_fold(v16 x, v16 y)
{
  __m256 p = _mm256_add_ps(x.a, x.b), q = _mm256_add_ps(y.a, y.b);
  return _mm256_add_ps(_mm256_permute2f128_ps(p, q, 0x20),
                       _mm256_permute2f128_ps(p, q, 0x31));
}

MT_INLINE __m256 half_sums(const v16 *r) /* of rows 0-3 and 4-7 */
{
  __m256 q[4];
  for (int j = 0; j < 4; j++) q[j] = half_fold(r[j], r[j + 4]);
  __m256 low =
      _mm256_add_ps(_mm256_unpacklo_ps(q[0], q[1]), _mm256_unpackhi_ps(q[0], q[1]));
  __m256 high =
      _mm256_add_ps(_mm256_unpacklo_ps(q[2], q[3]), _mm256_unpackhi_ps(q[2], q[3]));
  return _mm256_add_ps(_mm256_shuffle_ps(low, high, 0x44),
                       _mm256_shuffle_ps(low, high, 0xee));
}
MT_INLINE v16 v_sums(const int n, const v16 rows[16])
{
  return (v16){half_sums(rows), n > 8 ? half_sums(rows + 8) : _mm256_setzero_ps()};
}

MT_INLINE void transpose8(__m256 r[8])
{
  __m256 t[8], u[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; i++) {
    r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
  }
}

MT_INLINE void v_transpose(v16 r[16])
{
  __m256 aa[8], ab[8], ba[8], bb[8];
  for (int i = 0; i < 8; i++)
    aa[i] = r[i].a, ab[i] = r[i].b, ba[i] = r[i + 8].a, bb[i] = r[i + 8].b;
  transpose8(aa);
  transpose8(ab);
  transpose8(ba);
  transpose8(bb);
  for (int i = 0; i < 8; i++)
    r[i] = (v16){aa[i], ba[i]}, r[i + 8] = (v16){ab[i], bb[i]};
}

MT_INLINE v16u u_mul(v16u x, uint32_t y)
{
  U_PARTS(p)
  x.part[p] = (vu)_mm256_mul_epu32((__m256i)x.part[p], _mm256_set1_epi64x(y));
  return x;
}
MT_INLINE __m256 half_unit(vu x, vu y)
{
  __m256i pairs = (__m256i)_mm256_shuffle_ps((__m256)x, (__m256)y, 0x88);
  __m256i low = _mm256_permute4x64_epi64(pairs, 0xd8);
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_srli_epi32(low, 8)),
                         _mm256_set1_ps(0x1p-24f), _mm256_set1_ps(0x1p-25f));
}
MT_INLINE v16 u_unit(v16u x)
{
  return (v16){half_unit(x.part[0], x.part[1]), half_unit(x.part[2], x.part[3])};
}

#else
#include <math.h>

typedef float v16 __attribute__((vector_size(64)));
typedef int32_t v16i __attribute__((vector_size(64)));
typedef uint32_t v16bits __attribute__((vector_size(64)));

MT_INLINE v16 v_set(float a)
{
  return (v16){a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a};
}
MT_INLINE v16 v_load(const float *p)
{
  return *(const v16 *)p;
}
MT_INLINE void v_store(float *p, v16 x)
{
  *(v16 *)p = x;
}
MT_INLINE v16 v_add(v16 x, v16 y)
{
  return x + y;
}
MT_INLINE v16 v_sub(v16 x, v16 y)
{
  return x - y;
}
MT_INLINE v16 v_mul(v16 x, v16 y)
{
  return x * y;
}
MT_INLINE v16 v_div(v16 x, v16 y)
{
  return x / y;
}
MT_INLINE v16 v_sqrt(v16 x)
{
  for (int i = 0; i < 16; i++) x[i] = sqrtf(x[i]);
  return x;
}
#ifdef __FP_FAST_FMAF
MT_INLINE v16 v_fma(v16 x, v16 y, v16 z)
{
  for (int i = 0; i < 16; i++) z[i] = __builtin_fmaf(x[i], y[i], z[i]);
  return z;
}
#else
MT_INLINE v16 v_fma(v16 x, v16 y, v16 z)
{
  return x * y + z;
}
#endif
MT_INLINE v16 v_abs(v16 x)
{
  return (v16)((v16bits)x & 0x7fffffffu);
}
MT_INLINE v16 v_below(v16 x, v16 y, v16 z)
{
  return (v16)((v16i)(x < y) & (v16i)z);
}
MT_INLINE uint32_t v_which_below(v16 x, v16 y)
{
  uint32_t bits = 0;
  for (int i = 0; i < 16; i++) bits |= (uint32_t)(x[i] < y[i]) << i;
  return bits;
}
MT_INLINE v16 v_bits_add_left(v16 x, v16 y, int left)
{
  return (v16)((v16bits)x + ((v16bits)y << left));
}
MT_INLINE v16 v_exponent(v16 x)
{
  return __builtin_convertvector((v16i)((v16bits)x >> 23) - 127, v16);
}
MT_INLINE v16 v_significand(v16 x)
{
  return (v16)(((v16bits)x & 0x7fffffu) | 0x3f800000u);
}

MT_INLINE float v_sum(v16 x)
{
  float f[16];
  memcpy(f, &x, sizeof f);
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; i++) f[i] += f[i + half];
  return f[0];
}
MT_INLINE v16 v_sums(const int n, const v16 rows[16])
{
  v16 sums = v_set(0.0f);
  for (int i = 0; i < n; i++) sums[i] = v_sum(rows[i]);
  return sums;
}

MT_INLINE void v_transpose(v16 r[16])
{
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < i; j++) {
      float held = r[i][j];
      r[i][j] = r[j][i];
      r[j][i] = held;
    }
}

MT_INLINE v16u u_mul(v16u x, uint32_t y)
{
  U_PARTS(p) x.part[p] = (x.part[p] & 0xffffffff) * y;
  return x;
}
MT_INLINE v16 u_unit(v16u x)
{
  v16 upper;
  for (int i = 0; i < 16; i++)
    upper[i] = (float)((uint32_t)x.part[i / U_LANES][i % U_LANES] >> 8);
  return v_fma(upper, v_set(0x1p-24f), v_set(0x1p-25f));
}
#endif

#if !defined(__AVX512F__)
MT_INLINE void v_pack(void *to, uint32_t which, const void *from)
{
  char lanes[16][4], *at = to;
  memcpy(lanes, from, sizeof lanes);
  for (; which != 0; which &= which - 1, at += 4)
    memcpy(at, lanes[__builtin_ctz(which)], 4);
}
#endif

#endif
