#include "hdbscan_parts.h"
#include "hdbscan_search.h"

/* What the rounds change. A component is known by its number, 0 up to n - 1; an edge out of
 * it by the bits of its squared weight and the pair a << 32 | b of its points, a < b.
 * `nearest` is the position outside its component that a position was found to be nearest to,
 * -1 if that is not known; `reach` the squared weight of that edge: nothing outside is nearer,
 * whether it is known or not. `best` is the least weight out of a component known so far. */
typedef struct forest {
  int64_t n;                   /* components */
  int64_t first, count;        /* positions that this GPU searches from */
  mt_array<int32_t> component; /* (positions) */
  mt_array<int32_t> pure;      /* (nodes) the one component below a node, or -1 */
  mt_array<double> core2_low;  /* (nodes) the least core distance below it */
  mt_array<int32_t> nearest;   /* (positions) */
  mt_array<double> reach;      /* (positions) */
  mt_array<uint64_t> best;     /* (components) */
  mt_array<uint64_t> pair;     /* (components) the points of the least edge out */
  mt_array<int32_t> parent;    /* (components) */
  mt_array<int32_t> next;      /* (components) the one at the other end of the edge */
  mt_array<int32_t> is_root;   /* (components) */
  mt_array<int64_t> number;    /* (components + 1) roots before */
  mt_array<uint8_t> is_active; /* (count) */
  mt_array<int32_t> active;    /* (count) positions to search from, less `first` */
} forest;

/* What kernels need beside the forest. */
typedef struct ground {
  const mt_space *space;
  const double *core2;
  double scale; /* 1 / alpha^2 */
} ground;

static int64_t nodes_of(const mt_places &s)
{
  return s.depth < 0 ? 0 : (int64_t)2 << s.depth;
}

static mt_status forest_create(mt_gpu *gpu, const mt_comm *comm, const ground *g,
                               forest *f)
{
  const mt_places &s = g->space->places;
  f->n = s.n;
  f->first = mt_part_first(s.n, comm->size, comm->rank);
  f->count = mt_part_count(s.n, comm->size, comm->rank);
  MT_PASS(f->component.make(gpu, s.n, "components"));
  MT_PASS(f->pure.make(gpu, nodes_of(s), "components"));
  MT_PASS(f->core2_low.make(gpu, nodes_of(s), "core distances"));
  MT_PASS(f->nearest.make(gpu, s.n, "nearest points"));
  MT_PASS(f->reach.make_zeroed(gpu, s.n, "nearest points"));
  MT_PASS(f->best.make(gpu, s.n, "least edges"));
  MT_PASS(f->pair.make(gpu, s.n, "least edges"));
  MT_PASS(f->parent.make(gpu, s.n, "components"));
  MT_PASS(f->next.make(gpu, s.n, "components"));
  MT_PASS(f->is_root.make(gpu, s.n, "components"));
  MT_PASS(f->number.make(gpu, s.n + 1, "components"));
  MT_PASS(f->is_active.make(gpu, f->count, "positions"));
  MT_PASS(f->active.make(gpu, f->count, "positions"));
  int32_t *component = f->component.data, *nearest = f->nearest.data;
  return mt_gpu_each(gpu, s.n, [=] __device__(int64_t i) {
    component[i] = (int32_t)i;
    nearest[i] = -1;
  });
}

int64_t mt_rounds_bytes(int64_t n, int64_t d)
{
  int64_t nodes = d <= MT_TREE_MOST_D ? n / 2 : 0;
  return nodes * (int64_t)(sizeof(int32_t) + sizeof(double)) +
         n * (int64_t)(6 * sizeof(int32_t) + sizeof(double) + 3 * sizeof(uint64_t) + 1);
}

/* ---- what is known of nodes ------------------------------------------------------------- */

static mt_status find_least_cores(mt_gpu *gpu, const ground *g, forest *f)
{
  const mt_places s = g->space->places;
  const double *core2 = g->core2;
  double *low = f->core2_low.data;
  if (s.depth < 0) return MT_OK;
  MT_PASS(mt_gpu_each(gpu, (int64_t)1 << s.depth, [=] __device__(int64_t leaf) {
    double least = HUGE_VAL;
    int64_t last = mt_node_first(s.n, s.depth, leaf + 1);
    for (int64_t i = mt_node_first(s.n, s.depth, leaf); i < last; i++)
      least = core2[i] < least ? core2[i] : least;
    low[((int64_t)1 << s.depth) + leaf] = least;
  }));
  for (int level = s.depth - 1; level >= 0; level--) {
    MT_PASS(mt_gpu_each(gpu, (int64_t)1 << level, [=] __device__(int64_t j) {
      int64_t node = ((int64_t)1 << level) + j;
      low[node] = low[2 * node] < low[2 * node + 1] ? low[2 * node] : low[2 * node + 1];
    }));
  }
  return MT_OK;
}

