/* RANKS 1
 * The command line: what each command takes, and what is said when it is wrong. */
#include "test.h"

#include "deck/command_line.h"
#include "deck/deck.h"

#include <stdlib.h>
#include <string.h>

static char *said_text;

/* Splits a line at blanks and reads it; what is said goes to said_text. */
static mt_status parse(const char *line, mt_command *command)
{
  static char words[512];
  char *argv[32] = {(char *)"metatopics"};
  int argc = 1;
  snprintf(words, sizeof words, "%s", line);
  for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " "))
    argv[argc++] = word;
  argv[argc] = NULL;

  size_t size = 0;
  FILE *real = stderr;
  free(said_text);
  stderr = open_memstream(&said_text, &size);
  mt_status status = mt_command_parse(argc, argv, command);
  fclose(stderr);
  stderr = real;
  return status;
}

static void test_run(void **state)
{
  (void)state;
  mt_command c;
  assert_int_equal(parse("run d.xml", &c), MT_OK);
  assert_int_equal(c.kind, MT_COMMAND_RUN);
  assert_string_equal(c.deck, "d.xml");
  assert_null(c.out);
  assert_true(c.n_sets == 0 && c.backend == MT_BACKEND_AUTO && !c.force &&
              c.verbosity == 0);
  assert_true(c.from == 0 && c.until == MT_N_STAGES - 1);
  mt_command_destroy(&c);
  assert_int_equal(
      parse("run --set a.b=1 d.xml --set=c.d=2 -s e.f=3 --out o --backend cuda "
            "--from knn --until umap --force --wait-for-debugger -v",
            &c),
      MT_OK);
  assert_int_equal(c.n_sets, 3);
  assert_string_equal(c.sets[0], "a.b=1");
  assert_string_equal(c.sets[1], "c.d=2");
  assert_string_equal(c.sets[2], "e.f=3");
  assert_string_equal(c.out, "o");
  assert_string_equal(mt_stage_names[c.from], "knn");
  assert_string_equal(mt_stage_names[c.until], "umap");
  assert_true(c.backend == MT_BACKEND_CUDA && c.force && c.wait && c.verbosity == 1);
  mt_command_destroy(&c);
}

static void test_others(void **state)
{
  (void)state;
  mt_command c;
  assert_int_equal(parse("check d.xml --set a.b=1 -q", &c), MT_OK);
  assert_true(c.kind == MT_COMMAND_CHECK && c.n_sets == 1 && c.verbosity == -1);
  assert_null(c.get);
  mt_command_destroy(&c);
  assert_int_equal(parse("check d.xml --get output.path", &c), MT_OK);
  assert_string_equal(c.get, "output.path");
  mt_command_destroy(&c);
  assert_int_equal(parse("show out", &c), MT_OK);
  assert_true(c.kind == MT_COMMAND_SHOW);
  assert_string_equal(c.folder, "out");
  mt_command_destroy(&c);
  assert_int_equal(parse("history a --out p b c", &c), MT_OK);
  assert_true(c.kind == MT_COMMAND_HISTORY && c.n_folders == 3);
  assert_string_equal(c.folders[0], "a");
  assert_string_equal(c.folders[2], "c");
  assert_string_equal(c.out, "p");
  mt_command_destroy(&c);
  static const struct {
    const char *line, *section;
    mt_command_kind kind;
    mt_help_form form;
  } helps[] = {
      {"help", NULL, MT_COMMAND_HELP, MT_HELP_TEXT},
      {"--help", NULL, MT_COMMAND_HELP, MT_HELP_TEXT},
      {"run --help", NULL, MT_COMMAND_HELP, MT_HELP_TEXT},
      {"help lda", "lda", MT_COMMAND_HELP, MT_HELP_TEXT},
      {"help --man", NULL, MT_COMMAND_HELP, MT_HELP_MAN},
      {"help --schema", NULL, MT_COMMAND_HELP, MT_HELP_SCHEMA},
      {"help --deck", NULL, MT_COMMAND_HELP, MT_HELP_DECK},
      {"--version", NULL, MT_COMMAND_VERSION, MT_HELP_TEXT},
      {"-V", NULL, MT_COMMAND_VERSION, MT_HELP_TEXT},
  };
  for (size_t i = 0; i < sizeof helps / sizeof *helps; i++) {
    assert_int_equal(parse(helps[i].line, &c), MT_OK);
    assert_int_equal(c.kind, helps[i].kind);
    assert_int_equal(c.help_form, helps[i].form);
    if (helps[i].section == NULL)
      assert_null(c.section);
    else
      assert_string_equal(c.section, helps[i].section);
    mt_command_destroy(&c);
  }
}

