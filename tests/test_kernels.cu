/* EMULATED 1
 * What kernels may count on, on a GPU and on the emulated one alike: barriers, warp
 * functions, atomics, bits, and arithmetic that rounds as the host's. */
#include "gpu_test.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector>

#ifdef MT_EMULATE
#include <csignal>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#endif

enum { MOST = 1 << 16 };

static float number(int64_t i, uint32_t step)
{
  double wide = mt_random_unit(9, MT_STREAM_TEST, (uint64_t)i, step);
  double power = mt_random_unit(9, MT_STREAM_TEST, (uint64_t)i, step + 100);
  return (float)((wide - 0.5) * exp2(240.0 * power - 140.0)); /* subnormals too */
}

/* ---- who is who ------------------------------------------------------------------------ */

__global__ void count_threads(int *visits)
{
  unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  atomicAdd(&visits[block * threads + thread], 1);
}

static void test_indices(void **)
{
  static const dim3 blocks[] = {dim3(1), dim3(7), dim3(3, 2, 5)};
  static const dim3 threads[] = {dim3(1), dim3(33), dim3(1024), dim3(5, 4, 3)};
  for (dim3 b : blocks)
    for (dim3 t : threads) {
      int64_t n = (int64_t)b.x * b.y * b.z * t.x * t.y * t.z;
      std::vector<int> visits((size_t)n);
      mt_array<int> found;
      assert_int_equal(found.make_zeroed(mt_test_gpu, n, "visits"), MT_OK);
      assert_int_equal(MT_LAUNCH(mt_test_gpu, count_threads, b, t, 0, found.data),
                       MT_OK);
      mt_test_get(found, visits.data());
      for (int count : visits) assert_int_equal(count, 1);
    }
}

static void test_each(void **)
{
  for (int64_t n : {0, 1, 255, 256, 257, 100003}) {
    std::vector<int64_t> squares((size_t)n);
    mt_array<int64_t> found;
    assert_int_equal(found.make(mt_test_gpu, n, "squares"), MT_OK);
    int64_t *out = found.data;
    assert_int_equal(
        mt_gpu_each(mt_test_gpu, n, [=] __device__(int64_t i) { out[i] = i * i; }),
        MT_OK);
    mt_test_get(found, squares.data());
    for (int64_t i = 0; i < n; i++) assert_true(squares[(size_t)i] == i * i);
  }
}

/* ---- barriers ---------------------------------------------------------------------------- */

/* Each block turns round its part of data, by both kinds of shared memory, `rounds` times;
 * threads from `staying` on leave at once. */
__global__ void turn_round(int staying, int rounds, int *data, int *counts)
{
  __shared__ int fixed[1024];
  MT_SHARED(int, given);
  int t = (int)threadIdx.x;
  int *mine = data + blockIdx.x * blockDim.x;
  if (t >= staying) return;
  for (int round = 0; round < rounds; round++) {
    fixed[t] = mine[t];
    given[t] = t;
    __syncthreads();
    int value = fixed[given[staying - 1 - t]];
    __syncthreads();
    mine[t] = value + 1;
  }
  int odd = __syncthreads_count(t % 2), any = __syncthreads_or(t == staying - 1);
  int none = __syncthreads_or(t < 0), all = __syncthreads_and(t >= 0);
  int some = __syncthreads_and(t > 0);
  if (t == 0) counts[blockIdx.x] = odd * 16 + any * 8 + none * 4 + all * 2 + some;
}

