/* Principal components from the products of the centred rows, read block by block. Sums over
 * rows cross the ranks: they are made of integers, in units so small that only their number
 * limits them, and so come out the same in any order. */
#include "base/log.h"
#include "base/memory.h"
#include "umap/eigen.h"
#include "umap/start.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t block_bytes = (int64_t)16 << 20; /* of rows in memory at a time */

typedef struct {
  const mt_rows *rows;
  int64_t first, own; /* this rank's rows */
  int64_t block;      /* rows of a block */
  float *buffer;      /* (block, d) */
  double *mean;       /* (d) */
  double largest;     /* bound of |row - mean| */
  int64_t *firsts;    /* (size + 1) */
} mt_pca;

static void pca_destroy(mt_pca *pca)
{
  free(pca->buffer);
  free(pca->mean);
  free(pca->firsts);
}

static mt_status pca_create(const mt_comm *comm, const mt_rows *rows, mt_pca *pca)
{
  mt_status status = MT_OK;
  pca->rows = rows;
  pca->first = mt_part_first(rows->n, comm->size, comm->rank);
  pca->own = mt_part_count(rows->n, comm->size, comm->rank);
  pca->block = block_bytes / (rows->d * (int64_t)sizeof(float)) + 1;
  if (pca->block > pca->own) pca->block = pca->own;
  MT_NEW(pca->buffer, pca->block * rows->d);
  MT_NEW(pca->mean, rows->d);
  MT_NEW(pca->firsts, comm->size + 1);
  for (int r = 0; r <= comm->size; r++)
    pca->firsts[r] = mt_part_first(rows->n, comm->size, r);
done:
  return status;
}

/* Reads this rank's next block from row `at` (of its own); count_out 0 at the end. */
static mt_status read_block(const mt_pca *pca, int64_t at, int64_t *count_out)
{
  int64_t left = pca->own - at;
  *count_out = left < pca->block ? left : pca->block;
  return *count_out > 0
             ? pca->rows->read(pca->rows, pca->first + at, *count_out, pca->buffer)
             : MT_OK;
}

/* Units to count n terms of at most `largest` in 63 bits. */
static double units_for(int64_t n, double largest)
{
  return ldexp(1.0, 61 - (int)ceil(log2((double)n + 1.0))) / largest;
}

static mt_status find_largest(const mt_pca *pca, double *largest_out)
{
  mt_status status = MT_OK;
  int64_t count;
  double largest = 0.0;
  for (int64_t at = 0; at < pca->own; at += count) {
    MT_TRY(read_block(pca, at, &count));
    for (int64_t e = 0; e < count * pca->rows->d; e++)
      largest = fmax(largest, fabs((double)pca->buffer[e]));
  }
  *largest_out = largest;
done:
  return status;
}

static mt_status sum_columns(const mt_pca *pca, double units, int64_t *sums)
{
  mt_status status = MT_OK;
  int64_t count, d = pca->rows->d;
  for (int64_t at = 0; at < pca->own; at += count) {
    MT_TRY(read_block(pca, at, &count));
    for (int64_t i = 0; i < count; i++)
      for (int64_t t = 0; t < d; t++)
        sums[t] += (int64_t)(pca->buffer[i * d + t] * units);
  }
done:
  return status;
}

static mt_status find_mean(const mt_comm *comm, mt_pca *pca)
{
  mt_status status = MT_OK;
  int64_t d = pca->rows->d, *sums = NULL;
  double largest = 0.0;

  MT_TRY(mt_agree(comm, mt_memory_new(d, sizeof *sums, "column sums", (void **)&sums)));
  MT_TRY(mt_agree(comm, find_largest(pca, &largest)));
  MT_TRY(mt_max_f64(comm, 1, &largest));
  pca->largest = 2.0 * largest;
  if (largest == 0.0) goto done;
  double units = units_for(pca->rows->n, largest);
  MT_TRY(mt_agree(comm, sum_columns(pca, units, sums)));
  MT_TRY(mt_sum_i64(comm, d, sums));
  for (int64_t t = 0; t < d; t++)
    pca->mean[t] = (double)sums[t] / units / (double)pca->rows->n;
done:
  free(sums);
  return status;
}

