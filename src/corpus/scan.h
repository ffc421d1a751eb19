/* Looking for the few bytes that mean something, many at a time. */
#ifndef MT_CORPUS_SCAN_H
#define MT_CORPUS_SCAN_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How many of the bytes come before the first that is a, b or a control character. */
static inline size_t mt_plain_size(const char *bytes, size_t size, char a, char b)
{
  typedef unsigned char block __attribute__((vector_size(16)));
  size_t i = 0;
  for (; i + sizeof(block) <= size; i += sizeof(block)) {
    block x;
    uint64_t halves[2];
    memcpy(&x, bytes + i, sizeof x);
    block hit = (block)((x == (unsigned char)a) | (x == (unsigned char)b) | (x < 0x20));
    memcpy(halves, &hit, sizeof halves);
    if ((halves[0] | halves[1]) != 0) break;
  }
  while (i < size && bytes[i] != a && bytes[i] != b && (unsigned char)bytes[i] >= 0x20)
    i++;
  return i;
}

#endif
