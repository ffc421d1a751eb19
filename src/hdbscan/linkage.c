#include "hdbscan/hdbscan.h"
#include "base/memory.h"

#include <stdlib.h>

/* The root of a tree of parents; what is passed on the way then points straight to it. */
static int64_t find_root(int64_t *parent, int64_t node)
{
  int64_t root = node;
  while (parent[root] >= 0) root = parent[root];
  while (node != root) {
    int64_t up = parent[node];
    parent[node] = root;
    node = up;
  }
  return root;
}

static bool is_ordered(int64_t n, const mt_edge *tree, int64_t i)
{
  const mt_edge *edge = &tree[i], *before = edge - 1;
  return edge->a >= 0 && edge->a < edge->b && edge->b < n && edge->weight >= 0.0 &&
         (i == 0 || mt_edge_before(before->weight, before->a, before->b, edge->weight,
                                   edge->a, edge->b));
}

mt_status mt_single_linkage(int64_t n, const mt_edge *tree, mt_merge *merges_out)
{
  mt_status status = MT_OK;
  int64_t *parent = NULL;

  MT_NEW(parent, 2 * n);
  for (int64_t i = 0; i < 2 * n; i++) parent[i] = -1;
  for (int64_t i = 0; i < n - 1; i++) {
    MT_REQUIRE(is_ordered(n, tree, i), MT_ERR_ARG,
               "spanning tree: edge %lld is not in order", (long long)i);
    int64_t left = find_root(parent, tree[i].a), right = find_root(parent, tree[i].b);
    MT_REQUIRE(left != right, MT_ERR_ARG, "spanning tree: edge %lld closes a cycle",
               (long long)i);
    parent[left] = parent[right] = n + i;
    int64_t size = (left < n ? 1 : merges_out[left - n].size) +
                   (right < n ? 1 : merges_out[right - n].size);
    merges_out[i] = (mt_merge){left, right, size, tree[i].weight};
  }
done:
  free(parent);
  return status;
}
