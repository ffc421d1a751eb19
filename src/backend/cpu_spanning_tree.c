/* Minimum spanning tree of mutual reachability: a kd-tree over the distinct points gives
 * core distances, then Boruvka rounds join every component by its least edge. Each rank
 * searches for its share of the leaves, its threads for a leaf at a time.
 * The edges are those of the one tree that is least in the order (weight^2, a, b) over the
 * distinct points, a duplicate hanging on its first, so who searched what does not show.
 * Source   Boruvka by one query a point with bounds that components share: Prokopenko,
 *          Sao, Lebrun-Grandie 2022 (arXiv 2207.00514) */
#include "backend/backend.h"
#include "backend/cpu_kdtree.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/search.h"
#include "hdbscan/hdbscan.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NEARBY = 64 };

typedef struct space {
  mt_distinct distinct;
  bool has_twins;                /* fewer distinct points than points */
  mt_kdtree tree;                /* over the firsts of the distinct points */
  int64_t min_samples;           /* at most the points less one */
  double scale;                  /* 1 / alpha^2 */
  int64_t *position;             /* (n) of each distinct point */
  double *core2;                 /* (n) squared core distances by position */
  double *core2_low;             /* (nodes) the least below each node */
  int64_t first_leaf, last_leaf; /* this rank's share: [first, last) */
  float *scratch;                /* (threads, 2, d) */
} space;

/* What the rounds change. */
typedef struct forest {
  int64_t n;          /* components, numbered 0..n-1 */
  int64_t *component; /* (positions) */
  int64_t *pure;      /* (nodes) the one component below a node, or -1 */
  int64_t *nearest;   /* (positions) outside the component, as found; -1: none known */
  double *reach; /* (positions) weight^2 to it; if none: nothing outside is nearer */
  double *best;  /* (components) weight^2 of the least edge out known so far */
  int64_t *best_a, *best_b; /* (components) its points, a < b */
  int64_t *parent;          /* (components) for union-find, then the new number */
} forest;

static void space_destroy(space *s)
{
  mt_distinct_destroy(&s->distinct);
  mt_kdtree_destroy(&s->tree);
  free(s->position);
  free(s->core2);
  free(s->core2_low);
  free(s->scratch);
}

static void forest_destroy(forest *f)
{
  free(f->component);
  free(f->pure);
  free(f->nearest);
  free(f->reach);
  free(f->best);
  free(f->best_a);
  free(f->best_b);
  free(f->parent);
}

static mt_status space_create(const mt_comm *comm, const mt_hdbscan_options *options,
                              int64_t n, int64_t d, const float *points, space *s)
{
  mt_status status = MT_OK;
  MT_TRY(mt_distinct_find(n, d, points, &s->distinct));
  MT_TRY(mt_kdtree_build(s->distinct.n, d, points, s->distinct.first, &s->tree));
  s->has_twins = s->distinct.n < n;
  s->min_samples = options->min_samples < n - 1 ? options->min_samples : n - 1;
  s->scale = 1.0 / (options->alpha * options->alpha);
  s->first_leaf = mt_part_first(s->tree.n_leaves, comm->size, comm->rank);
  s->last_leaf = mt_part_first(s->tree.n_leaves, comm->size, comm->rank + 1);
  MT_NEW(s->position, s->distinct.n);
  MT_NEW(s->core2, s->distinct.n);
  MT_NEW(s->core2_low, 2 * s->tree.n_leaves);
  MT_NEW(s->scratch, 2 * omp_get_max_threads() * d);
  for (int64_t i = 0; i < s->distinct.n; i++)
    s->position[s->distinct.of[s->tree.order[i]]] = i;
done:
  return status;
}

static mt_status forest_create(const space *s, forest *f)
{
  mt_status status = MT_OK;
  int64_t n = s->distinct.n;
  f->n = n;
  MT_NEW(f->component, n);
  MT_NEW(f->pure, 2 * s->tree.n_leaves);
  MT_NEW(f->nearest, n);
  MT_NEW(f->reach, n);
  MT_NEW(f->best, n);
  MT_NEW(f->best_a, n);
  MT_NEW(f->best_b, n);
  MT_NEW(f->parent, n);
  for (int64_t i = 0; i < n; i++) {
    f->component[i] = i;
    f->nearest[i] = -1;
  }
done:
  return status;
}

