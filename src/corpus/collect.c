#include "corpus/collect.h"
#include "comm/pool.h"
#include "corpus/scan.h"
#include "corpus/tokens.h"

#include <ctype.h>

/* ---- which periods are wanted ---------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
  int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
  return (one > other) - (one < other);
}

static mt_status read_wanted(mt_collection *c)
{
  mt_status status = MT_OK;
  static const char *const examples[] = {"1987-03", "1987", "1987-Q1", "1987-W09",
                                         "1987-03-17"};
  const char *at = c->options->periods;
  int64_t capacity = 0;
  if (at == NULL || strcmp(at, "all") == 0) return MT_OK;
  for (;;) {
    at += strspn(at, " \t\r\n,");
    size_t size = strcspn(at, " \t\r\n,");
    if (size == 0) break;
    MT_GROW(c->wanted, capacity, c->n_wanted + 1);
    MT_REQUIRE(
        mt_period_named(c->options->period, at, size, &c->wanted[c->n_wanted]),
        MT_ERR_INPUT,
        "corpus.periods: \"%.*s\" is not the name of a period; write it as %s, or "
        "\"all\"",
        (int)size, at, examples[c->options->period]);
    c->n_wanted++;
    at += size;
  }
  MT_REQUIRE(c->n_wanted > 0, MT_ERR_INPUT,
             "corpus.periods is empty; write names, or \"all\"");
  qsort(c->wanted, (size_t)c->n_wanted, sizeof *c->wanted, by_key);
done:
  return status;
}

static bool is_wanted(const mt_collection *c, int64_t key)
{
  return c->wanted == NULL ||
         bsearch(&key, c->wanted, (size_t)c->n_wanted, sizeof key, by_key) != NULL;
}

/* ---- tallies --------------------------------------------------------------------------------- */

/* The tally of a period; a new one if there is none yet. */
static mt_status tally_of(mt_collection *c, int64_t key, mt_tally **out)
{
  mt_status status = MT_OK;
  int64_t low = 0, high = c->n_tallies;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (c->tallies[middle].key < key)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == c->n_tallies || c->tallies[low].key != key) {
    MT_GROW(c->tallies, c->tallies_capacity, c->n_tallies + 1);
    memmove(c->tallies + low + 1, c->tallies + low,
            (size_t)(c->n_tallies - low) * sizeof *c->tallies);
    c->tallies[low] = (mt_tally){.key = key};
    c->n_tallies++;
  }
  *out = &c->tallies[low];
done:
  return status;
}

/* ---- documents ------------------------------------------------------------------------------- */

/* One more of the term in the document in hand. Whether it is the first cannot be foretold,
 * so nothing branches there. */
static inline void count_token(mt_collection *c, mt_term_record *term)
{
  int32_t is_new = term->mark == 0,
          mark = term->mark + is_new * (int32_t)(c->n_entries + 1);
  mt_entry *entry = &c->entries[mark - 1];
  entry->term = term->number - 1;
  entry->count = (entry->count & (is_new - 1)) + 1;
  term->mark = mark;
  c->n_entries += is_new;
}

/* All are asked for first: memory answers to one while it looks for others. */
static mt_status on_tokens(void *context, int64_t n, const mt_span *tokens)
{
  mt_status status = MT_OK;
  mt_collection *c = context;
  mt_term_key keys[MT_TOKENS_MOST];
  MT_TRY(mt_terms_reserve(&c->terms, n));
  MT_GROW(c->entries, c->entries_capacity, c->n_entries + n);
  for (int64_t t = 0; t < n; t++) { /* in the scratch, which has room beyond */
    keys[t] = mt_term_key_of(tokens[t].at, tokens[t].size);
    __builtin_prefetch(mt_terms_home(&c->terms, &keys[t]), 1);
  }
  for (int64_t t = 0; t < n; t++) {
    mt_term_record *term = mt_terms_home(&c->terms, &keys[t]);
    if (!mt_term_is(term, &keys[t]))
      MT_TRY(mt_terms_record(&c->terms, &keys[t], &term));
    count_token(c, term);
  }
done:
  return status;
}

/* A text to where it goes; where the next thing goes. */
static char *put_text(mt_span text, char *to)
{
  if (text.size > 0) memcpy(to, text.at, text.size);
  for (size_t i = 0; i < text.size; i++)
    if (to[i] == '\0') to[i] = ' ';
  return to + text.size;
}

/* The entries of the document in hand, to its row and to what is known of their terms; where
 * they end. */
static char *put_entries(mt_collection *c, char *to)
{
  for (int64_t e = 0; e < c->n_entries; e++) {
    mt_term_record *term = mt_term_record_of(&c->terms, c->entries[e].term);
    term->mark = 0;
    term->df++;
    term->tf += c->entries[e].count;
    to = mt_entry_put(to, c->entries[e]);
  }
  return to;
}

