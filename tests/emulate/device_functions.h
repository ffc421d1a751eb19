/* CUDA's device functions on the CPU. Atomics are plain: one thread runs at a time. */
#ifndef MT_EMULATE_DEVICE_FUNCTIONS_H
#define MT_EMULATE_DEVICE_FUNCTIONS_H

template <class T> struct mt_same {
  typedef T type;
};
template <class T> using mt_as = typename mt_same<T>::type; /* not deduced */

/* ---- waiting for other threads ------------------------------------------------------------- */

static inline void __syncthreads(void)
{
  mt_emulate_barrier(false, nullptr);
}
static inline int __syncthreads_count(int predicate)
{
  return mt_emulate_barrier(predicate != 0, nullptr);
}
static inline int __syncthreads_or(int predicate)
{
  return mt_emulate_barrier(predicate != 0, nullptr) > 0;
}
static inline int __syncthreads_and(int predicate)
{
  bool all;
  mt_emulate_barrier(predicate != 0, &all);
  return all;
}
static inline void __threadfence(void) {}
static inline void __threadfence_block(void) {}
static inline void __threadfence_system(void) {}
static inline void __nanosleep(unsigned) {}
[[noreturn]] static inline void __trap(void)
{
  abort();
}

/* ---- warps ------------------------------------------------------------------------------------ */

static inline unsigned __activemask(void)
{
  return mt_emulate_live_lanes();
}

template <class T> static inline uint64_t mt_emulate_bits(T value)
{
  static_assert(sizeof(T) <= sizeof(uint64_t), "warp functions take up to 8 bytes");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T> static inline T mt_emulate_value(uint64_t bits)
{
  T value;
  memcpy((void *)&value, &bits, sizeof value);
  return value;
}

static inline uint64_t mt_warp_nothing(const mt_emulated_lanes *, int)
{
  return 0;
}
static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
  mt_emulate_warp("__syncwarp", mask, mt_warp_nothing, 0, 0);
}

static inline uint64_t mt_warp_ballot(const mt_emulated_lanes *lanes, int)
{
  uint64_t mask = 0;
  for (int i = 0; i < 32; i++)
    if (lanes->present >> i & 1 && lanes->value[i]) mask |= 1u << i;
  return mask;
}
static inline unsigned __ballot_sync(unsigned mask, int predicate)
{
  return (unsigned)mt_emulate_warp("__ballot_sync", mask, mt_warp_ballot,
                                   predicate != 0, 0);
}
static inline int __any_sync(unsigned mask, int predicate)
{
  return mt_emulate_warp("__any_sync", mask, mt_warp_ballot, predicate != 0, 0) != 0;
}
static inline uint64_t mt_warp_all(const mt_emulated_lanes *lanes, int lane)
{
  return mt_warp_ballot(lanes, lane) == lanes->present;
}
static inline int __all_sync(unsigned mask, int predicate)
{
  return mt_emulate_warp("__all_sync", mask, mt_warp_all, predicate != 0, 0) != 0;
}

static inline uint64_t mt_warp_match(const mt_emulated_lanes *lanes, int lane)
{
  uint64_t mask = 0;
  for (int i = 0; i < 32; i++)
    if (lanes->present >> i & 1 && lanes->value[i] == lanes->value[lane])
      mask |= 1u << i;
  return mask;
}
template <class T> static inline unsigned __match_any_sync(unsigned mask, T value)
{
  return (unsigned)mt_emulate_warp("__match_any_sync", mask, mt_warp_match,
                                   mt_emulate_bits(value), 0);
}

/* The value of the lane that each lane's argument names. From one that does not take part
 * CUDA gives anything: here 0xDBDB... */
