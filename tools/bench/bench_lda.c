/* One LDA fit, timed: bench_lda CORPUS.H5 PERIOD SEED, period by its row. Prints core
 * seconds (user and system, of all threads), perplexity and GFLOP of document updates. */
#include "base/log.h"
#include "corpus/corpus.h"
#include "deck/deck.h"
#include "lda/kernel.h"
#include "lda/lda.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double core_seconds(void)
{
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static mt_status fit(const char *path, int64_t period, int64_t seed)
{
  mt_status status = MT_OK;
  mt_file *corpus = NULL;
  mt_period *periods = NULL;
  mt_parameters parameters = {0};
  mt_counts counts = {0};
  mt_lda_model model = {0};
  mt_comm self = mt_comm_self();
  int64_t n = 0;
  MT_TRY(mt_parameters_default(&parameters));
  MT_TRY(mt_store_open(path, &corpus));
  MT_TRY(mt_corpus_periods(corpus, &n, &periods));
  MT_REQUIRE(period >= 0 && period < n, MT_ERR_INPUT, "%s has %lld periods", path,
             (long long)n);
  const mt_period *p = &periods[period];
  MT_TRY(mt_corpus_counts(corpus, p->first_document, p->n_documents, &counts));
  double began = core_seconds();
  MT_TRY(mt_lda_fit(&self, &parameters.lda, seed, &counts, NULL, &model));
  printf("%.4f %.6f %.4f %s\n", core_seconds() - began, model.perplexity,
         4e-9 * (double)(model.updates * model.n_components),
         mt_lda_kernel_find(NULL)->name);
done:
  mt_lda_model_destroy(&model);
  mt_counts_destroy(&counts);
  mt_periods_destroy(n, periods);
  mt_store_close(corpus);
  mt_parameters_destroy(&parameters);
  return status;
}

int main(int argc, char **argv)
{
  mt_comm world;
  if (mt_comm_start(&argc, &argv, &world) != MT_OK) return 1;
  if (argc != 4) {
    fprintf(stderr, "bench_lda CORPUS.H5 PERIOD SEED\n");
    mt_comm_stop(&world);
    return 2;
  }
  mt_status status = fit(argv[1], atoll(argv[2]), atoll(argv[3]));
  mt_comm_stop(&world);
  return mt_exit_code(status);
}
