/* The corpus stage: the collection to corpus.h5. */
#include "base/log.h"
#include "base/memory.h"
#include "corpus/build.h"
#include "corpus/write.h"
#include "deck/deck.h"
#include "stage/stage.h"
#include "store/folder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A list of stop words is input too. */
static void hash_stop_words(const char *path, mt_hash *hash)
{
  struct stat info;
  if (strcmp(path, "none") == 0 || strcmp(path, "english") == 0) return;
  if (stat(path, &info) != 0) return; /* reading it will say so */
  mt_hash_i64(hash, (int64_t)info.st_size);
  mt_hash_i64(hash, (int64_t)info.st_mtim.tv_sec);
  mt_hash_i64(hash, (int64_t)info.st_mtim.tv_nsec);
}

static mt_status corpus_fingerprint(const mt_run *run, mt_fingerprint *out)
{
  mt_status status = MT_OK;
  mt_source source = {0};
  mt_hash *hash = NULL;
  const mt_corpus_options *options = &run->parameters->corpus;
  MT_TRY(mt_source_list(options, &source));
  hash = mt_hash_begin();
  mt_hash_text(hash, "corpus 1");
  mt_source_hash(&source, hash);
  hash_stop_words(options->stop_words, hash);
  status = mt_parameters_hash(run->parameters, "corpus", NULL, hash);
  *out = mt_hash_end(hash);
done:
  mt_source_destroy(&source);
  return status;
}

/* The file's own fingerprint is its content's; what it was made from is `source`. */
static bool corpus_is_done(const mt_run *run, const mt_fingerprint *made_by)
{
  bool done = false;
  mt_file *file = NULL;
  char *source = NULL, *path = mt_path_join(run->out, "corpus.h5");
  if (path != NULL && mt_store_fingerprint(path).hex[0] != '\0' &&
      mt_store_open(path, &file) == MT_OK &&
      mt_store_get_text(file, "source", &source) == MT_OK)
    done = made_by->hex[0] != '\0' && strcmp(source, made_by->hex) == 0;
  mt_store_close(file);
  free(source);
  free(path);
  return done;
}

/* ---- what it tells ------------------------------------------------------------------------- */

static void log_survey(const mt_survey *survey)
{
  mt_info("corpus: %-12s %10s %10s %12s", "period", "documents", "skipped", "counts");
  for (int64_t p = 0; p < survey->n_periods; p++) {
    const mt_period *period = &survey->periods[p];
    mt_info("corpus: %-12s %10lld %10lld %12lld", period->name,
            (long long)period->n_documents, (long long)period->skipped,
            (long long)period->n_stored);
    if (period->n_documents == 0 && period->skipped == 0)
      mt_warn("corpus: no record is of the period %s, which corpus.periods names",
              period->name);
  }
  for (int s = 1; s < MT_SKIP_KINDS; s++)
    if (survey->skipped[s] > 0)
      mt_info("corpus: skipped, %s: %lld", mt_skip_name((mt_skip)s),
              (long long)survey->skipped[s]);
}

static void log_built(const mt_built *built)
{
  const mt_vocabulary *vocabulary = &built->vocabulary;
  log_survey(&built->survey);
  mt_info(
      "corpus: %lld distinct terms; stop words took %lld, min_df %lld, max_df %lld, "
      "max_features %lld: %lld are left",
      (long long)vocabulary->distinct,
      (long long)vocabulary->removed[MT_FILTER_STOP_WORDS],
      (long long)vocabulary->removed[MT_FILTER_MIN_DF],
      (long long)vocabulary->removed[MT_FILTER_MAX_DF],
      (long long)vocabulary->removed[MT_FILTER_MAX_FEATURES],
      (long long)vocabulary->terms.n);
  mt_info("corpus: %lld documents of %lld records, %lld counts, their sum %lld; "
          "without any "
          "term of the vocabulary: %lld",
          (long long)built->survey.n_documents, (long long)built->survey.n_records,
          (long long)built->n_stored, (long long)built->n_counted,
          (long long)built->n_empty);
}

static json_t *skipped_json(const mt_survey *survey)
{
  json_t *skipped = json_object();
  for (int s = 1; s < MT_SKIP_KINDS; s++)
    json_object_set_new(skipped, mt_skip_name((mt_skip)s),
                        json_integer(survey->skipped[s]));
  return skipped;
}

static json_t *periods_json(const mt_survey *survey)
{
  json_t *periods = json_array();
  for (int64_t p = 0; p < survey->n_periods; p++) {
    const mt_period *period = &survey->periods[p];
    json_array_append_new(periods,
                          json_pack("{s:s, s:I, s:I, s:I}", "name", period->name,
                                    "documents", (json_int_t)period->n_documents,
                                    "skipped", (json_int_t)period->skipped, "counts",
                                    (json_int_t)period->n_stored));
  }
  return periods;
}

static void report(const mt_built *built, json_t *metrics)
{
  const mt_vocabulary *vocabulary = &built->vocabulary;
  json_t *removed = json_object();
  for (int f = 0; f < MT_FILTERS; f++)
    json_object_set_new(removed, mt_filter_name((mt_filter)f),
                        json_integer(vocabulary->removed[f]));
  json_object_set_new(metrics, "format",
                      json_string(mt_format_name(built->survey.format)));
  json_object_set_new(metrics, "files", json_integer(built->survey.n_files));
  json_object_set_new(metrics, "records", json_integer(built->survey.n_records));
  json_object_set_new(metrics, "documents", json_integer(built->survey.n_documents));
  json_object_set_new(metrics, "skipped", skipped_json(&built->survey));
  json_object_set_new(metrics, "distinct_terms", json_integer(vocabulary->distinct));
  json_object_set_new(metrics, "removed_terms", removed);
  json_object_set_new(metrics, "terms", json_integer(vocabulary->terms.n));
  json_object_set_new(metrics, "stored_counts", json_integer(built->n_stored));
  json_object_set_new(metrics, "sum_of_counts", json_integer(built->n_counted));
  json_object_set_new(metrics, "documents_without_terms", json_integer(built->n_empty));
  json_object_set_new(metrics, "periods", periods_json(&built->survey));
}

static mt_status corpus_work(const mt_comm *world, const mt_run *run,
                             const mt_fingerprint *made_by, mt_stage_result *result)
{
  mt_status status = MT_OK;
  mt_built built = {0};
  char *path = mt_path_join(run->out, "corpus.h5");
  MT_TRY(mt_agree(world, path == NULL ? MT_ERR_MEMORY : MT_OK));
  MT_TRY(mt_corpus_build(world, &run->parameters->corpus, MT_PIECE_BYTES, &built));
  MT_TRY(mt_corpus_write(world, path, made_by, &built));
  result->rows = built.survey.n_documents;
  if (world->rank == 0) log_built(&built);
  if (result->metrics != NULL) report(&built, result->metrics);
done:
  mt_built_destroy(&built);
  free(path);
  return status;
}

const mt_stage mt_stage_corpus = {.name = "corpus",
                                  .file = "corpus.h5",
                                  .fingerprint = corpus_fingerprint,
                                  .is_done = corpus_is_done,
                                  .work = corpus_work};
