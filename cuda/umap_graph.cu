/* The fuzzy graph on GPUs. A link is one direction of an edge as one of its ends sees it: a
 * key of row, column and which direction, and a strength. Sorted, the two directions of an
 * edge lie side by side. */
#include "umap_parts.h"

#include <vector>

/* Keys: row (counted from the owner's first) << columns + 1 | column << 1 | 1 if the strength
 * is the other end's. */
struct link_keys {
  int columns; /* bits of a column */
};

static int bits_of(int64_t n)
{
  int bits = 1;
  while ((n - 1) >> bits != 0) bits++;
  return bits;
}

/* ---- lists of neighbours ------------------------------------------------------------------ */

static mt_status copy_lists(mt_gpu *gpu, const int64_t *indices, const float *distances,
                            mt_gpu_lists *lists, bool *fine_out)
{
  const int64_t count = lists->local * lists->k, n = lists->n, k = lists->k,
                first = lists->first;
  mt_array<int> wrong;
  int any = 0;
  MT_PASS(lists->indices.make(gpu, count, "neighbours"));
  MT_PASS(lists->distances.make(gpu, count, "distances"));
  MT_PASS(wrong.make_zeroed(gpu, 1, "a flag"));
  MT_PASS(mt_to_device(gpu, count, indices, lists->indices.data));
  MT_PASS(mt_to_device(gpu, count, distances, lists->distances.data));
  const int64_t *others = lists->indices.data;
  const float *lengths = lists->distances.data;
  int *flag = wrong.data;
  MT_PASS(mt_gpu_each(gpu, count, [=] __device__(int64_t at) {
    int64_t j = others[at];
    bool fine = j >= 0 && j < n && j != first + at / k && lengths[at] >= 0.0f &&
                lengths[at] <= FLT_MAX;
    if (!fine) atomicOr(flag, 1);
  }));
  MT_PASS(mt_to_host(gpu, 1, wrong.data, &any));
  *fine_out = any == 0;
  return MT_OK;
}

mt_status mt_gpu_lists_copy(mt_gpu *gpu, const mt_comm *comm, int64_t n, int64_t k,
                            const int64_t *indices, const float *distances,
                            mt_gpu_lists *lists)
{
  bool fine = true;
  lists->n = n;
  lists->k = k;
  lists->first = mt_part_first(n, comm->size, comm->rank);
  lists->local = mt_part_count(n, comm->size, comm->rank);
  if (n > INT32_MAX)
    return mt_fail(MT_ERR_INPUT,
                   "umap: %lld points: the CUDA backend lays out at most %lld",
                   (long long)n, (long long)INT32_MAX);
  mt_status status = copy_lists(gpu, indices, distances, lists, &fine);
  if (status == MT_OK && !fine)
    status = mt_umap_check_neighbors(n, k, lists->first, lists->local, indices,
                                     distances); /* says which */
  return mt_agree(comm, status);
}

/* ---- strengths ---------------------------------------------------------------------------- */

/* This GPU's largest distance, and its sum in units of the largest of all. */
static mt_status sum_units(mt_gpu *gpu, const mt_gpu_lists *lists, double largest,
                           double units, int64_t *sum_out)
{
  mt_array<int64_t> sums;
  const int64_t k = lists->k;
  MT_PASS(sums.make(gpu, lists->local, "sums of distances"));
  const float *distances = lists->distances.data;
  int64_t *out = sums.data;
  MT_PASS(mt_gpu_each(gpu, lists->local, [=] __device__(int64_t i) {
    int64_t sum = 0;
    for (int64_t at = i * k; at < (i + 1) * k; at++)
      sum += mt_umap_in_units(distances[at], largest, units);
    out[i] = sum;
  }));
  return mt_gpu_sum_i64(gpu, lists->local, sums.data, sum_out);
}

static mt_status mean_distance(mt_gpu *gpu, const mt_comm *comm,
                               const mt_gpu_lists *lists, double *mean_out)
{
  float own = 0.0f;
  MT_PASS(mt_agree(
      comm, mt_gpu_max(gpu, lists->local * lists->k, lists->distances.data, &own)));
  double largest = own, units = mt_umap_units(lists->n, lists->k);
  int64_t sum = 0;
  MT_PASS(mt_max_f64(comm, 1, &largest));
  if (largest > 0.0)
    MT_PASS(mt_agree(comm, sum_units(gpu, lists, largest, units, &sum)));
  MT_PASS(mt_sum_i64(comm, 1, &sum));
  *mean_out = mt_umap_mean(lists->n, lists->k, sum, largest, units);
  return MT_OK;
}

