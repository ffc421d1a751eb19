/* Documents on their way: from the rank that read each to the one that owns its position. */
#include "base/memory.h"
#include "base/search.h"
#include "corpus/arrange.h"

/* ---- a row: a head, then id, title and entries, each term as its distance from the last ---- */

typedef struct row_head {
  int64_t position, period, n_entries, id_size, title_size;
  int64_t bytes; /* that follow */
} row_head;

/* Ascending by the upper half: a pass for each byte that the largest has. */
static void sort_keys(int64_t n, uint64_t largest, uint64_t *keys, uint64_t *other)
{
  uint64_t *from = keys, *to = other;
  for (int shift = 32; shift < 64 && largest >> shift != 0; shift += 8) {
    int64_t first[256] = {0}, before = 0;
    for (int64_t i = 0; i < n; i++) first[from[i] >> shift & 255]++;
    for (int b = 0; b < 256; b++) {
      int64_t count = first[b];
      first[b] = before;
      before += count;
    }
    for (int64_t i = 0; i < n; i++) to[first[from[i] >> shift & 255]++] = from[i];
    uint64_t *swap = from;
    from = to;
    to = swap;
  }
  if (from != keys && n > 0) memcpy(keys, from, (size_t)n * sizeof *keys);
}

/* This rank's term numbers to those of the vocabulary; -1: not in it. */
static mt_status map_terms(const mt_terms *vocabulary, const mt_terms *local,
                           int32_t **out)
{
  mt_status status = MT_OK;
  int32_t *map = NULL;
  MT_NEW(map, local->n);
  for (int64_t t = 0; t < local->n; t++) map[t] = -1;
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
  int64_t *order; /* documents by position, so that the owners ascend */
  size_t *bytes;  /* (size) to each rank */
  mt_buffer rows;
  int32_t *map;   /* (terms of the collection) to the vocabulary's; -1: not in it */
  uint64_t *keys; /* two halves of keys_capacity / 2: term and count of a document */
  int64_t keys_capacity;
} outgoing;

static void outgoing_destroy(outgoing *out)
{
  free(out->order);
  free(out->bytes);
  free(out->map);
  free(out->keys);
  mt_buffer_destroy(&out->rows);
}

/* The entries at `from` that are in the vocabulary, into out->keys; how many. */
static int64_t map_entries(const outgoing *out, const char *from, int64_t n)
{
  int64_t kept = 0;
  for (int64_t e = 0; e < n; e++) {
    mt_entry entry;
    from = mt_entry_get(from, &entry);
    int64_t term = out->map[entry.term];
    out->keys[kept] = (uint64_t)term << 32 | (uint32_t)entry.count;
    kept += term >= 0;
  }
  return kept;
}

/* The document's row, after what is in out->rows. */
static mt_status add_row(const mt_collection *c, const mt_document *document,
                         int64_t n_terms, row_head head, outgoing *out)
{
  mt_status status = MT_OK;
  size_t texts = (size_t)(document->id_size + document->title_size);
  const char *from = c->rows.bytes + document->row;
  MT_GROW(out->keys, out->keys_capacity, 2 * document->n_entries);
  head.n_entries = map_entries(out, from + texts, document->n_entries);
  sort_keys(head.n_entries, (uint64_t)n_terms << 32, out->keys,
            out->keys + head.n_entries);
  MT_TRY(mt_buffer_reserve(&out->rows, sizeof head + texts +
                                           (size_t)head.n_entries * MT_ENTRY_MOST));
  char *row = out->rows.bytes + out->rows.size, *to = row + sizeof head;
  memcpy(to, from, texts);
  to += texts;
  int32_t last = 0;
  for (int64_t e = 0; e < head.n_entries; e++) {
    int32_t term = (int32_t)(out->keys[e] >> 32);
    to = mt_entry_put(to, (mt_entry){term - last, (int32_t)out->keys[e]});
    last = term;
  }
  head.bytes = to - row - (int64_t)sizeof head;
  memcpy(row, &head, sizeof head);
  out->rows.size = to - out->rows.bytes;
done:
  return status;
}

static int by_position(const void *a, const void *b, void *context)
{
  const int64_t *positions = context;
  int64_t one = positions[*(const int64_t *)a], other = positions[*(const int64_t *)b];
  return (one > other) - (one < other);
}

