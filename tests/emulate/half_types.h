/* The two 16-bit floating-point types of CUDA: IEEE's half and bfloat16. Conversions round to
 * nearest even; sums and products are made in float and rounded once more, which gives what
 * one rounding does. */
#ifndef MT_EMULATE_HALF_TYPES_H
#define MT_EMULATE_HALF_TYPES_H
#include "cuda_runtime.h"

/* bits: of the fraction; largest exponent: of a finite value */
template <int FRACTION, int EXPONENT> struct mt_short_float {
  uint16_t bits;
  mt_short_float() = default;
  mt_short_float(float value)
  {
    enum { BIAS = (1 << (EXPONENT - 1)) - 1 };
    uint32_t u = mt_emulate_value<uint32_t>(mt_emulate_bits(value));
    uint32_t sign = u >> 31 << 15, size = u & 0x7fffffffu;
    const uint32_t infinite = ((1u << EXPONENT) - 1) << FRACTION;
    int exponent = (int)(size >> 23) - 127;
    if (size > 0x7f800000u) {
      bits = 0x7fff;
    } else if (exponent > BIAS) {
      bits = (uint16_t)(sign | infinite);
    } else {
      /* as an integer in units of the last place, rounded to even */
      int unit = (exponent < 1 - BIAS ? 1 - BIAS : exponent) - FRACTION;
      float scaled = rintf(ldexpf(mt_emulate_value<float>(size), -unit));
      int stored = exponent < 1 - BIAS ? 0 : exponent + BIAS - 1;
      bits = (uint16_t)(sign | (((uint32_t)stored << FRACTION) + (uint32_t)scaled));
    }
  }
  operator float() const
  {
    enum { BIAS = (1 << (EXPONENT - 1)) - 1 };
    int exponent = bits >> FRACTION & ((1 << EXPONENT) - 1);
    int fraction = bits & ((1 << FRACTION) - 1);
    float size;
    if (exponent == (1 << EXPONENT) - 1)
      size = fraction == 0 ? INFINITY : NAN;
    else
      size = ldexpf((float)(exponent == 0 ? fraction : fraction | 1 << FRACTION),
                    (exponent == 0 ? 1 : exponent) - BIAS - FRACTION);
    return bits >> 15 ? -size : size;
  }
};

#endif
