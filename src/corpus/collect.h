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
  int64_t piece; /* the offset of the piece that it was in */
  int64_t first_entry, n_entries;
  int64_t text; /* id, then title, here in texts */
  int64_t id_size, title_size;
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
  int64_t n_entries, entries_capacity;
  mt_entry *entries;
  mt_terms terms;
  int64_t *df, *tf, df_capacity, tf_capacity; /* (terms.n) */
  int64_t *last, *where, last_capacity,
      where_capacity; /* per term: document and entry */
  mt_buffer texts, scratch;
  int64_t n_tallies, tallies_capacity;
  mt_tally *tallies; /* ascending keys */
  int64_t n_records, skipped[MT_SKIP_KINDS];
  int64_t member, piece; /* of the piece in hand */
} mt_collection;

/* Errors: MT_ERR_INPUT, corpus.periods holds what is no period. */
mt_status mt_collection_open(const mt_corpus_options *options, bool count_only,
                             mt_collection *out);
void mt_collection_close(mt_collection *collection);

/* Reads this rank's share. Not collective. */
mt_status mt_collect(mt_collection *collection, const mt_source *source, int rank,
                     int size, size_t piece_bytes, mt_members *members_out);

#endif
