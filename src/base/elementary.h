/* exp and pow in float that gcc and nvcc compute with the same bits: libm's differ. As glibc's
 * expf and powf: short tables in double, polynomials between their entries, + - * and moves
 * of bits alone.
 * Accuracy   0.51 units in the last place, also where the result is subnormal (|y| <= 16)
 * Special    0, infinity, overflow and NaN as libm's; pow: x >= 0, y > 0 */
#ifndef MT_BASE_ELEMENTARY_H
#define MT_BASE_ELEMENTARY_H
#include "base/both.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Tables, and sums that vectors of double compute likewise (umap/kernel_body.h): macros, for
 * any of these types. */
/* 2^(i / 32) */
#define MT_EXP2_POWERS                                                    \
  {                                                                       \
    0x1.0000000000000p+0, 0x1.059b0d3158574p+0, 0x1.0b5586cf9890fp+0,     \
        0x1.11301d0125b51p+0, 0x1.172b83c7d517bp+0, 0x1.1d4873168b9aap+0, \
        0x1.2387a6e756238p+0, 0x1.29e9df51fdee1p+0, 0x1.306fe0a31b715p+0, \
        0x1.371a7373aa9cbp+0, 0x1.3dea64c123422p+0, 0x1.44e086061892dp+0, \
        0x1.4bfdad5362a27p+0, 0x1.5342b569d4f82p+0, 0x1.5ab07dd485429p+0, \
        0x1.6247eb03a5585p+0, 0x1.6a09e667f3bcdp+0, 0x1.71f75e8ec5f74p+0, \
        0x1.7a11473eb0187p+0, 0x1.82589994cce13p+0, 0x1.8ace5422aa0dbp+0, \
        0x1.93737b0cdc5e5p+0, 0x1.9c49182a3f090p+0, 0x1.a5503b23e255dp+0, \
        0x1.ae89f995ad3adp+0, 0x1.b7f76f2fb5e47p+0, 0x1.c199bdd85529cp+0, \
        0x1.cb720dcef9069p+0, 0x1.d5818dcfba487p+0, 0x1.dfc97337b9b5fp+0, \
        0x1.ea4afa2a490dap+0, 0x1.f50765b6e4540p+0                        \
  }
/* of 16 pieces of [0.70, 1.40), and the logarithms of what they are the inverses of */
#define MT_LOG2_INVERSES                                                  \
  {                                                                       \
    0x1.664a9a107d803p+0, 0x1.57455f4b26c3ap+0, 0x1.4975b2a2437f6p+0,     \
        0x1.3cb7a18a04835p+0, 0x1.30ec95b5e1348p+0, 0x1.25fa5e6e129ffp+0, \
        0x1.1bca6d4537b72p+0, 0x1.12493a1c9da40p+0, 0x1.0965c5885a559p+0, \
        0x1.0000000000000p+0, 0x1.e5e0e14a3f1d6p-1, 0x1.caa7107694bd9p-1, \
        0x1.b2516ae04a6d9p-1, 0x1.9c6fe8c0c290cp-1, 0x1.88a80b5573e46p-1, \
        0x1.76afec47f4b75p-1                                              \
  }
#define MT_LOG2_LOGS                                                                   \
  {                                                                                    \
    -0x1.f0a1210c29442p-2, -0x1.b15c6b0a1fc5dp-2, -0x1.74b185a2b00c7p-2,               \
        -0x1.3a6bd06230596p-2, -0x1.025cacb3a936dp-2, -0x1.98b53871cbf04p-3,           \
        -0x1.30810e2cd8604p-3, -0x1.97b487fcff074p-4, -0x1.aa136d98aa903p-5, 0x0.0p+0, \
        0x1.35723d4dad3ccp-4, 0x1.451a87a6dc746p-3, 0x1.e62dbf0deb109p-3,              \
        0x1.3f74f152fb3f2p-2, 0x1.8810ba7906b7bp-2, 0x1.cd44a19e97bd4p-2               \
  }
/* 2^r, r2 = r r: minimax of (2^r - 1) / r. */
#define MT_EXP2_SUM(r, r2)          \
  ((1.0 + (r)*0.6931471805270526) + \
   (r2) * (0.24022845225896677 + (r)*0.05550456892069538))
/* whole + log2(1 + r), r2 = r r: minimax of log2(1 + r) / r. */
#define MT_LOG2_SUM(whole, r, r2)                            \
  (((whole) + (r)*1.442694963099779) +                       \
   (r2) * ((-0.7213473837361303 + (r)*0.48123401091446055) + \
           (r2) * -0.36104472702422746))
#define MT_EXP2_MAGIC 0x1.8p47   /* 1.5 x 2^52 / 32 */
#define MT_LOG2_LEAST 0x3f330000 /* bits of the least z */

/* 2^z: z = n / 32 + r; n comes out in the last bits of a sum with MT_EXP2_MAGIC. */
MT_BOTH float mt_exp2(double z)
{
  static const double powers[32] = MT_EXP2_POWERS;
  int64_t bits, n;
  if (!(z > -1000.0 && z < 1000.0)) return z < 0.0 ? 0.0f : (float)(z + 1e39);
  double shifted = z + MT_EXP2_MAGIC, r = z - (shifted - MT_EXP2_MAGIC);
  memcpy(&bits, &shifted, sizeof bits);
  n = (int64_t)((uint64_t)bits << 32) >> 32; /* the low half, with its sign */
  memcpy(&bits, &powers[n & 31], sizeof bits);
  bits += (n >> 5) * ((int64_t)1 << 52);
  double power;
  memcpy(&power, &bits, sizeof power);
  double r2 = r * r;
  return (float)(power * MT_EXP2_SUM(r, r2));
}

/* Base-2 logarithm of x >= 0: x = 2^e z, z from 0.70 to 1.40; z inverse = 1 + r. */
MT_BOTH double mt_log2(float x)
{
  static const double inverses[16] = MT_LOG2_INVERSES;
  static const double logs[16] = MT_LOG2_LOGS;
  int32_t bits, below = 0;
  float z;
  if (!(x >= 0x1p-126f && x < INFINITY)) {
    if (!(x > 0.0f && x < INFINITY)) return x == 0.0f ? -INFINITY : (double)(x + x);
    x *= 0x1p24f; /* subnormal */
    below = 24;
  }
  memcpy(&bits, &x, sizeof bits);
  int32_t past = bits - MT_LOG2_LEAST, e = past >> 23, i = past >> 19 & 15;
  bits -= e * 0x800000;
  memcpy(&z, &bits, sizeof z);
  double r = (double)z * inverses[i] - 1.0, r2 = r * r;
  return MT_LOG2_SUM((double)(e - below) + logs[i], r, r2);
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
