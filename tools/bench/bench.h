/* What the benchmark's programs share. Each does one thing once and prints one line of JSON with
 * what it took; tools/bench/bench starts them in turns with the peers and reads the lines. */
#ifndef MT_BENCH_BENCH_H
#define MT_BENCH_BENCH_H
#include "base/log.h"
#include "base/status.h"
#include "comm/comm.h"
#include "deck/deck.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The parameters' defaults, then SECTION.NAME=VALUE of each of n words. The caller destroys
 * them. MT_ERR_INPUT. */
static inline mt_status mt_bench_parameters(int n, char **words, mt_parameters *out)
{
  mt_status status = MT_OK;
  MT_TRY(mt_parameters_default(out));
  for (int i = 0; i < n; i++) MT_TRY(mt_parameters_set(out, words[i]));
done:
  return status;
}

/* n rows of d columns, k neighbours of each, in three words. MT_ERR_INPUT. */
static inline mt_status mt_bench_sizes(char **words, int64_t *n, int64_t *d, int64_t *k)
{
  *n = atoll(words[0]);
  *d = atoll(words[1]);
  *k = atoll(words[2]);
  if (*n < 2 || *d < 1 || *k < 1 || *k >= *n)
    return mt_fail(MT_ERR_INPUT, "no %s neighbours of %s rows of %s columns", words[2],
                   words[0], words[1]);
  return MT_OK;
}

/* Seconds on the clock and of the processor (this rank, all threads). */
typedef struct mt_elapsed {
  double clock, processor;
} mt_elapsed;

static inline mt_elapsed mt_bench_now(void)
{
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return (mt_elapsed){mt_seconds(), (double)used.tv_sec + 1e-9 * (double)used.tv_nsec};
}

/* From begin to now: the slowest rank's clock, and the processors of all ranks. Collective. */
static inline mt_status mt_bench_since(const mt_comm *comm, mt_elapsed begin,
                                       mt_elapsed *out)
{
  mt_status status = MT_OK;
  mt_elapsed end = mt_bench_now();
  int64_t nanoseconds = (int64_t)(1e9 * (end.processor - begin.processor));
  out->clock = end.clock - begin.clock;
  MT_TRY(mt_max_f64(comm, 1, &out->clock));
  MT_TRY(mt_sum_i64(comm, 1, &nanoseconds));
  out->processor = 1e-9 * (double)nanoseconds;
done:
  return status;
}

static inline mt_status mt_bench_file(const char *path, const char *mode, size_t bytes,
                                      void *data)
{
  bool writes = mode[0] == 'w';
  FILE *file = fopen(path, mode);
  if (file == NULL)
    return mt_fail(MT_ERR_IO, "cannot %s %s", writes ? "write" : "read", path);
  size_t moved = writes ? fwrite(data, 1, bytes, file) : fread(data, 1, bytes, file);
  if (fclose(file) != 0 || moved != bytes)
    return mt_fail(MT_ERR_IO, "%s: %zu of %zu bytes", path, moved, bytes);
  return MT_OK;
}

/* Files for and from the peers are plain bytes, of one array each; the path is folder/name.
 * MT_ERR_IO, naming it, also when it is too short. */
static inline mt_status mt_bench_save(const char *folder, const char *name,
                                      size_t bytes, const void *data)
{
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return mt_bench_file(path, "wb", bytes, (void *)data);
}

static inline mt_status mt_bench_load(const char *folder, const char *name,
                                      size_t bytes, void *data)
{
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return mt_bench_file(path, "rb", bytes, data);
}

#endif
