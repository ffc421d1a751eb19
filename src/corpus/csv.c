#include "corpus/csv_rows.h"
#include "corpus/decode.h"
#include "corpus/readers.h"

#include <csv.h>
#include <stdio.h>

enum { COLUMN_ID, COLUMN_DATE, COLUMN_TITLE, COLUMN_TEXT, COLUMNS };

typedef struct csv_reader {
  const mt_piece *piece;
  const mt_corpus_options *options;
  mt_sink sink;
  void *context;
  mt_decoder decoder;
  struct csv_parser parser;
  bool parser_open;
  mt_buffer row; /* the fields of the row so far, one after the other */
  int64_t *ends, n_fields, ends_capacity;
  int64_t where[COLUMNS];    /* column of each field; -1: there is none */
  int64_t n_columns;         /* of the header; 0: it was not read yet */
  size_t row_at, next_at;    /* where this row begins; where the next bytes do */
  mt_buffer values[COLUMNS]; /* decoded */
  mt_status status;          /* of the callbacks, which cannot return one */
} csv_reader;

static mt_status damaged(csv_reader *reader, mt_skip skip, const char *what,
                         const char *detail)
{
  return mt_piece_damaged(reader->piece, reader->options, reader->sink, reader->context,
                          skip, reader->row_at, reader->row_at, what, detail);
}

static mt_span raw_field(const csv_reader *reader, int64_t column)
{
  int64_t first = column == 0 ? 0 : reader->ends[column - 1];
  return (mt_span){reader->row.bytes + first, (size_t)(reader->ends[column] - first)};
}

/* ---- the header ------------------------------------------------------------------------ */

static int64_t find_column(const csv_reader *reader, const char *name)
{
  for (int64_t c = 0; c < reader->n_fields; c++) {
    mt_span title = mt_span_trim(raw_field(reader, c));
    if (title.size == strlen(name) && memcmp(title.at, name, title.size) == 0) return c;
  }
  return -1;
}

/* Of the first line, for a message. */
static int header_length(const mt_piece *piece)
{
  int length = 0;
  while ((size_t)length < piece->size && length < 1000 &&
         memchr("\r\n", piece->bytes[length], 2) == NULL)
    length++;
  return length;
}

static mt_status read_header(csv_reader *reader)
{
  const mt_corpus_options *options = reader->options;
  const char *const names[COLUMNS] = {options->id_field, options->date_field,
                                      options->title_field, options->text_field};
  for (int f = 0; f < COLUMNS; f++) reader->where[f] = find_column(reader, names[f]);
  reader->n_columns = reader->n_fields;
  for (int f = COLUMN_DATE; f < COLUMNS; f += COLUMN_TEXT - COLUMN_DATE) {
    if (reader->where[f] >= 0) continue;
    if (reader->piece->head.size > 0) return MT_ERR_INPUT; /* said with the first */
    return mt_fail(MT_ERR_INPUT,
                   "%s: no column \"%s\" in the header: %.*s; name the columns with "
                   "corpus.date_field and corpus.text_field",
                   reader->piece->name, names[f], header_length(reader->piece),
                   reader->piece->bytes);
  }
  return MT_OK;
}

/* ---- rows -------------------------------------------------------------------------------- */

static mt_status decode_value(csv_reader *reader, int f, mt_span *out, bool *valid_out)
{
  mt_status status = MT_OK;
  mt_span text;
  *valid_out = true;
  if (reader->where[f] < 0) return MT_OK;
  MT_TRY(mt_decode(&reader->decoder, raw_field(reader, reader->where[f]), &text,
                   valid_out));
  if (!*valid_out) goto done;
  mt_buffer *value = &reader->values[f];
  value->size = 0;
  MT_TRY(mt_buffer_add(value, text.at, text.size));
  *out = (mt_span){value->bytes, (size_t)value->size};
done:
  return status;
}

static mt_status read_row(csv_reader *reader)
{
  mt_status status = MT_OK;
  mt_record record = {.offset = reader->piece->offset + (int64_t)reader->row_at};
  mt_span *const out[COLUMNS] = {&record.id, &record.date, &record.title, &record.text};
  char counts[96];

  if (reader->n_columns == 0) return read_header(reader);
  if (reader->n_fields != reader->n_columns) {
    snprintf(counts, sizeof counts, "%lld fields where the header has %lld",
             (long long)reader->n_fields, (long long)reader->n_columns);
    return damaged(reader, MT_SKIP_DAMAGED, "a row of %s", counts);
  }
  for (int f = 0; f < COLUMNS; f++) {
    bool valid;
    MT_TRY(decode_value(reader, f, out[f], &valid));
    if (!valid)
      return damaged(reader, MT_SKIP_ENCODING,
                     "a row that is not %s text (corpus.encoding names another)",
                     reader->decoder.name);
  }
  if (record.date.size == 0) record.date.at = NULL; /* an empty field is no date */
  if (record.id.size == 0)
    MT_TRY(mt_piece_id(reader->piece, record.offset, &reader->values[COLUMN_ID],
                       &record.id));
  MT_TRY(reader->sink(reader->context, &record));
done:
  return status;
}

