/* RANKS 1
 * The deck: defaults, ranges, hostile files with the words of their errors, --set, rules
 * between parameters, fingerprints, JSON, and the decks under inputs/. */
#include "test.h"

#include "deck/deck.h"
#include "deck/locate.h"
#include "deck/nearest.h"
#include "deck/table.h"

#include <libxml/parser.h>
#include <libxml/relaxng.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- what was said on stderr ------------------------------------------------------------ */

static char *said_text;
static size_t said_size;
static FILE *said_stream, *real_stderr;

static void listen(void)
{
  free(said_text);
  said_text = NULL;
  real_stderr = stderr;
  said_stream = open_memstream(&said_text, &said_size);
  assert_non_null(said_stream);
  stderr = said_stream;
}

static const char *heard(void)
{
  stderr = real_stderr;
  fclose(said_stream);
  return said_text;
}

static void expect_said(const char *words)
{
  if (strstr(said_text, words) == NULL) fail_msg("said: %s\nnot: %s", said_text, words);
}

static mt_status parse(const char *name, const char *xml, mt_parameters *out)
{
  listen();
  mt_status status = mt_deck_parse(name, xml, strlen(xml), out);
  heard();
  if (status == MT_OK) assert_string_equal(said_text, "");
  return status;
}

static mt_status set(mt_parameters *parameters, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static mt_status set(mt_parameters *parameters, const char *format, ...)
{
  char assignment[8192];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(assignment, sizeof assignment, format, arguments);
  va_end(arguments);
  listen();
  mt_status status = mt_parameters_set(parameters, assignment);
  heard();
  return status;
}

static mt_parameters standard(void)
{
  mt_parameters parameters = {0};
  assert_int_equal(mt_parameters_default(&parameters), MT_OK);
  return parameters;
}

static void expect_text(const mt_parameters *parameters, const mt_parameter *p,
                        const char *want)
{
  char *text = mt_parameter_text(p, parameters);
  assert_non_null(text);
  assert_string_equal(text, want);
  free(text);
}

/* Of its kind, in range, and not the default. */
static const char *another(const mt_parameter *p, char *out)
{
  switch (p->kind) {
  case MT_KIND_BOOL:
    return strcmp(p->text, "true") == 0 ? "false" : "true";
  case MT_KIND_CHOICE:
    return strcmp(p->text, p->words[1]) == 0 ? p->words[0] : p->words[1];
  case MT_KIND_TEXT:
    return "other";
  case MT_KIND_FREQUENCY:
    return "0.25";
  case MT_KIND_SEEDS:
    return "5 9-20";
  case MT_KIND_FORMATS:
    return "png";
  default:
    sprintf(out, "%.15g", p->high);
    if (strtod(p->text, NULL) == p->high) sprintf(out, "%.15g", p->low);
    return out;
  }
}

/* ---- values --------------------------------------------------------------------------------- */

static void test_defaults(void **state)
{
  (void)state;
  mt_parameters p = standard();
  assert_int_equal(p.lda.n_components, 15);
  assert_int_equal(p.lda.n_seeds, 3);
  for (int i = 0; i < 3; i++) assert_int_equal(p.lda.seeds[i], i);
  assert_true(p.corpus.min_df.value == 5 && !p.corpus.min_df.is_share);
  assert_true(p.corpus.max_df.value == 0.5 && p.corpus.max_df.is_share);
  assert_true(p.lda.doc_topic_prior == 0 && p.umap.a == 0 && p.umap.n_epochs == 0);
  assert_int_equal(p.lda.evaluate_every, -1);
  assert_int_equal(p.hdbscan.cluster_selection_method, MT_SELECT_EOM);
  assert_int_equal(p.knn.metric, MT_METRIC_COSINE);
  assert_true(p.map.svg && p.map.png && p.corpus.strict &&
              !p.hdbscan.allow_single_cluster);
  assert_string_equal(p.output.path, "metatopics-out");
  for (const mt_parameter *at = mt_parameter_table; at->section != NULL; at++)
    assert_true(mt_parameter_find(at->section, at->name) == at); /* no name twice */
  mt_parameters_destroy(&p);
}

static void expect_refused(mt_parameters *p, const mt_parameter *at, const char *value)
{
  char allowed[MT_SAID_LONGEST], *before = mt_parameter_text(at, p);
  mt_parameter_allowed(at, allowed);
  if (set(p, "%s.%s=%s", at->section, at->name, value) != MT_ERR_INPUT)
    fail_msg("%s.%s=%s was taken", at->section, at->name, value);
  expect_said(allowed);
  expect_text(p, at, before);
  free(before);
}

static void expect_taken(mt_parameters *p, const mt_parameter *at, const char *value)
{
  char xml[8192];
  mt_parameters read = {0};
  if (set(p, "%s.%s=%s", at->section, at->name, value) != MT_OK)
    fail_msg("%s", said_text);
  snprintf(xml, sizeof xml, "<metatopics><%s %s=\"%s\"/></metatopics>", at->section,
           at->name, value);
  if (parse("d.xml", xml, &read) != MT_OK) fail_msg("%s", said_text);
  char *text = mt_parameter_text(at, p);
  expect_text(&read, at, text);
  free(text);
  mt_parameters_destroy(&read);
}

static void try_number(mt_parameters *p, const mt_parameter *at, bool is_real)
{
  static const char *const never[] = {
      "",    " ",  " 5", "5 ", "5x", "0x10", "nan",   "inf",    "-inf", "1,5",
      "--5", "1e", "+",  ".",  "5;", "NaN",  "1e999", "-1e999", "five", "5 6"};
  char text[64];
  for (size_t i = 0; i < sizeof never / sizeof *never; i++)
    expect_refused(p, at, never[i]);
  sprintf(text, "%.15g", at->low);
  expect_taken(p, at, text);
  sprintf(text, "%.15g", at->high);
  expect_taken(p, at, text);
  sprintf(text, is_real ? "%.15e" : "%.0f",
          is_real ? at->high * (1 + 1e-14) : at->high + 1);
  expect_refused(p, at, text);
  sprintf(text, is_real ? "%.15e" : "%.0f",
          is_real ? at->low - 1e-14 * (at->low > 0 ? at->low : 1) : at->low - 1);
  expect_refused(p, at, text);
  if (!is_real) expect_refused(p, at, "5.0");
  if (!is_real) expect_refused(p, at, "5e0");
  if (!is_real) expect_refused(p, at, "18446744073709551621");
  if (!is_real) expect_refused(p, at, "99999999999999999999999999999999999");
  if (at->words[0] != NULL)
    expect_taken(p, at, at->words[0]);
  else
    expect_refused(p, at, "auto");
}

static void test_ranges(void **state)
{
  (void)state;
  mt_parameters p = standard();
  int n = 0;
  for (const mt_parameter *at = mt_parameter_table; at->section != NULL; at++, n++) {
    if (at->text[0] != '\0') expect_taken(&p, at, at->text);
    switch (at->kind) {
    case MT_KIND_INT:
      try_number(&p, at, false);
      break;
    case MT_KIND_REAL:
      try_number(&p, at, true);
      break;
    case MT_KIND_BOOL:
    case MT_KIND_CHOICE:
      for (int i = 0; at->words[i] != NULL; i++) expect_taken(&p, at, at->words[i]);
      expect_refused(&p, at, "perhaps");
      expect_refused(&p, at, "True");
      expect_refused(&p, at, "");
      break;
    case MT_KIND_TEXT:
      expect_taken(&p, at, "/\xc3\xa4 b_c");
      expect_refused(&p, at, "");
      expect_refused(&p, at, "a\xff");
      expect_refused(&p, at, "a\nb");
      break;
    default:
      break;
    }
    assert_true(strlen(at->help) > 3);
  }
  assert_int_equal(n, 59);
  mt_parameters_destroy(&p);
}

static void test_text_length(void **state)
{
  (void)state;
  mt_parameters p = standard();
  const mt_parameter *at = mt_parameter_find("output", "path");
  char text[MT_TEXT_LONGEST + 2];
  memset(text, 'a', sizeof text);
  text[MT_TEXT_LONGEST + 1] = '\0';
  expect_refused(&p, at, text);
  text[MT_TEXT_LONGEST] = '\0';
  expect_taken(&p, at, text);
  mt_parameters_destroy(&p);
}

static void test_frequencies(void **state)
{
  (void)state;
  mt_parameters p = standard();
  const mt_parameter *at = mt_parameter_find("corpus", "max_df");
  expect_taken(&p, at, "1");
  assert_true(!p.corpus.max_df.is_share && p.corpus.max_df.value == 1);
  expect_taken(&p, at, "1.0");
  assert_true(p.corpus.max_df.is_share && p.corpus.max_df.value == 1);
  expect_text(&p, at, "1.0");
  expect_taken(&p, at, "0.0");
  expect_taken(&p, at, "2.5e-1");
  expect_text(&p, at, "0.25");
  static const char *const bad[] = {"0",   "-1", "1.5", "5.0",       "-0.1",
                                    "50%", "",   "nan", "2147483648"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) expect_refused(&p, at, bad[i]);
  mt_parameters_destroy(&p);
}

static void test_seeds(void **state)
{
  (void)state;
  mt_parameters p = standard();
  const mt_parameter *at = mt_parameter_find("lda", "seeds");
  expect_taken(&p, at, "0-9 20 30-39");
  assert_int_equal(p.lda.n_seeds, 21);
  assert_int_equal(p.lda.seeds[10], 20);
  assert_int_equal(p.lda.seeds[20], 39);
  expect_text(&p, at, "0-9 20 30-39");
  expect_taken(&p, at, "9 3 4294967295");
  assert_int_equal(p.lda.seeds[0], 9);
  expect_taken(&p, at, "0-999999");
  assert_int_equal(p.lda.n_seeds, MT_SEEDS_MOST);
  static const char *const bad[][2] = {{"", "empty"},
                                       {"   ", "empty"},
                                       {"1 2 1", "1 is there twice"},
                                       {"0-5 3", "3 is there twice"},
                                       {"5-3", "a range runs backwards"},
                                       {"-1", "a number is out of range"},
                                       {"-0", "a number is out of range"},
                                       {"4294967296", "a number is out of range"},
                                       {"0-1000000", "too many seeds"},
                                       {"0-4294967295", "too many seeds"},
                                       {"1,2", "not a list"},
                                       {"1 - 3", "not a list"},
                                       {"1-", "not a list"},
                                       {"1-2-3", "not a list"},
                                       {"+1", "not a list"},
                                       {"0x1", "not a list"},
                                       {"a", "not a list"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    expect_refused(&p, at, bad[i][0]);
    expect_said(bad[i][1]);
  }
  mt_parameters_destroy(&p);
}

static void test_picture_formats(void **state)
{
  (void)state;
  mt_parameters p = standard();
  const mt_parameter *at = mt_parameter_find("map", "format");
  expect_taken(&p, at, "png svg");
  expect_text(&p, at, "svg png");
  expect_taken(&p, at, "png");
  assert_true(p.map.png && !p.map.svg);
  expect_taken(&p, at, "svg");
  assert_true(!p.map.png && p.map.svg);
  static const char *const bad[] = {"", " ", "svg svg", "pdf", "svg,png"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) expect_refused(&p, at, bad[i]);
  mt_parameters_destroy(&p);
}

/* A decimal point in every locale, in and out. */
static void test_locale(void **state)
{
  (void)state;
  if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL &&
      setlocale(LC_ALL, "fr_FR.UTF-8") == NULL)
    skip();
  mt_parameters p = standard();
  const mt_parameter *at = mt_parameter_find("umap", "min_dist");
  assert_int_equal(set(&p, "umap.min_dist=0.25"), MT_OK);
  assert_true(p.umap.min_dist == 0.25);
  expect_text(&p, at, "0.25");
  expect_taken(&p, mt_parameter_find("umap", "a"), "0.001"); /* in a deck too */
  setlocale(LC_ALL, "C");
  mt_parameters_destroy(&p);
}

/* ---- hostile decks --------------------------------------------------------------------------- */

static const struct {
  const char *xml;
  const char *words[3];
} hostile[] = {
    {"", {"d.xml: is empty", "<metatopics><corpus path=\"...\"/></metatopics>"}},
    {" \n ", {"d.xml:", "not well-formed XML"}},
    {"path: x\n", {"d.xml:1: not well-formed XML"}},
    {"<metatopics>\n<corpus path='x'>\n</metatopics>",
     {"d.xml:3: not well-formed XML", "mismatch"}},
    {"<metatopics><corpus path='x'/>", {"d.xml:1: not well-formed XML"}},
    {"<metatopics><corpus path='x' path='y'/></metatopics>",
     {"d.xml:1: not well-formed XML", "redefined"}},
    {"<topics/>", {"d.xml:1: <topics>: is no deck; allowed: <metatopics>"}},
    {"<metatopics xmlns='http://x'/>", {"d.xml:1: <metatopics>: is no deck"}},
    {"<metatopics\n version='1'/>",
     {"d.xml:2: <metatopics version=...>", "no attributes"}},
    {"<metatopics>\n<corpus path='x'/>\n<lda/>\n<lda n_components='3'/></metatopics>",
     {"d.xml:4: <lda> is there twice, the first in line 3; allowed: once"}},
    {"<metatopics>\n <hdscan/></metatopics>",
     {"d.xml:2: <hdscan>: no such section (did you mean hdbscan?); allowed: corpus "
      "lda"}},
    {"<metatopics>\n <x:lda xmlns:x='y'/></metatopics>",
     {"d.xml:2: <lda>: is in a namespace"}},
    {"<metatopics>\n<!-- <lda n_topics='9'/> -->\n<lda\n  max_iter='5'\n  "
     "n_topics='9'/>\n"
     "</metatopics>",
     {"d.xml:5: <lda n_topics=\"9\">: no such parameter",
      "allowed: n_components seeds"}},
    {"<metatopics><lda n_componets='9'/></metatopics>",
     {"d.xml:1: <lda n_componets=\"9\">: no such parameter (did you mean "
      "n_components?)"}},
    {"<metatopics>\n<lda n_components='0'/></metatopics>",
     {"d.xml:2: <lda n_components=\"0\">: out of range; allowed: integer 1 to 100000"}},
    {"<metatopics><lda n_components='ten'/></metatopics>",
     {"d.xml:1: <lda n_components=\"ten\">: not an integer; allowed: integer 1 to "
      "100000"}},
    {"<metatopics><lda n_components='1.5'/></metatopics>", {"must be a whole number"}},
    {"<metatopics><lda n_components=''/></metatopics>",
     {"d.xml:1: <lda n_components=\"\">: not an integer"}},
    {"<metatopics><knn\n\nmetric='manhattan'/></metatopics>",
     {"d.xml:3: <knn metric=\"manhattan\">: not one of the words; allowed: cosine | "
      "hellinger | euclidean"}},
    {"<metatopics><hdbscan allow_single_cluster='yes'/></metatopics>",
     {"<hdbscan allow_single_cluster=\"yes\">: neither true nor false; allowed: true | "
      "false"}},
    {"<metatopics><umap min_dist='nan'/></metatopics>",
     {"<umap min_dist=\"nan\">: not a number; allowed: number 0 to 100"}},
    {"<metatopics><umap a='-1'/></metatopics>",
     {"<umap a=\"-1\">: out of range; allowed: auto, or number 0.001 to 1000"}},
    {"<metatopics><lda seeds='1 1'/></metatopics>",
     {"<lda seeds=\"1 1\">: 1 is there twice"}},
    {"<metatopics><corpus path=''/></metatopics>",
     {"<corpus path=\"\">: empty; allowed: text"}},
    {"<metatopics><corpus path='a&#10;b'/></metatopics>",
     {"holds a control character"}},
    {"<metatopics>\n<lda>\n<seeds/></lda></metatopics>",
     {"d.xml:3: <seeds> in <lda>: allowed: attributes only"}},
    {"<metatopics><lda>15</lda></metatopics>",
     {"d.xml:1: text in <lda>: \"15\"; allowed: attributes only"}},
    {"<metatopics>lda<lda/></metatopics>",
     {"text in <metatopics>: \"lda\"; allowed: sections only"}},
    {"<metatopics><lda><![CDATA[x]]></lda></metatopics>", {"text in <lda>: \"x\""}},
    {"<metatopics><lda n_components='&many;'/></metatopics>",
     {"not well-formed", "many"}},
    {"<?xml version='1.0'?>\n<!DOCTYPE metatopics [\n<!ENTITY a 'aaaaaaaaaa'>\n"
     "<!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'>\n<!ENTITY c "
     "'&b;&b;&b;&b;&b;&b;&b;&b;'>\n"
     "<!ENTITY d '&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;'>\n<!ENTITY e "
     "'&d;&d;&d;&d;&d;&d;&d;&d;'>\n"
     "<!ENTITY f '&e;&e;&e;&e;&e;&e;&e;&e;&e;&e;'>\n<!ENTITY g "
     "'&f;&f;&f;&f;&f;&f;&f;&f;'>\n"
     "<!ENTITY h '&g;&g;&g;&g;&g;&g;&g;&g;&g;&g;'>]>\n"
     "<metatopics><corpus path='&h;'/></metatopics>",
     {"d.xml:2: <!DOCTYPE: a deck has no document type and no entities; remove it"}},
    {"<!DOCTYPE metatopics SYSTEM 'file:///etc/passwd'><metatopics/>",
     {"d.xml:1: <!DOCTYPE"}},
    {"<!DOCTYPE m [<!ENTITY % x SYSTEM 'http://127.0.0.1:9/x'>%x;]><metatopics/>",
     {"d.xml:1: <!DOCTYPE"}},
    {"<metatopics xmlns:xi='http://www.w3.org/2001/XInclude'>\n"
     "<xi:include href='/etc/passwd'/></metatopics>",
     {"d.xml:2: <include>: is in a namespace"}},
    {"<?xml version='1.0' encoding='no-such'?><metatopics/>",
     {"not well-formed XML", "no-such"}},
    {"<metatopics><corpus path='\xff'/></metatopics>", {"not well-formed XML"}},
};

static void test_hostile(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
    mt_parameters p = {0};
    if (parse("d.xml", hostile[i].xml, &p) != MT_ERR_INPUT)
      fail_msg("taken: %s", hostile[i].xml);
    for (int w = 0; w < 3 && hostile[i].words[w] != NULL; w++)
      expect_said(hostile[i].words[w]);
    assert_null(p.corpus.encoding); /* untouched */
    const char *newline = strchr(said_text, '\n');
    assert_true(newline != NULL && newline[1] == '\0'); /* one line says it */
  }
}

