#ifndef MT_EMULATE_CUDA_BF16_H
#define MT_EMULATE_CUDA_BF16_H
#include "half_types.h"

typedef mt_short_float<7, 8> __nv_bfloat16;
typedef __nv_bfloat16 nv_bfloat16;
struct __attribute__((aligned(4))) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

static inline __nv_bfloat16 __float2bfloat16_rn(float a)
{
  return __nv_bfloat16(a);
}
static inline __nv_bfloat16 __float2bfloat16(float a)
{
  return __nv_bfloat16(a);
}
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 a)
{
  return a.bits;
}
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits)
{
  return mt_emulate_value<__nv_bfloat16>(bits);
}
static inline float __bfloat162float(__nv_bfloat16 a)
{
  return a;
}

#endif
