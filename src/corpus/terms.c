#include "corpus/terms.h"
#include "base/hash.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* The slot that holds the term, or the free one where it belongs. */
static int64_t slot_of(const mt_terms *terms, uint64_t hash, const char *bytes,
                       size_t size)
{
  int64_t mask = terms->n_slots - 1, slot = (int64_t)hash & mask;
  for (; terms->slots[slot] != 0; slot = (slot + 1) & mask) {
    int64_t number = terms->slots[slot] - 1;
    if (terms->hashes[number] != hash) continue;
    size_t length;
    const char *term = mt_term(terms, number, &length);
    if (length == size && memcmp(term, bytes, size) == 0) break;
  }
  return slot;
}

/* At most half of the slots are taken. */
static mt_status make_room(mt_terms *terms)
{
  mt_status status = MT_OK;
  int32_t *slots = NULL;
  if (2 * (terms->n + 1) <= terms->n_slots) return MT_OK;
  int64_t n_slots = terms->n_slots > 0 ? 2 * terms->n_slots : 1024;
  MT_REQUIRE(n_slots <= (int64_t)1 << 31, MT_ERR_INPUT,
             "more than a billion distinct terms on one rank: use more ranks");
  MT_NEW(slots, n_slots);
  for (int64_t t = 0; t < terms->n; t++) {
    int64_t slot = (int64_t)terms->hashes[t] & (n_slots - 1);
    while (slots[slot] != 0) slot = (slot + 1) & (n_slots - 1);
    slots[slot] = (int32_t)(t + 1);
  }
  free(terms->slots);
  terms->slots = slots;
  terms->n_slots = n_slots;
done:
  return status;
}

mt_status mt_terms_add(mt_terms *terms, const char *bytes, size_t size,
                       int64_t *number_out)
{
  mt_status status = MT_OK;
  MT_TRY(make_room(terms));
  uint64_t hash = mt_hash_key(bytes, size);
  int64_t slot = slot_of(terms, hash, bytes, size), number = terms->n;
  if (terms->slots[slot] != 0) {
    *number_out = terms->slots[slot] - 1;
    return MT_OK;
  }
  int64_t first = number == 0 ? 0 : terms->ends[number - 1];
  MT_GROW(terms->bytes, terms->bytes_capacity, first + (int64_t)size);
  MT_GROW(terms->ends, terms->ends_capacity, number + 1);
  MT_GROW(terms->hashes, terms->hashes_capacity, number + 1);
  if (size > 0) memcpy(terms->bytes + first, bytes, size);
  terms->ends[number] = first + (int64_t)size;
  terms->hashes[number] = hash;
  terms->slots[slot] = (int32_t)(number + 1);
  terms->n++;
  *number_out = number;
done:
  return status;
}

int64_t mt_terms_find(const mt_terms *terms, const char *bytes, size_t size)
{
  if (terms->n == 0) return -1;
  return terms->slots[slot_of(terms, mt_hash_key(bytes, size), bytes, size)] - 1;
}

void mt_terms_destroy(mt_terms *terms)
{
  free(terms->bytes);
  free(terms->ends);
  free(terms->hashes);
  free(terms->slots);
  memset(terms, 0, sizeof *terms);
}