static mt_status pack_rows(const mt_comm *comm, const mt_collection *c,
                           const int64_t *positions, const mt_built *built,
                           const int64_t *keys, outgoing *out)
{
  mt_status status = MT_OK;
  const mt_terms *terms = &built->vocabulary.terms;
  int64_t n = c->n_documents;
  MT_TRY(map_terms(terms, &c->terms, &out->map));
  MT_NEW(out->order, n);
  MT_NEW(out->bytes, comm->size);
  for (int64_t i = 0; i < n; i++) out->order[i] = i;
  qsort_r(out->order, (size_t)n, sizeof *out->order, by_position, (void *)positions);
  for (int64_t i = 0; i < n; i++) {
    const mt_document *document = &c->documents[out->order[i]];
    row_head head = {.position = positions[out->order[i]],
                     .id_size = document->id_size,
                     .title_size = document->title_size};
    head.period = mt_lower_bound(built->survey.n_periods, keys, document->period);
    int64_t before = out->rows.size;
    MT_TRY(add_row(c, document, terms->n, head, out));
    int owner = mt_part_owner(built->survey.n_documents, comm->size, head.position);
    out->bytes[owner] += (size_t)(out->rows.size - before);
  }
done:
  return status;
}

/* ---- rows that arrived ------------------------------------------------------------------------- */

/* Where each of this rank's rows lies in the bytes; what their texts take, with a '\0' each. */
static mt_status find_rows(const char *bytes, size_t size, int64_t first, int64_t n,
                           const char **rows, int64_t *texts_out)
{
  int64_t found = 0;
  *texts_out = 0;
  for (const char *at = bytes; at < bytes + size; found++) {
    row_head head;
    memcpy(&head, at, sizeof head);
    if (head.position < first || head.position >= first + n)
      return mt_fail(MT_ERR_INTERNAL, "document %lld came to the wrong rank",
                     (long long)head.position);
    rows[head.position - first] = at;
    *texts_out += head.id_size + head.title_size + 2;
    at += sizeof head + (size_t)head.bytes;
  }
  if (found == n) return MT_OK;
  return mt_fail(MT_ERR_INTERNAL, "%lld documents came, %lld are due", (long long)found,
                 (long long)n);
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
  int64_t to = counts->indptr[row], term = 0;
  for (int64_t e = 0; e < head.n_entries; e++) {
    mt_entry entry;
    at = mt_entry_get(at, &entry);
    term += entry.term;
    counts->indices[to + e] = (int32_t)term;
    counts->data[to + e] = entry.count;
    built->n_counted += entry.count;
  }
  built->period_of[row] = (int32_t)head.period;
  built->n_stored += head.n_entries;
  built->n_empty += head.n_entries == 0;
  built->survey.periods[head.period].n_stored += head.n_entries;
  return texts;
}

static mt_status unpack_rows(const char *bytes, size_t size, int64_t n, mt_built *built)
{
  mt_status status = MT_OK;
  mt_counts *counts = &built->counts;
  const char **rows = NULL;
  int64_t texts_size;
  MT_NEW(rows, n);
  MT_TRY(find_rows(bytes, size, built->first, n, rows, &texts_size));
  MT_NEW(counts->indptr, n + 1);
  for (int64_t i = 0; i < n; i++) {
    row_head head;
    memcpy(&head, rows[i], sizeof head);
    counts->indptr[i + 1] = counts->indptr[i] + head.n_entries;
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
  free(rows);
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
                          const int64_t *positions, mt_built *built)
{
  mt_status status = MT_OK;
  outgoing out = {0};
  int64_t *keys = NULL, n = built->survey.n_documents;
  size_t *recv_bytes = NULL, total = 0;
  char *recv = NULL;

  built->first = mt_part_first(n, comm->size, comm->rank);
  MT_TRY(mt_agree(comm, mt_memory_new(comm->size, sizeof *recv_bytes, "message sizes",
                                      (void **)&recv_bytes)));
  MT_TRY(mt_agree(comm, keys_of(built, collection->options->period, &keys)));
  MT_TRY(mt_agree(comm, pack_rows(comm, collection, positions, built, keys, &out)));
  mt_collection_close(collection);
  MT_TRY(mt_alltoall_sizes(comm, out.bytes, recv_bytes));
  for (int r = 0; r < comm->size; r++) total += recv_bytes[r];
  MT_TRY(mt_agree(comm, mt_memory_new((int64_t)total, 1, "documents", (void **)&recv)));
  MT_TRY(mt_alltoallv(comm, out.bytes, out.rows.bytes, recv_bytes, recv));
  mt_buffer_destroy(&out.rows);
  MT_TRY(mt_agree(
      comm, unpack_rows(recv, total, mt_part_count(n, comm->size, comm->rank), built)));
  MT_TRY(sum_up(comm, built));
done:
  free(keys);
  outgoing_destroy(&out);
  free(recv_bytes);
  free(recv);
  return status;
}
