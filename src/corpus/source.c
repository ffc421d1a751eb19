#include "corpus/source.h"
#include "base/log.h"
#include "base/memory.h"
#include "corpus/buffer.h"
#include "corpus/date.h"
#include "corpus/stream.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>

static const struct {
  const char *name, *endings;
} formats[] = {[MT_FORMAT_AUTO] = {"auto", ""},
               [MT_FORMAT_REUTERS_SGML] = {"reuters-sgml", ".sgm .sgml"},
               [MT_FORMAT_JSONL] = {"jsonl", ".jsonl .ndjson"},
               [MT_FORMAT_CSV] = {"csv", ".csv .tsv"},
               [MT_FORMAT_TEXT] = {"text", "any file in a folder named as a date"}};

const char *mt_format_name(mt_corpus_format format)
{
  return formats[format].name;
}

const char *mt_format_endings(mt_corpus_format format)
{
  return formats[format].endings;
}

void mt_source_destroy(mt_source *source)
{
  for (int64_t f = 0; f < source->n; f++) {
    free(source->files[f].path);
    free(source->files[f].name);
  }
  free(source->files);
  memset(source, 0, sizeof *source);
}

/* ---- names ------------------------------------------------------------------------------- */

/* Does name[0, size) end with one of the words of `endings`? In any case; the length of the
 * ending, 0 if none. */
static size_t ending_of(const char *name, size_t size, const char *endings)
{
  while (*endings != '\0') {
    size_t length = strcspn(endings, " ");
    if (size > length && strncasecmp(name + size - length, endings, length) == 0)
      return length;
    endings += length;
    endings += strspn(endings, " ");
  }
  return 0;
}

static size_t compression_of(const char *name)
{
  return ending_of(name, strlen(name), ".gz .bz2 .xz .lzma .zst .lz4 .Z");
}

static bool is_archive_name(const char *name)
{
  size_t size = strlen(name) - compression_of(name);
  return ending_of(name, size, ".tar .cpio") > 0 ||
         ending_of(name, strlen(name), ".tgz .tbz2 .txz .zip") > 0;
}

static const char *base_of(const char *name)
{
  const char *slash = strrchr(name, '/');
  return slash != NULL ? slash + 1 : name;
}

void mt_folder_of(const char *name, char *out, size_t size)
{
  const char *end = strrchr(name, '/'), *at = end;
  out[0] = '\0';
  if (end == NULL) return;
  while (at > name && at[-1] != '/') at--;
  snprintf(out, size, "%.*s", (int)(end - at), at);
}

static bool in_dated_folder(const char *name)
{
  char folder[256];
  mt_date date;
  mt_folder_of(name, folder, sizeof folder);
  return mt_date_read(folder, strlen(folder), &date);
}

bool mt_format_takes(mt_corpus_format format, const char *name)
{
  if (base_of(name)[0] == '.') return false;
  if (format == MT_FORMAT_TEXT) return true;
  return ending_of(name, strlen(name) - compression_of(name), formats[format].endings) >
         0;
}

/* The format that a name alone tells; auto if none. */
static mt_corpus_format format_of_name(const char *name)
{
  for (mt_corpus_format f = MT_FORMAT_REUTERS_SGML; f <= MT_FORMAT_CSV; f++)
    if (mt_format_takes(f, name)) return f;
  return in_dated_folder(name) ? MT_FORMAT_TEXT : MT_FORMAT_AUTO;
}

/* ---- what the first bytes tell -------------------------------------------------------------- */

static bool holds(const char *bytes, size_t size, const char *what)
{
  return memmem(bytes, size, what, strlen(what)) != NULL;
}

static mt_corpus_format format_of_bytes(const char *bytes, size_t size)
{
  size_t at = 0;
  while (at < size && strchr(" \t\r\n\xEF\xBB\xBF", bytes[at]) != NULL) at++;
  if (at < size && bytes[at] == '{') return MT_FORMAT_JSONL;
  return holds(bytes, size, "<REUTERS") ? MT_FORMAT_REUTERS_SGML : MT_FORMAT_AUTO;
}

