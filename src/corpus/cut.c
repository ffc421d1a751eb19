#include "corpus/cut.h"
#include "base/stop.h"
#include "comm/pool.h"

#include <errno.h>
#include <unistd.h>

void mt_cutter_destroy(mt_cutter *c)
{
  mt_buffer_destroy(&c->window);
  mt_buffer_destroy(&c->head);
}

/* Goes to a place in the file. */
static void seek(mt_cutter *c, int64_t offset)
{
  c->window.size = 0;
  c->offset = offset;
  c->ended = false;
}

void mt_cutter_begin(mt_cutter *c, const mt_piece *piece, int file, mt_stream *stream)
{
  c->piece = *piece;
  c->file = file;
  c->stream = stream;
  c->head.size = 0;
  seek(c, 0);
}

enum { BLOCK = 1 << 16 }; /* bytes of a stream that are read without a pause */

/* Reads `size` bytes more, or to the end. */
static mt_status fill(mt_cutter *c, size_t size)
{
  mt_status status = MT_OK;
  if (mt_stop_requested()) return MT_STOPPED;
  MT_TRY(mt_buffer_reserve(&c->window, size));
  while (size > 0 && !c->ended) {
    char *to = c->window.bytes + c->window.size;
    size_t got = 0;
    if (c->stream != NULL) {
      mt_pool_progress(c->piece.pool);
      MT_TRY(mt_stream_read(c->stream, to, size < BLOCK ? size : BLOCK, &got));
    } else {
      ssize_t n = pread(c->file, to, size, (off_t)(c->offset + c->window.size));
      if (n < 0 && errno == EINTR) continue;
      MT_REQUIRE(n >= 0, MT_ERR_IO, "cannot read %s: %s", c->piece.path,
                 strerror(errno));
      got = (size_t)n;
    }
    c->ended = got == 0;
    c->window.size += (int64_t)got;
    size -= got;
  }
done:
  return status;
}

/* A piece more, or as much again as there is. */
static mt_status fill_more(mt_cutter *c)
{
  size_t there = (size_t)c->window.size;
  return fill(c, c->piece_bytes > there ? c->piece_bytes : there);
}

/* A piece and more from `start` on, so that its end is seen; little of it is left over then,
 * to be moved, and all of it is in the cache. */
static mt_status fill_up(mt_cutter *c, int64_t start)
{
  int64_t want = start + (int64_t)(c->piece_bytes + c->piece_bytes / 16);
  return fill(c, want > c->window.size ? (size_t)(want - c->window.size) : 0);
}

static void forget(mt_cutter *c, int64_t size)
{
  memmove(c->window.bytes, c->window.bytes + size, (size_t)(c->window.size - size));
  c->window.size -= size;
  c->offset += size;
}

/* ---- where records begin ------------------------------------------------------------------- */

/* Each: the first record that begins at or after `at` in the window; -1: not in these
 * bytes. */
static int64_t next_line(const mt_cutter *c, int64_t at)
{
  const char *bytes = c->window.bytes;
  if (c->offset + at == 0) return 0;
  if (at == 0 || at > c->window.size) return -1; /* the byte before must be seen */
  const char *end = memchr(bytes + at - 1, '\n', (size_t)(c->window.size - at + 1));
  return end != NULL ? end + 1 - bytes : -1;
}

enum { OPENING = sizeof "<REUTERS" - 1 };

static int64_t next_document(const mt_cutter *c, int64_t at)
{
  if (at >= c->window.size) return -1;
  int64_t found =
      (int64_t)mt_sgml_next(c->window.bytes, (size_t)c->window.size, (size_t)at);
  return found + OPENING >= c->window.size ? -1 : found; /* the next bytes tell */
}

static int64_t next_row(mt_cutter *c, int64_t at)
{
  const char *bytes = c->window.bytes;
  int64_t size = c->window.size, passed = c->passed - c->offset;
  int64_t to = at < size ? at : size;
  if (c->offset + at == 0) return 0;
  if (to > passed) {
    c->state =
        mt_csv_rows_pass(&c->csv, c->state, bytes + passed, (size_t)(to - passed));
    passed = to;
  }
  passed += (int64_t)mt_csv_rows_next(&c->csv, &c->state, bytes + passed,
                                      (size_t)(size - passed));
  c->passed = c->offset + passed;
  return passed >= at && c->state == MT_CSV_ROW ? passed : -1;
}

static int64_t next_record(mt_cutter *c, int64_t at)
{
  switch (c->format) {
  case MT_FORMAT_JSONL:
    return next_line(c, at);
  case MT_FORMAT_CSV:
    return next_row(c, at);
  default:
    return next_document(c, at);
  }
}

/* The place in the window of the first record at or after file offset `at`, reading as far
 * as needed; the window's end if there is none. */
static mt_status find_start(mt_cutter *c, int64_t at, int64_t *out)
{
  mt_status status = MT_OK;
  int64_t found, searched;
  while (found = next_record(c, at - c->offset), found < 0 && !c->ended) {
    searched = c->offset + c->window.size - OPENING;
    if (searched > at) at = searched;
    MT_TRY(fill_more(c));
  }
  *out = found >= 0 ? found : c->window.size;
done:
  return status;
}

/* Likewise of the first in [from, to), if there is one, without holding what comes before
 * it. */
