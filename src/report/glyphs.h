/* Which letters the fonts of this machine have: pngcairo blots out the page where it has
 * none for a letter. */
#ifndef MT_REPORT_GLYPHS_H
#define MT_REPORT_GLYPHS_H
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct mt_glyphs {
  uint8_t
      *have; /* a bit each character up to U+10FFFF; owned; NULL: nothing is known */
} mt_glyphs;

/* Asks fontconfig's fc-list. Without it, only Latin, Greek and Cyrillic count as there. */
mt_status mt_glyphs_load(mt_glyphs *glyphs_out);

/* The same from the text of `fc-list : charset`: lines of ":charset=20-7e a0-ff 17f". */
mt_status mt_glyphs_parse(const char *list, mt_glyphs *glyphs_out);
void mt_glyphs_destroy(mt_glyphs *glyphs); /* empties it */

bool mt_glyphs_have(const mt_glyphs *glyphs, int32_t code);

/* A copy with U+25A1 (a white square, or '?' if there is none either) for each letter that
 * no font has. text: valid UTF-8. */
mt_status mt_glyphs_replace(const mt_glyphs *glyphs, const char *text, char **text_out,
                            bool *changed_out);

#endif
