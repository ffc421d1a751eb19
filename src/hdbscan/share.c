/* A result spread over ranks, and whole again. */
#include "base/memory.h"
#include "hdbscan/hdbscan.h"

#include <stdlib.h>
#include <string.h>

/* Puts `own` of some rows into new memory for `room` rows, the first of them at `at`. */
static mt_status move_rows(size_t size, mt_part own, int64_t room, int64_t at,
                           void **rows)
{
  void *moved = NULL;
  if (own.count == room && own.first == at) return MT_OK;
  mt_status status = mt_memory_new(room, size, "clusters", &moved);
  if (status != MT_OK) return status;
  memcpy((char *)moved + (size_t)at * size, (char *)*rows + (size_t)own.first * size,
         (size_t)own.count * size);
  free(*rows);
  *rows = moved;
  return MT_OK;
}

/* What there is of every point and of every row. */
enum { ARRAYS = 7, OF_POINTS = 3 };
typedef struct spread_array {
  void **data;
  size_t size;
} spread_array;

static void list_arrays(mt_clusters *c, spread_array *arrays)
{
  spread_array all[ARRAYS] = {
      {(void **)&c->labels, sizeof *c->labels},
      {(void **)&c->probabilities, sizeof *c->probabilities},
      {(void **)&c->outlier_scores, sizeof *c->outlier_scores},
      {(void **)&c->tree.parent, sizeof *c->tree.parent},
      {(void **)&c->tree.child, sizeof *c->tree.child},
      {(void **)&c->tree.lambda, sizeof *c->tree.lambda},
      {(void **)&c->tree.child_size, sizeof *c->tree.child_size}};
  memcpy(arrays, all, sizeof all);
}

mt_status mt_clusters_keep_part(int size, int rank, mt_clusters *clusters)
{
  mt_status status = MT_OK;
  spread_array arrays[ARRAYS];
  mt_part points = mt_part_of(clusters->n, size, rank),
          rows = mt_part_of(clusters->tree.n_rows, size, rank);
  list_arrays(clusters, arrays);
  for (int i = 0; i < ARRAYS; i++) {
    mt_part part = i < OF_POINTS ? points : rows;
    MT_TRY(move_rows(arrays[i].size, part, part.count, 0, arrays[i].data));
  }
  clusters->points = points;
  clusters->rows = rows;
done:
  return status;
}

mt_status mt_clusters_gather(const mt_comm *comm, mt_clusters *clusters)
{
  mt_status status = MT_OK;
  spread_array arrays[ARRAYS];
  list_arrays(clusters, arrays);
  for (int i = 0; i < ARRAYS; i++) {
    mt_part part = i < OF_POINTS ? clusters->points : clusters->rows,
            here = {0, part.count};
    int64_t all = i < OF_POINTS ? clusters->n : clusters->tree.n_rows;
    MT_TRY(mt_agree(comm,
                    move_rows(arrays[i].size, here, all, part.first, arrays[i].data)));
    MT_TRY(mt_allgather_rows(comm, all, arrays[i].size, *arrays[i].data));
  }
  clusters->points = (mt_part){0, clusters->n};
  clusters->rows = (mt_part){0, clusters->tree.n_rows};
done:
  return status;
}