static void test_barriers(void **)
{
  enum { BLOCKS = 5 };
  for (int threads : {1, 31, 32, 33, 256, 1000, 1024})
    for (int staying : {threads, (threads + 1) / 2})
      for (int rounds = 1; rounds <= 4; rounds += 3) {
        std::vector<int> data((size_t)(BLOCKS * threads)), before;
        int counts[BLOCKS];
        for (size_t i = 0; i < data.size(); i++) data[i] = (int)(i * i % 1009);
        before = data;
        mt_array<int> device, count;
        mt_test_put(&device, (int64_t)data.size(), data.data());
        assert_int_equal(count.make(mt_test_gpu, BLOCKS, "counts"), MT_OK);
        assert_int_equal(MT_LAUNCH(mt_test_gpu, turn_round, BLOCKS, threads,
                                   staying * (int)sizeof(int), staying, rounds,
                                   device.data, count.data),
                         MT_OK);
        mt_test_get(device, data.data());
        mt_test_get(count, counts);
        for (int b = 0; b < BLOCKS; b++) {
          for (int t = 0; t < threads; t++) {
            int from = t < staying && rounds % 2 ? staying - 1 - t : t;
            assert_int_equal(data[(size_t)(b * threads + t)],
                             before[(size_t)(b * threads + from)] +
                                 (t < staying ? rounds : 0));
          }
          assert_int_equal(counts[b], staying / 2 * 16 + 8 + 2);
        }
      }
}

/* ---- warps -------------------------------------------------------------------------------- */

enum { ANSWERS = 16 };

/* All functions of warps, by the lanes of `lanes` alone: out (blocks x threads, ANSWERS). */
template <class T>
__global__ void ask_warp(unsigned lanes, int width, const T *values, int by, T *out,
                         unsigned *masks)
{
  int t = (int)(blockIdx.x * blockDim.x + threadIdx.x), lane = (int)threadIdx.x % 32;
  if (!(lanes >> lane & 1)) return;
  T value = values[t];
  bool odd = lane % 2 == 1;
  out[t * ANSWERS + 0] = __shfl_sync(lanes, value, by, width);
  out[t * ANSWERS + 1] = __shfl_up_sync(lanes, value, (unsigned)by, width);
  out[t * ANSWERS + 2] = __shfl_down_sync(lanes, value, (unsigned)by, width);
  out[t * ANSWERS + 3] = __shfl_xor_sync(lanes, value, by, width);
  __syncwarp(lanes);
  masks[t * ANSWERS + 0] = __ballot_sync(lanes, odd);
  masks[t * ANSWERS + 1] = (unsigned)__any_sync(lanes, lane == 31);
  masks[t * ANSWERS + 2] = (unsigned)__all_sync(lanes, lane < 31);
  masks[t * ANSWERS + 3] = __match_any_sync(lanes, value);
  masks[t * ANSWERS + 4] = __reduce_add_sync(lanes, (unsigned)lane + 7u);
  masks[t * ANSWERS + 5] = (unsigned)__reduce_min_sync(lanes, 3 - lane);
  masks[t * ANSWERS + 6] = (unsigned)__reduce_max_sync(lanes, 3 - lane);
  masks[t * ANSWERS + 7] = __reduce_min_sync(lanes, (unsigned)(3 - lane));
  masks[t * ANSWERS + 8] = __reduce_or_sync(lanes, 1u << lane);
  masks[t * ANSWERS + 9] = __reduce_and_sync(lanes, ~(1u << lane));
  unsigned half = odd ? lanes & 0xaaaaaaaau : lanes & 0x55555555u;
  if (odd)
    masks[t * ANSWERS + 10] = __ballot_sync(half, lane > 7);
  else
    masks[t * ANSWERS + 10] = __ballot_sync(half, lane < 9);
  masks[t * ANSWERS + 11] = __reduce_xor_sync(lanes, 1u << lane);
}

static unsigned mask_of(unsigned lanes, bool (*chosen)(int))
{
  unsigned mask = 0;
  for (int lane = 0; lane < 32; lane++)
    if (lanes >> lane & 1 && chosen(lane)) mask |= 1u << lane;
  return mask;
}

/* The lane that a shuffle of the kind reads. */
static int source_of(int kind, int lane, int width, int by)
{
  int first = lane / width * width, last = first + width - 1;
  int from = kind == 0   ? first + by % width
             : kind == 1 ? lane - by
             : kind == 2 ? lane + by
                         : lane ^ by;
  if (kind == 1 && from < first) return lane;
  return kind >= 2 && from > last ? lane : from;
}