static mt_status compute_strengths(mt_gpu *gpu, const mt_umap_options *options,
                                   double mean, const mt_gpu_lists *lists,
                                   mt_array<float> *strengths)
{
  const int64_t k = lists->k;
  const double local_connectivity = options->local_connectivity;
  const double target = log2((double)(k + 1));
  MT_PASS(strengths->make(gpu, lists->local * k, "strengths"));
  const float *distances = lists->distances.data;
  float *out = strengths->data;
  return mt_gpu_each(gpu, lists->local, [=] __device__(int64_t i) {
    const float *own = distances + i * k;
    float rho = mt_umap_rho(k, own, local_connectivity);
    float sigma = mt_umap_sigma(k, own, rho, target, mean);
    for (int64_t j = 0; j < k; j++)
      out[i * k + j] = mt_umap_membership(own[j], rho, sigma);
  });
}

/* ---- links ---------------------------------------------------------------------------------- */

struct mt_links {
  int64_t count = 0;
  mt_array<uint64_t> keys;
  mt_array<float> strengths;
};

/* Every neighbour as its row sees it, to keys and strengths of as many elements. */
static mt_status own_links(mt_gpu *gpu, int columns, const mt_gpu_lists *lists,
                           const float *strengths, uint64_t *keys, float *out)
{
  const int64_t *indices = lists->indices.data;
  const int64_t k = lists->k;
  return mt_gpu_each(gpu, lists->local * k, [=] __device__(int64_t at) {
    keys[at] = (uint64_t)(at / k) << (columns + 1) | (uint64_t)indices[at] << 1;
    out[at] = strengths[at];
  });
}

/* And as the neighbour sees it; rows are counted from 0 over all GPUs. */
static mt_status turned_links(mt_gpu *gpu, int columns, const mt_gpu_lists *lists,
                              const float *strengths, uint64_t *keys, float *out)
{
  const int64_t *indices = lists->indices.data;
  const int64_t k = lists->k, first = lists->first;
  return mt_gpu_each(gpu, lists->local * k, [=] __device__(int64_t at) {
    keys[at] =
        (uint64_t)indices[at] << (columns + 1) | (uint64_t)(first + at / k) << 1 | 1;
    out[at] = strengths[at];
  });
}

/* Sorted keys: how many go to each GPU. */
static mt_status count_by_owner(mt_gpu *gpu, const mt_comm *comm, int64_t n,
                                int columns, int64_t count, const uint64_t *keys,
                                std::vector<int64_t> *counts)
{
  const int size = comm->size;
  std::vector<int64_t> firsts((size_t)size + 1), begins((size_t)size + 1);
  mt_array<int64_t> bounds;
  for (int r = 0; r <= size; r++) firsts[(size_t)r] = mt_part_first(n, size, r);
  MT_PASS(bounds.make(gpu, size + 1, "bounds"));
  MT_PASS(mt_to_device(gpu, size + 1, firsts.data(), bounds.data));
  int64_t *bound = bounds.data;
  MT_PASS(mt_gpu_each(gpu, size + 1, [=] __device__(int64_t r) {
    uint64_t least = (uint64_t)bound[r] << (columns + 1);
    int64_t low = 0, high = count;
    while (low < high) {
      int64_t middle = (low + high) / 2;
      if (keys[middle] < least)
        low = middle + 1;
      else
        high = middle;
    }
    bound[r] = low;
  }));
  MT_PASS(mt_to_host(gpu, size + 1, bounds.data, begins.data()));
  for (int r = 0; r < size; r++)
    (*counts)[(size_t)r] = begins[(size_t)r + 1] - begins[(size_t)r];
  return MT_OK;
}

