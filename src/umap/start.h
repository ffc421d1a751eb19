/* The two computed starts of a layout, before umap-learn's scaling and noise. */
#ifndef MT_UMAP_START_H
#define MT_UMAP_START_H
#include "backend/backend.h"
#include "umap/eigen.h"

#include <math.h>

/* The vertices of a graph part by part, each part's in order; all of it whole on every
 * rank. */
typedef struct mt_parts {
  int64_t count;    /* parts */
  int64_t *labels;  /* (n) part of each vertex */
  int64_t *first;   /* (count + 1) where each part begins in members */
  int64_t *members; /* (n) vertices */
  int64_t *place;   /* (n) a vertex' index among its part's members */
  double *degrees;  /* (n) sum of a vertex' weights, in the order of its edges */
  double *places;   /* (count, dims) of the parts in the layout */
} mt_parts;

/* The Laplacian's first eigenvector of part p, known beforehand, by vertex: sqrt(degree /
 * divisor) with this divisor. */
double mt_umap_part_degree(const mt_parts *parts, int64_t p);

/**
 * Eigenvectors 2 to k + 1 of small parts (mt_eigen_is_small). Collective.
 * graph        in host memory, this rank's rows
 * small        (n_small) parts, ascending
 * first        (n_small + 1) rows of vectors_out where each part's begin
 * vectors_out  (first[n_small], k), whole on every rank; a part's first is NaN if LAPACK failed
 */
mt_status mt_umap_solve_small(const mt_comm *comm, const mt_graph *graph,
                              const mt_parts *parts, int64_t n_small,
                              const int64_t *small, const int64_t *first, int64_t k,
                              double *vectors_out);

/* Seconds of a spectral start. */
typedef struct mt_start_cost {
  double parts;  /* finding the parts, sorting their vertices, degrees */
  double places; /* of the parts */
  double large;  /* eigenvectors of the parts that are iterated on */
  double small;  /* of those that are solved whole */
  double finish; /* noise and scale, whatever the start */
} mt_start_cost;

/* A pruned graph as the spectral start asks for it, wherever a backend keeps it. */
typedef struct mt_spectral_graph {
  int64_t n;
  mt_start_cost *cost; /* set; or NULL */
  void *context;       /* the backend's */
  /* labels_out (n), count_out: as mt_graph_components. */
  mt_status (*components)(const mt_comm *comm, const struct mt_spectral_graph *graph,
                          int64_t *labels_out, int64_t *count_out);
  /* degrees_out (n): see mt_parts. */
  mt_status (*degrees)(const mt_comm *comm, const struct mt_spectral_graph *graph,
                       double *degrees_out);
  /* This rank's rows in host memory, the source's: asked for if there are small parts. */
  mt_status (*rows)(const mt_comm *comm, const struct mt_spectral_graph *graph,
                    const mt_graph **out);
  /* mt_eigen_largest of parts that are not small: of their normalised adjacency,
   * mt_umap_adjacency, without the known vectors. known: (n). */
  mt_status (*solve)(const mt_comm *comm, const struct mt_spectral_graph *graph,
                     const mt_eigen_parts *parts, const double *degrees,
                     const double *known, int64_t k, double tolerance, uint32_t seed,
                     double *values_out, double *vectors_out, double *residuals_out);
} mt_spectral_graph;

MT_BOTH double mt_umap_adjacency(float weight, double degree, double other_degree)
{
  return weight / sqrt(degree * other_degree);
}

/* In host memory; borrows the graph. */
mt_spectral_graph mt_spectral_graph_on_host(const mt_graph *graph);

/**
 * Start positions by options->init: the table's umap_start (backend.h). Collective.
 */
mt_status mt_umap_start(const mt_comm *comm, const mt_umap_options *options,
                        mt_metric metric, const mt_spectral_graph *graph,
                        const mt_rows *rows, float *positions_out);

/**
 * Eigenvectors 2 to n_components + 1 of the normalised Laplacian, as umap-learn's
 * spectral_layout: parts that no edge joins are laid out one by one, each around a place of
 * its own (multi_component_layout). Collective.
 * graph        pruned, n >= 2
 * rows, metric used if there are more than 2 n_components parts: their centroids
 * layout_out   (n, n_components), whole on every rank, finite, of any scale
 */
mt_status mt_umap_spectral(const mt_comm *comm, const mt_umap_options *options,
                           mt_metric metric, const mt_spectral_graph *graph,
                           const mt_rows *rows, double *layout_out);

/* Parts whose affinities are kept, count^2 doubles over all ranks; more go to random places. */
enum { MT_UMAP_MOST_PARTS = 8192 };

/* Seconds since *at, which becomes now. */
double mt_umap_lap(double *at);

/* Places (count, dims) of the parts of a graph; labels as mt_graph_components. Collective. */
mt_status mt_umap_place_parts(const mt_comm *comm, const mt_umap_options *options,
                              mt_metric metric, const mt_rows *rows, int64_t count,
                              const int64_t *labels, double *places_out);

/* The first n_components principal components of rows (n >= 2). Collective.
 * layout_out   (n, n_components), whole on every rank, finite */
mt_status mt_umap_pca(const mt_comm *comm, const mt_umap_options *options,
                      const mt_rows *rows, double *layout_out);

/* Uniform in (-reach, reach), by point and axis; step keeps uses apart. */
double mt_umap_scatter(const mt_umap_options *options, int64_t point, int64_t axis,
                       uint32_t step, double reach);

/* Every point anywhere, for init="random". layout_out: (n, n_components). */
void mt_umap_scatter_all(const mt_umap_options *options, int64_t n, double *layout_out);

/* Scale, noise of 1e-4 of it (not after a random start), then each axis from 0 to 10; an
 * axis without extent becomes 0. layout is overwritten. */
void mt_umap_finish_start(const mt_umap_options *options, int64_t n, double *layout,
                          float *positions_out);

/* Steps of MT_STREAM_UMAP_INIT. */
enum { MT_SCATTER_RANDOM, MT_SCATTER_NOISE, MT_SCATTER_PART, MT_SCATTER_PLACE };

#endif
