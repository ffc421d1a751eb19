#include "hdbscan_parts.h"

int64_t mt_edges_bytes(int64_t n)
{
  return n * (int64_t)(3 * sizeof(uint64_t) + sizeof(uint32_t) + sizeof(mt_edge));
}

/* By (a, b), then by weight: the second sort is stable. */
mt_status mt_sort_edges(mt_gpu *gpu, int64_t n, uint64_t *pair, double *weight,
                        mt_edge *edge)
{
  mt_array<uint32_t> numbers;
  mt_array<uint64_t> keys;
  MT_PASS(numbers.make(gpu, n, "edges"));
  MT_PASS(keys.make(gpu, n, "edges"));
  uint32_t *number = numbers.data;
  uint64_t *key = keys.data;
  MT_PASS(mt_gpu_each(gpu, n, [=] __device__(int64_t i) { number[i] = (uint32_t)i; }));
  MT_PASS(mt_gpu_sort_pairs(gpu, n, pair, number, 0, 64));
  MT_PASS(mt_gpu_each(
      gpu, n, [=] __device__(int64_t i) { key[i] = mt_bits_of(weight[number[i]]); }));
  MT_PASS(mt_gpu_sort_pairs(gpu, n, key, pair, 0, 64));
  return mt_gpu_each(gpu, n, [=] __device__(int64_t i) {
    edge[i].a = (int64_t)(pair[i] >> 32);
    edge[i].b = (int64_t)(uint32_t)pair[i];
    edge[i].weight = mt_of_bits(key[i]);
  });
}
