/* The spectral start on GPUs: the graph's parts and degrees, and mt_vectors in device memory
 * for the eigenvectors of parts that are not small. */
#include "umap_parts.h"

#include <vector>

extern "C" {
#include "umap/eigen.h"
}

/* ---- vectors in device memory ------------------------------------------------------------- */

/* What an operator's context is: the normalised adjacency of a part, this GPU's rows. */
struct part_matrix {
  mt_gpu *gpu = nullptr;
  int64_t first = 0, own = 0;
  mt_array<int64_t> indptr;
  mt_array<int32_t> columns;
  mt_array<double> values, known;
  std::vector<int64_t> firsts; /* (size + 1) rows; their bytes when they are gathered */
  mt_array<double> small;      /* a small matrix */
  int64_t n_products = 0;
};

static part_matrix *matrix_of(const mt_operator *op)
{
  return (part_matrix *)const_cast<void *>(op->context);
}

static mt_status take(const mt_operator *op, int64_t count, double **out)
{
  void *memory = nullptr;
  MT_PASS(mt_gpu_take(matrix_of(op)->gpu, count * (int64_t)sizeof(double), "vectors",
                      &memory));
  *out = (double *)memory;
  return MT_OK;
}

static void give(const mt_operator *op, int64_t count, double *x)
{
  mt_gpu_give(matrix_of(op)->gpu, count * (int64_t)sizeof(double), x);
}

static mt_status randomize(const mt_operator *op, int64_t m, int64_t first,
                           uint32_t seed, uint32_t step, double *x)
{
  const int64_t columns = m - first;
  return mt_gpu_each(matrix_of(op)->gpu, op->n * columns, [=] __device__(int64_t at) {
    int64_t to = at / columns * m + first + at % columns;
    x[to] = mt_eigen_random(seed, step, to);
  });
}

/* M: m if it is known when compiling, or 0. A thread for each row and column: those of a row
 * read the same edge, and neighbours of the same vector row. */
template <int M>
static mt_status multiply_rows(part_matrix *a, int64_t m_given, double scale,
                               double shift, double back, const double *x, double *y)
{
  const int64_t *indptr = a->indptr.data, first = a->first;
  const int32_t *columns = a->columns.data;
  const double *values = a->values.data;
  return mt_gpu_each(a->gpu, a->own * m_given, [=] __device__(int64_t at) {
    const int64_t m = M > 0 ? M : m_given;
    const int64_t i = at / m, c = at % m, end = indptr[i + 1];
    double sum = 0.0;
#pragma unroll 4
    for (int64_t e = indptr[i]; e < end; e++)
      sum += __ldcs(values + e) * x[__ldcs(columns + e) * m + c];
    const int64_t to = (first + i) * m + c;
    y[to] = mt_eigen_combine(sum, x[to], scale, shift, back, back == 0.0 ? 0.0 : y[to]);
  });
}

static mt_status multiply(const mt_comm *comm, const mt_operator *op, int64_t m,
                          double scale, double shift, double back, const double *x,
                          double *, double *y)
{
  part_matrix *a = matrix_of(op);
  std::vector<int64_t> bytes(a->firsts);
  for (int64_t &first : bytes) first *= m * (int64_t)sizeof(double);
  a->n_products++;
  MT_PASS(m == 4 ? multiply_rows<4>(a, m, scale, shift, back, x, y)
                 : multiply_rows<0>(a, m, scale, shift, back, x, y));
  return mt_gpu_allgather_blocks(a->gpu, comm, bytes.data(), y);
}

static mt_status products(const mt_operator *op, int64_t first, int64_t count,
                          int64_t p, int64_t q, const double *x, const double *y,
                          double *out)
{
  part_matrix *a = matrix_of(op);
  const int64_t n = op->n;
  mt_array<double> sums;
  MT_PASS(sums.make(a->gpu, count * p * q, "sums"));
  double *sum_out = sums.data;
  MT_PASS(mt_gpu_each(a->gpu, count * p * q, [=] __device__(int64_t at) {
    const int64_t block = first + at / (p * q), left = at % (p * q) / q, right = at % q,
                  begin = block * MT_EIGEN_BLOCK;
    const int64_t whole = MT_EIGEN_BLOCK, rows = n - begin < whole ? n - begin : whole;
    const double *from = x + begin * p + left, *with = y + begin * q + right;
    double sum = 0.0;
#pragma unroll 8
    for (int64_t i = 0; i < rows; i++) sum += from[i * p] * with[i * q];
    sum_out[at] = sum;
  }));
  return mt_to_host(a->gpu, count * p * q, sums.data, out);
}

/* t (rows, m) to the device. */
static mt_status copy_small(part_matrix *a, int64_t count, const double *t)
{
  if (a->small.count < count) MT_PASS(a->small.make(a->gpu, count, "a small matrix"));
  return mt_to_device(a->gpu, count, t, a->small.data);
}

static mt_status transform(const mt_operator *op, int64_t m, const double *t,
                           const double *x, double *y)
{
  part_matrix *a = matrix_of(op);
  MT_PASS(copy_small(a, m * m, t));
  const double *small = a->small.data;
  return mt_gpu_each(a->gpu, op->n * m, [=] __device__(int64_t at) {
    y[at] = mt_eigen_dot(m, x + at / m * m, small + at % m, m);
  });
}

static mt_status subtract(const mt_operator *op, int64_t p, int64_t m, const double *x,
                          const double *t, double *y)
{
  part_matrix *a = matrix_of(op);
  MT_PASS(copy_small(a, p * m, t));
  const double *small = a->small.data;
  return mt_gpu_each(a->gpu, op->n * m, [=] __device__(int64_t at) {
    y[at] -= mt_eigen_dot(p, x + at / m * p, small + at % m, m);
  });
}

