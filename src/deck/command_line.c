#include "deck/command_line.h"
#include "base/log.h"
#include "deck/deck.h"
#include "deck/nearest.h"

#include <argp.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *const mt_stage_names[MT_N_STAGES + 1] = {
    "corpus", "lda", "matrix", "knn", "umap", "hdbscan", "map", NULL};

static const char *const command_names[] = {"run",     "check", "show",
                                            "history", "help",  NULL};
static const char *const backend_names[] = {"auto", "cpu", "cuda", NULL};

enum option_key {
  KEY_OUT = 'o',
  KEY_SET = 's',
  KEY_QUIET = 'q',
  KEY_VERBOSE = 'v',
  KEY_FORCE = 'f',
  KEY_HELP = 'h',
  KEY_VERSION = 'V',
  KEY_BACKEND = 0x100,
  KEY_FROM,
  KEY_UNTIL,
  KEY_WAIT,
  KEY_GET,
  KEY_MAN,
  KEY_SCHEMA,
  KEY_DECK,
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "run and check:", 1},
    {"out", KEY_OUT, "DIR", 0,
     "Write to DIR, not to the deck's output.path (history: not to metatopics-history)",
     0},
    {"set", KEY_SET, "SECTION.NAME=VALUE", 0,
     "Set a parameter, after the deck; may be given again. "
     "Paths are relative to the working directory",
     0},
    {"backend", KEY_BACKEND, "auto|cpu|cuda", 0,
     "What does knn, umap and hdbscan (auto: GPUs if there are any)", 0},
    {"quiet", KEY_QUIET, NULL, 0, "Say only errors and warnings", 0},
    {"verbose", KEY_VERBOSE, NULL, 0, "Say more", 0},
    {NULL, 0, NULL, 0, "run:", 2},
    {"from", KEY_FROM, "STAGE", 0, "Start here; what comes before must be there", 0},
    {"until", KEY_UNTIL, "STAGE", 0, "Stop after this stage", 0},
    {"force", KEY_FORCE, NULL, 0, "Do these stages again, whatever is there", 0},
    {"wait-for-debugger", KEY_WAIT, NULL, 0,
     "Say each rank's node and process, and wait until one is being debugged", 0},
    {NULL, 0, NULL, 0, "check:", 3},
    {"get", KEY_GET, "SECTION.NAME", 0, "Print this parameter's value, and no more", 0},
    {NULL, 0, NULL, 0, "help:", 4},
    {"schema", KEY_SCHEMA, NULL, 0, "Write the deck's RELAX NG schema", 0},
    {"deck", KEY_DECK, NULL, 0, "Write a deck with every parameter at its default", 0},
    {"man", KEY_MAN, NULL, 0, "Write the manual page's part about parameters", 0},
    {NULL, 0, NULL, 0, "Anywhere:", 5},
    {"help", KEY_HELP, NULL, 0, "Show this", 0},
    {"version", KEY_VERSION, NULL, 0,
     "Show the versions of the program and its libraries", 0},
    {0}};

static const char usage[] =
    "run DECK\ncheck DECK\nshow DIR\nhistory DIR...\nhelp [SECTION]";

static const char about[] =
    "Finds the subjects that persist in a dated text collection.\v"
    "  run DECK        do the stages that are not done yet\n"
    "  check DECK      show every parameter in force and what a run would do\n"
    "  show DIR        what a finished or half-finished run holds\n"
    "  history DIR...  what past runs took, in DIRs or below: a table and a plot\n"
    "  help SECTION    parameters: corpus, lda, knn, umap, hdbscan, map or output\n"
    "\n"
    "Stages, in order: corpus lda matrix knn umap hdbscan map.\n"
    "mpirun -n 4 metatopics run DECK and srun metatopics run DECK spread the work.\n"
    "\n"
    "Exit status: 0 done, 1 the run failed, 2 the command line, the deck or the input "
    "is "
    "wrong, 3 stopped by a signal after a checkpoint (run it again to go on).";

