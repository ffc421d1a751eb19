/* From what each rank read to documents in their final order, spread evenly. */
#ifndef MT_CORPUS_ARRANGE_H
#define MT_CORPUS_ARRANGE_H
#include "corpus/build.h"
#include "corpus/collect.h"

/**
 * The position of each of this rank's documents among all: by period, then by member's
 * place, then as in the member. Collective.
 * place     (members) mt_intake's
 * order_out      (collection->n_documents) documents by position; owned by the caller, as
 * positions_out  (collection->n_documents)
 */
mt_status mt_arrange_positions(const mt_comm *comm, const mt_collection *collection,
                               const int64_t *place, int64_t **order_out,
                               int64_t **positions_out);

/**
 * Sends each document to the rank that owns its position. Collective.
 * order, positions  of mt_arrange_positions
 * collection  closed on the way, so that its rows need not be held with what they become
 * built       survey and vocabulary are filled in (other terms are dropped); counts,
 *             period_of, ids, titles, first, n_stored, n_counted, n_empty and the
 *             periods' n_stored are set
 */
mt_status mt_arrange_rows(const mt_comm *comm, mt_collection *collection,
                          const int64_t *order, const int64_t *positions,
                          mt_built *built);

#endif
