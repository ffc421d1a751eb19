#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { ALIGNMENT = 64, LARGE = 8 << 20, HUGE_PAGE = 2 << 20 };

/* Clears new memory. A page that is touched for the first time has to be fetched from the
 * system, which for a large array takes longer than much of the work on it: by all threads,
 * in large pages. */
static void clear(char *memory, size_t bytes)
{
  if (bytes < LARGE) {
    memset(memory, 0, bytes);
    return;
  }
  size_t off = (size_t)memory % HUGE_PAGE, first = off > 0 ? HUGE_PAGE - off : 0;
  madvise(memory + first, (bytes - first) / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
  memset(memory, 0, first);
#pragma omp parallel for schedule(static)
  for (size_t at = first; at < bytes; at += HUGE_PAGE)
    memset(memory + at, 0, bytes - at < HUGE_PAGE ? bytes - at : HUGE_PAGE);
}

mt_status mt_memory_new(int64_t count, size_t size, const char *what, void **out)
{
  if (count < 0) return mt_fail(MT_ERR_ARG, "%s: negative count", what);
  size_t bytes;
  if (__builtin_mul_overflow((size_t)count, size, &bytes) ||
      bytes > SIZE_MAX - ALIGNMENT)
    return mt_fail(MT_ERR_MEMORY, "%s: %lld elements of %zu bytes are too many", what,
                   (long long)count, size);
  bytes = (bytes / ALIGNMENT + 1) * ALIGNMENT;
  void *memory = aligned_alloc(ALIGNMENT, bytes);
  if (memory == NULL)
    return mt_fail(MT_ERR_MEMORY, "%s: no memory for %zu bytes", what, bytes);
  clear(memory, bytes);
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

int64_t mt_memory_available(void)
{
  long long kilobytes = -1;
  char line[128];
  FILE *file = fopen("/proc/meminfo", "r");
  while (file != NULL && kilobytes < 0 && fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "MemAvailable: %lld kB", &kilobytes) != 1) kilobytes = -1;
  if (file != NULL) fclose(file);
  return kilobytes >= 0 ? (int64_t)kilobytes * 1024 : INT64_MAX;
}

int64_t mt_memory_peak(void)
{
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (int64_t)usage.ru_maxrss * 1024;
}
