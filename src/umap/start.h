/* The two computed starts of a layout, before umap-learn's scaling and noise. */
#ifndef MT_UMAP_START_H
#define MT_UMAP_START_H
#include "backend/backend.h"

/**
 * Eigenvectors 2 to n_components + 1 of the normalised Laplacian, as umap-learn's
 * spectral_layout: parts that no edge joins are laid out one by one, each around a place of
 * its own (multi_component_layout). Collective.
 * graph        pruned, n >= 2
 * rows, metric used if there are more than 2 n_components parts: their centroids
 * layout_out   (n, n_components), whole on every rank, finite, of any scale
 */
mt_status mt_umap_spectral(const mt_comm *comm, const mt_umap_options *options,
                           mt_metric metric, const mt_graph *graph, const mt_rows *rows,
                           double *layout_out);

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
