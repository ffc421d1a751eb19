/* A collection to counts in memory (mt_corpus_build), timed:
 *   bench_corpus PATH [SECTION.NAME=VALUE]... */
#include "bench.h"
#include "corpus/build.h"

static mt_status build(const mt_comm *comm, const mt_corpus_options *options)
{
  mt_status status = MT_OK;
  mt_built built = {0};
  mt_elapsed took, begin = mt_bench_now();
  MT_TRY(mt_corpus_build(comm, options, MT_PIECE_BYTES, &built));
  MT_TRY(mt_bench_since(comm, begin, &took));
  if (comm->rank == 0)
    printf(
        "{\"seconds\": %.6f, \"cpu\": %.6f, \"documents\": %lld, \"stored\": %lld}\n",
        took.clock, took.processor, (long long)built.survey.n_documents,
        (long long)built.n_stored);
done:
  mt_built_destroy(&built);
  return status;
}

int main(int argc, char **argv)
{
  mt_status status = MT_OK;
  mt_comm world;
  mt_parameters parameters = {0};
  if (mt_comm_start(&argc, &argv, &world) != MT_OK) return 1;
  mt_log_setup(world.rank, world.size, MT_LOG_WARN);
  MT_REQUIRE(argc >= 2, MT_ERR_INPUT, "bench_corpus PATH [SECTION.NAME=VALUE]...");
  MT_TRY(mt_bench_parameters(argc - 2, argv + 2, &parameters));
  mt_corpus_options options = parameters.corpus;
  options.path = argv[1];
  status = mt_agree(&world, build(&world, &options));
done:
  mt_parameters_destroy(&parameters);
  mt_comm_stop(&world);
  return mt_exit_code(status);
}
