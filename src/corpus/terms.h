/* A table that numbers terms: 0, 1, 2, ... in the order in which they came. What is known
 * of a term lies in one cache line, since each token of a text is looked up. */
#ifndef MT_CORPUS_TERMS_H
#define MT_CORPUS_TERMS_H
#include "base/status.h"
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MT_TERM_SHORT = 24 };

typedef struct mt_term_record {
  union {
    char bytes[MT_TERM_SHORT]; /* of a term of so many bytes or fewer */
    int64_t at;                /* where a longer one lies in mt_terms.longer */
  };
  int64_t size;   /* bytes */
  int64_t mark;   /* the user's, as the next two; 0 in a new term */
  int64_t df, tf; /* documents that hold it; its occurrences */
  uint64_t hash;  /* of the bytes, the same on all ranks */
} mt_term_record;

typedef struct mt_terms {
  int64_t n;
  mt_term_record *list; /* (n); owned */
  char *longer;         /* owned */
  uint64_t *slots; /* open addressing: high half of the hash, number + 1; 0 is free */
  int64_t n_slots; /* a power of two */
  int64_t list_capacity, longer_size, longer_capacity;
} mt_terms; /* zeroed: an empty table */

/* The number of a term, a new one if it is not there yet. */
mt_status mt_terms_add(mt_terms *terms, const char *bytes, size_t size,
                       int64_t *number_out);

/* What to keep of a term's first two words, by its size. */
extern uint64_t mt_term_masks[17][2];

/* A term to look up, with what is compared first: its first 16 bytes, 0 beyond its end. */
typedef struct mt_term_key {
  uint64_t first, second, hash;
  const char *bytes;
  size_t size;
} mt_term_key;

/* bytes: 16 may be read from there on, however short the term is. */
static inline mt_term_key mt_term_key_of(const char *bytes, size_t size);

/* A term is added in three steps, so that others can come between them while memory answers:
 * its slot is asked for, then its record, then it is looked up. */
static inline void mt_terms_expect_slot(const mt_terms *terms, const mt_term_key *key);
static inline void mt_terms_expect_record(const mt_terms *terms,
                                          const mt_term_key *key);
mt_status mt_terms_add_key(mt_terms *terms, const mt_term_key *key,
                           int64_t *number_out);

int64_t mt_terms_find(const mt_terms *terms, const char *bytes,
                      size_t size); /* or -1 */
void mt_terms_destroy(mt_terms *terms);

/* A term's bytes, borrowed until the next is added. */
static inline const char *mt_term(const mt_terms *terms, int64_t number,
                                  size_t *size_out)
{
  const mt_term_record *term = &terms->list[number];
  *size_out = (size_t)term->size;
  return term->size <= MT_TERM_SHORT ? term->bytes : terms->longer + term->at;
}

/* ---- inline, for each token of a text ---- */

static inline uint64_t mt_term_fold(uint64_t a, uint64_t b)
{
  unsigned __int128 product = (unsigned __int128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t mt_term_hash_long(const char *bytes, size_t size);

static inline mt_term_key mt_term_key_of(const char *bytes, size_t size)
{
  mt_term_key key = {.bytes = bytes, .size = size};
  memcpy(&key.first, bytes, sizeof key.first);
  memcpy(&key.second, bytes + sizeof key.first, sizeof key.second);
  if (size <= 16) { /* a product of 128 bits mixes them */
    key.first &= mt_term_masks[size][0];
    key.second &= mt_term_masks[size][1];
    key.hash = mt_term_fold(key.first ^ 0x9E3779B97F4A7C15u,
                            key.second ^ size ^ 0xE7037ED1A0B428DBu);
    key.hash = mt_term_fold(key.hash ^ key.second, 0xA0761D6478BD642Fu);
  } else {
    key.hash = mt_term_hash_long(bytes, size);
  }
  return key;
}

static inline int64_t mt_terms_number_in(uint64_t slot)
{
  return (int64_t)(slot & UINT32_MAX) - 1;
}

static inline void mt_terms_expect_slot(const mt_terms *terms, const mt_term_key *key)
{
  if (terms->n > 0)
    __builtin_prefetch(&terms->slots[key->hash & (uint64_t)(terms->n_slots - 1)]);
}

static inline void mt_terms_expect_record(const mt_terms *terms, const mt_term_key *key)
{
  if (terms->n == 0) return;
  uint64_t slot = terms->slots[key->hash & (uint64_t)(terms->n_slots - 1)];
  if (slot != 0) __builtin_prefetch(&terms->list[mt_terms_number_in(slot)], 1);
}

#endif
