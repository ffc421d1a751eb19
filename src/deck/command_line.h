/* The command line: which command, on what, with which options. Nothing here ends the
 * process or talks to MPI: every rank reads the same arguments, rank 0 alone complains. */
#ifndef MT_DECK_COMMAND_LINE_H
#define MT_DECK_COMMAND_LINE_H
#include "base/status.h"
#include "deck/parameters.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef enum mt_command_kind {
  MT_COMMAND_RUN,   /* deck, out, sets, backend, from, until, force, wait, verbosity */
  MT_COMMAND_CHECK, /* deck, out, sets, backend, get, verbosity */
  MT_COMMAND_SHOW,  /* folder */
  MT_COMMAND_HISTORY, /* folders, out, verbosity */
  MT_COMMAND_HELP,    /* section, help_form: mt_command_help */
  MT_COMMAND_VERSION,
} mt_command_kind;

/* What `metatopics help` writes. */
typedef enum mt_help_form {
  MT_HELP_TEXT,   /* for people */
  MT_HELP_MAN,    /* --man: the manual page's parameter part */
  MT_HELP_SCHEMA, /* --schema: the RELAX NG schema */
  MT_HELP_DECK,   /* --deck: a deck with every parameter and its help as comments */
} mt_help_form;

/* The stages by name, in order; NULL after the last. */
#define MT_N_STAGES 7
extern const char *const mt_stage_names[MT_N_STAGES + 1];

/* Texts are borrowed from argv. */
typedef struct mt_command {
  mt_command_kind kind;
  const char *deck;     /* run, check: the file */
  const char *folder;   /* show */
  const char **folders; /* history; owned */
  int n_folders;
  const char *section; /* help: NULL for all */
  mt_help_form help_form;
  const char
      *out; /* --out; NULL: output.path of the deck; of history metatopics-history */
  const char **sets; /* --set, in order, as mt_parameters_set takes them; owned */
  int n_sets;
  mt_backend_choice backend;
  int from, until; /* numbers in mt_stage_names, from <= until */
  bool force;      /* do the stages again, whatever is there */
  bool wait;       /* for a debugger */
  const char *get; /* check: the parameter to print alone; NULL: all that is checked */
  int verbosity;   /* -1: errors and warnings, 0: usual, 1: everything */
} mt_command;

/**
 * Reads the arguments (argv[0] is the program). The order of argv may change.
 * Errors   MT_ERR_INPUT, after a message that names the next step; nothing to destroy
 */
mt_status mt_command_parse(int argc, char **argv, mt_command *command_out);
void mt_command_destroy(mt_command *command); /* empties it */

/* What MT_COMMAND_HELP asks for. MT_ERR_INPUT: there is no such section. */
mt_status mt_command_help(const mt_command *command, FILE *out);

/**
 * The parameters in force: the deck, then each --set, then --out; checked.
 * xml, size  the deck's bytes, read by mt_deck_read (by rank 0, then broadcast)
 * Errors     MT_ERR_INPUT; parameters_out is then untouched
 */
mt_status mt_command_parameters(const mt_command *command, const char *xml, size_t size,
                                mt_parameters *parameters_out);

#endif