/* Which commands take an option; bits by mt_command_kind. */
enum {
  RUN = 1 << MT_COMMAND_RUN,
  CHECK = 1 << MT_COMMAND_CHECK,
  HISTORY = 1 << MT_COMMAND_HISTORY,
  HELP = 1 << MT_COMMAND_HELP
};
static int takers(int key)
{
  switch (key) {
  case KEY_OUT:
    return RUN | CHECK | HISTORY;
  case KEY_SET:
  case KEY_BACKEND:
    return RUN | CHECK;
  case KEY_FROM:
  case KEY_UNTIL:
  case KEY_FORCE:
  case KEY_WAIT:
    return RUN;
  case KEY_GET:
    return CHECK;
  case KEY_SCHEMA:
  case KEY_DECK:
  case KEY_MAN:
    return HELP;
  default:
    return ~0;
  }
}

typedef struct reading {
  mt_command command;
  const char *word;     /* the command */
  int keys[64], n_keys; /* options seen, to refuse those of other commands */
  bool help, version;
  int stuck_at; /* the argument that getopt did not understand */
  mt_status status;
} reading;

static const char *option_name(int key)
{
  for (const struct argp_option *option = options; option->name || option->doc;
       option++)
    if (option->name != NULL && option->key == key) return option->name;
  return "?";
}

static int index_of(const char *word, const char *const *words)
{
  for (int i = 0; words[i] != NULL; i++)
    if (strcmp(word, words[i]) == 0) return i;
  return -1;
}

static mt_status read_choice(int key, const char *value, const char *const *words,
                             const char *allowed, int *out)
{
  int at = index_of(value, words);
  if (at < 0)
    return mt_fail(MT_ERR_INPUT, "--%s %s: there is no such thing; allowed: %s",
                   option_name(key), value, allowed);
  *out = at;
  return MT_OK;
}

static mt_status add_text(const char *text, const char ***texts, int *n)
{
  const char **more = realloc(*texts, sizeof *more * (size_t)(*n + 1));
  if (more == NULL) return mt_fail(MT_ERR_MEMORY, "no memory for the command line");
  *texts = more;
  more[(*n)++] = text;
  return MT_OK;
}

static mt_status read_option(reading *read, int key, const char *value)
{
  static const char stages[] = "corpus lda matrix knn umap hdbscan map";
  mt_command *command = &read->command;
  int backend = 0;
  mt_status status = MT_OK;
  switch (key) {
  case KEY_OUT:
    command->out = value;
    if (value[0] == '\0')
      status = mt_fail(MT_ERR_INPUT, "--out: the folder's name is empty");
    break;
  case KEY_SET:
    status = add_text(value, &command->sets, &command->n_sets);
    break;
  case KEY_BACKEND:
    status = read_choice(key, value, backend_names, "auto cpu cuda", &backend);
    command->backend = (mt_backend_choice)backend;
    break;
  case KEY_FROM:
    status = read_choice(key, value, mt_stage_names, stages, &command->from);
    break;
  case KEY_UNTIL:
    status = read_choice(key, value, mt_stage_names, stages, &command->until);
    break;
  case KEY_FORCE:
    command->force = true;
    break;
  case KEY_WAIT:
    command->wait = true;
    break;
  case KEY_GET:
    command->get = value;
    break;
  case KEY_QUIET:
    command->verbosity = -1;
    break;
  case KEY_VERBOSE:
    command->verbosity = 1;
    break;
  case KEY_MAN:
    command->help_form = MT_HELP_MAN;
    break;
  case KEY_SCHEMA:
    command->help_form = MT_HELP_SCHEMA;
    break;
  case KEY_DECK:
    command->help_form = MT_HELP_DECK;
    break;
  case KEY_HELP:
    read->help = true;
    break;
  default:
    read->version = true;
    break;
  }
  if (read->n_keys < (int)(sizeof read->keys / sizeof *read->keys))
    read->keys[read->n_keys++] = key;
  return status;
}

/* The command, then what it works on. */
static mt_status read_word(reading *read, const char *word)
{
  mt_command *command = &read->command;
  if (read->word != NULL) return add_text(word, &command->folders, &command->n_folders);
  read->word = word;
  return MT_OK;
}

static bool has_letter(int letter)
{
  for (const struct argp_option *option = options; option->name || option->doc;
       option++)
    if (option->name != NULL && option->key == letter) return true;
  return false;
}

/* getopt stands behind the argument that it refused, or still in the middle of -abc. */
static int stuck(const struct argp_state *state)
{
  const char *behind = state->argv[state->next - 1];
  bool letters = behind[0] == '-' && behind[1] != '-', known = letters;
  for (const char *letter = behind + 1; letters && *letter != '\0'; letter++)
    if (!has_letter(*letter)) known = false;
  bool middle = state->next < state->argc && (behind[0] != '-' || known);
  return middle ? state->next : state->next - 1;
}

