#include "hdbscan_condense.h"

mt_dendrogram_view mt_dendrogram_look(const mt_dendrogram *t)
{
  return {(uint32_t)t->n, t->hangs_on.data, t->first.data, t->last.data, t->chain.data,
          t->merge.data,  t->left.data,     t->right.data, t->size.data};
}

/* What the rounds change. */
typedef struct contraction {
  int64_t n;                     /* components */
  int64_t n_edges;               /* not yet contracted */
  mt_array<uint32_t> edge;       /* (n_edges) them, ascending */
  mt_array<uint32_t> a, b;       /* (m) by edge: the components of its points */
  mt_array<uint32_t> parent;     /* (components) */
  mt_array<int32_t> is_root;     /* (components) */
  mt_array<int64_t> number;      /* (components + 1) roots before */
  mt_array<uint8_t> is_left;     /* (n_edges) not contracted in this round */
  mt_array<int32_t> left;        /* (n_edges) those edges' places in `edge` */
  mt_array<uint32_t> edge_after; /* (n_edges) */
} contraction;

static mt_status contraction_create(mt_gpu *gpu, const mt_dendrogram *t, contraction *c)
{
  c->n = t->n;
  c->n_edges = t->m;
  MT_PASS(c->edge.make(gpu, t->m, "edges"));
  MT_PASS(c->edge_after.make(gpu, t->m, "edges"));
  MT_PASS(c->a.make(gpu, t->m, "edges"));
  MT_PASS(c->b.make(gpu, t->m, "edges"));
  MT_PASS(c->parent.make(gpu, t->n, "components"));
  MT_PASS(c->is_root.make(gpu, t->n, "components"));
  MT_PASS(c->number.make(gpu, t->n + 1, "components"));
  MT_PASS(c->is_left.make(gpu, t->m, "edges"));
  MT_PASS(c->left.make(gpu, t->m, "edges"));
  const mt_edge *tree = t->tree.data;
  uint32_t *edge = c->edge.data, *a = c->a.data, *b = c->b.data;
  return mt_gpu_each(gpu, t->m, [=] __device__(int64_t e) {
    edge[e] = (uint32_t)e;
    a[e] = (uint32_t)tree[e].a;
    b[e] = (uint32_t)tree[e].b;
  });
}

static mt_status check_order(mt_gpu *gpu, const mt_dendrogram *t)
{
  const mt_edge *tree = t->tree.data;
  int64_t n = t->n, wrong = 0;
  mt_array<uint64_t> first;
  MT_PASS(first.make(gpu, 1, "order of edges"));
  uint64_t *found = first.data;
  MT_CUDA(cudaMemsetAsync(found, 0xff, sizeof *found, gpu->stream));
  MT_PASS(mt_gpu_each(gpu, t->m, [=] __device__(int64_t e) {
    mt_edge edge = tree[e], before = tree[e > 0 ? e - 1 : 0];
    bool right = edge.a >= 0 && edge.a < edge.b && edge.b < n && edge.weight >= 0.0 &&
                 (e == 0 || mt_edge_before(before.weight, before.a, before.b,
                                           edge.weight, edge.a, edge.b));
    if (!right) atomicMin((unsigned long long *)found, (unsigned long long)e);
  }));
  MT_PASS(mt_to_host(gpu, 1, (const int64_t *)found, &wrong));
  if (wrong >= 0)
    return mt_fail(MT_ERR_ARG, "spanning tree: edge %lld is not in order",
                   (long long)wrong);
  return MT_OK;
}

/* Every component's least edge out. */
static mt_status choose_edges(mt_gpu *gpu, const contraction *c, uint32_t *least)
{
  const uint32_t *edge = c->edge.data, *a = c->a.data, *b = c->b.data;
  MT_CUDA(cudaMemsetAsync(least, 0xff, (size_t)c->n * sizeof *least, gpu->stream));
  return mt_gpu_each(gpu, c->n_edges, [=] __device__(int64_t i) {
    uint32_t e = edge[i];
    if (e < *(volatile uint32_t *)(least + a[e])) atomicMin(least + a[e], e);
    if (e < *(volatile uint32_t *)(least + b[e])) atomicMin(least + b[e], e);
  });
}

/* Numbers of the components that the edges make; of two that chose the same edge the lower is
 * a root. In a graph that is no tree so is one without an edge, or with one to itself. */
