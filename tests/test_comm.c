/* RANKS 1 2 3 4 7
 * Collectives against what each must give, with messages of 7 bytes and of any size. */
#include "comm/pool.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static mt_comm small; /* the world with tiny slices */

static void test_bcast(void **state)
{
  (void)state;
  char text[100];
  memset(text, small.rank == small.size - 1 ? 'x' : '.', sizeof text);
  assert_int_equal(mt_bcast(&small, small.size - 1, sizeof text, text), MT_OK);
  for (size_t i = 0; i < sizeof text; i++) assert_int_equal(text[i], 'x');
}

static void test_reductions(void **state)
{
  (void)state;
  int64_t sum[5], low[5], size = small.size;
  for (int i = 0; i < 5; i++) sum[i] = low[i] = small.rank + i;
  assert_int_equal(mt_sum_i64(&small, 5, sum), MT_OK);
  assert_int_equal(mt_min_i64(&small, 5, low), MT_OK);
  for (int i = 0; i < 5; i++) {
    assert_int_equal(sum[i], size * (size - 1) / 2 + i * size);
    assert_int_equal(low[i], i);
  }
  int64_t before = -1;
  assert_int_equal(mt_exscan_i64(&small, small.rank + 1, &before), MT_OK);
  assert_int_equal(before, (int64_t)small.rank * (small.rank + 1) / 2);
}

/* Byte i of the block from s to r. */
static unsigned char byte_of(int s, int r, size_t i)
{
  return (unsigned char)(s * 31 + r * 7 + (int)i);
}

static size_t length_of(int s, int r)
{
  return (size_t)(s * 5 + r * 3) % 23; /* some are 0 */
}

static void test_alltoallv(void **state)
{
  (void)state;
  size_t send_bytes[16], recv_bytes[16];
  unsigned char send[16 * 23], recv[16 * 23], *at = send;
  for (int r = 0; r < small.size; r++) {
    send_bytes[r] = length_of(small.rank, r);
    for (size_t i = 0; i < send_bytes[r]; i++) *at++ = byte_of(small.rank, r, i);
  }
  assert_int_equal(mt_alltoall_sizes(&small, send_bytes, recv_bytes), MT_OK);
  assert_int_equal(mt_alltoallv(&small, send_bytes, send, recv_bytes, recv), MT_OK);
  at = recv;
  for (int s = 0; s < small.size; s++) {
    assert_int_equal(recv_bytes[s], length_of(s, small.rank));
    for (size_t i = 0; i < recv_bytes[s]; i++)
      assert_int_equal(*at++, byte_of(s, small.rank, i));
  }
}

static void test_gathers(void **state)
{
  (void)state;
  size_t bytes[16], total = 0, mine = 0;
  unsigned char all[16 * 23], out[16 * 23];
  for (int r = 0; r < small.size; r++) {
    bytes[r] = length_of(r, 1);
    if (r == small.rank) mine = total;
    total += bytes[r];
  }
  for (size_t i = 0; i < bytes[small.rank]; i++)
    all[mine + i] = byte_of(small.rank, 0, i);
  assert_int_equal(mt_gatherv(&small, 0, bytes, all + mine, out), MT_OK);
  assert_int_equal(mt_allgatherv(&small, bytes, all), MT_OK);
  size_t at = 0;
  for (int r = 0; r < small.size; r++)
    for (size_t i = 0; i < bytes[r]; i++, at++) {
      assert_int_equal(all[at], byte_of(r, 0, i));
      if (small.rank == 0) assert_int_equal(out[at], byte_of(r, 0, i));
    }
}

static void test_allgather_rows(void **state)
{
  (void)state;
  enum { ROWS = 11, WIDTH = 3 };
  unsigned char rows[ROWS * WIDTH] = {0};
  int64_t first = mt_part_first(ROWS, small.size, small.rank);
  for (int64_t i = first; i < mt_part_first(ROWS, small.size, small.rank + 1); i++)
    for (int c = 0; c < WIDTH; c++) rows[i * WIDTH + c] = byte_of((int)i, c, 0);
  assert_int_equal(mt_allgather_rows(&small, ROWS, WIDTH, rows), MT_OK);
  for (int i = 0; i < ROWS; i++)
    for (int c = 0; c < WIDTH; c++)
      assert_int_equal(rows[i * WIDTH + c], byte_of(i, c, 0));
}

static void test_allgather_bytes(void **state)
{
  (void)state;
  unsigned char block[23], *all = NULL;
  size_t size = length_of(small.rank, 1), total = 0, at = 0;
  for (size_t i = 0; i < size; i++) block[i] = byte_of(small.rank, 4, i);
  assert_int_equal(mt_allgather_bytes(&small, size, block, &total, (void **)&all),
                   MT_OK);
  for (int r = 0; r < small.size; r++)
    for (size_t i = 0; i < length_of(r, 1); i++)
      assert_int_equal(all[at++], byte_of(r, 4, i));
  assert_int_equal(at, total);
  free(all);
}

static void test_ring(void **state)
{
  (void)state;
  int previous = (small.rank + small.size - 1) % small.size;
  size_t mine = length_of(small.rank, 2), theirs = length_of(previous, 2);
  unsigned char send[23], recv[23];
  for (size_t i = 0; i < mine; i++) send[i] = byte_of(small.rank, 2, i);
  mt_ring *ring = NULL;
  assert_int_equal(mt_ring_begin(&small, mine, send, theirs, recv, &ring), MT_OK);
  assert_int_equal(mt_ring_end(&small, &ring), MT_OK);
  for (size_t i = 0; i < theirs; i++)
    assert_int_equal(recv[i], byte_of(previous, 2, i));
}

