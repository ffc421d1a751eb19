/* EMULATED 1
 * Sorting, scanning, selecting, reducing on the device against plain loops. */
#include "gpu_test.h"

#include "primitives.h"

#include <algorithm>
#include <vector>

static const int64_t sizes[] = {0, 1, 2, 3, 31, 32, 33, 255, 1000, 4097, 100003};

static uint64_t draw(int64_t i, uint32_t step)
{
  return (uint64_t)(mt_random_unit(3, MT_STREAM_TEST, (uint64_t)i, step) * 0x1p53);
}

/* n numbers below 2^bits; few bits: many are equal */
template <class K> static std::vector<K> draw_keys(int64_t n, int bits)
{
  std::vector<K> keys((size_t)n);
  for (int64_t i = 0; i < n; i++) {
    uint64_t wide = draw(i, 1) << 32 ^ draw(i, 2);
    keys[(size_t)i] = (K)(bits == 64 ? wide : wide & (((uint64_t)1 << bits) - 1));
  }
  return keys;
}

template <class K> static K bits_of(K key, int low, int high)
{
  uint64_t above = (uint64_t)key >> low;
  return (K)(high - low == 64 ? above : above & (((uint64_t)1 << (high - low)) - 1));
}

/* Where each goes, by a plain stable sort of what is between the bits. */
template <class K>
static std::vector<size_t> order_of(const std::vector<K> &keys, int low, int high)
{
  std::vector<size_t> order(keys.size());
  for (size_t i = 0; i < order.size(); i++) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return bits_of(keys[a], low, high) < bits_of(keys[b], low, high);
  });
  return order;
}

template <class K, class V>
static void check_sort(int64_t n, int bits, int low, int high)
{
  std::vector<K> keys = draw_keys<K>(n, bits), sorted((size_t)n);
  std::vector<V> values((size_t)n), moved((size_t)n);
  for (int64_t i = 0; i < n; i++) values[(size_t)i] = (V)(7 * i - 3);
  mt_array<K> key, alone;
  mt_array<V> value;
  mt_test_put(&key, n, keys.data());
  mt_test_put(&alone, n, keys.data());
  mt_test_put(&value, n, values.data());
  assert_int_equal(mt_gpu_sort_pairs(mt_test_gpu, n, key.data, value.data, low, high),
                   MT_OK);
  mt_test_get(key, sorted.data());
  mt_test_get(value, moved.data());
  std::vector<size_t> order = order_of(keys, low, high);
  for (size_t i = 0; i < order.size(); i++) {
    assert_true(sorted[i] == keys[order[i]]);
    assert_true(moved[i] == values[order[i]]);
  }
  assert_int_equal(mt_gpu_sort_keys(mt_test_gpu, n, alone.data, low, high), MT_OK);
  mt_test_get(alone, sorted.data());
  for (size_t i = 0; i < order.size(); i++) assert_true(sorted[i] == keys[order[i]]);
}

template <class K, class V> static void check_sorts(int64_t n)
{
  int all = (int)(8 * sizeof(K));
  check_sort<K, V>(n, all, 0, all);
  check_sort<K, V>(n, 5, 0, 5);
  check_sort<K, V>(n, all, 3, 20);
  check_sort<K, V>(n, 1, 0, all);
}

static void test_sort(void **)
{
  for (int64_t n : sizes) {
    check_sorts<uint32_t, int32_t>(n);
    check_sorts<uint32_t, uint32_t>(n);
    check_sorts<uint32_t, int64_t>(n);
    check_sorts<uint32_t, uint64_t>(n);
    check_sorts<uint64_t, int32_t>(n);
    check_sorts<uint64_t, uint32_t>(n);
    check_sorts<uint64_t, int64_t>(n);
    check_sorts<uint64_t, uint64_t>(n);
  }
}

/* most: beyond what 32 bits hold, for sums of int32_t too */
template <class T> static void check_scan(int64_t n, T most)
{
  std::vector<T> in((size_t)n);
  std::vector<int64_t> sums((size_t)n + 1);
  mt_array<T> values;
  mt_array<int64_t> found;
  int64_t sum = 0;
  for (int64_t i = 0; i < n; i++) in[(size_t)i] = most - (T)(draw(i, 3) % 1000);
  mt_test_put(&values, n, in.data());
  assert_int_equal(found.make(mt_test_gpu, n + 1, "sums"), MT_OK);
  assert_int_equal(mt_gpu_scan(mt_test_gpu, n, values.data, found.data), MT_OK);
  mt_test_get(found, sums.data());
  for (int64_t i = 0; i <= n; i++) {
    assert_true(sums[(size_t)i] == sum);
    if (i < n) sum += in[(size_t)i];
  }
}

