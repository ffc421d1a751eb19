/* Rows for the benchmark's other programs and for the peers, float32, row-major:
 *   bench_data KIND ROWS COLUMNS FOLDER        writes FOLDER/rows
 * KIND  topics  topic vectors (planted.h)
 *       groups  topic vectors in groups of 20 that are alike, all as far from one another
 *       loose   topic vectors that are in no groups at all
 *       points  clusters of very different sizes and densities, with noise (planted.h)
 *       sheet   points all over a cube */
#include "bench.h"
#include "base/memory.h"
#include "planted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 20 };

/* A few hundred terms of a theme hold the mass, the rest a floor. */
static void fill_themed(int64_t i, int64_t theme, float width, int64_t d, float *row)
{
  double sum = 0.0;
  for (int64_t t = 0; t < d; t++) {
    double weight = mt_random_unit(1, MT_STREAM_TEST, (uint64_t)(theme * d + t), 0);
    double noise = mt_random_unit(1, MT_STREAM_TEST, (uint64_t)(i * d + t), 1);
    row[t] =
        (float)(pow(weight, 40.0) * (1.0 + width * (2.0 * noise - 1.0)) + 1e-4 * noise);
    sum += row[t];
  }
  for (int64_t t = 0; t < d; t++) row[t] = (float)(row[t] / sum);
}

static bool is(const char *kind, const char *name)
{
  return strcmp(kind, name) == 0;
}

static mt_status fill(const char *kind, int64_t n, int64_t d, float *rows)
{
  mt_planted planted = mt_planted_default(d);
  mt_scatter scatter = mt_scatter_default(n, d);
  bool points = is(kind, "points") || is(kind, "sheet");
  if (!points && !is(kind, "topics") && !is(kind, "groups") && !is(kind, "loose"))
    return mt_fail(MT_ERR_INPUT, "%s: want topics, groups, loose, points or sheet",
                   kind);
  if (points && d > MT_PLANTED_MOST_DIMENSIONS)
    return mt_fail(MT_ERR_INPUT, "points have at most %d columns",
                   MT_PLANTED_MOST_DIMENSIONS);
  if (is(kind, "sheet")) scatter.anywhere = 1.0f;
#pragma omp parallel for schedule(dynamic, 16)
  for (int64_t i = 0; i < n; i++) {
    if (points)
      mt_scatter_point(&scatter, i, rows + i * d);
    else if (is(kind, "topics"))
      mt_planted_fill(&planted, i, rows + i * d);
    else if (is(kind, "groups"))
      fill_themed(i, i / GROUP, 0.1f, d, rows + i * d);
    else
      fill_themed(i, i, 0.0f, d, rows + i * d);
  }
  return MT_OK;
}

int main(int argc, char **argv)
{
  mt_status status = MT_OK;
  float *rows = NULL;
  mt_log_setup(0, 1, MT_LOG_WARN);
  MT_REQUIRE(argc == 5, MT_ERR_INPUT, "bench_data KIND ROWS COLUMNS FOLDER");
  int64_t n = atoll(argv[2]), d = atoll(argv[3]);
  MT_REQUIRE(n >= 1 && d >= 1, MT_ERR_INPUT, "%s x %s: want 1 or more", argv[2],
             argv[3]);
  MT_NEW(rows, n * d);
  MT_TRY(fill(argv[1], n, d, rows));
  MT_TRY(mt_bench_save(argv[4], "rows", (size_t)(n * d) * sizeof *rows, rows));
done:
  free(rows);
  return mt_exit_code(status);
}
