/* HDBSCAN*, exact: spanning tree of mutual reachability -> dendrogram -> condensed tree ->
 * clusters. The spanning tree is the heavy part and a backend's (backend/backend.h); all
 * that follows is O(n log n) at most and done by every rank for itself. Nothing recurses.
 * Source   Campello, Moulavi, Sander 2013 and 2015; McInnes, Healy 2017; the choices that
 *          the papers leave open are those of the Python package hdbscan 0.8 */
#ifndef MT_HDBSCAN_HDBSCAN_H
#define MT_HDBSCAN_HDBSCAN_H
#include "backend/backend.h"
#include "hdbscan/reachability.h"

/**
 * Spanning tree by Prim's algorithm over all pairs: the definition that backends are
 * compared with. Not collective. O(n^2 (d + min_samples)).
 * points     (n, d) float32, row-major, finite
 * tree_out   (n - 1) edges, sorted by (weight, a, b)
 * core_out   (n) distance to the min_samples-th nearest other point (at most the n-1st), or NULL
 * Weight of (a, b): max(core a, core b, distance / alpha), in double from the floats.
 * The tree of another algorithm has the same sorted weights; it has the same edges too
 * where no two weights are equal.
 */
mt_status mt_spanning_tree_ref(const mt_hdbscan_options *options, int64_t n, int64_t d,
                               const float *points, mt_edge *tree_out,
                               double *core_out);

/* Sorts edges by (weight, a, b). No two are equal. Errors: MT_ERR_MEMORY (as much again). */
mt_status mt_edges_sort(int64_t n, mt_edge *edges);

/**
 * Which points are the same point: every distinct one has a first (the lowest index) and a
 * count. -0 equals +0. Distinct points are numbered by their first. O(n) by hashing.
 */
typedef struct mt_distinct {
  int64_t n;      /* distinct points */
  int64_t *first; /* (n) ascending; owned */
  int64_t *count; /* (n) >= 1; owned */
  int64_t *of;    /* (points) the distinct point of each; owned */
} mt_distinct;
mt_status mt_distinct_find(int64_t n, int64_t d, const float *points,
                           mt_distinct *distinct_out);
void mt_distinct_destroy(
    mt_distinct *distinct); /* frees the arrays; empties the struct */

/**
 * Single linkage: merge i joins two nodes at a distance. Nodes 0..n-1 are the points,
 * node n + i is merge i; the last merge is the root.
 */
typedef struct mt_merge {
  int64_t left, right; /* the sides of the edge's a and b */
  int64_t size;        /* points below */
  double distance;
} mt_merge;

/* merges_out: (n - 1). tree: sorted by (weight, a, b), spanning. n >= 1.
 * Errors   MT_ERR_ARG if the edges hold a cycle or are not sorted */
mt_status mt_single_linkage(int64_t n, const mt_edge *tree, mt_merge *merges_out);

/**
 * What remains of the dendrogram when only splits into two parts of at least
 * min_cluster_size points count. Clusters are numbered from n (the root), breadth first;
 * a parent's rows come before its children's.
 */
struct mt_condensed_tree {
  int64_t n;          /* points */
  int64_t n_clusters; /* the root counted; 0 if n < 2 */
  int64_t n_rows;
  int64_t *parent; /* (n_rows) cluster; owned */
  int64_t *child;  /* (n_rows) a point (< n) or a cluster (> n); owned */
  double
      *lambda; /* (n_rows) 1 / distance at which child leaves parent; finite; owned */
  int64_t *child_size; /* (n_rows) points in child; owned */
};

/**
 * lambda of a distance of 0: twice the larger of 1 / (smallest distance above 0) and
 * 2^24 / (largest distance), so as if duplicates lay half a float32 step of the largest edge
 * apart; 1 if all distances are 0 (`largest` is; `smallest` is then not looked at). All other
 * lambdas are 1 / distance.
 */
double mt_lambda_of_zero(double smallest, double largest);

/* lambda_of_zero: of merges at a distance of 0. */
mt_status mt_condense(int64_t n, const mt_merge *merges, int64_t min_cluster_size,
                      double lambda_of_zero, mt_condensed_tree *tree_out);
/* Both steps from a spanning tree, which is NULL if n < 2. min_cluster_size >= 2. */
mt_status mt_condensed_tree_find(int64_t min_cluster_size, int64_t n,
                                 const mt_edge *tree, mt_condensed_tree *tree_out);
void mt_condensed_tree_destroy(
    mt_condensed_tree *tree); /* frees the arrays; empties it */

/* MT_ERR_ARG if an option is out of range. */
mt_status mt_hdbscan_check(const mt_hdbscan_options *options);

/* The result for n points, or a rank's share of it: what is said of points and of rows of the
 * tree is there for the points and rows that are here alone. */
struct mt_clusters {
  int64_t n, n_clusters;
  int64_t n_noise; /* points labelled -1, of all */
  mt_part points;  /* those that are here */
  mt_part rows;    /* those of tree.n_rows that are here */
  int32_t
      *labels; /* (points.count) 0..n_clusters-1 by ascending number in the condensed
                      tree; -1 noise; owned */
  double *probabilities;  /* (points.count) in [0, 1], 0 for noise; owned */
  double *outlier_scores; /* (points.count) GLOSH, in [0, 1]; owned */
  double *
      persistence; /* (n_clusters) stability / (labelled points x largest lambda); owned */
  mt_condensed_tree tree; /* its arrays: (rows.count) */
};

/**
 * Labels and scores from a spanning tree, of all points. Not collective: every rank may do it
 * for itself.
 * tree     (n - 1) sorted by (weight, a, b); NULL if n < 2
 * n >= 0; fewer points than min_cluster_size, or 0 or 1 points: all noise, MT_OK.
 * Errors   MT_ERR_ARG (options out of range, not a tree), MT_ERR_MEMORY
 */
mt_status mt_clusters_find(const mt_hdbscan_options *options, int64_t n,
                           const mt_edge *tree, mt_clusters *clusters_out);
/* Likewise from a condensed tree, which the clusters take over, also when this fails. */
mt_status mt_clusters_select(const mt_hdbscan_options *options, mt_condensed_tree *tree,
                             mt_clusters *clusters_out);
void mt_clusters_destroy(
    mt_clusters *clusters); /* frees the arrays; empties the struct */

/* Of a whole result, leaves the part of one of `size` ranks (mt_part_of). Not collective. */
mt_status mt_clusters_keep_part(int size, int rank, mt_clusters *clusters);
/* The other way: whole on every rank again. Collective. Errors MT_ERR_MEMORY, agreed. */
mt_status mt_clusters_gather(const mt_comm *comm, mt_clusters *clusters);

/* mt_backend.clusters by way of the table's spanning_tree and condensed_tree. */
mt_status mt_clusters_by_steps(mt_backend *be, const mt_comm *comm,
                               const mt_hdbscan_options *options, int64_t n, int64_t d,
                               const float *points, mt_clusters *clusters_out);

/**
 * All of it: points to clusters, by a backend. Collective over comm; the same bits for any
 * number of ranks.
 * points        (n, d) float32, whole on every rank
 * clusters_out  this rank's part (mt_part_of) of the points and of the tree's rows
 * Errors   MT_ERR_INPUT naming the first point that is not finite; MT_ERR_ARG; MT_STOPPED
 */
mt_status mt_hdbscan(mt_backend *be, const mt_comm *comm,
                     const mt_hdbscan_options *options, int64_t n, int64_t d,
                     const float *points, mt_clusters *clusters_out);

#endif
