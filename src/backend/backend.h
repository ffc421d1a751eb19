/* A backend does the heavy part of the three stages that work over all topic vectors: a
 * table of functions. Stages never name CUDA, NCCL or BLAS; they check the input and settle
 * the small cases (0, 1 row; fewer rows than neighbours), then call the table. All
 * functions are collective over comm, and give the same bits for any number of ranks and
 * threads. Rows are spread as mt_part_first says: this rank holds `local` rows. */
#ifndef MT_BACKEND_BACKEND_H
#define MT_BACKEND_BACKEND_H
#include "base/rows.h"
#include "comm/comm.h"
#include "comm/layout.h"
#include "deck/parameters.h"

/* A symmetric weighted graph, this rank's rows: CSR, columns ascending in each row. */
typedef struct mt_graph {
  int64_t n;        /* vertices over all ranks */
  int64_t first;    /* this rank's first vertex */
  int64_t local;    /* how many it has */
  int64_t *indptr;  /* (local + 1), from 0; owned */
  int64_t *indices; /* (indptr[local]) global vertices; owned */
  float *weights;   /* (indptr[local]) in (0, 1]; owned */
} mt_graph;
void mt_graph_destroy(mt_graph *graph); /* frees the arrays; empties the struct */

typedef struct mt_edge {
  int64_t a, b;  /* a < b */
  double weight; /* >= 0, finite */
} mt_edge;

typedef struct mt_backend {
  const char *name; /* "cpu" or "cuda" */

  /**
   * Takes the device that the layout gave this rank and connects the team: before any other
   * function. Collective over the team; the table's functions are called with it, or with
   * one process alone.
   * device   this rank's (layout.device); the CPU backend takes none
   * Errors   agreed on: the device that cannot be used, and why
   */
  mt_status (*start)(struct mt_backend *be, const mt_comm *team, int device);

  /**
   * The k nearest other rows of each row, exactly. 1 <= k < rows->n.
   * indices_out, distances_out   (local, k): nearest first, ties by lower index
   * Accuracy   see mt_knn_ref (knn/knn.h): as if computed in double, then rounded
   */
  mt_status (*knn)(struct mt_backend *be, const mt_comm *comm, mt_metric metric,
                   int64_t k, const mt_rows *rows, int64_t *indices_out,
                   float *distances_out);

  /* Fuzzy simplicial set: membership strengths and the symmetric union (umap/umap.h).
   * indices, distances  (local, k), self not in them. */
  mt_status (*umap_graph)(struct mt_backend *be, const mt_comm *comm,
                          const mt_umap_options *options, int64_t n, int64_t k,
                          const int64_t *indices, const float *distances,
                          mt_graph *graph_out);

  /* Start positions (n, n_components) float32, whole on every rank. rows, metric: what the
   * graph was made from, for init="pca" and to place the parts of a disconnected graph. */
  mt_status (*umap_start)(struct mt_backend *be, const mt_comm *comm,
                          const mt_umap_options *options, mt_metric metric,
                          const mt_graph *graph, const mt_rows *rows,
                          float *positions_out);

  /* All epochs; positions (n, n_components), whole on every rank, start in, result out. */
  mt_status (*umap_epochs)(struct mt_backend *be, const mt_comm *comm,
                           const mt_umap_options *options, const mt_graph *graph,
                           float *positions);

  /**
   * Minimum spanning tree of the mutual reachability distance (hdbscan/hdbscan.h).
   * points     (n, d) float32, whole on every rank; n >= 2
   * tree_out   (n - 1), sorted by (weight, a, b), whole on every rank
   * core_out   (n) core distances, or NULL
   */
  mt_status (*spanning_tree)(struct mt_backend *be, const mt_comm *comm,
                             const mt_hdbscan_options *options, int64_t n, int64_t d,
                             const float *points, mt_edge *tree_out, double *core_out);

  void (*close)(struct mt_backend *be); /* frees be */
} mt_backend;

/**
 * The backend to use: auto takes the best that there is. Not collective; the caller closes.
 * The CUDA backend is a shared object, metatopics-cuda.so: the one that METATOPICS_CUDA names,
 * or beside the program, or in its library folder. A rank that sees no GPU gets the CPU
 * backend; so does a surplus rank, for what it does alone.
 * devices_out  GPUs that this rank sees and the backend can use
 * Errors       MT_ERR_INPUT if the one asked for is not there, and how to get it
 */
mt_status mt_backend_open(mt_backend_choice choice, mt_backend **backend_out,
                          mt_devices *devices_out);

/* The CPU backend: all ranks of comm, OpenMP threads. The caller closes it. */
mt_status mt_backend_cpu(mt_backend **backend_out);

/* The functions of the CPU backend's table, each in a file of its name. */
mt_status mt_cpu_knn(mt_backend *be, const mt_comm *comm, mt_metric metric, int64_t k,
                     const mt_rows *rows, int64_t *indices_out, float *distances_out);
mt_status mt_cpu_umap_graph(mt_backend *be, const mt_comm *comm,
                            const mt_umap_options *options, int64_t n, int64_t k,
                            const int64_t *indices, const float *distances,
                            mt_graph *graph_out);
mt_status mt_cpu_umap_start(mt_backend *be, const mt_comm *comm,
                            const mt_umap_options *options, mt_metric metric,
                            const mt_graph *graph, const mt_rows *rows,
                            float *positions_out);
mt_status mt_cpu_umap_epochs(mt_backend *be, const mt_comm *comm,
                             const mt_umap_options *options, const mt_graph *graph,
                             float *positions);
mt_status mt_cpu_spanning_tree(mt_backend *be, const mt_comm *comm,
                               const mt_hdbscan_options *options, int64_t n, int64_t d,
                               const float *points, mt_edge *tree_out,
                               double *core_out);

#endif
