#include "corpus/arrange.h"
#include "base/memory.h"
#include "base/search.h"

/* ---- positions ------------------------------------------------------------------------------- */

/* Documents of one period that stand one after the other in one piece. */
typedef struct document_run {
  int64_t period, place, piece, count;
  int64_t rank, first; /* whose; its first document in that rank's order */
} document_run;

typedef struct order_context {
  const mt_collection *collection;
  const int64_t *place;
} order_context;

static int compare(int64_t a, int64_t b)
{
  return (a > b) - (a < b);
}

static int by_document(const void *a, const void *b, void *context)
{
  const order_context *c = context;
  int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
  const mt_document *one = &c->collection->documents[i],
                    *other = &c->collection->documents[j];
  int order = compare(one->period, other->period);
  if (order == 0) order = compare(c->place[one->member], c->place[other->member]);
  return order != 0 ? order : compare(i, j);
}

static int by_run(const void *a, const void *b)
{
  const document_run *one = a, *other = b;
  int order = compare(one->period, other->period);
  if (order == 0) order = compare(one->place, other->place);
  return order != 0 ? order : compare(one->piece, other->piece);
}

/* This rank's documents by period, place and offset, and the runs of them. */
static mt_status local_runs(order_context *c, int rank, int64_t **order_out,
                            int64_t *n_out, document_run **runs_out)
{
  mt_status status = MT_OK;
  document_run *runs = NULL;
  int64_t n = 0, capacity = 0, *order = NULL, n_documents = c->collection->n_documents;
  MT_NEW(order, n_documents);
  for (int64_t i = 0; i < n_documents; i++) order[i] = i;
  qsort_r(order, (size_t)n_documents, sizeof *order, by_document, c);
  for (int64_t i = 0; i < n_documents; i++) {
    const mt_document *document = &c->collection->documents[order[i]];
    document_run run = {.period = document->period,
                        .place = c->place[document->member],
                        .piece = document->piece,
                        .count = 1,
                        .rank = rank,
                        .first = i};
    if (n > 0 && by_run(&runs[n - 1], &run) == 0) {
      runs[n - 1].count++;
      continue;
    }
    MT_GROW(runs, capacity, n + 1);
    runs[n++] = run;
  }
  *n_out = n;
  *runs_out = runs;
  *order_out = order;
  runs = NULL;
  order = NULL;
done:
  free(runs);
  free(order);
  return status;
}

/* All ranks' runs, in order. */
static mt_status gather_runs(const mt_comm *comm, int64_t n, const document_run *mine,
                             int64_t *n_out, document_run **runs_out)
{
  size_t size = 0;
  mt_status status = mt_allgather_bytes(comm, (size_t)n * sizeof *mine, mine, &size,
                                        (void **)runs_out);
  if (status != MT_OK) return status;
  *n_out = (int64_t)(size / sizeof *mine);
  qsort(*runs_out, (size_t)*n_out, sizeof **runs_out, by_run);
  return MT_OK;
}

mt_status mt_arrange_positions(const mt_comm *comm, const mt_collection *collection,
                               const int64_t *place, int64_t **positions_out)
{
  mt_status status = MT_OK;
  order_context c = {collection, place};
  int64_t *order = NULL, *out = NULL, n_mine = 0, n_all = 0, position = 0;
  document_run *mine = NULL, *all = NULL;

  MT_TRY(mt_agree(comm, local_runs(&c, comm->rank, &order, &n_mine, &mine)));
  MT_TRY(mt_agree(comm, mt_memory_new(collection->n_documents, sizeof *out, "positions",
                                      (void **)&out)));
  MT_TRY(gather_runs(comm, n_mine, mine, &n_all, &all));
  for (int64_t r = 0; r < n_all; position += all[r++].count)
    for (int64_t i = 0; all[r].rank == comm->rank && i < all[r].count; i++)
      out[order[all[r].first + i]] = position + i;
  *positions_out = out;
  out = NULL;
done:
  free(out);
  free(order);
  free(mine);
  free(all);
  return status;
}

/* ---- rows on their way: a head, entries, id and title, to a multiple of 8 bytes ------------ */

typedef struct row_head {
  int64_t position, n_entries, id_size, title_size, period;
} row_head;

