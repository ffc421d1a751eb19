#ifndef MT_EMULATE_CUDA_FP16_H
#define MT_EMULATE_CUDA_FP16_H
#include "half_types.h"

typedef mt_short_float<10, 5> __half;
typedef __half half;
struct __attribute__((aligned(4))) __half2 {
  __half x, y;
};
typedef __half2 half2;

static inline __half __float2half_rn(float a)
{
  return __half(a);
}
static inline __half __float2half(float a)
{
  return __half(a);
}
static inline float __half2float(__half a)
{
  return a;
}
static inline unsigned short __half_as_ushort(__half a)
{
  return a.bits;
}
static inline __half __ushort_as_half(unsigned short bits)
{
  return mt_emulate_value<__half>(bits);
}
static inline __half __hadd(__half a, __half b)
{
  return __half((float)a + (float)b);
}
static inline __half __hsub(__half a, __half b)
{
  return __half((float)a - (float)b);
}
static inline __half __hmul(__half a, __half b)
{
  return __half((float)a * (float)b);
}
static inline __half2 __halves2half2(__half a, __half b)
{
  return __half2{a, b};
}
static inline __half2 __floats2half2_rn(float a, float b)
{
  return __half2{__half(a), __half(b)};
}
static inline __half2 make_half2(__half a, __half b)
{
  return __half2{a, b};
}
static inline float2 __half22float2(__half2 a)
{
  return float2{a.x, a.y};
}
static inline float __low2float(__half2 a)
{
  return a.x;
}
static inline float __high2float(__half2 a)
{
  return a.y;
}

#endif
