#include "memory_need.h"
#include "backend/cpu_knn.h"

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
  return 16 * share(s->stored, s->ranks) + 200 * share(s->documents, s->ranks) +
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

/* A rank's rows, and those of a fit that it reads; MPI's buffer for what ranks write
 * together. */
static int64_t matrix_bytes(const mt_sizes *s, const mt_lda_options *lda)
{
  int64_t all = 4 * s->terms * s->topics, buffer = all < 32 << 20 ? all : 32 << 20;
  return 4 * s->terms * (share(s->topics, s->ranks) + lda->n_components) +
         (s->ranks > 1 ? buffer : 0);
}

/* The whole matrix, as it is and rounded, and what is kept of each row. */
static int64_t nn_descent_bytes(const mt_sizes *s, int64_t k)
{
  return s->topics * (6 * s->terms + 16 * k + 400 + 4 * s->threads);
}

static int64_t knn_bytes(const mt_sizes *s, const mt_knn_options *knn)
{
  if (s->nn_descent) return nn_descent_bytes(s, knn->n_neighbors);
  return mt_cpu_knn_bytes(s->topics, s->terms, knn->n_neighbors, s->team, s->threads) +
         12 * share(s->topics, s->team) * knn->n_neighbors;
}

/* Lists of neighbours (16 bytes each), and either links of 24 bytes while the graph is built
 * (sent, received, sorted in both directions), or the graph and its matrix in the order of
 * their rows' places (12 bytes an edge each, two edges for each neighbour at most; host_graph.c)
 * with the spectral start's vectors, whole on every rank as positions are. */
static int64_t umap_bytes(const mt_sizes *s, const mt_parameters *p)
{
  int64_t rows = share(s->topics, s->team), d = p->umap.n_components;
  int64_t neighbours = rows * p->knn.n_neighbors;
  int64_t whole = s->topics * (8 * d + 28 + 2 * 8 * (d + 1) + 3 * 8 * (d + 12));
  int64_t start = whole + 48 * neighbours + 16 * rows, build = 100 * neighbours;
  return 16 * neighbours + larger(start, build);
}

/* The tree of places with its boxes, the spanning tree, the dendrogram. */
static int64_t hdbscan_bytes(const mt_sizes *s, const mt_umap_options *umap)
{
  return s->topics * (16 * umap->n_components + 260);
}

/* What is known of topics, and of meta-topics: terms and counts in summary.json while it is
 * written, if they have twice as many members as they must. */
static int64_t map_bytes(const mt_sizes *s, const mt_parameters *p)
{
  int64_t shown = larger(p->lda.top_terms, p->map.label_terms);
  int64_t meta = s->topics / (2 * p->hdbscan.min_cluster_size);
  return 500 * s->topics +
         meta * (2 * 900 * shown + 72 * (s->periods + p->lda.n_seeds));
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
      map_bytes(sizes, parameters),
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
