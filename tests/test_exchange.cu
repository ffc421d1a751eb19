/* EMULATED 1 2 3 4 7 3:2
 * What GPUs send one another (cuda/exchange.h), one rank a GPU. */
#include "exchange.h"
#include "gpu_test.h"

/* The byte at a place, by who wrote it. */
static __host__ __device__ inline uint8_t byte_of(int64_t rank, int64_t at)
{
  return (uint8_t)(37 * rank + 11 * at + at / 251);
}

mt_status fill(int rank, int64_t n, uint8_t *out);
mt_status fill(int rank, int64_t n, uint8_t *out)
{
  return mt_gpu_each(mt_test_gpu, n,
                     [=] __device__(int64_t i) { out[i] = byte_of(rank, i); });
}

/* Does a block hold what `rank` wrote? */
static void expect_bytes(int rank, int64_t n, const uint8_t *device)
{
  uint8_t *host = (uint8_t *)malloc((size_t)n + 1);
  assert_int_equal(mt_to_host(mt_test_gpu, n, device, host), MT_OK);
  for (int64_t i = 0; i < n; i++)
    if (host[i] != byte_of(rank, i))
      fail_msg("byte %lld of %lld of rank %d: %d, not %d", (long long)i, (long long)n,
               rank, host[i], byte_of(rank, i));
  free(host);
}

static void gather_blocks(const int64_t *first)
{
  mt_array<uint8_t> all;
  int64_t mine = first[mt_test_world.rank], size = first[mt_test_world.rank + 1] - mine;
  assert_int_equal(all.make_zeroed(mt_test_gpu, first[mt_test_world.size], "blocks"),
                   MT_OK);
  assert_int_equal(fill(mt_test_world.rank, size, all.data + mine), MT_OK);
  assert_int_equal(
      mt_gpu_allgather_blocks(mt_test_gpu, &mt_test_world, first, all.data), MT_OK);
  for (int r = 0; r < mt_test_world.size; r++)
    expect_bytes(r, first[r + 1] - first[r], all.data + first[r]);
}

static void test_gather(void **state)
{
  (void)state;
  static const int64_t bytes[] = {1, 8, 12};
  int64_t first[100] = {0};
  assert_true(mt_test_world.size < 99);
  for (int r = 0; r < mt_test_world.size; r++) /* some have none */
    first[r + 1] = first[r] + (r % 3 == 1 ? 0 : 100000 * r + 7);
  gather_blocks(first);
  for (int extra = 0; extra < 4; extra++)
    for (int width = 0; width < 3; width++) {
      int64_t n = extra == 3 ? 0 : 1000 * mt_test_world.size + extra,
              row = bytes[width];
      mt_array<uint8_t> all;
      int64_t mine = mt_part_first(n, mt_test_world.size, mt_test_world.rank);
      assert_int_equal(all.make_zeroed(mt_test_gpu, n * row, "rows"), MT_OK);
      assert_int_equal(
          fill(mt_test_world.rank,
               mt_part_count(n, mt_test_world.size, mt_test_world.rank) * row,
               all.data + mine * row),
          MT_OK);
      assert_int_equal(
          mt_gpu_allgather_rows(mt_test_gpu, &mt_test_world, n, row, all.data), MT_OK);
      for (int r = 0; r < mt_test_world.size; r++)
        expect_bytes(r, mt_part_count(n, mt_test_world.size, r) * row,
                     all.data + mt_part_first(n, mt_test_world.size, r) * row);
    }
}

/* Values that order otherwise when they are taken with a sign. */
static uint64_t value_of(int rank, int64_t i)
{
  uint32_t words[4];
  mt_random_words(1, MT_STREAM_TEST, (uint64_t)(1000 * i + rank), 0, 0, words);
  return (uint64_t)words[0] << 32 | words[1];
}