template <class T>
static void check_lane(int lane, unsigned lanes, int width, int by, const T *values,
                       const T *out, const unsigned *masks)
{
  int least = 99, most = -99;
  unsigned same = 0, add = 0, low = ~0u;
  for (int other = 0; other < 32; other++) {
    if (!(lanes >> other & 1)) continue;
    if (values[other] == values[lane]) same |= 1u << other;
    least = 3 - other < least ? 3 - other : least;
    most = 3 - other > most ? 3 - other : most;
    low = (unsigned)(3 - other) < low ? (unsigned)(3 - other) : low;
    add += (unsigned)other + 7u;
  }
  for (int kind = 0; kind < 4; kind++) {
    int from = source_of(kind, lane, width, by);
    if (lanes >> from & 1) assert_true(out[kind] == values[from]);
  }
  unsigned odd = mask_of(lanes, [](int l) { return l % 2 == 1; });
  assert_int_equal(masks[0], odd);
  assert_int_equal(masks[1] != 0, lanes >> 31);
  assert_int_equal(masks[2] != 0, !(lanes >> 31));
  assert_int_equal(masks[3], same);
  assert_int_equal(masks[4], add);
  assert_int_equal((int)masks[5], least);
  assert_int_equal((int)masks[6], most);
  assert_int_equal(masks[7], low);
  assert_int_equal(masks[8], lanes);
  assert_int_equal(masks[9], ~lanes);
  if (lane % 2 == 1)
    assert_int_equal(masks[10], odd & 0xffffff00u);
  else
    assert_int_equal(masks[10], lanes & ~odd & 0x1ffu);
  assert_int_equal(masks[11], lanes);
}

template <class T> static void check_warps(unsigned lanes, int width, int by)
{
  enum { BLOCKS = 2, THREADS = 96, ALL = BLOCKS * THREADS };
  T values[ALL], out[ALL * ANSWERS];
  unsigned masks[ALL * ANSWERS];
  for (int i = 0; i < ALL; i++) values[i] = (T)(i * i % 37 - 12);
  mt_array<T> value, answer;
  mt_array<unsigned> mask;
  mt_test_put(&value, ALL, values);
  assert_int_equal(answer.make_zeroed(mt_test_gpu, ALL * ANSWERS, "out"), MT_OK);
  assert_int_equal(mask.make_zeroed(mt_test_gpu, ALL * ANSWERS, "masks"), MT_OK);
  assert_int_equal(MT_LAUNCH(mt_test_gpu, ask_warp, BLOCKS, THREADS, 0, lanes, width,
                             value.data, by, answer.data, mask.data),
                   MT_OK);
  mt_test_get(answer, out);
  mt_test_get(mask, masks);
  for (int t = 0; t < ALL; t++)
    if (lanes >> t % 32 & 1)
      check_lane(t % 32, lanes, width, by, values + t / 32 * 32, out + t * ANSWERS,
                 masks + t * ANSWERS);
}

static void test_warps(void **)
{
  for (unsigned lanes : {0xffffffffu, 0x0000ffffu, 0x80000000u, 0x12345678u})
    for (int width = 8; width <= 32; width *= 2)
      for (int by : {0, 1, 5, 16, 31}) {
        check_warps<int>(lanes, width, by);
        check_warps<float>(lanes, width, by);
        check_warps<double>(lanes, width, by);
        check_warps<unsigned long long>(lanes, width, by);
      }
}

/* The last warp is not whole: those that are not there are not waited for. */
__global__ void sum_up(int *sums)
{
  int sum = 1;
  for (int by = 1; by < 32; by *= 2) {
    int other = __shfl_xor_sync(0xffffffffu, sum, by);
    if ((int)(threadIdx.x ^ (unsigned)by) < (int)blockDim.x) sum += other;
  }
  sums[threadIdx.x] = sum;
}