/* A node still to look at, and how far it is at least. */
typedef struct pending {
  int64_t node;
  double gap2;
} pending;

/* Both children of a node, the nearer on top. */
static int push_children(const mt_kdtree *tree, int64_t node, const float *point,
                         int top, pending *stack)
{
  pending left = {2 * node, mt_kdtree_gap2(tree, 2 * node, point)};
  pending right = {2 * node + 1, mt_kdtree_gap2(tree, 2 * node + 1, point)};
  bool left_first = left.gap2 <= right.gap2;
  stack[top] = left_first ? right : left;
  stack[top + 1] = left_first ? left : right;
  return top + 2;
}

/* The leaves that the points of one leaf have to look at, nearest first. */
typedef struct nearby {
  int64_t n;
  pending leaf[MOST_NEARBY]; /* by number; gap2 between the boxes */
} nearby;

/* Below which nodes to look, from one of a component (-1: of several). */
typedef struct reach {
  const forest *forest; /* NULL: below all that are near */
  int64_t component;
  double limit, scale; /* gap2 * scale <= limit */
} reach;

/* Is `other` within reach of a node? The gap between them, then. */
static bool is_within(const space *s, const reach *within, int64_t node, int64_t other,
                      double *gap2_out)
{
  const forest *f = within->forest;
  if (f != NULL && within->component >= 0 && f->pure[other] == within->component)
    return false;
  if (f != NULL && s->core2_low[other] > within->limit) return false;
  *gap2_out = mt_kdtree_gap2_between(&s->tree, node, other);
  return *gap2_out * within->scale <= within->limit;
}

static void add_nearby(nearby *near, pending leaf)
{
  int64_t at = near->n++;
  for (; at > 0 && near->leaf[at - 1].gap2 > leaf.gap2; at--)
    near->leaf[at] = near->leaf[at - 1];
  near->leaf[at] = leaf;
}

/* False if there are too many. */
static bool find_nearby(const space *s, const reach *within, int64_t leaf,
                        nearby *near_out)
{
  int64_t n_leaves = s->tree.n_leaves, own = n_leaves + leaf;
  near_out->n = 0;
  if (within->limit == INFINITY) return false;
  for (int64_t up = own; up > 1; up /= 2) {
    int64_t stack[MT_KDTREE_DEPTH + 2] = {up ^ 1};
    for (int top = 1; top > 0;) {
      int64_t node = stack[--top];
      double gap2;
      if (!is_within(s, within, own, node, &gap2)) continue;
      if (node >= n_leaves) {
        if (near_out->n == MOST_NEARBY) return false;
        add_nearby(near_out, (pending){node - n_leaves, gap2});
      } else {
        stack[top++] = 2 * node;
        stack[top++] = 2 * node + 1;
      }
    }
  }
  return true;
}

/* ---- core distances ---------------------------------------------------------------- */

/* The nearest so far, a heap with the furthest on top; a distinct point counts `count`. */
typedef struct neighbour {
  double distance2;
  int64_t count;
} neighbour;

typedef struct neighbours {
  int64_t n, wanted;
  neighbour *heap; /* (wanted) */
} neighbours;

static double furthest(const neighbours *near)
{
  return near->n < near->wanted ? INFINITY : near->heap[0].distance2;
}

