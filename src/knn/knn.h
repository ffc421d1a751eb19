/* The nearest neighbours of every topic row: what they are, and the stage that stores them.
 * The backends find them (backend/backend.h). */
#ifndef MT_KNN_KNN_H
#define MT_KNN_KNN_H
#include "base/status.h"
#include "knn/metric.h"
#include <stdbool.h>
#include <stdint.h>

/**
 * Checks rows for a metric: all values finite, and none below 0 for hellinger.
 * first    the number of the first row
 * bad_out  the number of the first row that is not so and, if column_out is not NULL,
 *          where; -1 if all are fine
 * Not collective, never fails.
 */
void mt_knn_check(mt_metric metric, int64_t first, int64_t count, int64_t d,
                  const float *rows, int64_t *bad_out, int64_t *column_out);

/**
 * The k nearest other rows of every row, by brute force in double (metric.h). Not
 * collective; slow: what the backends are compared with.
 * matrix         (n, d) float32, row-major; finite, >= 0 for hellinger
 * k              0 <= k < n, or k = n = 0
 * indices_out    (n, k): nearest first, equal distances (as doubles) by lower index
 * distances_out  (n, k)
 * Errors         MT_ERR_ARG k out of range; MT_ERR_INPUT a row that the metric does not
 *                allow; MT_ERR_MEMORY
 */
mt_status mt_knn_ref(mt_metric metric, int64_t n, int64_t d, const float *matrix,
                     int64_t k, int64_t *indices_out, double *distances_out);

/* Logs which row the metric does not allow and why; returns MT_ERR_INPUT. */
mt_status mt_knn_refuse(mt_metric metric, int64_t row, int64_t column, double value);

/* The names in the deck. */
const char *mt_metric_name(mt_metric metric);
const char *mt_build_algo_name(mt_build_algo algorithm);

/**
 * The algorithm for n rows of d columns: auto takes the exact one unless 2 n^2 d operations
 * would take more than an hour at a nominal rate, of a node (2 TFLOP/s) or of a GPU (400), so
 * that the choice hangs on nothing but the matrix and the backend.
 * reason_out   [MT_KNN_REASON] what was chosen and why, a line for people; or NULL
 */
enum { MT_KNN_REASON = 200 };
mt_build_algo mt_knn_choose(mt_build_algo wanted, bool on_gpu, int64_t n, int64_t d,
                            char *reason_out);

#endif
