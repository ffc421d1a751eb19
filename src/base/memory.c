#include "base/memory.h"

#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* LARGE: from here on in whole pages of the largest kind. */
enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20, LARGE = 2 * HUGE_PAGE };

/* Clears new memory. A page that is touched for the first time has to be fetched from the
 * system, which for a large array takes longer than much of the work on it: by all threads,
 * in large pages. bytes: a multiple of HUGE_PAGE, or less than LARGE. */
static void clear(char *memory, size_t bytes)
{
  if (bytes < LARGE) {
    memset(memory, 0, bytes);
    return;
  }
  madvise(memory, bytes, MADV_HUGEPAGE); /* if there are any */
#pragma omp parallel for schedule(static)
  for (size_t at = 0; at < bytes; at += HUGE_PAGE) memset(memory + at, 0, HUGE_PAGE);
}

mt_status mt_memory_new(int64_t count, size_t size, const char *what, void **out)
{
  if (count < 0) return mt_fail(MT_ERR_ARG, "%s: negative count", what);
  size_t bytes;
  if (__builtin_mul_overflow((size_t)count, size, &bytes) ||
      bytes > SIZE_MAX - HUGE_PAGE)
    return mt_fail(MT_ERR_MEMORY, "%s: %lld elements of %zu bytes are too many", what,
                   (long long)count, size);
  size_t unit = bytes < LARGE ? ALIGNMENT : HUGE_PAGE;
  bytes = (bytes / unit + 1) * unit;
  void *memory = aligned_alloc(unit, bytes);
  if (memory == NULL)
    return mt_fail(MT_ERR_MEMORY, "%s: no memory for %zu bytes", what, bytes);
  clear(memory, bytes);
  *out = memory;
  return MT_OK;
}

mt_status mt_memory_block(size_t bytes, const char *what, void **out)
{
  size_t room = bytes <= SIZE_MAX - HUGE_PAGE ? (bytes + HUGE_PAGE - 1) / HUGE_PAGE : 0;
  void *memory = room > 0 ? aligned_alloc(HUGE_PAGE, room * HUGE_PAGE) : NULL;
  if (memory == NULL)
    return mt_fail(MT_ERR_MEMORY, "%s: no memory for %zu bytes", what, bytes);
  madvise(memory, room * HUGE_PAGE, MADV_HUGEPAGE); /* if there are any */
  *out = memory;
  return MT_OK;
}

mt_status mt_memory_grow(int64_t count, size_t size, const char *what,
                         int64_t *capacity, void **memory)
{
  if (count <= *capacity && *memory != NULL) return MT_OK;
  int64_t room = *capacity > 8 ? *capacity : 8;
  while (room < count) room *= 2;
  size_t bytes;
  if (__builtin_mul_overflow((size_t)room, size, &bytes))
    return mt_fail(MT_ERR_MEMORY, "%s: %lld elements of %zu bytes are too many", what,
                   (long long)room, size);
  void *grown = realloc(*memory, bytes);
  if (grown == NULL)
    return mt_fail(MT_ERR_MEMORY, "%s: no memory for %zu bytes", what, bytes);
  *memory = grown;
  *capacity = room;
  return MT_OK;
}

void mt_memory_trim(void)
{
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

mt_status mt_string_copy(const char *text, char **out)
{
  if (text == NULL) {
    *out = NULL;
    return MT_OK;
  }
  char *copy = strdup(text);
  if (copy == NULL) return mt_fail(MT_ERR_MEMORY, "no memory to copy a string");
  *out = copy;
  return MT_OK;
}

/* A line "NAME: 1234 kB" of a file in /proc, in bytes; -1: there is none. */
static int64_t read_kilobytes(const char *path, const char *name)
{
  long long kilobytes = -1;
  char line[256], format[64];
  FILE *file = fopen(path, "r");
  snprintf(format, sizeof format, "%s: %%lld kB", name);
  while (file != NULL && kilobytes < 0 && fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, format, &kilobytes) != 1) kilobytes = -1;
  if (file != NULL) fclose(file);
  return kilobytes < 0 ? -1 : (int64_t)kilobytes * 1024;
}

int64_t mt_memory_available(void)
{
  int64_t bytes = read_kilobytes("/proc/meminfo", "MemAvailable");
  return bytes >= 0 ? bytes : INT64_MAX;
}

int64_t mt_memory_peak(void)
{
  struct rusage usage;
  int64_t bytes = read_kilobytes("/proc/self/status", "VmHWM");
  getrusage(RUSAGE_SELF, &usage);
  return bytes >= 0 ? bytes : (int64_t)usage.ru_maxrss * 1024;
}

bool mt_memory_peak_reset(void)
{
  int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  bool reset = file >= 0 && write(file, "5", 1) == 1;
  if (file >= 0) close(file);
  return reset;
}
