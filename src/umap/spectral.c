#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/search.h"
#include "umap/eigen.h"
#include "umap/start.h"
#include "umap/umap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double accuracy = 1e-6; /* of the eigenvectors: their residual */

/* The normalised adjacency of one part, this rank's rows. */
typedef struct {
  int64_t own;
  int64_t *indptr, *columns;
  double *values;
} mt_part_matrix;

static void parts_destroy(mt_parts *parts)
{
  free(parts->labels);
  free(parts->first);
  free(parts->members);
  free(parts->place);
  free(parts->degrees);
  free(parts->places);
}

static mt_status parts_create(int64_t n, mt_parts *parts)
{
  mt_status status = MT_OK;
  MT_NEW(parts->labels, n);
  MT_NEW(parts->members, n);
  MT_NEW(parts->place, n);
  MT_NEW(parts->degrees, n);
done:
  return status;
}

static mt_status sort_members(int64_t n, int64_t dims, mt_parts *parts)
{
  mt_status status = MT_OK;
  MT_NEW(parts->first, parts->count + 1);
  MT_NEW(parts->places, parts->count * dims);
  for (int64_t i = 0; i < n; i++)
    parts->place[i] = parts->first[parts->labels[i] + 1]++;
  for (int64_t p = 0; p < parts->count; p++) parts->first[p + 1] += parts->first[p];
  for (int64_t i = 0; i < n; i++)
    parts->members[parts->first[parts->labels[i]] + parts->place[i]] = i;
done:
  return status;
}

/* ---- a graph in host memory ------------------------------------------------------------- */

static mt_status host_components(const mt_comm *comm, const mt_spectral_graph *source,
                                 int64_t *labels_out, int64_t *count_out)
{
  return mt_graph_components(comm, source->context, labels_out, count_out);
}

static mt_status host_rows(const mt_comm *comm, const mt_spectral_graph *source,
                           const mt_graph **out)
{
  (void)comm;
  *out = source->context;
  return MT_OK;
}

static mt_status host_degrees(const mt_comm *comm, const mt_spectral_graph *source,
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

static mt_status apply_part(const mt_comm *comm, const mt_operator *op, int64_t m,
                            const double *x, double *y)
{
  const mt_part_matrix *a = op->context;
  (void)comm;
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t i = 0; i < a->own; i++) {
    double *out = y + i * m;
    memset(out, 0, (size_t)m * sizeof *out);
    for (int64_t e = a->indptr[i]; e < a->indptr[i + 1]; e++) {
      const double *from = x + a->columns[e] * m, value = a->values[e];
      for (int64_t c = 0; c < m; c++) out[c] += value * from[c];
    }
  }
  return MT_OK;
}

static void part_matrix_destroy(mt_part_matrix *a)
{
  free(a->indptr);
  free(a->columns);
  free(a->values);
}

/* own: this rank's members of the part. */
static mt_status part_matrix_create(const mt_graph *graph, const mt_parts *parts,
                                    const int64_t *own, mt_part_matrix *a)
{
  mt_status status = MT_OK;
  int64_t edges = 0, at = 0;
  for (int64_t i = 0; i < a->own; i++) {
    int64_t row = own[i] - graph->first;
    edges += graph->indptr[row + 1] - graph->indptr[row];
  }
  MT_NEW(a->indptr, a->own + 1);
  MT_NEW(a->columns, edges);
  MT_NEW(a->values, edges);
  for (int64_t i = 0; i < a->own; i++) {
    int64_t row = own[i] - graph->first;
    for (int64_t e = graph->indptr[row]; e < graph->indptr[row + 1]; e++, at++) {
      int64_t other = graph->indices[e];
      a->columns[at] = parts->place[other];
      a->values[at] = mt_umap_adjacency(graph->weights[e], parts->degrees[own[i]],
                                        parts->degrees[other]);
    }
    a->indptr[i + 1] = at;
  }
done:
  return status;
}

static mt_status host_solve(const mt_comm *comm, const mt_spectral_graph *source,
                            const mt_parts *parts, const mt_part *part, int64_t k,
                            double tolerance, uint32_t seed, double *vectors_out,
                            double *residual_out)
{
  mt_status status = MT_OK;
  mt_part_matrix matrix = {.own =
                               part->firsts[comm->rank + 1] - part->firsts[comm->rank]};
  mt_operator op = {.n = part->count,
                    .firsts = part->firsts,
                    .low = -1.0,
                    .high = 1.0,
                    .known = part->known,
                    .context = &matrix,
                    .apply = apply_part};
  double *values = NULL;

  MT_TRY(mt_agree(comm, mt_memory_new(k, sizeof *values, "values", (void **)&values)));
  MT_TRY(mt_agree(comm, part_matrix_create(source->context, parts,
                                           part->members + part->firsts[comm->rank],
                                           &matrix)));
  MT_TRY(mt_eigen_largest(comm, &op, k, tolerance, seed, values, vectors_out,
                          residual_out));
done:
  part_matrix_destroy(&matrix);
  free(values);
  return status;
}

