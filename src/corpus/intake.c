#include "corpus/intake.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/stop.h"
#include "comm/pool.h"
#include "corpus/cut.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Bytes of the plain files, or of the others, one after the other. */
typedef struct share {
  int64_t first, last; /* this rank's are [first, last) */
  bool is_last;
  int64_t begin; /* of the file in hand */
} share;

/* Where pieces come from: one of a file's members, numbered as they stand in it. */
typedef struct member {
  int64_t file, index;
  char *name; /* if this rank reads it from a stream; owned */
} member;

typedef struct intake {
  const mt_comm *comm;
  const mt_source *source;
  mt_intake_sink sink;
  void *context;
  mt_pool *pool; /* NULL: there are no streams, or no other ranks */
  mt_cutter cutter;
  share plain, streamed;
  int state; /* of CSV, where this rank's first plain file begins */
  int64_t n_members, members_capacity; /* those that this rank met */
  member *members;
  int64_t done;        /* bytes of this rank's work before the file in hand */
  int64_t kept, given; /* bytes of streams: by this rank, to others */
} intake;

/* ---- shares ---------------------------------------------------------------------------- */

static share share_of(const intake *in, bool streamed)
{
  int64_t total = 0;
  int size = in->comm->size, rank = in->comm->rank;
  for (int64_t f = 0; f < in->source->n; f++)
    if (in->source->files[f].streamed == streamed) total += in->source->files[f].size;
  return (share){.first = mt_part_first(total, size, rank),
                 .last = mt_part_first(total, size, rank + 1),
                 .is_last = rank == size - 1};
}

/* Is the file's beginning in it? */
static bool has_beginning(const share *s)
{
  return s->begin >= s->first && (s->begin < s->last || s->is_last);
}

/* Its part of a file, [from, to), to INT64_MAX for the file's end; false: none. */
static bool part_of(const share *s, const mt_source_file *file, int64_t *from,
                    int64_t *to)
{
  int64_t end = s->begin + file->size;
  *from = s->first > s->begin ? s->first - s->begin : 0;
  *to = s->last < end ? s->last - s->begin : INT64_MAX;
  return *from<file->size && * to> * from;
}

/* ---- members --------------------------------------------------------------------------- */

static mt_status add_member(intake *in, int64_t file, int64_t index, const char *name)
{
  mt_status status = MT_OK;
  MT_GROW(in->members, in->members_capacity, in->n_members + 1);
  member *one = &in->members[in->n_members];
  *one = (member){.file = file, .index = index};
  MT_TRY(mt_string_copy(name, &one->name));
  in->n_members++;
done:
  return status;
}

/* Members of one file by name. */
static int by_name(const void *a, const void *b)
{
  const member *one = *(member *const *)a, *other = *(member *const *)b;
  int order = strcmp(one->name, other->name);
  return order != 0 ? order : (one->index > other->index) - (one->index < other->index);
}

/* Adds to orders: the file, how many members it has, and each one's place among them.
 * members  those of one file, in the order of their indices */
static mt_status add_order(int64_t n, member *members, mt_buffer *orders)
{
  mt_status status = MT_OK;
  member **sorted = NULL;
  int64_t head[] = {members[0].file, n}, *place = NULL;
  MT_NEW(sorted, n);
  MT_NEW(place, n);
  for (int64_t m = 0; m < n; m++) sorted[m] = &members[m];
  qsort(sorted, (size_t)n, sizeof *sorted, by_name);
  for (int64_t i = 0; i < n; i++) place[sorted[i]->index] = i;
  MT_TRY(mt_buffer_add(orders, head, sizeof head));
  MT_TRY(mt_buffer_add(orders, place, (size_t)n * sizeof *place));
done:
  free(sorted);
  free(place);
  return status;
}

/* Of the streams that this rank has read. */
static mt_status own_orders(const intake *in, mt_buffer *orders)
{
  mt_status status = MT_OK;
  int64_t first = 0, m = 0;
  for (; m < in->n_members; first = m) {
    for (m++; m < in->n_members && in->members[m].file == in->members[first].file;) m++;
    if (in->members[first].name != NULL)
      MT_TRY(add_order(m - first, in->members + first, orders));
  }
done:
  return status;
}

