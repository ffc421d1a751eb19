/* The spectral start on GPUs: the graph's parts and degrees, and mt_vectors in device memory
 * for the eigenvectors of parts that are not small. */
#include "umap_parts.h"

#include <vector>

extern "C" {
#include "umap/eigen.h"
}

/* ---- vectors in device memory ------------------------------------------------------------- */

/* What an operator's context is: the normalised adjacency of the graph's parts, this GPU's
 * rows. */
struct adjacency {
  mt_gpu *gpu = nullptr;
  const mt_gpu_graph *graph = nullptr;
  mt_array<double> values;   /* of the graph's edges */
  mt_array<double> known;    /* (n) */
  mt_array<int32_t> part_of; /* (n) mt_eigen_parts */
  mt_array<int64_t> members, first;
  mt_array<double> small;       /* matrices of the parts */
  mt_array<uint8_t> flags;      /* of the parts */
  mt_array<mt_eigen_step> plan; /* of the parts, step by step */
  int64_t n_products = 0;
};

static adjacency *adjacency_of(const mt_operator *op)
{
  return (adjacency *)const_cast<void *>(op->context);
}

/* `count` elements to an array that grows as it must. */
template <class T>
static mt_status copy_up(mt_gpu *gpu, int64_t count, const T *from, const char *what,
                         mt_array<T> *to)
{
  if (to->count < count) MT_PASS(to->make(gpu, count, what));
  return mt_to_device(gpu, count, from, to->data);
}

static mt_status take(const mt_operator *op, int64_t count, double **out)
{
  void *memory = nullptr;
  MT_PASS(mt_gpu_take(adjacency_of(op)->gpu, count * (int64_t)sizeof(double), "vectors",
                      &memory));
  *out = (double *)memory;
  MT_CUDA(cudaMemsetAsync(memory, 0, (size_t)count * sizeof(double),
                          adjacency_of(op)->gpu->stream));
  return MT_OK;
}

static void give(const mt_operator *op, int64_t count, double *x)
{
  mt_gpu_give(adjacency_of(op)->gpu, count * (int64_t)sizeof(double), x);
}

static mt_status randomize(const mt_operator *op, int64_t m, const int64_t *from,
                           uint32_t seed, const uint32_t *draws, double *x)
{
  adjacency *a = adjacency_of(op);
  const int64_t parts = op->parts->count;
  mt_array<int64_t> froms;
  mt_array<uint32_t> steps;
  MT_PASS(copy_up(a->gpu, parts, from, "columns to draw", &froms));
  MT_PASS(copy_up(a->gpu, parts, draws, "draws", &steps));
  const int64_t *members = a->members.data, *first = a->first.data;
  const int32_t *part_of = a->part_of.data;
  const int64_t *begin = froms.data;
  const uint32_t *step = steps.data;
  return mt_gpu_each(a->gpu, op->parts->first[parts] * m, [=] __device__(int64_t at) {
    const int64_t member = at / m, c = at % m, row = members[member];
    const int32_t p = part_of[row];
    if (c >= begin[p])
      x[row * m + c] = mt_eigen_random(seed, step[p], (member - first[p]) * m + c);
  });
}

/* M: m if it is known when compiling, or 0. A thread for each row and column: those of a row
 * read the same edge, and neighbours of the same row of vectors. */
template <int M>
static mt_status run_step(adjacency *a, int64_t m_given, const mt_eigen_step *step,
                          const double *x, double *y)
{
  const int64_t *indptr = a->graph->indptr.data, first = a->graph->first;
  const int32_t *columns = a->graph->indices.data, *part_of = a->part_of.data;
  const double *values = a->values.data;
  return mt_gpu_each(a->gpu, a->graph->local * m_given, [=] __device__(int64_t at) {
    const int64_t m = M > 0 ? M : m_given;
    const int64_t i = at / m, c = at % m;
    const int32_t p = part_of[first + i];
    if (p < 0 || step[p].scale == 0.0) return;
    const int64_t end = indptr[i + 1], to = (first + i) * m + c;
    double sum = 0.0;
#pragma unroll 4
    for (int64_t e = indptr[i]; e < end; e++)
      sum += __ldcs(values + e) * x[__ldcs(columns + e) * m + c];
    y[to] = mt_eigen_combine(step + p, sum, x[to], step[p].back == 0.0 ? 0.0 : y[to]);
  });
}

static mt_status run_steps(const mt_comm *comm, const mt_operator *op, int64_t m,
                           int64_t n_steps, const mt_eigen_step *steps, double *x,
                           double *, double *y)
{
  adjacency *a = adjacency_of(op);
  const int64_t parts = op->parts->count;
  a->n_products += n_steps;
  MT_PASS(mt_agree(comm, copy_up(a->gpu, n_steps * parts, steps, "steps", &a->plan)));
  for (int64_t s = 0; s < n_steps; s++) {
    const mt_eigen_step *step = a->plan.data + s * parts;
    double *from = s % 2 == 0 ? x : y, *to = s % 2 == 0 ? y : x;
    MT_PASS(m == 4 ? run_step<4>(a, m, step, from, to)
                   : run_step<0>(a, m, step, from, to));
    MT_PASS(
        mt_gpu_allgather_rows(a->gpu, comm, op->n, m * (int64_t)sizeof(double), to));
  }
  return MT_OK;
}

