/* What every test shares: cmocka on each rank, one verdict for all of them. A test's first
 * comment names the ranks it runs with: RANKS 1 2 3 (default 1). */
#ifndef MT_TESTS_TEST_H
#define MT_TESTS_TEST_H
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"
#include "base/random.h"
#include "comm/comm.h"

extern mt_comm mt_test_world;

/* |out - ref| <= absolute + relative x |ref|, element by element; prints the worst. */
#define MT_TEST_CLOSE(out, ref, n, relative, absolute)                    \
  do {                                                                    \
    double worst = -1.0;                                                  \
    int64_t where = 0;                                                    \
    for (int64_t at = 0; at < (n); at++) {                                \
      double want = (double)(ref)[at], got = (double)(out)[at];           \
      double off = (got > want ? got - want : want - got) -               \
                   ((absolute) + (relative) * (want < 0 ? -want : want)); \
      if (!(off <= worst)) worst = off, where = at;                       \
    }                                                                     \
    if ((n) > 0 && !(worst <= 0.0))                                       \
      fail_msg("element %lld: got %.9g, want %.9g", (long long)where,     \
               (double)(out)[where], (double)(ref)[where]);               \
  } while (0)

/* main(): runs the group on every rank; fails if any rank failed. */
#define MT_TEST_MAIN(tests) MT_TEST_MAIN_AROUND(tests, NULL, NULL)

/* Likewise, with a set-up and a tear-down of the whole group. */
#define MT_TEST_MAIN_AROUND(tests, setup, teardown)                              \
  mt_comm mt_test_world;                                                         \
  int main(int argc, char **argv)                                                \
  {                                                                              \
    if (mt_comm_start(&argc, &argv, &mt_test_world) != MT_OK) return 1;          \
    mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_WARN);           \
    int failed = cmocka_run_group_tests(tests, setup, teardown) != 0;            \
    int worst = (int)mt_agree(&mt_test_world, failed ? MT_ERR_INTERNAL : MT_OK); \
    mt_comm_stop(&mt_test_world);                                                \
    return worst != 0;                                                           \
  }

#endif