static mt_status find_roots(mt_gpu *gpu, const contraction *c, const uint32_t *least)
{
  const uint32_t *a = c->a.data, *b = c->b.data;
  uint32_t *parent = c->parent.data;
  int32_t *is_root = c->is_root.data;
  MT_PASS(mt_gpu_each(gpu, c->n, [=] __device__(int64_t i) {
    uint32_t e = least[i], self = (uint32_t)i;
    uint32_t other = e == mt_none ? self : a[e] == self ? b[e] : a[e];
    bool root = self == other || (least[other] == e && self < other);
    is_root[i] = root;
    parent[i] = root ? self : other;
  }));
  for (int64_t jumped = 1; jumped < c->n; jumped *= 2) /* halves all ways to a root */
    MT_PASS(mt_gpu_each(gpu, c->n,
                        [=] __device__(int64_t i) { parent[i] = parent[parent[i]]; }));
  return mt_gpu_scan(gpu, c->n, is_root, c->number.data);
}

/* Chosen edges learn their sides (a chain, or mt_none: the merge below in their own chain) and
 * the chain to begin with; the others, whose list follows, their new components. */
static mt_status contract(mt_gpu *gpu, int64_t chains, int64_t chains_after,
                          contraction *c, mt_dendrogram *t)
{
  const uint32_t *edge = c->edge.data, *parent = c->parent.data,
                 *least = t->hangs_on.data + chains;
  const int64_t *number = c->number.data;
  uint32_t *a = c->a.data, *b = c->b.data, *left = t->left.data, *right = t->right.data,
           *chain = t->chain.data, *above = t->above.data + chains;
  uint8_t *is_left = c->is_left.data;
  MT_PASS(mt_gpu_each(gpu, c->n, [=] __device__(int64_t i) {
    above[i] = (uint32_t)(chains_after + number[parent[i]]);
  }));
  return mt_gpu_each(gpu, c->n_edges, [=] __device__(int64_t i) {
    uint32_t e = edge[i], p = a[e], q = b[e];
    bool by_a = least[p] == e, by_b = least[q] == e;
    is_left[i] = !by_a && !by_b;
    left[e] = by_a ? (uint32_t)(chains + p) : mt_none;
    right[e] = by_b ? (uint32_t)(chains + q) : mt_none;
    chain[e] = above[p];
    a[e] = (uint32_t)number[parent[p]];
    b[e] = (uint32_t)number[parent[q]];
  });
}

static mt_status keep_rest(mt_gpu *gpu, contraction *c)
{
  int64_t count = 0;
  MT_PASS(mt_gpu_select(gpu, c->n_edges, c->is_left.data, c->left.data, &count));
  const uint32_t *from = c->edge.data;
  const int32_t *left = c->left.data;
  uint32_t *to = c->edge_after.data;
  MT_PASS(
      mt_gpu_each(gpu, count, [=] __device__(int64_t i) { to[i] = from[left[i]]; }));
  c->edge.swap(c->edge_after);
  c->n_edges = count;
  return MT_OK;
}

/* All rounds. After them t->chain is by edge: where its way up begins. */
static mt_status contract_all(mt_gpu *gpu, mt_dendrogram *t)
{
  contraction c;
  MT_PASS(contraction_create(gpu, t, &c));
  t->chains[0] = 0;
  for (t->n_rounds = 0; c.n > 1; t->n_rounds++) {
    int64_t chains = t->chains[t->n_rounds], after = chains + c.n, n_roots = 0;
    MT_PASS(choose_edges(gpu, &c, t->hangs_on.data + chains));
    MT_PASS(find_roots(gpu, &c, t->hangs_on.data + chains));
    MT_PASS(mt_to_host(gpu, 1, c.number.data + c.n, &n_roots));
    if (2 * n_roots > c.n)
      return mt_fail(MT_ERR_ARG, "spanning tree: its edges close a cycle");
    MT_PASS(contract(gpu, chains, after, &c, t));
    MT_PASS(keep_rest(gpu, &c));
    t->chains[t->n_rounds + 1] = after;
    c.n = n_roots;
  }
  MT_CUDA(cudaMemsetAsync(t->hangs_on.data + t->chains[t->n_rounds], 0xff,
                          sizeof(uint32_t), gpu->stream));
  return MT_OK;
}

