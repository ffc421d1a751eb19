#include <algorithm>
#include <vector>

#include "gpu_bench.h"
#include "gpu_points.h"
#include "umap.h"

extern "C" {
#include "gpu_trust.h"
#include "umap/umap.h"
}

enum { DIMENSIONS = 5 }; /* of the points whose neighbours are laid out */

struct umap_job {
  mt_scatter scatter; /* what is laid out */
  int64_t n, k, d;
  const mt_umap_options *options;
  std::vector<float> points, distances, positions; /* all of them, on every process */
  std::vector<int64_t> indices;
  mt_umap_result result;
  int64_t n_products; /* of the spectral start */
  double updates;     /* of positions, pulls and pushes, in all epochs */
};

/* ---- a run ------------------------------------------------------------------------------- */

/* Every copy of an edge acts in its share of the epochs: a pull at both ends, and so many pushes
 * at one. */
static mt_status count_updates(mt_bench *b, umap_job *job)
{
  mt_graph graph = {};
  float heaviest = 0.0f;
  double sum = 0.0;
  const int64_t first = mt_bench_first(b, job->n) * job->k;
  const int64_t n_epochs = mt_umap_n_epochs(job->options, job->n);
  MT_PASS(mt_gpu_umap_graph(&b->gpu->table, b->team, job->options, job->n, job->k,
                            job->indices.data() + first, job->distances.data() + first,
                            &graph));
  mt_status status = mt_graph_prune(b->team, n_epochs, &graph);
  if (status == MT_OK) status = mt_graph_heaviest(b->team, &graph, &heaviest);
  for (int64_t e = 0; status == MT_OK && e < graph.indptr[graph.local]; e++)
    sum += graph.weights[e];
  mt_graph_destroy(&graph);
  MT_PASS(status);
  int64_t acts = (int64_t)(sum / (double)heaviest * (double)n_epochs);
  MT_PASS(mt_sum_i64(b->team, 1, &acts));
  job->updates = (double)acts * (double)(2 + job->options->negative_sample_rate);
  return MT_OK;
}

/* From lists of neighbours on the host to positions there. */
static mt_status lay_out(mt_bench *b, void *any, mt_bench_row *row, double *seconds_out)
{
  umap_job *job = (umap_job *)any;
  mt_gpu_umap_cost cost;
  mt_rows rows = mt_rows_memory(job->n, job->d, job->points.data());
  const int64_t first = mt_bench_first(b, job->n) * job->k;
  double begun = mt_seconds();
  MT_PASS(mt_gpu_umap_costs(&b->gpu->table, b->team, job->options, MT_METRIC_EUCLIDEAN,
                            job->k, job->indices.data() + first,
                            job->distances.data() + first, &rows, job->positions.data(),
                            &job->result, &cost));
  *seconds_out = mt_seconds() - begun;
  job->n_products = cost.n_products;
  mt_bench_phase(row, "copy", cost.copy);
  mt_bench_phase(row, "graph", cost.graph);
  mt_bench_phase(row, "components", cost.components);
  mt_bench_phase(row, "parts", cost.start_of.parts);
  mt_bench_phase(row, "places", cost.start_of.places);
  mt_bench_phase(row, "eigenvectors", cost.start_of.large);
  mt_bench_phase(row, "of small parts", cost.start_of.small);
  mt_bench_phase(row, "finish", cost.start_of.finish);
  mt_bench_phase(row, "epochs", cost.epochs);
  return MT_OK;
}

static mt_status make_lists(mt_bench *b, umap_job *job)
{
  mt_array<float> points, distances;
  mt_array<int64_t> indices;
  const int64_t n = job->n, k = job->k;
  const int64_t d = job->d;
  job->points.resize((size_t)(n * d));
  job->distances.resize((size_t)(n * k));
  job->indices.resize((size_t)(n * k));
  job->positions.resize((size_t)(n * job->options->n_components));
  MT_PASS(points.make(b->gpu, n * d, "points"));
  MT_PASS(distances.make(b->gpu, n * k, "distances"));
  MT_PASS(indices.make(b->gpu, n * k, "neighbours"));
  MT_PASS(mt_scatter_points(b->gpu, &job->scatter, 0, n, points.data));
  MT_PASS(mt_bench_lists(b->gpu, n, d, points.data, k, indices.data, distances.data));
  MT_PASS(mt_to_host(b->gpu, n * d, points.data, job->points.data()));
  MT_PASS(mt_to_host(b->gpu, n * k, indices.data, job->indices.data()));
  return mt_to_host(b->gpu, n * k, distances.data, job->distances.data());
}

/* ---- checks, on rank 0 alone ----------------------------------------------------------------- */

static mt_status trust(const umap_job *job, const float *positions, double *trust_out)
{
  const int64_t m = std::min(job->n, std::max<int64_t>(100, 400000000 / job->n));
  return mt_bench_trust(job->n, job->d, job->points.data(), job->options->n_components,
                        positions, job->k, std::min<int64_t>(m, 1000), trust_out);
}

