/* Many parts of a graph may be small: each is solved whole, by LAPACK, in one thread of one
 * rank. */
#include "base/memory.h"
#include "umap/eigen.h"
#include "umap/start.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  int32_t place; /* of the other end in its part */
  float weight;
} mt_entry;

/* The rows of the small parts' vertices, in the order of the vertices; on every rank. */
typedef struct {
  int64_t rows;
  int64_t *row;      /* (n) a vertex' row; -1: it is in no small part */
  int64_t *first;    /* (rows + 1) where each row's entries begin */
  mt_entry *entries; /* of all rows */
} mt_small_rows;

static void rows_destroy(mt_small_rows *all)
{
  free(all->row);
  free(all->first);
  free(all->entries);
}

static mt_status number_rows(const mt_parts *parts, int64_t n, int64_t n_small,
                             const int64_t *small, mt_small_rows *all)
{
  mt_status status = MT_OK;
  char *is_small = NULL;
  MT_NEW(is_small, parts->count);
  MT_NEW(all->row, n);
  for (int64_t s = 0; s < n_small; s++) is_small[small[s]] = 1;
  for (int64_t i = 0; i < n; i++)
    all->row[i] = is_small[parts->labels[i]] ? all->rows++ : -1;
  MT_NEW(all->first, all->rows + 1);
done:
  free(is_small);
  return status;
}

/* This rank's entries; the ends of its rows are counted from 0. */
static mt_status own_entries(const mt_graph *graph, const mt_parts *parts,
                             mt_small_rows *all, int64_t *count_out, mt_entry **out)
{
  mt_status status = MT_OK;
  int64_t at = 0;
  mt_entry *entries = NULL;
  MT_NEW(entries, graph->indptr[graph->local]);
  for (int64_t i = 0; i < graph->local; i++) {
    int64_t row = all->row[graph->first + i];
    if (row < 0) continue;
    for (int64_t e = graph->indptr[i]; e < graph->indptr[i + 1]; e++)
      entries[at++] = (mt_entry){.place = (int32_t)parts->place[graph->indices[e]],
                                 .weight = graph->weights[e]};
    all->first[row + 1] = at;
  }
  *count_out = at;
  *out = entries;
  entries = NULL;
done:
  free(entries);
  return status;
}

/* Every rank's rows to all: ranks hold vertices, hence rows, in order. */
static mt_status gather_rows(const mt_comm *comm, const mt_graph *graph,
                             const mt_parts *parts, mt_small_rows *all)
{
  mt_status status = MT_OK;
  int64_t count = 0, before = 0;
  size_t size = 0, bytes;
  mt_entry *own = NULL;
  void *everyone = NULL;
  MT_TRY(mt_agree(comm, own_entries(graph, parts, all, &count, &own)));
  MT_TRY(mt_exscan_i64(comm, count, &before));
  for (int64_t i = graph->first; i < graph->first + graph->local; i++)
    if (all->row[i] >= 0) all->first[all->row[i] + 1] += before;
  MT_TRY(mt_max_i64(comm, all->rows + 1, all->first)); /* 0 where it is another's */
  bytes = (size_t)count * sizeof *own;
  MT_TRY(mt_allgather_bytes(comm, bytes, own, &size, &everyone));
  all->entries = everyone;
done:
  free(own);
  return status;
}

/* The dense normalised adjacency of a part. a: (count, count), zeros. */
static void fill_matrix(const mt_parts *parts, const mt_small_rows *all, int64_t p,
                        double *a)
{
  const int64_t *members = parts->members + parts->first[p];
  int64_t count = parts->first[p + 1] - parts->first[p];
  for (int64_t i = 0; i < count; i++) {
    int64_t row = all->row[members[i]];
    for (int64_t e = all->first[row]; e < all->first[row + 1]; e++) {
      const mt_entry *entry = all->entries + e;
      a[i * count + entry->place] =
          mt_umap_adjacency(entry->weight, parts->degrees[members[i]],
                            parts->degrees[members[entry->place]]);
    }
  }
}

static mt_status solve_part(const mt_parts *parts, const mt_small_rows *all, int64_t p,
                            int64_t k, double *vectors)
{
  mt_status status = MT_OK;
  int64_t count = parts->first[p + 1] - parts->first[p];
  double *a = NULL, *known = NULL, *values = NULL;
  MT_NEW(a, count * count);
  MT_NEW(known, count);
  MT_NEW(values, k);
  fill_matrix(parts, all, p, a);
  double divisor = mt_umap_part_degree(parts, p);
  for (int64_t i = 0; i < count; i++)
    known[i] = sqrt(parts->degrees[parts->members[parts->first[p] + i]] / divisor);
  MT_TRY(mt_eigen_dense(count, k, -1.0, known, a, values, vectors));
done:
  free(a);
  free(known);
  free(values);
  return status;
}

/* This rank's share of the small parts. first: (n_small + 1) where each one's vectors are. */
static mt_status solve_share(const mt_comm *comm, const mt_parts *parts,
                             const mt_small_rows *all, int64_t n_small,
                             const int64_t *small, const int64_t *first, int64_t k,
                             double *vectors)
{
  mt_status status = MT_OK;
  int threads = openblas_get_num_threads();
  openblas_set_num_threads(1); /* more would change the bits */
#pragma omp parallel for schedule(dynamic) reduction(max : status)
  for (int64_t s = mt_part_first(n_small, comm->size, comm->rank);
       s < mt_part_first(n_small, comm->size, comm->rank + 1); s++) {
    mt_status one = solve_part(parts, all, small[s], k, vectors + first[s] * k);
    if (one == MT_ERR_LIBRARY)
      vectors[first[s] * k] = NAN; /* it is scattered then */
    else if (one > status)
      status = one;
  }
  openblas_set_num_threads(threads);
  return status;
}

mt_status mt_umap_solve_small(const mt_comm *comm, const mt_graph *graph,
                              const mt_parts *parts, int64_t n_small,
                              const int64_t *small, const int64_t *first, int64_t k,
                              double *vectors_out)
{
  mt_status status = MT_OK;
  mt_small_rows all = {0};
  size_t *bytes = NULL;
  MT_TRY(mt_agree(comm,
                  mt_memory_new(comm->size, sizeof *bytes, "sizes", (void **)&bytes)));
  MT_TRY(mt_agree(comm, number_rows(parts, graph->n, n_small, small, &all)));
  MT_TRY(gather_rows(comm, graph, parts, &all));
  MT_TRY(mt_agree(
      comm, solve_share(comm, parts, &all, n_small, small, first, k, vectors_out)));
  for (int r = 0; r < comm->size; r++)
    bytes[r] = (size_t)(first[mt_part_first(n_small, comm->size, r + 1)] -
                        first[mt_part_first(n_small, comm->size, r)]) *
               (size_t)k * sizeof *vectors_out;
  MT_TRY(mt_allgatherv(comm, bytes, vectors_out));
done:
  rows_destroy(&all);
  free(bytes);
  return status;
}
