#include "base/memory.h"
#include "knn/knn.h"

#include <stdlib.h>

const char *mt_metric_name(mt_metric metric)
{
  static const char *const names[] = {
      [MT_METRIC_COSINE] = "cosine",
      [MT_METRIC_HELLINGER] = "hellinger",
      [MT_METRIC_EUCLIDEAN] = "euclidean",
  };
  return names[metric];
}

void mt_knn_check(mt_metric metric, int64_t first, int64_t count, int64_t d,
                  const float *rows, int64_t *bad_out, int64_t *column_out)
{
  float lowest = metric == MT_METRIC_HELLINGER ? 0.0f : -FLT_MAX;
  *bad_out = -1;
  for (int64_t i = 0; i < count; i++) {
    const float *row = rows + i * d;
    int bad = 0;
    for (int64_t t = 0; t < d; t++) bad |= !(row[t] >= lowest && row[t] <= FLT_MAX);
    if (!bad) continue;
    int64_t t = 0;
    while (row[t] >= lowest && row[t] <= FLT_MAX) t++;
    *bad_out = first + i;
    if (column_out != NULL) *column_out = t;
    return;
  }
}

mt_status mt_knn_refuse(mt_metric metric, int64_t row, int64_t column, double value)
{
  return mt_fail(MT_ERR_INPUT,
                 "topic vector %lld is %g in column %lld: the metric %s allows finite "
                 "values%s",
                 (long long)row, value, (long long)column, mt_metric_name(metric),
                 metric == MT_METRIC_HELLINGER ? " of 0 or more" : "");
}

typedef struct neighbour {
  double distance;
  int64_t index;
} neighbour;

static int compare(const void *a, const void *b)
{
  const neighbour *p = a, *q = b;
  if (p->distance != q->distance) return p->distance < q->distance ? -1 : 1;
  return (p->index > q->index) - (p->index < q->index);
}

/* Every other row's distance to row i, sorted. */
static void rank_row(mt_metric metric, int64_t n, int64_t d, const float *matrix,
                     int64_t i, double *z, neighbour *all)
{
  const float *x = matrix + i * d;
  double scale = mt_metric_scale(metric, d, x);
  int64_t count = 0;
  for (int64_t t = 0; t < d; t++) z[t] = mt_metric_coordinate(metric, scale, x[t]);
  for (int64_t j = 0; j < n; j++) {
    if (j == i) continue;
    const float *y = matrix + j * d;
    double y_scale = mt_metric_scale(metric, d, y);
    double square = mt_metric_square(metric, d, z, y_scale, y);
    all[count].distance = mt_metric_distance(metric, scale, y_scale, square);
    all[count++].index = j;
  }
  qsort(all, (size_t)count, sizeof *all, compare);
}

mt_status mt_knn_ref(mt_metric metric, int64_t n, int64_t d, const float *matrix,
                     int64_t k, int64_t *indices_out, double *distances_out)
{
  mt_status status = MT_OK;
  double *z = NULL;
  neighbour *all = NULL;
  int64_t bad, column;

  MT_REQUIRE(n >= 0 && d >= 0 && k >= 0 && (k < n || n + k == 0), MT_ERR_ARG,
             "%lld neighbours of %lld rows", (long long)k, (long long)n);
  mt_knn_check(metric, 0, n, d, matrix, &bad, &column);
  if (bad >= 0) MT_TRY(mt_knn_refuse(metric, bad, column, matrix[bad * d + column]));
  MT_NEW(z, d);
  MT_NEW(all, n);
  for (int64_t i = 0; i < n; i++) {
    rank_row(metric, n, d, matrix, i, z, all);
    for (int64_t m = 0; m < k; m++) {
      indices_out[i * k + m] = all[m].index;
      distances_out[i * k + m] = all[m].distance;
    }
  }
done:
  free(z);
  free(all);
  return status;
}
