#include "hdbscan.h"
#include "hdbscan_condense.h"

/* What is found going down the dendrogram, by merge. Only merges that are split are of use:
 * the root, and those of min_size points or more; each is split after the one above it. */
typedef struct descent {
  mt_dendrogram tree;
  int64_t min_size;
  double lambda_of_zero;
  mt_array<uint32_t>
      start; /* in the points' order, left before right: its first place */
  mt_array<uint32_t> depth; /* below the root */
  mt_array<uint32_t> owner; /* the merge that its cluster is born as: itself or above */
  mt_array<uint8_t> born;   /* by place: is it a cluster's birth? */
  int64_t n_split;
  mt_array<uint32_t> split;   /* (n_split) merges in the order of a queue */
  mt_array<uint32_t> cluster; /* by merge that is born: its number */
  mt_array<int64_t> row;      /* (n_split + 1) rows before */
} descent;

/* For kernels: both sides of a merge. */
typedef struct sides {
  uint32_t left, right, left_size, right_size;
} sides;

static __device__ sides sides_of(const mt_dendrogram_view &t, uint32_t merge)
{
  uint32_t left = t.left[merge], right = t.right[merge];
  return {left, right, mt_size_of(t, left), mt_size_of(t, right)};
}

/* A side is a new cluster if both are large. */
static mt_status find_births(mt_gpu *gpu, descent *d)
{
  const mt_dendrogram_view t = mt_dendrogram_look(&d->tree);
  int64_t min_size = d->min_size;
  uint8_t *born = d->born.data;
  MT_PASS(d->born.make(gpu, d->tree.m, "condensed tree"));
  born = d->born.data;
  return mt_gpu_each(gpu, d->tree.m, [=] __device__(int64_t place) {
    uint32_t above = mt_merge_above(t, place);
    born[place] = 0;
    if (above == mt_none) return;
    sides s = sides_of(t, above);
    born[place] = s.left_size >= min_size && s.right_size >= min_size;
  });
}

/* By place: the places of births, ascending; and how many are before each place. */
static mt_status list_births(mt_gpu *gpu, const descent *d, mt_array<int32_t> *list,
                             mt_array<int64_t> *before, int64_t *count_out)
{
  int64_t m = d->tree.m;
  mt_array<int32_t> flags;
  MT_PASS(list->make(gpu, m, "condensed tree"));
  MT_PASS(before->make(gpu, m + 1, "condensed tree"));
  MT_PASS(flags.make(gpu, m, "condensed tree"));
  const uint8_t *born = d->born.data;
  int32_t *flag = flags.data;
  MT_PASS(mt_gpu_each(gpu, m, [=] __device__(int64_t i) { flag[i] = born[i]; }));
  MT_PASS(mt_gpu_scan(gpu, m, flag, before->data));
  return mt_gpu_select(gpu, m, born, list->data, count_out);
}

/* Along a chain, going down, the first place moves on by what joins from the left. */
static mt_status sum_shifts(mt_gpu *gpu, const descent *d, int64_t *sums)
{
  const mt_dendrogram_view t = mt_dendrogram_look(&d->tree);
  mt_array<int32_t> shifts;
  MT_PASS(shifts.make(gpu, d->tree.m, "condensed tree"));
  int32_t *shift = shifts.data;
  MT_PASS(mt_gpu_each(gpu, d->tree.m, [=] __device__(int64_t place) {
    sides s = sides_of(t, t.merge[place]);
    shift[place] = s.right == mt_node_below(t, place) ? (int32_t)s.left_size : 0;
  }));
  return mt_gpu_scan(gpu, d->tree.m, shift, sums);
}

