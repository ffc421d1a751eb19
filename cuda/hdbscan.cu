#include "hdbscan.h"
#include "hdbscan_condense.h"

extern "C" {
#include "hdbscan/select.h"
}

/* Moments on the GPU's stream, to tell afterwards what lay between them. */
enum { MOMENTS = 8 };
struct clock_of_steps {
  cudaEvent_t moment[MOMENTS] = {};

  ~clock_of_steps()
  {
    for (cudaEvent_t event : moment)
      if (event != nullptr) cudaEventDestroy(event);
  }
  mt_status mark(mt_gpu *gpu, int i)
  {
    MT_CUDA(cudaEventCreate(&moment[i]));
    MT_CUDA(cudaEventRecord(moment[i], gpu->stream));
    return MT_OK;
  }
  /* After the GPU's stream has been waited for; 0 for what was not marked. */
  mt_status tell(double *seconds_out) const
  {
    for (int i = 0; i + 1 < MOMENTS; i++) {
      float milliseconds = 0.0f;
      seconds_out[i] = 0.0;
      if (moment[i + 1] == nullptr) continue;
      MT_CUDA(cudaEventElapsedTime(&milliseconds, moment[i], moment[i + 1]));
      seconds_out[i] = milliseconds * 1e-3;
    }
    return MT_OK;
  }
};

/* What has to fit at once, so that nothing large starts in vain. */
static mt_status check_memory(const mt_gpu *gpu, int64_t n, int64_t d,
                              int64_t min_samples)
{
  int64_t edges = n * (int64_t)(sizeof(uint64_t) + sizeof(double));
  int64_t kept = n * (int64_t)((d + 2) * sizeof(float) + sizeof(double)) + edges;
  int64_t steps[] = {mt_space_bytes(n, d), kept + mt_cores_bytes(n, min_samples),
                     kept + mt_rounds_bytes(n, d), kept + mt_edges_bytes(n),
                     mt_condense_bytes(n)};
  int64_t most = 0;
  for (int64_t bytes : steps) most = bytes > most ? bytes : most;
  if (n > INT32_MAX)
    return mt_fail(MT_ERR_MEMORY,
                   "hdbscan: %lld points; a GPU takes 2147483647 at most: use "
                   "--backend cpu",
                   (long long)n);
  if (!mt_gpu_fits(gpu, most))
    return mt_fail(MT_ERR_MEMORY,
                   "hdbscan: %lld points need %lld MB of device memory on each GPU, "
                   "%lld MB are free: use --backend cpu",
                   (long long)n, (long long)(most >> 20),
                   (long long)((gpu->memory - gpu->used) >> 20));
  return MT_OK;
}

/* An edge of a point and its equal weighs as much as their core distance: no edge of theirs
 * weighs less. Weights, no longer squared. */
static mt_status weigh_edges(mt_gpu *gpu, const mt_space *space, const double *core2,
                             uint64_t *pair, double *weight)
{
  int64_t n_twins = space->n - space->places.n;
  const uint64_t *twin = space->twins.data;
  const uint32_t *place_of = space->place_of.data;
  return mt_gpu_each(gpu, space->n - 1, [=] __device__(int64_t i) {
    double weight2 = i < n_twins ? core2[place_of[twin[i] >> 32]] : weight[i];
    if (i < n_twins) pair[i] = twin[i];
    weight[i] = sqrt(weight2);
  });
}

/* Core distances of all points, to the host. */
static mt_status give_cores(mt_gpu *gpu, const mt_space *space, const double *core2,
                            double *core_out)
{
  mt_array<double> cores;
  MT_PASS(cores.make(gpu, space->n, "core distances"));
  double *core = cores.data;
  const uint32_t *place_of = space->place_of.data;
  MT_PASS(mt_gpu_each(gpu, space->n, [=] __device__(int64_t i) {
    core[i] = sqrt(core2[place_of[i]]);
  }));
  return mt_to_host(gpu, space->n, core, core_out);
}