static void sift_down(neighbour *heap, int64_t n, neighbour item)
{
  int64_t at = 0;
  for (int64_t child = 1; child < n; child = 2 * at + 1) {
    if (child + 1 < n && heap[child + 1].distance2 > heap[child].distance2) child++;
    if (heap[child].distance2 <= item.distance2) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = item;
}

static void add_neighbour(neighbours *near, neighbour item)
{
  if (near->n == near->wanted) {
    sift_down(near->heap, near->n, item);
    return;
  }
  int64_t at = near->n++;
  for (; at > 0 && near->heap[(at - 1) / 2].distance2 < item.distance2;
       at = (at - 1) / 2)
    near->heap[at] = near->heap[(at - 1) / 2];
  near->heap[at] = item;
}

/* How many points are the one at a position. */
static int64_t count_at(const space *s, int64_t position)
{
  if (!s->has_twins) return 1;
  return s->distinct.count[s->distinct.of[s->tree.order[position]]];
}

/* self: position of the point that asks, not counted. */
static void scan_for_core(const space *s, int64_t leaf, int64_t self,
                          const float *point, neighbours *near)
{
  double distance2[MT_KDTREE_LEAF];
  int64_t first = s->tree.first[leaf], size = mt_kdtree_leaf_size(&s->tree, leaf);
  mt_kdtree_distances(&s->tree, leaf, point, distance2);
  for (int64_t i = 0; i < size; i++) {
    if (distance2[i] >= furthest(near) || first + i == self) continue;
    add_neighbour(near, (neighbour){distance2[i], count_at(s, first + i)});
  }
}

static void descend_for_core(const space *s, int64_t node, const float *point,
                             neighbours *near)
{
  pending stack[MT_KDTREE_DEPTH + 2] = {{node, mt_kdtree_gap2(&s->tree, node, point)}};
  for (int top = 1; top > 0;) {
    pending next = stack[--top];
    if (next.gap2 >= furthest(near)) continue;
    if (next.node >= s->tree.n_leaves)
      scan_for_core(s, next.node - s->tree.n_leaves, -1, point, near);
    else
      top = push_children(&s->tree, next.node, point, top, stack);
  }
}

/* The distance at which the counts, nearest first, reach `wanted`; uses up the heap. */
static double count_out(neighbours *near)
{
  neighbour *heap = near->heap;
  int64_t counted = 0;
  for (int64_t i = 0; i < near->n; i++) counted += heap[i].count;
  while (counted - heap[0].count >= near->wanted) {
    counted -= heap[0].count;
    near->n--;
    sift_down(heap, near->n, heap[near->n]);
  }
  return heap[0].distance2;
}

/* A point looks at what its own leaf has not shown: at leaves nearby, or (NULL) all. */
static double core2_of(const space *s, int64_t leaf, const nearby *leaves,
                       const float *point, neighbours *near)
{
  if (near->wanted <= 0) return 0.0;
  for (int64_t m = 0; leaves != NULL && m < leaves->n; m++) {
    const pending *next = &leaves->leaf[m];
    if (next->gap2 >= furthest(near)) break;
    if (mt_kdtree_gap2(&s->tree, s->tree.n_leaves + next->node, point) < furthest(near))
      scan_for_core(s, next->node, -1, point, near);
  }
  for (int64_t node = s->tree.n_leaves + leaf; leaves == NULL && node > 1; node /= 2)
    descend_for_core(s, node ^ 1, point, near);
  return count_out(near);
}

/* Core distances of a leaf's points. heaps: (MT_KDTREE_LEAF, min_samples). */
static void find_cores_of_leaf(space *s, int64_t leaf, float *point, neighbour *heaps)
{
  neighbours near[MT_KDTREE_LEAF];
  nearby leaves;
  reach within = {.scale = 1.0};
  int64_t first = s->tree.first[leaf], size = mt_kdtree_leaf_size(&s->tree, leaf);
  for (int64_t i = 0; i < size; i++) {
    near[i] = (neighbours){.wanted = s->min_samples - (count_at(s, first + i) - 1),
                           .heap = heaps + i * s->min_samples};
    if (near[i].wanted <= 0) continue;
    mt_kdtree_point(&s->tree, leaf, i, point);
    scan_for_core(s, leaf, first + i, point, &near[i]);
    if (furthest(&near[i]) > within.limit) within.limit = furthest(&near[i]);
  }
  bool few = find_nearby(s, &within, leaf, &leaves);
  for (int64_t i = 0; i < size; i++) {
    mt_kdtree_point(&s->tree, leaf, i, point);
    s->core2[first + i] = core2_of(s, leaf, few ? &leaves : NULL, point, &near[i]);
  }
}

static void find_least_cores(space *s)
{
  int64_t n_leaves = s->tree.n_leaves;
  for (int64_t leaf = 0; leaf < n_leaves; leaf++) {
    double least = INFINITY;
    for (int64_t i = s->tree.first[leaf]; i < s->tree.first[leaf + 1]; i++)
      least = s->core2[i] < least ? s->core2[i] : least;
    s->core2_low[n_leaves + leaf] = least;
  }
  for (int64_t node = n_leaves - 1; node >= 1; node--) {
    double left = s->core2_low[2 * node], right = s->core2_low[2 * node + 1];
    s->core2_low[node] = left < right ? left : right;
  }
}

/* Everyone learns everyone's core distances. */
static mt_status share_cores(const mt_comm *comm, space *s)
{
  mt_status status = MT_OK;
  size_t *bytes = NULL;
  MT_TRY(mt_agree(comm,
                  mt_memory_new(comm->size, sizeof *bytes, "bytes", (void **)&bytes)));
  for (int r = 0; r < comm->size; r++) {
    int64_t first = mt_part_first(s->tree.n_leaves, comm->size, r);
    int64_t last = mt_part_first(s->tree.n_leaves, comm->size, r + 1);
    bytes[r] = (size_t)(s->tree.first[last] - s->tree.first[first]) * sizeof *s->core2;
  }
  MT_TRY(mt_allgatherv(comm, bytes, s->core2));
  find_least_cores(s);
done:
  free(bytes);
  return status;
}

static mt_status find_cores(const mt_comm *comm, space *s)
{
  mt_status status = MT_OK;
  neighbour *heaps = NULL;
  int64_t each = MT_KDTREE_LEAF * s->min_samples;
  MT_TRY(mt_agree(comm, mt_memory_new(omp_get_max_threads() * each, sizeof *heaps,
                                      "heaps", (void **)&heaps)));
#pragma omp parallel for schedule(dynamic, 16)
  for (int64_t leaf = s->first_leaf; leaf < s->last_leaf; leaf++) {
    int thread = omp_get_thread_num();
    find_cores_of_leaf(s, leaf, s->scratch + 2 * thread * s->tree.d,
                       heaps + thread * each);
  }
  MT_TRY(share_cores(comm, s));
done:
  free(heaps);
  return status;
}

/* ---- Boruvka rounds ---------------------------------------------------------------- */

static void find_pure(const space *s, forest *f)
{
  int64_t n_leaves = s->tree.n_leaves;
#pragma omp parallel for schedule(static)
  for (int64_t leaf = 0; leaf < n_leaves; leaf++) {
    int64_t first = s->tree.first[leaf], pure = f->component[first];
    for (int64_t i = first + 1; i < s->tree.first[leaf + 1]; i++)
      if (f->component[i] != pure) pure = -1;
    f->pure[n_leaves + leaf] = pure;
  }
  for (int64_t node = n_leaves - 1; node >= 1; node--)
    f->pure[node] = f->pure[2 * node] == f->pure[2 * node + 1] ? f->pure[2 * node] : -1;
}

static bool edge_before_best(double weight, int64_t p, int64_t q, double best,
                             int64_t a, int64_t b)
{
  return p < q ? mt_edge_before(weight, p, q, best, a, b)
               : mt_edge_before(weight, q, p, best, a, b);
}

/* A search for the least edge from one point out of its component. */
typedef struct query {
  const space *space;
  const forest *forest;
  const float *point; /* (d) */
  int64_t self;       /* its position */
  int64_t component;
  double core2;
  double limit;    /* heavier edges are of no use; equal ones are */
  int64_t nearest; /* position found; -1: none */
  int64_t a, b;    /* the points of that edge, a < b */
} query;

static void scan_for_edge(query *q, int64_t leaf)
{
  const space *s = q->space;
  double distance2[MT_KDTREE_LEAF];
  int64_t first = s->tree.first[leaf], size = mt_kdtree_leaf_size(&s->tree, leaf);
  int64_t name = s->tree.order[q->self];
  mt_kdtree_distances(&s->tree, leaf, q->point, distance2);
  for (int64_t i = 0; i < size; i++) {
    double weight = mt_reach2(q->core2, s->core2[first + i], distance2[i], s->scale);
    if (weight > q->limit || q->forest->component[first + i] == q->component) continue;
    int64_t other = s->tree.order[first + i];
    if (q->nearest >= 0 && !edge_before_best(weight, name, other, q->limit, q->a, q->b))
      continue;
    q->nearest = first + i;
    q->limit = weight;
    q->a = name < other ? name : other;
    q->b = name < other ? other : name;
  }
}

static bool is_hopeless(const query *q, int64_t node)
{
  return q->forest->pure[node] == q->component || q->space->core2_low[node] > q->limit;
}

static void descend_for_edge(query *q, int64_t node)
{
  const mt_kdtree *tree = &q->space->tree;
  if (is_hopeless(q, node)) return;
  pending stack[MT_KDTREE_DEPTH + 2] = {{node, mt_kdtree_gap2(tree, node, q->point)}};
  for (int top = 1; top > 0;) {
    pending next = stack[--top];
    if (next.gap2 * q->space->scale > q->limit || is_hopeless(q, next.node)) continue;
    if (next.node >= tree->n_leaves)
      scan_for_edge(q, next.node - tree->n_leaves);
    else
      top = push_children(tree, next.node, q->point, top, stack);
  }
}

/* Threads share the bound. */
static void lower_bound_to(double *bound, double value)
{
  double old;
  __atomic_load(bound, &old, __ATOMIC_RELAXED);
  while (value < old &&
         !__atomic_compare_exchange(bound, &old, &value, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
  }
}

/* Edges found earlier that still lead out are still the least of their point. */
static void recall_edges(const space *s, forest *f)
{
  for (int64_t c = 0; c < f->n; c++) f->best[c] = INFINITY;
#pragma omp parallel for schedule(static)
  for (int64_t i = s->tree.first[s->first_leaf]; i < s->tree.first[s->last_leaf]; i++) {
    if (f->nearest[i] < 0) continue;
    if (f->component[f->nearest[i]] == f->component[i])
      f->nearest[i] = -1;
    else
      lower_bound_to(&f->best[f->component[i]], f->reach[i]);
  }
}

/* Two components whose points lie side by side have no heavier least edge than these' one:
 * so searches begin with a bound. */
static void bound_by_pair(const space *s, forest *f, const float *p, const float *q,
                          int64_t i)
{
  double distance2 = mt_distance2(s->tree.d, p, q);
  double weight = mt_reach2(s->core2[i], s->core2[i + 1], distance2, s->scale);
  lower_bound_to(&f->best[f->component[i]], weight);
  lower_bound_to(&f->best[f->component[i + 1]], weight);
}

static void bound_by_pairs(const space *s, forest *f)
{
  int64_t d = s->tree.d;
#pragma omp parallel for schedule(static)
  for (int64_t leaf = s->first_leaf; leaf < s->last_leaf; leaf++) {
    int64_t first = s->tree.first[leaf], size = mt_kdtree_leaf_size(&s->tree, leaf);
    bool is_pure = f->pure[s->tree.n_leaves + leaf] >= 0;
    float *p = s->scratch + 2 * omp_get_thread_num() * d, *q = p + d;
    for (int64_t i = is_pure ? size - 1 : 0; i < size && first + i + 1 < s->tree.n;
         i++) {
      bool is_last = i + 1 == size;
      if (f->component[first + i] == f->component[first + i + 1]) continue;
      mt_kdtree_point(&s->tree, leaf, i, p);
      mt_kdtree_point(&s->tree, leaf + is_last, is_last ? 0 : i + 1, q);
      bound_by_pair(s, f, p, q, first + i);
    }
  }
}

/* The weight up to which edges from the point at position i are of use; negative if none is:
 * others of its component have found lighter ones than it can have. */
static double useful_weight(const space *s, const forest *f, int64_t i)
{
  double limit;
  if (f->nearest[i] >= 0) return -1.0;
  __atomic_load(&f->best[f->component[i]], &limit, __ATOMIC_RELAXED);
  return s->core2[i] > limit || f->reach[i] > limit ? -1.0 : limit;
}

static void look_nearby(query *q, const nearby *leaves)
{
  const mt_kdtree *tree = &q->space->tree;
  for (int64_t m = 0; m < leaves->n; m++) {
    int64_t node = tree->n_leaves + leaves->leaf[m].node;
    if (leaves->leaf[m].gap2 * q->space->scale > q->limit) break;
    if (!is_hopeless(q, node) &&
        mt_kdtree_gap2(tree, node, q->point) * q->space->scale <= q->limit)
      scan_for_edge(q, leaves->leaf[m].node);
  }
}

/* The least edge of use from the point at position i: in its leaf and those nearby, or (NULL)
 * all. Which of them are found first depends on threads; the least of all does not. */
static void search_point(const space *s, forest *f, int64_t leaf, const nearby *leaves,
                         int64_t i, float *point)
{
  double limit = useful_weight(s, f, i);
  if (limit < 0.0) return;
  mt_kdtree_point(&s->tree, leaf, i - s->tree.first[leaf], point);
  query q = {.space = s,
             .forest = f,
             .point = point,
             .self = i,
             .nearest = -1,
             .component = f->component[i],
             .core2 = s->core2[i],
             .limit = limit};
  if (!is_hopeless(&q, s->tree.n_leaves + leaf)) scan_for_edge(&q, leaf);
  if (leaves != NULL) look_nearby(&q, leaves);
  for (int64_t node = s->tree.n_leaves + leaf; leaves == NULL && node > 1; node /= 2)
    descend_for_edge(&q, node ^ 1);
  f->nearest[i] = q.nearest;
  f->reach[i] = q.limit;
  if (q.nearest >= 0) lower_bound_to(&f->best[q.component], q.limit);
}

/* Is a leaf below `below` within reach of a node? */
static bool is_near_below(const space *s, const reach *within, int64_t node,
                          int64_t below)
{
  int64_t stack[MT_KDTREE_DEPTH + 2] = {below};
  for (int top = 1; top > 0;) {
    int64_t next = stack[--top];
    double gap2;
    if (!is_within(s, within, node, next, &gap2)) continue;
    if (next >= s->tree.n_leaves) return true;
    stack[top++] = 2 * next;
    stack[top++] = 2 * next + 1;
  }
  return false;
}

/* No point below the node can have an edge that is of use: known for all of them at once. */
static bool is_out_of_reach(const space *s, const forest *f, int64_t node)
{
  reach within = {.forest = f, .component = f->pure[node], .scale = s->scale};
  if (within.component < 0) return false;
  __atomic_load(&f->best[within.component], &within.limit, __ATOMIC_RELAXED);
  if (s->core2_low[node] > within.limit) return true;
  for (int64_t up = node; up > 1; up /= 2)
    if (is_near_below(s, &within, node, up ^ 1)) return false;
  return true;
}

static void search_leaf(const space *s, forest *f, int64_t leaf)
{
  float *point = s->scratch + 2 * omp_get_thread_num() * s->tree.d;
  int64_t first = s->tree.first[leaf], end = s->tree.first[leaf + 1];
  nearby leaves;
  reach within = {.forest = f,
                  .component = f->pure[s->tree.n_leaves + leaf],
                  .limit = -1.0,
                  .scale = s->scale};
  for (int64_t i = first; i < end; i++) {
    double limit = useful_weight(s, f, i);
    if (limit > within.limit) within.limit = limit;
  }
  if (within.limit < 0.0) return;
  bool few = find_nearby(s, &within, leaf, &leaves);
  for (int64_t i = first; i < end; i++)
    search_point(s, f, leaf, few ? &leaves : NULL, i, point);
}

/* The leaves below a node that are this rank's. wide: leaves below it. */
static void search_below(const space *s, forest *f, int64_t node, int64_t wide)
{
  int64_t n_leaves = s->tree.n_leaves, top = node;
  do {
    int64_t first = node * wide - n_leaves;
    bool mine = first < s->last_leaf && first + wide > s->first_leaf;
    if (mine && wide == 1) search_leaf(s, f, first);
    if (mine && wide > 1 && !is_out_of_reach(s, f, node)) { /* down to the left */
      node *= 2;
      wide /= 2;
      continue;
    }
    for (; node != top && node % 2 == 1; node /= 2) wide *= 2;
    if (node != top) node++;
  } while (node != top);
}

static void search_edges(const space *s, forest *f)
{
  enum { WIDE = 64 }; /* leaves that a thread takes at a time */
  int64_t n_leaves = s->tree.n_leaves, wide = n_leaves < WIDE ? n_leaves : WIDE;
#pragma omp parallel for schedule(dynamic)
  for (int64_t node = n_leaves / wide; node < 2 * n_leaves / wide; node++)
    search_below(s, f, node, wide);
}

/* This rank's least edge out of each component, of the weights that searches have left;
 * INFINITY where it has none. */
static void gather_best(const space *s, forest *f)
{
  for (int64_t c = 0; c < f->n; c++) f->best_a[c] = f->best_b[c] = INT64_MAX;
  for (int64_t i = s->tree.first[s->first_leaf]; i < s->tree.first[s->last_leaf]; i++) {
    int64_t c = f->component[i];
    if (f->nearest[i] < 0 || f->reach[i] != f->best[c]) continue;
    int64_t p = s->tree.order[i], q = s->tree.order[f->nearest[i]];
    if (!edge_before_best(f->reach[i], p, q, f->best[c], f->best_a[c], f->best_b[c]))
      continue;
    f->best_a[c] = p < q ? p : q;
    f->best_b[c] = p < q ? q : p;
  }
  for (int64_t c = 0; c < f->n; c++)
    if (f->best_a[c] == INT64_MAX) f->best[c] = INFINITY;
}

/* The least over all ranks, by (weight, a, b): one minimum after the other. */
static mt_status agree_on_best(const mt_comm *comm, forest *f)
{
  mt_status status = MT_OK;
  double *mine = NULL;
  int64_t *mine_a = NULL;
  if (comm->size == 1) return MT_OK;
  mt_status local = mt_memory_new(f->n, sizeof *mine, "best edges", (void **)&mine);
  if (local == MT_OK)
    local = mt_memory_new(f->n, sizeof *mine_a, "best edges", (void **)&mine_a);
  MT_TRY(mt_agree(comm, local));
  memcpy(mine, f->best, (size_t)f->n * sizeof *mine);
  MT_TRY(mt_min_f64(comm, f->n, f->best));
  for (int64_t c = 0; c < f->n; c++)
    if (mine[c] != f->best[c]) f->best_a[c] = f->best_b[c] = INT64_MAX;
  memcpy(mine_a, f->best_a, (size_t)f->n * sizeof *mine_a);
  MT_TRY(mt_min_i64(comm, f->n, f->best_a));
  for (int64_t c = 0; c < f->n; c++)
    if (mine_a[c] != f->best_a[c]) f->best_b[c] = INT64_MAX;
  MT_TRY(mt_min_i64(comm, f->n, f->best_b));
done:
  free(mine);
  free(mine_a);
  return status;
}

/* Joins components by their least edges; the edges are added to the tree. */
static int64_t join_components(const space *s, forest *f, int64_t n_edges,
                               mt_edge *tree)
{
  for (int64_t c = 0; c < f->n; c++) f->parent[c] = c;
  for (int64_t c = 0; c < f->n; c++) {
    int64_t a = s->position[s->distinct.of[f->best_a[c]]];
    int64_t b = s->position[s->distinct.of[f->best_b[c]]];
    int64_t p = mt_root_of(f->parent, f->component[a]),
            q = mt_root_of(f->parent, f->component[b]);
    if (p == q) continue; /* both sides chose this edge */
    f->parent[p < q ? q : p] = p < q ? p : q;
    tree[n_edges++] = (mt_edge){f->best_a[c], f->best_b[c], sqrt(f->best[c])};
  }
  return n_edges;
}

/* New numbers 0, 1, ... by lowest old one. */
static void renumber(const space *s, forest *f)
{
  int64_t n = 0;
  for (int64_t c = 0; c < f->n; c++) /* roots are lower than what hangs on them */
    f->parent[c] = f->parent[c] == c ? n++ : f->parent[f->parent[c]];
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < s->tree.n; i++) f->component[i] = f->parent[f->component[i]];
  f->n = n;
}

static mt_status run_rounds(const mt_comm *comm, const space *s, forest *f,
                            int64_t *n_edges, mt_edge *tree)
{
  mt_status status = MT_OK;
  for (int round = 1; f->n > 1; round++) {
    if (mt_stop_agreed(comm)) return MT_STOPPED;
    double start = mt_seconds();
    int64_t before = f->n;
    find_pure(s, f);
    recall_edges(s, f);
    bound_by_pairs(s, f);
    MT_TRY(mt_min_f64(comm, f->n, f->best));
    search_edges(s, f);
    gather_best(s, f);
    MT_TRY(agree_on_best(comm, f));
    *n_edges = join_components(s, f, *n_edges, tree);
    renumber(s, f);
    mt_debug("spanning tree: round %d: %lld components to %lld, %.2f s", round,
             (long long)before, (long long)f->n, mt_seconds() - start);
    mt_progress_update(*n_edges);
  }
done:
  return status;
}

/* Every duplicate hangs on its first: no edge of a point weighs less than its core distance. */
static int64_t hang_duplicates(const space *s, int64_t n, mt_edge *tree)
{
  int64_t n_edges = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t distinct = s->distinct.of[i], first = s->distinct.first[distinct];
    if (first != i)
      tree[n_edges++] = (mt_edge){first, i, sqrt(s->core2[s->position[distinct]])};
  }
  return n_edges;
}

