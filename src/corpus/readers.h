/* Readers: from the bytes of a file, or of a piece of it, to records. Not collective; all
 * in memory, so that tests and fuzzers can call them. Each finds every record that begins
 * in the piece and gives each to the sink exactly once, in order, damaged ones included
 * (strict="true": a damaged record is an error that names file and line). */
#ifndef MT_CORPUS_READERS_H
#define MT_CORPUS_READERS_H
#include "base/status.h"
#include "corpus/buffer.h"
#include "deck/parameters.h"
#include <stddef.h>
#include <stdint.h>

/* Why a record gave no document. */
typedef enum mt_skip {
  MT_SKIP_NONE,
  MT_SKIP_NO_DATE,
  MT_SKIP_UNREADABLE_DATE, /* 30-FEB, or too coarse for the kind of period */
  MT_SKIP_NO_BODY,
  MT_SKIP_EMPTY_BODY, /* nothing but blanks */
  MT_SKIP_OUTSIDE_PERIODS,
  MT_SKIP_DAMAGED,  /* strict="false" only, as the next */
  MT_SKIP_ENCODING, /* bytes that are not text in the encoding */
  MT_SKIP_KINDS
} mt_skip;
const char *mt_skip_name(mt_skip skip); /* "no date", ... */

typedef struct mt_span {
  const char *at; /* not '\0'-terminated; NULL: the record has no such part */
  size_t size;
} mt_span;

/* Borrowed until the sink returns. Texts are valid UTF-8. */
typedef struct mt_record {
  int64_t
      offset; /* of its first byte in the file: with the file, its place in the input */
  mt_span id, date, title, text;
  mt_skip skip; /* MT_SKIP_NONE, MT_SKIP_DAMAGED or MT_SKIP_ENCODING */
} mt_record;

typedef mt_status (*mt_sink)(void *context, const mt_record *record);

/* A whole file, or the part of it from the beginning of one record to that of another. */
typedef struct mt_piece {
  const char *name; /* for messages and identifiers */
  const char
      *path; /* to read again, for a line number; NULL if there is no such file */
  const char *bytes;
  size_t size;
  int64_t offset;     /* of bytes in the file */
  int64_t line;       /* of its first byte, from 1; 0: not known, count in path */
  const char *folder; /* the name of the folder that it lies in: the date of a text */
  struct mt_pool
      *pool; /* what goes to other ranks meanwhile: mt_pool_progress often; NULL:
                           nothing */
  mt_span
      head; /* of CSV: the file's head (csv_rows.h); empty if the piece begins with it */
} mt_piece;

/**
 * Reuters' SGML: <REUTERS NEWID=..> .. <DATE> <TITLE> <BODY> .. </REUTERS>, no root.
 * text       the body alone; absent if there is no BODY
 * encoding   auto: each document UTF-8 if it is valid, else ISO-8859-1
 * References to control characters (&#5;, &#127;), which XML forbids or which mean nothing
 * in a text, stay as they are written; a bare & is itself.
 * Errors     MT_ERR_INPUT: a document that is cut or not well formed, with strict
 */
mt_status mt_reader_sgml(const mt_piece *piece, const mt_corpus_options *options,
                         mt_sink sink, void *context);

/* JSON Lines: an object a line; the fields' names are options. Blank lines are nothing.
 * id: text or number; without one, NAME@OFFSET. encoding auto: UTF-8. */
mt_status mt_reader_jsonl(const mt_piece *piece, const mt_corpus_options *options,
                          mt_sink sink, void *context);

/* CSV (RFC 4180) with a header line, which names the fields as in jsonl; separated by
 * commas, or by semicolons or tabs if the header has no comma. A header that does not name
 * the fields is told of where it stands, not with each piece. */
mt_status mt_reader_csv(const mt_piece *piece, const mt_corpus_options *options,
                        mt_sink sink, void *context);

/* One file, one document: the folder it lies in is the date, its name the id. */
mt_status mt_reader_text(const mt_piece *piece, const mt_corpus_options *options,
                         mt_sink sink, void *context);

/* ---- what readers share ---- */

int64_t mt_newlines(const char *bytes, size_t size);

/* An identifier for a record at an offset of the file that has none: NAME@OFFSET. It lies
 * in the buffer. */
mt_status mt_piece_id(const mt_piece *piece, int64_t offset, mt_buffer *buffer,
                      mt_span *id_out);

/* Reuters' SGML: where the next "<REUTERS" with a blank or '>' after it begins, at or after
 * `at`, or one that the bytes end with; size if there is none. */
size_t mt_sgml_next(const char *bytes, size_t size, size_t at);

/* The line of byte `at` of the piece, from 1; 0 if that cannot be told. */
int64_t mt_piece_line(const mt_piece *piece, size_t at);

/**
 * A record that cannot be used begins at byte `at`: with strict an error, else given to
 * the sink with `skip`.
 * line_at  the byte whose line is named
 */
mt_status mt_piece_damaged(const mt_piece *piece, const mt_corpus_options *options,
                           mt_sink sink, void *context, mt_skip skip, size_t at,
                           size_t line_at, const char *format, ...)
    __attribute__((format(printf, 8, 9)));

/* Blanks at both ends taken off. */
mt_span mt_span_trim(mt_span span);

#endif
