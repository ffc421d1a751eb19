#include "lda/fits.h"
#include "base/memory.h"
#include "deck/deck.h"
#include "lda/lda.h"
#include "store/checksum.h"
#include "store/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a period's fits and all parameters that can change one; it changes with the results. */
static mt_status fingerprint_fit(const mt_run *run, const mt_fingerprint *corpus,
                                 const char *period, mt_fit *fit)
{
  mt_status status = MT_OK;
  static const char *const batch[] = {"seeds",      "min_docs",       "top_terms",
                                      "batch_size", "learning_decay", "learning_offset",
                                      NULL};
  static const char *const online[] = {"seeds", "min_docs", "top_terms", NULL};
  bool is_batch = run->parameters->lda.learning_method == MT_LEARNING_BATCH;
  mt_hash *hash = mt_hash_begin();
  MT_REQUIRE(hash != NULL, MT_ERR_MEMORY, "no memory");
  mt_hash_text(hash, "lda fit 1");
  mt_hash_fingerprint(hash, corpus);
  mt_hash_text(hash, period);
  mt_hash_i64(hash, fit->seed);
  MT_TRY(mt_parameters_hash(run->parameters, "lda", is_batch ? batch : online, hash));
done:
  fit->made_by = mt_hash_end(hash);
  return status;
}

static mt_status name_fit(const mt_run *run, const char *period, mt_fit *fit)
{
  if (asprintf(&fit->path, "%s/lda/%s/seed-%lld.h5", run->out, period,
               (long long)fit->seed) > 0)
    return MT_OK;
  fit->path = NULL;
  return mt_fail(MT_ERR_MEMORY, "no memory");
}

static mt_status list_fits(const mt_run *run, const mt_fingerprint *corpus,
                           mt_fits *fits)
{
  mt_status status = MT_OK;
  const mt_lda_options *options = &run->parameters->lda;
  MT_NEW(fits->fits, fits->n_periods * options->n_seeds);
  for (int64_t p = 0; p < fits->n_periods; p++) {
    const mt_period *period = &fits->periods[p];
    if (period->n_documents < options->min_docs) continue;
    for (int64_t s = 0; s < options->n_seeds; s++) {
      mt_fit *fit = &fits->fits[fits->n++];
      *fit = (mt_fit){.period = p, .seed = options->seeds[s]};
      MT_TRY(name_fit(run, period->name, fit));
      MT_TRY(fingerprint_fit(run, corpus, period->name, fit));
    }
  }
done:
  return status;
}

mt_status mt_fits_list(const mt_run *run, mt_fits *fits_out)
{
  mt_status status = MT_OK;
  mt_fits fits = {0};
  int64_t width;
  char *path = mt_path_join(run->out, "corpus.h5");
  MT_REQUIRE(path != NULL, MT_ERR_MEMORY, "no memory");
  mt_fingerprint corpus = mt_store_fingerprint(path);
  MT_TRY(mt_store_open(path, &fits.corpus));
  MT_TRY(mt_store_shape(fits.corpus, "/vocabulary/terms", &fits.n_terms, &width));
  MT_TRY(mt_corpus_periods(fits.corpus, &fits.n_periods, &fits.periods));
  MT_TRY(list_fits(run, &corpus, &fits));
  *fits_out = fits;
  memset(&fits, 0, sizeof fits);
done:
  mt_fits_close(&fits);
  free(path);
  return status;
}

void mt_fits_close(mt_fits *fits)
{
  for (int64_t i = 0; i < fits->n; i++) free(fits->fits[i].path);
  free(fits->fits);
  mt_periods_destroy(fits->n_periods, fits->periods);
  mt_store_close(fits->corpus);
  memset(fits, 0, sizeof *fits);
}

bool mt_fit_is_there(const mt_fit *fit)
{
  mt_fingerprint there = mt_store_fingerprint(fit->path);
  return mt_fingerprint_equal(&there, &fit->made_by) != 0;
}

mt_status mt_fit_is_whole(const mt_fit *fit, bool *whole_out)
{
  mt_comm self = mt_comm_self();
  return mt_checksum_verify(&self, fit->path, whole_out);
}

mt_fingerprint mt_fits_fingerprint(const mt_fits *fits, const char *what)
{
  mt_hash *hash = mt_hash_begin();
  mt_hash_text(hash, what);
  for (int64_t i = 0; i < fits->n; i++)
    mt_hash_fingerprint(hash, &fits->fits[i].made_by);
  return mt_hash_end(hash);
}

mt_lda_size mt_fit_size(const mt_fits *fits, int64_t fit, const mt_lda_options *options)
{
  const mt_period *period = &fits->periods[fits->fits[fit].period];
  int64_t together = period->n_stored; /* counts between two updates of the topics */
  if (options->learning_method == MT_LEARNING_ONLINE &&
      period->n_documents > options->batch_size)
    together = (int64_t)((double)together / (double)period->n_documents *
                         (double)options->batch_size);
  return (mt_lda_size){.n_stored = period->n_stored,
                       .n_terms = fits->n_terms,
                       .n_components = options->n_components,
                       .lanes = mt_lda_lanes(together, fits->n_terms)};
}
