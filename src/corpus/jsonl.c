#include "corpus/decode.h"
#include "corpus/flat_json.h"
#include "corpus/readers.h"

#include <jansson.h>
#include <stdio.h>

typedef struct jsonl_reader {
  const mt_piece *piece;
  const mt_corpus_options *options;
  mt_sink sink;
  void *context;
  mt_decoder decoder;
  mt_buffer id, date; /* numbers written out */
  mt_buffer texts;    /* of a flat line */
} jsonl_reader;

/* A line's object. Integers beyond 64 bits are no error of the line: they are read as
 * reals then. */
static json_t *parse(mt_span line, json_error_t *error)
{
  size_t flags = JSON_ALLOW_NUL;
  json_t *object = json_loadb(line.at, line.size, flags, error);
  if (object == NULL && json_error_code(error) == json_error_numeric_overflow)
    object = json_loadb(line.at, line.size, flags | JSON_DECODE_INT_AS_REAL, error);
  return object;
}

/* A field's text; numbers are written out in `buffer`; null counts as absent. */
static mt_status field(const json_t *object, const char *name, mt_buffer *buffer,
                       mt_span *out, bool *usable_out)
{
  mt_status status = MT_OK;
  const json_t *value = json_object_get(object, name);
  char number[64];
  int length = 0;
  *usable_out = true;
  *out = (mt_span){NULL, 0};
  if (value == NULL || json_is_null(value)) return MT_OK;
  if (json_is_string(value)) {
    *out = (mt_span){json_string_value(value), json_string_length(value)};
  } else if (buffer != NULL && json_is_number(value)) {
    if (json_is_integer(value))
      length =
          snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
    else
      length = snprintf(number, sizeof number, "%.17g", json_real_value(value));
    buffer->size = 0;
    MT_TRY(mt_buffer_add(buffer, number, (size_t)length));
    *out = (mt_span){buffer->bytes, (size_t)length};
  } else {
    *usable_out = false;
  }
done:
  return status;
}

static mt_status damaged(jsonl_reader *reader, mt_skip skip, size_t at,
                         const char *what, const char *detail)
{
  return mt_piece_damaged(reader->piece, reader->options, reader->sink, reader->context,
                          skip, at, at, what, detail);
}

static mt_status give(jsonl_reader *reader, mt_record *record)
{
  mt_status status = MT_OK;
  if (record->id.at == NULL || record->id.size == 0)
    MT_TRY(mt_piece_id(reader->piece, record->offset, &reader->id, &record->id));
  MT_TRY(reader->sink(reader->context, record));
done:
  return status;
}

static mt_status give_object(jsonl_reader *reader, size_t at, const json_t *object)
{
  mt_status status = MT_OK;
  const mt_corpus_options *options = reader->options;
  mt_record record = {.offset = reader->piece->offset + (int64_t)at};
  const struct {
    const char *name;
    mt_buffer *buffer;
    mt_span *out;
  } fields[] = {{options->id_field, &reader->id, &record.id},
                {options->date_field, &reader->date, &record.date},
                {options->title_field, NULL, &record.title},
                {options->text_field, NULL, &record.text}};

  for (int f = 0; f < 4; f++) {
    bool usable;
    MT_TRY(field(object, fields[f].name, fields[f].buffer, fields[f].out, &usable));
    if (!usable)
      return damaged(reader, MT_SKIP_DAMAGED, at, "the field \"%s\" is not a text",
                     fields[f].name);
  }
  MT_TRY(give(reader, &record));
done:
  return status;
}

/* By jansson: it knows all of JSON, and what is wrong. */
static mt_status read_object(jsonl_reader *reader, size_t at, mt_span line)
{
  json_error_t error;
  json_t *object = parse(line, &error);
  mt_status status;
  if (object == NULL)
    status =
        damaged(reader, MT_SKIP_DAMAGED, at, "a line that is not JSON: %s", error.text);
  else if (!json_is_object(object))
    status =
        damaged(reader, MT_SKIP_DAMAGED, at, "a line that is not a JSON object%s", "");
  else
    status = give_object(reader, at, object);
  if (object != NULL) json_decref(object);
  return status;
}

static mt_status read_line(jsonl_reader *reader, size_t at, size_t size)
{
  mt_status status = MT_OK;
  const mt_corpus_options *options = reader->options;
  mt_record record = {.offset = reader->piece->offset + (int64_t)at};
  const mt_json_field fields[] = {{options->id_field, true, &record.id},
                                  {options->date_field, true, &record.date},
                                  {options->title_field, false, &record.title},
                                  {options->text_field, false, &record.text}};
  mt_span line = {reader->piece->bytes + at, size};
  bool valid;

  if (mt_span_trim(line).size == 0) return MT_OK;
  MT_TRY(mt_decode(&reader->decoder, line, &line, &valid));
  if (!valid)
    return damaged(reader, MT_SKIP_ENCODING, at,
                   "a line that is not %s text (corpus.encoding names another)",
                   reader->decoder.name);
  MT_TRY(mt_buffer_reserve(&reader->texts, line.size));
  if (mt_json_flat(line, 4, fields, &reader->texts))
    MT_TRY(give(reader, &record));
  else
    MT_TRY(read_object(reader, at, line));
done:
  return status;
}

mt_status mt_reader_jsonl(const mt_piece *piece, const mt_corpus_options *options,
                          mt_sink sink, void *context)
{
  mt_status status = MT_OK;
  jsonl_reader reader = {
      .piece = piece, .options = options, .sink = sink, .context = context};
  static const char mark[] = "\xEF\xBB\xBF"; /* byte order, of no meaning in UTF-8 */
  size_t at = 0;

  MT_TRY(mt_decoder_open(options->encoding, MT_FALLBACK_NONE, &reader.decoder));
  if (piece->offset == 0 && piece->size >= 3 && memcmp(piece->bytes, mark, 3) == 0)
    at = 3;
  while (at < piece->size) {
    const char *end = memchr(piece->bytes + at, '\n', piece->size - at);
    size_t size = (end != NULL ? (size_t)(end - piece->bytes) : piece->size) - at;
    MT_TRY(read_line(&reader, at, size));
    at += size + 1;
  }
done:
  mt_buffer_destroy(&reader.id);
  mt_buffer_destroy(&reader.date);
  mt_buffer_destroy(&reader.texts);
  mt_decoder_close(&reader.decoder);
  return status;
}