static void test_wrong(void **state)
{
  (void)state;
  static const char *const wrong[][2] = {
      {"", "no command: run, check, show, history or help; see metatopics --help"},
      {"x.xml", "to run this deck: metatopics run x.xml"},
      {"x", "\"x\" is no command; there are: run, check, show, history, help; see "
            "metatopics --help"},
      {"rnu x.xml", "(did you mean run?)"},
      {"run", "run which deck? metatopics run DECK"},
      {"check", "check which deck? metatopics check DECK"},
      {"show", "metatopics show DIR"},
      {"history", "history of which runs? metatopics history DIR..."},
      {"history a --force", "--force does not go with history"},
      {"history a --set b.c=1", "--set does not go with history"},
      {"show a b", "one argument too many: \"b\""},
      {"run a b", "one argument too many: \"b\""},
      {"run a --form knn", "unknown option --form: did you mean --from?"},
      {"run a --zzz", "unknown option --zzz; see metatopics --help"},
      {"run a -zq", "unknown option -z in -zq"},
      {"-q -zq", "unknown option -z in -zq"},
      {"run a -qz", "unknown option -z in -qz"},
      {"run a --set", "--set needs a value: --set SECTION.NAME=VALUE"},
      {"run a -s", "-s needs a value"},
      {"run a --force=1", "--force takes no value"},
      {"run a --out=", "--out: the folder's name is empty"},
      {"run a --from lad",
       "--from lad: there is no such thing; allowed: corpus lda matrix"},
      {"run a --backend gpu",
       "--backend gpu: there is no such thing; allowed: auto cpu cuda"},
      {"run a --from umap --until knn",
       "--from umap --until knn: the stages' order is corpus"},
      {"check a --from umap", "--from does not go with check"},
      {"show a --out b", "--out does not go with show"},
      {"run a --man", "--man does not go with run"},
      {"run a --get output.path", "--get does not go with run"},
      {"check a --wait-for-debugger", "--wait-for-debugger does not go with check"},
  };
  mt_command c = {.kind = MT_COMMAND_SHOW};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(parse(wrong[i][0], &c), MT_ERR_INPUT);
    if (strstr(said_text, wrong[i][1]) == NULL)
      fail_msg("%s\nsaid: %s\nnot: %s", wrong[i][0], said_text, wrong[i][1]);
    assert_ptr_equal(strchr(said_text, '\n'), strrchr(said_text, '\n'));
    assert_int_equal(c.kind, MT_COMMAND_SHOW); /* untouched */
  }
}

static char *help_of(const char *line, mt_status expected)
{
  mt_command c;
  char *text = NULL;
  size_t size = 0;
  assert_int_equal(parse(line, &c), MT_OK);
  FILE *out = open_memstream(&text, &size), *real = stderr;
  free(said_text);
  stderr = open_memstream(&said_text, &size);
  assert_int_equal(mt_command_help(&c, out), expected);
  fclose(stderr);
  stderr = real;
  fclose(out);
  mt_command_destroy(&c);
  return text;
}

static void test_help(void **state)
{
  (void)state;
  static const char *const lines[][2] = {
      {"help", "Stages, in order: corpus lda matrix"},
      {"help hdbscan", "min_cluster_size=\"3\""},
      {"help --deck", "random_state=\"42\""},
      {"help --schema", "relaxng.org"},
      {"help --man", ".SS <umap>"}};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    char *text = help_of(lines[i][0], MT_OK);
    assert_non_null(strstr(text, lines[i][1]));
    free(text);
  }
  free(help_of("help hbscan", MT_ERR_INPUT));
  assert_non_null(
      strstr(said_text, "there is no section \"hbscan\"; there are: corpus lda"));
}

/* Every option of --help is in the manual page; make check runs in the project's folder. */
static void test_manual(void **state)
{
  (void)state;
  static char page[65536];
  FILE *file = fopen("doc/metatopics.1.in", "rb");
  assert_non_null(file);
  page[fread(page, 1, sizeof page - 1, file)] = '\0';
  fclose(file);
  char *text = help_of("help", MT_OK);
  int n = 0;
  for (char *at = strstr(text, " --"); at != NULL; at = strstr(at + 3, " --")) {
    char option[64] = "\\-\\-";
    size_t length = strspn(at + 3, "abcdefghijklmnopqrstuvwxyz");
    if (length == 0) continue;
    memcpy(option + 4, at + 3, length);
    if (strstr(page, option) == NULL) fail_msg("%s is not in the manual", option);
    n++;
  }
  assert_true(n >= 13);
  free(text);
}

static void test_parameters(void **state)
{
  (void)state;
  static const char xml[] =
      "<metatopics><corpus path='news'/><lda max_iter='9'/></metatopics>";
  mt_command c;
  mt_parameters p = {0};
  assert_int_equal(
      parse("run in/d.xml --set lda.max_iter=7 --set lda.max_iter=8 --out o", &c),
      MT_OK);
  assert_int_equal(mt_command_parameters(&c, xml, sizeof xml - 1, &p), MT_OK);
  assert_string_equal(p.corpus.path, "in/news");
  assert_string_equal(p.output.path, "o");
  assert_int_equal(p.lda.max_iter, 8);
  mt_parameters_destroy(&p);
  mt_command_destroy(&c);
  static const char *const wrong[] = {"run d.xml --set lda.max_iter=0",
                                      "run d.xml --set umap.spread=0.01"};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(parse(wrong[i], &c), MT_OK);
    mt_log_setup(1, 2, MT_LOG_WARN); /* all ranks find it: rank 0 alone says it */
    assert_int_equal(mt_command_parameters(&c, xml, sizeof xml - 1, &p), MT_ERR_INPUT);
    mt_log_setup(0, 1, MT_LOG_WARN);
    assert_null(p.corpus.path);
    mt_command_destroy(&c);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_run),    cmocka_unit_test(test_others),
    cmocka_unit_test(test_wrong),  cmocka_unit_test(test_help),
    cmocka_unit_test(test_manual), cmocka_unit_test(test_parameters),
};

MT_TEST_MAIN(tests)
