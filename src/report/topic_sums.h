/* Sums over the rows of topics, which all ranks read together, each its part. */
#ifndef MT_REPORT_TOPIC_SUMS_H
#define MT_REPORT_TOPIC_SUMS_H
#include "base/rows.h"
#include "comm/comm.h"

/**
 * Over all rows. Collective.
 * rows      probabilities, 0 to 1; each rank reads its share once, in blocks
 * sums_out  (rows->d) on every rank, the same bits on any number of them: counted in units of
 *           1 / 2^61 of the number of rows or finer than that
 * Errors    MT_ERR_MEMORY, or what reading gives; agreed
 */
mt_status mt_topic_sums(const mt_comm *comm, const mt_rows *rows, double *sums_out);

/* Takes a cluster's sums (rows->d), which it may change; on rank 0 alone. */
typedef mt_status (*mt_take_sums)(void *context, int64_t cluster, double *sums);

/**
 * Over the rows of each cluster. Collective.
 * n_clusters, labels (rows->n)   the same on all ranks; labels in [0, n_clusters), or -1
 * take      is called for every cluster, in order; each sum is in the order of the rows
 * A rank sums some clusters at a time, 16 MiB of sums, and reads their rows alone: near ones
 * together, 16 MiB at most.
 * Errors    MT_ERR_MEMORY, what reading gives, or what take does; agreed
 */
mt_status mt_topic_cluster_sums(const mt_comm *comm, const mt_rows *rows,
                                int64_t n_clusters, const int64_t *labels,
                                mt_take_sums take, void *context);

#endif
