#include "corpus/terms.h"
#include "base/hash.h"
#include "base/memory.h"

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
const uint64_t mt_term_masks[MT_TERM_SHORT + 1][2] = {
    BYTES(0), BYTES(1), BYTES(2),  BYTES(3),  BYTES(4),  BYTES(5),  BYTES(6),  BYTES(7), BYTES(8),
    BYTES(9), BYTES(10), BYTES(11), BYTES(12), BYTES(13), BYTES(14), BYTES(15), BYTES(16)};
/* clang-format on */

uint64_t mt_term_hash_long(const char *bytes, size_t size)
{
  return mt_hash_key(bytes, size);
}

/* Is it the term of the key? */
static bool is(const mt_terms *terms, const mt_term_record *term,
               const mt_term_key *key)
{
  if (term->size != (int64_t)key->size) return false;
  if (memcmp(term->words, key->words, sizeof term->words) != 0) return false;
  return key->size <= MT_TERM_SHORT ||
         memcmp(terms->longer + term->at, key->bytes, key->size) == 0;
}

/* The term's place, or the free one where it belongs. */
static mt_term_record *place_for(const mt_terms *terms, const mt_term_key *key)
{
  mt_term_record *term = mt_terms_home(terms, key);
  while (term->number != 0 && !is(terms, term, key))
    if (++term == terms->places + terms->n_places) term = terms->places;
  return term;
}

/* Those that came first, the frequent ones mostly, get the places where they are looked for. */
static mt_status move_to(mt_terms *terms, int64_t n_places)
{
  mt_status status = MT_OK;
  mt_term_record *places = NULL;
  MT_NEW(places, n_places);
  for (int64_t t = 0; t < terms->n; t++) {
    const mt_term_record *term = mt_term_record_of(terms, t);
    uint64_t place = term->hash & (uint64_t)(n_places - 1);
    while (places[place].number != 0) place = (place + 1) & (uint64_t)(n_places - 1);
    places[place] = *term;
    terms->place_of[t] = (uint32_t)place;
  }
  free(terms->places);
  terms->places = places;
  terms->n_places = n_places;
done:
  return status;
}

mt_status mt_terms_reserve(mt_terms *terms, int64_t more)
{
  mt_status status = MT_OK;
  int64_t n_places = terms->n_places > 0 ? terms->n_places : 1024;
  while (4 * (terms->n + more) > 3 * n_places) n_places *= n_places < 1 << 16 ? 4 : 2;
  if (n_places == terms->n_places) return MT_OK;
  MT_REQUIRE(n_places <= (int64_t)1 << 31, MT_ERR_INPUT,
             "more than a billion distinct terms on one rank: use more ranks");
  MT_GROW(terms->place_of, terms->place_of_capacity, n_places / 4 * 3);
  MT_TRY(move_to(terms, n_places));
done:
  return status;
}

static mt_status fill(mt_terms *terms, const mt_term_key *key, mt_term_record *free_one)
{
  mt_status status = MT_OK;
  mt_term_record term = {.size = (int64_t)key->size, .hash = key->hash};
  memcpy(term.words, key->words, sizeof term.words);
  if (key->size > MT_TERM_SHORT) {
    term.at = terms->longer_size;
    MT_GROW(terms->longer, terms->longer_capacity, term.at + term.size);
    memcpy(terms->longer + term.at, key->bytes, key->size);
    terms->longer_size += term.size;
  }
  terms->place_of[terms->n] = (uint32_t)(free_one - terms->places);
  term.number = (int32_t)++terms->n;
  *free_one = term;
done:
  return status;
}

mt_status mt_terms_record(mt_terms *terms, const mt_term_key *key,
                          mt_term_record **record_out)
{
  mt_status status = MT_OK;
  mt_term_record *term = place_for(terms, key);
  if (term->number == 0) MT_TRY(fill(terms, key, term));
  *record_out = term;
done:
  return status;
}

/* Of bytes that may be the last ones in memory. */
static mt_term_key careful_key(const char *bytes, size_t size,
                               char room[static MT_TERM_SHORT])
{
  if (size >= MT_TERM_SHORT) return mt_term_key_of(bytes, size);
  memset(room, 0, MT_TERM_SHORT);
  if (size > 0) memcpy(room, bytes, size);
  return mt_term_key_of(room, size);
}

mt_status mt_terms_add(mt_terms *terms, const char *bytes, size_t size,
                       int64_t *number_out)
{
  mt_status status = MT_OK;
  char room[MT_TERM_SHORT];
  mt_term_key key = careful_key(bytes, size, room);
  mt_term_record *term;
  MT_TRY(mt_terms_reserve(terms, 1));
  MT_TRY(mt_terms_record(terms, &key, &term));
  *number_out = term->number - 1;
done:
  return status;
}

int64_t mt_terms_find(const mt_terms *terms, const char *bytes, size_t size)
{
  char room[MT_TERM_SHORT];
  if (terms->n == 0) return -1;
  mt_term_key key = careful_key(bytes, size, room);
  return place_for(terms, &key)->number - 1;
}

void mt_terms_destroy(mt_terms *terms)
{
  free(terms->places);
  free(terms->place_of);
  free(terms->longer);
  memset(terms, 0, sizeof *terms);
}