/* sums (d, m) += centred rows^T x, in units. */
static mt_status add_products(const mt_pca *pca, int64_t m, const double *x,
                              double units, int64_t *sums)
{
  mt_status status = MT_OK;
  int64_t count, d = pca->rows->d;
  for (int64_t at = 0; at < pca->own; at += count) {
    MT_TRY(read_block(pca, at, &count));
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < d; t++)
      for (int64_t i = 0; i < count; i++) {
        double value = (pca->buffer[i * d + t] - pca->mean[t]) * units;
        const double *from = x + (pca->first + at + i) * m;
        for (int64_t c = 0; c < m; c++) sums[t * m + c] += (int64_t)(value * from[c]);
      }
  }
done:
  return status;
}

/* y (own, m) = centred rows z, z (d, m). */
static mt_status project(const mt_pca *pca, int64_t m, const double *z, double *y)
{
  mt_status status = MT_OK;
  int64_t count, d = pca->rows->d;
  memset(y, 0, (size_t)(pca->own * m) * sizeof *y);
  for (int64_t at = 0; at < pca->own; at += count) {
    MT_TRY(read_block(pca, at, &count));
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++)
      for (int64_t t = 0; t < d; t++) {
        double value = pca->buffer[i * d + t] - pca->mean[t];
        for (int64_t c = 0; c < m; c++) y[(at + i) * m + c] += value * z[t * m + c];
      }
  }
done:
  return status;
}

/* y = Xc Xc^T x. */
static mt_status apply_rows(const mt_comm *comm, const mt_operator *op, int64_t m,
                            const mt_eigen_step *step, const double *x, double *y)
{
  (void)step;
  mt_status status = MT_OK;
  const mt_pca *pca = op->context;
  int64_t size = pca->rows->d * m, *sums = NULL;
  double largest = 0.0, *z = NULL;

  MT_TRY(mt_agree(comm, mt_memory_new(size, sizeof *sums, "sums", (void **)&sums)));
  MT_TRY(mt_agree(comm, mt_memory_new(size, sizeof *z, "products", (void **)&z)));
  for (int64_t at = 0; at < op->n * m; at++) largest = fmax(largest, fabs(x[at]));
  largest *= pca->largest;
  if (largest > 0.0) {
    double units = units_for(op->n, largest);
    MT_TRY(mt_agree(comm, add_products(pca, m, x, units, sums)));
    MT_TRY(mt_sum_i64(comm, size, sums));
    for (int64_t at = 0; at < size; at++) z[at] = (double)sums[at] / units;
  }
  MT_TRY(mt_agree(comm, project(pca, m, z, y)));
done:
  free(sums);
  free(z);
  return status;
}

mt_status mt_umap_pca(const mt_comm *comm, const mt_umap_options *options,
                      const mt_rows *rows, double *layout_out)
{
  mt_status status = MT_OK;
  int64_t dims = options->n_components;
  double *values = NULL, residual = 0.0;
  mt_pca pca = {0};

  MT_REQUIRE(dims <= rows->n, MT_ERR_ARG, "%lld principal components of %lld rows",
             (long long)dims, (long long)rows->n);
  MT_TRY(
      mt_agree(comm, mt_memory_new(dims, sizeof *values, "values", (void **)&values)));
  MT_TRY(mt_agree(comm, pca_create(comm, rows, &pca)));
  MT_TRY(find_mean(comm, &pca));
  mt_operator op = {.n = rows->n,
                    .firsts = pca.firsts,
                    .low = 0.0,
                    .context = &pca,
                    .apply = apply_rows};
  MT_TRY(mt_eigen_largest(comm, &op, dims, 1e-6, (uint32_t)options->random_state,
                          values, layout_out, &residual));
  if (residual > 1e-6 && comm->rank == 0)
    mt_warn("pca start: the components are accurate to %.1e only", residual);
  for (int64_t at = 0; at < rows->n * dims; at++)
    layout_out[at] *= sqrt(fmax(values[at % dims], 0.0));
done:
  pca_destroy(&pca);
  free(values);
  return status;
}