static inline uint64_t mt_warp_shuffle(const mt_emulated_lanes *lanes, int lane)
{
  int from = lanes->argument[lane];
  return lanes->present >> from & 1 ? lanes->value[from] : 0xDBDBDBDBDBDBDBDBu;
}
static inline int mt_emulate_lane(void)
{
  return (int)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) %
               32);
}
template <class T>
static inline T mt_emulate_shuffle(const char *what, unsigned mask, T value, int from)
{
  return mt_emulate_value<T>(
      mt_emulate_warp(what, mask, mt_warp_shuffle, mt_emulate_bits(value), from));
}
template <class T>
static inline T __shfl_sync(unsigned mask, T value, int from, int width = 32)
{
  int first = mt_emulate_lane() & ~(width - 1);
  return mt_emulate_shuffle("__shfl_sync", mask, value, first + (from & (width - 1)));
}
template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32)
{
  int lane = mt_emulate_lane(), from = lane - (int)delta;
  return mt_emulate_shuffle("__shfl_up_sync", mask, value,
                            from < (lane & ~(width - 1)) ? lane : from);
}
template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32)
{
  int lane = mt_emulate_lane(), from = lane + (int)delta;
  return mt_emulate_shuffle("__shfl_down_sync", mask, value,
                            from > (lane | (width - 1)) ? lane : from);
}
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32)
{
  int lane = mt_emulate_lane(), from = lane ^ bits;
  return mt_emulate_shuffle("__shfl_xor_sync", mask, value,
                            from > (lane | (width - 1)) ? lane : from);
}

/* int and unsigned, as CUDA's */
#define MT_REDUCE(T, name, first, expression)                                \
  static inline uint64_t mt_warp_##name(const mt_emulated_lanes *lanes, int) \
  {                                                                          \
    T a = first;                                                             \
    for (int i = 0; i < 32; i++) {                                           \
      if (!(lanes->present >> i & 1)) continue;                              \
      T b = mt_emulate_value<T>(lanes->value[i]);                            \
      a = expression;                                                        \
    }                                                                        \
    return mt_emulate_bits(a);                                               \
  }
MT_REDUCE(unsigned, add, 0, a + b)
MT_REDUCE(unsigned, and, ~0u, a &b)
MT_REDUCE(unsigned, or, 0, a | b)
MT_REDUCE(unsigned, xor, 0, a ^ b)
MT_REDUCE(unsigned, min_u, ~0u, b < a ? b : a)
MT_REDUCE(unsigned, max_u, 0, b > a ? b : a)
MT_REDUCE(int, min_i, INT32_MAX, b < a ? b : a)
MT_REDUCE(int, max_i, INT32_MIN, b > a ? b : a)
#undef MT_REDUCE
#define MT_REDUCE(T, name, answer)                                                  \
  static inline T __reduce_##name##_sync(unsigned mask, T value)                    \
  {                                                                                 \
    return mt_emulate_value<T>(mt_emulate_warp("__reduce_" #name "_sync", mask,     \
                                               answer, mt_emulate_bits(value), 0)); \
  }
MT_REDUCE(unsigned, add, mt_warp_add)
MT_REDUCE(int, add, mt_warp_add)
MT_REDUCE(unsigned, and, mt_warp_and)
MT_REDUCE(unsigned, or, mt_warp_or)
MT_REDUCE(unsigned, xor, mt_warp_xor)
MT_REDUCE(unsigned, min, mt_warp_min_u)
MT_REDUCE(unsigned, max, mt_warp_max_u)
MT_REDUCE(int, min, mt_warp_min_i)
MT_REDUCE(int, max, mt_warp_max_i)
#undef MT_REDUCE

/* ---- atomics: each returns what was there ------------------------------------------------------- */

#define MT_ATOMIC(name, expression)                                      \
  template <class T> static inline T name(T *at, mt_as<T> value)         \
  {                                                                      \
    T was = *at;                                                         \
    *at = expression;                                                    \
    return was;                                                          \
  }                                                                      \
  template <class T> static inline T name##_block(T *at, mt_as<T> value) \
  {                                                                      \
    return name(at, value);                                              \
  }
MT_ATOMIC(atomicAdd, was + value)
MT_ATOMIC(atomicSub, was - value)
MT_ATOMIC(atomicMin, value < was ? value : was)
MT_ATOMIC(atomicMax, value > was ? value : was)
MT_ATOMIC(atomicExch, value)
MT_ATOMIC(atomicOr, was | value)
MT_ATOMIC(atomicAnd, was &value)
MT_ATOMIC(atomicXor, was ^ value)
#undef MT_ATOMIC
template <class T> static inline T atomicCAS(T *at, mt_as<T> expected, mt_as<T> value)
{
  T was = *at;
  if (was == expected) *at = value;
  return was;
}

/* ---- loads and stores with a cache's hint -------------------------------------------------------- */

#define MT_LOAD(name)                                  \
  template <class T> static inline T name(const T *at) \
  {                                                    \
    return *at;                                        \
  }
