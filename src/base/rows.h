/* A matrix that is read in blocks of rows: from memory, or from a file too large for it. */
#ifndef MT_BASE_ROWS_H
#define MT_BASE_ROWS_H
#include "base/status.h"
#include <stdint.h>

typedef struct mt_rows {
  int64_t n, d;       /* rows, columns */
  const void *source; /* borrowed */
  /* Rows [first, first + count), row-major float32, into out (count x d). Any rank may
   * read any rows at any time; not collective. */
  mt_status (*read)(const struct mt_rows *rows, int64_t first, int64_t count,
                    float *out);
} mt_rows;

/* Rows that lie in memory: n x d float32, row-major, borrowed. */
mt_rows mt_rows_memory(int64_t n, int64_t d, const float *matrix);

#endif
