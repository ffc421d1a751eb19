/* What the readers' fuzz targets share. */
#ifndef MT_TESTS_FUZZ_READER_H
#define MT_TESTS_FUZZ_READER_H
#include "base/log.h"
#include "corpus/buffer.h"
#include "corpus/date.h"
#include "corpus/decode.h"
#include "corpus/readers.h"
#include "corpus/tokens.h"

#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  mt_log_setup(1, 2, MT_LOG_ERROR); /* errors of all ranks alike are rank 0's to say */
  mt_log_replicated(true);
  return 0;
}

static mt_status mt_fuzz_tokens(void *context, int64_t n, const mt_span *tokens)
{
  (void)context;
  for (int64_t t = 0; t < n; t++)
    if (tokens[t].size < 2 || !mt_utf8_valid(tokens[t].at, tokens[t].size)) abort();
  return MT_OK;
}

static mt_status mt_fuzz_record(void *context, const mt_record *record)
{
  const mt_span *spans[] = {&record->id, &record->date, &record->title, &record->text};
  mt_date date;
  for (int i = 0; i < 4; i++)
    if (spans[i]->at != NULL && !mt_utf8_valid(spans[i]->at, spans[i]->size)) abort();
  if (record->date.at != NULL &&
      mt_date_read(record->date.at, record->date.size, &date) && date.year < 1)
    abort();
  if (record->text.at == NULL) return MT_OK;
  return mt_tokenize(record->text.at, record->text.size, true, context, mt_fuzz_tokens,
                     NULL);
}

static inline int mt_fuzz_reader(mt_status (*read)(const mt_piece *,
                                                   const mt_corpus_options *, mt_sink,
                                                   void *),
                                 const uint8_t *bytes, size_t size)
{
  static const char *const encodings[] = {"auto", "UTF-8", "ISO-8859-1", "SHIFT_JIS"};
  mt_corpus_options options = {.id_field = "id",
                               .date_field = "date",
                               .title_field = "title",
                               .text_field = "text"};
  mt_buffer scratch = {0};
  options.encoding = (char *)encodings[size > 0 ? bytes[size - 1] % 4 : 0];
  char *copy =
      malloc(size + 1); /* of exactly size bytes, so that reading on is found out */
  if (copy == NULL) abort();
  if (size > 0) memcpy(copy, bytes, size);
  copy = realloc(copy, size > 0 ? size : 1);
  mt_piece piece = {.name = "fuzz", .bytes = copy, .size = size, .line = 1};
  for (int strict = 0; strict < 2; strict++) {
    options.strict = strict;
    mt_status status = read(&piece, &options, mt_fuzz_record, &scratch);
    if (status != MT_OK && status != MT_ERR_INPUT) abort();
  }
  free(copy);
  mt_buffer_destroy(&scratch);
  return 0;
}

#endif
