#include "check.h"
#include "backend/backend.h"
#include "base/log.h"
#include "base/memory.h"
#include "comm/layout.h"
#include "corpus/build.h"
#include "corpus/corpus.h"
#include "deck/deck.h"
#include "knn/knn.h"
#include "lda/fits.h"
#include "memory_need.h"
#include "stage/stage.h"
#include "store/folder.h"

#include <stdlib.h>
#include <string.h>

enum { COUNTS_A_DOCUMENT = 70 }; /* different terms in a document of news, about */
enum { FITS_SHOWN = 6 };         /* of a rank, in a line */

/* What a run would find, on rank 0; the fits' periods and seeds, in order. */
typedef struct outlook {
  bool counted;   /* from corpus.h5; else n_stored and n_terms are guesses */
  bool unlimited; /* guesses, and max_features sets no limit to n_terms */
  mt_fits fits;
  int64_t n_left;       /* fits that are not there yet */
  int64_t *left;        /* (n_left) numbers of fits; owned */
  mt_lda_place *places; /* (n_left) of those; owned */
} outlook;

static void outlook_close(outlook *o)
{
  mt_fits_close(&o->fits);
  free(o->left);
  free(o->places);
}

/* ---- the corpus and the fits ------------------------------------------------------------ */

/* On rank 0: from the folder's corpus.h5, if it was made of this input. */
static mt_status recall(const mt_run *run, outlook *o)
{
  mt_fingerprint made_by;
  mt_status status = mt_stage_corpus.fingerprint(run, &made_by);
  if (status != MT_OK || !mt_stage_corpus.is_done(run, &made_by)) return status;
  status = mt_fits_list(run, &o->fits);
  o->counted = status == MT_OK;
  return status;
}

/* The fits of periods whose documents are counted, but not their terms. */
static mt_status guess_fits(const mt_parameters *parameters, outlook *o)
{
  mt_status status = MT_OK;
  mt_fits *fits = &o->fits;
  const mt_lda_options *lda = &parameters->lda;
  o->unlimited = parameters->corpus.max_features == 0;
  fits->n_terms = o->unlimited ? 50000 : parameters->corpus.max_features;
  MT_NEW(fits->fits, fits->n_periods * lda->n_seeds);
  for (int64_t p = 0; p < fits->n_periods; p++) {
    fits->periods[p].n_stored = COUNTS_A_DOCUMENT * fits->periods[p].n_documents;
    if (fits->periods[p].n_documents < lda->min_docs) continue;
    for (int64_t s = 0; s < lda->n_seeds; s++)
      fits->fits[fits->n++] = (mt_fit){.period = p, .seed = lda->seeds[s]};
  }
done:
  return status;
}

/* Reads the collection through, on all ranks. */
static mt_status survey(const mt_comm *world, const mt_parameters *parameters,
                        outlook *o)
{
  mt_survey found = {0};
  mt_status status = mt_corpus_survey(world, &parameters->corpus, &found);
  if (status != MT_OK) return status;
  o->fits.n_periods = found.n_periods;
  o->fits.periods = found.periods;
  found.n_periods = 0;
  found.periods = NULL;
  mt_survey_destroy(&found);
  return mt_agree(world, guess_fits(parameters, o));
}

/* Which fits are left, and where they would be made. */
static mt_status plan(const mt_lda_options *options, int ranks, outlook *o)
{
  mt_status status = MT_OK;
  mt_lda_size *sizes = NULL;
  int64_t n_wide;
  MT_NEW(o->left, o->fits.n);
  MT_NEW(o->places, o->fits.n);
  MT_NEW(sizes, o->fits.n);
  for (int64_t i = 0; i < o->fits.n; i++) {
    if (o->counted && mt_fit_is_there(&o->fits.fits[i])) continue;
    sizes[o->n_left] = mt_fit_size(&o->fits, i, options);
    o->left[o->n_left++] = i;
  }
  MT_TRY(mt_lda_plan(o->n_left, sizes, ranks, o->places, &n_wide));
done:
  free(sizes);
  return status;
}

static mt_status look_ahead(const mt_comm *world, const mt_run *run, outlook *o)
{
  mt_status status = MT_OK;
  MT_TRY(mt_agree(world, world->rank == 0 ? recall(run, o) : MT_OK));
  int64_t counted = o->counted;
  MT_TRY(mt_max_i64(world, 1, &counted));
  if (!counted) MT_TRY(survey(world, run->parameters, o));
  MT_TRY(mt_agree(world, world->rank == 0 ? plan(&run->parameters->lda, world->size, o)
                                          : MT_OK));
done:
  return status;
}