/* Deep, wide and long decks end quickly. */
static void test_flood(void **state)
{
  (void)state;
  enum { SIZE = 256 * 1024 };
  char *xml = malloc(SIZE + 2);
  mt_parameters p = {0};
  clock_t start = clock();
  size_t at = (size_t)sprintf(xml, "<metatopics><lda ");
  for (int i = 0; at < SIZE - 40; i++) at += (size_t)sprintf(xml + at, "a%d='' ", i);
  strcpy(xml + at, "/></metatopics>");
  assert_int_equal(parse("d.xml", xml, &p), MT_ERR_INPUT);
  for (at = 0; at < SIZE - 40; at += 3) memcpy(xml + at, "<a>", 4);
  assert_int_equal(parse("d.xml", xml, &p), MT_ERR_INPUT);
  at = (size_t)sprintf(xml, "<metatopics>");
  for (int i = 0; at < SIZE - 40; i++) at += (size_t)sprintf(xml + at, "<!--%d-->", i);
  strcpy(xml + at, "</metatopics>");
  assert_int_equal(parse("d.xml", xml, &p), MT_OK);
  mt_parameters_destroy(&p);
  memset(xml, ' ', SIZE + 1);
  xml[SIZE + 1] = '\0';
  assert_int_equal(parse("d.xml", xml, &p), MT_ERR_INPUT);
  expect_said("a deck has at most 262144");
  assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 20);
  free(xml);
}

