#include "base/hash.h"

#include <string.h>
#include <xxhash.h>

/* An mt_hash is an XXH3_state_t under another name. */
static XXH3_state_t *state_of(mt_hash *hash)
{
  return (XXH3_state_t *)hash;
}

mt_hash *mt_hash_begin(void)
{
  XXH3_state_t *state = XXH3_createState(); /* aligned as XXH3 wants it */
  if (state != NULL) XXH3_128bits_reset(state);
  return (mt_hash *)state;
}

void mt_hash_bytes(mt_hash *hash, const void *bytes, size_t size)
{
  if (hash != NULL && size > 0) XXH3_128bits_update(state_of(hash), bytes, size);
}

void mt_hash_text(mt_hash *hash, const char *text)
{
  size_t length = text != NULL ? strlen(text) : 0;
  mt_hash_i64(hash, (int64_t)length);
  mt_hash_bytes(hash, text, length);
}

void mt_hash_i64(mt_hash *hash, int64_t value)
{
  mt_hash_bytes(hash, &value, sizeof value);
}

void mt_hash_f64(mt_hash *hash, double value)
{
  mt_hash_bytes(hash, &value, sizeof value);
}

void mt_hash_fingerprint(mt_hash *hash, const mt_fingerprint *value)
{
  mt_hash_bytes(hash, value->hex, sizeof value->hex);
}

/* printf takes longer than the hash of a document. */
static void put_hex(uint64_t value, char out[static 16])
{
  for (int i = 0; i < 16; i++) out[i] = "0123456789abcdef"[value >> (60 - 4 * i) & 15];
}

mt_fingerprint mt_hash_end(mt_hash *hash)
{
  mt_fingerprint print = {""};
  if (hash == NULL) return print;
  XXH128_hash_t value = XXH3_128bits_digest(state_of(hash));
  put_hex(value.high64, print.hex);
  put_hex(value.low64, print.hex + 16);
  XXH3_freeState(state_of(hash));
  return print;
}

void mt_hash_words(const void *bytes, size_t size, uint64_t seed, uint32_t words[4])
{
  XXH128_hash_t value = XXH3_128bits_withSeed(bytes, size, seed);
  words[0] = (uint32_t)(value.high64 >> 32);
  words[1] = (uint32_t)value.high64;
  words[2] = (uint32_t)(value.low64 >> 32);
  words[3] = (uint32_t)value.low64;
}

uint64_t mt_hash_key(const void *bytes, size_t size)
{
  return XXH3_64bits(bytes, size);
}

int mt_fingerprint_equal(const mt_fingerprint *a, const mt_fingerprint *b)
{
  return a->hex[0] != '\0' && strcmp(a->hex, b->hex) == 0;
}
