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

/* Bytes that stay where they were put: in blocks, so that nothing is copied as they grow and
 * no more than one block is fetched in advance. */
typedef struct mt_pile {
  int64_t n, capacity;
  char **blocks; /* (n) owned */
  char *at;      /* in the last of them */
  size_t left;
} mt_pile;
enum { MT_PILE_BLOCK = 4 << 20 };

/* Room for `most` bytes, to be written at pile->at; then mt_pile_keep. */
static inline mt_status mt_pile_reserve(mt_pile *pile, size_t most)
{
  mt_status status = MT_OK;
  if (pile->n > 0 && most <= pile->left) return MT_OK;
  size_t size = most > MT_PILE_BLOCK ? most : MT_PILE_BLOCK;
  MT_GROW(pile->blocks, pile->capacity, pile->n + 1);
  MT_TRY(mt_memory_block(size, "documents", (void **)&pile->blocks[pile->n]));
  pile->at = pile->blocks[pile->n++];
  pile->left = size;
done:
  return status;
}

/* What was written, up to `end`, stays. */
static inline void mt_pile_keep(mt_pile *pile, const char *end)
{
  pile->left -= (size_t)(end - pile->at);
  pile->at += end - pile->at;
}

static inline void mt_pile_destroy(mt_pile *pile)
{
  for (int64_t b = 0; b < pile->n; b++) free(pile->blocks[b]);
  free(pile->blocks);
  mt_memory_trim();
  *pile = (mt_pile){.n = 0};
}

static inline void mt_buffer_destroy(mt_buffer *buffer)
{
  free(buffer->bytes);
  *buffer = (mt_buffer){NULL, 0, 0};
}

#endif