static mt_status find_pure(mt_gpu *gpu, const ground *g, forest *f)
{
  const mt_places s = g->space->places;
  const int32_t *component = f->component.data;
  int32_t *pure = f->pure.data;
  if (s.depth < 0) return MT_OK;
  MT_PASS(mt_gpu_each(gpu, (int64_t)1 << s.depth, [=] __device__(int64_t leaf) {
    int64_t first = mt_node_first(s.n, s.depth, leaf),
            last = mt_node_first(s.n, s.depth, leaf + 1);
    int32_t one = component[first];
    for (int64_t i = first + 1; i < last; i++)
      if (component[i] != one) one = -1;
    pure[((int64_t)1 << s.depth) + leaf] = one;
  }));
  for (int level = s.depth - 1; level >= 0; level--) {
    MT_PASS(mt_gpu_each(gpu, (int64_t)1 << level, [=] __device__(int64_t j) {
      int64_t node = ((int64_t)1 << level) + j;
      pure[node] = pure[2 * node] == pure[2 * node + 1] ? pure[2 * node] : -1;
    }));
  }
  return MT_OK;
}

/* ---- searching the least edges ---------------------------------------------------------- */

/* Lowers a bound that threads share; most of them find it low enough already. */
static __device__ void lower_bound_to(uint64_t *bound, uint64_t bits)
{
  if (bits < *(volatile uint64_t *)bound)
    atomicMin((unsigned long long *)bound, (unsigned long long)bits);
}

/* For kernels. */
typedef struct edge_ground {
  const mt_places places;
  const double *core2, *core2_low;
  double scale;
  const int32_t *component, *pure, *active;
  int32_t *nearest;
  double *reach;
  uint64_t *best;
  int64_t first;
} edge_ground;

/* The least edge from one point out of its component, or none if others of the component
 * have found lighter ones. */
struct edge_visitor {
  const edge_ground *g;
  uint64_t *best;
  int32_t component, nearest; /* position found; -1: none */
  uint32_t name;
  double core2, limit; /* heavier edges are of no use; equal ones are */
  uint64_t pair;       /* of the edge found */

  __device__ bool skips(uint32_t node) const
  {
    return g->pure[node] == component || g->core2_low[node] > limit;
  }
  __device__ bool is_beyond(double distance2) const
  {
    return distance2 * g->scale > limit;
  }
  __device__ void offer(int64_t at, double distance2)
  {
    if (is_beyond(distance2) || g->component[at] == component) return;
    double weight = mt_reach2(core2, g->core2[at], distance2, g->scale);
    if (weight > limit) return;
    uint32_t other = g->places.name[at];
    uint64_t found =
        name < other ? (uint64_t)name << 32 | other : (uint64_t)other << 32 | name;
    if (nearest >= 0 && weight == limit && found > pair) return;
    nearest = (int32_t)at;
    limit = weight;
    pair = found;
  }
  /* Takes over what others have found by now. */
  __device__ void pause()
  {
    double known = mt_of_bits(*(volatile uint64_t *)best);
    if (!(known < limit)) return;
    limit = known;
    nearest = -1;
  }
};

struct edge_job {
  typedef edge_visitor visitor;
  edge_ground g;

  __device__ int64_t position(int64_t i) const
  {
    return g.first + g.active[i];
  }
  __device__ void begin(int64_t i, visitor *v) const
  {
    int64_t self = position(i);
    v->g = &g;
    v->component = g.component[self];
    v->best = g.best + v->component;
    v->nearest = -1;
    v->name = g.places.name[self];
    v->core2 = g.core2[self];
    v->limit = mt_of_bits(*(volatile uint64_t *)v->best);
    v->pair = 0;
  }
  __device__ void end(int64_t i, const visitor &v) const
  {
    int64_t self = position(i);
    g.nearest[self] = v.nearest;
    g.reach[self] = v.limit;
    if (v.nearest >= 0) lower_bound_to(v.best, mt_bits_of(v.limit));
  }
};

