#include "corpus/build.h"
#include "base/log.h"
#include "base/memory.h"
#include "corpus/arrange.h"
#include "corpus/collect.h"

#include <stdio.h>

void mt_survey_destroy(mt_survey *survey)
{
  mt_periods_destroy(survey->n_periods, survey->periods);
  memset(survey, 0, sizeof *survey);
}

void mt_built_destroy(mt_built *built)
{
  free(built->texts);
  free(built->ids);
  free(built->titles);
  free(built->period_of);
  mt_counts_destroy(&built->counts);
  mt_vocabulary_destroy(&built->vocabulary);
  mt_survey_destroy(&built->survey);
  memset(built, 0, sizeof *built);
}

/* ---- the survey -------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
  int64_t one = ((const mt_tally *)a)->key, other = ((const mt_tally *)b)->key;
  return (one > other) - (one < other);
}

/* Ascending tallies, one a period: equal keys added up. Returns how many there are. */
static int64_t merge(mt_tally *tallies, int64_t n)
{
  int64_t kept = 0;
  if (n == 0) return 0;
  qsort(tallies, (size_t)n, sizeof *tallies, by_key);
  for (int64_t i = 1; i < n; i++)
    if (tallies[i].key == tallies[kept].key) {
      tallies[kept].n_documents += tallies[i].n_documents;
      tallies[kept].skipped += tallies[i].skipped;
    } else {
      tallies[++kept] = tallies[i];
    }
  return kept + 1;
}

static mt_status name_periods(mt_period_kind kind, int64_t n, const mt_tally *tallies,
                              mt_survey *out)
{
  mt_status status = MT_OK;
  int64_t first = 0;
  MT_NEW(out->periods, n);
  for (int64_t p = 0; p < n; p++) {
    mt_period *period = &out->periods[p];
    char name[MT_PERIOD_NAME];
    out->n_periods = p + 1;
    mt_period_name(kind, tallies[p].key, name);
    MT_TRY(mt_string_copy(name, &period->name));
    period->first_document = first;
    period->n_documents = tallies[p].n_documents;
    period->skipped = tallies[p].skipped;
    first += period->n_documents;
  }
  out->n_documents = first;
done:
  return status;
}

/* All ranks' tallies as periods. */
static mt_status gather_periods(const mt_comm *comm, const mt_collection *c,
                                mt_survey *out)
{
  mt_status status = MT_OK;
  mt_tally *all = NULL;
  size_t size = 0;
  MT_TRY(mt_allgather_bytes(comm, (size_t)c->n_tallies * sizeof *all, c->tallies, &size,
                            (void **)&all));
  int64_t n = merge(all, (int64_t)(size / sizeof *all));
  MT_TRY(mt_agree(comm, name_periods(c->options->period, n, all, out)));
done:
  free(all);
  return status;
}

static void list_skips(const mt_survey *survey, char *out, size_t size)
{
  size_t at = 0;
  out[0] = '\0';
  for (int s = 1; s < MT_SKIP_KINDS && at < size; s++)
    if (survey->skipped[s] > 0)
      at += (size_t)snprintf(out + at, size - at, "%s%s %lld", at > 0 ? ", " : "",
                             mt_skip_name((mt_skip)s), (long long)survey->skipped[s]);
}

/* All ranks know the same; rank 0 speaks. */
static mt_status no_documents(const mt_comm *comm, const mt_corpus_options *options,
                              const mt_survey *survey)
{
  char skips[512];
  if (comm->rank != 0) return MT_ERR_INPUT;
  list_skips(survey, skips, sizeof skips);
  if (survey->n_records == 0)
    return mt_fail(
        MT_ERR_INPUT,
        "%s: no document in it: read as %s (endings %s); corpus.format names "
        "another format",
        options->path, mt_format_name(survey->format),
        mt_format_endings(survey->format));
  return mt_fail(MT_ERR_INPUT,
                 "%s: none of its %lld records (%s) gives a document: %s; look at "
                 "corpus.period, corpus.periods and the fields' names",
                 options->path, (long long)survey->n_records,
                 mt_format_name(survey->format), skips);
}

static mt_status sum_survey(const mt_comm *comm, const mt_collection *c, mt_survey *out)
{
  mt_status status = MT_OK;
  out->n_records = c->n_records;
  memcpy(out->skipped, c->skipped, sizeof out->skipped);
  MT_TRY(mt_sum_i64(comm, 1, &out->n_records));
  MT_TRY(mt_sum_i64(comm, MT_SKIP_KINDS, out->skipped));
  MT_TRY(gather_periods(comm, c, out));
  if (out->n_documents == 0) status = no_documents(comm, c->options, out);
done:
  return status;
}

static void log_source(const mt_corpus_options *options, const mt_source *source)
{
  double bytes = 0;
  for (int64_t f = 0; f < source->n; f++) bytes += (double)source->files[f].size;
  mt_info("corpus: %s: %lld file%s, %.1f MB, read as %s%s", options->path,
          (long long)source->n, source->n == 1 ? "" : "s", bytes / 1e6,
          mt_format_name(source->format),
          options->format == MT_FORMAT_AUTO ? " (found by name or content)" : "");
  if (source->ignored > 0)
    mt_info("corpus: %lld other file%s left out (only %s)", (long long)source->ignored,
            source->ignored == 1 ? "" : "s", mt_format_endings(source->format));
}