/* Starts, depths and owners: chains of the last rounds first, which others hang on. */
static mt_status go_down(mt_gpu *gpu, descent *d)
{
  const mt_dendrogram_view t = mt_dendrogram_look(&d->tree);
  mt_array<int64_t> sums, births_before;
  mt_array<int32_t> births;
  int64_t n_births = 0;
  uint32_t *start = d->start.data, *depth = d->depth.data, *owner = d->owner.data;
  MT_PASS(find_births(gpu, d));
  MT_PASS(list_births(gpu, d, &births, &births_before, &n_births));
  MT_PASS(sums.make(gpu, d->tree.m + 1, "condensed tree"));
  MT_PASS(sum_shifts(gpu, d, sums.data));
  const int64_t *sum = sums.data, *before = births_before.data;
  const int32_t *birth = births.data;
  for (int round = d->tree.n_rounds; round >= 1; round--) {
    int64_t first = d->tree.places[round], next = d->tree.places[round + 1];
    MT_PASS(mt_gpu_each(gpu, next - first, [=] __device__(int64_t i) {
      int64_t place = first + i, last = t.last[t.chain[place]];
      uint32_t e = t.merge[place], above = t.hangs_on[t.chain[place]];
      uint32_t top_start = 0, top_depth = 0, top_owner = t.merge[last];
      if (above != mt_none) {
        sides s = sides_of(t, above);
        bool on_left = s.left == t.n + t.merge[last];
        top_start = start[above] + (on_left ? 0 : s.left_size);
        top_depth = depth[above] + 1;
        top_owner = owner[above];
      }
      int64_t next_birth = before[place] < n_births ? birth[before[place]] : INT32_MAX;
      start[e] = top_start + (uint32_t)(sum[last + 1] - sum[place + 1]);
      depth[e] = top_depth + (uint32_t)(last - place);
      owner[e] = next_birth <= last ? t.merge[next_birth] : top_owner;
    }));
  }
  return MT_OK;
}

/* As a queue would have them: by depth, then from left to right. */
static mt_status order_splits(mt_gpu *gpu, descent *d)
{
  const mt_dendrogram_view t = mt_dendrogram_look(&d->tree);
  const uint32_t *start = d->start.data, *depth = d->depth.data;
  int64_t m = d->tree.m, min_size = d->min_size;
  mt_array<uint8_t> flags;
  mt_array<int32_t> list;
  mt_array<uint64_t> keys;
  MT_PASS(flags.make(gpu, m, "condensed tree"));
  MT_PASS(list.make(gpu, m, "condensed tree"));
  uint8_t *flag = flags.data;
  MT_PASS(mt_gpu_each(gpu, m, [=] __device__(int64_t e) {
    flag[e] = e + 1 == m || t.size[e] >= min_size;
  }));
  MT_PASS(mt_gpu_select(gpu, m, flag, list.data, &d->n_split));
  MT_PASS(keys.make(gpu, d->n_split, "condensed tree"));
  MT_PASS(d->split.make(gpu, d->n_split, "condensed tree"));
  const int32_t *from = list.data;
  uint32_t *split = d->split.data;
  uint64_t *key = keys.data;
  MT_PASS(mt_gpu_each(gpu, d->n_split, [=] __device__(int64_t i) {
    split[i] = (uint32_t)from[i];
    key[i] = (uint64_t)depth[from[i]] << 32 | start[from[i]];
  }));
  return mt_gpu_sort_pairs(gpu, d->n_split, key, split, 0, 64);
}

/* Clusters are numbered as they are born, after the root; rows follow the queue. */
static mt_status number_clusters(mt_gpu *gpu, descent *d, int64_t *n_clusters_out)
{
  const mt_dendrogram_view t = mt_dendrogram_look(&d->tree);
  int64_t min_size = d->min_size, n = d->tree.n, count = d->n_split, n_births = 0;
  const uint32_t *split = d->split.data, *owner = d->owner.data;
  mt_array<int32_t> flags, sizes;
  mt_array<int64_t> sums;
  MT_PASS(flags.make(gpu, count, "condensed tree"));
  MT_PASS(sizes.make(gpu, count, "condensed tree"));
  MT_PASS(sums.make(gpu, count + 1, "condensed tree"));
  MT_PASS(d->row.make(gpu, count + 1, "condensed tree"));
  MT_PASS(d->cluster.make(gpu, d->tree.m, "condensed tree"));
  int32_t *flag = flags.data, *rows = sizes.data;
  int64_t *sum = sums.data;
  uint32_t *cluster = d->cluster.data;
  MT_PASS(mt_gpu_each(gpu, count, [=] __device__(int64_t i) {
    sides s = sides_of(t, split[i]);
    bool left = s.left_size >= min_size, right = s.right_size >= min_size;
    flag[i] = i > 0 && owner[split[i]] == split[i];
    rows[i] = (int32_t)((left ? right : s.left_size) + (right ? left : s.right_size));
  }));
  MT_PASS(mt_gpu_scan(gpu, count, flag, sum));
  MT_PASS(mt_gpu_scan(gpu, count, rows, d->row.data));
  MT_PASS(mt_gpu_each(gpu, count, [=] __device__(int64_t i) {
    if (flag[i] != 0 || i == 0) cluster[split[i]] = (uint32_t)(n + sum[i + 1]);
  }));
  MT_PASS(mt_to_host(gpu, 1, sum + count, &n_births));
  *n_clusters_out = n_births + 1;
  return MT_OK;
}

