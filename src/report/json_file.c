#include "report/json_file.h"
#include "base/hash.h"
#include "base/log.h"
#include "store/folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DIGITS = 32 };
static const char zeros[] = "00000000000000000000000000000000", end[] = "\"\n}";

/* The checksum's place at the end of a text; NULL if there is no room for one. */
static char *place_of(char *text, size_t size)
{
  size_t behind = DIGITS + strlen(end);
  return size > behind ? text + size - behind : NULL;
}

static mt_fingerprint hash_of(const char *text, size_t size)
{
  mt_hash *hash = mt_hash_begin();
  mt_hash_bytes(hash, text, size);
  return mt_hash_end(hash);
}

mt_status mt_json_save(json_t *object, const char *path)
{
  mt_status status = MT_OK;
  char *text = NULL;
  json_object_del(object, "checksum"); /* it comes last */
  if (json_object_set_new(object, "checksum", json_string(zeros)) == 0)
    text = json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
  MT_REQUIRE(text != NULL, MT_ERR_MEMORY,
             "%s cannot be made: no memory, or a text that is no UTF-8", path);
  size_t size = strlen(text);
  mt_fingerprint print = hash_of(text, size);
  MT_REQUIRE(print.hex[0] != '\0', MT_ERR_MEMORY, "%s: no memory", path);
  memcpy(place_of(text, size), print.hex, DIGITS);
  MT_TRY(mt_file_replace(path, text, size));
done:
  free(text);
  return status;
}

/* All of an open file; NULL if it cannot be read. */
static char *read_text(int descriptor, size_t *size_out)
{
  char *text = NULL, piece[4096];
  ssize_t got = -1;
  FILE *out = open_memstream(&text, size_out);
  while (out != NULL && (got = read(descriptor, piece, sizeof piece)) > 0)
    fwrite(piece, 1, (size_t)got, out);
  bool whole = got == 0 && ferror(out) == 0;
  if (out != NULL) whole = fclose(out) == 0 && whole;
  if (whole) return text;
  free(text);
  return NULL;
}

/* Has the text its checksum? It is changed. */
static bool is_whole(char *text, size_t size)
{
  char given[DIGITS], *place = place_of(text, size);
  if (place == NULL) return false;
  memcpy(given, place, DIGITS);
  memcpy(place, zeros, DIGITS);
  return memcmp(given, hash_of(text, size).hex, DIGITS) == 0;
}

json_t *mt_json_load(const char *path)
{
  size_t size = 0;
  json_t *object = NULL;
  int descriptor = mt_file_open(path);
  if (descriptor < 0 && errno == ENOENT) return NULL;
  char *text = descriptor >= 0 ? read_text(descriptor, &size) : NULL;
  if (descriptor >= 0) close(descriptor);
  if (text == NULL) {
    mt_warn("%s is damaged: it is no file that can be read; it is not used", path);
    return NULL;
  }
  if (is_whole(text, size)) object = json_loadb(text, size, 0, NULL);
  if (object == NULL)
    mt_warn("%s is damaged or of an older version: its checksum is not that of its "
            "bytes; it is not used",
            path);
  free(text);
  return object;
}