static int by_entry(const void *a, const void *b)
{
  return compare(((const mt_entry *)a)->term, ((const mt_entry *)b)->term);
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

/* The document's entries over the vocabulary, ascending, after what is in `out`. */
static mt_status add_row(const mt_collection *c, const mt_document *document,
                         const int32_t *map, row_head head, mt_buffer *out)
{
  mt_status status = MT_OK;
  const mt_entry *from = c->entries + document->first_entry;
  int64_t head_at = out->size;
  MT_TRY(mt_buffer_reserve(out, sizeof head +
                                    (size_t)document->n_entries * sizeof *from +
                                    (size_t)(head.id_size + head.title_size)));
  out->size += (int64_t)sizeof head;
  int64_t entries_at = out->size;
  for (int64_t e = 0; e < document->n_entries; e++) {
    mt_entry entry = {map[from[e].term], from[e].count};
    if (entry.term < 0) continue;
    memcpy(out->bytes + out->size, &entry, sizeof entry);
    out->size += (int64_t)sizeof entry;
    head.n_entries++;
  }
  qsort(out->bytes + entries_at, (size_t)head.n_entries, sizeof(mt_entry), by_entry);
  memcpy(out->bytes + head_at, &head, sizeof head);
  MT_TRY(mt_buffer_add(out, c->texts.bytes + document->text,
                       (size_t)(head.id_size + head.title_size)));
  MT_TRY(mt_buffer_add(out, "\0\0\0\0\0\0\0", (size_t)(-out->size & 7)));
done:
  return status;
}

typedef struct outgoing {
  int64_t *order; /* documents by position, so that the owners ascend */
  size_t *bytes;  /* (size) to each rank */
  mt_buffer rows;
} outgoing;

static int by_position(const void *a, const void *b, void *context)
{
  const int64_t *positions = context;
  return compare(positions[*(const int64_t *)a], positions[*(const int64_t *)b]);
}

static mt_status pack_rows(const mt_comm *comm, const mt_collection *c,
                           const int64_t *positions, const mt_built *built,
                           const int64_t *keys, outgoing *out)
{
  mt_status status = MT_OK;
  int32_t *map = NULL;
  int64_t n = c->n_documents;
  MT_TRY(map_terms(&built->vocabulary.terms, &c->terms, &map));
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
    MT_TRY(add_row(c, document, map, head, &out->rows));
    int owner = mt_part_owner(built->survey.n_documents, comm->size, head.position);
    out->bytes[owner] += (size_t)(out->rows.size - before);
  }
done:
  free(map);
  return status;
}

/* ---- rows that arrived ------------------------------------------------------------------------- */

static mt_status copy_text(const char *from, int64_t size, char **out)
{
  mt_status status = MT_OK;
  char *text = NULL;
  MT_TRY(mt_memory_new(size + 1, 1, "text", (void **)&text));
  if (size > 0) memcpy(text, from, (size_t)size);
  *out = text;
done:
  return status;
}

static size_t row_size(const row_head *head)
{
  size_t texts = (size_t)(head->id_size + head->title_size);
  return sizeof *head + (size_t)head->n_entries * sizeof(mt_entry) +
         (texts + 7) / 8 * 8;
}

/* Where each of this rank's rows lies in the bytes. */
static mt_status find_rows(const char *bytes, size_t size, int64_t first, int64_t n,
                           const char **rows)
{
  int64_t found = 0;
  for (const char *at = bytes; at < bytes + size; found++) {
    row_head head;
    memcpy(&head, at, sizeof head);
    if (head.position < first || head.position >= first + n)
      return mt_fail(MT_ERR_INTERNAL, "document %lld came to the wrong rank",
                     (long long)head.position);
    rows[head.position - first] = at;
    at += row_size(&head);
  }
  if (found == n) return MT_OK;
  return mt_fail(MT_ERR_INTERNAL, "%lld documents came, %lld are due", (long long)found,
                 (long long)n);
}

static mt_status unpack_row(const char *at, int64_t row, mt_built *built)
{
  mt_status status = MT_OK;
  mt_counts *counts = &built->counts;
  row_head head;
  memcpy(&head, at, sizeof head);
  at += sizeof head;
  int64_t to = counts->indptr[row];
  for (int64_t e = 0; e < head.n_entries; e++, at += sizeof(mt_entry)) {
    mt_entry entry;
    memcpy(&entry, at, sizeof entry);
    counts->indices[to + e] = entry.term;
    counts->data[to + e] = entry.count;
    built->n_counted += entry.count;
  }
  built->period_of[row] = (int32_t)head.period;
  built->n_stored += head.n_entries;
  built->n_empty += head.n_entries == 0;
  built->survey.periods[head.period].n_stored += head.n_entries;
  MT_TRY(copy_text(at, head.id_size, &built->ids[row]));
  MT_TRY(copy_text(at + head.id_size, head.title_size, &built->titles[row]));
done:
  return status;
}

static mt_status unpack_rows(const char *bytes, size_t size, int64_t n, mt_built *built)
{
  mt_status status = MT_OK;
  mt_counts *counts = &built->counts;
  const char **rows = NULL;
  MT_NEW(rows, n);
  MT_TRY(find_rows(bytes, size, built->first, n, rows));
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
  counts->n_documents = n;
  counts->n_terms = built->vocabulary.terms.n;
  for (int64_t i = 0; i < n; i++) MT_TRY(unpack_row(rows[i], i, built));
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

mt_status mt_arrange_rows(const mt_comm *comm, const mt_collection *collection,
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
  MT_TRY(mt_alltoall_sizes(comm, out.bytes, recv_bytes));
  for (int r = 0; r < comm->size; r++) total += recv_bytes[r];
  MT_TRY(mt_agree(comm, mt_memory_new((int64_t)total, 1, "documents", (void **)&recv)));
  MT_TRY(mt_alltoallv(comm, out.bytes, out.rows.bytes, recv_bytes, recv));
  MT_TRY(mt_agree(
      comm, unpack_rows(recv, total, mt_part_count(n, comm->size, comm->rank), built)));
  MT_TRY(sum_up(comm, built));
done:
  free(keys);
  free(out.order);
  free(out.bytes);
  mt_buffer_destroy(&out.rows);
  free(recv_bytes);
  free(recv);
  return status;
}
