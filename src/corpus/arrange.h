/* From what each rank read to documents in their final order, spread evenly. */
#ifndef MT_CORPUS_ARRANGE_H
#define MT_CORPUS_ARRANGE_H
#include "corpus/build.h"
#include "corpus/collect.h"

/**
 * The position of each of this rank's documents among all: by period, then by member's
 * place, then as in the member. Collective.
 * place     (members) of mt_members_order
 * positions_out  (collection->n_documents) owned by the caller
 */
mt_status mt_arrange_positions(const mt_comm *comm, const mt_collection *collection,
                               const int64_t *place, int64_t **positions_out);

/**
 * Sends each document to the rank that owns its position. Collective.
 * vocabulary  terms outside of it are dropped
 * built       survey is filled in; counts, period_of, ids, titles, first, n_stored,
 *             n_counted, n_empty and the periods' n_stored are set
 */
mt_status mt_arrange_rows(const mt_comm *comm, const mt_collection *collection,
                          const int64_t *positions, mt_built *built);

#endif