typedef struct table_view {
  int64_t *parent, *child, *size;
  double *lambda;
} table_view;

/* Rows of the clusters that are born; for sides that fall out, the first row of each, by its
 * first place in the points' order, where `head` is 1. */
static mt_status write_clusters(mt_gpu *gpu, const descent *d, table_view out,
                                int64_t *side_row, int32_t *head)
{
  const mt_dendrogram_view t = mt_dendrogram_look(&d->tree);
  const mt_edge *tree = d->tree.tree.data;
  const uint32_t *split = d->split.data, *owner = d->owner.data, *start = d->start.data,
                 *cluster = d->cluster.data;
  const int64_t *row = d->row.data;
  int64_t min_size = d->min_size;
  double of_zero = d->lambda_of_zero;
  return mt_gpu_each(gpu, d->n_split, [=] __device__(int64_t i) {
    uint32_t e = split[i];
    sides s = sides_of(t, e);
    double distance = tree[e].weight,
           lambda = distance > 0.0 ? 1.0 / distance : of_zero;
    int64_t at = row[i], place = start[e], parent = cluster[owner[e]];
    bool both = s.left_size >= min_size && s.right_size >= min_size;
    for (int side = 0; side < 2; side++) {
      uint32_t node = side == 0 ? s.left : s.right,
               size = side == 0 ? s.left_size : s.right_size;
      if (size < min_size) {
        side_row[place] = at;
        head[place] = 1;
        out.parent[at] = parent; /* the side's other rows copy these */
        out.lambda[at] = lambda;
        at += size;
      } else if (both) {
        out.parent[at] = parent;
        out.child[at] = cluster[node - t.n];
        out.lambda[at] = lambda;
        out.size[at] = size;
        at++;
      }
      place += size;
    }
  });
}

/* The points in the dendrogram's order. */
static mt_status order_points(mt_gpu *gpu, const descent *d, uint32_t *order)
{
  const mt_dendrogram_view t = mt_dendrogram_look(&d->tree);
  const uint32_t *start = d->start.data;
  return mt_gpu_each(gpu, d->tree.m, [=] __device__(int64_t e) {
    sides s = sides_of(t, (uint32_t)e);
    if (s.left < t.n) order[start[e]] = s.left;
    if (s.right < t.n) order[start[e] + s.left_size] = s.right;
  });
}

/* Every point falls out once: with the last head at or before its place. */
static mt_status write_points(mt_gpu *gpu, const descent *d, const uint32_t *order,
                              const int64_t *side_row, const int32_t *head,
                              table_view out)
{
  int64_t n = d->tree.n;
  mt_array<int64_t> sums;
  mt_array<uint32_t> firsts;
  MT_PASS(sums.make(gpu, n + 1, "condensed tree"));
  MT_PASS(firsts.make(gpu, n, "condensed tree"));
  int64_t *sum = sums.data;
  uint32_t *first = firsts.data;
  MT_PASS(mt_gpu_scan(gpu, n, head, sum));
  MT_PASS(mt_gpu_each(gpu, n, [=] __device__(int64_t i) {
    if (head[i] != 0) first[sum[i]] = (uint32_t)i;
  }));
  return mt_gpu_each(gpu, n, [=] __device__(int64_t i) {
    int64_t begin = first[sum[i + 1] - 1], row = side_row[begin], at = row + i - begin;
    out.parent[at] = out.parent[row];
    out.lambda[at] = out.lambda[row];
    out.child[at] = order[i];
    out.size[at] = 1;
  });
}

static mt_status write_rows(mt_gpu *gpu, const descent *d, mt_condensed_rows *out)
{
  int64_t n = d->tree.n;
  mt_array<uint32_t> order;
  mt_array<int64_t> side_row;
  mt_array<int32_t> head;
  MT_PASS(mt_to_host(gpu, 1, d->row.data + d->n_split, &out->n_rows));
  MT_PASS(out->parent.make(gpu, out->n_rows, "condensed tree"));
  MT_PASS(out->child.make(gpu, out->n_rows, "condensed tree"));
  MT_PASS(out->size.make(gpu, out->n_rows, "condensed tree"));
  MT_PASS(out->lambda.make(gpu, out->n_rows, "condensed tree"));
  MT_PASS(order.make(gpu, n, "condensed tree"));
  MT_PASS(side_row.make(gpu, n, "condensed tree"));
  MT_PASS(head.make_zeroed(gpu, n, "condensed tree"));
  table_view view = {out->parent.data, out->child.data, out->size.data,
                     out->lambda.data};
  MT_PASS(write_clusters(gpu, d, view, side_row.data, head.data));
  MT_PASS(order_points(gpu, d, order.data));
  return write_points(gpu, d, order.data, side_row.data, head.data, view);
}

