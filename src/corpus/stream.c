#include "corpus/stream.h"
#include "base/memory.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PEEK = 1024, BLOCK = 1 << 18 };

/* Two readers, one in the other: the outer takes the compression off, the inner the archive
 * apart. So the compressed stream can be read to its end after the last member, and a file
 * that is cut in its last bytes is found out. */
struct mt_stream {
  char *path;
  struct archive *outer, *inner; /* inner NULL: no archive */
  char peek[PEEK];               /* the first bytes */
  size_t peeked, used;
  char *block;
  int given; /* bytes that are no archive were given */
  int empty; /* there is nothing to read */
};

static mt_status broken(const mt_stream *stream, struct archive *archive)
{
  const char *why = archive != NULL ? archive_error_string(archive) : NULL;
  return mt_fail(MT_ERR_INPUT, "%s: %s; the file is damaged or cut: fetch it again",
                 stream->path, why != NULL ? why : "its end is missing");
}

/* What was peeked at, then the rest. <0: an error. */
static la_ssize_t read_outer(mt_stream *stream, void *out, size_t size)
{
  size_t kept = stream->peeked - stream->used;
  if (kept > 0) {
    size_t take = kept < size ? kept : size;
    memcpy(out, stream->peek + stream->used, take);
    stream->used += take;
    return (la_ssize_t)take;
  }
  return stream->empty ? 0 : archive_read_data(stream->outer, out, size);
}

static la_ssize_t on_read(struct archive *inner, void *context, const void **bytes)
{
  mt_stream *stream = context;
  la_ssize_t got = read_outer(stream, stream->block, BLOCK);
  *bytes = stream->block;
  if (got < 0) {
    const char *why = archive_error_string(stream->outer);
    archive_set_error(inner, EILSEQ, "%s", why != NULL ? why : "its end is missing");
  }
  return got;
}

static int is_archive(const mt_stream *stream)
{
  const char *p = stream->peek;
  size_t n = stream->peeked;
  if (n >= 512 && memcmp(p + 257, "ustar", 5) == 0) return 1;
  if (n >= 6 && (memcmp(p, "070701", 6) == 0 || memcmp(p, "070707", 6) == 0)) return 1;
  return n >= 4 && (memcmp(p, "PK\3\4", 4) == 0 || memcmp(p, "PK\5\6", 4) == 0);
}

static mt_status open_outer(mt_stream *stream)
{
  mt_status status = MT_OK;
  struct archive_entry *entry;
  stream->outer = archive_read_new();
  MT_REQUIRE(stream->outer != NULL, MT_ERR_MEMORY, "no memory to read %s",
             stream->path);
  archive_read_support_filter_gzip(stream->outer);
  archive_read_support_filter_bzip2(stream->outer);
  archive_read_support_filter_xz(stream->outer);
  archive_read_support_filter_lzma(stream->outer);
  archive_read_support_filter_zstd(stream->outer);
  archive_read_support_filter_lz4(stream->outer);
  archive_read_support_filter_compress(stream->outer);
  archive_read_support_format_raw(stream->outer);
  archive_read_support_format_empty(stream->outer);
  if (archive_read_open_filename(stream->outer, stream->path, BLOCK) != ARCHIVE_OK)
    return broken(stream, stream->outer);
  int code = archive_read_next_header(stream->outer, &entry);
  stream->empty = code == ARCHIVE_EOF;
  if (stream->empty) return MT_OK;
  if (code != ARCHIVE_OK) return broken(stream, stream->outer);
  while (stream->peeked < PEEK) {
    la_ssize_t got = archive_read_data(stream->outer, stream->peek + stream->peeked,
                                       PEEK - stream->peeked);
    if (got < 0) return broken(stream, stream->outer);
    if (got == 0) break;
    stream->peeked += (size_t)got;
  }
done:
  return status;
}

static mt_status open_inner(mt_stream *stream)
{
  mt_status status = MT_OK;
  stream->inner = archive_read_new();
  MT_REQUIRE(stream->inner != NULL, MT_ERR_MEMORY, "no memory to read %s",
             stream->path);
  archive_read_support_format_tar(stream->inner);
  archive_read_support_format_zip_streamable(stream->inner);
  archive_read_support_format_cpio(stream->inner);
  if (archive_read_open(stream->inner, stream, NULL, on_read, NULL) != ARCHIVE_OK)
    return broken(stream, stream->inner);
done:
  return status;
}

mt_status mt_stream_open(const char *path, mt_stream **stream_out)
{
  mt_status status = MT_OK;
  mt_stream *stream = NULL;
  MT_NEW(stream, 1);
  MT_TRY(mt_string_copy(path, &stream->path));
  MT_NEW(stream->block, BLOCK);
  MT_TRY(open_outer(stream));
  if (is_archive(stream)) MT_TRY(open_inner(stream));
  *stream_out = stream;
  stream = NULL;
done:
  mt_stream_close(stream);
  return status;
}

/* To the end of the compressed bytes, where a checksum stands. */
static mt_status drain(mt_stream *stream)
{
  la_ssize_t got;
  do got = read_outer(stream, stream->block, BLOCK);
  while (got > 0);
  return got < 0 ? broken(stream, stream->outer) : MT_OK;
}

mt_status mt_stream_next(mt_stream *stream, const char **name_out)
{
  struct archive_entry *entry;
  *name_out = NULL;
  if (stream->inner == NULL) {
    if (!stream->given) *name_out = "";
    stream->given = 1;
    return MT_OK;
  }
  for (;;) {
    int code = archive_read_next_header(stream->inner, &entry);
    if (code == ARCHIVE_EOF) return drain(stream);
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN)
      return broken(stream, stream->inner);
    if (archive_entry_filetype(entry) != S_IFREG) continue;
    const char *name = archive_entry_pathname_utf8(entry);
    if (name == NULL)
      name = archive_entry_pathname(entry); /* not UTF-8: as it stands */
    if (name == NULL) return broken(stream, stream->inner);
    while (strncmp(name, "./", 2) == 0) name += 2;
    *name_out = name;
    return MT_OK;
  }
}

mt_status mt_stream_read(mt_stream *stream, void *out, size_t size, size_t *got_out)
{
  la_ssize_t got = stream->inner != NULL ? archive_read_data(stream->inner, out, size)
                                         : read_outer(stream, out, size);
  if (got < 0)
    return broken(stream, stream->inner != NULL ? stream->inner : stream->outer);
  *got_out = (size_t)got;
  return MT_OK;
}

int64_t mt_stream_consumed(const mt_stream *stream)
{
  return archive_filter_bytes(stream->outer, -1);
}

void mt_stream_close(mt_stream *stream)
{
  if (stream == NULL) return;
  if (stream->inner != NULL) archive_read_free(stream->inner);
  if (stream->outer != NULL) archive_read_free(stream->outer);
  free(stream->path);
  free(stream->block);
  free(stream);
}
