/* The stage matrix: lda/PERIOD/seed-S.h5 -> topics.h5. */
#include "base/memory.h"
#include "lda/fits.h"
#include "store/folder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct stack {
  const mt_comm *comm;
  const mt_run *run;
  mt_fits fits;
  int64_t K, V, top;              /* top terms that are kept of each topic */
  int64_t first, n;               /* this rank's topics */
  float *rows;                    /* (n, V) */
  int64_t *period, *seed, *terms; /* (n), (n), (n, top) */
  int32_t *topic;
  int64_t first_fit, n_fits; /* this rank's share of the table of fits */
  int64_t *fit_period, *fit_seed, *fit_passes;
  double *perplexity;
} stack;

static mt_status matrix_fingerprint(const mt_run *run, mt_fingerprint *out)
{
  mt_fits fits = {0};
  mt_status status = mt_fits_list(run, &fits);
  if (status == MT_OK) {
    mt_fingerprint made_of = mt_fits_fingerprint(&fits, "matrix 1");
    mt_hash *hash = mt_hash_begin();
    mt_hash_fingerprint(hash, &made_of);
    mt_hash_i64(hash, run->parameters->lda.top_terms);
    *out = mt_hash_end(hash);
  }
  mt_fits_close(&fits);
  return status;
}

static mt_status allocate(stack *s)
{
  mt_status status = MT_OK;
  MT_NEW(s->rows, s->n * s->V);
  MT_NEW(s->period, s->n);
  MT_NEW(s->seed, s->n);
  MT_NEW(s->topic, s->n);
  MT_NEW(s->terms, s->n * s->top);
  MT_NEW(s->fit_period, s->n_fits);
  MT_NEW(s->fit_seed, s->n_fits);
  MT_NEW(s->fit_passes, s->n_fits);
  MT_NEW(s->perplexity, s->n_fits);
done:
  return status;
}

static void release(stack *s)
{
  free(s->rows);
  free(s->period);
  free(s->seed);
  free(s->topic);
  free(s->terms);
  free(s->fit_period);
  free(s->fit_seed);
  free(s->fit_passes);
  free(s->perplexity);
  mt_fits_close(&s->fits);
}

/* The file of a fit, if it is the one that this run wants. */
static mt_status open_fit(const stack *s, const mt_fit *fit, mt_file **file_out)
{
  mt_status status = MT_OK;
  mt_file *file = NULL;
  MT_REQUIRE(mt_fit_is_there(fit), MT_ERR_INPUT,
             "%s is not there or was made with other parameters: run the stage \"lda\"",
             fit->path);
  MT_TRY(mt_store_open(fit->path, &file));
  MT_TRY(mt_store_expect(file, "/components", s->K, s->V));
  *file_out = file;
  file = NULL;
done:
  mt_store_close(file);
  return status;
}

static mt_status check_row(const mt_fit *fit, int64_t topic, int64_t V,
                           const float *row)
{
  double sum = 0.0;
  for (int64_t w = 0; w < V; w++) {
    if (!(row[w] >= 0.0f && isfinite(row[w])))
      return mt_fail(MT_ERR_IO, "%s: topic %lld, term %lld is %g", fit->path,
                     (long long)topic, (long long)w, (double)row[w]);
    sum += row[w];
  }
  if (fabs(sum - 1.0) > 1e-3)
    return mt_fail(MT_ERR_IO, "%s: topic %lld sums to %g, not 1", fit->path,
                   (long long)topic, sum);
  return MT_OK;
}

/* The most probable terms, ties by number. */
static void find_top(int64_t V, const float *row, int64_t top, int64_t *terms)
{
  int64_t n = 0;
  for (int64_t w = 0; w < V; w++) {
    if (n == top && (n == 0 || row[w] <= row[terms[n - 1]])) continue;
    int64_t at = n < top ? n++ : n - 1;
    for (; at > 0 && row[terms[at - 1]] < row[w]; at--) terms[at] = terms[at - 1];
    terms[at] = w;
  }
}