static void test_good_decks(void **state)
{
  (void)state;
  mt_parameters p = {0};
  assert_int_equal(
      parse("in/d.xml",
            "\xef\xbb\xbf<?xml version='1.0'?><!-- x --><metatopics>\n<?php 1?>"
            "<umap n_components='3'><!-- y --></umap>\n"
            "<corpus path='news&amp;&#x20ac;' stop_words='w.txt'/></metatopics>",
            &p),
      MT_OK);
  assert_int_equal(p.umap.n_components, 3);
  assert_string_equal(p.corpus.path, "in/news&\xe2\x82\xac");
  assert_string_equal(p.corpus.stop_words, "in/w.txt");
  assert_int_equal(set(&p, "corpus.path=a=b"), MT_OK); /* as it is */
  assert_string_equal(p.corpus.path, "a=b");
  mt_parameters_destroy(&p);
  assert_int_equal(parse("in/d.xml",
                         "<metatopics><corpus path='/n' stop_words='english'/>"
                         "<output path='o'/></metatopics>",
                         &p),
                   MT_OK);
  assert_string_equal(p.corpus.path, "/n");
  assert_string_equal(p.corpus.stop_words, "english");
  assert_string_equal(p.output.path, "o");
  mt_parameters_destroy(&p);
  static const char wide[] = "\xff\xfe<\0m\0e\0t\0a\0t\0o\0p\0i\0c\0s\0/\0>\0";
  listen();
  assert_int_equal(mt_deck_parse("d.xml", wide, sizeof wide - 1, &p), MT_OK);
  heard();
  mt_parameters_destroy(&p);
}

