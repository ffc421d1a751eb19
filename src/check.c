#include "check.h"
#include "backend/backend.h"
#include "base/log.h"
#include "base/memory.h"
#include "comm/layout.h"
#include "corpus/build.h"
#include "corpus/corpus.h"
#include "deck/deck.h"
#include "memory_need.h"
#include "stage/stage.h"
#include "store/folder.h"

#include <stdlib.h>
#include <string.h>

/* What is known of the corpus before it is read, or after. */
typedef struct knowledge {
  bool counted; /* from corpus.h5: n_stored and terms are known */
  int64_t n_periods;
  mt_period *periods; /* owned */
  int64_t terms;      /* if not counted: the most there can be, 0: no limit */
} knowledge;

/* ---- the corpus --------------------------------------------------------------------------- */

/* On rank 0: periods and terms from the folder's corpus.h5, if it is of this input. */
static mt_status recall(const mt_run *run, knowledge *k)
{
  mt_status status = MT_OK;
  mt_file *file = NULL;
  mt_fingerprint made_by;
  int64_t width = 0;
  char *path = mt_path_join(run->out, "corpus.h5");

  MT_REQUIRE(path != NULL, MT_ERR_MEMORY, "no memory");
  MT_TRY(mt_stage_corpus.fingerprint(run, &made_by));
  if (!mt_stage_corpus.is_done(run, &made_by)) goto done;
  MT_TRY(mt_store_open(path, &file));
  MT_TRY(mt_corpus_periods(file, &k->n_periods, &k->periods));
  MT_TRY(mt_store_shape(file, "/vocabulary/terms", &k->terms, &width));
  k->counted = true;
done:
  mt_store_close(file);
  free(path);
  return status;
}

/* Reads the collection through, on all ranks. */
static mt_status survey(const mt_comm *world, const mt_parameters *parameters,
                        knowledge *k)
{
  mt_survey found = {0};
  mt_status status = mt_corpus_survey(world, &parameters->corpus, &found);
  if (status != MT_OK) return status;
  k->n_periods = found.n_periods;
  k->periods = found.periods;
  k->terms = parameters->corpus.max_features;
  found.n_periods = 0;
  found.periods = NULL;
  mt_survey_destroy(&found);
  return MT_OK;
}

static mt_status learn(const mt_comm *world, const mt_run *run, knowledge *k)
{
  mt_status status = MT_OK;
  MT_TRY(mt_agree(world, world->rank == 0 ? recall(run, k) : MT_OK));
  int64_t counted = k->counted;
  MT_TRY(mt_max_i64(world, 1, &counted));
  if (!counted) MT_TRY(survey(world, run->parameters, k));
done:
  return status;
}

/* ---- the fits ------------------------------------------------------------------------------- */

static bool is_fitted(const mt_period *period, const mt_parameters *parameters)
{
  return period->n_documents >= parameters->lda.min_docs;
}

static int64_t count_fitted(const knowledge *k, const mt_parameters *parameters)
{
  int64_t n = 0;
  for (int64_t p = 0; p < k->n_periods; p++) n += is_fitted(&k->periods[p], parameters);
  return n;
}

static void print_fits(const knowledge *k, const mt_parameters *parameters, FILE *out)
{
  const mt_lda_options *lda = &parameters->lda;
  int64_t fitted = count_fitted(k, parameters), total = 0;
  for (int64_t p = 0; p < k->n_periods; p++)
    if (is_fitted(&k->periods[p], parameters))
      total += k->counted ? k->periods[p].n_stored : k->periods[p].n_documents;
  fprintf(
      out,
      "\nfits: %lld periods x %lld seeds = %lld, of %lld topics each: %lld topics\n",
      (long long)fitted, (long long)lda->n_seeds, (long long)(fitted * lda->n_seeds),
      (long long)lda->n_components,
      (long long)(fitted * lda->n_seeds * lda->n_components));
  fprintf(out, "  %-12s %10s %12s %14s\n", "period", "documents",
          k->counted ? "counts" : "", "share of work");
  for (int64_t p = 0; p < k->n_periods; p++) {
    const mt_period *period = &k->periods[p];
    char counts[32] = "";
    if (k->counted)
      snprintf(counts, sizeof counts, "%lld", (long long)period->n_stored);
    fprintf(out, "  %-12s %10lld %12s", period->name, (long long)period->n_documents,
            counts);
    if (is_fitted(period, parameters))
      fprintf(out, " %12.1f %%\n",
              100.0 * (double)(k->counted ? period->n_stored : period->n_documents) /
                  (double)(total > 0 ? total : 1));
    else
      fprintf(out, "        no fit: fewer documents than lda.min_docs (%lld)\n",
              (long long)lda->min_docs);
  }
  if (!k->counted)
    fprintf(
        out,
        "  Terms and counts are known once the stage corpus is done; until then the\n"
        "  share of work goes by documents%s.\n",
        k->terms > 0 ? ", and terms are taken to be max_features" : "");
}

