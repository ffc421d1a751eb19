#include "memory_need.h"

/* What HDF5, MPI's file access and OpenBLAS keep once they are at work. */
enum { LIBRARIES = 20 << 20 };

static int64_t larger(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

/* Rows of the rank that has most. */
static int64_t share(int64_t n, int64_t ranks)
{
  return (n + ranks - 1) / ranks;
}

/* Packed counts are received while others are sent, then unpacked; terms are counted, sent
 * and kept whole. */
static int64_t corpus_bytes(const mt_sizes *s)
{
  return 12 * share(s->stored, s->ranks) + 200 * share(s->documents, s->ranks) +
         1000 * s->terms;
}

/* The period's counts, lambda, its table and, online, its sums, a table of statistics a
 * thread, and the topics twice: as they are and normalised. */
static int64_t lda_bytes(const mt_sizes *s, const mt_lda_options *lda)
{
  int64_t k = lda->n_components, padded = (k + 15) / 16 * 16;
  int64_t sums = lda->learning_method == MT_LEARNING_BATCH ? 0 : 8;
  return 8 * (s->period_documents + s->period_stored) +
         s->terms * padded * (12 + sums + 4 * s->threads) + s->terms * k * 12;
}

/* A rank's rows, and those of a fit that it reads; or what HDF5 makes of them. */
static int64_t matrix_bytes(const mt_sizes *s, const mt_lda_options *lda)
{
  return 8 * s->terms * larger(share(s->topics, s->ranks), lda->n_components);
}

/* The whole matrix, and what is kept of each row. */
static int64_t nn_descent_bytes(const mt_sizes *s, int64_t k)
{
  return s->topics * (4 * s->terms + 16 * k + 400 + 4 * s->threads);
}

/* A rank's rows twice and three visiting blocks, in blocks of 1 GiB at most; their products. */
static int64_t knn_bytes(const mt_sizes *s, const mt_knn_options *knn)
{
  int64_t rows = share(s->topics, s->team), most = (int64_t)1 << 30;
  int64_t matrix = 5 * 4 * s->terms * rows, products = (int64_t)1 << 25;
  if (rows * rows < products) products = rows * rows;
  if (s->nn_descent) return nn_descent_bytes(s, knn->n_neighbors);
  return (matrix < most ? matrix : most) + 4 * products + 32 * rows * knn->n_neighbors;
}

/* The graph in both directions while it is built; positions whole on every rank. */
static int64_t umap_bytes(const mt_sizes *s, const mt_parameters *p)
{
  int64_t rows = share(s->topics, s->team);
  int64_t start = 3 * 8 * (p->umap.n_components + 12);
  return 100 * rows * p->knn.n_neighbors +
         s->topics * (8 * p->umap.n_components + start);
}

static int64_t hdbscan_bytes(const mt_sizes *s, const mt_umap_options *umap)
{
  return s->topics * (16 * umap->n_components + 400);
}

void mt_memory_need(const mt_sizes *sizes, const mt_parameters *parameters,
                    int64_t *bytes_out)
{
  const int64_t work[MT_N_STAGES] = {
      corpus_bytes(sizes),
      lda_bytes(sizes, &parameters->lda),
      matrix_bytes(sizes, &parameters->lda),
      knn_bytes(sizes, &parameters->knn),
      umap_bytes(sizes, parameters),
      hdbscan_bytes(sizes, &parameters->umap),
      4 * sizes->terms + 500 * sizes->topics,
  };
  for (int i = 0; i < MT_N_STAGES; i++)
    bytes_out[i] = sizes->base + LIBRARIES + work[i];
}

static int64_t smaller(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

/* Its rows as given and rounded, with a list of candidates each; a tile of products; rows that
 * are searched again; two more blocks of rows that go round. */
static int64_t knn_device_bytes(const mt_sizes *s)
{
  enum { TILE = 8192, LIST = 6400, AGAIN = 4096, AGAIN_LIST = 50000 };
  int64_t rows = share(s->topics, s->team), tile = smaller(rows, TILE);
  int64_t again = smaller(rows, AGAIN) * (2 * s->terms + AGAIN_LIST);
  int64_t ring = s->team > 1 ? 2 * 4 * s->terms * rows : 0;
  return rows * (6 * s->terms + LIST) + 4 * tile * tile + again + ring;
}

/* Edges in both directions while they are sorted; positions, and vectors of the start. */
static int64_t umap_device_bytes(const mt_sizes *s, const mt_parameters *p)
{
  int64_t rows = share(s->topics, s->team), d = p->umap.n_components;
  return 60 * rows * p->knn.n_neighbors + s->topics * (8 * d + 8 * (d + 12));
}

/* Points in the tree's order, its boxes, the rounds' edges. */
static int64_t hdbscan_device_bytes(const mt_sizes *s, const mt_umap_options *umap)
{
  return s->topics * (10 * umap->n_components + 160);
}

void mt_device_memory_need(const mt_sizes *sizes, const mt_parameters *parameters,
                           int64_t *bytes_out)
{
  bytes_out[0] = knn_device_bytes(sizes);
  bytes_out[1] = umap_device_bytes(sizes, parameters);
  bytes_out[2] = hdbscan_device_bytes(sizes, &parameters->umap);
}