/* Every edge goes up to the first chain that hangs on a heavier one. */
static mt_status find_chains(mt_gpu *gpu, mt_dendrogram *t)
{
  const uint32_t *hangs_on = t->hangs_on.data, *above = t->above.data;
  uint32_t *chain = t->chain.data, *merge = t->merge.data, *first = t->first.data,
           *last = t->last.data;
  int64_t m = t->m, n_chains = t->chains[t->n_rounds] + 1;
  int bits = 1;
  while (n_chains >> bits != 0) bits++;
  MT_PASS(mt_gpu_each(gpu, m, [=] __device__(int64_t e) {
    uint32_t at = chain[e];
    while (hangs_on[at] < (uint32_t)e) at = above[at];
    chain[e] = at;
    merge[e] = (uint32_t)e;
  }));
  MT_PASS(mt_gpu_sort_pairs(gpu, m, chain, merge, 0, bits));
  return mt_gpu_each(gpu, m, [=] __device__(int64_t i) {
    uint32_t at = chain[i];
    if (i == 0 || chain[i - 1] != at) first[at] = (uint32_t)i;
    if (i + 1 == m || chain[i + 1] != at) last[at] = (uint32_t)i;
  });
}

/* Where the chains of each round begin; none of them is empty but the points'. */
static mt_status find_places(mt_gpu *gpu, mt_dendrogram *t)
{
  t->places[0] = t->places[1] = 0;
  for (int round = 2; round <= t->n_rounds; round++) {
    uint32_t place = 0;
    MT_PASS(mt_to_host(gpu, 1, t->first.data + t->chains[round], &place));
    t->places[round] = place;
  }
  t->places[t->n_rounds + 1] = t->m;
  return MT_OK;
}

/* Chains of sides become nodes. */
static mt_status find_sides(mt_gpu *gpu, mt_dendrogram *t)
{
  const mt_dendrogram_view view = mt_dendrogram_look(t);
  uint32_t *left = t->left.data, *right = t->right.data;
  return mt_gpu_each(gpu, t->m, [=] __device__(int64_t place) {
    uint32_t e = view.merge[place], p = left[e], q = right[e];
    uint32_t below = mt_node_below(view, place);
    left[e] = p == mt_none ? below : p < view.n ? p : view.n + view.merge[view.last[p]];
    right[e] = q == mt_none ? below
               : q < view.n ? q
                            : view.n + view.merge[view.last[q]];
  });
}

/* Along a chain each merge adds what joins it from the side; those are of earlier rounds. */
static mt_status find_sizes(mt_gpu *gpu, mt_dendrogram *t)
{
  const mt_dendrogram_view view = mt_dendrogram_look(t);
  uint32_t *size = t->size.data;
  mt_array<int32_t> gains;
  mt_array<int64_t> sums;
  MT_PASS(gains.make(gpu, t->m, "sizes"));
  MT_PASS(sums.make(gpu, t->m + 1, "sizes"));
  int32_t *gain = gains.data;
  int64_t *sum = sums.data;
  for (int round = 1; round <= t->n_rounds; round++) {
    int64_t first = t->places[round], count = t->places[round + 1] - first;
    MT_PASS(mt_gpu_each(gpu, count, [=] __device__(int64_t i) {
      uint32_t e = view.merge[first + i], below = mt_node_below(view, first + i);
      uint32_t left = view.left[e], right = view.right[e];
      gain[i] = (int32_t)((left == below ? 0 : mt_size_of(view, left)) +
                          (right == below ? 0 : mt_size_of(view, right)));
    }));
    MT_PASS(mt_gpu_scan(gpu, count, gain, sum));
    MT_PASS(mt_gpu_each(gpu, count, [=] __device__(int64_t i) {
      int64_t begin = (int64_t)view.first[view.chain[first + i]] - first;
      size[view.merge[first + i]] = (uint32_t)(sum[i + 1] - sum[begin]);
    }));
  }
  return MT_OK;
}

mt_status mt_dendrogram_create(mt_gpu *gpu, int64_t n, mt_dendrogram *t)
{
  t->n = n;
  t->m = n - 1;
  MT_PASS(t->hangs_on.make(gpu, 2 * n, "dendrogram"));
  MT_PASS(t->above.make(gpu, 2 * n, "dendrogram"));
  MT_PASS(t->first.make(gpu, 2 * n, "dendrogram"));
  MT_PASS(t->last.make(gpu, 2 * n, "dendrogram"));
  MT_PASS(t->chain.make(gpu, t->m, "dendrogram"));
  MT_PASS(t->merge.make(gpu, t->m, "dendrogram"));
  MT_PASS(t->left.make(gpu, t->m, "dendrogram"));
  MT_PASS(t->right.make(gpu, t->m, "dendrogram"));
  MT_PASS(t->size.make(gpu, t->m, "dendrogram"));
  MT_PASS(check_order(gpu, t));
  MT_PASS(contract_all(gpu, t));
  MT_PASS(find_chains(gpu, t));
  MT_PASS(find_places(gpu, t));
  MT_PASS(find_sides(gpu, t));
  return find_sizes(gpu, t);
}