/* ---- the ranks ------------------------------------------------------------------------------ */

static void print_ranks(const mt_comm *world, const mt_layout *all, const char *backend,
                        FILE *out)
{
  bool gpus = all[0].n_devices > 0;
  fprintf(out,
          "\nranks: %d on %d node%s; knn, umap and hdbscan by the %s backend on %s\n",
          world->size, all[0].n_nodes, all[0].n_nodes == 1 ? "" : "s", backend,
          gpus ? "the ranks that own a GPU" : "all ranks");
  fprintf(out, "  %6s  %-24s %7s  %s\n", "rank", "node", "threads", "GPU");
  for (int r = 0; r < world->size; r++) {
    char device[32] = "-";
    if (all[r].device >= 0) snprintf(device, sizeof device, "%d", all[r].device);
    fprintf(out, "  %6d  %-24s %7d  %s\n", r, all[r].host, all[r].n_threads, device);
  }
}

static void print_bytes(const char *name, int64_t bytes, FILE *out)
{
  fprintf(out, "  %-12s %10.1f MiB\n", name, (double)bytes / 1048576.0);
}

static void print_memory(const knowledge *k, const mt_parameters *parameters,
                         const mt_sizes *sizes, FILE *out)
{
  int64_t bytes[MT_N_STAGES], most = 0;
  if (k->terms == 0) {
    fprintf(out, "\nmemory: cannot be told before the stage corpus is done, since "
                 "corpus.max_features is none\n");
    return;
  }
  mt_memory_need(sizes, parameters, bytes);
  fprintf(out, "\nmemory of a rank, about%s:\n",
          k->counted ? "" : ", if the vocabulary is full");
  for (int i = 0; i < MT_N_STAGES; i++) {
    print_bytes(mt_stage_names[i], bytes[i], out);
    if (bytes[i] > most) most = bytes[i];
  }
  print_bytes("at most", most, out);
}

static mt_sizes measure(const knowledge *k, const mt_parameters *parameters, int ranks,
                        const mt_layout *all)
{
  mt_sizes s = {.ranks = ranks, .terms = k->terms};
  for (int64_t p = 0; p < k->n_periods; p++) {
    const mt_period *period = &k->periods[p];
    /* a document of news holds some 70 different terms */
    int64_t stored = k->counted ? period->n_stored : 70 * period->n_documents;
    s.documents += period->n_documents;
    s.stored += stored;
    if (is_fitted(period, parameters) && stored >= s.period_stored) {
      s.period_stored = stored;
      s.period_documents = period->n_documents;
    }
  }
  s.topics = count_fitted(k, parameters) * parameters->lda.n_seeds *
             parameters->lda.n_components;
  s.team = all[0].n_devices > 0 ? all[0].n_devices : ranks;
  for (int r = 0; r < ranks; r++)
    if (all[r].n_threads > s.threads) s.threads = all[r].n_threads;
  return s;
}

static mt_status open_backend(const mt_comm *world, const mt_command *command,
                              mt_backend **backend_out, int *devices_out)
{
  mt_log_replicated(true);
  mt_status status = mt_backend_open(command->backend, backend_out, devices_out);
  mt_log_replicated(false);
  return mt_agree(world, status);
}

mt_status mt_check_print(const mt_comm *world, const mt_command *command,
                         const mt_parameters *parameters, FILE *out)
{
  mt_status status = MT_OK;
  mt_backend *backend = NULL;
  mt_layout layout = {.n_nodes = 0}, *all = NULL;
  knowledge known = {0};
  int devices = 0;
  int64_t base = mt_memory_peak();
  const mt_run run = {.parameters = parameters, .out = parameters->output.path};

  if (world->rank == 0) fprintf(out, "parameters of %s:\n", command->deck);
  if (world->rank == 0) mt_parameters_print(parameters, NULL, out);
  MT_TRY(learn(world, &run, &known));
  MT_TRY(open_backend(world, command, &backend, &devices));
  MT_TRY(mt_layout_create(world, devices, &layout));
  MT_TRY(mt_agree(world,
                  mt_memory_new(world->size, sizeof *all, "layout", (void **)&all)));
  MT_TRY(mt_allgather(world, sizeof layout, &layout, all));
  MT_TRY(mt_max_i64(world, 1, &base));
  if (world->rank != 0) goto done;
  mt_sizes sizes = measure(&known, parameters, world->size, all);
  sizes.base = base;
  print_fits(&known, parameters, out);
  print_ranks(world, all, backend->name, out);
  print_memory(&known, parameters, &sizes, out);
done:
  free(all);
  mt_periods_destroy(known.n_periods, known.periods);
  if (layout.n_nodes > 0) mt_layout_destroy(&layout);
  if (backend != NULL) backend->close(backend);
  return status;
}
