#include "corpus/terms.h"
#include "base/hash.h"
#include "base/memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Bytes in the order of memory, so that a term's words are the same on any processor. */
#define BYTES(n)         \
  {                      \
    MASK(n), MASK((n)-8) \
  }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define MASK(n) \
  ((n) <= 0 ? 0 : (n) >= 8 ? UINT64_MAX : UINT64_MAX >> (64 - 8 * ((n)&7)))
#else
#define MASK(n) \
  ((n) <= 0 ? 0 : (n) >= 8 ? UINT64_MAX : UINT64_MAX << (64 - 8 * ((n)&7)))
#endif
/* clang-format off */
uint64_t mt_term_masks[17][2] = {
    BYTES(0), BYTES(1), BYTES(2),  BYTES(3),  BYTES(4),  BYTES(5),  BYTES(6),  BYTES(7), BYTES(8),
    BYTES(9), BYTES(10), BYTES(11), BYTES(12), BYTES(13), BYTES(14), BYTES(15), BYTES(16)};
/* clang-format on */

uint64_t mt_term_hash_long(const char *bytes, size_t size)
{
  return mt_hash_key(bytes, size);
}

static uint64_t filled(uint64_t hash, int64_t number)
{
  return (hash & ~(uint64_t)UINT32_MAX) | (uint64_t)(number + 1);
}

/* Is it the term of the key? */
static inline bool is(const mt_terms *terms, const mt_term_record *term,
                      const mt_term_key *key)
{
  uint64_t words[2];
  if (term->size != (int64_t)key->size) return false;
  if (key->size > MT_TERM_SHORT)
    return memcmp(terms->longer + term->at, key->bytes, key->size) == 0;
  memcpy(words, term->bytes, sizeof words);
  if (((words[0] ^ key->first) | (words[1] ^ key->second)) != 0) return false;
  return key->size <= 16 || memcmp(term->bytes, key->bytes, key->size) == 0;
}

/* The slot that holds the term, or the free one where it belongs. */
static inline int64_t slot_of(const mt_terms *terms, const mt_term_key *key)
{
  int64_t mask = terms->n_slots - 1, slot = (int64_t)key->hash & mask;
  for (; terms->slots[slot] != 0; slot = (slot + 1) & mask) {
    if ((terms->slots[slot] ^ key->hash) >> 32 != 0) continue;
    if (is(terms, &terms->list[mt_terms_number_in(terms->slots[slot])], key)) break;
  }
  return slot;
}

/* At most half of the slots are taken. */
static mt_status make_room(mt_terms *terms)
{
  mt_status status = MT_OK;
  uint64_t *slots = NULL;
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

static mt_status append(mt_terms *terms, const mt_term_key *key)
{
  mt_status status = MT_OK;
  mt_term_record term = {.size = (int64_t)key->size, .hash = key->hash};
  MT_GROW(terms->list, terms->list_capacity, terms->n + 1);
  if (key->size <= MT_TERM_SHORT) {
    memcpy(term.bytes, key->bytes, key->size);
  } else {
    MT_GROW(terms->longer, terms->longer_capacity, terms->longer_size + term.size);
    memcpy(terms->longer + terms->longer_size, key->bytes, key->size);
    term.at = terms->longer_size;
    terms->longer_size += term.size;
  }
  terms->list[terms->n++] = term;
done:
  return status;
}

mt_status mt_terms_add_key(mt_terms *terms, const mt_term_key *key, int64_t *number_out)
{
  mt_status status = MT_OK;
  if (2 * (terms->n + 1) > terms->n_slots) MT_TRY(make_room(terms));
  int64_t slot = slot_of(terms, key);
  if (terms->slots[slot] == 0) {
    MT_TRY(append(terms, key));
    terms->slots[slot] = filled(key->hash, terms->n - 1);
  }
  *number_out = mt_terms_number_in(terms->slots[slot]);
done:
  return status;
}

/* Of bytes that may be the last ones in memory. */
static mt_term_key careful_key(const char *bytes, size_t size, char room[static 16])
{
  if (size >= 16) return mt_term_key_of(bytes, size);
  memset(room, 0, 16);
  if (size > 0) memcpy(room, bytes, size);
  return mt_term_key_of(room, size);
}

mt_status mt_terms_add(mt_terms *terms, const char *bytes, size_t size,
                       int64_t *number_out)
{
  char room[16];
  mt_term_key key = careful_key(bytes, size, room);
  return mt_terms_add_key(terms, &key, number_out);
}

int64_t mt_terms_find(const mt_terms *terms, const char *bytes, size_t size)
{
  char room[16];
  if (terms->n == 0) return -1;
  mt_term_key key = careful_key(bytes, size, room);
  return mt_terms_number_in(terms->slots[slot_of(terms, &key)]);
}

void mt_terms_destroy(mt_terms *terms)
{
  free(terms->list);
  free(terms->longer);
  free(terms->slots);
  memset(terms, 0, sizeof *terms);
}
