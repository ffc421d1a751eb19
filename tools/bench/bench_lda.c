/* LDA fits of a finished corpus, timed:
 *   bench_lda CORPUS.H5 [--periods A,B,...] [--held-out N] [--components FOLDER]
 *             [SECTION.NAME=VALUE]...
 * All fits of lda.seeds and all periods (by their rows in the file: 0, 1, ...) of min_docs
 * documents or more, one after the other, each over all ranks and threads. --held-out N leaves
 * documents N - 1, 2 N - 1, ... of each period out. --components leaves the last fit's topics in
 * FOLDER/components ((K, V) float32, rows sum to 1). GFLOP are those of document updates. */
#include "bench.h"
#include "base/memory.h"
#include "corpus/corpus.h"
#include "deck/deck.h"
#include "lda/kernel.h"
#include "lda/lda.h"

#include <stdlib.h>
#include <string.h>

typedef struct job {
  const char *corpus, *periods, *folder;
  int64_t held_out;
  mt_parameters parameters;
} job;

/* What all fits came to. */
typedef struct sums {
  mt_elapsed took;
  double gflop;
  int64_t n;
} sums;

/* Every n-th document goes. */
static void leave_out(int64_t n, mt_counts *counts)
{
  int64_t kept = 0, end = 0;
  for (int64_t i = 0; n > 0 && i < counts->n_documents; i++) {
    int64_t from = counts->indptr[i], many = counts->indptr[i + 1] - from;
    if (i % n == n - 1) continue;
    memmove(counts->indices + end, counts->indices + from,
            (size_t)many * sizeof *counts->indices);
    memmove(counts->data + end, counts->data + from,
            (size_t)many * sizeof *counts->data);
    counts->indptr[kept++] = end;
    end += many;
  }
  if (n == 0) return;
  counts->indptr[kept] = end;
  counts->n_documents = kept;
}

static mt_status save(const char *folder, const mt_lda_model *model)
{
  mt_status status = MT_OK;
  float *rows = NULL;
  int64_t size = model->n_components * model->n_terms;
  MT_NEW(rows, size);
  mt_lda_normalize(model, rows);
  MT_TRY(mt_bench_save(folder, "components", (size_t)size * sizeof *rows, rows));
done:
  free(rows);
  return status;
}

static mt_status fit(const mt_comm *comm, const job *j, int64_t seed,
                     const mt_counts *counts, sums *all)
{
  mt_status status = MT_OK;
  mt_lda_model model = {0};
  mt_elapsed took, begin = mt_bench_now();
  MT_TRY(mt_lda_fit(comm, &j->parameters.lda, seed, counts, NULL, &model));
  MT_TRY(mt_bench_since(comm, begin, &took));
  all->took.clock += took.clock;
  all->took.processor += took.processor;
  all->gflop += 4e-9 * (double)(model.updates * model.n_components);
  if (comm->rank == 0) printf("%s%.6f", all->n > 0 ? ", " : "", model.perplexity);
  all->n++;
  if (j->folder != NULL && comm->rank == 0) MT_TRY(save(j->folder, &model));
done:
  mt_lda_model_destroy(&model);
  return status;
}

/* Is number among those in text, "0,3"? NULL: all are. */
static bool among(const char *text, int64_t number)
{
  for (const char *at = text; at != NULL; at = strchr(at, ',')) {
    if (*at == ',') at++;
    if (atoll(at) == number) return true;
  }
  return text == NULL;
}

static mt_status fit_all(const mt_comm *comm, const job *j)
{
  mt_status status = MT_OK;
  mt_file *corpus = NULL;
  mt_period *periods = NULL;
  mt_counts counts = {0};
  const mt_lda_options *options = &j->parameters.lda;
  sums all = {.n = 0};
  int64_t n = 0;
  MT_TRY(mt_store_open(j->corpus, &corpus));
  MT_TRY(mt_corpus_periods(corpus, &n, &periods));
  if (comm->rank == 0) printf("{\"perplexity\": [");
  for (int64_t p = 0; p < n; p++) {
    if (!among(j->periods, p) || periods[p].n_documents < options->min_docs) continue;
    MT_TRY(mt_corpus_counts(corpus, periods[p].first_document, periods[p].n_documents,
                            &counts));
    leave_out(j->held_out, &counts);
    for (int64_t s = 0; s < options->n_seeds; s++)
      MT_TRY(fit(comm, j, options->seeds[s], &counts, &all));
    mt_counts_destroy(&counts);
  }
  if (comm->rank == 0)
    printf("], \"seconds\": %.6f, \"cpu\": %.6f, \"gflop\": %.4f, \"fits\": %lld, "
           "\"kernel\": \"%s\"}\n",
           all.took.clock, all.took.processor, all.gflop, (long long)all.n,
           mt_lda_kernel_find(NULL)->name);
done:
  mt_counts_destroy(&counts);
  mt_periods_destroy(n, periods);
  mt_store_close(corpus);
  return status;
}

static mt_status read_job(int argc, char **argv, job *j)
{
  mt_status status = MT_OK;
  MT_TRY(mt_parameters_default(&j->parameters));
  MT_REQUIRE(argc >= 2, MT_ERR_INPUT, "bench_lda CORPUS.H5 ...");
  j->corpus = argv[1];
  for (int at = 2; at < argc; at++) {
    const char *value = at + 1 < argc ? argv[at + 1] : "";
    if (strcmp(argv[at], "--periods") == 0)
      j->periods = value;
    else if (strcmp(argv[at], "--held-out") == 0)
      j->held_out = atoll(value);
    else if (strcmp(argv[at], "--components") == 0)
      j->folder = value;
    else {
      MT_TRY(mt_parameters_set(&j->parameters, argv[at]));
      continue;
    }
    at++;
  }
done:
  return status;
}

int main(int argc, char **argv)
{
  mt_status status = MT_OK;
  mt_comm world;
  job j = {.corpus = NULL};
  if (mt_comm_start(&argc, &argv, &world) != MT_OK) return 1;
  mt_log_setup(world.rank, world.size, MT_LOG_WARN);
  MT_TRY(read_job(argc, argv, &j));
  status = mt_agree(&world, fit_all(&world, &j));
done:
  mt_parameters_destroy(&j.parameters);
  mt_comm_stop(&world);
  return mt_exit_code(status);
}
