/* Seconds of HDBSCAN by part, on blobs with uniform noise: mpirun -n R bench_hdbscan [N D [MIN_SAMPLES]] */
#include "backend/backend.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "hdbscan/hdbscan.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

/* Nine of ten points round one of n / 500 centres, the others anywhere. */
static void make_points(int64_t n, int64_t d, float *points)
{
  int64_t n_blobs = n / 500 + 1;
  for (int64_t i = 0; i < n; i++)
    for (int64_t t = 0; t < d; t++) {
      uint64_t centre = (uint64_t)(i % n_blobs * d + t), at = (uint64_t)(i * d + t);
      double side =
          20.0 * mt_random_unit(1, MT_STREAM_TEST, i % 10 ? centre : at, i % 10 != 0);
      double spread = i % 10 ? 0.05 * mt_random_normal(2, MT_STREAM_TEST, at, 0) : 0.0;
      points[i * d + t] = (float)(side + spread);
    }
}

static mt_status measure(const mt_comm *world, const mt_hdbscan_options *options,
                         int64_t n, int64_t d)
{
  mt_status status = MT_OK;
  mt_backend be = {.name = "cpu", .spanning_tree = mt_cpu_spanning_tree};
  mt_clusters clusters = {0};
  float *points = NULL;
  mt_edge *tree = NULL;

  MT_NEW(points, n * d);
  MT_NEW(tree, n);
  make_points(n, d, points);
  double start = mt_seconds();
  MT_TRY(be.spanning_tree(&be, world, options, n, d, points, tree, NULL));
  double middle = mt_seconds();
  MT_TRY(mt_clusters_find(options, n, tree, &clusters));
  double end = mt_seconds();
  if (world->rank == 0)
    printf("%10lld %3lld %12.3f %12.3f %12.3f %9lld\n", (long long)n, (long long)d,
           middle - start, end - middle, end - start, (long long)clusters.n_clusters);
done:
  mt_clusters_destroy(&clusters);
  free(points);
  free(tree);
  return status;
}

static mt_status measure_all(const mt_comm *world, int argc, char **argv)
{
  mt_status status = MT_OK;
  mt_hdbscan_options options = {.min_cluster_size = 10, .min_samples = 5, .alpha = 1.0};
  if (argc > 3) options.min_samples = atoll(argv[3]);
  if (world->rank == 0)
    printf("hdbscan, %d ranks, %d threads each, min_samples %lld\n%10s %3s %12s %12s "
           "%12s %9s\n",
           world->size, omp_get_max_threads(), (long long)options.min_samples, "points",
           "d", "tree s", "clusters s", "all s", "clusters");
  if (argc > 2) return measure(world, &options, atoll(argv[1]), atoll(argv[2]));
  for (int64_t n = 10000; n <= 1000000; n *= 10) MT_TRY(measure(world, &options, n, 2));
done:
  return status;
}

int main(int argc, char **argv)
{
  mt_comm world;
  if (mt_comm_start(&argc, &argv, &world) != MT_OK) return 1;
  bool talk = getenv("VERBOSE") != NULL;
  mt_log_setup(world.rank, world.size, talk ? MT_LOG_DEBUG : MT_LOG_INFO);
  mt_status status = mt_agree(&world, measure_all(&world, argc, argv));
  mt_comm_stop(&world);
  return mt_exit_code(status);
}