/* The place of each of this rank's members, from all ranks' orders. */
static mt_status place_members(const intake *in, int64_t n, const int64_t *orders,
                               int64_t **place_out)
{
  mt_status status = MT_OK;
  const int64_t **order_of = NULL;
  int64_t *first = NULL, *place = NULL, before = 0;
  MT_NEW(order_of, in->source->n);
  MT_NEW(first, in->source->n);
  MT_NEW(place, in->n_members);
  for (const int64_t *at = orders; at < orders + n; at += 2 + at[1])
    order_of[at[0]] = at;
  for (int64_t f = 0; f < in->source->n; f++) {
    first[f] = before;
    before += order_of[f] != NULL ? order_of[f][1] : 1;
  }
  for (int64_t m = 0; m < in->n_members; m++) {
    const member *one = &in->members[m];
    const int64_t *order = order_of[one->file];
    place[m] = first[one->file] + (order != NULL ? order[2 + one->index] : 0);
  }
  *place_out = place;
  place = NULL;
done:
  free(order_of);
  free(first);
  free(place);
  return status;
}

static mt_status share_places(const intake *in, int64_t **place_out)
{
  mt_status status = MT_OK;
  mt_buffer own = {0};
  int64_t *all = NULL;
  size_t size = 0;
  MT_TRY(mt_agree(in->comm, own_orders(in, &own)));
  MT_TRY(
      mt_allgather_bytes(in->comm, (size_t)own.size, own.bytes, &size, (void **)&all));
  MT_TRY(mt_agree(in->comm,
                  place_members(in, (int64_t)(size / sizeof *all), all, place_out)));
done:
  mt_buffer_destroy(&own);
  free(all);
  return status;
}

/* ---- pieces that go to other ranks ----------------------------------------------------- */

/* What is sent before the name, the head and the bytes of a piece. */
typedef struct parcel {
  int64_t file, index, offset, line, name_size, head_size; /* name_size: with its \0 */
} parcel;

static mt_status offer(intake *in, const member *from, const mt_piece *piece,
                       bool *given_out)
{
  size_t name_size = strlen(piece->name) + 1;
  parcel head = {from->file,  from->index,        piece->offset,
                 piece->line, (int64_t)name_size, (int64_t)piece->head.size};
  const struct iovec parts[] = {{&head, sizeof head},
                                {(void *)piece->name, name_size},
                                {(void *)piece->head.at, piece->head.size},
                                {(void *)piece->bytes, piece->size}};
  return mt_pool_give(in->pool, sizeof parts / sizeof parts[0], parts, given_out);
}

static mt_status take_parcel(intake *in, const char *at, int64_t size)
{
  mt_status status = MT_OK;
  parcel head;
  char folder[256];
  const char *end = at + size;
  if (mt_stop_requested()) return MT_STOPPED;
  memcpy(&head, at, sizeof head);
  at += sizeof head;
  mt_piece piece = {.name = at, .offset = head.offset, .line = head.line};
  at += head.name_size;
  piece.head = (mt_span){at, (size_t)head.head_size};
  piece.bytes = at + head.head_size;
  piece.size = (size_t)(end - piece.bytes);
  mt_folder_of(piece.name, folder, sizeof folder);
  piece.folder = folder;
  const member *last = in->n_members > 0 ? &in->members[in->n_members - 1] : NULL;
  if (last == NULL || last->file != head.file || last->index != head.index)
    MT_TRY(add_member(in, head.file, head.index, NULL));
  MT_TRY(in->sink(in->context, in->n_members - 1, &piece));
done:
  return status;
}

/* What other ranks have too much of. Who has failed takes it too, so that nobody waits. */
static mt_status help(intake *in, mt_status status)
{
  int64_t size;
  const char *block;
  while ((block = mt_pool_take(in->pool, &size)) != NULL)
    if (status == MT_OK) status = take_parcel(in, block, size);
  return status;
}

/* ---- files ----------------------------------------------------------------------------- */