static void test_part_of_a_warp(void **)
{
  for (int threads : {1, 2, 4, 16, 40, 48}) { /* powers of two in the last warp */
    std::vector<int> sums((size_t)threads);
    mt_array<int> found;
    assert_int_equal(found.make(mt_test_gpu, threads, "sums"), MT_OK);
    assert_int_equal(MT_LAUNCH(mt_test_gpu, sum_up, 1, threads, 0, found.data), MT_OK);
    mt_test_get(found, sums.data());
    for (int t = 0; t < threads; t++)
      assert_int_equal(sums[(size_t)t], t / 32 == threads / 32 ? threads % 32 : 32);
  }
}

/* ---- atomics ---------------------------------------------------------------------------------- */

template <class T> struct tallies {
  T sum, least, most, last, slots, bits, swapped;
};

template <class T> __global__ void tally(int n, tallies<T> *all)
{
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  T value = (T)(i + 1);
  atomicAdd(&all->sum, value);
  atomicMin(&all->least, value);
  atomicMax(&all->most, value);
  atomicExch(&all->last, value);
  atomicOr(&all->bits, (T)((T)1 << i % 31));
  if (atomicCAS(&all->swapped, (T)0, value) == 0) atomicAdd(&all->slots, (T)1);
}

template <class T> static void check_tally(int n)
{
  tallies<T> found = {}, start = {};
  start.least = (T)1000000;
  mt_array<tallies<T>> device;
  mt_test_put(&device, 1, &start);
  assert_int_equal(MT_LAUNCH(mt_test_gpu, tally, (n + 63) / 64, 64, 0, n, device.data),
                   MT_OK);
  mt_test_get(device, &found);
  assert_true(found.sum == (T)((int64_t)n * (n + 1) / 2));
  assert_true(found.least == (T)1 && found.most == (T)n);
  assert_true(found.last >= (T)1 && found.last <= (T)n);
  assert_true(found.slots == (T)1);
  assert_true(found.swapped >= (T)1 && found.swapped <= (T)n);
  assert_true(found.bits == (T)(n < 31 ? ((T)1 << n) - 1 : ((T)1 << 31) - 1) ||
              found.bits == (T)0x7fffffff);
}

__global__ void add_up(double *doubles, float *floats)
{
  atomicAdd(doubles, 0.5);
  atomicAdd(floats, 0.25f);
}

static void test_atomics(void **)
{
  for (int n : {1, 30, 1000, 5000}) {
    check_tally<unsigned>(n);
    check_tally<unsigned long long>(n);
  }
  double total = 0.0;
  float part = 0.0f;
  mt_array<double> doubles;
  mt_array<float> floats;
  mt_test_put(&doubles, 1, &total);
  mt_test_put(&floats, 1, &part);
  assert_int_equal(MT_LAUNCH(mt_test_gpu, add_up, 7, 100, 0, doubles.data, floats.data),
                   MT_OK);
  mt_test_get(doubles, &total);
  mt_test_get(floats, &part);
  assert_true(total == 350.0 && part == 175.0f);
}

/* ---- bits and arithmetic ----------------------------------------------------------------------- */

