/* Where the parts of a disconnected graph go: as umap-learn's component_layout. */
#include "base/log.h"
#include "base/memory.h"
#include "umap/eigen.h"
#include "umap/start.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t block_bytes = (int64_t)16 << 20; /* of rows in memory at a time */

/* The parts' centroids and their affinities; rows are spread as mt_part_first(count). */
typedef struct {
  int64_t count, d, first, own;
  int64_t *firsts;  /* (size + 1) */
  float *centroids; /* (own, d), mapped so that the metric is a squared difference */
  float *visitor;   /* (d) the centroid that goes round */
  double *affinity; /* (own, count) */
  double *degrees;  /* (count) */
  double *known;    /* (count) */
} mt_map_of_parts;

static void map_destroy(mt_map_of_parts *map)
{
  free(map->firsts);
  free(map->centroids);
  free(map->visitor);
  free(map->affinity);
  free(map->degrees);
  free(map->known);
}

static mt_status map_create(const mt_comm *comm, mt_map_of_parts *map)
{
  mt_status status = MT_OK;
  MT_NEW(map->firsts, comm->size + 1);
  MT_NEW(map->centroids, map->own * map->d);
  MT_NEW(map->visitor, map->d);
  MT_NEW(map->affinity, map->own * map->count);
  MT_NEW(map->degrees, map->count);
  MT_NEW(map->known, map->count);
  for (int r = 0; r <= comm->size; r++)
    map->firsts[r] = mt_part_first(map->count, comm->size, r);
done:
  return status;
}

/* Maps a mean row to where the metric is a function of the squared difference. */
static void map_centroid(mt_metric metric, int64_t d, double members,
                         const double *sums, float *out)
{
  double squares = 0.0;
  for (int64_t t = 0; t < d; t++) squares += sums[t] * sums[t];
  double length = squares > 0.0 ? sqrt(squares) : 1.0;
  for (int64_t t = 0; t < d; t++) {
    double mean = sums[t] / members;
    if (metric == MT_METRIC_COSINE)
      out[t] = (float)(sums[t] / length);
    else if (metric == MT_METRIC_HELLINGER)
      out[t] = (float)sqrt(fmax(mean, 0.0));
    else
      out[t] = (float)mean;
  }
}

static double distance_of(mt_metric metric, double squared)
{
  if (metric == MT_METRIC_COSINE) return 0.5 * squared;
  return sqrt(metric == MT_METRIC_HELLINGER ? 0.5 * squared : squared);
}

/* Adds rows [first, first + count) to the sums of this rank's parts, those of a part in order. */
static void add_rows(const mt_map_of_parts *map, const int64_t *labels, int64_t first,
                     int64_t count, const float *rows, double *sums)
{
  enum { COLUMNS = 512 }; /* of a thread */
#pragma omp parallel for schedule(static)
  for (int64_t begin = 0; begin < map->d; begin += COLUMNS) {
    int64_t end = begin + COLUMNS < map->d ? begin + COLUMNS : map->d;
    for (int64_t i = 0; i < count; i++) {
      int64_t p = labels[first + i] - map->first;
      if (p < 0 || p >= map->own) continue;
      for (int64_t t = begin; t < end; t++)
        sums[p * map->d + t] += rows[i * map->d + t];
    }
  }
}

/* This rank's centroids: it reads all rows, block by block. */
static mt_status average_parts(mt_metric metric, const mt_rows *rows,
                               const int64_t *labels, mt_map_of_parts *map)
{
  mt_status status = MT_OK;
  int64_t block = block_bytes / (map->d * (int64_t)sizeof(float)) + 1, count;
  double *sums = NULL, *members = NULL;
  float *buffer = NULL;

  MT_NEW(sums, map->own * map->d);
  MT_NEW(members, map->count);
  MT_NEW(buffer, (block < rows->n ? block : rows->n) * map->d);
  for (int64_t i = 0; i < rows->n; i++) members[labels[i]]++;
  for (int64_t at = 0; at < rows->n && map->own > 0; at += count) {
    count = rows->n - at < block ? rows->n - at : block;
    MT_TRY(rows->read(rows, at, count, buffer));
    add_rows(map, labels, at, count, buffer, sums);
  }
  for (int64_t p = 0; p < map->own; p++)
    map_centroid(metric, map->d, members[map->first + p], sums + p * map->d,
                 map->centroids + p * map->d);
done:
  free(sums);
  free(members);
  free(buffer);
  return status;
}

/* Every centroid goes round; each rank takes its distance to its own. */
static mt_status measure_distances(const mt_comm *comm, mt_metric metric,
                                   mt_map_of_parts *map)
{
  mt_status status = MT_OK;
  size_t bytes = (size_t)map->d * sizeof(float);
  for (int64_t q = 0; q < map->count; q++) {
    int owner = mt_part_owner(map->count, comm->size, q);
    if (owner == comm->rank)
      memcpy(map->visitor, map->centroids + (q - map->first) * map->d, bytes);
    MT_TRY(mt_bcast(comm, owner, bytes, map->visitor));
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < map->own; p++) {
      const float *centroid = map->centroids + p * map->d;
      double sum = 0.0;
      for (int64_t t = 0; t < map->d; t++) {
        double off = (double)centroid[t] - map->visitor[t];
        sum += off * off;
      }
      map->affinity[p * map->count + q] = distance_of(metric, sum);
    }
  }
done:
  return status;
}

