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

/* ---- parts ------------------------------------------------------------------------------ */

double mt_umap_part_degree(const mt_parts *parts, int64_t p)
{
  double sum = 0.0;
  for (int64_t at = parts->first[p]; at < parts->first[p + 1]; at++)
    sum += parts->degrees[parts->members[at]];
  return sum;
}

/* Around the part's place, scaled to its reach. vectors: (count, dims), or with a row for each
 * vertex. */
static void write_part(int64_t dims, const mt_parts *parts, int64_t p, double reach,
                       bool by_vertex, const double *vectors, double *layout)
{
  const int64_t *members = parts->members + parts->first[p];
  const double *place = parts->places + p * dims;
  int64_t count = parts->first[p + 1] - parts->first[p];
  double largest = 0.0;
#pragma omp parallel for schedule(static) reduction(max : largest) if (count > 10000)
  for (int64_t i = 0; i < count; i++)
    for (int64_t c = 0; c < dims; c++)
      largest = fmax(largest, fabs(vectors[(by_vertex ? members[i] : i) * dims + c]));
#pragma omp parallel for schedule(static) if (count > 10000)
  for (int64_t i = 0; i < count; i++)
    for (int64_t c = 0; c < dims; c++)
      layout[members[i] * dims + c] =
          place[c] +
          vectors[(by_vertex ? members[i] : i) * dims + c] * (reach / largest);
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

/* Parts that are iterated on: numbered anew. */
typedef struct {
  mt_eigen_parts parts;
  int64_t *which, *first, *members;
  int32_t *part_of;
  double *known, *values, *vectors, *residuals;
} mt_large;

static void large_destroy(mt_large *large)
{
  free(large->which);
  free(large->first);
  free(large->members);
  free(large->part_of);
  free(large->known);
  free(large->values);
  free(large->vectors);
  free(large->residuals);
}

static bool is_large(int64_t count, int64_t dims)
{
  return has_eigenvectors(count, dims) && !mt_eigen_is_small(count, dims);
}

static mt_status large_create(int64_t n, int64_t dims, const mt_parts *parts,
                              mt_large *large)
{
  mt_status status = MT_OK;
  int64_t count = 0;
  MT_NEW(large->which, parts->count);
  MT_NEW(large->first, parts->count + 1);
  MT_NEW(large->members, n);
  MT_NEW(large->part_of, n);
  MT_NEW(large->known, n);
  for (int64_t p = 0; p < parts->count; p++) {
    int64_t size = parts->first[p + 1] - parts->first[p];
    if (!is_large(size, dims)) continue;
    memcpy(large->members + large->first[count], parts->members + parts->first[p],
           (size_t)size * sizeof *large->members);
    large->which[count] = p;
    large->first[count + 1] = large->first[count] + size;
    count++;
  }
  MT_NEW(large->values, count * dims);
  MT_NEW(large->residuals, count);
  MT_NEW(large->vectors, count > 0 ? n * dims : 0);
  large->parts = (mt_eigen_parts){.count = count,
                                  .first = large->first,
                                  .members = large->members,
                                  .part_of = large->part_of};
done:
  return status;
}

/* Whose vertices are whose, and the first eigenvectors. */
static void know_large(int64_t n, const mt_parts *parts, mt_large *large)
{
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; i++) large->part_of[i] = -1;
#pragma omp parallel for schedule(dynamic) if (large->parts.count > 1)
  for (int64_t p = 0; p < large->parts.count; p++) {
    double divisor = mt_umap_part_degree(parts, large->which[p]);
#pragma omp parallel for schedule(static) if (large->first[p + 1] - large->first[p] > \
                                              10000)
    for (int64_t at = large->first[p]; at < large->first[p + 1]; at++) {
      int64_t i = large->members[at];
      large->part_of[i] = (int32_t)p;
      large->known[i] = sqrt(parts->degrees[i] / divisor);
    }
  }
}

static mt_status lay_out_large(const mt_comm *comm, const mt_umap_options *options,
                               const mt_spectral_graph *graph, const mt_parts *parts,
                               const double *reaches, double *layout)
{
  mt_status status = MT_OK;
  int64_t dims = options->n_components;
  mt_large large = {0};
  MT_TRY(mt_agree(comm, large_create(graph->n, dims, parts, &large)));
  if (large.parts.count == 0) goto done;
  know_large(graph->n, parts, &large);
  MT_TRY(graph->solve(comm, graph, &large.parts, parts->degrees, large.known, dims,
                      accuracy, (uint32_t)options->random_state, large.values,
                      large.vectors, large.residuals));
  for (int64_t at = 0; at < large.parts.count; at++) {
    int64_t p = large.which[at];
    if (large.residuals[at] > accuracy && comm->rank == 0)
      mt_warn("spectral start: the eigenvectors of %lld points are accurate to %.1e "
              "only; the layout starts from them as they are",
              (long long)(parts->first[p + 1] - parts->first[p]), large.residuals[at]);
  }
#pragma omp parallel for schedule(dynamic) if (large.parts.count > 1)
  for (int64_t at = 0; at < large.parts.count; at++)
    write_part(dims, parts, large.which[at], reaches[large.which[at]], true,
               large.vectors, layout);
done:
  large_destroy(&large);
  return status;
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
      if (comm->rank == 0)
        mt_warn("spectral start failed for %lld points: they start at random",
                (long long)(first[s + 1] - first[s]));
      scatter_part(options, parts, small[s], reaches[small[s]], layout);
    } else {
      write_part(dims, parts, small[s], reaches[small[s]], false, own, layout);
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
  mt_start_cost cost = {0};
  double *reaches = NULL, at = mt_seconds();

  MT_TRY(mt_agree(comm, parts_create(graph->n, &parts)));
  MT_TRY(graph->components(comm, graph, parts.labels, &parts.count));
  MT_TRY(mt_agree(comm, sort_members(graph->n, options->n_components, &parts)));
  MT_TRY(graph->degrees(comm, graph, parts.degrees));
  cost.parts = mt_umap_lap(&at);
  MT_TRY(mt_umap_place_parts(comm, options, metric, rows, parts.count, parts.labels,
                             parts.places));
  MT_TRY(mt_agree(
      comm, mt_memory_new(parts.count, sizeof *reaches, "reaches", (void **)&reaches)));
#pragma omp parallel for schedule(static)
  for (int64_t p = 0; p < parts.count; p++)
    reaches[p] = reach_of(&parts, options->n_components, p);
  cost.places = mt_umap_lap(&at);
  for (int64_t p = 0; p < parts.count; p++)
    if (!has_eigenvectors(parts.first[p + 1] - parts.first[p], options->n_components))
      scatter_part(options, &parts, p, reaches[p], layout_out);
  MT_TRY(lay_out_large(comm, options, graph, &parts, reaches, layout_out));
  cost.large = mt_umap_lap(&at);
  MT_TRY(lay_out_small(comm, options, graph, &parts, reaches, layout_out));
  cost.small = mt_umap_lap(&at);
  if (graph->cost != NULL) *graph->cost = cost;
done:
  parts_destroy(&parts);
  free(reaches);
  return status;
}