static edge_job make_job(const ground *g, const forest *f)
{
  return {{g->space->places, g->core2, f->core2_low.data, g->scale, f->component.data,
           f->pure.data, f->active.data, f->nearest.data, f->reach.data, f->best.data,
           f->first}};
}

/* Bounds to start with: edges found earlier that still lead out are still the least of their
 * point; and any edge between neighbouring positions bounds both sides. */
static mt_status bound_edges(mt_gpu *gpu, const ground *g, forest *f)
{
  const edge_ground e = make_job(g, f).g;
  int64_t all = e.places.n;
  uint64_t *best = e.best;
  uint64_t none = 0;
  double infinity = HUGE_VAL;
  memcpy(&none, &infinity, sizeof none);
  MT_PASS(mt_gpu_each(gpu, f->n, [=] __device__(int64_t c) { best[c] = none; }));
  return mt_gpu_each(gpu, f->count, [=] __device__(int64_t i) {
    int64_t at = e.first + i;
    int32_t c = e.component[at], known = e.nearest[at];
    if (known >= 0 && e.component[known] == c)
      e.nearest[at] = -1;
    else if (known >= 0)
      lower_bound_to(best + c, mt_bits_of(e.reach[at]));
    if (at + 1 == all || e.component[at + 1] == c) return;
    int64_t d = e.places.d;
    const float *point = e.places.points + at * d;
    uint64_t weight = mt_bits_of(mt_reach2(e.core2[at], e.core2[at + 1],
                                           mt_distance2(d, point, point + d), e.scale));
    lower_bound_to(best + c, weight);
    lower_bound_to(best + e.component[at + 1], weight);
  });
}

/* From every position whose least edge is not known and may be below its component's bound. */
static mt_status search_edges(mt_gpu *gpu, const ground *g, forest *f)
{
  const edge_job job = make_job(g, f);
  const edge_ground e = job.g;
  uint8_t *is_active = f->is_active.data;
  int64_t n_active = 0;
  MT_PASS(mt_gpu_each(gpu, f->count, [=] __device__(int64_t i) {
    int64_t at = e.first + i;
    double limit = mt_of_bits(e.best[e.component[at]]);
    is_active[i] = e.nearest[at] < 0 && e.core2[at] <= limit && e.reach[at] <= limit;
  }));
  MT_PASS(mt_gpu_select(gpu, f->count, is_active, f->active.data, &n_active));
  return mt_search(gpu, e.places, n_active, job);
}

/* Of the edges as light as the least of their component, the first by their points. */
static mt_status find_pairs(mt_gpu *gpu, const ground *g, forest *f)
{
  const edge_ground e = make_job(g, f).g;
  uint64_t *pair = f->pair.data;
  MT_CUDA(cudaMemsetAsync(pair, 0xff, (size_t)f->n * sizeof(uint64_t), gpu->stream));
  return mt_gpu_each(gpu, f->count, [=] __device__(int64_t i) {
    int64_t at = e.first + i;
    int32_t c = e.component[at];
    if (e.nearest[at] < 0 || mt_bits_of(e.reach[at]) != e.best[c]) return;
    uint64_t p = e.places.name[at], q = e.places.name[e.nearest[at]];
    lower_bound_to(pair + c, p < q ? p << 32 | q : q << 32 | p);
  });
}

/* The least edge out of every component, over all GPUs. */
static mt_status find_least_edges(mt_gpu *gpu, const mt_comm *comm, const ground *g,
                                  forest *f)
{
  mt_status local = find_pure(gpu, g, f);
  if (local == MT_OK) local = bound_edges(gpu, g, f);
  MT_PASS(mt_agree(comm, local));
  MT_PASS(mt_gpu_all_min_u64(gpu, comm, f->n, f->best.data));
  local = search_edges(gpu, g, f);
  if (local == MT_OK) local = mt_gpu_wait(gpu);
  MT_PASS(mt_agree(comm, local));
  MT_PASS(mt_gpu_all_min_u64(gpu, comm, f->n, f->best.data));
  MT_PASS(find_pairs(gpu, g, f));
  return mt_gpu_all_min_u64(gpu, comm, f->n, f->pair.data);
}

/* ---- joining ------------------------------------------------------------------------------ */

