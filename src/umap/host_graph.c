/* A graph in host memory, as the spectral start asks for it. Its products with vectors take
 * the time: rows stand in an order in which neighbours are near, so that the vectors' rows
 * that one reads are in the caches; their numbers alone change, no sum. */
#include "base/memory.h"
#include "base/vectors.h"
#include "umap/start.h"
#include "umap/umap.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 512 }; /* that a thread takes at a time */

/* The normalised adjacency of the parts: this rank's rows, from the first on, where they
 * stand. */
typedef struct {
  const mt_graph *graph;
  int64_t *place;    /* (n) where each vertex stands, among those of its rank */
  int64_t *vertex;   /* (local) which vertex stands where */
  int64_t *indptr;   /* (local + 1) */
  uint32_t *columns; /* places: the matrix goes through the caches in each product */
  double *values;
  int64_t *members; /* the parts' members and what is known of rows, by place */
  int32_t *part_of;
  double *known;
  mt_eigen_parts parts;
} mt_adjacency;

static mt_status find_components(const mt_comm *comm, const mt_spectral_graph *source,
                                 int64_t *labels_out, int64_t *count_out)
{
  return mt_graph_components(comm, source->context, labels_out, count_out);
}

static mt_status give_rows(const mt_comm *comm, const mt_spectral_graph *source,
                           const mt_graph **out)
{
  (void)comm;
  *out = source->context;
  return MT_OK;
}

static mt_status add_degrees(const mt_comm *comm, const mt_spectral_graph *source,
                             double *degrees_out)
{
  const mt_graph *graph = source->context;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < graph->local; i++) {
    double sum = 0.0;
    for (int64_t e = graph->indptr[i]; e < graph->indptr[i + 1]; e++)
      sum += graph->weights[e];
    degrees_out[graph->first + i] = sum;
  }
  return mt_allgather_rows(comm, graph->n, sizeof *degrees_out, degrees_out);
}

/* ---- rows by place ---------------------------------------------------------------------- */

static void adjacency_destroy(mt_adjacency *a)
{
  free(a->place);
  free(a->vertex);
  free(a->indptr);
  free(a->columns);
  free(a->values);
  free(a->members);
  free(a->part_of);
  free(a->known);
}

static mt_status adjacency_create(const mt_graph *graph, const mt_eigen_parts *parts,
                                  mt_adjacency *a)
{
  mt_status status = MT_OK;
  int64_t edges = graph->indptr[graph->local];
  a->graph = graph;
  MT_REQUIRE(graph->n <= UINT32_MAX, MT_ERR_INPUT,
             "%lld points are too many for a spectral start: allowed are %lld; "
             "umap.init=pca takes more",
             (long long)graph->n, (long long)UINT32_MAX);
  MT_NEW(a->place, graph->n);
  MT_NEW(a->vertex, graph->local);
  MT_NEW(a->indptr, graph->local + 1);
  MT_NEW(a->columns, edges);
  MT_NEW(a->values, edges);
  MT_NEW(a->members, parts->first[parts->count]);
  MT_NEW(a->part_of, graph->n);
  MT_NEW(a->known, graph->n);
  a->parts = *parts;
  a->parts.members = a->members;
  a->parts.part_of = a->part_of;
done:
  return status;
}

/* This rank's vertices by steps from the first one, then from the next one that is left. */
static void order_vertices(mt_adjacency *a)
{
  const mt_graph *graph = a->graph;
  int64_t found = 0, *place = a->place + graph->first;
  for (int64_t i = 0; i < graph->local; i++) place[i] = -1;
  for (int64_t i = 0; i < graph->local; i++) {
    if (place[i] < 0) {
      place[i] = graph->first + found;
      a->vertex[found++] = i;
    }
    const int64_t v = a->vertex[i]; /* there are more than i */
    for (int64_t e = graph->indptr[v]; e < graph->indptr[v + 1]; e++) {
      int64_t j = graph->indices[e] - graph->first;
      if (j < 0 || j >= graph->local || place[j] >= 0) continue;
      place[j] = graph->first + found;
      a->vertex[found++] = j;
    }
  }
}

/* Once the places of all ranks' vertices are known. */
static void fill(const mt_eigen_parts *parts, const double *degrees,
                 const double *known, mt_adjacency *a)
{
  const mt_graph *graph = a->graph;
  for (int64_t i = 0; i < graph->local; i++) {
    int64_t v = a->vertex[i];
    a->indptr[i + 1] = a->indptr[i] + graph->indptr[v + 1] - graph->indptr[v];
  }
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < graph->local; i++) {
    int64_t v = a->vertex[i], from = graph->indptr[v] - a->indptr[i];
    for (int64_t e = a->indptr[i]; e < a->indptr[i + 1]; e++) {
      int64_t j = graph->indices[from + e];
      a->columns[e] = (uint32_t)a->place[j];
      a->values[e] = mt_umap_adjacency(graph->weights[from + e],
                                       degrees[graph->first + v], degrees[j]);
    }
  }