static void test_scan(void **)
{
  for (int64_t n : sizes) {
    check_scan<int32_t>(n, INT32_MAX);
    check_scan<int32_t>(n, 3);
    check_scan<int64_t>(n, (int64_t)1 << 44);
    check_scan<int64_t>(n, 3);
  }
}

template <class I> static void check_select(int64_t n, double share)
{
  std::vector<uint8_t> flags((size_t)n);
  std::vector<I> want, found((size_t)n);
  mt_array<uint8_t> flag;
  mt_array<I> out;
  int64_t count = -1;
  for (int64_t i = 0; i < n; i++) {
    bool chosen = mt_random_unit(3, MT_STREAM_TEST, (uint64_t)i, 4) < share;
    flags[(size_t)i] = (uint8_t)(chosen ? 1 + draw(i, 5) % 255 : 0); /* not only 1 */
    if (chosen) want.push_back((I)i);
  }
  mt_test_put(&flag, n, flags.data());
  assert_int_equal(out.make(mt_test_gpu, n, "chosen"), MT_OK);
  assert_int_equal(mt_gpu_select(mt_test_gpu, n, flag.data, out.data, &count), MT_OK);
  assert_int_equal(count, (int64_t)want.size());
  assert_int_equal(mt_to_host(mt_test_gpu, count, out.data, found.data()), MT_OK);
  for (size_t i = 0; i < want.size(); i++) assert_true(found[i] == want[i]);
}

static void test_select(void **)
{
  for (int64_t n : sizes)
    for (double share : {0.0, 0.01, 0.5, 1.0}) {
      check_select<int32_t>(n, share);
      check_select<int64_t>(n, share);
    }
}

template <class T> static void check_extremes(int64_t n, double first, double width)
{
  std::vector<T> in((size_t)n);
  mt_array<T> values;
  T most = (T)77, least = (T)77;
  for (int64_t i = 0; i < n; i++)
    in[(size_t)i] =
        (T)(first + width * mt_random_unit(3, MT_STREAM_TEST, (uint64_t)i, 6));
  mt_test_put(&values, n, in.data());
  assert_int_equal(mt_gpu_max(mt_test_gpu, n, values.data, &most), MT_OK);
  assert_int_equal(mt_gpu_min(mt_test_gpu, n, values.data, &least), MT_OK);
  T want_most = n > 0 ? in[0] : (T)0, want_least = want_most;
  for (T value : in) {
    if (value > want_most) want_most = value;
    if (value < want_least) want_least = value;
  }
  assert_true(most == want_most);
  assert_true(least == want_least);
}

static void test_extremes(void **)
{
  for (int64_t n : sizes) {
    check_extremes<float>(n, -3.0, 2.0); /* all below 0 */
    check_extremes<float>(n, 1e-42, 1e-40);
    check_extremes<double>(n, -1e300, 2e300);
    check_extremes<int32_t>(n, -2e9, 4e9);
    check_extremes<int64_t>(n, -9e18, 1.8e19);
    check_extremes<uint64_t>(n, 9e18, 9e18);
  }
}

static void test_sum(void **)
{
  for (int64_t n : sizes) {
    std::vector<int64_t> in((size_t)n);
    mt_array<int64_t> values;
    int64_t want = 0, found = -1;
    for (int64_t i = 0; i < n; i++)
      want += in[(size_t)i] = (int64_t)draw(i, 7) - ((int64_t)1 << 52);
    mt_test_put(&values, n, in.data());
    assert_int_equal(mt_gpu_sum_i64(mt_test_gpu, n, values.data, &found), MT_OK);
    assert_true(found == want);
  }
}

/* Temporary memory goes back; what there is not is an error, and not the end. */
static void test_memory(void **)
{
  enum { N = 10000 };
  std::vector<uint64_t> keys = draw_keys<uint64_t>(N, 64);
  mt_array<uint64_t> key;
  mt_test_put(&key, N, keys.data());
  int64_t used = mt_test_gpu->used, memory = mt_test_gpu->memory;
  assert_int_equal(mt_gpu_sort_keys(mt_test_gpu, N, key.data, 0, 64), MT_OK);
  assert_true(mt_test_gpu->used == used);
  mt_test_gpu->memory = used + 8; /* no room for another array */
  mt_log_setup(0, 1, MT_LOG_SILENT);
  assert_int_equal(key.make(mt_test_gpu, (int64_t)1 << 50, "too much"), MT_ERR_MEMORY);
  mt_log_setup(0, 1, MT_LOG_WARN);
  mt_test_gpu->memory = memory;
  assert_int_equal(mt_gpu_wait(mt_test_gpu), MT_OK);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_sort),   cmocka_unit_test(test_scan),
    cmocka_unit_test(test_select), cmocka_unit_test(test_extremes),
    cmocka_unit_test(test_sum),    cmocka_unit_test(test_memory),
};

MT_GPU_TEST_MAIN(tests)