/* ---- what is printed ---------------------------------------------------------------------- */

static const char *plural(int64_t n)
{
  return n == 1 ? "" : "s";
}

static void print_period(const outlook *o, const mt_period *period,
                         const mt_lda_options *lda, int64_t total, FILE *out)
{
  fprintf(out, "  %-12s %10lld ", period->name, (long long)period->n_documents);
  if (o->counted) fprintf(out, "%12lld ", (long long)period->n_stored);
  if (period->n_documents >= lda->min_docs)
    fprintf(out, "%12.1f %%\n",
            100.0 * (double)period->n_stored / (double)(total > 0 ? total : 1));
  else
    fprintf(out, "   no fit: fewer documents than lda.min_docs (%lld)\n",
            (long long)lda->min_docs);
}

static void print_fits(const outlook *o, const mt_lda_options *lda, FILE *out)
{
  const mt_fits *fits = &o->fits;
  int64_t fitted = fits->n / lda->n_seeds, total = 0;
  fprintf(
      out,
      "\nfits: %lld period%s x %lld seed%s = %lld, of %lld topics each: %lld topics\n",
      (long long)fitted, plural(fitted), (long long)lda->n_seeds, plural(lda->n_seeds),
      (long long)fits->n, (long long)lda->n_components,
      (long long)(fits->n * lda->n_components));
  for (int64_t p = 0; p < fits->n_periods; p++)
    if (fits->periods[p].n_documents >= lda->min_docs)
      total += fits->periods[p].n_stored;
  fprintf(out, "  %-12s %10s %s%14s\n", "period", "documents",
          o->counted ? "      counts " : "", "share of work");
  for (int64_t p = 0; p < fits->n_periods; p++)
    print_period(o, &fits->periods[p], lda, total, out);
  if (o->counted)
    fprintf(out, "  %lld terms; %lld of the fits %s there already\n",
            (long long)fits->n_terms, (long long)(fits->n - o->n_left),
            fits->n - o->n_left == 1 ? "is" : "are");
  else
    fprintf(
        out,
        "  Terms and counts are known once the stage corpus is done; until then the\n"
        "  share of work goes by documents%s.\n",
        o->unlimited ? "" : ", and max_features terms are expected");
}

/* "1987-03 seed 0 (ranks 0-2), ...": a rank's fits in the order of work. */
static void print_rank_fits(const outlook *o, int rank, FILE *out)
{
  int64_t shown = 0, more = 0;
  for (int64_t i = 0; i < o->n_left; i++) {
    const mt_lda_place *place = &o->places[i];
    const mt_fit *fit = &o->fits.fits[o->left[place->fit]];
    if (rank < place->first_rank || rank >= place->first_rank + place->n_ranks)
      continue;
    if (shown == FITS_SHOWN && ++more) continue;
    fprintf(out, "%s%s/%lld", shown++ > 0 ? ", " : "",
            o->fits.periods[fit->period].name, (long long)fit->seed);
    if (place->n_ranks > 1)
      fprintf(out, " (ranks %d-%d)", place->first_rank,
              place->first_rank + place->n_ranks - 1);
  }
  if (more > 0) fprintf(out, " and %lld more", (long long)more);
  fputs(shown == 0 ? "none\n" : "\n", out);
}

static void print_knn(const mt_sizes *sizes, const mt_parameters *parameters,
                      bool on_gpu, FILE *out)
{
  char reason[MT_KNN_REASON];
  mt_knn_choose(parameters->knn.build_algo, on_gpu, sizes->topics, sizes->terms,
                reason);
  fprintf(out, "\nknn: %s\n", reason);
}

static void print_ranks(const mt_comm *world, const outlook *o, const mt_layout *all,
                        FILE *out)
{
  fprintf(out,
          "\nranks: %d on %d node%s; knn, umap and hdbscan by the %s backend on %s\n",
          world->size, all[0].n_nodes, plural(all[0].n_nodes),
          all[0].n_devices > 0 ? "CUDA" : "CPU",
          all[0].n_devices > 0             ? "the ranks that own a GPU"
          : all[0].team_size < world->size ? "the ranks that METATOPICS_TEAM names"
                                           : "all ranks");
  fprintf(out, "  %6s  %-20s %7s  %-12s  %s\n", "rank", "node", "threads", "GPU",
          "fits (period/seed) it is expected to make, in order");
  for (int r = 0; r < world->size; r++) {
    const char *gpu = all[r].device >= 0 ? all[r].gpu.id : "-";
    fprintf(out, "  %6d  %-20s %7d  %-12s  ", r, all[r].host, all[r].n_threads, gpu);
    print_rank_fits(o, r, out);
  }
}

