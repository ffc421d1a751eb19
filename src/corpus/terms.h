/* A table that numbers terms: 0, 1, 2, ... in the order in which they came. */
#ifndef MT_CORPUS_TERMS_H
#define MT_CORPUS_TERMS_H
#include "base/status.h"
#include <stddef.h>
#include <stdint.h>

typedef struct mt_terms {
  int64_t n;
  char *bytes;      /* one term after the other; owned */
  int64_t *ends;    /* term t is [ends[t - 1], ends[t]) of bytes */
  uint64_t *hashes; /* mt_hash_key of each */
  int32_t *slots;   /* open addressing: number + 1; 0 is free */
  int64_t n_slots;  /* a power of two */
  int64_t bytes_capacity, ends_capacity, hashes_capacity;
} mt_terms; /* zeroed: an empty table */

/* The number of a term, a new one if it is not there yet. */
mt_status mt_terms_add(mt_terms *terms, const char *bytes, size_t size,
                       int64_t *number_out);
int64_t mt_terms_find(const mt_terms *terms, const char *bytes,
                      size_t size); /* or -1 */
void mt_terms_destroy(mt_terms *terms);

static inline const char *mt_term(const mt_terms *terms, int64_t number,
                                  size_t *size_out)
{
  int64_t first = number == 0 ? 0 : terms->ends[number - 1];
  *size_out = (size_t)(terms->ends[number] - first);
  return terms->bytes + first;
}

#endif