/* Of a compressed file: by its members' names, else by its first bytes. */
static mt_status format_of_stream(const char *path, mt_corpus_format *out)
{
  mt_status status = MT_OK;
  mt_stream *stream = NULL;
  const char *member;
  char bytes[4096];
  size_t got = 0;
  MT_TRY(mt_stream_open(path, &stream));
  for (;;) {
    MT_TRY(mt_stream_next(stream, &member));
    if (member == NULL) break;
    if (member[0] != '\0' && base_of(member)[0] != '.') *out = format_of_name(member);
    if (member[0] == '\0') {
      MT_TRY(mt_stream_read(stream, bytes, sizeof bytes, &got));
      *out = format_of_bytes(bytes, got);
    }
    if (*out != MT_FORMAT_AUTO) break;
  }
done:
  mt_stream_close(stream);
  return status;
}

static mt_status read_first(const char *path, char *out, size_t size, size_t *got_out)
{
  mt_status status = MT_OK;
  FILE *file = fopen(path, "rb");
  MT_REQUIRE(file != NULL, MT_ERR_INPUT, "cannot read %s: %s", path, strerror(errno));
  *got_out = fread(out, 1, size, file);
  MT_REQUIRE(!ferror(file), MT_ERR_INPUT, "cannot read %s", path);
done:
  if (file != NULL) fclose(file);
  return status;
}

/* Is it compressed or an archive? By its first bytes. */
static bool is_streamed(const char *bytes, size_t size)
{
  static const struct {
    const char *bytes;
    size_t size;
  } marks[] = {{"\x1F\x8B", 2},
               {"BZh", 3},
               {"\xFD"
                "7zXZ",
                5},
               {"\x28\xB5\x2F\xFD", 4},
               {"\x1F\x9D", 2},
               {"\x04\x22\x4D\x18", 4},
               {"PK\3\4", 4},
               {"PK\5\6", 4},
               {"070701", 6},
               {"070707", 6}};
  for (size_t m = 0; m < sizeof marks / sizeof marks[0]; m++)
    if (size >= marks[m].size && memcmp(bytes, marks[m].bytes, marks[m].size) == 0)
      return true;
  return size >= 512 && memcmp(bytes + 257, "ustar", 5) == 0;
}

/* ---- listing ------------------------------------------------------------------------------- */

