/* For tests of what a backend does: the CPU's over all ranks, or with MT_TEST_BACKEND=cuda the
 * CUDA backend over the ranks that own a GPU. The others wait for the verdict: to the test,
 * mt_test_world is the team. A test's first comment names the GPUs that tests/run emulates
 * for it: EMULATED 1 2 3:2 (one rank a GPU; or 3 ranks and 2 GPUs). */
#ifndef MT_TESTS_BACKEND_H
#define MT_TESTS_BACKEND_H
#include "test.h"

#include "backend/backend.h"

#include <stdlib.h>
#include <string.h>

extern mt_backend *mt_test_backend; /* what is tested, over mt_test_world */
extern mt_backend
    *mt_test_cpu; /* what it must equal, on one rank alone; maybe itself */

static inline bool mt_test_on_gpus(void)
{
  return mt_test_backend != mt_test_cpu;
}

/* Where kernels are some hundred times slower: on emulated GPUs, and under compute-sanitizer,
 * for which tests/gpu sets MT_TEST_SMALL. Take smaller data, or fewer cases. */
static inline bool mt_test_small(void)
{
  return mt_test_on_gpus() &&
         (getenv("MT_EMULATED_GPUS") != NULL || getenv("MT_TEST_SMALL") != NULL);
}

static inline mt_status mt_test_open(const mt_comm *world, mt_layout *layout)
{
  mt_status status = MT_OK;
  const char *asked = getenv("MT_TEST_BACKEND");
  bool cuda = asked != NULL && strcmp(asked, "cuda") == 0;
  mt_devices devices;
  MT_TRY(mt_backend_find(world, cuda ? MT_BACKEND_CUDA : MT_BACKEND_CPU, &devices));
  MT_TRY(mt_layout_create(world, &devices, layout));
  MT_TRY(mt_backend_open(world, layout, &mt_test_backend));
  mt_test_cpu = mt_test_backend;
  if (cuda) MT_TRY(mt_agree(world, mt_backend_cpu(&mt_test_cpu)));
done:
  return status;
}

static inline void mt_test_close(mt_layout *layout)
{
  if (mt_test_on_gpus() && mt_test_cpu != NULL) mt_test_cpu->close(mt_test_cpu);
  if (mt_test_backend != NULL) mt_test_backend->close(mt_test_backend);
  if (layout->n_nodes > 0) mt_layout_destroy(layout);
}

/* As MT_TEST_MAIN, and MT_TEST_MAIN_AROUND. */
#define MT_TEST_BACKEND_MAIN(tests) MT_TEST_BACKEND_MAIN_AROUND(tests, NULL, NULL)
#define MT_TEST_BACKEND_MAIN_AROUND(tests, setup, teardown)              \
  mt_comm mt_test_world;                                                 \
  mt_backend *mt_test_backend, *mt_test_cpu;                             \
  int main(int argc, char **argv)                                        \
  {                                                                      \
    mt_comm world;                                                       \
    mt_layout layout = {.n_nodes = 0};                                   \
    if (mt_comm_start(&argc, &argv, &world) != MT_OK) return 1;          \
    mt_log_setup(world.rank, world.size, MT_LOG_WARN);                   \
    int failed = mt_test_open(&world, &layout) != MT_OK;                 \
    mt_test_world = layout.team;                                         \
    if (!failed && layout.team.size > 0)                                 \
      failed = cmocka_run_group_tests(tests, setup, teardown) != 0;      \
    int worst = (int)mt_agree(&world, failed ? MT_ERR_INTERNAL : MT_OK); \
    mt_test_close(&layout);                                              \
    mt_comm_stop(&world);                                                \
    return worst != 0;                                                   \
  }

#endif
