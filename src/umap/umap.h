/* UMAP in three steps: a fuzzy graph of the nearest neighbours, start positions, epochs of
 * attraction along edges and repulsion from random points. Stages call mt_umap_layout; the
 * heavy steps are the backend's. As umap-learn 0.5 but for the order of the updates: an
 * epoch reads the positions of the epoch before it, so that the result depends on neither
 * ranks nor threads. */
#ifndef MT_UMAP_UMAP_H
#define MT_UMAP_UMAP_H
#include "backend/backend.h"

/**
 * Everything: graph, start, epochs, as the backend does it. Collective.
 * n, k         points, and neighbours of each (itself not counted); k < n, k = 0 if n < 2
 * indices, distances  (local, k) of this rank's points (mt_part_first), nearest first
 * rows         what the neighbours are of: n rows
 * positions_out  (n, n_components) float32, whole on every rank, finite
 * Errors       MT_ERR_INPUT a neighbour out of range or a distance that is not >= 0;
 *              MT_STOPPED after a signal (positions are then of no use)
 */
mt_status mt_umap_layout(struct mt_backend *be, const mt_comm *comm,
                         const mt_umap_options *options, mt_metric metric, int64_t k,
                         const int64_t *indices, const float *distances,
                         const mt_rows *rows, float *positions_out,
                         mt_umap_result *result_out);

/* The table's umap_layout (backend.h) out of its three steps, the graph in host memory. */
mt_status mt_umap_by_steps(struct mt_backend *be, const mt_comm *comm,
                           const mt_umap_options *options, mt_metric metric, int64_t k,
                           const int64_t *indices, const float *distances,
                           const mt_rows *rows, float *positions_out,
                           mt_umap_result *result);

/* Epochs to run: options->n_epochs, or if that is 0, 500 up to 10,000 points, else 200. */
int64_t mt_umap_n_epochs(const mt_umap_options *options, int64_t n);

/**
 * a and b of 1 / (1 + a d^2b), fitted by least squares to 1 up to min_dist and
 * exp(-(d - min_dist) / spread) beyond, at 300 distances from 0 to 3 spread.
 * Accuracy     umap-learn's find_ab_params to 1e-4 relative
 */
void mt_umap_fit_ab(double min_dist, double spread, double *a_out, double *b_out);

/* options' a and b if given, else the fit. */
void mt_umap_ab(const mt_umap_options *options, double *a_out, double *b_out);

/* What a graph is made of (backend.h, umap_graph). Not collective.
 * Errors MT_ERR_INPUT the first neighbour out of range or distance that is not >= 0 */
mt_status mt_umap_check_neighbors(int64_t n, int64_t k, int64_t first, int64_t local,
                                  const int64_t *indices, const float *distances);

/* The heaviest edge over all ranks; 0 if there is none. Collective. */
mt_status mt_graph_heaviest(const mt_comm *comm, const mt_graph *graph,
                            float *heaviest_out);

/* Edges lighter than this do not act in n_epochs (heaviest / n_epochs; up to 10 epochs
 * heaviest / the automatic number for n points). */
float mt_umap_least(int64_t n, int64_t n_epochs, float heaviest);

/* Drops the edges that are lighter. Collective. */
mt_status mt_graph_prune(const mt_comm *comm, int64_t n_epochs, mt_graph *graph);

/**
 * The parts of a graph that no edge joins. Collective.
 * labels_out   (n), whole on every rank: 0.. in the order of each part's lowest vertex
 */
mt_status mt_graph_components(const mt_comm *comm, const mt_graph *graph,
                              int64_t *labels_out, int64_t *count_out);

/* ---- the definitions that tests compare with: plain loops, whole data, one process ---- */

/* weights_out (n, n): dense and symmetric, 0 where there is no edge. */
mt_status mt_umap_graph_ref(const mt_umap_options *options, int64_t n, int64_t k,
                            const int64_t *indices, const float *distances,
                            double *weights_out);

/* weights (n, n) dense, pruned; positions (n, n_components) in, out. */
mt_status mt_umap_epochs_ref(const mt_umap_options *options, int64_t n,
                             const float *weights, double *positions);

#endif
