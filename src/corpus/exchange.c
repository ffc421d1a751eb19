/* Documents on their way: from the rank that read each to the one that owns its position. */
#include "base/memory.h"
#include "base/search.h"
#include "corpus/arrange.h"

/* ---- a row: a head, then id, title and entries, terms ascending ------------------------- */

typedef struct row_head {
  int64_t position, period, n_entries, id_size, title_size;
  int64_t bytes; /* that follow */
} row_head;

/* ---- the terms of one document, which come out ascending: a bit for each of the vocabulary, and
 * one for each word of bits that has any. One more group of words is for all other terms. ---- */

enum { WORD = 64, GROUP = WORD * WORD }; /* terms */

typedef struct term_set {
  int64_t n_groups;      /* without that of other terms */
  uint64_t *bits, *used; /* (terms / WORD), (terms / GROUP) */
  int32_t *counts;       /* (terms) of those in the set */
} term_set;

static mt_status term_set_new(int64_t n_terms, term_set *out)
{
  mt_status status = MT_OK;
  out->n_groups = (n_terms + GROUP - 1) / GROUP;
  MT_NEW(out->bits, (out->n_groups + 1) * WORD);
  MT_NEW(out->used, out->n_groups + 1);
  MT_NEW(out->counts, (out->n_groups + 1) * GROUP);
done:
  return status;
}

static void term_set_destroy(term_set *set)
{
  free(set->bits);
  free(set->used);
  free(set->counts);
}

static inline void term_set_add(term_set *set, uint32_t term, int32_t count)
{
  set->used[term / GROUP] |= 1ull << term / WORD % WORD;
  set->bits[term / WORD] |= 1ull << term % WORD;
  set->counts[term] = count;
}

/* Writes the terms of the vocabulary as entries and empties the set; where they end. */
static char *term_set_take(term_set *set, char *to, int64_t *n_out)
{
  int64_t n = 0;
  for (int64_t g = 0; g < set->n_groups; g++) {
    for (uint64_t used = set->used[g]; used != 0; used &= used - 1) {
      int64_t word = g * WORD + __builtin_ctzll(used);
      for (uint64_t bits = set->bits[word]; bits != 0; bits &= bits - 1, n++) {
        int32_t term = (int32_t)(word * WORD + __builtin_ctzll(bits));
        to = mt_entry_put(to, (mt_entry){term, set->counts[term]});
      }
      set->bits[word] = 0;
    }
    set->used[g] = 0;
  }
  *n_out = n;
  return to;
}

/* This rank's term numbers to those of the vocabulary; `other`: not in it. */
static mt_status map_terms(const mt_terms *vocabulary, const mt_terms *local,
                           int32_t other, int32_t **out)
{
  mt_status status = MT_OK;
  int32_t *map = NULL;
  MT_NEW(map, local->n);
  for (int64_t t = 0; t < local->n; t++) map[t] = other;
  for (int64_t v = 0; v < vocabulary->n; v++) {
    size_t size;
    const char *bytes = mt_term(vocabulary, v, &size);
    int64_t t = mt_terms_find(local, bytes, size);
    if (t >= 0) map[t] = (int32_t)v;
  }
  *out = map;
done:
  return status;
}

typedef struct outgoing {
  size_t *bytes;  /* (size) to each other rank */
  mt_buffer rows; /* the others', by rank */
  mt_pile own;    /* what stays here */
  int32_t *map;   /* (terms of the collection) to the vocabulary's, or beyond them */
  term_set set;
} outgoing;

static void outgoing_destroy(outgoing *out)
{
  free(out->bytes);
  free(out->map);
  term_set_destroy(&out->set);
  mt_buffer_destroy(&out->rows);
  mt_pile_destroy(&out->own);
}

static size_t most_bytes(const mt_document *document)
{
  return sizeof(row_head) + (size_t)(document->id_size + document->title_size) +
         (size_t)document->n_entries * MT_ENTRY_MOST;
}

/* The document's row, of most_bytes at most; where it ends. */
static char *put_row(const mt_document *document, row_head head, outgoing *out,
                     char *row)
{
  size_t texts = (size_t)(document->id_size + document->title_size);
  const char *from = document->row + texts;
  char *to = row + sizeof head;
  memcpy(to, document->row, texts);
  for (int64_t e = 0; e < document->n_entries; e++) {
    mt_entry entry;
    from = mt_entry_get(from, &entry);
    term_set_add(&out->set, (uint32_t)out->map[entry.term], entry.count);
  }
  to = term_set_take(&out->set, to + texts, &head.n_entries);
  head.bytes = to - row - (int64_t)sizeof head;
  memcpy(row, &head, sizeof head);
  return to;
}

