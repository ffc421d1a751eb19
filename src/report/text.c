#include "report/text.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { REPLACEMENT = 0xFFFD, ELLIPSIS = 0x2026 };

/* Advance widths of U+0020 to U+007E in DejaVu Sans, thousandths of the font size. */
static const short ascii_width[] = {
    318,  401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337,
    636,  636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531,
    1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787,
    603,  787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500,
    500,  613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612,
    635,  635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838};

int mt_text_next(const char *text, int32_t *code_out)
{
  if (text[0] == '\0') return 0;
  utf8proc_int32_t code;
  utf8proc_ssize_t bytes = utf8proc_iterate((const utf8proc_uint8_t *)text,
                                            (utf8proc_ssize_t)strnlen(text, 4), &code);
  *code_out = bytes > 0 ? code : REPLACEMENT;
  return bytes > 0 ? (int)bytes : 1;
}

/* What may stand in XML and on a line. */
static int32_t drawable(int32_t code)
{
  if (code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029)
    return ' ';
  if ((code & 0xFFFE) == 0xFFFE) return REPLACEMENT; /* no characters */
  return code;
}

static int64_t columns_of(int32_t code)
{
  int width = utf8proc_charwidth(code);
  return width > 0 ? width : 0;
}

static int64_t count_columns(const char *text)
{
  int64_t columns = 0;
  int32_t code;
  for (int bytes; (bytes = mt_text_next(text, &code)) > 0; text += bytes)
    columns += columns_of(drawable(code));
  return columns;
}

static char *append(char *at, int32_t code)
{
  return at + utf8proc_encode_char(code, (utf8proc_uint8_t *)at);
}

mt_status mt_text_drawable(const char *text, int64_t columns, char **text_out)
{
  mt_status status = MT_OK;
  char *drawn = NULL;
  bool whole = count_columns(text) <= columns;
  int64_t room = whole ? columns : columns - 1,
          bytes_most = 3 * (int64_t)strlen(text) + 4;
  if (!whole && bytes_most > 16 * columns + 64) bytes_most = 16 * columns + 64;
  MT_NEW(drawn, bytes_most + 1);
  char *at = drawn;
  int32_t code;
  for (int bytes; (bytes = mt_text_next(text, &code)) > 0; text += bytes) {
    code = drawable(code);
    room -= columns_of(code);
    if (room < 0 || at + 8 > drawn + bytes_most) break; /* many marks on one letter */
    at = append(at, code);
  }
  if (!whole) at = append(at, ELLIPSIS);
  *at = '\0';
  *text_out = drawn;
done:
  return status;
}

double mt_text_width(const char *text, double size)
{
  double width = 0.0;
  int32_t code;
  for (int bytes; (bytes = mt_text_next(text, &code)) > 0; text += bytes) {
    if (code >= 0x20 && code < 0x7F)
      width += ascii_width[code - 0x20];
    else if (columns_of(code) == 2)
      width += 1050.0;
    else if (code == ELLIPSIS || (code >= 0x400 && columns_of(code) > 0))
      width += code < 0x530 ? 720.0 : 1000.0;
    else if (columns_of(code) > 0)
      width += 660.0;
  }
  return width * size / 1000.0;
}
