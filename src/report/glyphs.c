#include "report/glyphs.h"
#include "base/memory.h"
#include "report/process.h"
#include "report/text.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { CODES = 0x110000, LAST_COMMON = 0x52F, SQUARE = 0x25A1, ELLIPSIS = 0x2026 };

static void mark(uint8_t *have, unsigned long first, unsigned long last)
{
  for (unsigned long code = first; code <= last && code < CODES; code++)
    have[code / 8] |= (uint8_t)(1u << (code % 8));
}

/* "20-7e a0 100-17f" up to the end of the line. */
static const char *mark_line(uint8_t *have, const char *at)
{
  while (*at != '\0' && *at != '\n') {
    char *end;
    unsigned long first = strtoul(at, &end, 16), last = first;
    if (end == at) return at + strcspn(at, "\n");
    at = end;
    if (*at == '-') {
      last = strtoul(at + 1, &end, 16);
      at = end;
    }
    mark(have, first, last);
    at += strspn(at, " ");
  }
  return at;
}

mt_status mt_glyphs_parse(const char *list, mt_glyphs *glyphs_out)
{
  static const char key[] = "charset=";
  mt_status status = MT_OK;
  uint8_t *have = NULL;
  MT_NEW(have, CODES / 8);
  for (const char *at = strstr(list, key); at != NULL; at = strstr(at, key))
    at = mark_line(have, at + strlen(key));
  glyphs_out->have = have;
done:
  return status;
}

mt_status mt_glyphs_load(mt_glyphs *glyphs_out)
{
  static const char *const arguments[] = {"fc-list", ":", "charset", NULL};
  mt_status status = MT_OK;
  mt_process_end end = {0};
  MT_TRY(mt_process_run(NULL, arguments, &end));
  if (end.found && end.code == 0) MT_TRY(mt_glyphs_parse(end.output, glyphs_out));
done:
  free(end.output);
  return status;
}

void mt_glyphs_destroy(mt_glyphs *glyphs)
{
  free(glyphs->have);
  glyphs->have = NULL;
}

bool mt_glyphs_have(const mt_glyphs *glyphs, int32_t code)
{
  if (code < 0x7F || code == ELLIPSIS) return true;
  if (glyphs->have == NULL) return code <= LAST_COMMON;
  return code < CODES && (glyphs->have[code / 8] >> (code % 8) & 1) != 0;
}

mt_status mt_glyphs_replace(const mt_glyphs *glyphs, const char *text, char **text_out,
                            bool *changed_out)
{
  mt_status status = MT_OK;
  char *copy = NULL;
  MT_NEW(copy, 3 * (int64_t)strlen(text) + 1);
  char *at = copy;
  int32_t code, square = mt_glyphs_have(glyphs, SQUARE) ? SQUARE : '?';
  bool changed = false;
  for (int bytes; (bytes = mt_text_next(text, &code)) > 0; text += bytes) {
    bool have = mt_glyphs_have(glyphs, code);
    changed = changed || !have;
    at += utf8proc_encode_char(have ? code : square, (utf8proc_uint8_t *)at);
  }
  *text_out = copy;
  *changed_out = changed;
done:
  return status;
}
