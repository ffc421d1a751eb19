/* RANKS 1 2 3 4 7
 * Who owns a GPU, and who runs the stages over all topics. */
#include "test.h"

#include "comm/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const mt_devices none = {.n = 0},
                        two = {.n = 2,
                               .at = {{.id = "0000:18:00.0", .number = 0},
                                      {.id = "0000:2a:00.0", .number = 1}}};

static void test_without_gpus(void **state)
{
  (void)state;
  mt_layout layout;
  unsetenv("OMP_NUM_THREADS");
  assert_int_equal(mt_layout_create(&mt_test_world, &none, &layout), MT_OK);
  assert_int_equal(layout.n_devices, 0);
  assert_int_equal(layout.device, -1);
  assert_int_equal(layout.team.size, mt_test_world.size);
  assert_int_equal(layout.team.rank, mt_test_world.rank);
  assert_true(layout.n_threads >= 1);
  int64_t threads = layout.n_threads; /* no more than cores, unless one each is more */
  assert_int_equal(mt_sum_i64(&mt_test_world, 1, &threads), MT_OK);
  assert_true(threads <= sysconf(_SC_NPROCESSORS_ONLN) || layout.n_threads == 1);
  mt_layout_destroy(&layout);
}

/* With 2 devices a node: one process per GPU, the surplus ranks stay outside. */
static void test_with_gpus(void **state)
{
  (void)state;
  enum { DEVICES = 2 };
  mt_layout layout;
  assert_int_equal(mt_layout_create(&mt_test_world, &two, &layout), MT_OK);
  int owners = layout.node_size < DEVICES ? layout.node_size : DEVICES;
  assert_int_equal(layout.n_devices,
                   owners * layout.n_nodes); /* tests run on one node */
  assert_int_equal(layout.device, layout.node_rank < DEVICES ? layout.node_rank : -1);
  assert_int_equal(layout.team.size, layout.device >= 0 ? layout.n_devices : 0);
  mt_layout_destroy(&layout);
}

/* Devices on one rank only, as in a heterogeneous job. */
static void test_one_owner(void **state)
{
  (void)state;
  mt_layout layout;
  assert_int_equal(
      mt_layout_create(&mt_test_world, mt_test_world.rank == 0 ? &two : &none, &layout),
      MT_OK);
  assert_int_equal(layout.n_devices, 1);
  assert_int_equal(layout.team.size, mt_test_world.rank == 0);
  mt_layout_destroy(&layout);
}

/* Without GPUs, the named ranks; a GPU goes before a name. */
static void test_named_team(void **state)
{
  (void)state;
  mt_layout layout;
  int rank = mt_test_world.rank, odd = mt_test_world.size / 2;
  setenv("METATOPICS_TEAM", rank % 2 == 1 ? "1" : "0", 1);
  assert_int_equal(mt_layout_create(&mt_test_world, &none, &layout), MT_OK);
  assert_int_equal(layout.team_size, odd > 0 ? odd : mt_test_world.size);
  assert_int_equal(layout.team_root, odd > 0);
  assert_int_equal(layout.team.size, odd == 0 || rank % 2 == 1 ? layout.team_size : 0);
  mt_layout_destroy(&layout);
  assert_int_equal(mt_layout_create(&mt_test_world, rank == 0 ? &two : &none, &layout),
                   MT_OK);
  assert_int_equal(layout.team.size, rank == 0);
  assert_int_equal(layout.team_root, 0);
  mt_layout_destroy(&layout);
  unsetenv("METATOPICS_TEAM");
}

/* As with --gpus-per-task=1: each rank sees one device, two ranks each the same one. */
static void test_one_seen_each(void **state)
{
  (void)state;
  mt_layout layout;
  mt_devices one = {.n = 1};
  int l = mt_test_world.rank;
  snprintf(one.at[0].id, sizeof one.at[0].id, "0000:%02x:00.0", l / 2);
  assert_int_equal(mt_layout_create(&mt_test_world, &one, &layout), MT_OK);
  assert_int_equal(layout.device, l % 2 == 0 ? 0 : -1);
  assert_int_equal(layout.n_devices, (mt_test_world.size + 1) / 2);
  mt_layout_destroy(&layout);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_without_gpus),  cmocka_unit_test(test_with_gpus),
    cmocka_unit_test(test_one_owner),     cmocka_unit_test(test_named_team),
    cmocka_unit_test(test_one_seen_each),
};

MT_TEST_MAIN(tests)