/* One piece of a stream: to a rank that waits for it, unless this one has less than its share:
 * who reads would else keep little, since decompressing takes longer than counting, and the
 * others would hold its documents. */
static mt_status share_out(intake *in, const mt_piece *piece, bool *given_out)
{
  mt_status status = MT_OK;
  if (in->pool != NULL && in->kept * (in->comm->size - 1) >= in->given)
    MT_TRY(offer(in, &in->members[in->n_members - 1], piece, given_out));
  *(*given_out ? &in->given : &in->kept) += (int64_t)piece->size;
done:
  return status;
}

static mt_status on_piece(void *context, const mt_piece *piece)
{
  mt_status status = MT_OK;
  intake *in = context;
  const mt_stream *stream = in->cutter.stream;
  bool given = false;
  if (stream != NULL) MT_TRY(share_out(in, piece, &given));
  if (!given) MT_TRY(in->sink(in->context, in->n_members - 1, piece));
  mt_progress_update(in->done + (stream != NULL
                                     ? mt_stream_consumed(stream)
                                     : piece->offset + (int64_t)piece->size));
done:
  return status;
}

/* Opens the file and cuts its part, or says what the part does to each state of CSV. */
static mt_status take_part(intake *in, int64_t f, int64_t from, int64_t to,
                           uint8_t *map_out)
{
  mt_status status = MT_OK;
  const mt_source_file *file = &in->source->files[f];
  char folder[256];
  mt_folder_of(file->path, folder, sizeof folder);
  mt_piece piece = {.name = file->name, .path = file->path, .folder = folder};
  int opened = open(file->path, O_RDONLY | O_CLOEXEC);
  MT_REQUIRE(opened >= 0, MT_ERR_INPUT, "cannot read %s: %s", file->path,
             strerror(errno));
  mt_cutter_begin(&in->cutter, &piece, opened, NULL);
  MT_TRY(map_out != NULL ? mt_cut_map(&in->cutter, from, to, map_out)
                         : mt_cut(&in->cutter, from, to, in->state));
done:
  if (opened >= 0) close(opened);
  return status;
}

static mt_status take_plain(intake *in, int64_t f)
{
  mt_status status = MT_OK;
  const mt_source_file *file = &in->source->files[f];
  int64_t from, to;
  bool mine = part_of(&in->plain, file, &from, &to);
  if (!mt_format_is_cut(in->source->format)) {
    mine = has_beginning(&in->plain);
    from = 0;
  }
  if (!mine) return MT_OK;
  MT_TRY(add_member(in, f, 0, NULL));
  in->done -= from;
  MT_TRY(take_part(in, f, from, to, NULL));
  in->done += to < file->size ? to : file->size;
done:
  return status;
}

static mt_status take_member(intake *in, int64_t f, int64_t index, const char *name,
                             mt_stream *stream)
{
  mt_status status = MT_OK;
  char folder[256];
  MT_TRY(add_member(in, f, index, name));
  mt_piece piece = {.name = in->members[in->n_members - 1].name, .folder = folder};
  piece.pool = in->pool;
  mt_folder_of(piece.name, folder, sizeof folder);
  mt_cutter_begin(&in->cutter, &piece, -1, stream);
  MT_TRY(mt_cut(&in->cutter, 0, INT64_MAX, 0));
done:
  return status;
}

static mt_status take_stream(intake *in, int64_t f)
{
  mt_status status = MT_OK;
  const mt_source_file *file = &in->source->files[f];
  mt_stream *stream = NULL;
  const char *name;
  int64_t index = 0;
  if (!has_beginning(&in->streamed)) return MT_OK;
  MT_TRY(mt_stream_open(file->path, &stream));
  for (;;) {
    MT_TRY(mt_stream_next(stream, &name));
    if (name == NULL) break;
    if (name[0] == '\0')
      name = file->name;
    else if (!mt_format_takes(in->source->format, name))
      continue;
    MT_TRY(take_member(in, f, index++, name, stream));
  }
  in->done += file->size;
done:
  mt_stream_close(stream);
  return status;
}

typedef mt_status (*file_taker)(intake *in, int64_t f);

