#include "corpus/write.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static const mt_dataset terms_set = {"/vocabulary/terms",
                                     MT_TEXT,
                                     "terms in the order of their code points",
                                     "1",
                                     {"term"}},
                        df_set = {"/vocabulary/document_frequency",
                                  MT_INT64,
                                  "documents that hold the term",
                                  "documents",
                                  {"term"}},
                        tf_set = {"/vocabulary/term_frequency",
                                  MT_INT64,
                                  "occurrences in all documents",
                                  "occurrences",
                                  {"term"}},
                        id_set = {"/documents/id",
                                  MT_TEXT,
                                  "identifier in the collection",
                                  "1",
                                  {"document"}},
                        title_set = {"/documents/title",
                                     MT_TEXT,
                                     "title; empty if there is none",
                                     "1",
                                     {"document"}},
                        period_set = {"/documents/period",
                                      MT_INT32,
                                      "row of /periods; ascending",
                                      "1",
                                      {"document"}},
                        indptr_set =
                            {"/counts/indptr",
                             MT_INT64,
                             "document d has the counts [indptr[d], indptr[d + 1])",
                             "1",
                             {"document or end"}},
                        indices_set = {"/counts/indices",
                                       MT_INT32,
                                       "term of each count, ascending in a document",
                                       "1",
                                       {"count"}},
                        data_set = {"/counts/data",
                                    MT_INT32,
                                    "occurrences of the term in the document",
                                    "occurrences",
                                    {"count"}},
                        name_set = {"/periods/name",
                                    MT_TEXT,
                                    "periods in the order of time",
                                    "1",
                                    {"period"}},
                        first_set = {"/periods/first_document",
                                     MT_INT64,
                                     "first document of the period",
                                     "1",
                                     {"period"}},
                        n_set = {"/periods/n_documents",
                                 MT_INT64,
                                 "documents of the period",
                                 "documents",
                                 {"period"}},
                        skipped_set = {"/periods/skipped",
                                       MT_INT64,
                                       "records of the period without a usable body",
                                       "records",
                                       {"period"}},
                        stored_set = {"/periods/n_stored",
                                      MT_INT64,
                                      "counts stored for the period",
                                      "counts",
                                      {"period"}};

static mt_status term_texts(const mt_terms *terms, mt_part mine, char ***out)
{
  mt_status status = MT_OK;
  char **texts = NULL;
  MT_NEW(texts, mine.count);
  for (int64_t t = 0; t < mine.count; t++) {
    size_t size;
    const char *bytes = mt_term(terms, mine.first + t, &size);
    MT_TRY(mt_memory_new((int64_t)size + 1, 1, "term", (void **)&texts[t]));
    memcpy(texts[t], bytes, size);
  }
  *out = texts;
  texts = NULL;
done:
  if (texts != NULL) mt_store_free_texts(mine.count, texts);
  free(texts);
  return status;
}

static mt_status write_texts(const mt_comm *comm, mt_file *file, const mt_built *built)
{
  mt_status status = MT_OK;
  mt_part terms = mt_part_of(built->vocabulary.terms.n, comm->size, comm->rank);
  mt_part periods = mt_part_of(built->survey.n_periods, comm->size, comm->rank);
  int64_t n = built->counts.n_documents;
  char **texts = NULL, **names = NULL;
  MT_TRY(mt_agree(comm, term_texts(&built->vocabulary.terms, terms, &texts)));
  MT_TRY(mt_agree(
      comm, mt_memory_new(periods.count, sizeof *names, "names", (void **)&names)));
  for (int64_t p = 0; p < periods.count; p++)
    names[p] = built->survey.periods[periods.first + p].name;
  MT_TRY(mt_store_write(comm, file, &terms_set, terms.count, 0, texts));
  MT_TRY(mt_store_write(comm, file, &id_set, n, 0, built->ids));
  MT_TRY(mt_store_write(comm, file, &title_set, n, 0, built->titles));
  MT_TRY(mt_store_write(comm, file, &name_set, periods.count, 0, names));
done:
  if (texts != NULL) mt_store_free_texts(terms.count, texts);
  free(texts);
  free(names);
  return status;
}