static mt_status fetch(const mt_operator *op, int64_t m, int64_t k, const double *x,
                       double *out)
{
  part_matrix *a = matrix_of(op);
  mt_array<double> chosen;
  MT_PASS(chosen.make(a->gpu, op->n * k, "eigenvectors"));
  double *to = chosen.data;
  MT_PASS(mt_gpu_each(a->gpu, op->n * k,
                      [=] __device__(int64_t at) { to[at] = x[at / k * m + at % k]; }));
  return mt_to_host(a->gpu, op->n * k, chosen.data, out);
}

static const mt_vectors on_device = {take,     give,      randomize, multiply,
                                     products, transform, subtract,  fetch};

/* ---- the graph ---------------------------------------------------------------------------- */

/* What mt_spectral_graph's context is. */
struct start_graph {
  mt_gpu *gpu = nullptr;
  const mt_gpu_graph *graph = nullptr;
  mt_gpu_umap_cost *cost = nullptr;
  mt_array<double> degrees; /* (n) */
  mt_array<int32_t> place;  /* (n) a vertex' index in its part, once asked for */
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

/* ---- a part ------------------------------------------------------------------------------- */

static mt_status copy_places(start_graph *g, const mt_parts *parts)
{
  mt_array<int64_t> wide;
  const int64_t n = g->graph->n;
  if (g->place.data != nullptr) return MT_OK;
  MT_PASS(g->place.make(g->gpu, n, "places in the parts"));
  MT_PASS(wide.make(g->gpu, n, "places in the parts"));
  MT_PASS(mt_to_device(g->gpu, n, parts->place, wide.data));
  const int64_t *in = wide.data;
  int32_t *out = g->place.data;
  return mt_gpu_each(g->gpu, n, [=] __device__(int64_t i) { out[i] = (int32_t)in[i]; });
}

/* rows: this GPU's members of the part, as rows of the graph. */
static mt_status fill_matrix(start_graph *g, const int64_t *rows, part_matrix *a)
{
  mt_array<int32_t> counts;
  const int64_t *indptr = g->graph->indptr.data, first = g->graph->first;
  const int32_t *indices = g->graph->indices.data, *place = g->place.data;
  const float *weights = g->graph->weights.data;
  const double *degree = g->degrees.data;
  int64_t edges = 0;
  MT_PASS(counts.make(a->gpu, a->own, "edges of each row"));
  MT_PASS(a->indptr.make(a->gpu, a->own + 1, "rows of a part"));
  int32_t *count = counts.data;
  MT_PASS(mt_gpu_each(a->gpu, a->own, [=] __device__(int64_t i) {
    int64_t row = rows[i] - first;
    count[i] = (int32_t)(indptr[row + 1] - indptr[row]);
  }));
  MT_PASS(mt_gpu_scan(a->gpu, a->own, counts.data, a->indptr.data));
  MT_PASS(mt_to_host(a->gpu, 1, a->indptr.data + a->own, &edges));
  MT_PASS(a->columns.make(a->gpu, edges, "edges of a part"));
  MT_PASS(a->values.make(a->gpu, edges, "the adjacency of a part"));
  const int64_t *begin = a->indptr.data;
  int32_t *columns = a->columns.data;
  double *values = a->values.data;
  return mt_gpu_each(a->gpu, a->own, [=] __device__(int64_t i) {
    const int64_t vertex = rows[i], from = indptr[vertex - first] - begin[i];
    for (int64_t e = begin[i]; e < begin[i + 1]; e++) {
      const int32_t other = indices[from + e];
      columns[e] = place[other];
      values[e] = mt_umap_adjacency(weights[from + e], degree[vertex], degree[other]);
    }
  });
}

static mt_status make_matrix(start_graph *g, const mt_parts *parts, const mt_part *part,
                             part_matrix *a)
{
  mt_array<int64_t> rows;
  MT_PASS(copy_places(g, parts));
  MT_PASS(rows.make(a->gpu, a->own, "vertices of a part"));
  MT_PASS(mt_to_device(a->gpu, a->own, part->members + a->first, rows.data));
  MT_PASS(a->known.make(a->gpu, part->count, "the known eigenvector"));
  MT_PASS(mt_to_device(a->gpu, part->count, part->known, a->known.data));
  return fill_matrix(g, rows.data, a);
}

static mt_status solve(const mt_comm *comm, const mt_spectral_graph *source,
                       const mt_parts *parts, const mt_part *part, int64_t k,
                       double tolerance, uint32_t seed, double *vectors_out,
                       double *residual_out)
{
  start_graph *g = graph_of(source);
  part_matrix a;
  std::vector<double> values((size_t)k);
  mt_operator op = {};
  a.gpu = g->gpu;
  a.firsts.assign(part->firsts, part->firsts + comm->size + 1);
  a.first = part->firsts[comm->rank];
  a.own = part->firsts[comm->rank + 1] - a.first;
  MT_PASS(mt_agree(comm, make_matrix(g, parts, part, &a)));
  op.n = part->count;
  op.firsts = part->firsts;
  op.low = -1.0;
  op.high = 1.0;
  op.known = a.known.data;
  op.context = &a;
  op.vectors = &on_device;
  double begun = mt_seconds();
  mt_status status = mt_eigen_largest(comm, &op, k, tolerance, seed, values.data(),
                                      vectors_out, residual_out);
  g->cost->products += mt_seconds() - begun;
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
  source.context = &g;
  source.components = components;
  source.degrees = degrees;
  source.rows = host_rows;
  source.solve = solve;
  return mt_umap_start(comm, options, metric, &source, rows, positions_out);
}
