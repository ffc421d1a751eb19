/* For tests of the CUDA backend's own parts (tests/NAME.cu): linked with them, once for
 * emulated GPUs and once for real ones. cmocka on each rank that owns a GPU, one verdict for
 * all. A test's first comment names its ranks and GPUs: EMULATED 1 2 3:2 (tests/backend.h). */
#ifndef MT_TESTS_GPU_TEST_H
#define MT_TESTS_GPU_TEST_H
#include "gpu.h"

extern "C" {
#include "test.h"
extern const mt_cuda_library mt_cuda; /* of cuda/backend.cu */
}

extern mt_gpu *mt_test_gpu; /* this rank's, over mt_test_world */

/* As tests/backend.h says. */
static inline bool mt_test_small(void)
{
  return getenv("MT_EMULATED_GPUS") != nullptr || getenv("MT_TEST_SMALL") != nullptr;
}

/* Device arrays from and to plain ones. */
template <class T> static void mt_test_put(mt_array<T> *out, int64_t n, const T *host)
{
  assert_int_equal(out->make(mt_test_gpu, n, "test"), MT_OK);
  assert_int_equal(mt_to_device(mt_test_gpu, n, host, out->data), MT_OK);
}
template <class T> static void mt_test_get(const mt_array<T> &in, T *host)
{
  assert_int_equal(mt_to_host(mt_test_gpu, in.count, in.data, host), MT_OK);
}

static inline mt_status mt_test_start(const mt_comm *world, mt_layout *layout)
{
  char why[500] = "";
  mt_devices devices;
  mt_backend *be = nullptr;
  mt_cuda.devices(&devices, why, sizeof why);
  MT_PASS(mt_layout_create(world, &devices, layout));
  if (layout->n_devices == 0) return mt_fail(MT_ERR_INPUT, "no GPU: %s", why);
  mt_status status = layout->device >= 0 ? mt_cuda.open(&be) : MT_OK;
  MT_PASS(mt_agree(world, status));
  if (be != nullptr) status = be->start(be, &layout->team, layout->device);
  if (be != nullptr) mt_test_gpu = mt_gpu_of(be);
  return mt_agree(world, status);
}

template <size_t N>
static int mt_test_run(int argc, char **argv, const struct CMUnitTest (&tests)[N])
{
  mt_comm world;
  mt_layout layout = {};
  if (mt_comm_start(&argc, &argv, &world) != MT_OK) return 1;
  mt_log_setup(world.rank, world.size, MT_LOG_WARN);
  int failed = mt_test_start(&world, &layout) != MT_OK;
  mt_test_world = layout.team;
  if (!failed && mt_test_gpu != nullptr)
    failed = cmocka_run_group_tests(tests, nullptr, nullptr) != 0;
  int worst = (int)mt_agree(&world, failed ? MT_ERR_INTERNAL : MT_OK);
  if (mt_test_gpu != nullptr && mt_test_gpu->used != 0)
    worst = fprintf(stderr, "%lld bytes of device memory are left\n",
                    (long long)mt_test_gpu->used);
  if (mt_test_gpu != nullptr) mt_test_gpu->table.close(&mt_test_gpu->table);
  if (layout.n_nodes > 0) mt_layout_destroy(&layout);
  mt_comm_stop(&world);
  return worst != 0;
}

#define MT_GPU_TEST_MAIN(tests)            \
  mt_comm mt_test_world;                   \
  mt_gpu *mt_test_gpu;                     \
  int main(int argc, char **argv)          \
  {                                        \
    return mt_test_run(argc, argv, tests); \
  }

#endif
