#include "comm/pool.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Words are ASK, or the answer of the giver that was asked: a block's size, or END. A taker
 * asks one giver until its END, then the next. It asks for one block ahead, so that it need
 * not wait for the giver, nor take much more than others. */
enum { TAG_WORD = 201, TAG_BYTES };
enum { END = -1, ASK = -2 };
enum { SLOTS = 8, KEPT = 8 << 20, MOST = 256 << 20 }; /* bytes: a free slot's; of all */

/* A block on its way. */
typedef struct pool_slot {
  int64_t size, capacity, requests_capacity;
  char *bytes;
  int n; /* requests; 0: free */
  MPI_Request *requests;
} pool_slot;

struct mt_pool {
  const mt_comm *comm; /* borrowed */
  pool_slot slots[SLOTS];
  int64_t on_their_way; /* bytes */
  bool gives;
  int *givers, n_givers, at; /* in the order in which this rank asks them; which one */
  bool asked;                /* an answer of givers[at] is to come */
  int dismissed;             /* ranks that have got END from this one */
  char *block;
  int64_t block_capacity;
};

/* From the rank after this one on, so that takers spread. */
static mt_status list_givers(const mt_comm *comm, mt_pool *pool)
{
  mt_status status = MT_OK;
  bool *gives = NULL;
  MT_TRY(mt_agree(comm,
                  mt_memory_new(comm->size, sizeof *gives, "givers", (void **)&gives)));
  MT_TRY(mt_allgather(comm, sizeof *gives, &pool->gives, gives));
  for (int i = 1; i < comm->size; i++) {
    int rank = (comm->rank + i) % comm->size;
    if (gives[rank]) pool->givers[pool->n_givers++] = rank;
  }
done:
  free(gives);
  return status;
}

static mt_status new_pool(const mt_comm *comm, bool gives, mt_pool **out)
{
  mt_status status = MT_OK;
  MT_NEW(*out, 1);
  MT_NEW((*out)->givers, comm->size);
  (*out)->comm = comm;
  (*out)->gives = gives;
done:
  return status;
}

static void free_pool(mt_pool *pool)
{
  if (pool == NULL) return;
  for (int s = 0; s < SLOTS; s++) {
    free(pool->slots[s].bytes);
    free(pool->slots[s].requests);
  }
  free(pool->givers);
  free(pool->block);
  free(pool);
}

mt_status mt_pool_create(const mt_comm *comm, bool gives, mt_pool **pool_out)
{
  mt_status status = MT_OK;
  mt_pool *pool = NULL;
  MT_TRY(mt_agree(comm, new_pool(comm, gives, &pool)));
  MT_TRY(list_givers(comm, pool));
  *pool_out = pool;
  pool = NULL;
done:
  free_pool(pool);
  return status;
}

/* ---- giving -------------------------------------------------------------------------- */

void mt_pool_progress(mt_pool *pool)
{
  int done;
  for (int s = 0; pool != NULL && s < SLOTS; s++) {
    pool_slot *one = &pool->slots[s];
    if (one->n == 0) continue;
    MT_MPI(MPI_Testall(one->n, one->requests, &done, MPI_STATUSES_IGNORE));
    if (!done) continue;
    pool->on_their_way -= one->size;
    one->n = 0;
    if (one->capacity > KEPT) { /* large ones are rare */
      free(one->bytes);
      one->bytes = NULL;
      one->capacity = 0;
    }
  }
}

static pool_slot *free_slot(mt_pool *pool)
{
  mt_pool_progress(pool);
  for (int s = 0; s < SLOTS; s++)
    if (pool->slots[s].n == 0) return &pool->slots[s];
  return NULL;
}

static mt_status fill_slot(pool_slot *slot, int64_t size, size_t max_message, int n,
                           const struct iovec *parts)
{
  mt_status status = MT_OK;
  int64_t at = 0;
  MT_GROW(slot->bytes, slot->capacity, size);
  MT_GROW(slot->requests, slot->requests_capacity, size / (int64_t)max_message + 2);
  for (int i = 0; i < n; at += (int64_t)parts[i++].iov_len)
    if (parts[i].iov_len > 0)
      memcpy(slot->bytes + at, parts[i].iov_base, parts[i].iov_len);
  slot->size = size;
done:
  return status;
}

static int64_t slice_of(const mt_comm *comm, int64_t left)
{
  return left < (int64_t)comm->max_message ? left : (int64_t)comm->max_message;
}