/* The schema alone refuses what the table refuses. */
static void test_schema(void **state)
{
  (void)state;
  char *text = NULL, xml[512], value[64];
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  mt_deck_schema(out);
  fclose(out);
  xmlRelaxNGParserCtxt *parser = xmlRelaxNGNewMemParserCtxt(text, (int)size);
  xmlRelaxNG *schema = xmlRelaxNGParse(parser);
  assert_non_null(schema);
  for (const mt_parameter *p = mt_parameter_table; p->section != NULL; p++)
    for (int bad = 0; bad < 2; bad++) {
      sprintf(value, "%.15g", p->high * 1.5 + 1);
      if (p->kind == MT_KIND_TEXT) value[0] = '\0';
      snprintf(xml, sizeof xml, "<metatopics><%s %s=\"%s\"/></metatopics>", p->section,
               p->name,
               bad          ? value
               : p->text[0] ? p->text
                            : "x");
      if (p->kind == MT_KIND_SEEDS && bad)
        continue; /* the schema knows no large numbers */
      xmlDoc *doc = xmlReadMemory(xml, (int)strlen(xml), NULL, NULL, XML_PARSE_NONET);
      xmlRelaxNGValidCtxt *validator = xmlRelaxNGNewValidCtxt(schema);
      xmlRelaxNGSetValidErrors(validator, NULL, NULL, NULL);
      listen();
      int invalid = xmlRelaxNGValidateDoc(validator, doc);
      heard();
      if ((invalid != 0) != bad) fail_msg("%s: %d", xml, invalid);
      xmlRelaxNGFreeValidCtxt(validator);
      xmlFreeDoc(doc);
    }
  xmlRelaxNGFree(schema);
  xmlRelaxNGFreeParserCtxt(parser);
  free(text);
}