/* This rank's topics of one fit: rows [first, first + n) of it, to row `at` here. */
static mt_status take_topics(stack *s, int64_t number, int64_t first, int64_t n,
                             int64_t at)
{
  mt_status status = MT_OK;
  const mt_fit *fit = &s->fits.fits[number];
  float *rows = s->rows + at * s->V;
  mt_file *file = NULL;
  MT_TRY(open_fit(s, fit, &file));
  MT_TRY(mt_store_read(file, "/components", MT_FLOAT32, first, n, rows));
  for (int64_t i = 0; i < n; i++) {
    MT_TRY(check_row(fit, first + i, s->V, rows + i * s->V));
    find_top(s->V, rows + i * s->V, s->top, s->terms + (at + i) * s->top);
    s->period[at + i] = fit->period;
    s->seed[at + i] = fit->seed;
    s->topic[at + i] = (int32_t)(first + i);
  }
done:
  mt_store_close(file);
  return status;
}

static mt_status take_all(stack *s)
{
  mt_status status = MT_OK;
  for (int64_t at = 0; at < s->n;) {
    int64_t fit = (s->first + at) / s->K, first = (s->first + at) % s->K;
    int64_t n = s->K - first < s->n - at ? s->K - first : s->n - at;
    MT_TRY(take_topics(s, fit, first, n, at));
    at += n;
  }
done:
  return status;
}

/* The table of fits. */
static mt_status take_figures(stack *s)
{
  mt_status status = MT_OK;
  mt_file *file = NULL;
  for (int64_t i = 0; i < s->n_fits; i++) {
    const mt_fit *fit = &s->fits.fits[s->first_fit + i];
    MT_TRY(open_fit(s, fit, &file));
    MT_TRY(mt_store_get_f64(file, "perplexity", &s->perplexity[i]));
    MT_TRY(mt_store_get_i64(file, "n_iter", &s->fit_passes[i]));
    s->fit_period[i] = fit->period;
    s->fit_seed[i] = fit->seed;
    mt_store_close(file);
    file = NULL;
  }
done:
  mt_store_close(file);
  return status;
}

/* ---- topics.h5 ------------------------------------------------------------------------- */

/* On rank 0, the others give none; the caller frees the array, not the texts. */
static mt_status period_names(const stack *s, char ***names_out)
{
  mt_status status = MT_OK;
  char **names = NULL;
  MT_NEW(names, s->fits.n_periods);
  for (int64_t p = 0; p < s->fits.n_periods; p++) names[p] = s->fits.periods[p].name;
  *names_out = names;
done:
  return status;
}

static mt_status write_texts(const stack *s, mt_file *file)
{
  static const mt_dataset terms_of = {"/terms",
                                      MT_TEXT,
                                      "the vocabulary: the columns of "
                                      "/matrix",
                                      "1",
                                      {"term"}};
  static const mt_dataset periods_of = {"/periods",
                                        MT_TEXT,
                                        "all periods of the corpus, in "
                                        "the order of time",
                                        "1",
                                        {"period"}};
  mt_status status = MT_OK;
  int64_t n_terms = 0, n_periods = 0;
  char **terms = NULL, **periods = NULL;
  if (s->comm->rank == 0) {
    status = mt_corpus_terms(s->fits.corpus, &n_terms, &terms);
    n_periods = s->fits.n_periods;
    if (status == MT_OK) status = period_names(s, &periods);
  }
  MT_TRY(mt_agree(s->comm, status));
  MT_TRY(mt_store_write(s->comm, file, &terms_of, n_terms, 0, terms));
  MT_TRY(mt_store_write(s->comm, file, &periods_of, n_periods, 0, periods));
done:
  if (terms != NULL) mt_store_free_texts(n_terms, terms);
  free(terms);
  free(periods);
  return status;
}