/* To the rank that owns it. own, rows: this rank's part, and where its rows lie. */
static mt_status add_row(const mt_document *document, row_head head, mt_part own,
                         int owner, outgoing *out, const char **rows)
{
  mt_status status = MT_OK;
  size_t most = most_bytes(document);
  if (head.position >= own.first && head.position < own.first + own.count) {
    MT_TRY(mt_pile_reserve(&out->own, most));
    rows[head.position - own.first] = out->own.at;
    mt_pile_keep(&out->own, put_row(document, head, out, out->own.at));
  } else {
    MT_TRY(mt_buffer_reserve(&out->rows, most));
    char *row = out->rows.bytes + out->rows.size;
    char *end = put_row(document, head, out, row);
    out->rows.size += end - row;
    out->bytes[owner] += (size_t)(end - row);
  }
done:
  return status;
}

static mt_status pack_rows(const mt_comm *comm, const mt_collection *c,
                           const int64_t *order, const int64_t *positions,
                           const mt_built *built, const int64_t *keys, outgoing *out,
                           const char **rows)
{
  mt_status status = MT_OK;
  const mt_terms *terms = &built->vocabulary.terms;
  mt_part own = mt_part_of(built->survey.n_documents, comm->size, comm->rank);
  MT_TRY(term_set_new(terms->n, &out->set));
  MT_TRY(map_terms(terms, &c->terms, (int32_t)(out->set.n_groups * GROUP), &out->map));
  MT_NEW(out->bytes, comm->size);
  for (int64_t i = 0; i < c->n_documents; i++) {
    const mt_document *document = &c->documents[order[i]];
    row_head head = {.position = positions[order[i]],
                     .id_size = document->id_size,
                     .title_size = document->title_size};
    head.period = mt_lower_bound(built->survey.n_periods, keys, document->period);
    int owner = mt_part_owner(built->survey.n_documents, comm->size, head.position);
    MT_TRY(add_row(document, head, own, owner, out, rows));
  }
done:
  return status;
}

/* ---- rows that arrived ------------------------------------------------------------------------- */

/* Where each of the rows that came lies. */
static mt_status find_rows(const char *bytes, size_t size, int64_t first, int64_t n,
                           const char **rows)
{
  for (const char *at = bytes; at < bytes + size;) {
    row_head head;
    memcpy(&head, at, sizeof head);
    if (head.position < first || head.position >= first + n)
      return mt_fail(MT_ERR_INTERNAL, "document %lld came to the wrong rank",
                     (long long)head.position);
    rows[head.position - first] = at;
    at += sizeof head + (size_t)head.bytes;
  }
  for (int64_t i = 0; i < n; i++)
    if (rows[i] == NULL)
      return mt_fail(MT_ERR_INTERNAL, "document %lld did not come",
                     (long long)(first + i));
  return MT_OK;
}

/* A text of a row to where texts go; where the next goes. */
static char *copy_text(const char *from, int64_t size, char *to, char **out)
{
  memcpy(to, from, (size_t)size);
  to[size] = '\0';
  *out = to;
  return to + size + 1;
}

/* Row `row`, whose texts go to `texts`; where the next row's do. */
static char *unpack_row(const char *at, int64_t row, char *texts, mt_built *built)
{
  mt_counts *counts = &built->counts;
  row_head head;
  memcpy(&head, at, sizeof head);
  at += sizeof head;
  texts = copy_text(at, head.id_size, texts, &built->ids[row]);
  texts = copy_text(at + head.id_size, head.title_size, texts, &built->titles[row]);
  at += head.id_size + head.title_size;
  int64_t to = counts->indptr[row];
  for (int64_t e = 0; e < head.n_entries; e++) {
    mt_entry entry;
    at = mt_entry_get(at, &entry);
    counts->indices[to + e] = entry.term;
    counts->data[to + e] = entry.count;
    built->n_counted += entry.count;
  }
  built->period_of[row] = (int32_t)head.period;
  built->n_stored += head.n_entries;
  built->n_empty += head.n_entries == 0;
  built->survey.periods[head.period].n_stored += head.n_entries;
  return texts;
}

