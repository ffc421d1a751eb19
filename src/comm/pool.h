/* A pool of work: blocks of bytes that some ranks make, the givers, and that whoever has
 * nothing else to do takes. Each block goes to one rank; a giver's blocks come to a taker in
 * the order in which they were given. Few are on their way at a time, whatever the number of
 * ranks.
 * All ranks: mt_pool_create; the givers give what they make; then every rank takes until
 * nothing is left; mt_pool_destroy. Who fails on the way goes on taking, and drops it. */
#ifndef MT_COMM_POOL_H
#define MT_COMM_POOL_H
#include "comm/comm.h"
#include <sys/uio.h>

typedef struct mt_pool mt_pool;

/* gives: will this rank give blocks? Collective. */
mt_status mt_pool_create(const mt_comm *comm, bool gives, mt_pool **pool_out);

/**
 * Offers a block, n parts one after the other, to a rank that waits for one. Not collective.
 * given_out  false: none waits, or too many blocks are on their way: do it yourself
 * Errors     MT_ERR_MEMORY, and it was not given
 */
mt_status mt_pool_give(mt_pool *pool, int n, const struct iovec *parts,
                       bool *given_out);

/* Lets MPI move what was given: call it every few milliseconds of long work. Not collective;
 * NULL is fine. */
void mt_pool_progress(mt_pool *pool);

/**
 * The next block of another rank; waits for it. After the first call this rank gives nothing
 * more. Not collective.
 * size_out  its bytes, >= 0; -1 once no rank will give any more
 * Returns   the pool's until the next call; NULL at the end
 */
const char *mt_pool_take(mt_pool *pool, int64_t *size_out);

/* After each rank has taken until the end. Collective. NULL is fine. */
mt_status mt_pool_destroy(const mt_comm *comm, mt_pool **pool);

#endif