static void send_slot(const mt_comm *comm, pool_slot *slot, int to)
{
  MT_MPI(MPI_Isend(&slot->size, 1, MPI_INT64_T, to, TAG_WORD, comm->mpi,
                   &slot->requests[slot->n++]));
  for (int64_t at = 0, some; at < slot->size; at += some) {
    some = slice_of(comm, slot->size - at);
    MT_MPI(MPI_Isend(slot->bytes + at, (int)some, MPI_BYTE, to, TAG_BYTES, comm->mpi,
                     &slot->requests[slot->n++]));
  }
}

mt_status mt_pool_give(mt_pool *pool, int n, const struct iovec *parts, bool *given_out)
{
  mt_status status = MT_OK;
  const mt_comm *comm = pool->comm;
  pool_slot *slot = free_slot(pool);
  int64_t size = 0;
  int there = 0;
  MPI_Status who;
  *given_out = false;
  for (int i = 0; i < n; i++) size += (int64_t)parts[i].iov_len;
  if (slot == NULL || (pool->on_their_way > 0 && pool->on_their_way + size > MOST))
    return MT_OK;
  MT_MPI(MPI_Iprobe(MPI_ANY_SOURCE, TAG_WORD, comm->mpi, &there, &who));
  if (!there) return MT_OK;
  MT_TRY(fill_slot(slot, size, comm->max_message, n, parts));
  int64_t ask; /* what else could it be: this rank has asked nobody */
  MT_MPI(MPI_Recv(&ask, 1, MPI_INT64_T, who.MPI_SOURCE, TAG_WORD, comm->mpi,
                  MPI_STATUS_IGNORE));
  send_slot(comm, slot, who.MPI_SOURCE);
  pool->on_their_way += size;
  *given_out = true;
done:
  return status;
}

/* ---- taking -------------------------------------------------------------------------- */

static void send_word(const mt_pool *pool, int to, int64_t word)
{
  MT_MPI(MPI_Send(&word, 1, MPI_INT64_T, to, TAG_WORD, pool->comm->mpi));
}

/* Waits for a word; who asks this rank is told that it has nothing more. */
static int64_t next_word(mt_pool *pool)
{
  int64_t word;
  MPI_Status who;
  MT_MPI(
      MPI_Recv(&word, 1, MPI_INT64_T, MPI_ANY_SOURCE, TAG_WORD, pool->comm->mpi, &who));
  if (word == ASK) {
    send_word(pool, who.MPI_SOURCE, END);
    pool->dismissed++;
  }
  return word;
}

static void ask(mt_pool *pool)
{
  if (!pool->asked) send_word(pool, pool->givers[pool->at], ASK);
  pool->asked = true;
}

static void receive_block(mt_pool *pool, int64_t size)
{
  const mt_comm *comm = pool->comm;
  if (mt_memory_grow(size + 1, 1, "a block", &pool->block_capacity,
                     (void **)&pool->block) != MT_OK)
    mt_comm_abort(); /* the giver sends already */
  for (int64_t at = 0, some; at < size; at += some) {
    some = slice_of(comm, size - at);
    MT_MPI(MPI_Recv(pool->block + at, (int)some, MPI_BYTE, pool->givers[pool->at],
                    TAG_BYTES, comm->mpi, MPI_STATUS_IGNORE));
  }
}

const char *mt_pool_take(mt_pool *pool, int64_t *size_out)
{
  while (pool->at < pool->n_givers) {
    ask(pool);
    int64_t word = next_word(pool);
    if (word == ASK) continue;
    pool->asked = false;
    if (word == END) {
      pool->at++;
      continue;
    }
    receive_block(pool, word);
    ask(pool);
    *size_out = word;
    return pool->block;
  }
  *size_out = END;
  return NULL;
}

mt_status mt_pool_destroy(const mt_comm *comm, mt_pool **pool)
{
  if (*pool == NULL) return MT_OK;
  while ((*pool)->gives && (*pool)->dismissed < comm->size - 1) next_word(*pool);
  for (int s = 0; s < SLOTS; s++) {
    pool_slot *one = &(*pool)->slots[s];
    MT_MPI(MPI_Waitall(one->n, one->requests, MPI_STATUSES_IGNORE));
  }
  free_pool(*pool);
  *pool = NULL;
  return MT_OK;
}