/* ---- libcsv's callbacks ------------------------------------------------------------------ */

static mt_status add_field(csv_reader *reader, const void *bytes, size_t size)
{
  mt_status status = MT_OK;
  MT_TRY(mt_buffer_add(&reader->row, bytes, size));
  MT_GROW(reader->ends, reader->ends_capacity, reader->n_fields + 1);
  reader->ends[reader->n_fields++] = reader->row.size;
done:
  return status;
}

static void on_field(void *bytes, size_t size, void *context)
{
  csv_reader *reader = context;
  if (reader->status == MT_OK) reader->status = add_field(reader, bytes, size);
}

static void on_row(int end, void *context)
{
  csv_reader *reader = context;
  (void)end;
  if (reader->status == MT_OK && reader->n_fields > 0)
    reader->status = read_row(reader);
  reader->row.size = 0;
  reader->n_fields = 0;
  reader->row_at = reader->next_at;
}

/* ---- the file ---------------------------------------------------------------------------- */

/* After the first line end at or after `at`; `line_feed` is the next \n, kept. */
static size_t line_end(const mt_piece *piece, size_t at, size_t *line_feed)
{
  const char *bytes = piece->bytes, *end;
  if (*line_feed < at || at == 0) {
    end = memchr(bytes + at, '\n', piece->size - at);
    *line_feed = end != NULL ? (size_t)(end - bytes) : piece->size;
  }
  end = memchr(bytes + at, '\r', *line_feed - at);
  if (end != NULL) return (size_t)(end - bytes) + 1;
  return *line_feed < piece->size ? *line_feed + 1 : piece->size;
}

static mt_status parse_bytes(csv_reader *reader, const char *bytes, size_t size)
{
  struct csv_parser *parser = &reader->parser;
  size_t took = csv_parse(parser, bytes, size, on_field, on_row, reader);
  if (reader->status != MT_OK || took == size) return reader->status;
  if (csv_error(parser) != CSV_EPARSE)
    return mt_fail(MT_ERR_MEMORY, "%s: %s", reader->piece->name,
                   csv_strerror(csv_error(parser)));
  /* with strict alone */
  if (reader->n_columns == 0 && reader->piece->head.size > 0)
    return MT_ERR_INPUT; /* said with the first piece */
  return damaged(reader, MT_SKIP_DAMAGED, "a quote inside a field%s", "");
}

/* A line at a time, so that it is known where a row begins. */
static mt_status parse(csv_reader *reader)
{
  mt_status status = MT_OK;
  const mt_piece *piece = reader->piece;
  mt_span head = piece->head;
  size_t at = 0, line_feed = 0, mark = mt_csv_mark(head.at, head.size);
  if (head.size > 0)
    MT_TRY(parse_bytes(reader, head.at + mark, head.size - mark));
  else
    at = mt_csv_mark(piece->bytes, piece->size);
  reader->row_at = at;
  for (; at < piece->size; at = reader->next_at) {
    reader->next_at = line_end(piece, at, &line_feed);
    MT_TRY(parse_bytes(reader, piece->bytes + at, reader->next_at - at));
    if (reader->n_fields == 0 && reader->row.size == 0 && !reader->parser.quoted)
      reader->row_at = reader->next_at; /* a blank line, or the \n of \r\n */
  }
  csv_set_opts(&reader->parser,
               CSV_STRICT | CSV_STRICT_FINI); /* ask for the last quote */
  if (csv_fini(&reader->parser, on_field, on_row, reader) != 0)
    return damaged(reader, MT_SKIP_DAMAGED,
                   "a quote that is opened here is not closed%s", "");
  status = reader->status;
done:
  return status;
}

mt_status mt_reader_csv(const mt_piece *piece, const mt_corpus_options *options,
                        mt_sink sink, void *context)
{
  mt_status status = MT_OK;
  csv_reader reader = {
      .piece = piece, .options = options, .sink = sink, .context = context};
  mt_span first =
      piece->head.size > 0 ? piece->head : (mt_span){piece->bytes, piece->size};
  unsigned char mode = options->strict ? CSV_STRICT : 0;

  MT_TRY(mt_decoder_open(options->encoding, MT_FALLBACK_NONE, &reader.decoder));
  MT_REQUIRE(csv_init(&reader.parser, mode) == 0, MT_ERR_LIBRARY, "csv_init failed");
  reader.parser_open = true;
  csv_set_blk_size(&reader.parser, (size_t)1 << 20); /* its buffer grows by this */
  csv_set_delim(&reader.parser, mt_csv_separator(first.at, first.size));
  MT_TRY(parse(&reader));
done:
  if (reader.parser_open) csv_free(&reader.parser);
  for (int f = 0; f < COLUMNS; f++) mt_buffer_destroy(&reader.values[f]);
  mt_buffer_destroy(&reader.row);
  free(reader.ends);
  mt_decoder_close(&reader.decoder);
  return status;
}