static void test_reduce(void **state)
{
  (void)state;
  enum { N = 1000 };
  static uint64_t own[N], least[N], most[N], out[N];
  static int64_t low[N], sum[N];
  mt_array<uint64_t> device;
  assert_int_equal(device.make(mt_test_gpu, N, "values"), MT_OK);
  for (int64_t i = 0; i < N; i++) {
    least[i] = UINT64_MAX;
    most[i] = 0;
    low[i] = INT64_MAX;
    sum[i] = 0;
    own[i] = value_of(mt_test_world.rank, i);
    for (int r = 0; r < mt_test_world.size; r++) {
      uint64_t v = value_of(r, i);
      least[i] = v < least[i] ? v : least[i];
      most[i] = v > most[i] ? v : most[i];
      low[i] = (int64_t)v < low[i] ? (int64_t)v : low[i];
      sum[i] = (int64_t)((uint64_t)sum[i] + v);
    }
  }
  for (int op = 0; op < 4; op++) {
    mt_status status = MT_OK;
    assert_int_equal(mt_to_device(mt_test_gpu, N, own, device.data), MT_OK);
    if (op == 0)
      status = mt_gpu_all_min_u64(mt_test_gpu, &mt_test_world, N, device.data);
    if (op == 1)
      status = mt_gpu_all_max_u64(mt_test_gpu, &mt_test_world, N, device.data);
    if (op == 2)
      status =
          mt_gpu_all_min_i64(mt_test_gpu, &mt_test_world, N, (int64_t *)device.data);
    if (op == 3)
      status =
          mt_gpu_all_sum_i64(mt_test_gpu, &mt_test_world, N, (int64_t *)device.data);
    assert_int_equal(status, MT_OK);
    assert_int_equal(mt_to_host(mt_test_gpu, N, device.data, out), MT_OK);
    const void *wanted[] = {least, most, low, sum};
    assert_memory_equal(out, wanted[op], sizeof out);
  }
}

static size_t bytes_from_to(int from, int to)
{
  return (from + to) % 3 == 0 ? 0 : (size_t)(1000 * from + 10 * to + 3);
}

static void test_alltoall(void **state)
{
  (void)state;
  size_t send_bytes[100], recv_bytes[100], sent = 0, received = 0;
  mt_array<uint8_t> send, recv;
  for (int r = 0; r < mt_test_world.size; r++) {
    sent += send_bytes[r] = bytes_from_to(mt_test_world.rank, r);
    received += recv_bytes[r] = bytes_from_to(r, mt_test_world.rank);
  }
  assert_int_equal(send.make(mt_test_gpu, (int64_t)sent, "sent"), MT_OK);
  assert_int_equal(recv.make_zeroed(mt_test_gpu, (int64_t)received, "received"), MT_OK);
  uint8_t *at = send.data;
  for (int r = 0; r < mt_test_world.size; at += send_bytes[r++])
    assert_int_equal(fill(100 * mt_test_world.rank + r, (int64_t)send_bytes[r], at),
                     MT_OK);
  assert_int_equal(mt_gpu_alltoallv(mt_test_gpu, &mt_test_world, send_bytes, send.data,
                                    recv_bytes, recv.data),
                   MT_OK);
  at = recv.data;
  for (int r = 0; r < mt_test_world.size; at += recv_bytes[r++])
    expect_bytes(100 * r + mt_test_world.rank, (int64_t)recv_bytes[r], at);
}

static void test_shift(void **state)
{
  (void)state;
  for (int shift = 1; shift <= mt_test_world.size; shift++) {
    mt_array<uint8_t> send, recv;
    int from = (mt_test_world.rank + mt_test_world.size - shift % mt_test_world.size) %
               mt_test_world.size;
    int64_t mine = 5000 * mt_test_world.rank + 1, theirs = 5000 * from + 1;
    assert_int_equal(send.make(mt_test_gpu, mine, "sent"), MT_OK);
    assert_int_equal(recv.make_zeroed(mt_test_gpu, theirs, "received"), MT_OK);
    assert_int_equal(fill(mt_test_world.rank, mine, send.data), MT_OK);
    assert_int_equal(mt_gpu_shift_begin(mt_test_gpu, &mt_test_world, shift, mine,
                                        send.data, theirs, recv.data),
                     MT_OK);
    assert_int_equal(mt_gpu_shift_end(mt_test_gpu, &mt_test_world), MT_OK);
    expect_bytes(from, theirs, recv.data);
  }
}

/* Kernels and operations in turn, none waited for: each sees what was before it. */
mt_status add_one(int64_t n, int64_t *values);
mt_status add_one(int64_t n, int64_t *values)
{
  return mt_gpu_each(mt_test_gpu, n, [=] __device__(int64_t i) { values[i]++; });
}