mt_spectral_graph mt_spectral_graph_on_host(const mt_graph *graph)
{
  return (mt_spectral_graph){.n = graph->n,
                             .context = (void *)graph,
                             .components = host_components,
                             .degrees = host_degrees,
                             .rows = host_rows,
                             .solve = host_solve};
}

/* ---- one part ----------------------------------------------------------------------- */

void mt_umap_first_vector(int64_t count, const int64_t *members, const double *degrees,
                          double *known)
{
  double sum = 0.0;
  for (int64_t i = 0; i < count; i++) sum += degrees[members[i]];
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; i++) known[i] = sqrt(degrees[members[i]] / sum);
}

static void part_destroy(mt_part *part)
{
  free(part->firsts);
  free(part->known);
}

static mt_status part_create(const mt_comm *comm, int64_t n, const mt_parts *parts,
                             int64_t p, mt_part *part)
{
  mt_status status = MT_OK;
  part->members = parts->members + parts->first[p];
  part->count = parts->first[p + 1] - parts->first[p];
  MT_NEW(part->firsts, comm->size + 1);
  MT_NEW(part->known, part->count);
  for (int r = 0; r <= comm->size; r++)
    part->firsts[r] =
        mt_lower_bound(part->count, part->members, mt_part_first(n, comm->size, r));
  mt_umap_first_vector(part->count, part->members, parts->degrees, part->known);
done:
  return status;
}

/* Around the part's place, scaled to its reach. vectors: (count, dims). */
static void write_part(int64_t dims, const mt_parts *parts, int64_t p, double reach,
                       const double *vectors, double *layout)
{
  const int64_t *members = parts->members + parts->first[p];
  const double *place = parts->places + p * dims;
  int64_t count = parts->first[p + 1] - parts->first[p];
  double largest = 0.0;
#pragma omp parallel for schedule(static) reduction(max : largest) if (count > 10000)
  for (int64_t at = 0; at < count * dims; at++)
    largest = fmax(largest, fabs(vectors[at]));
#pragma omp parallel for schedule(static) if (count > 10000)
  for (int64_t i = 0; i < count; i++)
    for (int64_t c = 0; c < dims; c++)
      layout[members[i] * dims + c] =
          place[c] + vectors[i * dims + c] * (reach / largest);
}

/* Scatters a part's points around its place: when it is too small for eigenvectors. */
static void scatter_part(const mt_umap_options *options, const mt_parts *parts,
                         int64_t p, double reach, double *layout)
{
  int64_t dims = options->n_components;
  for (int64_t at = parts->first[p]; at < parts->first[p + 1]; at++)
    for (int64_t c = 0; c < dims; c++) {
      int64_t i = parts->members[at];
      layout[i * dims + c] = parts->places[p * dims + c] +
                             mt_umap_scatter(options, i, c, MT_SCATTER_PART, reach);
    }
}

static mt_status spread_part(const mt_comm *comm, const mt_umap_options *options,
                             const mt_spectral_graph *graph, const mt_parts *parts,
                             int64_t p, double reach, double *layout)
{
  mt_status status = MT_OK;
  int64_t dims = options->n_components;
  double residual = 0.0, *vectors = NULL;
  mt_part part = {0};

  MT_TRY(mt_agree(comm, part_create(comm, graph->n, parts, p, &part)));
  MT_TRY(mt_agree(comm, mt_memory_new(part.count * dims, sizeof *vectors,
                                      "eigenvectors", (void **)&vectors)));
  MT_TRY(graph->solve(comm, graph, parts, &part, dims, accuracy,
                      (uint32_t)options->random_state, vectors, &residual));
  if (residual > accuracy && comm->rank == 0)
    mt_warn("spectral start: the eigenvectors of %lld points are accurate to %.1e "
            "only; the layout starts from them as they are",
            (long long)part.count, residual);
  write_part(dims, parts, p, reach, vectors, layout);
done:
  part_destroy(&part);
  free(vectors);
  return status;
}

/* How far a part may spread: half way to the next place; on average if they are random ones
 * in a box of side 2. */
static double reach_of(const mt_parts *parts, int64_t dims, int64_t p)
{
  double nearest = INFINITY;
  if (parts->count > MT_UMAP_MOST_PARTS)
    return pow((double)parts->count, -1.0 / (double)dims);
  for (int64_t q = 0; q < parts->count; q++) {
    double sum = 0.0;
    for (int64_t c = 0; c < dims; c++) {
      double off = parts->places[p * dims + c] - parts->places[q * dims + c];
      sum += off * off;
    }
    if (sum > 0.0 && sum < nearest) nearest = sum;
  }
  return isfinite(nearest) ? 0.5 * sqrt(nearest) : 1.0; /* alone, or all on one place */
}

