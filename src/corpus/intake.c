#include "corpus/intake.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/stop.h"
#include "corpus/buffer.h"
#include "corpus/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

/* ---- members ------------------------------------------------------------------------------- */

void mt_members_destroy(mt_members *members)
{
  for (int64_t m = 0; m < members->n; m++) free(members->list[m].name);
  free(members->list);
  memset(members, 0, sizeof *members);
}

static mt_status add_member(mt_members *members, int64_t file, const char *name)
{
  mt_status status = MT_OK;
  MT_GROW(members->list, members->capacity, members->n + 1);
  members->list[members->n] = (struct mt_member){.file = file};
  MT_TRY(mt_string_copy(name, &members->list[members->n].name));
  members->n++;
done:
  return status;
}

static int by_place(const void *a, const void *b, void *context)
{
  const mt_members *members = context;
  int64_t m = *(const int64_t *)a, o = *(const int64_t *)b;
  const struct mt_member *one = &members->list[m], *other = &members->list[o];
  if (one->file != other->file) return one->file < other->file ? -1 : 1;
  int order = strcmp(one->name, other->name);
  return order != 0 ? order : (m > o) - (m < o);
}

mt_status mt_members_order(const mt_members *members, int64_t *place_out)
{
  mt_status status = MT_OK;
  int64_t *order = NULL;
  MT_NEW(order, members->n);
  for (int64_t m = 0; m < members->n; m++) order[m] = m;
  qsort_r(order, (size_t)members->n, sizeof *order, by_place, (void *)members);
  for (int64_t i = 0; i < members->n; i++) place_out[order[i]] = i;
done:
  free(order);
  return status;
}

/* ---- where records begin ------------------------------------------------------------------- */

/* The first record that begins at or after `at` in bytes that stand at `offset` in their
 * file; -1: not in these bytes. */
static int64_t next_line(const char *bytes, int64_t size, int64_t offset, int64_t at)
{
  if (offset + at == 0) return 0;
  if (at == 0 || at > size) return -1; /* the byte before must be seen */
  const char *end = memchr(bytes + at - 1, '\n', (size_t)(size - at + 1));
  return end != NULL ? end + 1 - bytes : -1;
}

static int64_t next_document(const char *bytes, int64_t size, int64_t at)
{
  static const int64_t length = sizeof "<REUTERS" - 1;
  if (at >= size) return -1;
  int64_t found = (int64_t)mt_sgml_next(bytes, (size_t)size, (size_t)at);
  return found + length >= size ? -1 : found; /* at the end: the next bytes tell */
}

/* ---- cutting a run of bytes ------------------------------------------------------------------ */

typedef struct cutter {
  mt_corpus_format format;
  size_t piece_bytes;
  mt_piece piece; /* name, path, folder; the rest as it goes */
  int64_t member;
  mt_piece_sink sink;
  void *context;
  int rank, size;
  int64_t *turn; /* counts pieces that go round the ranks; NULL: all are this rank's */
  int file;      /* read from here, or else */
  mt_stream *stream; /* from here */
  mt_buffer window;  /* bytes [offset, offset + window.size) of the file */
  int64_t offset;
  bool ended;
  int64_t done,
      from; /* bytes of this rank's work before this file; its first byte here */
} cutter;

static void show_progress(const cutter *c)
{
  int64_t here =
      c->stream != NULL ? mt_stream_consumed(c->stream) : c->offset - c->from;
  mt_progress_update(c->done + here);
}