/* Sums of this rank's rows, then of all. */
static mt_status sum_rows(const mt_comm *comm, mt_map_of_parts *map)
{
  for (int64_t p = 0; p < map->own; p++) {
    double sum = 0.0;
    for (int64_t q = 0; q < map->count; q++) sum += map->affinity[p * map->count + q];
    map->degrees[map->first + p] = sum;
  }
  return mt_allgather_rows(comm, map->count, sizeof *map->degrees, map->degrees);
}

/* Distances to exp(-(d / scale)^2), normalised by the degrees. umap-learn's scale is 1: with
 * distances far above it, all affinities vanish and the parts fall on one place; hence at
 * least their mean. */
static mt_status relate(const mt_comm *comm, mt_map_of_parts *map)
{
  mt_status status = MT_OK;
  double mean = 0.0, total = 0.0;
  MT_TRY(sum_rows(comm, map));
  for (int64_t p = 0; p < map->count; p++) mean += map->degrees[p];
  mean /= (double)map->count * (double)(map->count - 1);
  double scale = fmax(1.0, mean);
  for (int64_t at = 0; at < map->own * map->count; at++) {
    double off = map->affinity[at] / scale;
    bool self = map->first + at / map->count == at % map->count;
    map->affinity[at] = self ? 0.0 : exp(-off * off);
  }
  MT_TRY(sum_rows(comm, map));
  for (int64_t p = 0; p < map->count; p++) total += map->degrees[p];
  for (int64_t p = 0; p < map->count; p++) {
    map->known[p] = sqrt(map->degrees[p] / total);
    if (!(map->degrees[p] > 0.0)) map->degrees[p] = 1.0;
  }
  for (int64_t at = 0; at < map->own * map->count; at++)
    map->affinity[at] /= sqrt(map->degrees[map->first + at / map->count] *
                              map->degrees[at % map->count]);
done:
  return status;
}

static mt_status apply_affinity(const mt_comm *comm, const mt_operator *op, int64_t m,
                                const mt_eigen_step *step, const double *x, double *y)
{
  const mt_map_of_parts *map = op->context;
  (void)comm;
  (void)step;
#pragma omp parallel for schedule(static)
  for (int64_t p = 0; p < map->own; p++) {
    double *out = y + p * m;
    memset(out, 0, (size_t)m * sizeof *out);
    for (int64_t q = 0; q < map->count; q++) {
      double value = map->affinity[p * map->count + q];
      for (int64_t c = 0; c < m; c++) out[c] += value * x[q * m + c];
    }
  }
  return MT_OK;
}

/* Eigenvectors over the root of the degree, the largest coordinate 1. */
static mt_status embed(const mt_comm *comm, const mt_umap_options *options,
                       mt_map_of_parts *map, double *places)
{
  mt_status status = MT_OK;
  int64_t dims = options->n_components;
  double *values = NULL, residual, largest = 0.0;
  mt_operator op = {.n = map->count,
                    .firsts = map->firsts,
                    .low = -1.0,
                    .high = 1.0,
                    .known = map->known,
                    .context = map,
                    .apply = apply_affinity};
  MT_TRY(
      mt_agree(comm, mt_memory_new(dims, sizeof *values, "values", (void **)&values)));
  MT_TRY(mt_eigen_largest(comm, &op, dims, 1e-6, (uint32_t)options->random_state,
                          values, places, &residual));
  for (int64_t at = 0; at < map->count * dims; at++) {
    places[at] /= sqrt(map->degrees[at / dims]);
    largest = fmax(largest, places[at]);
  }
  for (int64_t at = 0; at < map->count * dims; at++) places[at] /= largest;
done:
  free(values);
  return status;
}

/* Few parts: the ends of the axes. */
static void place_on_axes(int64_t count, int64_t dims, double *places)
{
  int64_t half = (count + 1) / 2;
  memset(places, 0, (size_t)(count * dims) * sizeof *places);
  if (count == 1) return; /* alone, in the middle */
  for (int64_t p = 0; p < count; p++)
    places[p * dims + p % half] = p < half ? 1.0 : -1.0;
}

static void place_anywhere(const mt_umap_options *options, int64_t count,
                           double *places)
{
  int64_t dims = options->n_components;
  for (int64_t p = 0; p < count; p++)
    for (int64_t c = 0; c < dims; c++)
      places[p * dims + c] = mt_umap_scatter(options, p, c, MT_SCATTER_PLACE, 1.0);
}

mt_status mt_umap_place_parts(const mt_comm *comm, const mt_umap_options *options,
                              mt_metric metric, const mt_rows *rows, int64_t count,
                              const int64_t *labels, double *places_out)
{
  mt_status status = MT_OK;
  mt_map_of_parts map = {.count = count,
                         .d = rows->d,
                         .first = mt_part_first(count, comm->size, comm->rank),
                         .own = mt_part_count(count, comm->size, comm->rank)};
  if (count <= 2 * options->n_components) {
    place_on_axes(count, options->n_components, places_out);
    return MT_OK;
  }
  if (count > MT_UMAP_MOST_PARTS) {
    if (comm->rank == 0)
      mt_warn("the graph falls into %lld parts: they start at random places (raise "
              "knn.n_neighbors or umap.set_op_mix_ratio to join them)",
              (long long)count);
    place_anywhere(options, count, places_out);
    return MT_OK;
  }
  MT_TRY(mt_agree(comm, map_create(comm, &map)));
  MT_TRY(mt_agree(comm, average_parts(metric, rows, labels, &map)));
  MT_TRY(measure_distances(comm, metric, &map));
  MT_TRY(relate(comm, &map));
  MT_TRY(embed(comm, options, &map, places_out));
done:
  map_destroy(&map);
  return status;
}