/* ---- --set and the rules between parameters --------------------------------------------------- */

static void test_set_errors(void **state)
{
  (void)state;
  static const char *const bad[][2] = {
      {"", "allowed: SECTION.NAME=VALUE"},
      {"lda", "allowed: SECTION.NAME=VALUE"},
      {"lda.n_components", "allowed: SECTION.NAME=VALUE"},
      {"n_components=3", "allowed: SECTION.NAME=VALUE"},
      {".n_components=3", "allowed: SECTION.NAME=VALUE"},
      {"lda.=3", "allowed: SECTION.NAME=VALUE"},
      {"=", "allowed: SECTION.NAME=VALUE"},
      {"ldaa.n_components=3", "no such section (did you mean lda?)"},
      {"lda.ncomponents=3", "no such parameter (did you mean n_components?)"},
      {"umap.seeds=3", "no such parameter; allowed: n_components min_dist"},
      {"lda.n_components=0",
       "--set lda.n_components=0: out of range; allowed: integer 1 to"},
      {"lda.n_components=", "--set lda.n_components=: not an integer"},
  };
  mt_parameters p = standard();
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(set(&p, "%s", bad[i][0]), MT_ERR_INPUT);
    expect_said(bad[i][1]);
  }
  mt_parameters_destroy(&p);
}

