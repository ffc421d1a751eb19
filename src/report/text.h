/* Texts on the map: what can be drawn of a term, and how wide it is. */
#ifndef MT_REPORT_TEXT_H
#define MT_REPORT_TEXT_H
#include "base/status.h"

#include <stdint.h>

/**
 * A text that every program can draw: valid UTF-8 (else U+FFFD), control characters and
 * line ends as blanks, cut to `columns` columns with an ellipsis at the end if it is longer.
 * text_out  owned by the caller
 */
mt_status mt_text_drawable(const char *text, int64_t columns, char **text_out);

/* Pixels that a text takes in a sans-serif font of `size` pixels: the widths of DejaVu Sans,
 * one of the widest, so that others fit, too. */
double mt_text_width(const char *text, double size);

/* Decodes a character; an invalid byte gives U+FFFD. The bytes it takes, 0 at the end. */
int mt_text_next(const char *text, int32_t *code_out);

#endif