static mt_status check(mt_gpu *gpu, const mt_hdbscan_options *options, int64_t n,
                       int64_t d, clock_of_steps *clock)
{
  if (n < 2 || d < 1 || options->min_samples < 1 || !(options->alpha > 0.0))
    return mt_fail(MT_ERR_ARG,
                   "spanning tree: n, d, min_samples or alpha out of range");
  MT_PASS(check_memory(gpu, n, d, options->min_samples));
  return clock->mark(gpu, 0);
}

/* What grows from the points: their order, core distances and tree. */
struct growth {
  mt_space space;
  mt_array<double> core2;  /* (distinct points) by position */
  mt_array<uint64_t> pair; /* (n - 1) edges, those of equal points first */
  mt_array<double> weight; /* (n - 1) squared while they are found */
};

static mt_status make_room(mt_gpu *gpu, growth *w, clock_of_steps *clock)
{
  MT_PASS(w->core2.make(gpu, w->space.places.n, "core distances"));
  MT_PASS(w->pair.make(gpu, w->space.n - 1, "edges"));
  MT_PASS(w->weight.make(gpu, w->space.n - 1, "edges"));
  return clock->mark(gpu, 2);
}

/* Collective. */
static mt_status prepare(mt_gpu *gpu, const mt_comm *comm,
                         const mt_hdbscan_options *options, int64_t n, int64_t d,
                         const float *points, growth *w, clock_of_steps *clock)
{
  MT_PASS(mt_agree(comm, check(gpu, options, n, d, clock)));
  MT_PASS(mt_space_upload(gpu, comm, n, d, points, &w->space));
  MT_PASS(clock->mark(gpu, 1));
  MT_PASS(mt_space_create(gpu, comm, &w->space));
  return mt_agree(comm, make_room(gpu, w, clock));
}

/* Edges sorted, on the device. */
static mt_status finish(mt_gpu *gpu, growth *w, mt_array<mt_edge> *edges_out,
                        clock_of_steps *clock)
{
  int64_t n = w->space.n;
  MT_PASS(clock->mark(gpu, 4));
  MT_PASS(weigh_edges(gpu, &w->space, w->core2.data, w->pair.data, w->weight.data));
  MT_PASS(edges_out->make(gpu, n - 1, "edges"));
  MT_PASS(mt_sort_edges(gpu, n - 1, w->pair.data, w->weight.data, edges_out->data));
  return clock->mark(gpu, 5);
}

/* Collective: the spanning tree on every GPU. core_out: on the host, or NULL. */
static mt_status grow(mt_gpu *gpu, const mt_comm *comm,
                      const mt_hdbscan_options *options, int64_t n, int64_t d,
                      const float *points, mt_array<mt_edge> *edges_out,
                      double *core_out, clock_of_steps *clock, mt_hdbscan_cost *cost)
{
  growth w;
  MT_PASS(prepare(gpu, comm, options, n, d, points, &w, clock));
  int64_t n_twins = n - w.space.places.n,
          samples = options->min_samples < n - 1 ? options->min_samples : n - 1;
  cost->n_distinct = w.space.places.n;
  MT_PASS(mt_find_cores(gpu, comm, &w.space, samples, w.core2.data));
  MT_PASS(clock->mark(gpu, 3));
  MT_PASS(mt_gpu_wait(gpu));
  MT_PASS(mt_run_rounds(gpu, comm, &w.space, w.core2.data,
                        1.0 / (options->alpha * options->alpha), w.pair.data + n_twins,
                        w.weight.data + n_twins, &cost->n_rounds));
  MT_PASS(mt_agree(comm, finish(gpu, &w, edges_out, clock)));
  if (core_out == nullptr) return MT_OK;
  return mt_agree(comm, give_cores(gpu, &w.space, w.core2.data, core_out));
}

