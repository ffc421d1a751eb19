/* Where rows of CSV begin. What a byte does depends on all that stand before it (is it inside
 * quotes?), but only through a handful of states, so that ranks that begin in the middle of a
 * file can say what their part does to each, and then learn in which their part begins. */
#ifndef MT_CORPUS_CSV_ROWS_H
#define MT_CORPUS_CSV_ROWS_H
#include "base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MT_CSV_STATES = 16 }; /* at most */
enum { MT_CSV_ROW = 0 };     /* a row, or a blank line, begins here */

/* The states of libcsv's parser (not strict), found by asking it: whatever it takes for a
 * row is one here, malformed quotes included. */
typedef struct mt_csv_rows {
  unsigned char separator;
  int n;                            /* states */
  uint8_t next[MT_CSV_STATES][256]; /* the state after a byte */
  bool calm[MT_CSV_STATES];         /* it changes at quotes, separators and control
                                           characters alone */
} mt_csv_rows;

/* Errors: MT_ERR_LIBRARY, MT_ERR_MEMORY. */
mt_status mt_csv_rows_make(unsigned char separator, mt_csv_rows *out);

/* The state after the bytes, from one before them. */
int mt_csv_rows_pass(const mt_csv_rows *rows, int state, const char *bytes,
                     size_t size);

/* How many of the bytes come before the next row; size if none begins in them or right after.
 * state  before the bytes; then before the row, or after the bytes */
size_t mt_csv_rows_next(const mt_csv_rows *rows, int *state, const char *bytes,
                        size_t size);

/* Likewise of every state at once: map[s] is where state s has got to. */
void mt_csv_rows_map(const mt_csv_rows *rows, uint8_t map[static MT_CSV_STATES],
                     const char *bytes, size_t size);

/* What separates the fields of a file that begins with these bytes: a comma, or a tab or a
 * semicolon if its first line has none. */
unsigned char mt_csv_separator(const char *bytes, size_t size);

/* A file's head: its byte order mark, and all to the end of its first row, which names the
 * columns. Its size; `size` if that row does not end in these bytes, the file's first. */
size_t mt_csv_head(const mt_csv_rows *rows, const char *bytes, size_t size);

/* 3 if they begin with a byte order mark, else 0. */
size_t mt_csv_mark(const char *bytes, size_t size);

#endif
