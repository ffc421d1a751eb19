/* Looking for the few bytes that mean something, many at a time. */
#ifndef MT_CORPUS_SCAN_H
#define MT_CORPUS_SCAN_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Bytes side by side; what compares them gives 0 or 255 in each. */
typedef unsigned char mt_block __attribute__((vector_size(16)));
enum { MT_BLOCK = sizeof(mt_block) };

static inline mt_block mt_block_at(const char *bytes)
{
  mt_block x;
  memcpy(&x, bytes, sizeof x);
  return x;
}

/* The first bit of each byte, as a number. */
static inline unsigned mt_block_bits(mt_block x)
{
#ifdef __SSE2__
  return (unsigned)_mm_movemask_epi8((__m128i)x);
#else
  unsigned bits = 0;
  for (int i = 0; i < MT_BLOCK; i++) bits |= (unsigned)(x[i] >> 7) << i;
  return bits;
#endif
}

/* How many of the bytes come before the first that is a, b or a control character. */
static inline size_t mt_plain_size(const char *bytes, size_t size, char a, char b)
{
  size_t i = 0;
  for (; i + MT_BLOCK <= size; i += MT_BLOCK) {
    mt_block x = mt_block_at(bytes + i);
    unsigned hits = mt_block_bits(
        (mt_block)((x == (unsigned char)a) | (x == (unsigned char)b) | (x < 0x20)));
    if (hits != 0) return i + (size_t)__builtin_ctz(hits);
  }
  while (i < size && bytes[i] != a && bytes[i] != b && (unsigned char)bytes[i] >= 0x20)
    i++;
  return i;
}

/* How many of the bytes come before the first a. */
static inline size_t mt_size_before(const char *bytes, size_t size, char a)
{
  size_t i = 0;
  for (; i + MT_BLOCK <= size; i += MT_BLOCK) {
    unsigned hits =
        mt_block_bits((mt_block)(mt_block_at(bytes + i) == (unsigned char)a));
    if (hits != 0) return i + (size_t)__builtin_ctz(hits);
  }
  while (i < size && bytes[i] != a) i++;
  return i;
}

/**
 * Where a word begins first; NULL: nowhere.
 * rare  of two neighbours that are rarely found together, the first one's place in the word
 */
static inline const char *mt_find(const char *bytes, size_t size, const char *word,
                                  size_t length, size_t rare)
{
  size_t i = 0;
  unsigned char one = (unsigned char)word[rare], two = (unsigned char)word[rare + 1];
  for (; i + length + MT_BLOCK <= size; i += MT_BLOCK) {
    const char *at = bytes + i + rare;
    unsigned hits = mt_block_bits(
        (mt_block)((mt_block_at(at) == one) & (mt_block_at(at + 1) == two)));
    for (; hits != 0; hits &= hits - 1) {
      const char *found = bytes + i + (size_t)__builtin_ctz(hits);
      if (memcmp(found, word, length) == 0) return found;
    }
  }
  for (; i + length <= size; i++)
    if (memcmp(bytes + i, word, length) == 0) return bytes + i;
  return NULL;
}

#endif