/* Turned links in the order of their rows, hence of their owners. */
static mt_status address_links(mt_gpu *gpu, const mt_comm *comm, int columns,
                               const mt_gpu_lists *lists, const float *strengths,
                               mt_links *links, std::vector<int64_t> *counts)
{
  links->count = lists->local * lists->k;
  MT_PASS(links->keys.make(gpu, links->count, "links"));
  MT_PASS(links->strengths.make(gpu, links->count, "links' strengths"));
  MT_PASS(turned_links(gpu, columns, lists, strengths, links->keys.data,
                       links->strengths.data));
  MT_PASS(mt_gpu_sort_pairs(gpu, links->count, links->keys.data,
                            (uint32_t *)links->strengths.data, columns + 1,
                            2 * columns + 1));
  return count_by_owner(gpu, comm, lists->n, columns, links->count, links->keys.data,
                        counts);
}

/* All links of this GPU's rows: its own first, then those that come in. */
static mt_status make_room(mt_gpu *gpu, int columns, const mt_gpu_lists *lists,
                           const float *strengths, int64_t incoming, mt_links *links)
{
  links->count = lists->local * lists->k + incoming;
  MT_PASS(links->keys.make(gpu, links->count, "links"));
  MT_PASS(links->strengths.make(gpu, links->count, "links' strengths"));
  return own_links(gpu, columns, lists, strengths, links->keys.data,
                   links->strengths.data);
}

static mt_status send_links(mt_gpu *gpu, const mt_comm *comm, int columns,
                            const mt_gpu_lists *lists, const float *strengths,
                            mt_links *links)
{
  const size_t size = (size_t)comm->size;
  const int64_t own = lists->local * lists->k;
  std::vector<int64_t> counts(size);
  std::vector<size_t> send(size), received(size), send_4(size), received_4(size);
  mt_links turned;
  size_t incoming = 0;
  MT_PASS(mt_agree(
      comm, address_links(gpu, comm, columns, lists, strengths, &turned, &counts)));
  for (size_t r = 0; r < size; r++) send[r] = (size_t)counts[r] * sizeof(uint64_t);
  MT_PASS(mt_alltoall_sizes(comm, send.data(), received.data()));
  for (size_t r = 0; r < size; r++) {
    send_4[r] = send[r] / sizeof(uint64_t) * sizeof(float);
    received_4[r] = received[r] / sizeof(uint64_t) * sizeof(float);
    incoming += received[r] / sizeof(uint64_t);
  }
  MT_PASS(mt_agree(
      comm, make_room(gpu, columns, lists, strengths, (int64_t)incoming, links)));
  MT_PASS(mt_gpu_alltoallv(gpu, comm, send.data(), turned.keys.data, received.data(),
                           links->keys.data + own));
  MT_PASS(mt_gpu_alltoallv(gpu, comm, send_4.data(), turned.strengths.data,
                           received_4.data(), links->strengths.data + own));
  uint64_t *keys = links->keys.data + own, first = (uint64_t)lists->first;
  return mt_gpu_each(gpu, (int64_t)incoming, [=] __device__(int64_t at) {
    keys[at] -= first << (columns + 1);
  });
}

/* Alone, nothing is sent. */
static mt_status turn_links(mt_gpu *gpu, int columns, const mt_gpu_lists *lists,
                            const float *strengths, mt_links *links)
{
  const int64_t own = lists->local * lists->k;
  MT_PASS(make_room(gpu, columns, lists, strengths, own, links));
  return turned_links(gpu, columns, lists, strengths, links->keys.data + own,
                      links->strengths.data + own);
}

/* ---- edges ---------------------------------------------------------------------------------- */

/* Each edge's weight at its first link, 0 at the others. */
static mt_status merge_links(mt_gpu *gpu, float mix_ratio, const mt_links *links,
                             mt_array<float> *weights)
{
  const int64_t count = links->count;
  MT_PASS(weights->make(gpu, count, "weights"));
  const uint64_t *keys = links->keys.data;
  const float *strengths = links->strengths.data;
  float *out = weights->data;
  return mt_gpu_each(gpu, count, [=] __device__(int64_t at) {
    float there_and_back[2] = {0.0f, 0.0f};
    const uint64_t edge = keys[at] >> 1;
    if (at > 0 && keys[at - 1] >> 1 == edge) {
      out[at] = 0.0f;
      return;
    }
    for (int64_t e = at; e < count && keys[e] >> 1 == edge; e++) {
      if ((keys[e] & 1) == 0)
        there_and_back[0] += strengths[e];
      else
        there_and_back[1] += strengths[e];
    }
    out[at] = mt_umap_union(there_and_back[0], there_and_back[1], mix_ratio);
  });
}

