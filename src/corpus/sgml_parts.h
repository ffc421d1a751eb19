/* What is wanted of a <REUTERS> document, and who finds it: a scan of plain markup at the
 * speed of memory, or libxml2 (sgml.c). Not collective. */
#ifndef MT_CORPUS_SGML_PARTS_H
#define MT_CORPUS_SGML_PARTS_H
#include "corpus/buffer.h"
#include "corpus/readers.h"
#include <stdbool.h>

enum { MT_SGML_DATE, MT_SGML_TITLE, MT_SGML_BODY, MT_SGML_PARTS };

/* What is between the tags goes to a part, or nowhere. */
typedef struct mt_sgml_part {
  mt_buffer text;
  bool seen;
} mt_sgml_part;

typedef struct mt_sgml_parts {
  mt_sgml_part part[MT_SGML_PARTS];
  mt_buffer id;     /* NEWID */
  int open;         /* the part that characters belong to now; -1: none */
  mt_status status; /* of what follows, which returns none */
} mt_sgml_parts;

/* ---- events, in the order of the document ---- */
void mt_sgml_begin(mt_sgml_parts *parts); /* empties all */
void mt_sgml_start(mt_sgml_parts *parts, mt_span element);
void mt_sgml_attribute(mt_sgml_parts *parts, mt_span name, mt_span value);
void mt_sgml_text(mt_sgml_parts *parts, mt_span text);
void mt_sgml_end(mt_sgml_parts *parts, mt_span element);
void mt_sgml_destroy(mt_sgml_parts *parts);

/* The length of a reference that XML can read at at[0] = '&', up to its ';', and what it
 * stands for; 0 if there is none, or if it means a control character. */
size_t mt_sgml_reference(const char *at, size_t left, int32_t *code_out);

/* Does '<' begin a tag, a comment or the like? */
bool mt_sgml_is_markup(const char *at, size_t left);

/**
 * Finds the parts of one document, "<REUTERS ...>" to "</REUTERS>", valid UTF-8.
 * Returns false if it is not well formed or holds what only an XML parser should judge:
 *         comments, sections, names beyond ASCII, '\r' in a part. The parts are then of
 *         no use; else they are what the parser would give.
 */
bool mt_sgml_plain(mt_span document, mt_sgml_parts *parts);

#endif
