/* A collection to counts, timed: bench_corpus PATH [RUNS]. Reads, cuts into tokens, chooses
 * the vocabulary and counts (mt_corpus_build with the deck's defaults, but min_df 5, max_df
 * 0.5, max_features 20000), over all ranks. Prints for each run: MB, seconds, MB/s, core
 * seconds of the slowest rank (user and system), documents, stored counts. */
#include "base/log.h"
#include "corpus/build.h"
#include "corpus/source.h"
#include "deck/deck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double core_seconds(void)
{
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static mt_status megabytes(const mt_corpus_options *options, double *out)
{
  mt_source source = {0};
  mt_status status = mt_source_list(options, &source);
  *out = 0.0;
  for (int64_t f = 0; f < source.n; f++) *out += (double)source.files[f].size / 1e6;
  mt_source_destroy(&source);
  return status;
}

static mt_status once(const mt_comm *comm, const mt_corpus_options *options)
{
  mt_status status = MT_OK;
  mt_built built = {0};
  double size = 0.0, began = mt_seconds(), core = core_seconds();
  MT_TRY(mt_corpus_build(comm, options, MT_PIECE_BYTES, &built));
  double seconds = mt_seconds() - began;
  int64_t most = (int64_t)((core_seconds() - core) * 1e6);
  MT_TRY(mt_max_i64(comm, 1, &most));
  MT_TRY(mt_agree(comm, megabytes(options, &size)));
  if (comm->rank == 0)
    printf("%.1f %.4f %.1f %.4f %lld %lld\n", size, seconds, size / seconds,
           (double)most / 1e6, (long long)built.survey.n_documents,
           (long long)built.n_stored);
done:
  mt_built_destroy(&built);
  return status;
}

static mt_status all(const mt_comm *comm, char *path, int runs)
{
  mt_status status = MT_OK;
  mt_parameters parameters = {0};
  MT_TRY(mt_parameters_default(&parameters));
  mt_corpus_options options = parameters.corpus;
  options.path = path;
  options.min_df = (mt_frequency){5, false};
  options.max_df = (mt_frequency){0.5, true};
  options.max_features = 20000;
  for (int run = 0; run < runs; run++) MT_TRY(once(comm, &options));
done:
  mt_parameters_destroy(&parameters);
  return status;
}

int main(int argc, char **argv)
{
  mt_comm world;
  if (mt_comm_start(&argc, &argv, &world) != MT_OK) return 1;
  int runs = argc > 2 ? atoi(argv[2]) : 1;
  if (argc < 2 || argc > 3 || runs < 1) {
    if (world.rank == 0) fprintf(stderr, "bench_corpus PATH [RUNS]\n");
    mt_comm_stop(&world);
    return 2;
  }
  mt_log_setup(world.rank, world.size, MT_LOG_WARN);
  mt_status status = all(&world, argv[1], runs);
  mt_comm_stop(&world);
  return mt_exit_code(status);
}