/* Where each row begins: kept (count) are its edges' links, in order. */
static mt_status find_rows(mt_gpu *gpu, int columns, int64_t local, int64_t count,
                           const uint64_t *keys, const int64_t *kept, int64_t *indptr)
{
  return mt_gpu_each(gpu, count + 1, [=] __device__(int64_t e) {
    int64_t last = e == 0 ? -1 : (int64_t)(keys[kept[e - 1]] >> (columns + 1));
    int64_t row = e == count ? local : (int64_t)(keys[kept[e]] >> (columns + 1));
    for (int64_t i = last + 1; i <= row; i++) indptr[i] = e;
  });
}

/* The graph's rows out of the links whose weight is at least `least`, and not 0. */
static mt_status keep_edges(mt_gpu *gpu, int columns, float least,
                            const mt_links *links, const float *weights,
                            mt_gpu_graph *graph)
{
  mt_array<uint8_t> flags;
  mt_array<int64_t> kept;
  MT_PASS(flags.make(gpu, links->count, "flags"));
  MT_PASS(kept.make(gpu, links->count, "edges' numbers"));
  uint8_t *flag = flags.data;
  MT_PASS(mt_gpu_each(gpu, links->count, [=] __device__(int64_t at) {
    flag[at] = weights[at] > 0.0f && !(weights[at] < least);
  }));
  MT_PASS(mt_gpu_select(gpu, links->count, flags.data, kept.data, &graph->edges));
  MT_PASS(graph->indptr.make(gpu, graph->local + 1, "rows of the graph"));
  MT_PASS(graph->indices.make(gpu, graph->edges, "edges"));
  MT_PASS(graph->weights.make(gpu, graph->edges, "weights"));
  const uint64_t *keys = links->keys.data;
  const int64_t *from = kept.data;
  int32_t *indices = graph->indices.data;
  float *out = graph->weights.data;
  const uint64_t mask = ((uint64_t)1 << columns) - 1;
  MT_PASS(mt_gpu_each(gpu, graph->edges, [=] __device__(int64_t e) {
    indices[e] = (int32_t)(keys[from[e]] >> 1 & mask);
    out[e] = weights[from[e]];
  }));
  return find_rows(gpu, columns, graph->local, graph->edges, keys, from,
                   graph->indptr.data);
}

static mt_status sort_and_merge(mt_gpu *gpu, int columns, float mix_ratio,
                                int64_t local, mt_links *links,
                                mt_array<float> *weights, double *heaviest_out)
{
  float heaviest = 0.0f;
  MT_PASS(mt_gpu_sort_pairs(gpu, links->count, links->keys.data,
                            (uint32_t *)links->strengths.data, 0,
                            columns + 1 + bits_of(local > 1 ? local : 2)));
  MT_PASS(merge_links(gpu, mix_ratio, links, weights));
  MT_PASS(mt_gpu_max(gpu, links->count, weights->data, &heaviest));
  *heaviest_out = heaviest;
  return MT_OK;
}

mt_status mt_gpu_graph_make(mt_gpu *gpu, const mt_comm *comm,
                            const mt_umap_options *options, const mt_gpu_lists *lists,
                            int64_t n_epochs, mt_gpu_graph *graph)
{
  const int columns = bits_of(lists->n);
  double mean = 0.0, heaviest = 0.0;
  mt_array<float> strengths, weights;
  mt_links links;
  graph->n = lists->n;
  graph->first = lists->first;
  graph->local = lists->local;
  MT_PASS(mean_distance(gpu, comm, lists, &mean));
  MT_PASS(mt_agree(comm, compute_strengths(gpu, options, mean, lists, &strengths)));
  if (comm->size > 1)
    MT_PASS(send_links(gpu, comm, columns, lists, strengths.data, &links));
  else
    MT_PASS(turn_links(gpu, columns, lists, strengths.data, &links));
  strengths.drop();
  MT_PASS(mt_agree(comm, sort_and_merge(gpu, columns, (float)options->set_op_mix_ratio,
                                        lists->local, &links, &weights, &heaviest)));
  MT_PASS(mt_max_f64(comm, 1, &heaviest));
  float least =
      n_epochs > 0 ? mt_umap_least(lists->n, n_epochs, (float)heaviest) : 0.0f;
  return mt_agree(comm, keep_edges(gpu, columns, least, &links, weights.data, graph));
}

