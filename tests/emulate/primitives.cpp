/* primitives.h for the emulated GPU, by the standard library. */
#include <algorithm>
#include <numeric>
#include <vector>

#include "primitives.h"

template <class K> static K part(K key, int low, int high)
{
  K above = (K)(key >> low);
  int bits = high - low;
  return bits >= (int)(8 * sizeof(K)) ? above : (K)(above & (((K)1 << bits) - 1));
}

template <class K, class V>
mt_status mt_gpu_sort_pairs(mt_gpu *, int64_t n, K *keys, V *values, int low, int high)
{
  mt_emulated_access access;
  if (n <= 0 || high <= low) return MT_OK;
  std::vector<std::pair<K, V>> pairs((size_t)n);
  for (int64_t i = 0; i < n; i++) pairs[(size_t)i] = {keys[i], values[i]};
  std::stable_sort(pairs.begin(), pairs.end(),
                   [=](const std::pair<K, V> &a, const std::pair<K, V> &b) {
                     return part(a.first, low, high) < part(b.first, low, high);
                   });
  for (int64_t i = 0; i < n; i++) {
    keys[i] = pairs[(size_t)i].first;
    values[i] = pairs[(size_t)i].second;
  }
  return MT_OK;
}

template <class K>
mt_status mt_gpu_sort_keys(mt_gpu *, int64_t n, K *keys, int low, int high)
{
  mt_emulated_access access;
  if (n > 0 && high > low)
    std::stable_sort(keys, keys + n,
                     [=](K a, K b) { return part(a, low, high) < part(b, low, high); });
  return MT_OK;
}

template <class T> mt_status mt_gpu_scan(mt_gpu *, int64_t n, const T *in, int64_t *out)
{
  mt_emulated_access access;
  int64_t sum = 0;
  for (int64_t i = 0; i < n; i++) {
    out[i] = sum;
    sum += in[i];
  }
  out[n] = sum;
  return MT_OK;
}

template <class I>
mt_status mt_gpu_select(mt_gpu *, int64_t n, const uint8_t *flags, I *out,
                        int64_t *count_out)
{
  mt_emulated_access access;
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++)
    if (flags[i] != 0) out[count++] = (I)i;
  *count_out = count;
  return MT_OK;
}

template <class T> mt_status mt_gpu_max(mt_gpu *, int64_t n, const T *in, T *out)
{
  mt_emulated_access access;
  *out = n > 0 ? *std::max_element(in, in + n) : (T)0;
  return MT_OK;
}

template <class T> mt_status mt_gpu_min(mt_gpu *, int64_t n, const T *in, T *out)
{
  mt_emulated_access access;
  *out = n > 0 ? *std::min_element(in, in + n) : (T)0;
  return MT_OK;
}

mt_status mt_gpu_sum_i64(mt_gpu *, int64_t n, const int64_t *in, int64_t *out)
{
  mt_emulated_access access;
  *out = std::accumulate(in, in + n, (int64_t)0);
  return MT_OK;
}

#include "primitives_made.h"