/* Every plain file, or every other. */
static mt_status take_files(intake *in, bool streamed, file_taker take)
{
  mt_status status = MT_OK;
  share *s = streamed ? &in->streamed : &in->plain;
  s->begin = 0;
  for (int64_t f = 0; f < in->source->n; f++) {
    if (in->source->files[f].streamed != streamed) continue;
    MT_TRY(take(in, f));
    s->begin += in->source->files[f].size;
  }
done:
  return status;
}

static mt_status read_own(intake *in)
{
  mt_status status = MT_OK;
  MT_TRY(take_files(in, false, take_plain));
  MT_TRY(take_files(in, true, take_stream));
done:
  return status;
}

/* ---- CSV over ranks -------------------------------------------------------------------- */

/* What this rank's part does to each state where it ends inside a file; else it does not
 * matter. */
static mt_status own_map(intake *in, uint8_t map[static MT_CSV_STATES])
{
  mt_status status = MT_OK;
  share *s = &in->plain;
  memset(map, MT_CSV_ROW, MT_CSV_STATES);
  s->begin = 0;
  for (int64_t f = 0; f < in->source->n; f++) {
    const mt_source_file *file = &in->source->files[f];
    if (file->streamed) continue;
    if (s->begin < s->last && s->last < s->begin + file->size)
      MT_TRY(take_part(in, f, s->first > s->begin ? s->first - s->begin : 0,
                       s->last - s->begin, map));
    s->begin += file->size;
  }
done:
  return status;
}

/* The state in which this rank's part begins: through the parts before it. */
static mt_status find_state(intake *in)
{
  mt_status status = MT_OK;
  uint8_t own[MT_CSV_STATES], *maps = NULL;
  int size = in->comm->size;
  MT_TRY(mt_agree(in->comm, own_map(in, own)));
  MT_TRY(mt_agree(in->comm,
                  mt_memory_new(size, sizeof own, "states of CSV", (void **)&maps)));
  MT_TRY(mt_allgather(in->comm, sizeof own, own, maps));
  in->state = MT_CSV_ROW;
  for (int r = 0; r < in->comm->rank; r++)
    in->state = maps[r * MT_CSV_STATES + in->state];
done:
  free(maps);
  return status;
}

/* ---- the whole ------------------------------------------------------------------------- */

static mt_status start(intake *in)
{
  mt_status status = MT_OK;
  int64_t total = in->plain.last - in->plain.first;
  bool streams = false, reads = false;
  for (int64_t f = 0; f < in->source->n; f++) {
    const mt_source_file *file = &in->source->files[f];
    if (!file->streamed) continue;
    streams = true;
    if (has_beginning(&in->streamed)) {
      reads = true;
      total += file->size;
    }
    in->streamed.begin += file->size;
  }
  if (in->source->format == MT_FORMAT_CSV && in->comm->size > 1) MT_TRY(find_state(in));
  if (streams && in->comm->size > 1) MT_TRY(mt_pool_create(in->comm, reads, &in->pool));
  mt_progress_begin(in->comm->rank, "corpus", total);
done:
  return status;
}

static void close_intake(intake *in)
{
  for (int64_t m = 0; m < in->n_members; m++) free(in->members[m].name);
  free(in->members);
  mt_cutter_destroy(&in->cutter);
}

mt_status mt_intake(const mt_comm *comm, const mt_source *source, size_t piece_bytes,
                    mt_intake_sink sink, void *context, int64_t **place_out)
{
  mt_status status = MT_OK;
  intake in = {.comm = comm, .source = source, .sink = sink, .context = context};
  in.cutter = (mt_cutter){.format = source->format, .piece_bytes = piece_bytes};
  in.cutter.sink = on_piece;
  in.cutter.context = &in;
  in.plain = share_of(&in, false);
  in.streamed = share_of(&in, true);
  MT_TRY(start(&in));
  status = read_own(&in);
  if (in.pool != NULL) status = help(&in, status);
  mt_pool_destroy(comm, &in.pool);
  mt_progress_end();
  MT_TRY(mt_agree(comm, status));
  MT_TRY(share_places(&in, place_out));
done:
  close_intake(&in);
  return status;
}
