/* What a rank gathers while it reads: its documents' counts over its own terms. */
#ifndef MT_CORPUS_COLLECT_H
#define MT_CORPUS_COLLECT_H
#include "corpus/buffer.h"
#include "corpus/date.h"
#include "corpus/intake.h"
#include "corpus/terms.h"
#include "corpus/varint.h"

typedef struct mt_entry {
  int32_t term, count;
} mt_entry;

enum { MT_WAITING = 16 }; /* tokens that wait for their terms to come from memory */

typedef struct mt_document {
  int64_t period; /* key */
  int64_t member;
  int64_t piece; /* the offset of the piece that it was in */
  int64_t row;   /* where in rows: id, title, then its entries, packed */
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
  mt_buffer rows;
  mt_terms terms;   /* mark: the entry of the document in hand + 1; 0: none */
  int64_t n_tokens; /* of the document in hand */
  mt_term_key waiting[MT_WAITING]; /* the last of them, round and round */
  int64_t n_entries, entries_capacity;
  mt_entry *entries; /* of the document in hand, in the order of their first tokens */
  mt_buffer scratch;
  int64_t n_tallies, tallies_capacity;
  mt_tally *tallies; /* ascending keys */
  int64_t n_records, skipped[MT_SKIP_KINDS];
  int64_t member, piece; /* of the piece in hand */
} mt_collection;

/* The entry at `at` in a document's row; where the next one lies. */
static inline const char *mt_entry_get(const char *at, mt_entry *entry_out)
{
  uint64_t term, count;
  at = mt_varint_get(mt_varint_get(at, &term), &count);
  *entry_out = (mt_entry){(int32_t)term, (int32_t)count};
  return at;
}

static inline char *mt_entry_put(char *to, mt_entry entry)
{
  return mt_varint_put(mt_varint_put(to, (uint64_t)entry.term), (uint64_t)entry.count);
}
enum { MT_ENTRY_MOST = 10 }; /* bytes that one can take: 5 for 32 bits */

/* Errors: MT_ERR_INPUT, corpus.periods holds what is no period. */
mt_status mt_collection_open(const mt_corpus_options *options, bool count_only,
                             mt_collection *out);
void mt_collection_close(mt_collection *collection);

/* Reads this rank's share. Not collective. */
mt_status mt_collect(mt_collection *collection, const mt_source *source, int rank,
                     int size, size_t piece_bytes, mt_members *members_out);

#endif