static mt_status find_first(mt_cutter *c, int64_t from, int64_t to, int64_t *out)
{
  mt_status status = MT_OK;
  int64_t found;
  MT_TRY(fill(c, c->piece_bytes));
  while (found = next_record(c, from - c->offset),
         found < 0 && !c->ended && c->offset + c->window.size - OPENING <= to) {
    int64_t keep = c->window.size < 2 * OPENING ? c->window.size : 2 * OPENING;
    if (c->piece.line > 0)
      c->piece.line += mt_newlines(c->window.bytes, (size_t)(c->window.size - keep));
    forget(c, c->window.size - keep);
    if (c->offset + keep - OPENING > from) from = c->offset + keep - OPENING;
    MT_TRY(fill(c, c->piece_bytes));
  }
  *out = found >= 0 ? found : c->window.size;
  MT_TRY(fill_up(c, *out)); /* it may begin where the window ends */
done:
  return status;
}

/* ---- CSV ------------------------------------------------------------------------------------ */

enum { MOST_HEAD = 64 << 20 }; /* bytes of a head: every rank holds it */

/* Reads the head, which is left in the window. */
static mt_status read_head(mt_cutter *c)
{
  mt_status status = MT_OK;
  int64_t head;
  do {
    MT_TRY(fill_more(c));
    size_t size = (size_t)c->window.size;
    unsigned char separator = mt_csv_separator(c->window.bytes, size);
    if (c->csv.n == 0 || c->csv.separator != separator)
      MT_TRY(mt_csv_rows_make(separator, &c->csv));
    head = (int64_t)mt_csv_head(&c->csv, c->window.bytes, size);
    MT_REQUIRE(head < c->window.size || head < MOST_HEAD, MT_ERR_INPUT,
               "%s: the row that names the columns does not end in the file's first %d "
               "MiB: is one of its quotes not closed?",
               c->piece.name, MOST_HEAD >> 20);
  } while (head == c->window.size && !c->ended);
  MT_TRY(mt_buffer_add(&c->head, c->window.bytes, (size_t)head));
  c->state = MT_CSV_ROW;
  c->passed = head;
done:
  return status;
}

/* The records are those of [*from, ...): the head is of no rank but the first. */
static mt_status begin_csv(mt_cutter *c, int64_t *from, int state)
{
  mt_status status = MT_OK;
  MT_TRY(read_head(c));
  if (*from == 0) return MT_OK;
  c->piece.head = (mt_span){c->head.bytes, (size_t)c->head.size};
  if (*from > c->head.size) {
    c->state = state;
    c->passed = *from;
  }
  *from = c->passed;
  seek(c, *from);
done:
  return status;
}

mt_status mt_cut_map(mt_cutter *c, int64_t from, int64_t to,
                     uint8_t map_out[static MT_CSV_STATES])
{
  mt_status status = MT_OK;
  MT_TRY(read_head(c));
  for (int s = 0; s < MT_CSV_STATES; s++)
    map_out[s] = from > c->head.size ? (uint8_t)s : MT_CSV_ROW;
  seek(c, from > c->head.size ? from : c->head.size);
  while (c->offset < to && !c->ended) {
    MT_TRY(fill(c, c->piece_bytes));
    int64_t left = to - c->offset;
    int64_t size = c->window.size < left ? c->window.size : left;
    mt_csv_rows_map(&c->csv, map_out, c->window.bytes, (size_t)size);
    forget(c, c->window.size);
  }
done:
  return status;
}

/* ---- cutting ------------------------------------------------------------------------------------ */

/* Gives [first, end) of the window, and forgets it. */
static mt_status give(mt_cutter *c, int64_t first, int64_t end)
{
  mt_status status = MT_OK;
  mt_piece *piece = &c->piece;
  if (piece->line > 0) piece->line += mt_newlines(c->window.bytes, (size_t)first);
  piece->bytes = c->window.bytes + first;
  piece->size = (size_t)(end - first);
  piece->offset = c->offset + first;
  MT_TRY(c->sink(c->context, piece));
  if (piece->line > 0) piece->line += mt_newlines(piece->bytes, piece->size);
  forget(c, end);
  if (c->format == MT_FORMAT_CSV)
    piece->head = (mt_span){c->head.bytes, (size_t)c->head.size};
done:
  return status;
}

static mt_status cut_whole(mt_cutter *c)
{
  mt_status status = MT_OK;
  c->piece.line = 1;
  while (!c->ended) MT_TRY(fill_more(c));
  MT_TRY(give(c, 0, c->window.size));
done:
  return status;
}

mt_status mt_cut(mt_cutter *c, int64_t from, int64_t to, int state)
{
  mt_status status = MT_OK;
  int64_t start, end, piece_bytes = (int64_t)c->piece_bytes;
  if (!mt_format_is_cut(c->format)) return cut_whole(c);
  c->piece.line = c->piece.path == NULL ? 1 : 0;
  if (c->format == MT_FORMAT_CSV) MT_TRY(begin_csv(c, &from, state));
  if (c->format == MT_FORMAT_JSONL && from > 0) seek(c, from - 1);
  if (c->format == MT_FORMAT_REUTERS_SGML) seek(c, from);
  MT_TRY(find_first(c, from, to, &start));
  while (c->offset + start < to && start < c->window.size) {
    int64_t want = c->offset + start + piece_bytes;
    MT_TRY(find_start(c, want < to ? want : to, &end));
    if (end > start) MT_TRY(give(c, start, end));
    MT_TRY(fill_up(c, 0));
    start = 0;
  }
done:
  return status;
}