static mt_status add_document(mt_collection *c, int64_t period, const mt_record *record)
{
  mt_status status = MT_OK;
  mt_span id = record->id, title = record->title;
  MT_GROW(c->documents, c->documents_capacity, c->n_documents + 1);
  mt_document *document = &c->documents[c->n_documents];
  *document = (mt_document){.period = period, .member = c->member, .piece = c->piece};
  c->n_entries = 0;
  MT_TRY(mt_tokenize(record->text.at, record->text.size, c->options->lowercase,
                     &c->scratch, on_tokens, c));
  MT_TRY(mt_pile_reserve(&c->rows,
                         id.size + title.size + (size_t)c->n_entries * MT_ENTRY_MOST));
  document->row = c->rows.at;
  document->id_size = (int64_t)id.size;
  document->title_size = (int64_t)title.size;
  document->n_entries = c->n_entries;
  mt_pile_keep(&c->rows, put_entries(c, put_text(title, put_text(id, c->rows.at))));
  c->n_documents++;
done:
  return status;
}

/* Why a record gives no document; its period, where that is known (tally_out else NULL). */
static mt_status judge(mt_collection *c, const mt_record *record, mt_skip *skip_out,
                       mt_tally **tally_out)
{
  mt_status status = MT_OK;
  mt_date date;
  int64_t key;
  *tally_out = NULL;
  *skip_out = record->skip;
  if (record->skip != MT_SKIP_NONE) return MT_OK;
  *skip_out = MT_SKIP_NO_DATE;
  if (record->date.at == NULL || mt_span_trim(record->date).size == 0) return MT_OK;
  *skip_out = MT_SKIP_UNREADABLE_DATE;
  if (!mt_date_read(record->date.at, record->date.size, &date)) return MT_OK;
  if (!mt_period_of(c->options->period, &date, &key)) return MT_OK;
  *skip_out = MT_SKIP_OUTSIDE_PERIODS;
  if (!is_wanted(c, key)) return MT_OK;
  MT_TRY(tally_of(c, key, tally_out));
  *skip_out = record->text.at == NULL                ? MT_SKIP_NO_BODY
              : mt_span_trim(record->text).size == 0 ? MT_SKIP_EMPTY_BODY
                                                     : MT_SKIP_NONE;
done:
  return status;
}

static mt_status on_record(void *context, const mt_record *record)
{
  mt_status status = MT_OK;
  mt_collection *c = context;
  mt_tally *tally;
  mt_skip skip;
  mt_pool_progress(c->pool);
  MT_TRY(judge(c, record, &skip, &tally));
  c->n_records++;
  if (skip != MT_SKIP_NONE) {
    c->skipped[skip]++;
    if (tally != NULL) tally->skipped++;
    return MT_OK;
  }
  tally->n_documents++;
  if (!c->count_only) MT_TRY(add_document(c, tally->key, record));
done:
  return status;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Documents that begin in the bytes: what the reader must have given. */
static int64_t count_openings(const char *bytes, size_t size)
{
  static const char opening[] = "<REUTERS";
  const size_t length = sizeof opening - 1;
  int64_t n = 0;
  for (const char *at = bytes, *end = bytes + size;;) {
    at = mt_find(at, (size_t)(end - at), opening, length, 3);
    if (at == NULL) return n;
    at += length;
    n += at == end || *at == '>' || isspace((unsigned char)*at);
  }
}

static mt_status on_piece(void *context, int64_t member, const mt_piece *piece)
{
  mt_status status = MT_OK;
  mt_collection *c = context;
  static mt_status (*const readers[])(const mt_piece *, const mt_corpus_options *,
                                      mt_sink, void *) = {
      [MT_FORMAT_REUTERS_SGML] = mt_reader_sgml,
      [MT_FORMAT_JSONL] = mt_reader_jsonl,
      [MT_FORMAT_CSV] = mt_reader_csv,
      [MT_FORMAT_TEXT] = mt_reader_text};
  int64_t before = c->n_records;
  c->member = member;
  c->piece = piece->offset;
  c->pool = piece->pool;
  MT_TRY(readers[c->format](piece, c->options, on_record, c));
  if (c->format == MT_FORMAT_REUTERS_SGML) {
    int64_t held = count_openings(piece->bytes, piece->size),
            read = c->n_records - before;
    MT_REQUIRE(read >= held, MT_ERR_INTERNAL,
               "%s: %lld documents from byte %lld on, %lld read", piece->name,
               (long long)held, (long long)piece->offset, (long long)read);
  }
done:
  return status;
}

mt_status mt_collect(const mt_comm *comm, mt_collection *collection,
                     const mt_source *source, size_t piece_bytes, int64_t **place_out)
{
  collection->format = source->format;
  return mt_intake(comm, source, piece_bytes, on_piece, collection, place_out);
}

mt_status mt_collection_open(const mt_corpus_options *options, bool count_only,
                             mt_collection *out)
{
  mt_status status = MT_OK;
  mt_collection c = {.options = options, .count_only = count_only};
  MT_TRY(read_wanted(&c));
  for (int64_t w = 0; w < c.n_wanted;
       w++) { /* listed, whether or not there is a record */
    mt_tally *tally;
    MT_TRY(tally_of(&c, c.wanted[w], &tally));
  }
  *out = c;
  memset(&c, 0, sizeof c);
done:
  mt_collection_close(&c);
  return status;
}

void mt_collection_close(mt_collection *c)
{
  free(c->wanted);
  free(c->documents);
  free(c->entries);
  free(c->tallies);
  mt_terms_destroy(&c->terms);
  mt_pile_destroy(&c->rows);
  mt_buffer_destroy(&c->scratch);
  memset(c, 0, sizeof *c);
}