static mt_status products(const mt_operator *op, int64_t count,
                          const mt_eigen_rows *rows, int64_t p, int64_t q,
                          const double *x, const double *y, double *out)
{
  adjacency *a = adjacency_of(op);
  mt_array<mt_eigen_rows> stretches;
  mt_array<double> sums;
  MT_PASS(copy_up(a->gpu, count, rows, "stretches of rows", &stretches));
  MT_PASS(sums.make(a->gpu, count * p * q, "sums"));
  const mt_eigen_rows *stretch = stretches.data;
  const int64_t *members = a->members.data;
  double *sum_out = sums.data;
  MT_PASS(mt_gpu_each(a->gpu, count * p * q, [=] __device__(int64_t at) {
    const mt_eigen_rows own = stretch[at / (p * q)];
    const int64_t left = at % (p * q) / q, right = at % q, *row = members + own.first;
    double sum = 0.0;
#pragma unroll 8
    for (int64_t i = 0; i < own.rows; i++)
      sum += x[row[i] * p + left] * y[row[i] * q + right];
    sum_out[at] = sum;
  }));
  return mt_to_host(a->gpu, count * p * q, sums.data, out);
}

/* A small matrix of so many elements for each part, and which parts are meant. */
static mt_status copy_small(adjacency *a, int64_t parts, int64_t elements,
                            const double *matrices, const uint8_t *flags)
{
  MT_PASS(copy_up(a->gpu, parts * elements, matrices, "small matrices", &a->small));
  return copy_up(a->gpu, parts, flags, "flags", &a->flags);
}

static mt_status transform(const mt_operator *op, int64_t m, const uint8_t *flags,
                           const double *t, const double *x, double *y)
{
  adjacency *a = adjacency_of(op);
  MT_PASS(copy_small(a, op->parts->count, m * m, t, flags));
  const double *small = a->small.data;
  const uint8_t *flag = a->flags.data;
  const int32_t *part_of = a->part_of.data;
  return mt_gpu_each(a->gpu, op->n * m, [=] __device__(int64_t at) {
    const int64_t i = at / m, c = at % m;
    const int32_t p = part_of[i];
    y[at] = p >= 0 && flag[p] ? mt_eigen_dot(m, x + i * m, small + p * m * m + c, m)
                              : x[at];
  });
}

static mt_status subtract(const mt_operator *op, int64_t p, int64_t m,
                          const uint8_t *flags, const double *x, const double *t,
                          double *y)
{
  adjacency *a = adjacency_of(op);
  MT_PASS(copy_small(a, op->parts->count, p * m, t, flags));
  const double *small = a->small.data;
  const uint8_t *flag = a->flags.data;
  const int32_t *part_of = a->part_of.data;
  return mt_gpu_each(a->gpu, op->n * m, [=] __device__(int64_t at) {
    const int64_t i = at / m, c = at % m;
    const int32_t part = part_of[i];
    if (part >= 0 && flag[part])
      y[at] -= mt_eigen_dot(p, x + i * p, small + part * p * m + c, m);
  });
}

static mt_status fetch(const mt_operator *op, int64_t m, int64_t k, const double *x,
                       double *out)
{
  adjacency *a = adjacency_of(op);
  mt_array<double> chosen;
  MT_PASS(chosen.make(a->gpu, op->n * k, "eigenvectors"));
  double *to = chosen.data;
  MT_PASS(mt_gpu_each(a->gpu, op->n * k,
                      [=] __device__(int64_t at) { to[at] = x[at / k * m + at % k]; }));
  return mt_to_host(a->gpu, op->n * k, chosen.data, out);
}

static const mt_vectors on_device = {take,     give,      randomize, run_steps,
                                     products, transform, subtract,  fetch};

/* ---- the graph ---------------------------------------------------------------------------- */

/* What mt_spectral_graph's context is. */
struct start_graph {
  mt_gpu *gpu = nullptr;
  const mt_gpu_graph *graph = nullptr;
  mt_gpu_umap_cost *cost = nullptr;
  mt_array<double> degrees; /* (n) */
  mt_graph host = {};       /* for small parts, once asked for */
  ~start_graph()
  {
    mt_graph_destroy(&host);
  }
};

static start_graph *graph_of(const mt_spectral_graph *source)
{
  return (start_graph *)source->context;
}