static void test_counter(void **state)
{
  (void)state;
  enum { DRAWS = 50 };
  mt_counter *counter = NULL;
  int64_t seen[16 * DRAWS] = {0}, value;
  assert_int_equal(mt_counter_create(&small, &counter), MT_OK);
  for (int i = 0; i < DRAWS; i++) {
    assert_int_equal(mt_counter_next(counter, &value), MT_OK);
    assert_in_range(value, 0, (int64_t)small.size * DRAWS - 1);
    seen[value]++;
  }
  assert_int_equal(mt_counter_destroy(&small, &counter), MT_OK);
  assert_int_equal(mt_sum_i64(&small, (int64_t)small.size * DRAWS, seen), MT_OK);
  for (int i = 0; i < small.size * DRAWS; i++) assert_int_equal(seen[i], 1);
}

/* Every other rank gives blocks; each is taken, or kept, once and whole, in the order of its
 * giver. */
static void take_block(const char *bytes, int64_t size, int64_t *seen, int64_t *last)
{
  int from = bytes[0], number = bytes[1];
  assert_int_equal(size, 2 + number * from);
  for (int64_t i = 2; i < size; i++) assert_int_equal(bytes[i], number);
  assert_true(number > last[from]);
  last[from] = number;
  seen[from * 100 + number]++;
}

static void test_pool(void **state)
{
  (void)state;
  enum { BLOCKS = 40 };
  mt_pool *pool = NULL;
  const int step = 2;
  int64_t seen[16 * 100] = {0}, last[16], size;
  char head[2], body[16 * BLOCKS];
  const char *block;
  bool gives = small.rank % step == 0;
  for (int r = 0; r < 16; r++) last[r] = -1;
  assert_int_equal(mt_pool_create(&small, gives, &pool), MT_OK);
  for (int b = 0; gives && b < BLOCKS; b++) {
    bool given;
    char whole[sizeof head + sizeof body];
    size_t length = (size_t)(b * small.rank);
    head[0] = (char)small.rank, head[1] = (char)b;
    memset(body, b, length);
    const struct iovec parts[] = {{head, sizeof head}, {body, length}};
    assert_int_equal(mt_pool_give(pool, 2, parts, &given), MT_OK);
    if (given) continue;
    memcpy(whole, head, sizeof head);
    memcpy(whole + sizeof head, body, length);
    take_block(whole, (int64_t)(sizeof head + length), seen, last);
  }
  for (int r = 0; r < 16; r++)
    if (r != small.rank) last[r] = -1;
  while ((block = mt_pool_take(pool, &size)) != NULL)
    take_block(block, size, seen, last);
  assert_int_equal(size, -1);
  assert_int_equal(mt_pool_destroy(&small, &pool), MT_OK);
  assert_int_equal(mt_sum_i64(&small, 16 * 100, seen), MT_OK);
  for (int i = 0; i < 16 * 100; i++)
    assert_int_equal(seen[i],
                     i / 100 < small.size && i / 100 % step == 0 && i % 100 < BLOCKS);
}

/* Every pair of neighbours makes one; the others are not there. */
static void test_parts(void **state)
{
  (void)state;
  for (int first = 0; first + 1 < small.size; first++) {
    if (small.rank != first && small.rank != first + 1) continue;
    mt_comm pair;
    int64_t sum = small.rank;
    assert_int_equal(mt_comm_part(&small, first, 2, &pair), MT_OK);
    assert_int_equal(pair.size, 2);
    assert_int_equal(pair.rank, small.rank - first);
    assert_int_equal(pair.max_message, small.max_message);
    assert_int_equal(mt_sum_i64(&pair, 1, &sum), MT_OK);
    assert_int_equal(sum, 2 * first + 1);
    mt_comm_free(&pair);
  }
}

static void test_agree(void **state)
{
  (void)state;
  mt_status mine = small.rank == small.size / 2 ? MT_ERR_IO : MT_OK;
  assert_int_equal(mt_agree(&small, mine), MT_ERR_IO);
  assert_int_equal(mt_agree(&small, MT_OK), MT_OK);
}

static void test_partition(void **state)
{
  (void)state;
  for (int64_t n = 0; n < 40; n++)
    for (int size = 1; size < 9; size++) {
      assert_int_equal(mt_part_first(n, size, 0), 0);
      assert_int_equal(mt_part_first(n, size, size), n);
      for (int64_t i = 0; i < n; i++) {
        int owner = mt_part_owner(n, size, i);
        assert_true(i >= mt_part_first(n, size, owner));
        assert_true(i < mt_part_first(n, size, owner + 1));
      }
    }
}

static int shrink(void **state)
{
  (void)state;
  small = mt_test_world;
  small.max_message = 7;
  return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(test_bcast, shrink),
    cmocka_unit_test_setup(test_reductions, shrink),
    cmocka_unit_test_setup(test_alltoallv, shrink),
    cmocka_unit_test_setup(test_gathers, shrink),
    cmocka_unit_test_setup(test_allgather_rows, shrink),
    cmocka_unit_test_setup(test_allgather_bytes, shrink),
    cmocka_unit_test_setup(test_ring, shrink),
    cmocka_unit_test_setup(test_counter, shrink),
    cmocka_unit_test_setup(test_pool, shrink),
    cmocka_unit_test_setup(test_parts, shrink),
    cmocka_unit_test_setup(test_agree, shrink),
    cmocka_unit_test(test_partition),
};

MT_TEST_MAIN(tests)