/* ---- to and from the host ------------------------------------------------------------------- */

static mt_status copy_graph(mt_gpu *gpu, const mt_graph *from, mt_gpu_graph *graph)
{
  mt_array<int64_t> wide;
  MT_PASS(graph->indptr.make(gpu, graph->local + 1, "rows of the graph"));
  MT_PASS(graph->indices.make(gpu, graph->edges, "edges"));
  MT_PASS(graph->weights.make(gpu, graph->edges, "weights"));
  MT_PASS(wide.make(gpu, graph->edges, "edges"));
  MT_PASS(mt_to_device(gpu, graph->local + 1, from->indptr, graph->indptr.data));
  MT_PASS(mt_to_device(gpu, graph->edges, from->indices, wide.data));
  MT_PASS(mt_to_device(gpu, graph->edges, from->weights, graph->weights.data));
  const int64_t *in = wide.data;
  int32_t *out = graph->indices.data;
  return mt_gpu_each(gpu, graph->edges,
                     [=] __device__(int64_t e) { out[e] = (int32_t)in[e]; });
}

mt_status mt_gpu_graph_copy(mt_gpu *gpu, const mt_comm *comm, const mt_graph *from,
                            mt_gpu_graph *graph)
{
  graph->n = from->n;
  graph->first = from->first;
  graph->local = from->local;
  graph->edges = from->indptr[from->local];
  if (from->n > INT32_MAX)
    return mt_fail(MT_ERR_INPUT,
                   "umap: %lld points: the CUDA backend lays out at most %lld",
                   (long long)from->n, (long long)INT32_MAX);
  return mt_agree(comm, copy_graph(gpu, from, graph));
}

static mt_status fetch_graph(mt_gpu *gpu, const mt_gpu_graph *graph, mt_graph *out)
{
  mt_array<int64_t> wide;
  MT_PASS(mt_memory_new(graph->local + 1, sizeof *out->indptr, "rows of the graph",
                        (void **)&out->indptr));
  MT_PASS(mt_memory_new(graph->edges, sizeof *out->indices, "edges",
                        (void **)&out->indices));
  MT_PASS(mt_memory_new(graph->edges, sizeof *out->weights, "weights",
                        (void **)&out->weights));
  MT_PASS(wide.make(gpu, graph->edges, "edges"));
  const int32_t *in = graph->indices.data;
  int64_t *indices = wide.data;
  MT_PASS(mt_gpu_each(gpu, graph->edges,
                      [=] __device__(int64_t e) { indices[e] = in[e]; }));
  MT_PASS(mt_to_host(gpu, graph->local + 1, graph->indptr.data, out->indptr));
  MT_PASS(mt_to_host(gpu, graph->edges, wide.data, out->indices));
  return mt_to_host(gpu, graph->edges, graph->weights.data, out->weights);
}

mt_status mt_gpu_graph_fetch(mt_gpu *gpu, const mt_comm *comm,
                             const mt_gpu_graph *graph, mt_graph *out)
{
  mt_graph fetched = {};
  fetched.n = graph->n;
  fetched.first = graph->first;
  fetched.local = graph->local;
  mt_status status = mt_agree(comm, fetch_graph(gpu, graph, &fetched));
  if (status == MT_OK)
    *out = fetched;
  else
    mt_graph_destroy(&fetched);
  return status;
}

mt_status mt_gpu_graph_heaviest(mt_gpu *gpu, const mt_comm *comm,
                                const mt_gpu_graph *graph, float *heaviest_out)
{
  float own = 0.0f;
  MT_PASS(mt_agree(comm, mt_gpu_max(gpu, graph->edges, graph->weights.data, &own)));
  double heaviest = own;
  MT_PASS(mt_max_f64(comm, 1, &heaviest));
  *heaviest_out = (float)heaviest;
  return MT_OK;
}

/* ---- components ------------------------------------------------------------------------------- */

/* The root above i: every vertex' parent is not above it in number. What other threads write
 * meanwhile only leads lower. */
