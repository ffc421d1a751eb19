/* exp and pow in float that gcc and nvcc compute with the same bits: libm's differ. + - * and
 * moves of bits alone, no branch, so that loops of them become vectors.
 * Accuracy   2 units in the last place, also where the result is subnormal; pow for |y| <= 16
 * Special    0, infinity, overflow and NaN as libm's; pow: x >= 0, y > 0 */
#ifndef MT_BASE_ELEMENTARY_H
#define MT_BASE_ELEMENTARY_H
#include "base/both.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

MT_BOTH float mt_float_of_bits(int32_t bits)
{
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* 2^n, n from -126 to 127. */
MT_BOTH float mt_power_of_two(int32_t n)
{
  return mt_float_of_bits((int32_t)((uint32_t)(n + 127) << 23));
}

/* 2^z. The nearest integer of z comes out in the last bits of a sum with 1.5 x 2^52; the
 * rest, at most 1/2, goes through a polynomial (minimax of (2^f - 1) / f, to 2e-9). */
MT_BOTH float mt_exp2(double z)
{
  const double magic = 6755399441055744.0;
  double inside = z < -160.0 ? -160.0 : z; /* NaN stays */
  inside = inside > 130.0 ? 130.0 : inside;
  double shifted = inside + magic;
  int64_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  int32_t n = (int32_t)bits, half = n >> 1;
  float f = (float)(inside - (shifted - magic)), f2 = f * f;
  float low = 1.0f + f * 0.693147203f, middle = 0.240226479f + f * 0.0555033247f;
  float high = 0.00961843736f + f * 0.00133988745f + f2 * 0.000153533629f;
  float power = low + f2 * (middle + f2 * high);
  return power * mt_power_of_two(half) * mt_power_of_two(n - half);
}

/* Base-2 logarithm of x >= 0: x = 2^e (1 + t), t from sqrt(1/2) - 1 to sqrt(2) - 1;
 * ln(1 + t) = t - t^2 / 2 + t^3 P(t) (minimax, to 6e-9). */
MT_BOTH double mt_log2(float x)
{
  const int32_t root_half = 0x3f3504f3;
  const double log2_e = 1.4426950408889634;
  int32_t bits;
  if (!(x > 0.0f && x < INFINITY)) return x == 0.0f ? -INFINITY : (double)(x + x);
  float normal = x < 0x1p-126f ? x * 0x1p24f : x;
  memcpy(&bits, &normal, sizeof bits);
  int32_t e = (bits - root_half) >> 23;
  float t = mt_float_of_bits(bits - e * 0x800000) - 1.0f, t2 = t * t;
  float p0 = 0.333333317f + t * -0.25000821f, p1 = 0.200012256f + t * -0.166233584f;
  float p2 = 0.142017873f + t * -0.131602047f, p3 = 0.127613868f + t * -0.07634197f;
  float rest = t * t2 * ((p0 + t2 * p1) + t2 * t2 * (p2 + t2 * p3));
  double wide = t;
  double log_t = wide - 0.5 * (wide * wide) + rest;
  return (double)(x < 0x1p-126f ? e - 24 : e) + log_t * log2_e;
}

MT_BOTH float mt_exp(float x)
{
  return mt_exp2((double)x * 1.4426950408889634);
}

MT_BOTH float mt_pow(float x, float y)
{
  return mt_exp2((double)y * mt_log2(x));
}

#endif