static mt_status tell_cost(const mt_gpu *gpu, const clock_of_steps *clock,
                           mt_hdbscan_cost *cost)
{
  double seconds[MOMENTS - 1];
  MT_PASS(clock->tell(seconds));
  cost->upload = seconds[0];
  cost->space = seconds[1];
  cost->cores = seconds[2];
  cost->rounds = seconds[3];
  cost->edges = seconds[4];
  cost->condensing = seconds[5];
  cost->selection = seconds[6];
  cost->bytes = gpu->peak;
  mt_debug("hdbscan: %lld distinct points; seconds: upload %.4f, kd-tree %.4f, core "
           "distances %.4f, %d rounds %.4f, edges %.4f, condensed tree %.4f, clusters "
           "%.4f",
           (long long)cost->n_distinct, cost->upload, cost->space, cost->cores,
           cost->n_rounds, cost->rounds, cost->edges, cost->condensing,
           cost->selection);
  return MT_OK;
}

mt_status mt_cuda_spanning_tree(mt_backend *be, const mt_comm *comm,
                                const mt_hdbscan_options *options, int64_t n, int64_t d,
                                const float *points, mt_edge *tree_out,
                                double *core_out)
{
  mt_gpu *gpu = mt_gpu_of(be);
  mt_array<mt_edge> edges;
  clock_of_steps clock;
  mt_hdbscan_cost cost = {};
  MT_PASS(grow(gpu, comm, options, n, d, points, &edges, core_out, &clock, &cost));
  MT_PASS(mt_agree(comm, mt_to_host(gpu, n - 1, edges.data, tree_out)));
  return tell_cost(gpu, &clock, &cost);
}

/* From the spanning tree on: each GPU for itself, and to its host the part of `rank` among
 * `size`. Not collective. */
static mt_status cluster(mt_gpu *gpu, int size, int rank,
                         const mt_hdbscan_options *options, int64_t n,
                         mt_array<mt_edge> *edges, mt_clusters *clusters,
                         clock_of_steps *clock)
{
  mt_status status = MT_OK;
  mt_condensed_rows rows;
  MT_TRY(mt_clusters_create(n, mt_part_of(n, size, rank), clusters));
  MT_TRY(mt_condense_rows(gpu, options->min_cluster_size, n, edges, &rows));
  MT_TRY(clock->mark(gpu, 6));
  if (n >= options->min_cluster_size)
    MT_TRY(mt_select_on_gpu(gpu, options, &rows, clusters));
  else
    MT_NEW(clusters->persistence, 0);
  clusters->rows = mt_part_of(rows.n_rows, size, rank);
  MT_TRY(mt_rows_to_host(gpu, &rows, clusters->rows, &clusters->tree));
  MT_TRY(clock->mark(gpu, 7));
  MT_TRY(mt_gpu_wait(gpu));
done:
  return status;
}

extern "C" mt_status mt_cuda_clusters_cost(mt_backend *be, const mt_comm *comm,
                                           const mt_hdbscan_options *options, int64_t n,
                                           int64_t d, const float *points,
                                           mt_clusters *clusters_out,
                                           mt_hdbscan_cost *cost_out)
{
  mt_gpu *gpu = mt_gpu_of(be);
  mt_array<mt_edge> edges;
  clock_of_steps clock;
  mt_clusters clusters = {};
  *cost_out = {};
  MT_PASS(grow(gpu, comm, options, n, d, points, &edges, nullptr, &clock, cost_out));
  mt_log_replicated(true); /* every rank does the same */
  mt_status local =
      cluster(gpu, comm->size, comm->rank, options, n, &edges, &clusters, &clock);
  mt_log_replicated(false);
  mt_status status = mt_agree(comm, local);
  if (status != MT_OK) {
    mt_clusters_destroy(&clusters);
    return status;
  }
  *clusters_out = clusters;
  return tell_cost(gpu, &clock, cost_out);
}

mt_status mt_cuda_clusters(mt_backend *be, const mt_comm *comm,
                           const mt_hdbscan_options *options, int64_t n, int64_t d,
                           const float *points, mt_clusters *clusters_out)
{
  mt_hdbscan_cost cost;
  return mt_cuda_clusters_cost(be, comm, options, n, d, points, clusters_out, &cost);
}
