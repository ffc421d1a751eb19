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

/* What a layout came to, beside the positions. */
typedef struct mt_umap_result {
  double a, b;        /* of the curve 1 / (1 + a d^2b), as used */
  int64_t n_epochs;   /* as used */
  int64_t components; /* parts of the graph that no edge joins; 0 without points */
  int64_t edges;      /* each counted once */
} mt_umap_result;

typedef struct mt_edge {
  int64_t a, b;  /* a < b */
  double weight; /* >= 0, finite */
} mt_edge;

/* How good approximate neighbours are, and what they cost; the same on all ranks. */
typedef struct mt_knn_quality {
  double recall; /* share of them that are as near as the exact k-th, over the sample */
  int64_t sampled;  /* rows that it was measured on */
  int64_t rounds;   /* of NN-Descent */
  int64_t compared; /* pairs of rows, the sample's not counted */
} mt_knn_quality;

typedef struct mt_condensed_tree mt_condensed_tree; /* hdbscan/hdbscan.h */
typedef struct mt_clusters mt_clusters;

typedef struct mt_backend {
  const char *name; /* "cpu" or "cuda": what the job's stages over all topics run on */

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

  /**
   * Nearly all of them, by NN-Descent (knn/nn_descent.h): the distances are exact, a row may
   * be missing. The same bits on both backends. 1 <= k < rows->n.
   * Memory   the whole matrix on every rank, and for each row about 16 k + 400 bytes, of
   *          which a round sends 6 k + 260 to every rank
   * Errors   MT_ERR_MEMORY the matrix does not fit; MT_ERR_INPUT 2^31 rows and more; a row
   *          that the metric does not allow
   */
  mt_status (*knn_approximate)(struct mt_backend *be, const mt_comm *comm,
                               mt_metric metric, int64_t k, const mt_rows *rows,
                               int64_t *indices_out, float *distances_out,
                               mt_knn_quality *quality_out);

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

  /* The three in a row, edges too light to act dropped after the first (mt_graph_prune).
   * indices to positions_out as above; n = rows->n >= 2, 1 <= k < n.
   * result   components and edges are set */
  mt_status (*umap_layout)(struct mt_backend *be, const mt_comm *comm,
                           const mt_umap_options *options, mt_metric metric, int64_t k,
                           const int64_t *indices, const float *distances,
                           const mt_rows *rows, float *positions_out,
                           mt_umap_result *result);

  /**
   * Minimum spanning tree of the mutual reachability distance (hdbscan/hdbscan.h).
   * points     (n, d) float32, whole on every rank; n >= 2
   * tree_out   (n - 1), sorted by (weight, a, b), whole on every rank
   * core_out   (n) core distances, or NULL
   */
  mt_status (*spanning_tree)(struct mt_backend *be, const mt_comm *comm,
                             const mt_hdbscan_options *options, int64_t n, int64_t d,
                             const float *points, mt_edge *tree_out, double *core_out);

  /**
   * The condensed tree of a spanning tree (hdbscan/hdbscan.h), on this rank alone: not
   * collective. As mt_condensed_tree_find.
   */
  mt_status (*condensed_tree)(struct mt_backend *be, int64_t min_cluster_size,
                              int64_t n, const mt_edge *tree,
                              mt_condensed_tree *tree_out);

  /**
   * Both, and clusters from them (hdbscan/hdbscan.h), this rank's part of points and rows.
   * n >= 2, points finite. A backend may keep the trees where they are: mt_clusters_by_steps
   * does not.
   */
  mt_status (*clusters)(struct mt_backend *be, const mt_comm *comm,
                        const mt_hdbscan_options *options, int64_t n, int64_t d,
                        const float *points, mt_clusters *clusters_out);

  /* Bytes of the device that it has held at most since this was asked last; NULL: none has
   * any. Not collective. */
  int64_t (*memory_peak)(struct mt_backend *be);

  void (*close)(struct mt_backend *be); /* frees be */
} mt_backend;

/**
 * The GPUs that this rank sees and a backend can use, before the layout gives them out:
 * for "cpu" none, for "auto" those that there are. Creates no context on any of them.
 * The CUDA backend is a shared object, metatopics-cuda.so: the one that METATOPICS_CUDA names,
 * or beside the program, or in its library folder; loaded only where there is a driver.
 * Errors   MT_ERR_INPUT on all ranks if "cuda" was asked for and no rank sees a GPU that can be
 *          used: what is missing, and how to get it. "auto" says why it falls back.
 */
mt_status mt_backend_find(const mt_comm *world, mt_backend_choice choice,
                          mt_devices *devices_out);

/**
 * Opens and starts the backend of each rank: CUDA on those that own a GPU, the CPU's on the
 * others, for what they do alone. After mt_backend_find and mt_layout_create. The caller closes.
 * Errors   agreed on: the device that cannot be used, and why
 */
mt_status mt_backend_open(const mt_comm *world, const mt_layout *layout,
                          mt_backend **backend_out);

/* CUDA and NCCL, as built and as found, of this process; "not built" and the like if there are
 * none. Loads the shared object to ask it if `load` is set. Not collective. */
typedef struct mt_backend_versions {
  char cuda[80], nccl[80];
} mt_backend_versions;
void mt_backend_ask_versions(bool load, mt_backend_versions *versions_out);

/* What metatopics-cuda.so offers: its one symbol, mt_cuda. The program refuses one
 * of another version or interface. */
enum {
  MT_CUDA_INTERFACE = 3
}; /* raised when this struct or a function's contract changes */
typedef struct mt_cuda_library {
  int interface;
  int table;           /* bytes of an mt_backend */
  const char *version; /* of metatopics */
  /* why_out: filled when there are none */
  void (*devices)(mt_devices *devices_out, char *why_out, size_t why_size);
  mt_status (*open)(mt_backend **backend_out); /* the caller closes */
  void (*versions)(mt_backend_versions *versions_out);
} mt_cuda_library;

/* The CPU backend: all ranks of comm, OpenMP threads. The caller closes it. */
mt_status mt_backend_cpu(mt_backend **backend_out);

/* The functions of the CPU backend's table, each in a file of its name. */
mt_status mt_cpu_knn(mt_backend *be, const mt_comm *comm, mt_metric metric, int64_t k,
                     const mt_rows *rows, int64_t *indices_out, float *distances_out);
mt_status mt_cpu_knn_approximate(mt_backend *be, const mt_comm *comm, mt_metric metric,
                                 int64_t k, const mt_rows *rows, int64_t *indices_out,
                                 float *distances_out, mt_knn_quality *quality_out);
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
mt_status mt_cpu_condensed_tree(mt_backend *be, int64_t min_cluster_size, int64_t n,
                                const mt_edge *tree, mt_condensed_tree *tree_out);

#endif
