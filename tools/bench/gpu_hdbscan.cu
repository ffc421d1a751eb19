#include <vector>

#include "gpu_bench.h"
#include "hdbscan.h"

extern "C" {
#include "hdbscan/hdbscan.h"
}

struct hdbscan_job {
  int64_t n, d;
  const mt_hdbscan_options *options;
  std::vector<float> points;
  mt_clusters clusters;
};

/* A backend whose clusters are the GPU's, and that tells what they cost. */
struct timed_backend {
  mt_backend table;
  mt_backend *gpu;
  mt_hdbscan_cost cost;
};

static mt_status timed(mt_backend *be, const mt_comm *comm,
                       const mt_hdbscan_options *options, int64_t n, int64_t d,
                       const float *points, mt_clusters *clusters_out)
{
  timed_backend *t = (timed_backend *)be;
  return mt_cuda_clusters_cost(t->gpu, comm, options, n, d, points, clusters_out,
                               &t->cost);
}

/* The bytes that must pass at least. On the device: a sort of 64-bit places with 32-bit
 * numbers and one of the edges, eight passes each, and in every round the points, components
 * and core distances; shared by all GPUs. To and from the host, likewise shared: the points,
 * and labels, probabilities, outlier scores and the rows of the condensed tree. */
static void hold_against_bytes(const mt_bench *b, const hdbscan_job *job, int n_rounds,
                               mt_bench_row *row)
{
  double n = (double)job->n, point = 4.0 * (double)job->d, round = point + 4.0 + 8.0;
  double device = n * (16.0 * 12.0 + 16.0 * 16.0 + n_rounds * round);
  double host =
      n * (point + 4.0 + 8.0 + 8.0) + 32.0 * (double)job->clusters.tree.n_rows;
  if (b->options->once) return;
  row->limit_seconds = (device / b->copy_rate + host / b->link_rate) / row->gpus;
  snprintf(row->limit, sizeof row->limit, "%.0f MB by memory, %.0f MB by link",
           1e-6 * device, 1e-6 * host);
}

/* From points on the host to labels there. */
static mt_status cluster(mt_bench *b, void *any, mt_bench_row *row, double *seconds_out)
{
  hdbscan_job *job = (hdbscan_job *)any;
  timed_backend backend = {};
  backend.table = b->gpu->table;
  backend.table.clusters = timed;
  backend.gpu = &b->gpu->table;
  mt_clusters_destroy(&job->clusters);
  double start = mt_seconds();
  MT_PASS(mt_hdbscan(&backend.table, b->team, job->options, job->n, job->d,
                     job->points.data(), &job->clusters));
  *seconds_out = mt_seconds() - start;
  const mt_hdbscan_cost *cost = &backend.cost;
  double parts = cost->upload + cost->space + cost->cores + cost->rounds + cost->edges +
                 cost->condensing + cost->selection;
  mt_bench_phase(row, "upload", cost->upload);
  mt_bench_phase(row, "space", cost->space);
  mt_bench_phase(row, "cores", cost->cores);
  mt_bench_phase(row, "rounds", cost->rounds);
  mt_bench_phase(row, "edges", cost->edges);
  mt_bench_phase(row, "condensed tree", cost->condensing);
  mt_bench_phase(row, "clusters, to the host", cost->selection);
  mt_bench_phase(row, "on the host", *seconds_out - parts);
  row->notes[0] = '\0';
  mt_bench_note(row,
                "min_samples %lld, min_cluster_size %lld; %lld distinct, %d rounds, "
                "%lld clusters",
                (long long)job->options->min_samples,
                (long long)job->options->min_cluster_size, (long long)cost->n_distinct,
                cost->n_rounds, (long long)job->clusters.n_clusters);
  hold_against_bytes(b, job, cost->n_rounds, row);
  return MT_OK;
}

static mt_status make_points(mt_bench *b, hdbscan_job *job)
{
  mt_array<float> points;
  mt_scatter scatter = mt_scatter_default(job->n, job->d);
  job->points.resize((size_t)(job->n * job->d));
  MT_PASS(points.make(b->gpu, job->n * job->d, "points"));
  MT_PASS(mt_scatter_points(b->gpu, &scatter, 0, job->n, points.data));
  return mt_to_host(b->gpu, job->n * job->d, points.data, job->points.data());
}

/* The CPU backend's weights and labels, by this process alone. */
static mt_status check(const hdbscan_job *job, mt_backend *gpu, mt_bench_row *row)
{
  mt_status status = MT_OK;
  mt_comm self = mt_comm_self();
  mt_backend *cpu = NULL;
  mt_edge *ours = NULL, *theirs = NULL;
  mt_clusters clusters = {};
  int64_t edges = 0, labels = 0;
  double start = mt_seconds();
  MT_NEW(ours, job->n);
  MT_NEW(theirs, job->n);
  MT_TRY(mt_backend_cpu(&cpu));
  MT_TRY(cpu->spanning_tree(cpu, &self, job->options, job->n, job->d,
                            job->points.data(), theirs, NULL));
  MT_TRY(mt_clusters_find(job->options, job->n, theirs, &clusters));
  start = mt_seconds() - start;
  MT_TRY(gpu->spanning_tree(gpu, &self, job->options, job->n, job->d,
                            job->points.data(), ours, NULL));
  for (int64_t i = 0; i < job->n - 1; i++)
    edges += ours[i].a != theirs[i].a || ours[i].b != theirs[i].b ||
             ours[i].weight != theirs[i].weight;
  for (int64_t i = 0; i < job->n; i++)
    labels += clusters.labels[i] != job->clusters.labels[i];
  mt_bench_note(row,
                "%lld edges and %lld labels unlike the CPU backend's (%.1f s there)",
                (long long)edges, (long long)labels, start);
done:
  if (cpu != NULL) cpu->close(cpu);
  mt_clusters_destroy(&clusters);
  free(ours);
  free(theirs);
  return status;
}

static mt_status run(mt_bench *b, hdbscan_job *job)
{
  mt_bench_row row = mt_bench_row_of("hdbscan", job->n, job->d, b->team->size);
  MT_PASS(mt_agree(b->team, make_points(b, job)));
  MT_PASS(mt_bench_measure(b, cluster, job, &row));
  row.work = 1e-6 * (double)job->n;
  row.unit = "M points";
  MT_PASS(mt_clusters_gather(b->team, &job->clusters));
  mt_status status = mt_bench_same_bits(
      b, &row, "hdbscan", (size_t)job->n * sizeof(int32_t), job->clusters.labels);
  if (b->options->check && b->team->rank == 0 && status == MT_OK)
    status = check(job, &b->gpu->table, &row);
  return mt_bench_done(b, &row, status);
}

mt_status mt_bench_hdbscan(mt_bench *b, int64_t n)
{
  hdbscan_job job = {};
  job.n = n;
  job.d = b->options->dimensions;
  job.options = &b->options->parameters.hdbscan;
  mt_status status = run(b, &job);
  mt_clusters_destroy(&job.clusters);
  return status;
}
