/* The stage lda: corpus.h5 -> lda/PERIOD/seed-S.h5, over all ranks (see plan.h). */
#include "base/log.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/stop.h"
#include "lda/fits.h"
#include "lda/lda.h"
#include "store/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct ensemble {
  const mt_comm *world;
  const mt_run *run;
  mt_fits fits;
  int64_t n_left, n_wide;
  int64_t *left;                       /* (n_left) fits that are not there yet */
  mt_lda_place *places;                /* (n_left) of the fits that are left */
  mt_counter *counter;                 /* hands out places from n_wide on */
  mt_counts counts;                    /* of the period in hand */
  int64_t period;                      /* -1: none */
  int64_t made, updates, microseconds; /* by this rank */
} ensemble;

static mt_status lda_fingerprint(const mt_run *run, mt_fingerprint *out)
{
  mt_fits fits = {0};
  mt_status status = mt_fits_list(run, &fits);
  if (status == MT_OK) *out = mt_fits_fingerprint(&fits, "lda 1");
  mt_fits_close(&fits);
  return status;
}

static bool lda_is_done(const mt_run *run, const mt_fingerprint *made_by)
{
  mt_fits fits = {0};
  (void)made_by; /* each fit has its own */
  bool done = mt_fits_list(run, &fits) == MT_OK;
  for (int64_t i = 0; done && i < fits.n; i++) done = mt_fit_is_there(&fits.fits[i]);
  mt_fits_close(&fits);
  return done;
}

/* Each rank reads its share of the files that are there. */
static mt_status lda_is_whole(const mt_comm *comm, const mt_run *run, bool *whole_out)
{
  mt_status status = MT_OK;
  mt_fits fits = {0};
  int64_t damaged = 0;
  MT_TRY(mt_agree(comm, mt_fits_list(run, &fits)));
  int64_t last = mt_part_first(fits.n, comm->size, comm->rank + 1);
  for (int64_t i = mt_part_first(fits.n, comm->size, comm->rank); i < last; i++) {
    bool whole = true;
    if (status == MT_OK && access(fits.fits[i].path, F_OK) == 0)
      status = mt_fit_is_whole(&fits.fits[i], &whole);
    damaged += !whole;
  }
  MT_TRY(mt_agree(comm, status));
  MT_TRY(mt_sum_i64(comm, 1, &damaged));
  *whole_out = damaged == 0;
done:
  mt_fits_close(&fits);
  return status;
}

/* ---- what is left to do -------------------------------------------------------------- */

static void tell_skipped(const ensemble *e)
{
  const mt_lda_options *options = &e->run->parameters->lda;
  if (e->world->rank != 0) return;
  for (int64_t p = 0; p < e->fits.n_periods; p++)
    if (e->fits.periods[p].n_documents < options->min_docs)
      mt_info("lda: %s has %lld documents, fewer than min_docs (%lld): no fit",
              e->fits.periods[p].name, (long long)e->fits.periods[p].n_documents,
              (long long)options->min_docs);
  if (e->fits.n == 0)
    mt_warn("lda: no period has min_docs (%lld) documents: there is nothing to fit",
            (long long)options->min_docs);
}

/* Each rank looks for its share of the files. */
static mt_status find_left(ensemble *e)
{
  mt_status status = MT_OK;
  const mt_comm *world = e->world;
  int64_t *there = NULL, n = e->fits.n;
  status = mt_memory_new(n, sizeof *there, "fits", (void **)&there);
  if (status == MT_OK)
    status = mt_memory_new(n, sizeof *e->left, "fits left", (void **)&e->left);
  if (status == MT_OK)
    status = mt_memory_new(n, sizeof *e->places, "places", (void **)&e->places);
  MT_TRY(mt_agree(world, status));
  int64_t last = mt_part_first(n, world->size, world->rank + 1);
  for (int64_t i = mt_part_first(n, world->size, world->rank); i < last; i++) {
    bool whole = false;
    if (status == MT_OK && !e->run->force)
      status = mt_fit_is_whole(&e->fits.fits[i], &whole);
    there[i] = whole && mt_fit_is_there(&e->fits.fits[i]);
  }
  MT_TRY(mt_agree(world, status));
  MT_TRY(mt_sum_i64(world, n, there));
  for (int64_t i = 0; i < n; i++)
    if (there[i] == 0) e->left[e->n_left++] = i;
done:
  free(there);
  return status;
}

static mt_status make_plan(ensemble *e)
{
  mt_status status = MT_OK;
  mt_lda_size *sizes = NULL;
  MT_NEW(sizes, e->n_left);
  for (int64_t i = 0; i < e->n_left; i++)
    sizes[i] = mt_fit_size(&e->fits, e->left[i], &e->run->parameters->lda);
  MT_TRY(mt_lda_plan(e->n_left, sizes, e->world->size, e->places, &e->n_wide));
done:
  free(sizes);
  return status;
}