static mt_status fill(cutter *c, size_t size)
{
  mt_status status = MT_OK;
  if (mt_stop_requested()) return MT_STOPPED;
  MT_TRY(mt_buffer_reserve(&c->window, size));
  while (size > 0 && !c->ended) {
    char *to = c->window.bytes + c->window.size;
    size_t got = 0;
    if (c->stream != NULL) {
      mt_log_replicated(true); /* all ranks read it and find the same */
      status = mt_stream_read(c->stream, to, size, &got);
      mt_log_replicated(false);
      MT_TRY(status);
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

/* A piece and more from `start` on, so that its end is seen; little of it is left over then,
 * to be moved, and all of it is in the cache. */
static mt_status fill_up(cutter *c, int64_t start)
{
  int64_t want = start + (int64_t)(c->piece_bytes + c->piece_bytes / 16);
  return fill(c, want > c->window.size ? (size_t)(want - c->window.size) : 0);
}

/* The place in the window of the first record at or after file offset `at`, reading as far
 * as needed; the window's end if there is none. */
static mt_status find_start(cutter *c, int64_t at, int64_t *out)
{
  mt_status status = MT_OK;
  int64_t from = at - c->offset, found = -1;
  for (;;) {
    found = c->format == MT_FORMAT_JSONL
                ? next_line(c->window.bytes, c->window.size, c->offset, from)
                : next_document(c->window.bytes, c->window.size, from);
    if (found >= 0 || c->ended) break;
    int64_t seen = c->window.size, back = c->format == MT_FORMAT_JSONL ? 0 : 8;
    MT_TRY(fill(c, c->piece_bytes > (size_t)seen ? c->piece_bytes : (size_t)seen));
    if (seen - back > from) from = seen - back;
  }
  *out = found >= 0 ? found : c->window.size;
done:
  return status;
}

/* Gives [first, end) of the window, if it is this rank's, and forgets it. */
static mt_status give(cutter *c, int64_t first, int64_t end)
{
  mt_status status = MT_OK;
  if (c->piece.line > 0) c->piece.line += mt_newlines(c->window.bytes, (size_t)first);
  c->piece.bytes = c->window.bytes + first;
  c->piece.size = (size_t)(end - first);
  c->piece.offset = c->offset + first;
  bool mine = c->turn == NULL || (*c->turn)++ % c->size == c->rank;
  if (mine && end > first) MT_TRY(c->sink(c->context, c->member, &c->piece));
  if (c->piece.line > 0) c->piece.line += mt_newlines(c->piece.bytes, c->piece.size);
  memmove(c->window.bytes, c->window.bytes + end, (size_t)(c->window.size - end));
  c->window.size -= end;
  c->offset += end;
  show_progress(c);
done:
  return status;
}

/* The records that begin in [from, to) of the file, in pieces. */
static mt_status cut(cutter *c, int64_t from, int64_t to)
{
  mt_status status = MT_OK;
  int64_t start, end, piece_bytes = (int64_t)c->piece_bytes;
  c->offset = from > 0 && c->format == MT_FORMAT_JSONL ? from - 1 : from;
  c->piece.line = c->piece.path == NULL ? 1 : 0;
  MT_TRY(fill(c, c->piece_bytes));
  MT_TRY(find_start(c, from, &start));
  MT_TRY(fill_up(c, start)); /* a line may begin where the window ends */
  while (c->offset + start < to && start < c->window.size) {
    int64_t want = c->offset + start + piece_bytes;
    MT_TRY(find_start(c, want < to ? want : to, &end));
    MT_TRY(give(c, start, end));
    MT_TRY(fill_up(c, 0));
    start = 0;
  }
done:
  return status;
}

/* All of it as one piece. */
static mt_status take_whole(cutter *c)
{
  mt_status status = MT_OK;
  c->offset = 0;
  c->piece.line = 1;
  if (c->turn != NULL && *c->turn % c->size != c->rank) {
    (*c->turn)++; /* the stream skips what was not read */
    return MT_OK;
  }
  while (!c->ended) {
    int64_t room = (int64_t)c->piece_bytes;
    MT_TRY(fill(c, (size_t)(c->window.size > room ? c->window.size : room)));
  }
  c->piece.bytes = c->window.bytes;
  c->piece.size = (size_t)c->window.size;
  c->piece.offset = 0;
  if (c->turn != NULL) (*c->turn)++;
  show_progress(c);
  MT_TRY(c->sink(c->context, c->member, &c->piece));
done:
  return status;
}

/* ---- files ---------------------------------------------------------------------------------- */

typedef struct intake {
  const mt_source *source;
  int rank, size;
  size_t piece_bytes;
  mt_piece_sink sink;
  void *context;
  mt_members *members;
  mt_buffer window;          /* lent to the cutters */
  int64_t turn, first, last; /* bytes of plain files: this rank's are [first, last) */
  int64_t before, done;      /* bytes of plain files so far; of this rank's work */
} intake;

static bool is_cut(mt_corpus_format format)
{
  return format == MT_FORMAT_JSONL || format == MT_FORMAT_REUTERS_SGML;
}

static cutter cutter_for(intake *in, const mt_source_file *file, const char *name,
                         char folder[static 256])
{
  cutter c = {.format = in->source->format, .piece_bytes = in->piece_bytes, .file = -1};
  mt_folder_of(file->streamed ? name : file->path, folder, 256);
  c.piece = (mt_piece){.name = name, .folder = folder};
  c.sink = in->sink;
  c.context = in->context;
  c.rank = in->rank;
  c.size = in->size;
  c.member = in->members->n - 1;
  c.done = in->done;
  c.window = in->window;
  c.window.size = 0;
  return c;
}

/* This rank's bytes of a plain file: [from, to), to INT64_MAX for its end. */
static bool my_range(const intake *in, const mt_source_file *file, int64_t *from,
                     int64_t *to)
{
  int64_t begin = in->before, end = begin + file->size;
  bool last = in->rank == in->size - 1;
  *from = in->first > begin ? in->first - begin : 0;
  *to = in->last < end ? in->last - begin : INT64_MAX;
  if (!is_cut(in->source->format))
    return begin >= in->first && (begin < in->last || last);
  return *from<file->size && * to> * from;
}

static mt_status take_plain(intake *in, const mt_source_file *file)
{
  int64_t from, to;
  char folder[256];
  mt_status status = add_member(in->members, file - in->source->files, file->name);
  if (status != MT_OK) return status;
  cutter c = cutter_for(in, file, file->name, folder);
  c.piece.path = file->path;
  if (!my_range(in, file, &from, &to)) return MT_OK;
  c.from = from;
  c.file = open(file->path, O_RDONLY | O_CLOEXEC);
  MT_REQUIRE(c.file >= 0, MT_ERR_INPUT, "cannot read %s: %s", file->path,
             strerror(errno));
  if (is_cut(c.format))
    status = cut(&c, from, to);
  else
    status = take_whole(&c);
done:
  if (c.file >= 0) close(c.file);
  in->done += c.offset + c.window.size - from;
  in->window = c.window;
  return status;
}

static mt_status take_member(intake *in, const mt_source_file *file, const char *name,
                             mt_stream *stream)
{
  mt_status status = MT_OK;
  char folder[256];
  MT_TRY(add_member(in->members, file - in->source->files, name));
  cutter c = cutter_for(in, file, in->members->list[in->members->n - 1].name, folder);
  c.stream = stream;
  c.turn = &in->turn;
  status = is_cut(c.format) ? cut(&c, 0, INT64_MAX) : take_whole(&c);
  in->window = c.window;
done:
  return status;
}

static mt_status take_stream(intake *in, const mt_source_file *file)
{
  mt_status status = MT_OK;
  mt_stream *stream = NULL;
  const char *name;
  mt_log_replicated(true);
  status = mt_stream_open(file->path, &stream);
  mt_log_replicated(false);
  MT_TRY(status);
  for (;;) {
    mt_log_replicated(true);
    status = mt_stream_next(stream, &name);
    mt_log_replicated(false);
    MT_TRY(status);
    if (name == NULL) break;
    if (name[0] == '\0')
      MT_TRY(take_member(in, file, file->name, stream));
    else if (mt_format_takes(in->source->format, name))
      MT_TRY(take_member(in, file, name, stream));
  }
done:
  mt_stream_close(stream);
  return status;
}

mt_status mt_intake(const mt_source *source, int rank, int size, size_t piece_bytes,
                    mt_piece_sink sink, void *context, mt_members *members_out)
{
  mt_status status = MT_OK;
  mt_members members = {0};
  intake in = {
      .source = source, .rank = rank, .size = size, .piece_bytes = piece_bytes};
  int64_t total = 0, streamed = 0;
  in.sink = sink;
  in.context = context;
  in.members = &members;
  for (int64_t f = 0; f < source->n; f++)
    *(source->files[f].streamed ? &streamed : &total) += source->files[f].size;
  in.first = mt_part_first(total, size, rank);
  in.last = mt_part_first(total, size, rank + 1);
  mt_progress_begin(rank, "corpus", in.last - in.first + streamed);
  for (int64_t f = 0; f < source->n; f++) {
    const mt_source_file *file = &source->files[f];
    MT_TRY(file->streamed ? take_stream(&in, file) : take_plain(&in, file));
    *(file->streamed ? &in.done : &in.before) += file->size;
  }
  *members_out = members;
  memset(&members, 0, sizeof members);
done:
  mt_progress_end();
  mt_members_destroy(&members);
  mt_buffer_destroy(&in.window);
  return status;
}
