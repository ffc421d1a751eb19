#include "corpus/readers.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *mt_skip_name(mt_skip skip)
{
  static const char *const names[MT_SKIP_KINDS] = {
      "none",       "no date",         "unreadable date", "no body",
      "empty body", "outside periods", "damaged",         "invalid encoding"};
  return names[skip];
}

int64_t mt_newlines(const char *bytes, size_t size)
{
  enum { RUN = 240 }; /* what a byte can count */
  int64_t n = 0;
  for (; size >= RUN; bytes += RUN, size -= RUN) {
    unsigned char some = 0;
    for (int i = 0; i < RUN; i++) some += bytes[i] == '\n';
    n += some;
  }
  for (size_t i = 0; i < size; i++) n += bytes[i] == '\n';
  return n;
}

/* Newlines in the first `size` bytes of a file; -1 if it cannot be read. */
static int64_t newlines_of_file(const char *path, int64_t size)
{
  FILE *file = path != NULL ? fopen(path, "rb") : NULL;
  if (file == NULL) return -1;
  char block[1 << 16];
  int64_t n = 0;
  while (size > 0) {
    size_t want = size < (int64_t)sizeof block ? (size_t)size : sizeof block;
    size_t got = fread(block, 1, want, file);
    n += mt_newlines(block, got);
    size = got > 0 ? size - (int64_t)got : 0;
  }
  fclose(file);
  return n;
}

mt_status mt_piece_id(const mt_piece *piece, int64_t offset, mt_buffer *buffer,
                      mt_span *id_out)
{
  mt_status status = MT_OK;
  char place[32];
  int length = snprintf(place, sizeof place, "@%lld", (long long)offset);
  buffer->size = 0;
  MT_TRY(mt_buffer_add(buffer, piece->name, strlen(piece->name)));
  MT_TRY(mt_buffer_add(buffer, place, (size_t)length));
  *id_out = (mt_span){buffer->bytes, (size_t)buffer->size};
done:
  return status;
}

int64_t mt_piece_line(const mt_piece *piece, size_t at)
{
  int64_t first = piece->line;
  if (first == 0) first = 1 + newlines_of_file(piece->path, piece->offset);
  return first == 0 ? 0 : first + mt_newlines(piece->bytes, at);
}

mt_status mt_piece_damaged(const mt_piece *piece, const mt_corpus_options *options,
                           mt_sink sink, void *context, mt_skip skip, size_t at,
                           size_t line_at, const char *format, ...)
{
  if (!options->strict) {
    mt_record record = {.offset = piece->offset + (int64_t)at, .skip = skip};
    return sink(context, &record);
  }
  char what[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  return mt_fail(MT_ERR_INPUT,
                 "%s:%lld: %s; mend the file, or skip and count such documents with "
                 "corpus.strict=\"false\"",
                 piece->name, (long long)mt_piece_line(piece, line_at), what);
}

static int is_blank(char c)
{
  return c == ' ' || (c >= '\t' && c <= '\r') || c == '\0';
}

mt_span mt_span_trim(mt_span span)
{
  while (span.size > 0 && is_blank(span.at[0])) span.at++, span.size--;
  while (span.size > 0 && is_blank(span.at[span.size - 1])) span.size--;
  return span;
}