/* OUT/lda/PERIOD, on rank 0 */
static mt_status make_folders(const ensemble *e)
{
  mt_status status = MT_OK;
  char *path = NULL;
  for (int64_t i = 0; i < e->n_left; i++) {
    free(path);
    MT_TRY(mt_string_copy(e->fits.fits[e->left[i]].path, &path));
    *strrchr(path, '/') = '\0';
    MT_TRY(mt_folder_make(path));
  }
done:
  free(path);
  return status;
}

/* ---- one fit ------------------------------------------------------------------------- */

static const mt_fit *fit_of(const ensemble *e, int64_t place)
{
  return &e->fits.fits[e->left[e->places[place].fit]];
}

static mt_status read_counts(ensemble *e, int64_t period)
{
  const mt_period *p = &e->fits.periods[period];
  if (e->period == period) return MT_OK;
  mt_counts_destroy(&e->counts);
  e->period = -1;
  mt_status status =
      mt_corpus_counts(e->fits.corpus, p->first_document, p->n_documents, &e->counts);
  if (status == MT_OK) e->period = period;
  return status;
}

static bool poll(void *context)
{
  ensemble *e = context;
  mt_counter_serve(e->counter);
  return mt_stop_requested();
}

static mt_status check_rows(const mt_fit *fit, const mt_lda_model *model,
                            const float *rows)
{
  for (int64_t k = 0; k < model->n_components; k++) {
    double sum = 0.0;
    for (int64_t w = 0; w < model->n_terms; w++) sum += rows[k * model->n_terms + w];
    if (!(sum > 1.0 - 1e-3 && sum < 1.0 + 1e-3)) /* NaN, too */
      return mt_fail(MT_ERR_INTERNAL, "%s: topic %lld sums to %g", fit->path,
                     (long long)k, sum);
  }
  return MT_OK;
}

/* Not collective: one rank of a group writes. */
static mt_status save(const mt_fit *fit, const mt_lda_model *model, double seconds,
                      int rank)
{
  static const mt_dataset components = {
      "/components",
      MT_FLOAT32,
      "probability of each term in each topic; rows sum to 1",
      "1",
      {"topic", "term"}};
  mt_status status = MT_OK;
  mt_comm self = mt_comm_self();
  mt_file *file = NULL;
  float *rows = NULL;
  MT_NEW(rows, model->n_components * model->n_terms);
  mt_lda_normalize(model, rows);
  MT_TRY(check_rows(fit, model, rows));
  MT_TRY(mt_store_create(&self, fit->path, &fit->made_by, &file));
  MT_TRY(mt_store_set_f64(&self, file, "perplexity", model->perplexity));
  MT_TRY(mt_store_set_f64(&self, file, "bound", model->bound));
  MT_TRY(mt_store_set_i64(&self, file, "n_iter", model->n_iter));
  MT_TRY(mt_store_set_f64(&self, file, "seconds", seconds));
  MT_TRY(mt_store_set_i64(&self, file, "rank", rank));
  MT_TRY(mt_store_write(&self, file, &components, model->n_components, model->n_terms,
                        rows));
  MT_TRY(mt_store_commit(&self, &file));
done:
  mt_store_abandon(&self, &file);
  free(rows);
  return status;
}

/* Collective over the ranks that make this fit together. */
static mt_status make_fit(ensemble *e, const mt_comm *group, int64_t place)
{
  mt_status status = MT_OK;
  const mt_lda_options *options = &e->run->parameters->lda;
  const mt_fit *fit = fit_of(e, place);
  mt_lda_extras extras = {.poll = poll, .poll_context = e};
  mt_lda_model model = {0};
  double began = mt_seconds();
  MT_TRY(mt_agree(group, read_counts(e, fit->period)));
  MT_TRY(mt_lda_fit(group, options, fit->seed, &e->counts, &extras, &model));
  double seconds = mt_seconds() - began;
  MT_TRY(mt_agree(group, group->rank == 0 ? save(fit, &model, seconds, e->world->rank)
                                          : MT_OK));
  e->microseconds += (int64_t)(seconds * 1e6);
  if (group->rank != 0) goto done;
  e->made++;
  e->updates += model.updates;
  mt_debug("lda: fit %s seed %lld: perplexity %.1f, %lld passes, %.2f s on %d rank%s",
           e->fits.periods[fit->period].name, (long long)fit->seed, model.perplexity,
           (long long)model.n_iter, seconds, group->size, group->size == 1 ? "" : "s");
done:
  mt_lda_model_destroy(&model);
  return status;
}

/* ---- all fits ------------------------------------------------------------------------ */

/* The first place that has the same ranks: its communicator serves all of them. */
static int64_t first_alike(const ensemble *e, int64_t i)
{
  const mt_lda_place *place = &e->places[i];
  for (int64_t j = 0; j < i; j++)
    if (e->places[j].first_rank == place->first_rank &&
        e->places[j].n_ranks == place->n_ranks)
      return j;
  return i;
}

static bool is_member(const ensemble *e, int64_t i)
{
  int rank = e->world->rank - e->places[i].first_rank;
  return rank >= 0 && rank < e->places[i].n_ranks;
}

/* Communicators for the wide fits that this rank has a part in: groups[i] of place i. Each
 * is made by its members alone: there may be as many as ranks. */