/* Components point along their edges; of two that point to each other the lower is a root. */
static mt_status find_roots(mt_gpu *gpu, const ground *g, forest *f)
{
  const int32_t *component = f->component.data;
  const uint32_t *place_of = g->space->place_of.data;
  const uint64_t *pair = f->pair.data;
  int32_t *next = f->next.data, *parent = f->parent.data, *is_root = f->is_root.data;
  MT_PASS(mt_gpu_each(gpu, f->n, [=] __device__(int64_t c) {
    int32_t a = component[place_of[pair[c] >> 32]],
            b = component[place_of[(uint32_t)pair[c]]];
    next[c] = a == (int32_t)c ? b : a;
  }));
  MT_PASS(mt_gpu_each(gpu, f->n, [=] __device__(int64_t c) {
    bool root = next[next[c]] == (int32_t)c && (int32_t)c < next[c];
    is_root[c] = root;
    parent[c] = root ? (int32_t)c : next[c];
  }));
  return mt_gpu_scan(gpu, f->n, is_root, f->number.data);
}

/* All components but the roots give the tree an edge. */
static mt_status keep_edges(mt_gpu *gpu, const forest *f, uint64_t *pair_out,
                            double *weight2_out)
{
  const int32_t *is_root = f->is_root.data;
  const int64_t *number = f->number.data;
  const uint64_t *pair = f->pair.data, *best = f->best.data;
  return mt_gpu_each(gpu, f->n, [=] __device__(int64_t c) {
    if (is_root[c]) return;
    pair_out[c - number[c]] = pair[c];
    weight2_out[c - number[c]] = mt_of_bits(best[c]);
  });
}

/* Roots, in order, get the new numbers 0, 1, ...; each position that of its root. */
static mt_status renumber(mt_gpu *gpu, const ground *g, forest *f)
{
  int32_t *component = f->component.data, *parent = f->parent.data;
  const int64_t *number = f->number.data;
  for (int64_t jumped = 1; jumped < f->n; jumped *= 2) /* halves all ways to a root */
    MT_PASS(mt_gpu_each(gpu, f->n,
                        [=] __device__(int64_t c) { parent[c] = parent[parent[c]]; }));
  return mt_gpu_each(gpu, g->space->places.n, [=] __device__(int64_t i) {
    component[i] = (int32_t)number[parent[component[i]]];
  });
}

static mt_status join_components(mt_gpu *gpu, const ground *g, forest *f,
                                 uint64_t *pair_out, double *weight2_out)
{
  int64_t n_roots = 0;
  MT_PASS(find_roots(gpu, g, f));
  MT_PASS(keep_edges(gpu, f, pair_out, weight2_out));
  MT_PASS(renumber(gpu, g, f));
  MT_PASS(mt_to_host(gpu, 1, f->number.data + f->n, &n_roots));
  if (n_roots < 1 || 2 * n_roots > f->n)
    return mt_fail(MT_ERR_INTERNAL, "spanning tree: %lld components joined to %lld",
                   (long long)f->n, (long long)n_roots);
  f->n = n_roots;
  return MT_OK;
}

mt_status mt_run_rounds(mt_gpu *gpu, const mt_comm *comm, const mt_space *space,
                        const double *core2, double scale, uint64_t *pair_out,
                        double *weight2_out, int *n_rounds_out)
{
  ground g = {space, core2, scale};
  forest f;
  int64_t n_edges = 0;
  mt_status local = forest_create(gpu, comm, &g, &f);
  if (local == MT_OK) local = find_least_cores(gpu, &g, &f);
  MT_PASS(mt_agree(comm, local));
  for (*n_rounds_out = 0; f.n > 1; ++*n_rounds_out) {
    if (mt_stop_agreed(comm)) return MT_STOPPED;
    double start = mt_seconds();
    int64_t before = f.n;
    MT_PASS(find_least_edges(gpu, comm, &g, &f));
    local = join_components(gpu, &g, &f, pair_out + n_edges, weight2_out + n_edges);
    MT_PASS(mt_agree(comm, local));
    n_edges += before - f.n;
    mt_debug("spanning tree: round %d: %lld components to %lld, %.4f s",
             *n_rounds_out + 1, (long long)before, (long long)f.n,
             mt_seconds() - start);
    mt_progress_update(n_edges);
  }
  return MT_OK;
}
