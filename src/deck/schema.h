/* The schema, as the deck's reader needs it. */
#ifndef MT_DECK_SCHEMA_H
#define MT_DECK_SCHEMA_H
#include <stdbool.h>
#include <stdio.h>

typedef bool mt_is_given(const void *context, const char *section, const char *name);

/**
 * The RELAX NG schema for one deck: a parameter that the deck gives is required, which for
 * this deck is the same as optional. libxml2 follows an optional attribute that is there
 * both ways: a section with n of them takes 2^n states, seconds for 15.
 * is_given   NULL: the schema for all decks
 */
void mt_schema_write(FILE *out, mt_is_given *is_given, const void *context);

#endif