static mt_status make_groups(const ensemble *e, mt_comm *groups)
{
  mt_status status = MT_OK;
  for (int64_t i = 0; i < e->n_wide; i++) {
    if (!is_member(e, i)) continue;
    int64_t first = first_alike(e, i);
    if (first < i)
      groups[i] = groups[first];
    else
      MT_TRY(mt_comm_part(e->world, e->places[i].first_rank, e->places[i].n_ranks,
                          &groups[i]));
  }
done:
  return status;
}

static void free_groups(const ensemble *e, mt_comm *groups)
{
  for (int64_t i = 0; groups != NULL && i < e->n_wide; i++)
    if (is_member(e, i) && first_alike(e, i) == i) mt_comm_free(&groups[i]);
}

/* In the order of the plan on every rank. A rank that has an error or was asked to stop
 * still comes to each of its groups, to say so. */
static mt_status make_wide(ensemble *e, mt_comm *groups)
{
  mt_status status = MT_OK;
  for (int64_t i = 0; i < e->n_wide; i++) {
    if (groups[i].size == 0) continue;
    if (status == MT_OK && mt_stop_requested()) status = MT_STOPPED;
    status = mt_agree(&groups[i], status);
    if (status == MT_OK) status = make_fit(e, &groups[i], i);
    if (status == MT_OK) mt_progress_update(i + 1);
  }
  return status;
}

/* Draws from the queue until it is empty. With an error or when asked to stop, draws what
 * is left and drops it, so that the others come to an end, too. */
static mt_status make_queued(ensemble *e, mt_status status)
{
  mt_comm self = mt_comm_self();
  for (;;) {
    int64_t drawn = 0;
    mt_status now = mt_counter_next(e->counter, &drawn);
    if (now != MT_OK) return now;
    if (drawn >= e->n_left - e->n_wide) return status;
    if (status == MT_OK && mt_stop_requested()) status = MT_STOPPED;
    if (status == MT_OK) status = make_fit(e, &self, e->n_wide + drawn);
    mt_progress_update(e->n_wide + drawn + 1);
  }
}

static mt_status make_all(ensemble *e)
{
  mt_status status = MT_OK;
  mt_comm *groups = NULL;
  MT_TRY(mt_agree(
      e->world, mt_memory_new(e->n_wide, sizeof *groups, "groups", (void **)&groups)));
  MT_TRY(mt_counter_create(e->world, &e->counter));
  MT_TRY(make_groups(e, groups));
  mt_progress_begin(e->world->rank, "lda", e->n_left);
  status = make_queued(e, make_wide(e, groups));
  mt_progress_end();
  mt_counter_destroy(e->world, &e->counter);
  status = mt_agree(e->world, status);
done:
  free_groups(e, groups);
  free(groups);
  return status;
}

static mt_status report(const ensemble *e, mt_stage_result *result)
{
  mt_status status = MT_OK;
  const double per_update = 4.0 * (double)e->run->parameters->lda.n_components;
  int64_t sums[3] = {e->made, e->updates, e->microseconds};
  MT_TRY(mt_sum_i64(e->world, 3, sums));
  result->rows = e->fits.n;
  if (result->metrics == NULL) goto done;
  json_object_set_new(result->metrics, "fits", json_integer(e->fits.n));
  json_object_set_new(result->metrics, "fits_made", json_integer(sums[0]));
  json_object_set_new(result->metrics, "fits_split_over_ranks",
                      json_integer(e->n_wide));
  json_object_set_new(result->metrics, "gflop",
                      json_real((double)sums[1] * per_update / 1e9));
  json_object_set_new(result->metrics, "rank_seconds",
                      json_real((double)sums[2] / 1e6));
done:
  return status;
}

static mt_status work(const mt_comm *world, const mt_run *run,
                      const mt_fingerprint *made_by, mt_stage_result *result)
{
  mt_status status = MT_OK;
  ensemble e = {.world = world, .run = run, .period = -1};
  (void)made_by;
  MT_TRY(mt_agree(world, mt_fits_list(run, &e.fits)));
  MT_TRY(find_left(&e));
  result->kept = e.n_left == 0 && e.fits.n > 0;
  if (result->kept) goto done;
  tell_skipped(&e);
  if (e.n_left < e.fits.n && world->rank == 0)
    mt_info("lda: %lld of %lld fits are there already",
            (long long)(e.fits.n - e.n_left), (long long)e.fits.n);
  MT_TRY(mt_agree(world, make_plan(&e)));
  MT_TRY(mt_agree(world, world->rank == 0 ? make_folders(&e) : MT_OK));
  MT_TRY(make_all(&e));
  MT_TRY(report(&e, result));
done:
  mt_counts_destroy(&e.counts);
  mt_fits_close(&e.fits);
  free(e.left);
  free(e.places);
  return status;
}

const mt_stage mt_stage_lda = {.name = "lda",
                               .file = "lda",
                               .fingerprint = lda_fingerprint,
                               .is_done = lda_is_done,
                               .is_whole = lda_is_whole,
                               .work = work,
                               .in_parts = true};