static error_t on_argument(int key, char *value, struct argp_state *state)
{
  reading *read = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
  case ARGP_KEY_ARGS:
  case ARGP_KEY_NO_ARGS:
  case ARGP_KEY_END:
  case ARGP_KEY_SUCCESS:
  case ARGP_KEY_FINI:
    return 0;
  case ARGP_KEY_ERROR:
    read->stuck_at = stuck(state);
    return 0;
  case ARGP_KEY_ARG:
    read->status = read_word(read, value);
    break;
  default:
    read->status = read_option(read, key, value);
    break;
  }
  return read->status == MT_OK ? 0 : EINVAL;
}

static const struct argp parser = {options, on_argument, usage, about,
                                   NULL,    NULL,        NULL};

static const struct argp_option *find_option(const char *name)
{
  for (const struct argp_option *option = options; option->name || option->doc;
       option++)
    if (option->name != NULL && strcmp(name, option->name) == 0) return option;
  return NULL;
}

/* getopt refused the letters after one dash: says why. */
static mt_status explain_letters(const char *argument)
{
  for (const char *letter = argument + 1; *letter != '\0'; letter++)
    if (!has_letter(*letter))
      return mt_fail(MT_ERR_INPUT, "unknown option -%c in %s; see metatopics --help",
                     isprint((unsigned char)*letter) ? *letter : '?', argument);
  return mt_fail(MT_ERR_INPUT, "%s needs a value; see metatopics --help", argument);
}

/* getopt refused a long option: says why. */
static mt_status explain(const char *argument)
{
  const char *names[sizeof options / sizeof *options + 1] = {0};
  char word[64];
  int n = 0;
  if (strncmp(argument, "--", 2) != 0) return explain_letters(argument);
  for (const struct argp_option *option = options; option->name || option->doc;
       option++)
    if (option->name != NULL) names[n++] = option->name;
  snprintf(word, sizeof word, "%s", argument + 2);
  word[strcspn(word, "=")] = '\0';
  const struct argp_option *option = find_option(word);
  if (option != NULL && option->arg != NULL)
    return mt_fail(MT_ERR_INPUT, "--%s needs a value: --%s %s", word, word,
                   option->arg);
  if (option != NULL) return mt_fail(MT_ERR_INPUT, "--%s takes no value", word);
  const char *nearest = mt_nearest(word, names);
  if (nearest != NULL)
    return mt_fail(MT_ERR_INPUT, "unknown option --%s: did you mean --%s?", word,
                   nearest);
  return mt_fail(MT_ERR_INPUT, "unknown option --%s; see metatopics --help", word);
}

static mt_status settle_kind(reading *read)
{
  if (read->help || read->version) {
    read->command.kind = read->help ? MT_COMMAND_HELP : MT_COMMAND_VERSION;
    return MT_OK;
  }
  const char *word = read->word;
  if (word == NULL)
    return mt_fail(
        MT_ERR_INPUT,
        "no command: run, check, show, history or help; see metatopics --help");
  int kind = index_of(word, command_names);
  if (kind >= 0) {
    read->command.kind = (mt_command_kind)kind;
    return MT_OK;
  }
  size_t length = strlen(word);
  if (length > 4 && strcmp(word + length - 4, ".xml") == 0)
    return mt_fail(
        MT_ERR_INPUT,
        "\"%s\" is no command (run, check, show, history, help); to run this deck: "
        "metatopics run %s",
        word, word);
  const char *nearest = mt_nearest(word, command_names);
  return mt_fail(
      MT_ERR_INPUT,
      "\"%s\" is no command; there are: run, check, show, history, help%s%s%s", word,
      nearest ? " (did you mean " : "", nearest ? nearest : "",
      nearest ? "?)" : "; see metatopics --help");
}

