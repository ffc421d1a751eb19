#include "knn/knn.h"

#include <stdio.h>

static const double cpu_rate =
    2e12; /* a node: operations a second of a matrix product */
static const double gpu_rate = 4e14; /* one GPU */
static const double most_hours = 1.0;

const char *mt_build_algo_name(mt_build_algo algorithm)
{
  static const char *const names[] = {
      [MT_BUILD_AUTO] = "auto",
      [MT_BUILD_BRUTE_FORCE] = "brute_force",
      [MT_BUILD_NN_DESCENT] = "nn_descent",
  };
  return names[algorithm];
}

mt_build_algo mt_knn_choose(mt_build_algo wanted, bool on_gpu, int64_t n, int64_t d,
                            char *reason_out)
{
  double rate = on_gpu ? gpu_rate : cpu_rate;
  double hours = 2.0 * (double)n * (double)n * (double)d / rate / 3600.0;
  bool is_long = hours > most_hours;
  if (wanted != MT_BUILD_AUTO) is_long = wanted == MT_BUILD_NN_DESCENT;
  mt_build_algo algorithm = is_long ? MT_BUILD_NN_DESCENT : MT_BUILD_BRUTE_FORCE;
  snprintf(
      reason_out, reason_out != NULL ? MT_KNN_REASON : 0,
      "%s%s: all pairs of %lld rows are %.2g hours' work at a nominal %g TFLOP/s%s",
      wanted == MT_BUILD_AUTO ? "auto takes " : "", mt_build_algo_name(algorithm),
      (long long)n, hours, rate * 1e-12, wanted == MT_BUILD_AUTO ? " (limit: 1)" : "");
  return algorithm;
}
