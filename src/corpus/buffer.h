/* Bytes that grow. */
#ifndef MT_CORPUS_BUFFER_H
#define MT_CORPUS_BUFFER_H
#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

typedef struct mt_buffer {
  char *bytes; /* owned; NULL while nothing was reserved */
  int64_t size, capacity;
} mt_buffer;

/* Room for `more` bytes after those that are there. */
static inline mt_status mt_buffer_reserve(mt_buffer *buffer, size_t more)
{
  if (buffer->bytes != NULL && (size_t)(buffer->capacity - buffer->size) >= more)
    return MT_OK;
  return mt_memory_grow(buffer->size + (int64_t)more, 1, "text", &buffer->capacity,
                        (void **)&buffer->bytes);
}

static inline mt_status mt_buffer_add(mt_buffer *buffer, const void *bytes, size_t size)
{
  mt_status status = mt_buffer_reserve(buffer, size + 1);
  if (status != MT_OK) return status;
  if (size > 0) memcpy(buffer->bytes + buffer->size, bytes, size);
  buffer->size += (int64_t)size;
  return MT_OK;
}

static inline void mt_buffer_destroy(mt_buffer *buffer)
{
  free(buffer->bytes);
  *buffer = (mt_buffer){NULL, 0, 0};
}

#endif
