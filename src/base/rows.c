#include "base/rows.h"

#include <string.h>

/* Large blocks by all threads: one alone reaches a fraction of the memory's speed. */
static void copy_rows(int64_t count, size_t row_bytes, const char *from, char *to)
{
  const size_t large = (size_t)1 << 24;
#pragma omp parallel for schedule(static) if (row_bytes * (size_t)count > large)
  for (int64_t i = 0; i < count; i++)
    memcpy(to + (size_t)i * row_bytes, from + (size_t)i * row_bytes, row_bytes);
}

static mt_status read_memory(const mt_rows *rows, int64_t first, int64_t count,
                             float *out)
{
  if (first < 0 || count < 0 || count > rows->n - first)
    return mt_fail(MT_ERR_ARG, "rows %lld to %lld of %lld", (long long)first,
                   (long long)(first + count), (long long)rows->n);
  const float *matrix = rows->source;
  if (count * rows->d > 0)
    copy_rows(count, (size_t)rows->d * sizeof *out,
              (const char *)(matrix + first * rows->d), (char *)out);
  return MT_OK;
}

mt_rows mt_rows_memory(int64_t n, int64_t d, const float *matrix)
{
  return (mt_rows){.n = n, .d = d, .source = matrix, .read = read_memory};
}
