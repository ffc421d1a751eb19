/* Pictures: a script and its data that lie in a folder, drawn by gnuplot, and what scripts are
 * made of. */
#ifndef MT_REPORT_DRAW_H
#define MT_REPORT_DRAW_H
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A text in quotes, which gnuplot then takes literally. */
void mt_gnuplot_quote(const char *text, FILE *out);

/**
 * Replaces FOLDER/NAME by what was printed to memory, and frees that.
 * printed      as open_memstream gave it, with bytes and size; closed
 * Errors       MT_ERR_MEMORY, MT_ERR_IO
 */
mt_status mt_printed_save(const char *folder, const char *name, FILE *printed,
                          char **bytes, size_t *size);

/**
 * Runs FOLDER/NAME.gp, which draws part.'NAME.svg' and part.'NAME.png', those that are asked for;
 * each is drawn under a temporary name, then renamed. A picture that cannot be drawn (no
 * gnuplot on the PATH, no such terminal) is warned about, and is no error.
 * drawn_out  are all pictures there that were asked for?
 * Errors     MT_STOPPED if a signal came meanwhile
 */
mt_status mt_pictures_draw(const char *folder, const char *name, bool svg, bool png,
                           bool *drawn_out);

#endif