static bool has_eigenvectors(int64_t count, int64_t dims)
{
  return count >= 2 * dims && count > dims + 1;
}

static void warn_failed(const mt_comm *comm, long long points)
{
  if (comm->rank == 0)
    mt_warn("spectral start failed for %lld points: they start at random", points);
}

static mt_status lay_out_part(const mt_comm *comm, const mt_umap_options *options,
                              const mt_spectral_graph *graph, const mt_parts *parts,
                              int64_t p, double reach, double *layout)
{
  int64_t dims = options->n_components, count = parts->first[p + 1] - parts->first[p];
  mt_status status = MT_OK;
  if (has_eigenvectors(count, dims)) {
    if (mt_eigen_is_small(count, dims)) return MT_OK; /* with all others of them */
    status = spread_part(comm, options, graph, parts, p, reach, layout);
    if (status != MT_ERR_LIBRARY) return status;
    warn_failed(comm, (long long)count);
  }
  scatter_part(options, parts, p, reach, layout);
  return MT_OK;
}

/* Which parts are solved whole, and where the vectors of each begin. Returns how many. */
static int64_t choose_small(const mt_parts *parts, int64_t dims, int64_t *small,
                            int64_t *first)
{
  int64_t n_small = 0;
  for (int64_t p = 0; p < parts->count; p++) {
    int64_t count = parts->first[p + 1] - parts->first[p];
    if (!has_eigenvectors(count, dims) || !mt_eigen_is_small(count, dims)) continue;
    first[n_small + 1] = first[n_small] + count;
    small[n_small++] = p;
  }
  return n_small;
}

static mt_status lay_out_small(const mt_comm *comm, const mt_umap_options *options,
                               const mt_spectral_graph *graph, const mt_parts *parts,
                               const double *reaches, double *layout)
{
  mt_status status = MT_OK;
  int64_t dims = options->n_components, *small = NULL, *first = NULL;
  double *vectors = NULL;
  const mt_graph *rows = NULL;
  MT_TRY(mt_agree(comm, mt_memory_new(parts->count, sizeof *small, "small parts",
                                      (void **)&small)));
  MT_TRY(mt_agree(comm, mt_memory_new(parts->count + 1, sizeof *first, "small parts",
                                      (void **)&first)));
  int64_t n_small = choose_small(parts, dims, small, first);
  if (n_small == 0) goto done;
  MT_TRY(mt_agree(comm, mt_memory_new(first[n_small] * dims, sizeof *vectors,
                                      "eigenvectors", (void **)&vectors)));
  MT_TRY(graph->rows(comm, graph, &rows));
  MT_TRY(mt_umap_solve_small(comm, rows, parts, n_small, small, first, dims, vectors));
  for (int64_t s = 0; s < n_small; s++) {
    const double *own = vectors + first[s] * dims;
    if (isnan(own[0])) {
      warn_failed(comm, (long long)(first[s + 1] - first[s]));
      scatter_part(options, parts, small[s], reaches[small[s]], layout);
    } else {
      write_part(dims, parts, small[s], reaches[small[s]], own, layout);
    }
  }
done:
  free(small);
  free(first);
  free(vectors);
  return status;
}

mt_status mt_umap_spectral(const mt_comm *comm, const mt_umap_options *options,
                           mt_metric metric, const mt_spectral_graph *graph,
                           const mt_rows *rows, double *layout_out)
{
  mt_status status = MT_OK;
  mt_parts parts = {0};
  double *reaches = NULL;

  MT_TRY(mt_agree(comm, parts_create(graph->n, &parts)));
  MT_TRY(graph->components(comm, graph, parts.labels, &parts.count));
  MT_TRY(mt_agree(comm, sort_members(graph->n, options->n_components, &parts)));
  MT_TRY(graph->degrees(comm, graph, parts.degrees));
  MT_TRY(mt_umap_place_parts(comm, options, metric, rows, parts.count, parts.labels,
                             parts.places));
  MT_TRY(mt_agree(
      comm, mt_memory_new(parts.count, sizeof *reaches, "reaches", (void **)&reaches)));
#pragma omp parallel for schedule(static)
  for (int64_t p = 0; p < parts.count; p++)
    reaches[p] = reach_of(&parts, options->n_components, p);
  for (int64_t p = 0; p < parts.count; p++)
    MT_TRY(lay_out_part(comm, options, graph, &parts, p, reaches[p], layout_out));
  MT_TRY(lay_out_small(comm, options, graph, &parts, reaches, layout_out));
done:
  parts_destroy(&parts);
  free(reaches);
  return status;
}
