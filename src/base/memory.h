/* Memory that says what it was for when there is none. */
#ifndef MT_BASE_MEMORY_H
#define MT_BASE_MEMORY_H
#include "base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * count x size bytes, zeroed and aligned to 64 bytes; free with free().
 * out      the memory; untouched on error. count = 0 gives a valid pointer.
 * Errors   MT_ERR_ARG count < 0; MT_ERR_MEMORY, naming `what` and the bytes
 */
mt_status mt_memory_new(int64_t count, size_t size, const char *what, void **out);

/* MT_NEW(rows, n * d): allocates n * d elements of *rows' type, or leaves by done: */
#define MT_NEW(pointer, count) \
  MT_TRY(mt_memory_new((count), sizeof *(pointer), #pointer, (void **)&(pointer)))

/* At least so many bytes, > 0, not cleared, in large pages as far as there are any: what is not
 * touched is not fetched. Free with free(). Errors: MT_ERR_MEMORY. */
mt_status mt_memory_block(size_t bytes, const char *what, void **out);

/**
 * Room for at least `count` elements in a growing array (doubling); old contents stay,
 * new ones are not zeroed. Alignment is malloc's.
 * capacity elements there is room for; updated
 */
mt_status mt_memory_grow(int64_t count, size_t size, const char *what,
                         int64_t *capacity, void **memory);

#define MT_GROW(pointer, capacity, count)                                  \
  MT_TRY(mt_memory_grow((count), sizeof *(pointer), #pointer, &(capacity), \
                        (void **)&(pointer)))

/* What was freed goes back to the system: what comes next is laid out elsewhere, and would
 * have its pages on top of those. */
void mt_memory_trim(void);

/* A copy of a string; NULL stays NULL. */
mt_status mt_string_copy(const char *text, char **out);

/* Memory of this node that is free, or that caches would give up, bytes; INT64_MAX if the
 * system does not tell. */
int64_t mt_memory_available(void);

/* Peak resident memory (VmHWM), bytes, since mt_memory_peak_reset or the process's start. */
int64_t mt_memory_peak(void);

/* The peak counts anew from here; false: the system cannot, and it stays the process's. */
bool mt_memory_peak_reset(void);

#endif