__device__ static inline unsigned long long root_above(const unsigned long long *roots,
                                                       unsigned long long i)
{
  for (unsigned long long up = roots[i]; up != i; up = roots[i]) i = up;
  return i;
}

/* Joins the parts of a and b: the higher root gets the lower one as its parent, or if it has
 * got another one since, that one's part is joined instead. True if they were two. */
__device__ static inline bool join_roots(unsigned long long *roots,
                                         unsigned long long a, unsigned long long b)
{
  bool joined = false;
  a = root_above(roots, a);
  b = root_above(roots, b);
  while (a != b) {
    unsigned long long high = a > b ? a : b, low = a > b ? b : a;
    unsigned long long was = atomicCAS(roots + high, high, low);
    joined = true;
    if (was == high) break;
    a = root_above(roots, was);
    b = root_above(roots, low);
  }
  return joined;
}

/* One round: joins this GPU's edges; every vertex' root is its part's lowest vertex then. */
static mt_status join_edges(mt_gpu *gpu, const mt_gpu_graph *graph, int64_t *labels,
                            int64_t *changed_out)
{
  mt_array<int> changed;
  int any = 0;
  MT_PASS(changed.make_zeroed(gpu, 1, "a flag"));
  const int64_t *indptr = graph->indptr.data, first = graph->first;
  const int32_t *indices = graph->indices.data;
  unsigned long long *roots = (unsigned long long *)labels;
  int *flag = changed.data;
  MT_PASS(mt_gpu_each(gpu, graph->local, [=] __device__(int64_t i) {
    bool joined = false;
    for (int64_t e = indptr[i]; e < indptr[i + 1]; e++)
      if (join_roots(roots, (unsigned long long)(first + i),
                     (unsigned long long)indices[e]))
        joined = true;
    if (joined) atomicOr(flag, 1);
  }));
  MT_PASS(mt_gpu_each(gpu, graph->n, [=] __device__(int64_t i) {
    roots[i] = root_above(roots, (unsigned long long)i);
  }));
  MT_PASS(mt_to_host(gpu, 1, changed.data, &any));
  *changed_out = any;
  return MT_OK;
}

static mt_status start_labels(mt_gpu *gpu, int64_t n, mt_array<int64_t> *labels)
{
  MT_PASS(labels->make(gpu, n, "labels"));
  int64_t *out = labels->data;
  return mt_gpu_each(gpu, n, [=] __device__(int64_t i) { out[i] = i; });
}

/* Lowest vertex of each part to 0, 1, ... */
static mt_status number_roots(mt_gpu *gpu, int64_t n, int64_t *labels,
                              int64_t *count_out)
{
  mt_array<int32_t> are_roots;
  mt_array<int64_t> numbers;
  MT_PASS(are_roots.make(gpu, n, "roots"));
  MT_PASS(numbers.make(gpu, n + 1, "numbers of parts"));
  int32_t *is_root = are_roots.data;
  const int64_t *number = numbers.data;
  MT_PASS(
      mt_gpu_each(gpu, n, [=] __device__(int64_t i) { is_root[i] = labels[i] == i; }));
  MT_PASS(mt_gpu_scan(gpu, n, are_roots.data, numbers.data));
  MT_PASS(mt_gpu_each(gpu, n,
                      [=] __device__(int64_t i) { labels[i] = number[labels[i]]; }));
  return mt_to_host(gpu, 1, numbers.data + n, count_out);
}

mt_status mt_gpu_graph_components(mt_gpu *gpu, const mt_comm *comm,
                                  const mt_gpu_graph *graph, mt_array<int64_t> *labels,
                                  int64_t *count_out)
{
  MT_PASS(mt_agree(comm, start_labels(gpu, graph->n, labels)));
  for (int64_t changed = 1; changed != 0;) {
    MT_PASS(mt_agree(comm, join_edges(gpu, graph, labels->data, &changed)));
    if (comm->size == 1) break;
    MT_PASS(mt_max_i64(comm, 1, &changed));
    if (changed != 0) MT_PASS(mt_gpu_all_min_i64(gpu, comm, graph->n, labels->data));
  }
  return mt_agree(comm, number_roots(gpu, graph->n, labels->data, count_out));
}