/* Beside the CPU backend's layout, where that does not take minutes. */
static mt_status check(umap_job *job, mt_bench_row *row)
{
  enum { MOST = 200000 };
  mt_comm self = mt_comm_self();
  mt_backend *cpu = NULL;
  double ours, theirs;
  int64_t unlike = 0;
  MT_PASS(trust(job, job->positions.data(), &ours));
  mt_bench_note(row, "trustworthiness %.4f", ours);
  if (job->n > MOST) return MT_OK;
  std::vector<float> positions(job->positions.size());
  mt_rows rows = mt_rows_memory(job->n, job->d, job->points.data());
  mt_umap_result result;
  MT_PASS(mt_backend_cpu(&cpu));
  mt_status status = mt_umap_layout(cpu, &self, job->options, MT_METRIC_EUCLIDEAN,
                                    job->k, job->indices.data(), job->distances.data(),
                                    &rows, positions.data(), &result);
  cpu->close(cpu);
  MT_PASS(status);
  MT_PASS(trust(job, positions.data(), &theirs));
  for (size_t i = 0; i < positions.size(); i++)
    unlike += positions[i] != job->positions[i];
  mt_bench_note(row, "%.4f by the CPU backend, %lld coordinates unlike its", theirs,
                (long long)unlike);
  return MT_OK;
}

/* ---- the rows ---------------------------------------------------------------------------------- */

static double phase(const mt_bench_row *row, const char *name)
{
  for (int i = 0; i < row->n_phases; i++)
    if (strcmp(row->phases[i].name, name) == 0) return row->phases[i].seconds;
  return 0.0;
}

/* The epochs of the row's median run, against random reads of positions: each update reads
 * one that is anywhere. */
static void epochs_of(const mt_bench_row *whole, const umap_job *job, double gather,
                      mt_bench_row *row)
{
  const int64_t n_epochs = mt_umap_n_epochs(job->options, job->n);
  *row = *whole;
  row->stage = "epochs";
  row->seconds = row->least = row->most = phase(whole, "epochs");
  row->n_phases = 0;
  row->notes[0] = '\0';
  row->work = 1e-9 * job->updates;
  row->unit = "G updates";
  snprintf(row->limit, sizeof row->limit, "gather %.0f G/s", 1e-9 * gather);
  mt_bench_note(row, "%lld epochs, %.0f edges a point, %.1f updates a point and epoch",
                (long long)n_epochs, 2.0 * (double)job->result.edges / (double)job->n,
                job->updates / (double)job->n / (double)n_epochs);
}

static mt_status lay_out_points(mt_bench *b, const char *stage, int64_t n,
                                const mt_scatter *scatter)
{
  const mt_parameters *parameters = &b->options->parameters;
  mt_bench_row row =
      mt_bench_row_of(stage, n, parameters->umap.n_components, b->team->size);
  mt_bench_row epochs;
  umap_job job = {};
  double gather = 0.0;
  mt_status status;
  job.scatter = *scatter;
  job.n = n;
  job.d = scatter->n_dimensions;
  job.k = std::min(n, parameters->knn.n_neighbors) - 1;
  job.options = &parameters->umap;
  if (!b->options->once)
    MT_PASS(mt_agree(b->team, mt_limit_gather(b->gpu, n * 8, &gather)));
  MT_PASS(mt_min_f64(b->team, 1, &gather));
  MT_PASS(mt_agree(b->team, make_lists(b, &job)));
  if (!b->options->once) MT_PASS(count_updates(b, &job));
  MT_PASS(mt_bench_measure(b, lay_out, &job, &row));
  row.work = 1e-6 * (double)n;
  row.unit = "M points";
  if (gather > 0.0) row.limit_seconds = job.updates / (gather * row.gpus);
  snprintf(row.limit, sizeof row.limit, "gather %.0f G/s (epochs alone)",
           1e-9 * gather);
  mt_bench_note(&row, "k %lld, %lld parts, %lld products", (long long)job.k,
                (long long)job.result.components, (long long)job.n_products);
  status = mt_bench_same_bits(b, &row, stage, job.positions.size() * sizeof(float),
                              job.positions.data());
  if (b->options->check && b->team->rank == 0 && status == MT_OK)
    status = check(&job, &row);
  epochs_of(&row, &job, gather, &epochs);
  status = mt_bench_done(b, &row, status);
  return mt_bench_done(b, &epochs, status);
}

mt_status mt_bench_umap(mt_bench *b, int64_t n)
{
  mt_scatter scatter = mt_scatter_default(n, DIMENSIONS);
  return lay_out_points(b, "umap", n, &scatter);
}

/* Points all over a square: one piece, which the spectral start finds hardest, since its
 * eigenvalues lie within some 1 / n of one another. */
mt_status mt_bench_sheet(mt_bench *b, int64_t n)
{
  mt_scatter scatter = mt_scatter_default(n, 2);
  scatter.anywhere = 1.0f;
  return lay_out_points(b, "sheet", n, &scatter);
}
