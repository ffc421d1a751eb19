/* The corpus in memory, spread over ranks: what the stage writes. */
#ifndef MT_CORPUS_BUILD_H
#define MT_CORPUS_BUILD_H
#include "base/hash.h"
#include "corpus/corpus.h"
#include "corpus/intake.h"
#include "corpus/vocabulary.h"
#include "deck/parameters.h"

/* Documents by period, without their words. Cheap: files are parsed, not cut into tokens. */
typedef struct mt_survey {
  mt_corpus_format format;
  int64_t n_files, n_records, n_documents;
  int64_t skipped[MT_SKIP_KINDS]; /* records that gave no document, by reason */
  int64_t n_periods;  /* those with a record, and those that were asked for */
  mt_period *periods; /* ascending; n_stored 0; owned */
} mt_survey;
void mt_survey_destroy(mt_survey *survey);

/**
 * Reads the collection and counts. Collective; the result is the same on all ranks and for
 * any number of them.
 * Errors   MT_ERR_INPUT: what mt_source_list and the readers find; corpus.periods holds a
 *          word that is no period; no record gave a document (the message says why)
 */
mt_status mt_corpus_survey(const mt_comm *comm, const mt_corpus_options *options,
                           mt_survey *survey_out);

typedef struct mt_built {
  mt_survey survey; /* n_stored filled in; the same on all ranks, as the next five */
  mt_vocabulary vocabulary;
  int64_t n_stored, n_counted; /* counts over all documents; their sum */
  int64_t n_empty;        /* documents that hold no term of the vocabulary; they stay */
  mt_fingerprint content; /* of vocabulary, periods, ids and counts */
  int64_t first;      /* this rank's documents: [first, first + counts.n_documents), */
  mt_counts counts;   /*   by period, then in input order, as mt_part_first */
  int32_t *period_of; /* (counts.n_documents) in survey.periods; owned */
  char **ids, **titles; /* (counts.n_documents) UTF-8 without '\0', in texts; owned */
  char *texts;          /* owned */
} mt_built;
void mt_built_destroy(mt_built *built);

/**
 * Reads the collection, chooses the vocabulary, counts. Collective. The result depends on
 * neither the number of ranks nor piece_bytes (MT_PIECE_BYTES; tests make it small).
 * Errors   as mt_corpus_survey and mt_vocabulary_build; MT_STOPPED after a signal
 */
mt_status mt_corpus_build(const mt_comm *comm, const mt_corpus_options *options,
                          size_t piece_bytes, mt_built *built_out);

#endif