static mt_status unpack_rows(const char *const *rows, int64_t n, mt_built *built)
{
  mt_status status = MT_OK;
  mt_counts *counts = &built->counts;
  int64_t texts_size = 0;
  MT_NEW(counts->indptr, n + 1);
  for (int64_t i = 0; i < n; i++) {
    row_head head;
    memcpy(&head, rows[i], sizeof head);
    counts->indptr[i + 1] = counts->indptr[i] + head.n_entries;
    texts_size += head.id_size + head.title_size + 2; /* with a '\0' each */
  }
  MT_NEW(counts->indices, counts->indptr[n]);
  MT_NEW(counts->data, counts->indptr[n]);
  MT_NEW(built->period_of, n);
  MT_NEW(built->ids, n);
  MT_NEW(built->titles, n);
  MT_TRY(mt_memory_new(texts_size, 1, "texts", (void **)&built->texts));
  counts->n_documents = n;
  counts->n_terms = built->vocabulary.terms.n;
  char *texts = built->texts;
  for (int64_t i = 0; i < n; i++) texts = unpack_row(rows[i], i, texts, built);
done:
  return status;
}

static mt_status sum_up(const mt_comm *comm, mt_built *built)
{
  enum { OWN = 3 };
  mt_status status = MT_OK;
  int64_t n = built->survey.n_periods, *sums = NULL;
  mt_period *periods = built->survey.periods;
  MT_TRY(mt_agree(comm, mt_memory_new(OWN + n, sizeof *sums, "sums", (void **)&sums)));
  sums[0] = built->n_stored;
  sums[1] = built->n_counted;
  sums[2] = built->n_empty;
  for (int64_t p = 0; p < n; p++) sums[OWN + p] = periods[p].n_stored;
  MT_TRY(mt_sum_i64(comm, OWN + n, sums));
  built->n_stored = sums[0];
  built->n_counted = sums[1];
  built->n_empty = sums[2];
  for (int64_t p = 0; p < n; p++) periods[p].n_stored = sums[OWN + p];
done:
  free(sums);
  return status;
}

/* The periods' keys, from their names. */
static mt_status keys_of(const mt_built *built, mt_period_kind kind, int64_t **out)
{
  mt_status status = MT_OK;
  int64_t *keys = NULL;
  MT_NEW(keys, built->survey.n_periods);
  for (int64_t p = 0; p < built->survey.n_periods; p++) {
    const char *name = built->survey.periods[p].name;
    mt_period_named(kind, name, strlen(name), &keys[p]);
  }
  *out = keys;
done:
  return status;
}

mt_status mt_arrange_rows(const mt_comm *comm, mt_collection *collection,
                          const int64_t *order, const int64_t *positions,
                          mt_built *built)
{
  mt_status status = MT_OK;
  outgoing out = {0};
  int64_t *keys = NULL, n = built->survey.n_documents;
  size_t *recv_bytes = NULL, total = 0;
  char *recv = NULL;
  const char **rows = NULL; /* this rank's, own or received */
  mt_part mine = mt_part_of(n, comm->size, comm->rank);

  built->first = mine.first;
  MT_TRY(mt_agree(
      comm, mt_memory_new(mine.count, sizeof *rows, "documents", (void **)&rows)));
  MT_TRY(mt_agree(comm, mt_memory_new(comm->size, sizeof *recv_bytes, "message sizes",
                                      (void **)&recv_bytes)));
  MT_TRY(mt_agree(comm, keys_of(built, collection->options->period, &keys)));
  MT_TRY(mt_agree(
      comm, pack_rows(comm, collection, order, positions, built, keys, &out, rows)));
  mt_collection_close(collection);
  MT_TRY(mt_alltoall_sizes(comm, out.bytes, recv_bytes));
  for (int r = 0; r < comm->size; r++) total += recv_bytes[r];
  MT_TRY(mt_agree(comm, mt_memory_new((int64_t)total, 1, "documents", (void **)&recv)));
  MT_TRY(mt_alltoallv(comm, out.bytes, out.rows.bytes, recv_bytes, recv));
  mt_buffer_destroy(&out.rows);
  MT_TRY(mt_agree(comm, find_rows(recv, total, mine.first, mine.count, rows)));
  MT_TRY(mt_agree(comm, unpack_rows(rows, mine.count, built)));
  MT_TRY(sum_up(comm, built));
done:
  free(keys);
  free(rows);
  outgoing_destroy(&out);
  free(recv_bytes);
  free(recv);
  return status;
}
