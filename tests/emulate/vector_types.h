/* CUDA's short vectors. */
#ifndef MT_EMULATE_VECTOR_TYPES_H
#define MT_EMULATE_VECTOR_TYPES_H

#define MT_VECTORS(T, name, bytes)                                         \
  struct name##1                                                           \
  {                                                                        \
    T x;                                                                   \
  };                                                                       \
  struct __attribute__((aligned(bytes * 2))) name##2                       \
  {                                                                        \
    T x, y;                                                                \
  };                                                                       \
  struct name##3                                                           \
  {                                                                        \
    T x, y, z;                                                             \
  };                                                                       \
  struct __attribute__((aligned(bytes * 4 < 16 ? bytes * 4 : 16))) name##4 \
  {                                                                        \
    T x, y, z, w;                                                          \
  };                                                                       \
  static inline name##1 make_##name##1(T x)                                \
  {                                                                        \
    return name##1 {x};                                                    \
  }                                                                        \
  static inline name##2 make_##name##2(T x, T y)                           \
  {                                                                        \
    return name##2 {x, y};                                                 \
  }                                                                        \
  static inline name##3 make_##name##3(T x, T y, T z)                      \
  {                                                                        \
    return name##3 {x, y, z};                                              \
  }                                                                        \
  static inline name##4 make_##name##4(T x, T y, T z, T w)                 \
  {                                                                        \
    return name##4 {x, y, z, w};                                           \
  }
MT_VECTORS(signed char, char, 1)
MT_VECTORS(unsigned char, uchar, 1)
MT_VECTORS(short, short, 2)
MT_VECTORS(unsigned short, ushort, 2)
MT_VECTORS(int, int, 4)
MT_VECTORS(float, float, 4)
MT_VECTORS(double, double, 8)
MT_VECTORS(long long, longlong, 8)
MT_VECTORS(unsigned long long, ulonglong, 8)
#undef MT_VECTORS
struct uint1 {
  unsigned x;
};
struct __attribute__((aligned(8))) uint2 {
  unsigned x, y;
};
struct __attribute__((aligned(16))) uint4 {
  unsigned x, y, z, w;
};
static inline uint2 make_uint2(unsigned x, unsigned y)
{
  return uint2{x, y};
}
static inline uint3 make_uint3(unsigned x, unsigned y, unsigned z)
{
  return uint3{x, y, z};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
  return uint4{x, y, z, w};
}

#endif
