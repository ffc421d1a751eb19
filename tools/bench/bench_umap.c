/* UMAP of points whose nearest neighbours are given, by the CPU backend, timed by part:
 *   bench_umap FOLDER POINTS COLUMNS NEIGHBOURS [SECTION.NAME=VALUE]...
 * FOLDER/rows (n, d) and distances (n, k) are float32, neighbors (n, k) int64: the Euclidean
 * ones, the point itself not among them. Leaves FOLDER/positions (n, n_components) float32.
 * Updates are those of positions that all epochs make: every copy of an edge acts in its share of
 * the epochs, a pull at both ends and so many pushes at one. */
#include "backend/backend.h"
#include "base/memory.h"
#include "bench.h"
#include "umap/umap.h"

#include <stdlib.h>

/* What is laid out; points and positions whole on every rank, lists of its own points. */
typedef struct job {
  const char *folder;
  int64_t n, d, k;
  mt_umap_options *options;
  float *rows, *distances, *positions;
  int64_t *indices;
} job;

static mt_status load(const mt_comm *comm, job *j)
{
  mt_status status = MT_OK;
  int64_t *indices = NULL, of = j->n * j->k;
  float *distances = NULL;
  int64_t first = mt_part_first(j->n, comm->size, comm->rank) * j->k;
  int64_t own = mt_part_count(j->n, comm->size, comm->rank) * j->k;
  MT_NEW(indices, of);
  MT_NEW(distances, of);
  MT_NEW(j->indices, own);
  MT_NEW(j->distances, own);
  MT_NEW(j->rows, j->n * j->d);
  MT_NEW(j->positions, j->n * j->options->n_components);
  MT_TRY(mt_bench_load(j->folder, "rows", (size_t)(j->n * j->d) * sizeof *j->rows,
                       j->rows));
  MT_TRY(mt_bench_load(j->folder, "neighbors", (size_t)of * sizeof *indices, indices));
  MT_TRY(
      mt_bench_load(j->folder, "distances", (size_t)of * sizeof *distances, distances));
  for (int64_t e = 0; e < own; e++) j->indices[e] = indices[first + e];
  for (int64_t e = 0; e < own; e++) j->distances[e] = distances[first + e];
done:
  free(indices);
  free(distances);
  return status;
}

static void unload(job *j)
{
  free(j->rows);
  free(j->distances);
  free(j->positions);
  free(j->indices);
}

static mt_status count_updates(const mt_comm *comm, const job *j, const mt_graph *graph,
                               double *updates_out)
{
  mt_status status = MT_OK;
  float heaviest;
  double sum = 0.0;
  MT_TRY(mt_graph_heaviest(comm, graph, &heaviest));
  for (int64_t e = 0; e < graph->indptr[graph->local]; e++) sum += graph->weights[e];
  int64_t acts =
      (int64_t)(sum / (double)heaviest * (double)mt_umap_n_epochs(j->options, j->n));
  MT_TRY(mt_sum_i64(comm, 1, &acts));
  *updates_out = (double)acts * (double)(2 + j->options->negative_sample_rate);
done:
  return status;
}

/* As mt_umap_by_steps. */
static mt_status lay_out(mt_backend *be, const mt_comm *comm, job *j)
{
  mt_status status = MT_OK;
  mt_graph graph = {0};
  mt_rows rows = mt_rows_memory(j->n, j->d, j->rows);
  mt_elapsed all, of_graph, of_start, begin = mt_bench_now();
  double updates;
  MT_TRY(be->umap_graph(be, comm, j->options, j->n, j->k, j->indices, j->distances,
                        &graph));
  MT_TRY(mt_graph_prune(comm, mt_umap_n_epochs(j->options, j->n), &graph));
  MT_TRY(mt_bench_since(comm, begin, &of_graph));
  MT_TRY(be->umap_start(be, comm, j->options, MT_METRIC_EUCLIDEAN, &graph, &rows,
                        j->positions));
  MT_TRY(mt_bench_since(comm, begin, &of_start));
  MT_TRY(be->umap_epochs(be, comm, j->options, &graph, j->positions));
  MT_TRY(mt_bench_since(comm, begin, &all));
  MT_TRY(count_updates(comm, j, &graph, &updates));
  if (comm->rank == 0)
    printf("{\"seconds\": %.6f, \"cpu\": %.6f, \"graph\": %.6f, \"start\": %.6f, "
           "\"epochs\": %.6f, \"updates\": %.0f}\n",
           all.clock, all.processor, of_graph.clock, of_start.clock - of_graph.clock,
           all.clock - of_start.clock, updates);
done:
  mt_graph_destroy(&graph);
  return status;
}

static mt_status run(mt_backend *be, const mt_comm *comm, job *j)
{
  mt_status status = MT_OK;
  MT_TRY(mt_agree(comm, load(comm, j)));
  MT_TRY(lay_out(be, comm, j));
  if (comm->rank == 0)
    MT_TRY(
        mt_bench_save(j->folder, "positions",
                      (size_t)(j->n * j->options->n_components) * sizeof *j->positions,
                      j->positions));
done:
  unload(j);
  return status;
}

int main(int argc, char **argv)
{
  mt_status status = MT_OK;
  mt_comm world;
  mt_backend *be = NULL;
  mt_parameters parameters = {0};
  if (mt_comm_start(&argc, &argv, &world) != MT_OK) return 1;
  mt_log_setup(world.rank, world.size,
               getenv("VERBOSE") != NULL ? MT_LOG_DEBUG : MT_LOG_WARN);
  MT_REQUIRE(argc >= 5, MT_ERR_INPUT,
             "bench_umap FOLDER POINTS COLUMNS NEIGHBOURS [SECTION.NAME=VALUE]...");
  MT_TRY(mt_bench_parameters(argc - 5, argv + 5, &parameters));
  job j = {.folder = argv[1], .options = &parameters.umap};
  MT_TRY(mt_bench_sizes(argv + 2, &j.n, &j.d, &j.k));
  MT_TRY(mt_backend_cpu(&be));
  status = run(be, &world, &j);
done:
  if (be != NULL) be->close(be);
  mt_parameters_destroy(&parameters);
  mt_comm_stop(&world);
  return mt_exit_code(status);
}