static mt_status write_frequencies(const mt_comm *comm, mt_file *file,
                                   const mt_terms *terms)
{
  mt_status status = MT_OK;
  mt_part mine = mt_part_of(terms->n, comm->size, comm->rank);
  int64_t *df = NULL, *tf;
  MT_TRY(mt_agree(
      comm, mt_memory_new(2 * mine.count, sizeof *df, "frequencies", (void **)&df)));
  tf = df + mine.count;
  for (int64_t t = 0; t < mine.count; t++) {
    df[t] = mt_term_record_of(terms, mine.first + t)->df;
    tf[t] = mt_term_record_of(terms, mine.first + t)->tf;
  }
  MT_TRY(mt_store_write(comm, file, &df_set, mine.count, 0, df));
  MT_TRY(mt_store_write(comm, file, &tf_set, mine.count, 0, tf));
done:
  free(df);
  return status;
}

static mt_status write_counts(const mt_comm *comm, mt_file *file, const mt_built *built)
{
  mt_status status = MT_OK;
  const mt_counts *counts = &built->counts;
  int64_t n = counts->n_documents, stored = counts->indptr[n], before = 0,
          *indptr = NULL;
  MT_TRY(mt_exscan_i64(comm, stored, &before));
  MT_TRY(
      mt_agree(comm, mt_memory_new(n + 1, sizeof *indptr, "indptr", (void **)&indptr)));
  for (int64_t i = 0; i <= n; i++) indptr[i] = before + counts->indptr[i];
  bool last = comm->rank == comm->size - 1; /* who adds the end */
  MT_TRY(mt_store_write(comm, file, &indptr_set, n + last, 0, indptr));
  MT_TRY(mt_store_write(comm, file, &indices_set, stored, 0, counts->indices));
  MT_TRY(mt_store_write(comm, file, &data_set, stored, 0, counts->data));
done:
  free(indptr);
  return status;
}

static mt_status write_periods(const mt_comm *comm, mt_file *file,
                               const mt_survey *survey)
{
  mt_status status = MT_OK;
  const mt_dataset *const sets[] = {&first_set, &n_set, &skipped_set, &stored_set};
  mt_part mine = mt_part_of(survey->n_periods, comm->size, comm->rank);
  int64_t *values = NULL;
  MT_TRY(mt_agree(comm, mt_memory_new(4 * mine.count, sizeof *values, "periods",
                                      (void **)&values)));
  for (int64_t p = 0; p < mine.count; p++) {
    const mt_period *period = &survey->periods[mine.first + p];
    const int64_t row[] = {period->first_document, period->n_documents, period->skipped,
                           period->n_stored};
    for (int c = 0; c < 4; c++) values[c * mine.count + p] = row[c];
  }
  for (int c = 0; c < 4; c++)
    MT_TRY(mt_store_write(comm, file, sets[c], mine.count, 0, values + c * mine.count));
done:
  free(values);
  return status;
}

mt_status mt_corpus_write(const mt_comm *comm, const char *path,
                          const mt_fingerprint *source, const mt_built *built)
{
  mt_status status = MT_OK;
  mt_file *file = NULL;

  MT_TRY(mt_store_create(comm, path, &built->content, &file));
  MT_TRY(write_texts(comm, file, built));
  MT_TRY(write_frequencies(comm, file, &built->vocabulary.terms));
  MT_TRY(mt_store_write(comm, file, &period_set, built->counts.n_documents, 0,
                        built->period_of));
  MT_TRY(write_counts(comm, file, built));
  MT_TRY(write_periods(comm, file, &built->survey));
  MT_TRY(mt_store_set_text(comm, file, "source", source->hex));
  MT_TRY(mt_store_set_text(comm, file, "source_format",
                           mt_format_name(built->survey.format)));
  MT_TRY(mt_store_set_i64(comm, file, "records", built->survey.n_records));
  MT_TRY(mt_store_commit(comm, &file));
done:
  mt_store_abandon(comm, &file);
  return status;
}