static void test_bits(void **)
{
  std::vector<uint64_t> in(MOST), out((size_t)MOST * 8);
  mt_array<uint64_t> words, answers;
  for (int i = 0; i < MOST; i++)
    in[(size_t)i] =
        (uint64_t)(mt_random_unit(9, MT_STREAM_TEST, (uint64_t)i, 1) * 0x1p62) >>
        i % 63;
  mt_test_put(&words, MOST, in.data());
  assert_int_equal(answers.make(mt_test_gpu, MOST * 8, "answers"), MT_OK);
  const uint64_t *x = words.data;
  uint64_t *y = answers.data;
  assert_int_equal(mt_gpu_each(mt_test_gpu, MOST,
                               [=] __device__(int64_t i) {
                                 unsigned low = (unsigned)x[i];
                                 y[i * 8 + 0] = (uint64_t)__popc(low);
                                 y[i * 8 + 1] = (uint64_t)__popcll(x[i]);
                                 y[i * 8 + 2] = (uint64_t)__ffs((int)low);
                                 y[i * 8 + 3] = (uint64_t)__ffsll((long long)x[i]);
                                 y[i * 8 + 4] = (uint64_t)__clz((int)low);
                                 y[i * 8 + 5] = (uint64_t)__clzll((long long)x[i]);
                                 y[i * 8 + 6] = __brev(low);
                                 y[i * 8 + 7] = __umul64hi(x[i], 0x9E3779B97F4A7C15u);
                               }),
                   MT_OK);
  mt_test_get(answers, out.data());
  for (int64_t i = 0; i < MOST; i++) {
    uint64_t want[8] = {0, 0, 0, 0, 32, 64, 0, 0};
    for (unsigned bit = 0; bit < 64; bit++) {
      uint64_t set = in[(size_t)i] >> bit & 1;
      want[1] += set;
      if (set && want[3] == 0) want[3] = bit + 1;
      if (set) want[5] = 63 - bit;
      if (bit >= 32 || !set) continue;
      want[0]++;
      if (want[2] == 0) want[2] = bit + 1;
      want[4] = 31 - bit;
      want[6] |= (uint64_t)1 << (31 - bit);
    }
    want[7] = (uint64_t)((unsigned __int128)in[(size_t)i] * 0x9E3779B97F4A7C15u >> 64);
    for (int q = 0; q < 8; q++) assert_true(out[(size_t)i * 8 + (size_t)q] == want[q]);
  }
}

/* Which NaN comes out differs. */
template <class T> static void expect_same(const T *in, int what, T got, T want)
{
  if (memcmp(&got, &want, sizeof got) != 0 && !(std::isnan(got) && std::isnan(want)))
    fail_msg("result %d of %a, %a, %a: %a, not %a", what, (double)in[0], (double)in[1],
             (double)in[2], (double)got, (double)want);
}

/* No product and sum is made one, no subnormal is lost, quotients and roots are rounded. */
template <class T> static void check_arithmetic(void)
{
  enum { RESULTS = 8 };
  std::vector<T> in((size_t)MOST * 3), out((size_t)MOST * RESULTS);
  mt_array<T> numbers, results;
  for (int64_t i = 0; i < MOST * 3; i++)
    in[(size_t)i] = (T)number(i / 3, (uint32_t)(i % 3)) * (T)(1.0 + 1e-9 * (double)i);
  mt_test_put(&numbers, MOST * 3, in.data());
  assert_int_equal(results.make(mt_test_gpu, MOST * RESULTS, "results"), MT_OK);
  const T *x = numbers.data;
  T *y = results.data;
  assert_int_equal(mt_gpu_each(mt_test_gpu, MOST,
                               [=] __device__(int64_t i) {
                                 T a = x[i * 3], b = x[i * 3 + 1], c = x[i * 3 + 2];
                                 T *z = y + i * RESULTS;
                                 z[0] = a + b;
                                 z[1] = a - b;
                                 z[2] = a * b;
                                 z[3] = a / b;
                                 z[4] = sqrt(a < 0 ? -a : a);
                                 z[5] = a * b + c;
                                 z[6] = a * b - a * c;
                                 z[7] = fma(a, b, c);
                               }),
                   MT_OK);
  mt_test_get(results, out.data());
  for (int64_t i = 0; i < MOST; i++) {
    T a = in[(size_t)i * 3], b = in[(size_t)i * 3 + 1], c = in[(size_t)i * 3 + 2];
    volatile T product = a * b,
               other = a * c; /* rounded, whatever the compiler likes */
    const T wanted[RESULTS] = {a + b,
                               a - b,
                               product,
                               a / b,
                               std::sqrt(a < 0 ? -a : a),
                               product + c,
                               product - other,
                               std::fma(a, b, c)};
    for (int q = 0; q < RESULTS; q++)
      expect_same(&in[(size_t)i * 3], q, out[(size_t)(i * RESULTS + q)], wanted[q]);
  }
}