static void test_rules(void **state)
{
  (void)state;
  static const struct {
    const char *sets[3], *words; /* NULL: fine */
  } rules[] = {
      {{NULL}, NULL},
      {{"umap.min_dist=1.1"}, "umap.min_dist (1.1) is above umap.spread (1)"},
      {{"umap.min_dist=1.0"}, NULL},
      {{"umap.a=1.5"}, "umap.a is given without b"},
      {{"umap.b=1.5"}, "umap.b is given without a"},
      {{"umap.a=1.5", "umap.b=0.9"}, NULL},
      {{"umap.local_connectivity=15"}, "is not below knn.n_neighbors (15)"},
      {{"hdbscan.max_cluster_size=2"}, "hdbscan.max_cluster_size (2) is below"},
      {{"hdbscan.max_cluster_size=3"}, NULL},
      {{"map.label_terms=11"}, "map.label_terms (11) is above lda.top_terms (10)"},
      {{"corpus.min_df=9", "corpus.max_df=8"}, "corpus.min_df (9) is above max_df (8)"},
      {{"corpus.min_df=0.9"}, "corpus.min_df (0.9) is above max_df (0.5)"},
      {{"corpus.min_df=9", "corpus.max_df=9"}, NULL},
      {{"corpus.min_df=9", "corpus.max_df=0.001"}, NULL},
      {{"corpus.encoding=latin-99"}, "corpus.encoding \"latin-99\" is unknown"},
      {{"corpus.encoding=ISO-8859-1"}, NULL},
      {{"knn.build_algo=nn_descent"}, NULL},
  };
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    mt_parameters p = standard();
    assert_int_equal(set(&p, "corpus.path=news"), MT_OK);
    for (int s = 0; s < 3 && rules[i].sets[s] != NULL; s++)
      assert_int_equal(set(&p, "%s", rules[i].sets[s]), MT_OK);
    listen();
    mt_status status = mt_parameters_check(&p);
    heard();
    assert_int_equal(status, rules[i].words != NULL ? MT_ERR_INPUT : MT_OK);
    if (rules[i].words != NULL) expect_said(rules[i].words);
    mt_parameters_destroy(&p);
  }
  mt_parameters p = standard();
  listen();
  assert_int_equal(mt_parameters_check(&p), MT_ERR_INPUT);
  heard();
  expect_said("no corpus: give <corpus path=\"...\"/>");
  mt_parameters_destroy(&p);
}

