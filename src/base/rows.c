#include "base/rows.h"

#include <string.h>

static mt_status read_memory(const mt_rows *rows, int64_t first, int64_t count,
                             float *out)
{
  if (first < 0 || count < 0 || count > rows->n - first)
    return mt_fail(MT_ERR_ARG, "rows %lld to %lld of %lld", (long long)first,
                   (long long)(first + count), (long long)rows->n);
  const float *matrix = rows->source;
  if (count * rows->d > 0)
    memcpy(out, matrix + first * rows->d, (size_t)(count * rows->d) * sizeof *out);
  return MT_OK;
}

mt_rows mt_rows_memory(int64_t n, int64_t d, const float *matrix)
{
  return (mt_rows){.n = n, .d = d, .source = matrix, .read = read_memory};
}