static void test_arithmetic(void **)
{
  check_arithmetic<float>();
  check_arithmetic<double>();
}

/* ---- 16-bit numbers ------------------------------------------------------------------------------ */

/* The value of such bits, as IEEE says. */
static double value_of(int bits, int fraction_bits)
{
  int exponent_bits = 15 - fraction_bits, bias = (1 << (exponent_bits - 1)) - 1;
  int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
  int fraction = bits & ((1 << fraction_bits) - 1);
  double size = exponent == 0 ? ldexp(fraction, 1 - bias - fraction_bits)
                              : ldexp(fraction | 1 << fraction_bits,
                                      exponent - bias - fraction_bits);
  return bits >> 15 ? -size : size;
}

/* The nearest to x >= 0, ties to even, by plain search; the largest finite ones' successor
 * stands for infinity, as rounding has it. */
static int nearest_to(double x, int fraction_bits)
{
  int infinite = ((1 << (15 - fraction_bits)) - 1) << fraction_bits, low = 0,
      high = infinite;
  if (x >= value_of(infinite, fraction_bits)) return infinite;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (value_of(middle, fraction_bits) <= x)
      low = middle;
    else
      high = middle;
  }
  double below = x - value_of(low, fraction_bits),
         above = value_of(high, fraction_bits) - x;
  return below < above || (below == above && low % 2 == 0) ? low : high;
}

static void test_short_floats(void **)
{
  std::vector<float> in(MOST), wide((size_t)MOST * 2);
  std::vector<uint16_t> narrow((size_t)MOST * 2);
  mt_array<float> numbers, values;
  mt_array<uint16_t> bits;
  for (int i = 0; i < MOST; i++) {
    in[(size_t)i] = fabsf(number(i, 7));
    if (i < 4000) in[(size_t)i] = (float)ldexp(i, i % 5 - 26); /* ties, subnormals */
    if (i % 4 == 1) in[(size_t)i] = 60.0f * (float)i;          /* about 65504 */
  }
  mt_test_put(&numbers, MOST, in.data());
  assert_int_equal(values.make(mt_test_gpu, MOST * 2, "values"), MT_OK);
  assert_int_equal(bits.make(mt_test_gpu, MOST * 2, "bits"), MT_OK);
  const float *x = numbers.data;
  float *y = values.data;
  uint16_t *z = bits.data;
  assert_int_equal(mt_gpu_each(mt_test_gpu, MOST,
                               [=] __device__(int64_t i) {
                                 unsigned short raw = (unsigned short)i;
                                 y[2 * i] = __half2float(__ushort_as_half(raw));
                                 y[2 * i + 1] =
                                     __bfloat162float(__ushort_as_bfloat16(raw));
                                 z[2 * i] = __half_as_ushort(__float2half_rn(x[i]));
                                 z[2 * i + 1] =
                                     __bfloat16_as_ushort(__float2bfloat16_rn(x[i]));
                               }),
                   MT_OK);
  mt_test_get(values, wide.data());
  mt_test_get(bits, narrow.data());
  for (int i = 0; i < MOST; i++)
    for (int kind = 0; kind < 2; kind++) {
      int fraction_bits = kind == 0 ? 10 : 7;
      size_t at = 2 * (size_t)i + (size_t)kind;
      int size = i & 0x7fff, infinite = ((1 << (15 - fraction_bits)) - 1)
                                        << fraction_bits;
      int want = nearest_to(in[(size_t)i], fraction_bits);
      bool right = size > infinite ? std::isnan(wide[at])
                   : size == infinite
                       ? std::isinf(wide[at]) && (wide[at] < 0) == (i > size)
                       : wide[at] == (float)value_of(i, fraction_bits);
      if (!right)
        fail_msg("%s %04x is %a", kind == 0 ? "half" : "bfloat16", (unsigned)i,
                 (double)wide[at]);
      if (narrow[at] != want)
        fail_msg("%a becomes %s %04x, not %04x", (double)in[(size_t)i],
                 kind == 0 ? "half" : "bfloat16", (unsigned)narrow[at], (unsigned)want);
    }
}