MT_LOAD(__ldg)
MT_LOAD(__ldca)
MT_LOAD(__ldcg)
MT_LOAD(__ldcs)
MT_LOAD(__ldcv)
#undef MT_LOAD
#define MT_STORE(name)                                              \
  template <class T> static inline void name(T *at, mt_as<T> value) \
  {                                                                 \
    *at = value;                                                    \
  }
MT_STORE(__stcg)
MT_STORE(__stcs)
MT_STORE(__stwb)
MT_STORE(__stwt)
#undef MT_STORE

/* ---- bits ------------------------------------------------------------------------------------------ */

static inline int __popc(unsigned x)
{
  return __builtin_popcount(x);
}
static inline int __popcll(unsigned long long x)
{
  return __builtin_popcountll(x);
}
static inline int __ffs(int x)
{
  return __builtin_ffs(x);
}
static inline int __ffsll(long long x)
{
  return __builtin_ffsll(x);
}
static inline int __clz(int x)
{
  return x == 0 ? 32 : __builtin_clz((unsigned)x);
}
static inline int __clzll(long long x)
{
  return x == 0 ? 64 : __builtin_clzll((unsigned long long)x);
}
static inline unsigned __brev(unsigned x)
{
  unsigned y = 0;
  for (int i = 0; i < 32; i++) y |= (x >> i & 1) << (31 - i);
  return y;
}
static inline unsigned long long __brevll(unsigned long long x)
{
  return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
  return (unsigned)((uint64_t)a * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}

#define MT_BITS(name, From, To)                      \
  static inline To name(From x)                      \
  {                                                  \
    return mt_emulate_value<To>(mt_emulate_bits(x)); \
  }
MT_BITS(__float_as_int, float, int)
MT_BITS(__float_as_uint, float, unsigned)
MT_BITS(__int_as_float, int, float)
MT_BITS(__uint_as_float, unsigned, float)
MT_BITS(__double_as_longlong, double, long long)
MT_BITS(__longlong_as_double, long long, double)
#undef MT_BITS

/* ---- arithmetic: round to nearest; nothing is contracted here anyway ---------------------------------- */

static inline float __fadd_rn(float a, float b)
{
  return a + b;
}
static inline float __fsub_rn(float a, float b)
{
  return a - b;
}
static inline float __fmul_rn(float a, float b)
{
  return a * b;
}
static inline float __fdiv_rn(float a, float b)
{
  return a / b;
}
static inline float __fsqrt_rn(float a)
{
  return sqrtf(a);
}
static inline float __frcp_rn(float a)
{
  return 1.0f / a;
}
static inline float __fmaf_rn(float a, float b, float c)
{
  return fmaf(a, b, c);
}
static inline double __dadd_rn(double a, double b)
{
  return a + b;
}
static inline double __dsub_rn(double a, double b)
{
  return a - b;
}
static inline double __dmul_rn(double a, double b)
{
  return a * b;
}
static inline double __ddiv_rn(double a, double b)
{
  return a / b;
}
static inline double __dsqrt_rn(double a)
{
  return sqrt(a);
}
static inline double __fma_rn(double a, double b, double c)
{
  return fma(a, b, c);
}
static inline float __double2float_rn(double a)
{
  return (float)a;
}
static inline float __int2float_rn(int a)
{
  return (float)a;
}
static inline float __uint2float_rn(unsigned a)
{
  return (float)a;
}
static inline float __ll2float_rn(long long a)
{
  return (float)a;
}
static inline double __int2double_rn(int a)
{
  return (double)a;
}
static inline double __ll2double_rn(long long a)
{
  return (double)a;
}
static inline float rsqrtf(float a)
{
  return 1.0f / sqrtf(a);
}
static inline double rsqrt(double a)
{
  return 1.0 / sqrt(a);
}

/* as CUDA's: of floats, the one that is no NaN; of integers, in their common type */
template <class A, class B>
static inline typename std::common_type<A, B>::type min(A a, B b)
{
  typedef typename std::common_type<A, B>::type T;
  if constexpr (std::is_floating_point<T>::value)
    return std::fmin((T)a, (T)b);
  else
    return (T)b < (T)a ? (T)b : (T)a;
}
template <class A, class B>
static inline typename std::common_type<A, B>::type max(A a, B b)
{
  typedef typename std::common_type<A, B>::type T;
  if constexpr (std::is_floating_point<T>::value)
    return std::fmax((T)a, (T)b);
  else
    return (T)b > (T)a ? (T)b : (T)a;
}

#endif