static mt_status components(const mt_comm *comm, const mt_spectral_graph *source,
                            int64_t *labels_out, int64_t *count_out)
{
  start_graph *g = graph_of(source);
  mt_array<int64_t> labels;
  MT_PASS(mt_gpu_graph_components(g->gpu, comm, g->graph, &labels, count_out));
  return mt_agree(comm, mt_to_host(g->gpu, source->n, labels.data, labels_out));
}

static mt_status host_rows(const mt_comm *comm, const mt_spectral_graph *source,
                           const mt_graph **out)
{
  start_graph *g = graph_of(source);
  if (g->host.indptr == nullptr)
    MT_PASS(mt_gpu_graph_fetch(g->gpu, comm, g->graph, &g->host));
  *out = &g->host;
  return MT_OK;
}

static mt_status sum_degrees(start_graph *g)
{
  MT_PASS(g->degrees.make(g->gpu, g->graph->n, "degrees"));
  const int64_t *indptr = g->graph->indptr.data;
  const float *weights = g->graph->weights.data;
  double *out = g->degrees.data + g->graph->first;
  return mt_gpu_each(g->gpu, g->graph->local, [=] __device__(int64_t i) {
    double sum = 0.0;
    for (int64_t e = indptr[i]; e < indptr[i + 1]; e++) sum += weights[e];
    out[i] = sum;
  });
}

static mt_status degrees(const mt_comm *comm, const mt_spectral_graph *source,
                         double *degrees_out)
{
  start_graph *g = graph_of(source);
  MT_PASS(mt_agree(comm, sum_degrees(g)));
  MT_PASS(
      mt_gpu_allgather_rows(g->gpu, comm, source->n, sizeof(double), g->degrees.data));
  return mt_agree(comm, mt_to_host(g->gpu, source->n, g->degrees.data, degrees_out));
}

/* ---- the parts ---------------------------------------------------------------------------- */

static mt_status fill_values(start_graph *g, adjacency *a)
{
  const int64_t *indptr = g->graph->indptr.data, first = g->graph->first;
  const int32_t *indices = g->graph->indices.data;
  const float *weights = g->graph->weights.data;
  const double *degree = g->degrees.data;
  MT_PASS(a->values.make(a->gpu, g->graph->edges, "the adjacency"));
  double *values = a->values.data;
  return mt_gpu_each(a->gpu, g->graph->local, [=] __device__(int64_t i) {
    for (int64_t e = indptr[i]; e < indptr[i + 1]; e++)
      values[e] = mt_umap_adjacency(weights[e], degree[first + i], degree[indices[e]]);
  });
}

static mt_status make_adjacency(start_graph *g, const mt_eigen_parts *parts,
                                const double *known, adjacency *a)
{
  const int64_t n = g->graph->n;
  a->gpu = g->gpu;
  a->graph = g->graph;
  MT_PASS(copy_up(a->gpu, n, parts->part_of, "parts", &a->part_of));
  MT_PASS(copy_up(a->gpu, n, known, "known eigenvectors", &a->known));
  MT_PASS(copy_up(a->gpu, parts->count + 1, parts->first, "parts", &a->first));
  MT_PASS(copy_up(a->gpu, parts->first[parts->count], parts->members,
                  "vertices of the parts", &a->members));
  return fill_values(g, a);
}

static mt_status solve(const mt_comm *comm, const mt_spectral_graph *source,
                       const mt_eigen_parts *parts, const double *, const double *known,
                       int64_t k, double tolerance, uint32_t seed, double *values_out,
                       double *vectors_out, double *residuals_out)
{
  start_graph *g = graph_of(source);
  adjacency a;
  mt_operator op = {};
  std::vector<int64_t> firsts((size_t)comm->size + 1);
  for (int r = 0; r <= comm->size; r++)
    firsts[(size_t)r] = mt_part_first(source->n, comm->size, r);
  MT_PASS(mt_agree(comm, make_adjacency(g, parts, known, &a)));
  op.n = source->n;
  op.firsts = firsts.data();
  op.low = -1.0;
  op.high = 1.0;
  op.known = a.known.data;
  op.context = &a;
  op.parts = parts;
  op.vectors = &on_device;
  mt_status status = mt_eigen_largest(comm, &op, k, tolerance, seed, values_out,
                                      vectors_out, residuals_out);
  g->cost->n_products += a.n_products;
  return status;
}

mt_status mt_gpu_start(mt_gpu *gpu, const mt_comm *comm, const mt_umap_options *options,
                       mt_metric metric, const mt_gpu_graph *graph, const mt_rows *rows,
                       float *positions_out, mt_gpu_umap_cost *cost)
{
  start_graph g;
  mt_spectral_graph source = {};
  g.gpu = gpu;
  g.graph = graph;
  g.cost = cost;
  source.n = graph->n;
  source.cost = &cost->start_of;
  source.context = &g;
  source.components = components;
  source.degrees = degrees;
  source.rows = host_rows;
  source.solve = solve;
  return mt_umap_start(comm, options, metric, &source, rows, positions_out);
}