/* ---- products -------------------------------------------------------------------------------------- */

template <class T>
static void check_product(cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                          int k, double tolerance)
{
  int lda = (op_a == CUBLAS_OP_N ? m : k) + 3, ldb = (op_b == CUBLAS_OP_N ? k : n) + 1;
  int ldc = m + 2, columns_a = op_a == CUBLAS_OP_N ? k : m,
      columns_b = op_b == CUBLAS_OP_N ? n : k;
  std::vector<T> a((size_t)(lda * columns_a)), b((size_t)(ldb * columns_b));
  std::vector<T> c((size_t)(ldc * n)), found;
  for (size_t i = 0; i < a.size(); i++) a[i] = (T)((int)(i * i % 17) - 8);
  for (size_t i = 0; i < b.size(); i++) b[i] = (T)((int)(i * i % 13) - 6) / (T)8;
  for (size_t i = 0; i < c.size(); i++) c[i] = (T)(i % 7);
  found = c;
  mt_array<T> x, y, z;
  mt_test_put(&x, (int64_t)a.size(), a.data());
  mt_test_put(&y, (int64_t)b.size(), b.data());
  mt_test_put(&z, (int64_t)c.size(), c.data());
  T alpha = (T)2, beta = (T)0.5;
  bool wide = sizeof(T) == sizeof(double);
  cudaDataType_t type = wide ? CUDA_R_64F : CUDA_R_32F;
  assert_int_equal(cublasGemmEx(mt_test_gpu->blas, op_a, op_b, m, n, k, &alpha, x.data,
                                type, lda, y.data, type, ldb, &beta, z.data, type, ldc,
                                wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                CUBLAS_GEMM_DEFAULT),
                   CUBLAS_STATUS_SUCCESS);
  mt_test_get(z, found.data());
  for (int j = 0; j < n; j++)
    for (int i = 0; i < ldc; i++) {
      double want = c[(size_t)(j * ldc + i)], sum = 0.0;
      for (int l = 0; i < m && l < k; l++)
        sum += (double)a[(size_t)(op_a == CUBLAS_OP_N ? l * lda + i : i * lda + l)] *
               (double)b[(size_t)(op_b == CUBLAS_OP_N ? j * ldb + l : l * ldb + j)];
      if (i < m) want = 2.0 * sum + 0.5 * want;
      assert_true(fabs((double)found[(size_t)(j * ldc + i)] - want) <= tolerance);
    }
}

static void test_products(void **)
{
  for (cublasOperation_t a : {CUBLAS_OP_N, CUBLAS_OP_T})
    for (cublasOperation_t b : {CUBLAS_OP_N, CUBLAS_OP_T})
      for (int size : {1, 7, 33}) {
        check_product<float>(a, b, size, size + 2, size + 5, 1e-3);
        check_product<double>(a, b, size + 4, size, size + 1, 1e-12);
      }
}

/* ---- what the emulated GPU alone can show -------------------------------------------------------------- */

#ifdef MT_EMULATE
__global__ void wait_for_ever(int kind)
{
  if (kind == 0 && threadIdx.x == 0)
    __syncwarp(0x3); /* its partner leaves the warp out */
  if (kind == 1 && threadIdx.x < 2) __ballot_sync(1u << (1 - threadIdx.x), 1);
  if (kind == 2 && threadIdx.x == 0) __shfl_sync(0x3, 1, 0);
  if (kind == 2 && threadIdx.x == 1) __ballot_sync(0x3, 1);
  __syncthreads();
}

