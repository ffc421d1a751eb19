/* RANKS 1
 * How busy a GPU is, from an emulated NVML; and a GPU, and a machine, that do not tell. */
#include "test.h"

#include "report/gpu_watch.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Later searches of the loader by this library's name end here. */
static void *load_nvml(void)
{
  char path[4096];
  const char *build = getenv("BUILD");
  snprintf(path, sizeof path, "%s/emulated/libnvidia-ml.so.1",
           build != NULL ? build : "build");
  void *library = dlopen(path, RTLD_NOW);
  if (library == NULL) fail_msg("%s", dlerror());
  return library;
}

static double seconds_read(mt_gpu_watch *watch, double *busy)
{
  double covered;
  mt_gpu_watch_read(watch, &covered, busy);
  return covered;
}

static void test_shares(void **state)
{
  (void)state;
  double busy, first, second;
  void *library = load_nvml();
  setenv("MT_EMULATED_BUSY", "40", 1);
  double start = mt_seconds();
  mt_gpu_watch *watch = mt_gpu_watch_start("0000:01:00.0");
  assert_non_null(watch);
  while ((first = seconds_read(watch, &busy)) < 0.3) { /* samples come with time */
  }
  assert_true(first <= mt_seconds() - start + 0.06); /* none of before the start */
  assert_true(fabs(busy - 0.4 * first) < 1e-9);
  setenv("MT_EMULATED_BUSY", "100", 1);
  double before = busy;
  while ((second = seconds_read(watch, &busy)) < first + 0.2) {
  }
  assert_true(fabs(busy - before - (second - first)) < 1e-9);
  mt_gpu_watch_stop(watch);
  dlclose(library);
}

/* Longer than the driver keeps samples: the watch's own thread looks in time. */
static void test_long(void **state)
{
  (void)state;
  double busy, start = mt_seconds();
  void *library = load_nvml();
  setenv("MT_EMULATED_BUSY", "25", 1);
  mt_gpu_watch *watch = mt_gpu_watch_start("0000:02:00.0");
  assert_non_null(watch);
  while (mt_seconds() < start + 3.0) {
  }
  double covered = seconds_read(watch, &busy);
  assert_true(covered > 2.5 && covered <= mt_seconds() - start + 0.06);
  assert_true(fabs(busy - 0.25 * covered) < 1e-9);
  mt_gpu_watch_stop(watch);
  dlclose(library);
}

static void test_none(void **state)
{
  (void)state;
  void *library = load_nvml();
  assert_null(mt_gpu_watch_start("0000:03:00.0")); /* it does not tell */
  assert_null(mt_gpu_watch_start("7"));            /* NVML does not know it */
  dlclose(library);
  void *driver = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (driver == NULL) assert_null(mt_gpu_watch_start("0000:01:00.0"));
  if (driver != NULL) dlclose(driver);
  mt_gpu_watch_stop(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_shares),
    cmocka_unit_test(test_long),
    cmocka_unit_test(test_none),
};

MT_TEST_MAIN(tests)