#pragma omp parallel for schedule(static)
  for (int64_t v = 0; v < graph->n; v++) {
    a->part_of[a->place[v]] = parts->part_of[v];
    a->known[a->place[v]] = known[v];
  }
#pragma omp parallel for schedule(static)
  for (int64_t at = 0; at < parts->first[parts->count]; at++)
    a->members[at] = a->place[parts->members[at]];
}

/* ---- products --------------------------------------------------------------------------- */

typedef double four __attribute__((vector_size(32), may_alias));

/* A step of rows [first, last) of this rank: four columns at a time, each sum in the order of
 * the row's edges. x, y: (n, m). */
MT_FOR_VECTORS
static void step_rows(const mt_adjacency *a, int64_t m, int64_t first, int64_t last,
                      const mt_eigen_step *steps, const double *x, double *y)
{
  for (int64_t i = first; i < last; i++) {
    int64_t row = a->graph->first + i;
    int32_t p = a->part_of[row];
    if (p < 0 || steps[p].scale == 0.0) continue;
    for (int64_t c = 0; c < m; c += 4) {
      four sum = {0.0};
      for (int64_t e = a->indptr[i]; e < a->indptr[i + 1]; e++)
        sum += a->values[e] * *(const four *)(x + (int64_t)a->columns[e] * m + c);
      for (int64_t k = 0; k < 4; k++)
        y[row * m + c + k] =
            mt_eigen_combine(&steps[p], sum[k], x[row * m + c + k], y[row * m + c + k]);
    }
  }
}

/* mt_vectors' steps. */
static mt_status run_steps(const mt_comm *comm, const mt_operator *op, int64_t m,
                           int64_t n_steps, const mt_eigen_step *steps, double *x,
                           double *work, double *y)
{
  mt_status status = MT_OK;
  const mt_adjacency *a = op->context;
  int64_t local = a->graph->local;
  (void)work;
  for (int64_t s = 0; s < n_steps; s++, steps += op->parts->count) {
    const double *from = s % 2 == 0 ? x : y;
    double *to = s % 2 == 0 ? y : x;
#pragma omp parallel for schedule(dynamic) if (local > 2 * ROWS)
    for (int64_t i = 0; i < local; i += ROWS)
      step_rows(a, m, i, i + ROWS < local ? i + ROWS : local, steps, from, to);
    MT_TRY(mt_allgather_rows(comm, op->n, (size_t)m * sizeof *to, to));
  }
done:
  return status;
}

static mt_status solve(const mt_comm *comm, const mt_spectral_graph *source,
                       const mt_eigen_parts *parts, const double *degrees,
                       const double *known, int64_t k, double tolerance, uint32_t seed,
                       double *values_out, double *vectors_out, double *residuals_out)
{
  mt_status status = MT_OK;
  mt_adjacency a = {0};
  mt_vectors vectors = mt_eigen_on_host;
  double *by_place = NULL;
  MT_TRY(mt_agree(comm, adjacency_create(source->context, parts, &a)));
  MT_TRY(mt_agree(comm, mt_memory_new(source->n * k, sizeof *by_place, "eigenvectors",
                                      (void **)&by_place)));
  order_vertices(&a);
  MT_TRY(mt_allgather_rows(comm, source->n, sizeof *a.place, a.place));
  fill(parts, degrees, known, &a);
  vectors.steps = run_steps;
  mt_operator op = {.n = source->n,
                    .low = -1.0,
                    .high = 1.0,
                    .known = a.known,
                    .context = &a,
                    .parts = &a.parts,
                    .vectors = &vectors};
  MT_TRY(mt_eigen_largest(comm, &op, k, tolerance, seed, values_out, by_place,
                          residuals_out));
#pragma omp parallel for schedule(static)
  for (int64_t v = 0; v < source->n; v++)
    memcpy(vectors_out + v * k, by_place + a.place[v] * k,
           (size_t)k * sizeof *by_place);
done:
  adjacency_destroy(&a);
  free(by_place);
  return status;
}

mt_spectral_graph mt_spectral_graph_on_host(const mt_graph *graph)
{
  return (mt_spectral_graph){.n = graph->n,
                             .context = (void *)graph,
                             .components = find_components,
                             .degrees = add_degrees,
                             .rows = give_rows,
                             .solve = solve};
}