/* What a child that starts the kernel says on its standard error as it ends. */
static std::string last_words(int kind, int *status)
{
  int pipe_ends[2];
  char text[4000];
  std::string all;
  assert_int_equal(pipe(pipe_ends), 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], STDERR_FILENO);
    signal(SIGABRT, SIG_DFL);
    (void)MT_LAUNCH(mt_test_gpu, wait_for_ever, 1, 4, 0, kind);
    _exit(0);
  }
  close(pipe_ends[1]);
  for (ssize_t n; (n = read(pipe_ends[0], text, sizeof text)) > 0;)
    all.append(text, (size_t)n);
  close(pipe_ends[0]);
  assert_int_equal(waitpid(child, status, 0), child);
  return all;
}

static void test_deadlocks(void **)
{
  for (int kind = 0; kind < 3; kind++) {
    int status;
    std::string said = last_words(kind, &status);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_true(said.find("wait_for_ever") != std::string::npos);
    assert_true(said.find(kind == 1 ? "leaves out its caller" : "deadlock") !=
                std::string::npos);
  }
}

static void test_wrong_calls(void **)
{
  float host[10] = {0};
  std::vector<float> plain(10);
  mt_array<float> device;
  int nobody = 0;
  mt_log_setup(0, 1, MT_LOG_SILENT);
  mt_test_put(&device, 10, host);
  for (float value : plain) assert_true(value == 0.0f);
  assert_int_equal(
      cudaMemcpy(device.data, host, 44, cudaMemcpyHostToDevice), /* too long */
      cudaErrorInvalidValue);
  assert_int_equal(cudaMemcpy(plain.data(), host, 40, cudaMemcpyHostToDevice),
                   cudaErrorInvalidValue);
  assert_int_equal(cudaMemcpy(host, plain.data(), 40, cudaMemcpyDeviceToHost),
                   cudaErrorInvalidValue);
  assert_int_equal(cudaMemset(host, 0, 4), cudaErrorInvalidValue);
  assert_int_equal(cudaFree(host), cudaErrorInvalidDevicePointer);
  assert_true(MT_LAUNCH(mt_test_gpu, count_threads, 1, 1025, 0, &nobody) != MT_OK);
  assert_true(MT_LAUNCH(mt_test_gpu, count_threads, 0, 32, 0, &nobody) != MT_OK);
  assert_true(MT_LAUNCH(mt_test_gpu, count_threads, 1, 32, 1 << 20, &nobody) != MT_OK);
  assert_int_equal(nobody, 0);
  mt_log_setup(0, 1, MT_LOG_WARN);
}

#ifdef __SANITIZE_ADDRESS__
/* The host may not touch the device's memory. */
static void test_host_access(void **)
{
  int status, zero = 0;
  mt_array<int> device;
  mt_test_put(&device, 1, &zero);
  pid_t child = fork();
  if (child == 0) {
    close(STDERR_FILENO);
    _exit(*(volatile int *)device.data);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
}
#endif

/* What nobody has written shows. */
static void test_unwritten(void **)
{
  mt_array<uint32_t> device;
  std::vector<uint32_t> words(1000, 0);
  assert_int_equal(device.make(mt_test_gpu, 1000, "words"), MT_OK);
  mt_test_get(device, words.data());
  for (uint32_t word : words) assert_int_equal(word, 0xDBDBDBDBu);
}
#endif

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_indices),        cmocka_unit_test(test_each),
    cmocka_unit_test(test_barriers),       cmocka_unit_test(test_warps),
    cmocka_unit_test(test_part_of_a_warp), cmocka_unit_test(test_atomics),
    cmocka_unit_test(test_bits),           cmocka_unit_test(test_arithmetic),
    cmocka_unit_test(test_short_floats),   cmocka_unit_test(test_products),
#ifdef MT_EMULATE
    cmocka_unit_test(test_deadlocks),      cmocka_unit_test(test_wrong_calls),
    cmocka_unit_test(test_unwritten),
#ifdef __SANITIZE_ADDRESS__
    cmocka_unit_test(test_host_access),
#endif
#endif
};

MT_GPU_TEST_MAIN(tests)
