/* A table that numbers terms: 0, 1, 2, ... in the order in which they came. What is known
 * of a term lies in one cache line, at the place in the table that its hash names: each
 * token of a text is looked up, and costs one line. */
#ifndef MT_CORPUS_TERMS_H
#define MT_CORPUS_TERMS_H
#include "base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MT_TERM_SHORT = 16 };

typedef struct mt_term_record {
  union { /* the first bytes, zeros beyond a shorter term's end */
    char bytes[MT_TERM_SHORT];
    uint64_t words[2];
  };
  int64_t size;   /* bytes */
  int32_t number; /* + 1; 0: the place is free */
  int32_t mark;   /* the user's, as the next two; 0 in a new term */
  int64_t df, tf; /* documents that hold it; its occurrences */
  uint64_t hash;  /* of the bytes, the same on all ranks */
  int64_t at; /* where one of more bytes than MT_TERM_SHORT lies in mt_terms.longer */
} mt_term_record;

typedef struct mt_terms {
  int64_t n;
  mt_term_record *places; /* open addressing; at most three quarters are taken; owned */
  int64_t n_places;       /* a power of two; 0: none */
  uint32_t *place_of;     /* (n) owned */
  char *longer;           /* owned */
  int64_t place_of_capacity, longer_size, longer_capacity;
} mt_terms; /* zeroed: an empty table */

/* The number of a term, a new one if it is not there yet. */
mt_status mt_terms_add(mt_terms *terms, const char *bytes, size_t size,
                       int64_t *number_out);

int64_t mt_terms_find(const mt_terms *terms, const char *bytes,
                      size_t size); /* or -1 */
void mt_terms_destroy(mt_terms *terms);

/* Borrowed until the next term is added. */
static inline mt_term_record *mt_term_record_of(const mt_terms *terms, int64_t number)
{
  return &terms->places[terms->place_of[number]];
}

/* The next term as they lie in memory, for who looks at all; NULL: that was the last. */
static inline const mt_term_record *mt_terms_next(const mt_terms *terms,
                                                  const mt_term_record *last)
{
  const mt_term_record *term = last != NULL ? last + 1 : terms->places,
                       *end = terms->places + terms->n_places;
  while (term < end && term->number == 0) term++;
  return term < end ? term : NULL;
}

/* A term's bytes, size of them, borrowed until the next is added. */
static inline const char *mt_term_bytes(const mt_terms *terms,
                                        const mt_term_record *term)
{
  return term->size <= MT_TERM_SHORT ? term->bytes : terms->longer + term->at;
}

static inline const char *mt_term(const mt_terms *terms, int64_t number,
                                  size_t *size_out)
{
  const mt_term_record *term = mt_term_record_of(terms, number);
  *size_out = (size_t)term->size;
  return mt_term_bytes(terms, term);
}

/* ---- many terms at a time: room, then a key of each, then the record of each ---- */

/* Room for so many more terms: records stay where they are until they have been added. */
mt_status mt_terms_reserve(mt_terms *terms, int64_t more);

/* A term to look up, with what is compared first: its first 16 bytes, 0 beyond its end. */
typedef struct mt_term_key {
  uint64_t words[2], hash;
  const char *bytes;
  size_t size;
} mt_term_key;

/* What to keep of a term's first two words, by its size. */
extern const uint64_t mt_term_masks[MT_TERM_SHORT + 1][2];

uint64_t mt_term_hash_long(const char *bytes, size_t size);

static inline uint64_t mt_term_fold(uint64_t a, uint64_t b)
{
  unsigned __int128 product = (unsigned __int128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* bytes: 16 may be read from there on, however short the term is. */
static inline mt_term_key mt_term_key_of(const char *bytes, size_t size)
{
  mt_term_key key = {.bytes = bytes, .size = size};
  memcpy(key.words, bytes, sizeof key.words);
  if (size <= MT_TERM_SHORT) { /* a product of 128 bits mixes them */
    key.words[0] &= mt_term_masks[size][0];
    key.words[1] &= mt_term_masks[size][1];
    key.hash = mt_term_fold(key.words[0] ^ 0x9E3779B97F4A7C15u,
                            key.words[1] ^ size ^ 0xE7037ED1A0B428DBu);
    key.hash = mt_term_fold(key.hash ^ key.words[1], 0xA0761D6478BD642Fu);
  } else {
    key.hash = mt_term_hash_long(bytes, size);
  }
  return key;
}

/* Where a term is first looked for. There must have been room for one. */
static inline mt_term_record *mt_terms_home(const mt_terms *terms,
                                            const mt_term_key *key)
{
  return &terms->places[key->hash & (uint64_t)(terms->n_places - 1)];
}

/* Is it surely the term of the key? Not told of a longer one, nor of an empty one. */
static inline bool mt_term_is(const mt_term_record *term, const mt_term_key *key)
{
  uint64_t unlike = (term->words[0] ^ key->words[0]) |
                    (term->words[1] ^ key->words[1]) |
                    ((uint64_t)term->size ^ key->size);
  return unlike == 0 && key->size - 1 < MT_TERM_SHORT;
}

/* The record of a term, a new one if it is not there yet. There must be room. */
mt_status mt_terms_record(mt_terms *terms, const mt_term_key *key,
                          mt_term_record **record_out);

#endif