mt_status mt_rows_to_host(mt_gpu *gpu, const mt_condensed_rows *from, mt_part part,
                          mt_condensed_tree *tree_out)
{
  mt_status status = MT_OK;
  mt_condensed_tree tree = {};
  tree.n = from->n;
  tree.n_clusters = from->n_clusters;
  tree.n_rows = from->n_rows;
  MT_NEW(tree.parent, part.count);
  MT_NEW(tree.child, part.count);
  MT_NEW(tree.lambda, part.count);
  MT_NEW(tree.child_size, part.count);
  MT_TRY(mt_to_host(gpu, part.count, from->parent.data + part.first, tree.parent));
  MT_TRY(mt_to_host(gpu, part.count, from->child.data + part.first, tree.child));
  MT_TRY(mt_to_host(gpu, part.count, from->lambda.data + part.first, tree.lambda));
  MT_TRY(mt_to_host(gpu, part.count, from->size.data + part.first, tree.child_size));
  *tree_out = tree;
  memset(&tree, 0, sizeof tree);
done:
  mt_condensed_tree_destroy(&tree);
  return status;
}

static mt_status find_lambda_of_zero(mt_gpu *gpu, descent *d)
{
  const mt_edge *tree = d->tree.tree.data;
  int64_t m = d->tree.m;
  double ends[2] = {0.0, 0.0};
  mt_array<double> both;
  MT_PASS(both.make_zeroed(gpu, 2, "condensed tree"));
  double *out = both.data;
  MT_PASS(mt_gpu_each(gpu, m, [=] __device__(int64_t e) {
    double weight = tree[e].weight;
    if (weight > 0.0 && (e == 0 || tree[e - 1].weight == 0.0)) out[0] = weight;
    if (e + 1 == m) out[1] = weight;
  }));
  MT_PASS(mt_to_host(gpu, 2, out, ends));
  d->lambda_of_zero = mt_lambda_of_zero(ends[0], ends[1]);
  return MT_OK;
}

mt_status mt_condense_rows(mt_gpu *gpu, int64_t min_cluster_size, int64_t n,
                           mt_array<mt_edge> *tree, mt_condensed_rows *rows_out)
{
  descent d;
  d.min_size = min_cluster_size;
  d.tree.tree.swap(*tree);
  MT_PASS(mt_dendrogram_create(gpu, n, &d.tree));
  MT_PASS(find_lambda_of_zero(gpu, &d));
  MT_PASS(d.start.make(gpu, n - 1, "condensed tree"));
  MT_PASS(d.depth.make(gpu, n - 1, "condensed tree"));
  MT_PASS(d.owner.make(gpu, n - 1, "condensed tree"));
  MT_PASS(go_down(gpu, &d));
  MT_PASS(order_splits(gpu, &d));
  MT_PASS(number_clusters(gpu, &d, &rows_out->n_clusters));
  rows_out->n = n;
  return write_rows(gpu, &d, rows_out);
}

int64_t mt_condense_bytes(int64_t n)
{
  int64_t dendrogram = 13 * (int64_t)sizeof(uint32_t) + (int64_t)sizeof(mt_edge);
  int64_t down = 6 * (int64_t)sizeof(uint32_t) + 1, rows = 4 * (int64_t)sizeof(int64_t);
  int64_t scratch = 4 * (int64_t)sizeof(int64_t);
  return n * (dendrogram + down + rows + scratch);
}

mt_status mt_cuda_condensed_tree(mt_backend *be, int64_t min_cluster_size, int64_t n,
                                 const mt_edge *tree, mt_condensed_tree *tree_out)
{
  mt_gpu *gpu = mt_gpu_of(be);
  mt_array<mt_edge> edges;
  mt_condensed_rows rows;
  if (n < 2 || n > INT32_MAX) /* nothing to do, or too large for a GPU */
    return mt_condensed_tree_find(min_cluster_size, n, tree, tree_out);
  if (min_cluster_size < 2)
    return mt_fail(MT_ERR_ARG, "min_cluster_size is %lld, and must be 2 or more",
                   (long long)min_cluster_size);
  MT_PASS(edges.make(gpu, n - 1, "edges"));
  MT_PASS(mt_to_device(gpu, n - 1, tree, edges.data));
  MT_PASS(mt_condense_rows(gpu, min_cluster_size, n, &edges, &rows));
  return mt_rows_to_host(gpu, &rows, {0, rows.n_rows}, tree_out);
}
