#include "corpus/terms.h"
#include "base/memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* The library's own inline form: most of a short term's hash is the call. */
static uint64_t hash_of(const char *bytes, size_t size)
{
  return XXH3_64bits(bytes, size); /* = mt_hash_key */
}

static uint64_t filled(uint64_t hash, int64_t number)
{
  return (hash & ~(uint64_t)UINT32_MAX) | (uint64_t)(number + 1);
}

static int64_t number_in(uint64_t slot)
{
  return (int64_t)(slot & UINT32_MAX) - 1;
}

/* The first and the last sizeof(type) bytes of both are equal: for up to twice as many. */
#define SAME_ENDS(type, a, b, size)                \
  (*(const type *)(a) == *(const type *)(b) &&     \
   *(const type *)((a) + (size) - sizeof(type)) == \
       *(const type *)((b) + (size) - sizeof(type)))

/* memcmp(a, b, size) == 0 without a call for most terms. */
static bool equal(const char *a, const char *b, size_t size)
{
  typedef uint64_t eight __attribute__((aligned(1), may_alias));
  typedef uint32_t four __attribute__((aligned(1), may_alias));
  typedef uint16_t two __attribute__((aligned(1), may_alias));
  if (size > 16) return memcmp(a, b, size) == 0;
  if (size >= 8) return SAME_ENDS(eight, a, b, size);
  if (size >= 4) return SAME_ENDS(four, a, b, size);
  if (size >= 2) return SAME_ENDS(two, a, b, size);
  return size == 0 || a[0] == b[0];
}

/* The slot that holds the term, or the free one where it belongs. */
static int64_t slot_of(const mt_terms *terms, uint64_t hash, const char *bytes,
                       size_t size)
{
  int64_t mask = terms->n_slots - 1, slot = (int64_t)hash & mask;
  for (; terms->slots[slot] != 0; slot = (slot + 1) & mask) {
    if ((terms->slots[slot] ^ hash) >> 32 != 0) continue;
    size_t length;
    const char *term = mt_term(terms, number_in(terms->slots[slot]), &length);
    if (length == size && equal(term, bytes, size)) break;
  }
  return slot;
}

/* At most half of the slots are taken. */
static mt_status make_room(mt_terms *terms)
{
  mt_status status = MT_OK;
  uint64_t *slots = NULL;
  if (2 * (terms->n + 1) <= terms->n_slots) return MT_OK;
  int64_t n_slots = terms->n_slots > 0 ? 2 * terms->n_slots : 1024;
  MT_REQUIRE(n_slots <= (int64_t)1 << 31, MT_ERR_INPUT,
             "more than a billion distinct terms on one rank: use more ranks");
  MT_NEW(slots, n_slots);
  for (int64_t t = 0; t < terms->n; t++) {
    int64_t slot = (int64_t)terms->list[t].hash & (n_slots - 1);
    while (slots[slot] != 0) slot = (slot + 1) & (n_slots - 1);
    slots[slot] = filled(terms->list[t].hash, t);
  }
  free(terms->slots);
  terms->slots = slots;
  terms->n_slots = n_slots;
done:
  return status;
}

static mt_status append(mt_terms *terms, uint64_t hash, const char *bytes, size_t size)
{
  mt_status status = MT_OK;
  mt_term_record term = {.size = (int64_t)size, .hash = hash};
  MT_GROW(terms->list, terms->list_capacity, terms->n + 1);
  if (size <= MT_TERM_SHORT) {
    memcpy(term.bytes, bytes, size);
  } else {
    MT_GROW(terms->longer, terms->longer_capacity, terms->longer_size + term.size);
    memcpy(terms->longer + terms->longer_size, bytes, size);
    term.at = terms->longer_size;
    terms->longer_size += term.size;
  }
  terms->list[terms->n++] = term;
done:
  return status;
}

uint64_t mt_terms_hash(const mt_terms *terms, const char *bytes, size_t size)
{
  uint64_t hash = hash_of(bytes, size);
  if (terms->n > 0)
    __builtin_prefetch(&terms->slots[hash & (uint64_t)(terms->n_slots - 1)]);
  return hash;
}

void mt_terms_expect(const mt_terms *terms, uint64_t hash)
{
  if (terms->n == 0) return;
  int64_t number = number_in(terms->slots[hash & (uint64_t)(terms->n_slots - 1)]);
  if (number >= 0) __builtin_prefetch(&terms->list[number], 1);
}

mt_status mt_terms_add_hashed(mt_terms *terms, uint64_t hash, const char *bytes,
                              size_t size, int64_t *number_out)
{
  mt_status status = MT_OK;
  MT_TRY(make_room(terms));
  int64_t slot = slot_of(terms, hash, bytes, size);
  if (terms->slots[slot] == 0) {
    MT_TRY(append(terms, hash, bytes, size));
    terms->slots[slot] = filled(hash, terms->n - 1);
  }
  *number_out = number_in(terms->slots[slot]);
done:
  return status;
}

mt_status mt_terms_add(mt_terms *terms, const char *bytes, size_t size,
                       int64_t *number_out)
{
  return mt_terms_add_hashed(terms, hash_of(bytes, size), bytes, size, number_out);
}

int64_t mt_terms_find(const mt_terms *terms, const char *bytes, size_t size)
{
  if (terms->n == 0) return -1;
  return number_in(terms->slots[slot_of(terms, hash_of(bytes, size), bytes, size)]);
}

void mt_terms_destroy(mt_terms *terms)
{
  free(terms->list);
  free(terms->longer);
  free(terms->slots);
  memset(terms, 0, sizeof *terms);
}
