/* A table that numbers terms: 0, 1, 2, ... in the order in which they came. What is known
 * of a term lies in one cache line, since each token of a text is looked up. */
#ifndef MT_CORPUS_TERMS_H
#define MT_CORPUS_TERMS_H
#include "base/status.h"
#include <stddef.h>
#include <stdint.h>

enum { MT_TERM_SHORT = 24 };

typedef struct mt_term_record {
  union {
    char bytes[MT_TERM_SHORT]; /* of a term of so many bytes or fewer */
    int64_t at;                /* where a longer one lies in mt_terms.longer */
  };
  int64_t size;   /* bytes */
  int64_t mark;   /* the user's, as the next two; 0 in a new term */
  int64_t df, tf; /* documents that hold it; its occurrences */
  uint64_t hash;  /* mt_hash_key */
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

/* The same in three steps, so that others can come between them while memory answers: the
 * hash, which asks for the slot; then its record is asked for; then it is looked up. */
uint64_t mt_terms_hash(const mt_terms *terms, const char *bytes, size_t size);
void mt_terms_expect(const mt_terms *terms, uint64_t hash);
mt_status mt_terms_add_hashed(mt_terms *terms, uint64_t hash, const char *bytes,
                              size_t size, int64_t *number_out);

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

#endif
