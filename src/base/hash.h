/* Fingerprints: what made a file, as 32 hexadecimal digits (XXH3, 128 bits). */
#ifndef MT_BASE_HASH_H
#define MT_BASE_HASH_H
#include <stddef.h>
#include <stdint.h>

typedef struct mt_fingerprint {
  char hex[33]; /* ends in '\0'; all '\0' means none */
} mt_fingerprint;

typedef struct mt_hash mt_hash;

/* A running hash; NULL when out of memory, which the adders and mt_hash_end accept. */
mt_hash *mt_hash_begin(void);
void mt_hash_bytes(mt_hash *hash, const void *bytes, size_t size);

/* Length first, so that ("ab", "c") and ("a", "bc") differ; NULL counts as "". */
void mt_hash_text(mt_hash *hash, const char *text);
void mt_hash_i64(mt_hash *hash, int64_t value);
void mt_hash_f64(mt_hash *hash, double value);
void mt_hash_fingerprint(mt_hash *hash, const mt_fingerprint *value);

/* The fingerprint of what was added; frees the hash. */
mt_fingerprint mt_hash_end(mt_hash *hash);

/* A hash of bytes at once, as four words; another seed, another hash. */
void mt_hash_words(const void *bytes, size_t size, uint64_t seed, uint32_t words[4]);

/* 64-bit hash of bytes, for tables and for partitioning keys over ranks. */
uint64_t mt_hash_key(const void *bytes, size_t size);

/* 1 if both name the same; an empty one equals nothing. */
int mt_fingerprint_equal(const mt_fingerprint *a, const mt_fingerprint *b);

#endif
