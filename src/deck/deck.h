/* From the deck (XML) and --set to parameters, and from parameters to everything that
 * shows them. One table (parameters.c) holds each one's name, type, default, range, help. */
#ifndef MT_DECK_DECK_H
#define MT_DECK_DECK_H
#include "base/hash.h"
#include "base/status.h"
#include "deck/parameters.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* All defaults; the strings are owned by parameters. */
mt_status mt_parameters_default(mt_parameters *parameters_out);
void mt_parameters_destroy(mt_parameters *parameters); /* empties it */

/* A deck file's bytes; the caller frees them. MT_ERR_INPUT if it cannot be read, or is
 * larger than a deck may be (256 KiB). Not collective. */
mt_status mt_deck_read(const char *path, char **xml_out, size_t *size_out);

/**
 * Parses and validates a deck against the built-in RELAX NG schema, on top of the defaults.
 * name     for messages, and to resolve relative corpus.path and stop_words
 * Errors   MT_ERR_INPUT: "deck.xml:7: <lda n_components="x">: ... allowed: integer 1 to ...";
 *          parameters_out is then untouched
 * DTDs, entities, XInclude and the network are not used: a DOCTYPE is an error.
 */
mt_status mt_deck_parse(const char *name, const char *xml, size_t size,
                        mt_parameters *parameters_out);

/* "lda.n_components=20"; MT_ERR_INPUT names what is allowed, and nothing has changed.
 * Paths are taken as they are: relative to the working directory. */
mt_status mt_parameters_set(mt_parameters *parameters, const char *assignment);

/* The value of "output.path", as a deck would say it; owned by the caller. MT_ERR_INPUT
 * names what there is. */
mt_status mt_parameters_get(const mt_parameters *parameters, const char *name,
                            char **text_out);

/* What one parameter alone cannot tell (min_dist <= spread, a without b, ...). */
mt_status mt_parameters_check(const mt_parameters *parameters);

/**
 * Adds a section's parameters to a hash, names and values.
 * leave_out  names that do not matter to the result, NULL-terminated; NULL: none
 */
mt_status mt_parameters_hash(const mt_parameters *parameters, const char *section,
                             const char *const *leave_out, mt_hash *hash);

/* {"corpus": {"path": "...", ...}, ...}; new reference, NULL when out of memory. */
json_t *mt_parameters_json(const mt_parameters *parameters);

/* A line a parameter: name, value, "(default)" where it is. section NULL: all. */
void mt_parameters_print(const mt_parameters *parameters, const char *section,
                         FILE *out);

/* Help for a section (NULL: all): name, default, allowed, what it does. False if there is
 * no such section. */
bool mt_parameters_help(const char *section, FILE *out);

/* The RELAX NG schema (XML syntax) made from the table, and the manual's parameter part
 * (man macros). */
void mt_deck_schema(FILE *out);
void mt_parameters_manual(FILE *out);

/* A deck that names every parameter with its default, help as comments. */
void mt_deck_every_parameter(FILE *out);

#endif
