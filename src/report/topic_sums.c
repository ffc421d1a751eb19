#include "report/topic_sums.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  BLOCK_BYTES = 16 << 20, /* of rows, and of sums */
  GAP_BYTES = 64 << 10    /* to read on over these takes less than to read anew */
};

static int64_t smaller(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

/* How many things of so many bytes a block holds, at least one. */
static int64_t in_block(int64_t bytes)
{
  int64_t fit = BLOCK_BYTES / (bytes > 0 ? bytes : 1);
  return fit > 1 ? fit : 1;
}

static int64_t block_rows(const mt_rows *rows)
{
  return smaller(in_block(rows->d * (int64_t)sizeof(float)), rows->n);
}

/* ---- all rows --------------------------------------------------------------------------- */

/* Whole numbers of units: their sum is the same in any order. No row has more than 2. */
static mt_status count_units(const mt_rows *rows, mt_part own, double units,
                             int64_t *sums)
{
  mt_status status = MT_OK;
  float *block = NULL;
  int64_t each = block_rows(rows), end = own.first + own.count;
  MT_NEW(block, each * rows->d);
  for (int64_t first = own.first; first < end; first += each) {
    int64_t count = smaller(each, end - first);
    MT_TRY(rows->read(rows, first, count, block));
    for (int64_t i = 0; i < count; i++)
      for (int64_t t = 0; t < rows->d; t++) {
        float share = block[i * rows->d + t];
        MT_REQUIRE(share >= 0.0f && share <= 2.0f, MT_ERR_INPUT,
                   "topic %lld has the probability %g of term %lld: run again from the "
                   "stage lda",
                   (long long)(first + i), share, (long long)t);
        sums[t] += (int64_t)(share * units + 0.5);
      }
  }
done:
  free(block);
  return status;
}

mt_status mt_topic_sums(const mt_comm *comm, const mt_rows *rows, double *sums_out)
{
  mt_status status = MT_OK;
  int64_t *sums = NULL;
  double units = ldexp(1.0, 60 - ilogb((double)rows->n + 1.0));
  mt_part own = mt_part_of(rows->n, comm->size, comm->rank);
  MT_TRY(mt_agree(comm, mt_memory_new(rows->d, sizeof *sums, "sums", (void **)&sums)));
  MT_TRY(mt_agree(comm, count_units(rows, own, units, sums)));
  MT_TRY(mt_sum_i64(comm, rows->d, sums));
  for (int64_t t = 0; t < rows->d; t++) sums_out[t] = (double)sums[t] / units;
done:
  free(sums);
  return status;
}

/* ---- the rows of clusters --------------------------------------------------------------- */

/* Clusters by batches of `each`: batch b is summed by rank b modulo the ranks. */
typedef struct mt_batches {
  const mt_rows *rows;
  const int64_t *labels;
  int64_t n_clusters, each;
  float *block; /* rows */
  double *sums; /* (each, rows->d) */
} mt_batches;

/* Where the rows that are read with row i end: behind a row of the clusters [first, end). */
static int64_t end_of_read(const mt_batches *b, int64_t i, int64_t first, int64_t end)
{
  int64_t gap = GAP_BYTES / (b->rows->d * (int64_t)sizeof *b->block + 1);
  int64_t most = smaller(i + block_rows(b->rows), b->rows->n), last = i;
  for (int64_t j = i + 1; j < most && j - last <= gap + 1; j++)
    if (b->labels[j] >= first && b->labels[j] < end) last = j;
  return last + 1;
}

static mt_status sum_batch(mt_batches *b, int64_t first, int64_t end)
{
  mt_status status = MT_OK;
  int64_t n = b->rows->n, d = b->rows->d, read_first = 0, read_end = 0;
  memset(b->sums, 0, (size_t)(b->each * d) * sizeof *b->sums);
  for (int64_t i = 0; i < n; i++) {
    int64_t cluster = b->labels[i];
    if (cluster < first || cluster >= end) continue;
    if (i >= read_end) {
      read_end = end_of_read(b, i, first, end);
      read_first = i;
      MT_TRY(b->rows->read(b->rows, i, read_end - i, b->block));
    }
    const float *row = b->block + (i - read_first) * d;
    double *sums = b->sums + (cluster - first) * d;
    for (int64_t t = 0; t < d; t++) sums[t] += row[t];
  }
done:
  return status;
}

/* The clusters from first on, from rank `from` to rank 0, which takes them. */
static mt_status hand_over(const mt_comm *comm, mt_batches *b, int64_t first, int from,
                           mt_take_sums take, void *context)
{
  mt_status status = MT_OK;
  int64_t d = b->rows->d, count = smaller(b->each, b->n_clusters - first);
  mt_transfer(comm, from, 0, (size_t)(count * d) * sizeof *b->sums, b->sums);
  for (int64_t c = 0; comm->rank == 0 && c < count && status == MT_OK; c++)
    status = take(context, first + c, b->sums + c * d);
  return status;
}

mt_status mt_topic_cluster_sums(const mt_comm *comm, const mt_rows *rows,
                                int64_t n_clusters, const int64_t *labels,
                                mt_take_sums take, void *context)
{
  mt_status status = MT_OK;
  int64_t share = (n_clusters + comm->size - 1) / comm->size;
  mt_batches b = {.rows = rows,
                  .labels = labels,
                  .n_clusters = n_clusters,
                  .each = smaller(in_block(rows->d * (int64_t)sizeof *b.sums), share)};
  MT_TRY(mt_agree(comm, mt_memory_new(block_rows(rows) * rows->d, sizeof *b.block,
                                      "rows", (void **)&b.block)));
  MT_TRY(mt_agree(
      comm, mt_memory_new(b.each * rows->d, sizeof *b.sums, "sums", (void **)&b.sums)));
  for (int64_t first = 0; first < n_clusters; first += b.each * comm->size) {
    int64_t own = smaller(first + b.each * comm->rank, n_clusters);
    MT_TRY(mt_agree(comm, sum_batch(&b, own, smaller(own + b.each, n_clusters))));
    for (int r = 0; r < comm->size && first + b.each * r < n_clusters; r++)
      MT_TRY(mt_agree(comm, hand_over(comm, &b, first + b.each * r, r, take, context)));
  }
done:
  free(b.block);
  free(b.sums);
  return status;
}