static mt_sizes measure(const outlook *o, const mt_parameters *parameters, int ranks,
                        const mt_layout *all)
{
  mt_sizes s = {.ranks = ranks, .terms = o->fits.n_terms, .periods = o->fits.n_periods};
  for (int64_t p = 0; p < o->fits.n_periods; p++) {
    const mt_period *period = &o->fits.periods[p];
    s.documents += period->n_documents;
    s.stored += period->n_stored;
    if (period->n_documents < parameters->lda.min_docs) continue;
    if (period->n_stored < s.period_stored) continue;
    s.period_stored = period->n_stored;
    s.period_documents = period->n_documents;
  }
  s.topics = o->fits.n * parameters->lda.n_components;
  s.team = all[0].team_size;
  s.nn_descent = mt_knn_choose(parameters->knn.build_algo, all[0].n_devices > 0,
                               s.topics, s.terms, NULL) == MT_BUILD_NN_DESCENT;
  for (int r = 0; r < ranks; r++)
    if (all[r].n_threads > s.threads) s.threads = all[r].n_threads;
  return s;
}

static void print_bytes(const char *name, int64_t bytes, FILE *out)
{
  fprintf(out, "  %-12s %10.0f MB\n", name, (double)bytes / 1e6);
}

static void print_memory(const outlook *o, const mt_parameters *parameters,
                         const mt_sizes *sizes, FILE *out)
{
  int64_t bytes[MT_N_STAGES], most = 0;
  mt_memory_need(sizes, parameters, bytes);
  fprintf(out, "\nmemory of the largest rank, about%s:\n",
          o->counted ? "" : ", with a guess of terms and counts");
  for (int i = 0; i < MT_N_STAGES; i++) {
    print_bytes(mt_stage_names[i], bytes[i], out);
    if (bytes[i] > most) most = bytes[i];
  }
  print_bytes("at most", most, out);
}

/* The smallest GPU's, over ranks that own one. */
static void print_device_memory(const mt_parameters *parameters, const mt_sizes *sizes,
                                const mt_layout *all, FILE *out)
{
  static const char *const names[MT_N_GPU_STAGES] = {"knn", "umap", "hdbscan"};
  int64_t bytes[MT_N_GPU_STAGES], least = INT64_MAX;
  if (all[0].n_devices == 0) return;
  for (int r = 0; r < sizes->ranks; r++)
    if (all[r].device >= 0 && all[r].gpu.memory < least) least = all[r].gpu.memory;
  mt_device_memory_need(sizes, parameters, bytes);
  fputs("\nmemory of a GPU, about (knn streams if there is less):\n", out);
  for (int i = 0; i < MT_N_GPU_STAGES; i++) print_bytes(names[i], bytes[i], out);
  print_bytes("smallest", least, out);
}

/* ---- all of it -------------------------------------------------------------------------------- */

mt_status mt_check_print(const mt_comm *world, const mt_command *command,
                         const mt_parameters *parameters, FILE *out)
{
  mt_status status = MT_OK;
  mt_layout layout = {.n_nodes = 0}, *all = NULL;
  outlook o = {0};
  mt_devices devices = {.n = 0};
  int64_t base = mt_memory_peak();
  const mt_run run = {.parameters = parameters, .out = parameters->output.path};

  if (world->rank == 0) fprintf(out, "parameters of %s:\n", command->deck);
  if (world->rank == 0) mt_parameters_print(parameters, NULL, out);
  MT_TRY(look_ahead(world, &run, &o));
  MT_TRY(mt_backend_find(world, command->backend, &devices));
  MT_TRY(mt_layout_create(world, &devices, &layout));
  MT_TRY(mt_agree(world,
                  mt_memory_new(world->size, sizeof *all, "layout", (void **)&all)));
  MT_TRY(mt_allgather(world, sizeof layout, &layout, all));
  MT_TRY(mt_max_i64(world, 1, &base));
  if (world->rank != 0) goto done;
  mt_sizes sizes = measure(&o, parameters, world->size, all);
  sizes.base = base;
  print_fits(&o, &parameters->lda, out);
  print_knn(&sizes, parameters, all[0].n_devices > 0, out);
  print_ranks(world, &o, all, out);
  print_memory(&o, parameters, &sizes, out);
  print_device_memory(parameters, &sizes, all, out);
done:
  free(all);
  outlook_close(&o);
  if (layout.n_nodes > 0) mt_layout_destroy(&layout);
  return status;
}
