/* In which line of a deck something stands; libxml2 keeps the line where a tag ends. */
#ifndef MT_DECK_LOCATE_H
#define MT_DECK_LOCATE_H
#include <stddef.h>

/**
 * The line (from 1) of an attribute of the element-th start tag (from 0, in document order)
 * of well-formed XML; of the tag itself if attribute is NULL. 0 if it is not found, e.g.
 * since the encoding does not contain ASCII.
 */
int mt_locate(const char *xml, size_t size, int element, const char *attribute);

#endif