/* ---- what is made of them ------------------------------------------------------------------- */

static mt_fingerprint fingerprint(const mt_parameters *p, const char *section,
                                  const char *but)
{
  const char *leave_out[2] = {but, NULL};
  mt_hash *hash = mt_hash_begin();
  assert_int_equal(mt_parameters_hash(p, section, leave_out, hash), MT_OK);
  return mt_hash_end(hash);
}

static void test_hash(void **state)
{
  (void)state;
  char room[64];
  mt_parameters usual = standard();
  for (const mt_parameter *at = mt_parameter_table; at->section != NULL; at++) {
    mt_parameters p = standard();
    if (at->text[0] != '\0')
      assert_int_equal(set(&p, "%s.%s=%s", at->section, at->name, at->text), MT_OK);
    mt_fingerprint same = fingerprint(&p, at->section, NULL);
    mt_fingerprint before = fingerprint(&usual, at->section, NULL);
    assert_true(mt_fingerprint_equal(&same, &before));
    assert_int_equal(set(&p, "%s.%s=%s", at->section, at->name, another(at, room)),
                     MT_OK);
    for (const mt_section *s = mt_section_table; s->name != NULL; s++) {
      mt_fingerprint a = fingerprint(&usual, s->name, NULL),
                     b = fingerprint(&p, s->name, NULL);
      assert_int_equal(mt_fingerprint_equal(&a, &b), strcmp(s->name, at->section) != 0);
    }
    mt_fingerprint a = fingerprint(&usual, at->section, at->name);
    mt_fingerprint b = fingerprint(&p, at->section, at->name);
    assert_true(mt_fingerprint_equal(&a, &b));
    mt_parameters_destroy(&p);
  }
  mt_parameters_destroy(&usual);
}

static void test_json(void **state)
{
  (void)state;
  char room[64];
  for (int turn = 0; turn < 2; turn++) {
    mt_parameters p = standard(), back = standard();
    for (const mt_parameter *at = mt_parameter_table; at->section != NULL; at++)
      if (turn == 1 || at->text[0] == '\0')
        assert_int_equal(set(&p, "%s.%s=%s", at->section, at->name, another(at, room)),
                         MT_OK);
    json_t *json = mt_parameters_json(&p);
    assert_non_null(json);
    for (const mt_parameter *at = mt_parameter_table; at->section != NULL; at++) {
      json_t *value = json_object_get(json_object_get(json, at->section), at->name);
      assert_non_null(value);
      char *text = json_is_string(value) ? strdup(json_string_value(value))
                                         : json_dumps(value, JSON_ENCODE_ANY);
      assert_int_equal(set(&back, "%s.%s=%s", at->section, at->name, text), MT_OK);
      free(text);
      text = mt_parameter_text(at, &p);
      expect_text(&back, at, text);
      free(text);
    }
    json_decref(json);
    mt_parameters_destroy(&p);
    mt_parameters_destroy(&back);
  }
}

static void test_real_text(void **state)
{
  (void)state;
  mt_parameters p = standard(), back = standard();
  const mt_parameter *at = mt_parameter_find("umap", "min_dist");
  for (uint64_t i = 0; i < 2000; i++) {
    p.umap.min_dist = 100 * mt_random_unit(1, MT_STREAM_TEST, i, 0);
    char *text = mt_parameter_text(at, &p);
    assert_int_equal(set(&back, "umap.min_dist=%s", text), MT_OK);
    assert_true(back.umap.min_dist == p.umap.min_dist);
    free(text);
  }
  mt_parameters_destroy(&p);
  mt_parameters_destroy(&back);
}

static char *written(void (*write)(FILE *))
{
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  write(out);
  fclose(out);
  return text;
}

static void print_changed(FILE *out)
{
  mt_parameters p = standard();
  assert_int_equal(set(&p, "lda.n_components=20"), MT_OK);
  mt_parameters_print(&p, "lda", out);
  mt_parameters_destroy(&p);
}

static void help_all(FILE *out)
{
  assert_true(mt_parameters_help(NULL, out));
  assert_false(mt_parameters_help("no-such", out));
}

