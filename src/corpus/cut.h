/* Cutting the bytes of a file, or of a member of an archive, into pieces of whole records,
 * without holding more of them than a piece. Not collective. */
#ifndef MT_CORPUS_CUT_H
#define MT_CORPUS_CUT_H
#include "corpus/csv_rows.h"
#include "corpus/readers.h"
#include "corpus/stream.h"

typedef mt_status (*mt_piece_sink)(void *context, const mt_piece *piece);

typedef struct mt_cutter {
  mt_corpus_format format;
  size_t piece_bytes; /* what a piece has at least, where there is as much */
  mt_piece_sink sink; /* a piece is borrowed until it returns */
  void *context;
  /* of what is cut in hand: */
  mt_piece piece;    /* name, path, folder are given; the rest as it goes */
  int file;          /* it is read from here, or else */
  mt_stream *stream; /* from here */
  mt_buffer window;  /* its bytes [offset, offset + window.size) */
  int64_t offset;
  bool ended;      /* there are no more */
  mt_csv_rows csv; /* of CSV: the rule, */
  mt_buffer head;  /*   the file's head, */
  int state;       /*   and the state before its byte `passed` */
  int64_t passed;
} mt_cutter;
void mt_cutter_destroy(mt_cutter *cutter); /* closes neither file nor stream */

/* Other bytes: those of a file, or of a stream's member if stream is not NULL. */
void mt_cutter_begin(mt_cutter *cutter, const mt_piece *piece, int file,
                     mt_stream *stream);

/* Is a file of this format more than one record? */
static inline bool mt_format_is_cut(mt_corpus_format format)
{
  return format != MT_FORMAT_TEXT;
}

/**
 * Gives the records that begin in [from, to) of the file, in pieces; of a stream: [0,
 * INT64_MAX). A text is one piece.
 * state   of a CSV file before byte `from` (csv_rows.h); whatever if from is 0
 * Errors  MT_ERR_INPUT, MT_ERR_IO: it cannot be read; what the sink returned; MT_STOPPED once
 *         a signal has come to this process
 */
mt_status mt_cut(mt_cutter *cutter, int64_t from, int64_t to, int state);

/* Of a CSV file: to which state its bytes [from, to) lead from each. Errors as above. */
mt_status mt_cut_map(mt_cutter *cutter, int64_t from, int64_t to,
                     uint8_t map_out[static MT_CSV_STATES]);

#endif