mt_status mt_cpu_spanning_tree(mt_backend *be, const mt_comm *comm,
                               const mt_hdbscan_options *options, int64_t n, int64_t d,
                               const float *points, mt_edge *tree_out, double *core_out)
{
  mt_status status = MT_OK;
  space s = {0};
  forest f = {0};
  (void)be;

  MT_REQUIRE(n >= 2 && d >= 1 && options->min_samples >= 1 && options->alpha > 0.0,
             MT_ERR_ARG, "spanning tree: n, d, min_samples or alpha out of range");
  double start = mt_seconds();
  MT_TRY(mt_agree(comm, space_create(comm, options, n, d, points, &s)));
  double built = mt_seconds();
  MT_TRY(find_cores(comm, &s));
  mt_debug(
      "spanning tree: kd-tree of %lld distinct points %.2f s, core distances %.2f s",
      (long long)s.distinct.n, built - start, mt_seconds() - built);
  MT_TRY(mt_agree(comm, forest_create(&s, &f)));
  int64_t n_edges = hang_duplicates(&s, n, tree_out);
  MT_TRY(run_rounds(comm, &s, &f, &n_edges, tree_out));
  MT_TRY(mt_agree(comm, mt_edges_sort(n - 1, tree_out)));
  for (int64_t i = 0; i < n && core_out != NULL; i++)
    core_out[i] = sqrt(s.core2[s.position[s.distinct.of[i]]]);
done:
  forest_destroy(&f);
  space_destroy(&s);
  return status;
}

mt_status mt_cpu_condensed_tree(mt_backend *be, int64_t min_cluster_size, int64_t n,
                                const mt_edge *tree, mt_condensed_tree *tree_out)
{
  (void)be;
  return mt_condensed_tree_find(min_cluster_size, n, tree, tree_out);
}
