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
                               const int64_t *place, int64_t **order_out,
                               int64_t **positions_out)
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
  *order_out = order;
  *positions_out = out;
  order = out = NULL;
done:
  free(out);
  free(order);
  free(mine);
  free(all);
  return status;
}
