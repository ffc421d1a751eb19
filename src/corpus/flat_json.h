/* JSON objects whose wanted members are texts, at the speed of memory. Whatever else JSON
 * knows, and whatever is wrong, is left to jansson. Not collective. */
#ifndef MT_CORPUS_FLAT_JSON_H
#define MT_CORPUS_FLAT_JSON_H
#include "corpus/buffer.h"
#include "corpus/readers.h"
#include <stdbool.h>

typedef struct mt_json_field {
  const char *name;
  bool number_too; /* an integer is taken as it is written */
  mt_span *value;  /* at NULL if it is absent or null */
} mt_json_field;

/**
 * Reads an object and finds n of its members; of several with one name, the last.
 * line    valid UTF-8
 * buffer  room for line.size bytes; values lie there or in the line
 * Returns true if the line is JSON and each field is a text, null or absent (or an integer
 *         of 18 digits at most, where that is taken). false: jansson must look at it. It
 *         then finds the same, or an error.
 */
bool mt_json_flat(mt_span line, int n, const mt_json_field *fields, mt_buffer *buffer);

#endif