static mt_status read_all(const mt_comm *comm, const mt_corpus_options *options,
                          bool count_only, size_t piece_bytes,
                          mt_collection *collection, int64_t **place_out,
                          mt_survey *survey)
{
  mt_status status = MT_OK;
  mt_source source = {0};
  mt_log_replicated(true); /* all ranks read corpus.periods alike */
  status = mt_collection_open(options, count_only, collection);
  mt_log_replicated(false);
  MT_TRY(mt_agree(comm, status));
  MT_TRY(mt_source_share(comm, options, &source));
  log_source(options, &source);
  survey->format = source.format;
  survey->n_files = source.n;
  MT_TRY(mt_collect(comm, collection, &source, piece_bytes, place_out));
  MT_TRY(sum_survey(comm, collection, survey));
done:
  mt_source_destroy(&source);
  return status;
}

mt_status mt_corpus_survey(const mt_comm *comm, const mt_corpus_options *options,
                           mt_survey *survey_out)
{
  mt_status status = MT_OK;
  mt_collection collection = {0};
  int64_t *place = NULL;
  mt_survey survey = {0};
  MT_TRY(read_all(comm, options, true, MT_PIECE_BYTES, &collection, &place, &survey));
  *survey_out = survey;
  memset(&survey, 0, sizeof survey);
done:
  mt_survey_destroy(&survey);
  free(place);
  mt_collection_close(&collection);
  return status;
}

/* ---- the whole ---------------------------------------------------------------------------------- */

/* Of a document, its position in it: sums over documents do not depend on ranks. */
static void add_document_hash(const mt_built *built, int64_t i, int64_t sums[2])
{
  const mt_counts *counts = &built->counts;
  int64_t at = counts->indptr[i], n = counts->indptr[i + 1] - at;
  mt_hash *hash = mt_hash_begin();
  mt_hash_i64(hash, built->first + i);
  mt_hash_i64(hash, built->period_of[i]);
  mt_hash_text(hash, built->ids[i]);
  mt_hash_bytes(hash, counts->indices + at, (size_t)n * sizeof *counts->indices);
  mt_hash_bytes(hash, counts->data + at, (size_t)n * sizeof *counts->data);
  mt_fingerprint print = mt_hash_end(hash);
  sums[0] = (int64_t)((uint64_t)sums[0] + mt_hash_key(print.hex, 16));
  sums[1] = (int64_t)((uint64_t)sums[1] + mt_hash_key(print.hex + 16, 16));
}

/* Where each term ends when they stand one after the other, then their bytes. */
static void add_terms_hash(const mt_terms *terms, mt_hash *hash)
{
  int64_t end = 0;
  mt_hash_i64(hash, terms->n);
  for (int64_t t = 0; t < terms->n; t++)
    mt_hash_i64(hash, end += mt_term_record_of(terms, t)->size);
  for (int64_t t = 0; t < terms->n; t++) {
    size_t size;
    const char *bytes = mt_term(terms, t, &size);
    mt_hash_bytes(hash, bytes, size);
  }
}

static mt_status hash_content(const mt_comm *comm, mt_built *built)
{
  mt_status status = MT_OK;
  int64_t sums[2] = {0, 0};
  for (int64_t i = 0; i < built->counts.n_documents; i++)
    add_document_hash(built, i, sums);
  MT_TRY(mt_sum_i64(comm, 2, sums));
  mt_hash *hash = mt_hash_begin();
  mt_hash_i64(hash, built->survey.n_documents);
  add_terms_hash(&built->vocabulary.terms, hash);
  for (int64_t p = 0; p < built->survey.n_periods; p++) {
    mt_hash_text(hash, built->survey.periods[p].name);
    mt_hash_i64(hash, built->survey.periods[p].n_documents);
  }
  mt_hash_bytes(hash, sums, sizeof sums);
  built->content = mt_hash_end(hash);
  MT_REQUIRE(built->content.hex[0] != '\0', MT_ERR_MEMORY,
             "no memory for a fingerprint");
done:
  return status;
}

mt_status mt_corpus_build(const mt_comm *comm, const mt_corpus_options *options,
                          size_t piece_bytes, mt_built *built_out)
{
  mt_status status = MT_OK;
  mt_collection collection = {0};
  mt_built built = {0};
  int64_t *place = NULL, *order = NULL, *positions = NULL;

  MT_TRY(
      read_all(comm, options, false, piece_bytes, &collection, &place, &built.survey));
  MT_TRY(mt_vocabulary_build(comm, options, built.survey.n_documents, &collection.terms,
                             &built.vocabulary));
  MT_TRY(mt_arrange_positions(comm, &collection, place, &order, &positions));
  MT_TRY(mt_arrange_rows(comm, &collection, order, positions, &built));
  MT_TRY(mt_agree(comm, hash_content(comm, &built)));
  *built_out = built;
  memset(&built, 0, sizeof built);
done:
  mt_built_destroy(&built);
  free(place);
  free(order);
  free(positions);
  mt_collection_close(&collection);
  return status;
}