static mt_status add_file(mt_source *source, int64_t *capacity, const char *path,
                          const char *name, const struct stat *info)
{
  mt_status status = MT_OK;
  MT_GROW(source->files, *capacity, source->n + 1);
  mt_source_file *file = &source->files[source->n];
  *file = (mt_source_file){.size = (int64_t)info->st_size};
  file->modified = (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
  source->n++;
  MT_TRY(mt_string_copy(path, &file->path));
  MT_TRY(mt_string_copy(name, &file->name));
done:
  return status;
}

static mt_status walk(const char *path, mt_source *source)
{
  mt_status status = MT_OK;
  char *const roots[] = {(char *)path, NULL};
  FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
  int64_t capacity = 0;
  size_t skip = strlen(path);
  MT_REQUIRE(tree != NULL, MT_ERR_INPUT, "cannot read %s: %s", path, strerror(errno));
  for (FTSENT *entry; errno = 0, (entry = fts_read(tree)) != NULL;) {
    bool hidden = entry->fts_level > 0 && entry->fts_name[0] == '.';
    if (hidden && entry->fts_info == FTS_D) fts_set(tree, entry, FTS_SKIP);
    if (hidden) continue;
    MT_REQUIRE(entry->fts_info != FTS_DNR && entry->fts_info != FTS_ERR &&
                   entry->fts_info != FTS_NS,
               MT_ERR_INPUT, "cannot read %s: %s", entry->fts_path,
               strerror(entry->fts_errno));
    MT_REQUIRE(entry->fts_info != FTS_SLNONE, MT_ERR_INPUT,
               "%s is a link to nothing: mend or remove it", entry->fts_path);
    MT_REQUIRE(entry->fts_info != FTS_DC, MT_ERR_INPUT,
               "%s leads back to a folder above it: remove the link", entry->fts_path);
    if (entry->fts_info != FTS_F) continue;
    const char *name = entry->fts_path + skip;
    while (*name == '/') name++;
    MT_TRY(add_file(source, &capacity, entry->fts_path, name, entry->fts_statp));
  }
  MT_REQUIRE(errno == 0, MT_ERR_INPUT, "cannot read %s: %s", path, strerror(errno));
done:
  if (tree != NULL) fts_close(tree);
  return status;
}

static int by_name(const void *a, const void *b)
{
  return strcmp(((const mt_source_file *)a)->name, ((const mt_source_file *)b)->name);
}

/* The first format, in the order of the table, that a file of the folder has. */
static mt_status find_format(const mt_source *source, mt_corpus_format *out)
{
  mt_status status = MT_OK;
  mt_corpus_format found = MT_FORMAT_AUTO;
  for (int64_t f = 0; f < source->n; f++) {
    mt_corpus_format one = format_of_name(source->files[f].name);
    if (one != MT_FORMAT_AUTO && (found == MT_FORMAT_AUTO || one < found)) found = one;
  }
  for (int64_t f = 0; f < source->n && found == MT_FORMAT_AUTO; f++)
    if (is_archive_name(source->files[f].name))
      MT_TRY(format_of_stream(source->files[f].path, &found));
  *out = found;
done:
  return status;
}

/* Leaves only the files of the format, and archives, which may hold such. */
static void keep_format(mt_source *source)
{
  int64_t kept = 0;
  for (int64_t f = 0; f < source->n; f++) {
    mt_source_file *file = &source->files[f];
    bool archive = is_archive_name(file->name);
    if (archive || mt_format_takes(source->format, file->name)) {
      file->streamed = archive || compression_of(file->name) > 0;
      source->files[kept++] = *file;
    } else {
      free(file->path);
      free(file->name);
    }
  }
  source->ignored = source->n - kept;
  source->n = kept;
}

static mt_status list_folder(const mt_corpus_options *options, mt_source *source)
{
  mt_status status = MT_OK;
  const char *path = options->path;
  MT_TRY(walk(path, source));
  MT_REQUIRE(
      source->n > 0, MT_ERR_INPUT,
      "%s is empty: corpus.path names the folder, the file or the archive of the "
      "collection",
      path);
  qsort(source->files, (size_t)source->n, sizeof *source->files, by_name);
  if (source->format == MT_FORMAT_AUTO) MT_TRY(find_format(source, &source->format));
  MT_REQUIRE(
      source->format != MT_FORMAT_AUTO, MT_ERR_INPUT,
      "%s: none of its %lld files (the first is %s) has the ending of a known format "
      "(%s; %s; %s) or lies in a folder named as a date; set corpus.format",
      path, (long long)source->n, source->files[0].name,
      mt_format_endings(MT_FORMAT_REUTERS_SGML), mt_format_endings(MT_FORMAT_JSONL),
      mt_format_endings(MT_FORMAT_CSV));
  keep_format(source);
  MT_REQUIRE(source->n > 0, MT_ERR_INPUT, "%s: no file of the format %s (%s) in it",
             path, mt_format_name(source->format), mt_format_endings(source->format));
done:
  return status;
}

static mt_status list_file(const mt_corpus_options *options, const struct stat *info,
                           mt_source *source)
{
  mt_status status = MT_OK;
  const char *path = options->path;
  int64_t capacity = 0;
  char first[4096];
  size_t got = 0;
  source->single = true;
  MT_TRY(add_file(source, &capacity, path, base_of(path), info));
  MT_TRY(read_first(path, first, sizeof first, &got));
  source->files[0].streamed = is_streamed(first, got);
  mt_corpus_format *format = &source->format;
  if (*format == MT_FORMAT_AUTO) *format = format_of_name(base_of(path));
  if (*format == MT_FORMAT_AUTO && source->files[0].streamed)
    MT_TRY(format_of_stream(path, format));
  else if (*format == MT_FORMAT_AUTO)
    *format = format_of_bytes(first, got);
  MT_REQUIRE(*format != MT_FORMAT_AUTO, MT_ERR_INPUT,
             "%s: neither its name nor its contents tell its format; set corpus.format",
             path);
done:
  return status;
}

mt_status mt_source_list(const mt_corpus_options *options, mt_source *out)
{
  mt_status status = MT_OK;
  mt_source source = {.format = options->format};
  struct stat info;
  MT_REQUIRE(options->path != NULL && options->path[0] != '\0', MT_ERR_INPUT,
             "corpus.path is empty: give the folder, the file or the archive of the "
             "collection");
  MT_REQUIRE(stat(options->path, &info) == 0, MT_ERR_INPUT,
             "corpus.path=\"%s\": %s; give the folder, the file or the archive of the "
             "collection (relative to the deck)",
             options->path, strerror(errno));
  MT_REQUIRE(S_ISDIR(info.st_mode) || S_ISREG(info.st_mode), MT_ERR_INPUT,
             "corpus.path=\"%s\": is neither a file nor a folder", options->path);
  if (S_ISDIR(info.st_mode))
    MT_TRY(list_folder(options, &source));
  else
    MT_TRY(list_file(options, &info, &source));
  *out = source;
  memset(&source, 0, sizeof source);
done:
  mt_source_destroy(&source);
  return status;
}

/* ---- sharing ------------------------------------------------------------------------------- */

typedef struct file_head {
  int64_t size, modified, streamed, path_size, name_size; /* with their '\0' */
} file_head;

static mt_status pack(const mt_source *source, mt_buffer *out)
{
  mt_status status = MT_OK;
  int64_t head[] = {source->format, source->single, source->n, source->ignored};
  MT_TRY(mt_buffer_add(out, head, sizeof head));
  for (int64_t f = 0; f < source->n; f++) {
    const mt_source_file *file = &source->files[f];
    file_head one = {file->size, file->modified, file->streamed,
                     (int64_t)strlen(file->path) + 1, (int64_t)strlen(file->name) + 1};
    MT_TRY(mt_buffer_add(out, &one, sizeof one));
    MT_TRY(mt_buffer_add(out, file->path, (size_t)one.path_size));
    MT_TRY(mt_buffer_add(out, file->name, (size_t)one.name_size));
  }
done:
  return status;
}

static mt_status unpack(const char *at, mt_source *out)
{
  mt_status status = MT_OK;
  int64_t head[4];
  memcpy(head, at, sizeof head);
  at += sizeof head;
  out->format = (mt_corpus_format)head[0];
  out->single = head[1] != 0;
  out->ignored = head[3];
  MT_NEW(out->files, head[2]);
  for (int64_t f = 0; f < head[2]; f++) {
    file_head one;
    memcpy(&one, at, sizeof one);
    at += sizeof one;
    mt_source_file *file = &out->files[f];
    *file = (mt_source_file){.size = one.size, .modified = one.modified};
    file->streamed = one.streamed != 0;
    out->n = f + 1;
    MT_TRY(mt_string_copy(at, &file->path));
    MT_TRY(mt_string_copy(at + one.path_size, &file->name));
    at += one.path_size + one.name_size;
  }
done:
  return status;
}

mt_status mt_source_share(const mt_comm *comm, const mt_corpus_options *options,
                          mt_source *out)
{
  mt_status status = MT_OK;
  mt_source source = {0};
  mt_buffer packed = {0};
  if (comm->rank == 0) {
    status = mt_source_list(options, &source);
    if (status == MT_OK) status = pack(&source, &packed);
  }
  MT_TRY(mt_agree(comm, status));
  size_t size = (size_t)packed.size;
  MT_TRY(mt_bcast_bytes(comm, 0, &size, &packed.bytes));
  MT_TRY(mt_agree(comm, comm->rank == 0 ? MT_OK : unpack(packed.bytes, &source)));
  *out = source;
  memset(&source, 0, sizeof source);
done:
  mt_source_destroy(&source);
  mt_buffer_destroy(&packed);
  return status;
}

void mt_source_hash(const mt_source *source, mt_hash *hash)
{
  mt_hash_i64(hash, source->format);
  mt_hash_i64(hash, source->n);
  for (int64_t f = 0; f < source->n; f++) {
    mt_hash_text(hash, source->files[f].name);
    mt_hash_i64(hash, source->files[f].size);
    mt_hash_i64(hash, source->files[f].modified);
  }
}