static void test_order(void **state)
{
  (void)state;
  enum { N = 10000, TURNS = 300 };
  static int64_t out[N];
  int64_t wanted = 0;
  mt_array<int64_t> values;
  assert_int_equal(values.make_zeroed(mt_test_gpu, N, "values"), MT_OK);
  for (int turn = 0; turn < TURNS; turn++) {
    assert_int_equal(add_one(N, values.data), MT_OK);
    wanted++;
    if (turn % 16 != 0) continue;
    assert_int_equal(mt_gpu_all_sum_i64(mt_test_gpu, &mt_test_world, N, values.data),
                     MT_OK);
    wanted = wanted * mt_test_world.size % (int64_t)1000003;
    assert_int_equal(mt_gpu_all_min_i64(mt_test_gpu, &mt_test_world, N, values.data),
                     MT_OK);
    assert_int_equal(mt_to_host(mt_test_gpu, N, values.data, out), MT_OK);
    for (int64_t i = 0; i < N; i++) out[i] %= 1000003;
    for (int64_t i = 0; i < N; i++) assert_int_equal(out[i], wanted);
    assert_int_equal(mt_to_device(mt_test_gpu, N, out, values.data), MT_OK);
  }
  for (int turn = 0; turn < TURNS; turn++) /* more than are watched at a time */
    assert_int_equal(mt_gpu_all_min_i64(mt_test_gpu, &mt_test_world, N, values.data),
                     MT_OK);
  assert_int_equal(mt_to_host(mt_test_gpu, N, values.data, out), MT_OK);
  assert_int_equal(out[N - 1], wanted);
}

static void test_who_may(void **state)
{
  (void)state;
  mt_comm self = mt_comm_self(), other;
  int64_t three = 3, out = 0;
  mt_array<int64_t> value;
  assert_int_equal(value.make(mt_test_gpu, 1, "value"), MT_OK);
  assert_int_equal(mt_to_device(mt_test_gpu, 1, &three, value.data), MT_OK);
  assert_int_equal(mt_gpu_all_sum_i64(mt_test_gpu, &self, 1, value.data), MT_OK);
  assert_int_equal(mt_to_host(mt_test_gpu, 1, value.data, &out), MT_OK);
  assert_int_equal(out, 3);
  if (mt_test_world.size == 1) return;
  assert_int_equal(mt_comm_split(&mt_test_world, 0, mt_test_world.rank, &other), MT_OK);
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_SILENT);
  assert_int_equal(mt_gpu_all_sum_i64(mt_test_gpu, &other, 1, value.data), MT_ERR_ARG);
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_WARN);
  mt_comm_free(&other);
}

/* What a block costs, and how fast it goes (on one machine, NVLink). */
static void test_cost(void **state)
{
  (void)state;
  int64_t n = mt_test_small() ? 1 << 16 : 1 << 29, times = 5;
  mt_array<uint8_t> all, send, recv;
  mt_exchange_cost cost = {0, 0.0};
  assert_int_equal(all.make_zeroed(mt_test_gpu, n * mt_test_world.size, "blocks"),
                   MT_OK);
  assert_int_equal(send.make_zeroed(mt_test_gpu, n, "sent"), MT_OK);
  assert_int_equal(recv.make_zeroed(mt_test_gpu, n, "received"), MT_OK);
  for (int way = 0; way < 2; way++)
    for (int warm = 0; warm < 2; warm++) {
      assert_int_equal(mt_exchange_count(mt_test_gpu, true, &cost), MT_OK);
      for (int64_t i = 0; i < times; i++)
        if (way == 0) {
          assert_int_equal(mt_gpu_allgather_rows(mt_test_gpu, &mt_test_world,
                                                 mt_test_world.size, n, all.data),
                           MT_OK);
        } else {
          assert_int_equal(mt_gpu_shift_begin(mt_test_gpu, &mt_test_world, 1, n,
                                              send.data, n, recv.data),
                           MT_OK);
          assert_int_equal(mt_gpu_shift_end(mt_test_gpu, &mt_test_world), MT_OK);
        }
      assert_int_equal(mt_exchange_count(mt_test_gpu, false, &cost), MT_OK);
      int64_t wanted = mt_test_world.size == 1
                           ? 0
                           : times * n * (way == 0 ? mt_test_world.size - 1 : 1);
      assert_int_equal(cost.bytes, wanted);
      assert_true(cost.seconds >= 0.0);
      if (mt_test_world.rank == 0 && warm == 1 && cost.seconds > 0.0)
        print_message("%s of %lld MB: %.1f GB/s sent by each GPU\n",
                      way == 0 ? "gather" : "shift", (long long)(n >> 20),
                      1e-9 * (double)cost.bytes / cost.seconds);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_gather),   cmocka_unit_test(test_reduce),
    cmocka_unit_test(test_alltoall), cmocka_unit_test(test_shift),
    cmocka_unit_test(test_order),    cmocka_unit_test(test_who_may),
    cmocka_unit_test(test_cost),
};

MT_GPU_TEST_MAIN(tests)
