/* The dendrogram of a spanning tree on the device. Its merges are the tree's edges in their
 * order: merge e joins the sides of edge e. For the files cuda/hdbscan*.cu. Not collective.
 * Boruvka's rounds over the tree's own edges: in each, every component chooses its least edge
 * out, and is contracted with what lies at its other end. An edge that joins two clusters none
 * of which is a component of its round goes on to the next. So what a component's edges merge
 * in turn, up to the edge that it hangs on, is one chain: a path of the dendrogram, and all of
 * the dendrogram is chains that hang on one another. Scans along chains then give what is
 * found going up or down the dendrogram, round by round, however deep it is.
 * Source   Sao, Prokopenko, Lebrun-Grandie 2024 (PANDORA, arXiv 2401.06089) */
#ifndef MT_CUDA_HDBSCAN_CONDENSE_H
#define MT_CUDA_HDBSCAN_CONDENSE_H
#include "hdbscan_parts.h"

enum { MT_ROUNDS = 33 }; /* components at least halve */
static const uint32_t mt_none = UINT32_MAX;

/* Chains are numbered round by round: 0..n-1 are the points alone, which merge nothing; then
 * the components after the first round, in their order, and so on. The last is the root's.
 * Nodes are numbered as mt_merge's: 0..n-1 the points, n + e the merge of edge e. */
typedef struct mt_dendrogram {
  int64_t n, m; /* points; merges, n - 1 */
  int n_rounds;
  int64_t chains[MT_ROUNDS + 1]; /* chains before each round's */
  int64_t places[MT_ROUNDS + 1]; /* places before each round's chains */
  mt_array<mt_edge> tree;        /* (m) */
  mt_array<uint32_t> hangs_on; /* (2 n) by chain: the edge it hangs on; mt_none: root */
  mt_array<uint32_t> above;    /* (2 n) by chain: the component that it goes into */
  mt_array<uint32_t> first, last; /* (2 n) by chain: its places */
  mt_array<uint32_t> chain;       /* (m) by place: the chain there, ascending */
  mt_array<uint32_t> merge;       /* (m) by place: the merge there, a chain's upwards */
  mt_array<uint32_t> left,
      right;               /* (m) by merge: nodes on the sides of the edge's a, b */
  mt_array<uint32_t> size; /* (m) by merge: points below */
} mt_dendrogram;

/* What kernels ask of it. */
typedef struct mt_dendrogram_view {
  uint32_t n;
  const uint32_t *hangs_on, *first, *last, *chain, *merge, *left, *right, *size;
} mt_dendrogram_view;

mt_dendrogram_view mt_dendrogram_look(const mt_dendrogram *dendrogram);

static __device__ inline uint32_t mt_size_of(const mt_dendrogram_view &t, uint32_t node)
{
  return node < t.n ? 1 : t.size[node - t.n];
}

/* The merge below in the same chain, as a node; mt_none for the lowest. */
static __device__ inline uint32_t mt_node_below(const mt_dendrogram_view &t,
                                                int64_t place)
{
  return place > t.first[t.chain[place]] ? t.n + t.merge[place - 1] : mt_none;
}

/* The merge above; mt_none for the root. */
static __device__ inline uint32_t mt_merge_above(const mt_dendrogram_view &t,
                                                 int64_t place)
{
  uint32_t chain = t.chain[place];
  return place < t.last[chain] ? t.merge[place + 1] : t.hangs_on[chain];
}

/* dendrogram->tree holds n - 1 edges; 2 <= n < 2^31.
 * Errors   MT_ERR_ARG if they are no tree or not sorted; MT_ERR_MEMORY */
mt_status mt_dendrogram_create(mt_gpu *gpu, int64_t n, mt_dendrogram *dendrogram);

/* A condensed tree on the device, as mt_condensed_tree has it. */
typedef struct mt_condensed_rows {
  int64_t n, n_clusters, n_rows;
  mt_array<int64_t> parent, child, size;
  mt_array<double> lambda;
} mt_condensed_rows;

/* Likewise; tree: n - 1 edges, taken over. */
mt_status mt_condense_rows(mt_gpu *gpu, int64_t min_cluster_size, int64_t n,
                           mt_array<mt_edge> *tree, mt_condensed_rows *rows_out);
int64_t mt_condense_bytes(int64_t n); /* of device memory, the tree counted */
/* Some rows of it. */
mt_status mt_rows_to_host(mt_gpu *gpu, const mt_condensed_rows *rows, mt_part part,
                          mt_condensed_tree *tree_out);

/* Labels and scores of clusters->points from it; clusters->n is n, all is noise so far. */
mt_status mt_select_on_gpu(mt_gpu *gpu, const mt_hdbscan_options *options,
                           const mt_condensed_rows *rows, mt_clusters *clusters);

#endif
