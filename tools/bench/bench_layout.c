/* How true a layout of FOLDER/rows is: bench_layout FOLDER POINTS COLUMNS NEIGHBOURS POSITIONS
 * POSITIONS (n, 2) float32, a file of that folder. The trustworthiness of 1,000 points. */
#include "base/memory.h"
#include "bench.h"
#include "gpu_trust.h"

#include <stdlib.h>

enum { SAMPLE = 1000 };

int main(int argc, char **argv)
{
  mt_status status = MT_OK;
  float *rows = NULL, *positions = NULL;
  double trust;
  int64_t n, d, k;
  mt_log_setup(0, 1, MT_LOG_WARN);
  MT_REQUIRE(argc == 6, MT_ERR_INPUT,
             "bench_layout FOLDER POINTS COLUMNS NEIGHBOURS POSITIONS");
  MT_TRY(mt_bench_sizes(argv + 2, &n, &d, &k));
  MT_NEW(rows, n * d);
  MT_NEW(positions, n * 2);
  MT_TRY(mt_bench_load(argv[1], "rows", (size_t)(n * d) * sizeof *rows, rows));
  MT_TRY(
      mt_bench_load(argv[1], argv[5], (size_t)(n * 2) * sizeof *positions, positions));
  MT_TRY(mt_bench_trust(n, d, rows, 2, positions, k, n < SAMPLE ? n : SAMPLE, &trust));
  printf("{\"trustworthiness\": %.6f}\n", trust);
done:
  free(rows);
  free(positions);
  return mt_exit_code(status);
}
