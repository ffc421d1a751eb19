/* Numbers in as few bytes as they need (LEB128): seven bits a byte, the low ones first, the
 * top bit set on all but the last byte. */
#ifndef MT_CORPUS_VARINT_H
#define MT_CORPUS_VARINT_H
#include <stdint.h>

enum { MT_VARINT_MOST = 10 }; /* bytes that a number can take */

/* Writes the number; where the next byte goes. */
static inline char *mt_varint_put(char *to, uint64_t number)
{
  for (; number >= 0x80; number >>= 7) *to++ = (char)(number | 0x80);
  *to++ = (char)number;
  return to;
}

/* Reads what mt_varint_put wrote; where the next byte lies. */
static inline const char *mt_varint_get(const char *at, uint64_t *number_out)
{
  uint64_t number = (unsigned char)*at & 0x7F;
  for (int shift = 7; *at++ & 0x80; shift += 7)
    number |= (uint64_t)((unsigned char)*at & 0x7F) << shift;
  *number_out = number;
  return at;
}

#endif
