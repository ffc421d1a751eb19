/* The table of parameters, as the rooms of the deck use it: the reader, the schema, --set,
 * the help, the manual, the run record and the fingerprints all walk it. */
#ifndef MT_DECK_TABLE_H
#define MT_DECK_TABLE_H
#include "base/hash.h"
#include "base/status.h"
#include "deck/parameters.h"
#include <jansson.h>
#include <locale.h>
#include <stddef.h>

typedef enum mt_kind {
  MT_KIND_INT,       /* int64_t */
  MT_KIND_REAL,      /* double */
  MT_KIND_BOOL,      /* bool: true | false */
  MT_KIND_CHOICE,    /* an enum: its number is the word's place in words */
  MT_KIND_TEXT,      /* char *, UTF-8, not empty, no control characters */
  MT_KIND_FREQUENCY, /* mt_frequency */
  MT_KIND_SEEDS,     /* int64_t *seeds, n_seeds of mt_lda_options */
  MT_KIND_FORMATS,   /* bool svg, png of mt_map_options */
} mt_kind;

typedef struct mt_parameter {
  const char *section, *name;
  mt_kind kind;
  size_t offset;    /* in mt_parameters */
  const char *text; /* the default, as a deck would say it */
  double low, high; /* of numbers, both allowed */
  const char *const
      *words;       /* choice, formats: all; numbers: one word for `special`, or NULL */
  double special;   /* what the word stands for */
  const char *help; /* sentences: effect, what 0 or the word means */
} mt_parameter;

/* Sorted by section, in the order of the stages; section NULL after the last. */
extern const mt_parameter mt_parameter_table[];

typedef struct mt_section {
  const char *name, *help;
} mt_section;

/* name NULL after the last. */
extern const mt_section mt_section_table[];

enum {
  MT_TEXT_LONGEST = 4096,  /* bytes of a text parameter */
  MT_SEEDS_MOST = 1000000, /* seeds in a list */
  MT_SAID_LONGEST = 160,   /* bytes of `allowed` and `why` */
};

/* NULL if there is none. */
const mt_parameter *mt_parameter_find(const char *section, const char *name);

/**
 * Reads a value as a deck or --set gives it, strictly: no blanks around numbers, no nan,
 * no inf, no hexadecimal, a decimal point in every locale.
 * why      (MT_SAID_LONGEST) on error: what is wrong, without the value itself
 * Errors   MT_ERR_INPUT, MT_ERR_MEMORY: nothing is logged, parameters is as before
 */
mt_status mt_parameter_read(const mt_parameter *parameter, const char *text,
                            mt_parameters *parameters, char *why);

/* The value as a deck would say it; read again it gives the same bits. The caller frees;
 * NULL when out of memory. */
char *mt_parameter_text(const mt_parameter *parameter, const mt_parameters *parameters);

/* What may be given, e.g. "integer 1 to 1024"; out: (MT_SAID_LONGEST). */
void mt_parameter_allowed(const mt_parameter *parameter, char *out);

/* The value for run records: a number, true or false, else text as mt_parameter_text. */
json_t *mt_parameter_json(const mt_parameter *parameter,
                          const mt_parameters *parameters);

void mt_parameter_hash(const mt_parameter *parameter, const mt_parameters *parameters,
                       mt_hash *hash);

/* The C locale, for uselocale; made once, by the main thread. */
locale_t mt_plain_locale(void);

/* A value shortened and cleaned for a message, in out (64 bytes). */
const char *mt_said(const char *text, char *out);
#define MT_SAID 64

#endif
