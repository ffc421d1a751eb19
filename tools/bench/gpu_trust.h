/* How true a layout is to what it lays out. */
#ifndef MT_BENCH_GPU_TRUST_H
#define MT_BENCH_GPU_TRUST_H
#include "base/status.h"
#include <stdint.h>

/**
 * Trustworthiness of a layout over evenly spread points: 1 - 2 / (m k (2n - 3k - 1)) times the
 * sum, over the m points and those of their k nearest in the layout that are not among their k
 * nearest in space, of how far beyond k these rank there. Not collective.
 * points      (n, d);  positions (n, e)
 * m           points that are looked at, 1 <= m <= n; 1 <= k, 3k < 2n - 1
 * trust_out   in [0, 1]
 * Errors      MT_ERR_MEMORY
 * Source      Venna, Kaski 2001; scikit-learn's trustworthiness
 */
mt_status mt_bench_trust(int64_t n, int64_t d, const float *points, int64_t e,
                         const float *positions, int64_t k, int64_t m,
                         double *trust_out);

#endif