static void test_listings(void **state)
{
  (void)state;
  char *print = written(print_changed), *help = written(help_all);
  char *manual = written(mt_parameters_manual);
  assert_non_null(strstr(print, "lda.n_components                   20\n"));
  assert_non_null(strstr(print, "lda.max_iter                       5  (default)\n"));
  assert_null(strstr(print, "umap"));
  for (const mt_parameter *at = mt_parameter_table; at->section != NULL; at++) {
    char line[128];
    snprintf(line, sizeof line, "\n  %s=\"%s\"\n", at->name, at->text);
    assert_non_null(strstr(help, line));
    snprintf(line, sizeof line, ".BR %s \"=", at->name);
    assert_non_null(strstr(manual, line));
  }
  free(print);
  free(help);
  free(manual);
}

/* The decks that come with the program; make check runs in the project's folder. */
static void test_inputs(void **state)
{
  (void)state;
  static const char *const paths[] = {"inputs/every-parameter.xml", "inputs/demo.xml",
                                      "inputs/reuters.xml"};
  clock_t start = clock();
  for (int i = 0; i < 3; i++) {
    char *xml = NULL;
    size_t size = 0;
    mt_parameters p = {0};
    assert_int_equal(mt_deck_read(paths[i], &xml, &size), MT_OK);
    if (mt_deck_parse(paths[i], xml, size, &p) != MT_OK) fail_msg("%s", paths[i]);
    assert_int_equal(mt_parameters_check(&p), MT_OK);
    if (i == 0) { /* else: metatopics help --deck > inputs/every-parameter.xml */
      char *now = written(mt_deck_every_parameter);
      assert_int_equal(strlen(now), size);
      assert_memory_equal(now, xml, size);
      free(now);
    }
    mt_parameters_destroy(&p);
    free(xml);
  }
  assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 3);
}

static void test_read(void **state)
{
  (void)state;
  char *xml = NULL;
  size_t size = 0;
  static const char *const bad[][2] = {
      {"no/such.xml", "cannot open the deck no/such.xml"},
      {"/", "/ is a folder"},
      {"/dev/zero", "a deck has at most 262144 bytes"}};
  for (int i = 0; i < 3; i++) {
    listen();
    assert_int_equal(mt_deck_read(bad[i][0], &xml, &size), MT_ERR_INPUT);
    heard();
    expect_said(bad[i][1]);
  }
}

static void test_locate(void **state)
{
  (void)state;
  static const char xml[] =
      "<?xml version='1.0'?>\n<!-- <a\nb='>'> -->\n<r>\n<a b='\n c='\n"
      "c = \"1\" d='2'/>\n<a\nc='3'/></r>";
  assert_int_equal(mt_locate(xml, sizeof xml - 1, 0, NULL), 4);
  assert_int_equal(mt_locate(xml, sizeof xml - 1, 1, NULL), 5);
  assert_int_equal(mt_locate(xml, sizeof xml - 1, 1, "b"), 5);
  assert_int_equal(mt_locate(xml, sizeof xml - 1, 1, "c"), 7);
  assert_int_equal(mt_locate(xml, sizeof xml - 1, 1, "none"), 5);
  assert_int_equal(mt_locate(xml, sizeof xml - 1, 2, "c"), 9);
  assert_int_equal(mt_locate(xml, sizeof xml - 1, 3, NULL), 0);
}

static void test_nearest(void **state)
{
  (void)state;
  static const char *const words[] = {"run", "check", "n_components", NULL};
  assert_string_equal(mt_nearest("rnu", words), "run");
  assert_string_equal(mt_nearest("CHECK", words), "check");
  assert_string_equal(mt_nearest("ncomponent", words), "n_components");
  assert_null(mt_nearest("alpha", words));
  assert_null(mt_nearest("", words));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_defaults),    cmocka_unit_test(test_ranges),
    cmocka_unit_test(test_text_length), cmocka_unit_test(test_frequencies),
    cmocka_unit_test(test_seeds),       cmocka_unit_test(test_picture_formats),
    cmocka_unit_test(test_locale),      cmocka_unit_test(test_hostile),
    cmocka_unit_test(test_flood),       cmocka_unit_test(test_good_decks),
    cmocka_unit_test(test_schema),      cmocka_unit_test(test_set_errors),
    cmocka_unit_test(test_rules),       cmocka_unit_test(test_hash),
    cmocka_unit_test(test_json),        cmocka_unit_test(test_real_text),
    cmocka_unit_test(test_listings),    cmocka_unit_test(test_inputs),
    cmocka_unit_test(test_read),        cmocka_unit_test(test_locate),
    cmocka_unit_test(test_nearest),
};

MT_TEST_MAIN(tests)
