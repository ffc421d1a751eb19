/* Communicators and every collective: the only place that calls MPI collectives.
 * A function is collective if and only if it takes an mt_comm. All sizes may exceed
 * 2^31: transfers go in equal numbers of slices of at most max_message bytes. A failed
 * MPI call, or no memory for a few bytes a rank inside one of these functions, aborts the
 * job, since nothing can be agreed on any more. */
#ifndef MT_COMM_COMM_H
#define MT_COMM_COMM_H
#include "base/status.h"
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mt_comm {
  MPI_Comm mpi;       /* owned, if made by mt_comm_split or mt_comm_start */
  int rank, size;     /* size 0: this process is not a member */
  size_t max_message; /* bytes a message may have; tests set 7 */
} mt_comm;

#define MT_MPI(call)                                                                \
  do {                                                                              \
    int mpi_code = (call);                                                          \
    if (mpi_code != MPI_SUCCESS) mt_mpi_abort(#call, mpi_code, __FILE__, __LINE__); \
  } while (0)
void mt_mpi_abort(const char *call, int code, const char *file, int line)
    __attribute__((noreturn));

/* Ends all ranks at once, with status 1, when nothing can be agreed on any more: after mt_fail
 * has said why. Not collective. */
void mt_comm_abort(void) __attribute__((noreturn));

/* Starts MPI (thread level FUNNELED: only the main thread calls MPI). The world. */
mt_status mt_comm_start(int *argc, char ***argv, mt_comm *world_out);
void mt_comm_stop(mt_comm *world);

/* This process alone; never freed. Works for serial parts that want an mt_comm. */
mt_comm mt_comm_self(void);

/* Ranks of equal color >= 0 form a communicator, ordered by (key, rank); color < 0:
 * none (size 0). The caller frees it. */
mt_status mt_comm_split(const mt_comm *comm, int color, int key, mt_comm *out);

/* Ranks [first, first + count) form a communicator, in order. They alone call this, all of
 * their parts in the same order; the others do not wait. The caller frees it. */
mt_status mt_comm_part(const mt_comm *comm, int first, int count, mt_comm *out);

/* The ranks that share a node's memory. The caller frees it. */
mt_status mt_comm_node(const mt_comm *comm, mt_comm *out);
void mt_comm_free(mt_comm *comm); /* size 0 is fine */

/* The worst (largest) status of all ranks. Before a collective that needs everyone. */
mt_status mt_agree(const mt_comm *comm, mt_status local);

/* True on every rank if a signal has reached any of them. */
bool mt_stop_agreed(const mt_comm *comm);

mt_status mt_barrier(const mt_comm *comm);

mt_status mt_bcast(const mt_comm *comm, int root, size_t bytes, void *buf);

/* Likewise when only root knows how many: elsewhere *bytes is new memory of *size bytes,
 * owned by the caller; on root both are given. A final '\0' follows the bytes. */
mt_status mt_bcast_bytes(const mt_comm *comm, int root, size_t *size, char **bytes);

/* Elementwise over ranks, in place. There is no floating-point sum on purpose: its
 * rounding would depend on the number of ranks (see mt_ordered_sum). */
mt_status mt_sum_i64(const mt_comm *comm, int64_t n, int64_t *values);
mt_status mt_min_i64(const mt_comm *comm, int64_t n, int64_t *values);
mt_status mt_max_i64(const mt_comm *comm, int64_t n, int64_t *values);
mt_status mt_min_f64(const mt_comm *comm, int64_t n, double *values);
mt_status mt_max_f64(const mt_comm *comm, int64_t n, double *values);

/* Sum of value over all lower ranks; 0 on rank 0. */
mt_status mt_exscan_i64(const mt_comm *comm, int64_t value, int64_t *before_out);

/* Every rank's `bytes` bytes, in rank order. recv: size x bytes. */
mt_status mt_allgather(const mt_comm *comm, size_t bytes, const void *send, void *recv);

/* In place: buf holds every rank's block in rank order, this rank's own filled in;
 * bytes[r], the same on all ranks, is block r's size. */
mt_status mt_allgatherv(const mt_comm *comm, const size_t *bytes, void *buf);

/* Likewise of n rows of row_bytes each, spread as mt_part_first says. */
mt_status mt_allgather_rows(const mt_comm *comm, int64_t n, size_t row_bytes,
                            void *buf);

/* Every rank's block of `size` bytes, which only that rank knows, in rank order: new memory
 * of *size_out bytes on every rank, owned by the caller. Errors MT_ERR_MEMORY, agreed. */
mt_status mt_allgather_bytes(const mt_comm *comm, size_t size, const void *block,
                             size_t *size_out, void **all_out);

/* As mt_allgatherv, to root alone. block: this rank's, bytes[rank] long; out: the sum of
 * bytes, used on root only (NULL elsewhere). */
mt_status mt_gatherv(const mt_comm *comm, int root, const size_t *bytes,
                     const void *block, void *out);

/* From one rank's buf into another's; for the others nothing happens. from == to: nothing. */
mt_status mt_transfer(const mt_comm *comm, int from, int to, size_t bytes, void *buf);

/* Rank s sends send_bytes[r] to each r; blocks lie in rank order in both buffers.
 * recv_bytes[s] as mt_alltoall_sizes gives them. */
mt_status mt_alltoall_sizes(const mt_comm *comm, const size_t *send_bytes,
                            size_t *recv_bytes_out);
mt_status mt_alltoallv(const mt_comm *comm, const size_t *send_bytes, const void *send,
                       const size_t *recv_bytes, void *recv);

/* A ring step, overlappable with work: send to rank + 1, receive from rank - 1 (cyclic).
 * The buffers must stay untouched until mt_ring_end. size 1: copies. */
typedef struct mt_ring mt_ring;
mt_status mt_ring_begin(const mt_comm *comm, size_t send_bytes, const void *send,
                        size_t recv_bytes, void *recv, mt_ring **ring_out);
/* Lets MPI move the data while this rank works: call it every few milliseconds from the
 * main thread. Not collective; NULL is fine. */
void mt_ring_progress(mt_ring *ring);
mt_status mt_ring_end(const mt_comm *comm, mt_ring **ring); /* frees; NULL is fine */

/* A number that every rank can draw from: 0, 1, 2, ... each once over all ranks. Rank 0 keeps
 * it: once it has drawn its last, it must come to mt_counter_destroy and nothing else that
 * waits for the others, who may still be drawing. */
typedef struct mt_counter mt_counter;
mt_status mt_counter_create(const mt_comm *comm, mt_counter **counter_out);
mt_status mt_counter_next(mt_counter *counter, int64_t *value_out); /* not collective */
/* Rank 0 answers the other ranks' draws: call it every few milliseconds of long work. Not
 * collective. */
void mt_counter_serve(mt_counter *counter);
mt_status mt_counter_destroy(const mt_comm *comm,
                             mt_counter **counter); /* NULL is fine */

/* Rows 0..n-1 in contiguous blocks as equal as can be: rank r of size owns
 * [first(r), first(r + 1)). Not collective. */
static inline int64_t mt_part_first(int64_t n, int size, int rank)
{
  int64_t each = n / size, extra = n % size;
  return each * rank + (rank < extra ? rank : extra);
}

static inline int64_t mt_part_count(int64_t n, int size, int rank)
{
  return mt_part_first(n, size, rank + 1) - mt_part_first(n, size, rank);
}

/* Rows first..first + count - 1 of some. */
typedef struct mt_part {
  int64_t first, count;
} mt_part;

static inline mt_part mt_part_of(int64_t n, int size, int rank)
{
  mt_part own = {mt_part_first(n, size, rank), mt_part_count(n, size, rank)};
  return own;
}

/* Which rank owns row i. */
static inline int mt_part_owner(int64_t n, int size, int64_t i)
{
  int64_t each = n / size, extra = n % size, wide = extra * (each + 1);
  return i < wide ? (int)(i / (each + 1)) : (int)(extra + (i - wide) / each);
}

#endif
