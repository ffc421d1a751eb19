/* primitives.h by CUB: instantiated here alone, for CUB compiles slowly. */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "primitives.h"

/* call(memory, bytes) is a call of CUB's: with NULL it only tells the bytes it needs. */
template <class F> static mt_status with_memory(mt_gpu *gpu, F call)
{
  size_t bytes = 0;
  mt_array<char> memory;
  MT_CUDA(call(nullptr, bytes));
  if (bytes == 0) bytes = 1; /* NULL would be the question again */
  MT_PASS(memory.make(gpu, (int64_t)bytes, "sorting and scanning"));
  MT_CUDA(call(memory.data, bytes));
  return MT_OK;
}

template <class K, class V>
mt_status mt_gpu_sort_pairs(mt_gpu *gpu, int64_t n, K *keys, V *values, int low,
                            int high)
{
  if (n <= 0 || high <= low) return MT_OK;
  mt_array<K> other_keys;
  mt_array<V> other_values;
  MT_PASS(other_keys.make(gpu, n, "keys to sort"));
  MT_PASS(other_values.make(gpu, n, "values to sort"));
  cub::DoubleBuffer<K> key(keys, other_keys.data);
  cub::DoubleBuffer<V> value(values, other_values.data);
  MT_PASS(with_memory(gpu, [&](void *memory, size_t &bytes) {
    return cub::DeviceRadixSort::SortPairs(memory, bytes, key, value, n, low, high,
                                           gpu->stream);
  }));
  if (key.Current() != keys) MT_PASS(mt_on_device(gpu, n, key.Current(), keys));
  if (value.Current() != values) MT_PASS(mt_on_device(gpu, n, value.Current(), values));
  return MT_OK;
}

template <class K>
mt_status mt_gpu_sort_keys(mt_gpu *gpu, int64_t n, K *keys, int low, int high)
{
  if (n <= 0 || high <= low) return MT_OK;
  mt_array<K> other;
  MT_PASS(other.make(gpu, n, "keys to sort"));
  cub::DoubleBuffer<K> key(keys, other.data);
  MT_PASS(with_memory(gpu, [&](void *memory, size_t &bytes) {
    return cub::DeviceRadixSort::SortKeys(memory, bytes, key, n, low, high,
                                          gpu->stream);
  }));
  if (key.Current() != keys) MT_PASS(mt_on_device(gpu, n, key.Current(), keys));
  return MT_OK;
}

struct widen {
  template <class T> __host__ __device__ int64_t operator()(T value) const
  {
    return (int64_t)value;
  }
};

template <class T>
mt_status mt_gpu_scan(mt_gpu *gpu, int64_t n, const T *in, int64_t *out)
{
  MT_CUDA(cudaMemsetAsync(out, 0, sizeof *out, gpu->stream));
  if (n <= 0) return MT_OK;
  /* CUB sums in the type of what it reads */
  auto wide = thrust::make_transform_iterator(in, widen());
  return with_memory(gpu, [&](void *memory, size_t &bytes) {
    return cub::DeviceScan::InclusiveSum(memory, bytes, wide, out + 1, n, gpu->stream);
  });
}

template <class I>
mt_status mt_gpu_select(mt_gpu *gpu, int64_t n, const uint8_t *flags, I *out,
                        int64_t *count_out)
{
  *count_out = 0;
  if (n <= 0) return MT_OK;
  mt_array<int64_t> count;
  MT_PASS(count.make(gpu, 1, "a count"));
  MT_PASS(with_memory(gpu, [&](void *memory, size_t &bytes) {
    return cub::DeviceSelect::Flagged(memory, bytes, thrust::counting_iterator<I>(0),
                                      flags, out, count.data, n, gpu->stream);
  }));
  return mt_to_host(gpu, 1, count.data, count_out);
}

/* call(memory, bytes, result): a reduction of CUB's; its result goes to the host. */
template <class T, class F>
static mt_status reduce(mt_gpu *gpu, int64_t n, T *out, F call)
{
  *out = 0;
  if (n <= 0) return MT_OK;
  mt_array<T> result;
  MT_PASS(result.make(gpu, 1, "a result"));
  MT_PASS(with_memory(gpu, [&](void *memory, size_t &bytes) {
    return call(memory, bytes, result.data);
  }));
  return mt_to_host(gpu, 1, result.data, out);
}

template <class T> mt_status mt_gpu_max(mt_gpu *gpu, int64_t n, const T *in, T *out)
{
  return reduce(gpu, n, out, [&](void *memory, size_t &bytes, T *result) {
    return cub::DeviceReduce::Max(memory, bytes, in, result, n, gpu->stream);
  });
}

template <class T> mt_status mt_gpu_min(mt_gpu *gpu, int64_t n, const T *in, T *out)
{
  return reduce(gpu, n, out, [&](void *memory, size_t &bytes, T *result) {
    return cub::DeviceReduce::Min(memory, bytes, in, result, n, gpu->stream);
  });
}

mt_status mt_gpu_sum_i64(mt_gpu *gpu, int64_t n, const int64_t *in, int64_t *out)
{
  return reduce(gpu, n, out, [&](void *memory, size_t &bytes, int64_t *result) {
    return cub::DeviceReduce::Sum(memory, bytes, in, result, n, gpu->stream);
  });
}

#include "primitives_made.h"