static mt_status write_numbers(const stack *s, mt_file *file)
{
  static const char topic[] = "topic", fit[] = "fit";
  const struct {
    mt_dataset dataset;
    int64_t count, width;
    const void *data;
  } sets[] = {
      {{"/matrix",
        MT_FLOAT32,
        "probability of each term in each topic; rows sum to 1",
        "1",
        {topic, "term"}},
       s->n,
       s->V,
       s->rows},
      {{"/period", MT_INT64, "row of /periods here and in corpus.h5", "1", {topic}},
       s->n,
       0,
       s->period},
      {{"/seed", MT_INT64, "seed of the fit that the topic is of", "1", {topic}},
       s->n,
       0,
       s->seed},
      {{"/topic", MT_INT32, "number of the topic in its fit", "1", {topic}},
       s->n,
       0,
       s->topic},
      {{"/top_terms",
        MT_INT64,
        "rows of /terms, the most probable first, ties by number",
        "1",
        {topic, "rank"}},
       s->n,
       s->top,
       s->terms},
      {{"/fits/period", MT_INT64, "row of /periods", "1", {fit}},
       s->n_fits,
       0,
       s->fit_period},
      {{"/fits/seed", MT_INT64, "seed of the fit", "1", {fit}},
       s->n_fits,
       0,
       s->fit_seed},
      {{"/fits/n_iter", MT_INT64, "passes over the documents", "passes", {fit}},
       s->n_fits,
       0,
       s->fit_passes},
      {{"/fits/perplexity",
        MT_FLOAT64,
        "exp of minus the variational bound per word, on "
        "the fit's own documents",
        "1",
        {fit}},
       s->n_fits,
       0,
       s->perplexity},
  };
  mt_status status = MT_OK;
  for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
    MT_TRY(mt_store_write(s->comm, file, &sets[i].dataset, sets[i].count, sets[i].width,
                          sets[i].data));
done:
  return status;
}

static mt_status save(const stack *s, const mt_fingerprint *made_by)
{
  mt_status status = MT_OK;
  mt_file *file = NULL;
  char *path = mt_path_join(s->run->out, "topics.h5");
  MT_TRY(mt_agree(s->comm, path != NULL ? MT_OK : MT_ERR_MEMORY));
  MT_TRY(mt_store_create(s->comm, path, made_by, &file));
  MT_TRY(write_texts(s, file));
  MT_TRY(mt_store_set_i64(s->comm, file, "n_components", s->K));
  MT_TRY(write_numbers(s, file));
  MT_TRY(mt_store_commit(s->comm, &file));
done:
  mt_store_abandon(s->comm, &file);
  free(path);
  return status;
}

static mt_status work(const mt_comm *comm, const mt_run *run,
                      const mt_fingerprint *made_by, mt_stage_result *result)
{
  mt_status status = MT_OK;
  stack s = {.comm = comm, .run = run, .K = run->parameters->lda.n_components};
  MT_TRY(mt_agree(comm, mt_fits_list(run, &s.fits)));
  int64_t n = s.fits.n * s.K, top = run->parameters->lda.top_terms;
  s.V = s.fits.n_terms;
  s.top = top < s.V ? top : s.V;
  s.first = mt_part_first(n, comm->size, comm->rank);
  s.n = mt_part_count(n, comm->size, comm->rank);
  s.first_fit = mt_part_first(s.fits.n, comm->size, comm->rank);
  s.n_fits = mt_part_count(s.fits.n, comm->size, comm->rank);
  MT_TRY(mt_agree(comm, allocate(&s)));
  MT_TRY(mt_agree(comm, take_all(&s)));
  MT_TRY(mt_agree(comm, take_figures(&s)));
  MT_TRY(save(&s, made_by));
  result->rows = n;
  if (result->metrics != NULL)
    json_object_set_new(result->metrics, "terms", json_integer(s.V));
done:
  release(&s);
  return status;
}

const mt_stage mt_stage_matrix = {.name = "matrix",
                                  .file = "topics.h5",
                                  .fingerprint = matrix_fingerprint,
                                  .work = work};