/* The operand goes where the command keeps it. */
static mt_status settle_operand(reading *read)
{
  mt_command *command = &read->command;
  const char *operand = command->n_folders > 0 ? command->folders[0] : NULL;
  if (command->n_folders > 1 && command->kind != MT_COMMAND_HISTORY)
    return mt_fail(MT_ERR_INPUT, "one argument too many: \"%s\"; see metatopics --help",
                   command->folders[1]);
  switch (command->kind) {
  case MT_COMMAND_RUN:
  case MT_COMMAND_CHECK:
    command->deck = operand;
    if (operand == NULL)
      return mt_fail(MT_ERR_INPUT, "%s which deck? metatopics %s DECK", read->word,
                     read->word);
    break;
  case MT_COMMAND_SHOW:
    command->folder = operand;
    if (operand == NULL)
      return mt_fail(MT_ERR_INPUT, "show which run's folder? metatopics show DIR");
    break;
  case MT_COMMAND_HISTORY:
    if (operand == NULL)
      return mt_fail(MT_ERR_INPUT, "history of which runs? metatopics history DIR...");
    break;
  case MT_COMMAND_HELP:
    command->section = read->help ? NULL : operand;
    break;
  case MT_COMMAND_VERSION:
    break;
  }
  return MT_OK;
}

static mt_status settle_options(const reading *read)
{
  const mt_command *command = &read->command;
  for (int i = 0; i < read->n_keys && !read->help && !read->version; i++)
    if (!(takers(read->keys[i]) & 1 << command->kind))
      return mt_fail(MT_ERR_INPUT, "--%s does not go with %s; see metatopics --help",
                     option_name(read->keys[i]), read->word);
  if (command->from > command->until)
    return mt_fail(MT_ERR_INPUT,
                   "--from %s --until %s: the stages' order is "
                   "corpus lda matrix knn umap hdbscan map",
                   mt_stage_names[command->from], mt_stage_names[command->until]);
  return MT_OK;
}

mt_status mt_command_parse(int argc, char **argv, mt_command *command_out)
{
  mt_status status = MT_OK;
  reading read = {.command.until = MT_N_STAGES - 1};
  const unsigned flags = ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP;

  mt_log_replicated(true); /* every rank reads the same arguments */
  if (argp_parse(&parser, argc, argv, flags, NULL, &read) != 0)
    MT_TRY(read.status != MT_OK ? read.status : explain(argv[read.stuck_at]));
  MT_TRY(settle_kind(&read));
  MT_TRY(settle_operand(&read));
  MT_TRY(settle_options(&read));
  *command_out = read.command;
  read.command.sets = read.command.folders = NULL;
done:
  mt_command_destroy(&read.command);
  mt_log_replicated(false);
  return status;
}

void mt_command_destroy(mt_command *command)
{
  free(command->sets);
  free(command->folders);
  *command = (mt_command){0};
}

mt_status mt_command_help(const mt_command *command, FILE *out)
{
  switch (command->help_form) {
  case MT_HELP_MAN:
    mt_parameters_manual(out);
    return MT_OK;
  case MT_HELP_SCHEMA:
    mt_deck_schema(out);
    return MT_OK;
  case MT_HELP_DECK:
    mt_deck_every_parameter(out);
    return MT_OK;
  case MT_HELP_TEXT:
    break;
  }
  if (command->section == NULL) {
    argp_help(&parser, out, ARGP_HELP_SHORT_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC,
              (char *)"metatopics");
    return MT_OK;
  }
  if (mt_parameters_help(command->section, out)) return MT_OK;
  return mt_fail(MT_ERR_INPUT,
                 "there is no section \"%s\"; there are: "
                 "corpus lda knn umap hdbscan map output",
                 command->section);
}

static mt_status set_output(mt_parameters *parameters, const char *folder)
{
  char *assignment = NULL;
  if (asprintf(&assignment, "output.path=%s", folder) < 0)
    return mt_fail(MT_ERR_MEMORY, "no memory for the command line");
  mt_status status = mt_parameters_set(parameters, assignment);
  free(assignment);
  return status;
}

mt_status mt_command_parameters(const mt_command *command, const char *xml, size_t size,
                                mt_parameters *parameters_out)
{
  mt_status status = MT_OK;
  mt_parameters parameters = {0};

  mt_log_replicated(true);
  MT_TRY(mt_deck_parse(command->deck, xml, size, &parameters));
  for (int i = 0; i < command->n_sets; i++)
    MT_TRY(mt_parameters_set(&parameters, command->sets[i]));
  if (command->out != NULL) MT_TRY(set_output(&parameters, command->out));
  MT_TRY(mt_parameters_check(&parameters));
  *parameters_out = parameters;
  parameters = (mt_parameters){0};
done:
  mt_parameters_destroy(&parameters);
  mt_log_replicated(false);
  return status;
}
