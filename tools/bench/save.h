/* Rows and results for the peers' scripts, as plain bytes. */
#ifndef MT_BENCH_SAVE_H
#define MT_BENCH_SAVE_H
#include "base/status.h"

#include <stddef.h>
#include <stdio.h>

/* Writes bytes of data to the file path + ending. MT_ERR_IO, naming it. */
static inline mt_status mt_bench_save(const char *path, const char *ending,
                                      size_t bytes, const void *data)
{
  char name[4096];
  snprintf(name, sizeof name, "%s%s", path, ending);
  FILE *file = fopen(name, "wb");
  if (file == NULL) return mt_fail(MT_ERR_IO, "cannot write %s", name);
  size_t wrote = fwrite(data, 1, bytes, file);
  if (fclose(file) != 0 || wrote != bytes)
    return mt_fail(MT_ERR_IO, "cannot write %s", name);
  return MT_OK;
}

#endif
