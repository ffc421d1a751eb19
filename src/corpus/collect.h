/* What a rank gathers while it reads: its documents' counts over its own terms. */
#ifndef MT_CORPUS_COLLECT_H
#define MT_CORPUS_COLLECT_H
#include "corpus/buffer.h"
#include "corpus/date.h"
#include "corpus/intake.h"
#include "corpus/terms.h"

typedef struct mt_entry {
  int32_t term, count;
} mt_entry;

typedef struct mt_document {
  int64_t period; /* key */
  int64_t member;
  int64_t piece;   /* the offset of the piece that it was in */
  const char *row; /* in rows: id, title, then its entries, packed */
  int64_t id_size, title_size, n_entries;
} mt_document;

typedef struct mt_tally {
  int64_t key, n_documents, skipped;
} mt_tally;

typedef struct mt_collection {
  const mt_corpus_options *options;
  mt_corpus_format format;
  bool count_only;           /* no tokens, no documents: tallies alone */
  int64_t n_wanted, *wanted; /* corpus.periods, ascending; NULL: all; owned */
  int64_t n_documents, documents_capacity;
  mt_document *documents; /* in the order in which they came */
  mt_pile rows;
  mt_terms terms; /* mark: the entry of the document in hand + 1; 0: none */
  int64_t n_entries, entries_capacity;
  mt_entry *entries; /* of the document in hand, in the order of their first tokens */
  mt_buffer scratch;
  int64_t n_tallies, tallies_capacity;
  mt_tally *tallies; /* ascending keys */
  int64_t n_records, skipped[MT_SKIP_KINDS];
  int64_t member, piece; /* of the piece in hand, as the next */
  struct mt_pool *pool;
} mt_collection;

/* In a row nearly every entry is one word: count in the low bits, term above. One that is too
 * large is three: 0, term, count. */
enum { MT_ENTRY_COUNT_BITS = 6, MT_ENTRY_MOST = 12 }; /* bytes */

/* The entry at `at` in a document's row; where the next one lies. */
static inline const char *mt_entry_get(const char *at, mt_entry *entry_out)
{
  static const uint32_t counts = (1u << MT_ENTRY_COUNT_BITS) - 1;
  uint32_t word;
  memcpy(&word, at, sizeof word);
  *entry_out =
      (mt_entry){(int32_t)(word >> MT_ENTRY_COUNT_BITS), (int32_t)(word & counts)};
  if (word != 0) return at + sizeof word;
  memcpy(entry_out, at + sizeof word, sizeof *entry_out);
  return at + MT_ENTRY_MOST;
}

static inline char *mt_entry_put(char *to, mt_entry entry)
{
  uint32_t term = (uint32_t)entry.term, count = (uint32_t)entry.count;
  uint32_t word = term << MT_ENTRY_COUNT_BITS | count;
  bool small =
      count < 1u << MT_ENTRY_COUNT_BITS && term < 1u << (32 - MT_ENTRY_COUNT_BITS);
  if (!small) word = 0;
  memcpy(to, &word, sizeof word);
  if (small) return to + sizeof word;
  memcpy(to + sizeof word, &entry, sizeof entry);
  return to + MT_ENTRY_MOST;
}

/* Errors: MT_ERR_INPUT, corpus.periods holds what is no period. */
mt_status mt_collection_open(const mt_corpus_options *options, bool count_only,
                             mt_collection *out);
void mt_collection_close(mt_collection *collection);

/* Reads this rank's share. Collective; place_out as mt_intake's. */
mt_status mt_collect(const mt_comm *comm, mt_collection *collection,
                     const mt_source *source, size_t piece_bytes, int64_t **place_out);

#endif
