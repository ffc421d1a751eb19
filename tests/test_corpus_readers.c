/* RANKS 1
 * The four readers and the dates on small texts in memory, hostile ones above all. */
#include "heard.h"
#include "test.h"

#include "base/random.h"
#include "corpus/buffer.h"
#include "corpus/csv_rows.h"
#include "corpus/date.h"
#include "corpus/decode.h"
#include "corpus/flat_json.h"
#include "corpus/readers.h"
#include "corpus/sgml_parts.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef mt_status (*reader)(const mt_piece *, const mt_corpus_options *, mt_sink,
                            void *);

/* ---- what a reader gave: "id|date|title|text;" a record, "-" for what is absent ------------- */

static mt_buffer given;
static int64_t given_records;

static void put(const char *bytes, size_t size)
{
  assert_int_equal(mt_buffer_add(&given, bytes, size), MT_OK);
  given.bytes[given.size] = '\0';
}

static void put_span(mt_span span)
{
  if (span.at == NULL)
    put("-", 1);
  else
    put(span.at, span.size);
}

static mt_status on_record(void *context, const mt_record *record)
{
  (void)context;
  given_records++;
  if (record->skip != MT_SKIP_NONE) {
    put("(", 1);
    put(mt_skip_name(record->skip), strlen(mt_skip_name(record->skip)));
    put(");", 2);
    return MT_OK;
  }
  put_span(record->id);
  put("|", 1);
  put_span(record->date);
  put("|", 1);
  put_span(record->title);
  put("|", 1);
  put_span(record->text);
  put(";", 1);
  return MT_OK;
}

static mt_corpus_options options;

static int standard(void **state)
{
  (void)state;
  options = (mt_corpus_options){.encoding = "auto",
                                .strict = true,
                                .id_field = "id",
                                .date_field = "date",
                                .title_field = "title",
                                .text_field = "text"};
  return 0;
}

static mt_status read_bytes(reader read, const char *bytes, size_t size)
{
  mt_piece piece = {
      .name = "in", .bytes = bytes, .size = size, .line = 1, .folder = "1987-03"};
  given.size = given_records = 0;
  put("", 0);
  mt_listen();
  mt_status status = read(&piece, &options, on_record, NULL);
  mt_heard();
  return status;
}

static void expect(reader read, const char *text, const char *want)
{
  mt_status status = read_bytes(read, text, strlen(text));
  if (status != MT_OK || strcmp(given.bytes, want) != 0)
    fail_msg("%s\nstatus %d, got: %s\nwant: %s\nsaid: %s", text, (int)status,
             given.bytes, want, mt_said.text);
}

/* An error with these words; the same text with strict="false" gives `lenient`. */
static void expect_damage(reader read, const char *text, const char *words,
                          const char *lenient)
{
  assert_int_equal(read_bytes(read, text, strlen(text)), MT_ERR_INPUT);
  MT_EXPECT_SAID(words);
  options.strict = false;
  expect(read, text, lenient);
  assert_string_equal(mt_said.text, "");
  options.strict = true;
}

/* ---- reuters-sgml ------------------------------------------------------------------------- */

#define DOCUMENT(id, date, text)                           \
  "<REUTERS TOPICS=\"YES\" NEWID=\"" id "\">\n<DATE>" date \
  "</DATE>\n<TEXT>&#2;\n" text "</TEXT>\n</REUTERS>\n"

static void test_sgml(void **state)
{
  (void)state;
  expect(mt_reader_sgml, "", "");
  expect(mt_reader_sgml, "<!DOCTYPE lewis SYSTEM \"lewis.dtd\">\n", "");
  expect(mt_reader_sgml,
         "<!DOCTYPE lewis SYSTEM \"lewis.dtd\">\n" DOCUMENT(
             "1", "26-FEB-1987",
             "<TITLE> A &lt;B> </TITLE><DATELINE>x</DATELINE><BODY>c "
             "d\n &#3;</BODY>") DOCUMENT("2", " 1-mar-1987 605", "<BODY></BODY>")
             DOCUMENT("3", "", "no body"),
         "1|26-FEB-1987|A <B>|c d\n &#3;;2| 1-mar-1987 605|-|;3||-|-;");
  expect(mt_reader_sgml,
         "<REUTERS "
         "NEWID=\"7\"><TEXT><BODY>x</BODY></TEXT></REUTERS><REUTERS><BODY>y</BODY>"
         "</REUTERS>",
         "7|-|-|x;in@56|-|-|y;");
}

/* References and bytes that XML forbids, and & and < that stand for themselves. */
static void test_sgml_characters(void **state)
{
  (void)state;
  expect(mt_reader_sgml,
         DOCUMENT("1", "d",
                  "<BODY>&amp;lt; &lt;x> AT&T & &#65;&#x42; &#5;&#127;"
                  "&#xD800; &nope; &#; &#99999999999; a < b ]]> c\x01"
                  "d</BODY>"),
         "1|d|-|&lt; <x> AT&T & AB &#5;&#127;&#xD800; &nope; &#; &#99999999999; a < b "
         "]]> c d;");
  expect(mt_reader_sgml, DOCUMENT("1", "d", "<BODY>M\xFCnchen</BODY>"),
         "1|d|-|München;");
  expect(mt_reader_sgml, DOCUMENT("1", "d", "<BODY>M\xC3\xBCnchen \xEF\xBF\xBE</BODY>"),
         "1|d|-|München  ;");
  options.encoding = "windows-1252";
  expect(mt_reader_sgml, DOCUMENT("1", "d", "<BODY>\x80 \xFC</BODY>"), "1|d|-|€ ü;");
  options.encoding = "UTF-8";
  expect_damage(mt_reader_sgml,
                DOCUMENT("1", "d", "<BODY>\xFC</BODY>") DOCUMENT("2", "d", ""),
                "in:1: a document that is not UTF-8", "(invalid encoding);2|d|-|-;");
  options.encoding = "UTF-16";
  assert_int_equal(read_bytes(mt_reader_sgml, "", 0), MT_ERR_INPUT);
  MT_EXPECT_SAID("convert the files first");
  options.encoding = "klingon";
  assert_int_equal(read_bytes(mt_reader_sgml, "", 0), MT_ERR_INPUT);
  MT_EXPECT_SAID("klingon");
}

static void test_sgml_damage(void **state)
{
  (void)state;
  static const char first[] = DOCUMENT("1", "d", "<BODY>x</BODY>");
  char text[1024];
  snprintf(text, sizeof text,
           "%s<REUTERS NEWID=\"2\">\n<DATE>d</DATE><BODY>cut in the mid", first);
  expect_damage(mt_reader_sgml, text,
                "in:6: the document <REUTERS NEWID=\"2\"> has no </REUTERS>",
                "1|d|-|x;(damaged);");
  snprintf(text, sizeof text, "<REUTERS NEWID=\"2\"><BODY>cut %s", first);
  expect_damage(mt_reader_sgml, text, "in:1: the document", "(damaged);1|d|-|x;");
  snprintf(text, sizeof text, "%s<REUT", first);
  expect_damage(mt_reader_sgml, text, "in:5: a document is cut inside its <REUTERS tag",
                "1|d|-|x;(damaged);");
  snprintf(text, sizeof text, "%s<REU\n%s", first, first); /* whatever comes after it */
  expect_damage(mt_reader_sgml, text, "in:5: a document is cut inside its <REUTERS tag",
                "1|d|-|x;(damaged);1|d|-|x;");
  snprintf(text, sizeof text, "%s<REUTERS", first);
  expect_damage(mt_reader_sgml, text, "in:6: the document <REUTERS> has no",
                "1|d|-|x;(damaged);");
  snprintf(text, sizeof text, "<REUTERS NEWID=\"9\"><BODY>a</TITLE></REUTERS>%s",
           first);
  expect_damage(mt_reader_sgml, text, "in:1: document NEWID=\"9\" is not well formed",
                "(damaged);1|d|-|x;");
  /* no entity is ever expanded, nothing is fetched */
  snprintf(text, sizeof text,
           "<REUTERS><!DOCTYPE a [<!ENTITY b SYSTEM "
           "\"/etc/passwd\">]><BODY>&b;</BODY></REUTERS>%s",
           first);
  expect_damage(mt_reader_sgml, text, "not well formed", "(damaged);1|d|-|x;");
}

/* A document that is whole but nests deep, and one of 10 MB. */
static void test_sgml_large(void **state)
{
  (void)state;
  enum { SIZE = 10 << 20 };
  char *text = malloc(SIZE + 200);
  assert_non_null(text);
  size_t at = (size_t)sprintf(text, "<REUTERS NEWID=\"1\"><BODY>");
  size_t body = at;
  for (; at < SIZE; at++) text[at] = "words & more \n"[at % 14];
  at += (size_t)sprintf(text + at, "</BODY></REUTERS>");
  assert_int_equal(read_bytes(mt_reader_sgml, text, at), MT_OK);
  assert_int_equal(given_records, 1);
  assert_int_equal(given.size, (int64_t)(SIZE - body) + 7); /* 1|-|-| and ; */
  at = (size_t)sprintf(text, "<REUTERS NEWID=\"1\">");
  for (int i = 0; i < 300000; i++) at += (size_t)sprintf(text + at, "<A>");
  sprintf(text + at, "</REUTERS>");
  expect_damage(mt_reader_sgml, text, "not well formed", "(damaged);");
  free(text);
}

/* What the scan of plain markup takes, libxml2 reads alike: a comment sends it there. Returns
 * whether the scan took it. */
static bool check_plain(const char *text, size_t size)
{
  static mt_sgml_parts parts;
  static const char closing[] = "</REUTERS>", comment[] = "<!---->";
  const size_t tail = sizeof closing - 1;
  char *other = malloc(size + sizeof comment);
  if (!mt_utf8_valid(text, size) || !mt_sgml_plain((mt_span){text, size}, &parts) ||
      memcmp(text + size - tail, closing, tail) != 0) {
    free(other);
    return false;
  }
  memcpy(other, text, size - tail);
  memcpy(other + size - tail, comment, sizeof comment - 1);
  memcpy(other + size - tail + sizeof comment - 1, closing, tail);
  assert_int_equal(read_bytes(mt_reader_sgml, other, size + sizeof comment - 1), MT_OK);
  mt_buffer by_parser = given;
  given = (mt_buffer){NULL, 0, 0};
  assert_int_equal(read_bytes(mt_reader_sgml, text, size), MT_OK);
  if (strcmp(given.bytes, by_parser.bytes) != 0)
    fail_msg("%.*s\ngives %s\nand %s", (int)size, text, given.bytes, by_parser.bytes);
  mt_buffer_destroy(&by_parser);
  free(other);
  return true;
}

/* Each byte of a document changed to some that mean something. */
static void test_sgml_plain(void **state)
{
  (void)state;
  static const char text[] =
      "<REUTERS NEWID=\"7\" A='b'><DATE>1-MAR-1987</DATE>"
      "<UNKNOWN> &#5;f < g ]]></UNKNOWN><TITLE>&lt;X> &amp; Y</TITLE>\n<TEXT><BODY>a "
      "&#65;"
      "&#x42;\n\tb&c <I>d</I> &#3;<BR/>\xC3\xBC</BODY><BODY>e</BODY></TEXT></REUTERS>";
  static const char bytes[] = "<>/&;#x\"'= A_!?]\t\n\r\x01";
  size_t size = sizeof text - 1;
  int64_t taken = 0;
  char copy[sizeof text];
  memcpy(copy, text, sizeof text);
  options.strict = false;
  assert_true(check_plain(copy, size));
  assert_string_equal(given.bytes, "7|1-MAR-1987|<X> & Y|a AB\n\tb&c d &#3;\xC3\xBC"
                                   "e;");
  for (size_t i = sizeof "<REUTERS" - 1; i < size; i++) {
    for (size_t b = 0; b < sizeof bytes - 1; b++) {
      copy[i] = bytes[b];
      taken += check_plain(copy, size);
    }
    copy[i] = text[i];
  }
  assert_true(taken > 1000);
}

/* ---- jsonl ---------------------------------------------------------------------------------- */

static void test_jsonl(void **state)
{
  (void)state;
  expect(mt_reader_jsonl, "", "");
  expect(mt_reader_jsonl, "\n \r\n\n", "");
  expect(mt_reader_jsonl,
         "\xEF\xBB\xBF{\"id\": \"a\", \"date\": \"1987-02-26\", \"title\": \"t\", "
         "\"text\": \"x\\n\xC3\xBC\"}\r\n"
         "{\"id\": 12345678901, \"date\": 1987, \"text\": \"y\", \"other\": [1, {}]}\n"
         "{\"text\": null}",
         "a|1987-02-26|t|x\nü;12345678901|1987|-|y;in@134|-|-|-;");
  expect(mt_reader_jsonl,
         "{\"id\": 1, \"big\": 123456789012345678901234567890, \"text\": \"z\"}\n",
         "1|-|-|z;");
  options.id_field = "name";
  options.text_field = "body";
  expect(mt_reader_jsonl,
         "{\"name\": \"n\", \"id\": 3, \"body\": \"b\", \"text\": \"no\"}\n",
         "n|-|-|b;");
}

static void test_jsonl_damage(void **state)
{
  (void)state;
  expect_damage(mt_reader_jsonl,
                "{\"text\": \"a\"}\n\n{\"text\": \"b\n{\"text\": \"c\"}\n",
                "in:3: a line that is not JSON", "in@0|-|-|a;(damaged);in@27|-|-|c;");
  expect_damage(mt_reader_jsonl,
                "{\"text\": \"a\"}\n{\"text\": \"\xFC\"}\n{\"text\": \"c\"}\n",
                "in:2: a line that is not UTF-8 text",
                "in@0|-|-|a;(invalid encoding);in@28|-|-|c;");
  expect_damage(mt_reader_jsonl, "[1]\n", "in:1: a line that is not a JSON object",
                "(damaged);");
  expect_damage(mt_reader_jsonl, "{} x\n", "in:1: a line that is not JSON",
                "(damaged);");
  expect_damage(mt_reader_jsonl, "{\"id\": 1, \"text\": {\"a\": 1}}\n",
                "in:1: the field \"text\" is not a text", "(damaged);");
  options.encoding = "ISO-8859-1";
  expect(mt_reader_jsonl, "{\"id\": 1, \"text\": \"\xFC\"}\n", "1|-|-|ü;");
}

/* What the quick reader takes jansson takes, and reads the same. Returns whether it took it. */
static bool check_flat(const char *line, size_t size)
{
  static mt_buffer buffer;
  mt_span got[3];
  static const char *const names[] = {"id", "title", "text"};
  const mt_json_field fields[] = {
      {"id", true, &got[0]}, {"title", false, &got[1]}, {"text", false, &got[2]}};
  assert_int_equal(mt_buffer_reserve(&buffer, size), MT_OK);
  if (!mt_utf8_valid(line, size)) return false;
  if (!mt_json_flat((mt_span){line, size}, 3, fields, &buffer)) return false;
  json_t *object = json_loadb(line, size, JSON_ALLOW_NUL, NULL);
  if (!json_is_object(object)) fail_msg("taken: %.*s", (int)size, line);
  for (int f = 0; f < 3; f++) {
    json_t *want = json_object_get(object, names[f]);
    if (json_is_integer(want)) {
      char number[32];
      int length =
          snprintf(number, sizeof number, "%lld", (long long)json_integer_value(want));
      assert_int_equal(got[f].size, length);
      assert_memory_equal(got[f].at, number, (size_t)length);
    } else if (json_is_string(want)) {
      assert_int_equal(got[f].size, json_string_length(want));
      assert_memory_equal(got[f].at, json_string_value(want), got[f].size);
    } else {
      assert_true(want == NULL || json_is_null(want));
      assert_null(got[f].at);
    }
  }
  json_decref(object);
  return true;
}

/* Lines of all kinds, as they are and with each byte changed to some that mean something. */
static void test_flat_json(void **state)
{
  (void)state;
  static const char *const lines[] = {
      "{}",
      " { \"id\" : \"a\", \"text\":\"x\\n\\u00fc\\u20AC \\ud83d\\ude00\\/\" } ",
      "{\"id\": -17, \"n\": [1, -2.5, {\"a\": [], \"b\": {}}, true], \"text\": null}",
      "{\"title\": \"seventeen bytes..\", \"text\": \"\\\"\\\\\\b\\f\\r\\t\", "
      "\"text\": \"2\"}",
      "{\"id\": 999999999999999999, \"x\": false, \"y\": 0.25}",
      "{\"\": \"\", \"t\\u0065xt\": 1, \"text\": \"\\u0000\"}"};
  static const char bytes[] = "\"\\{}[]:,u0-. en\n\x01\xC3";
  int64_t taken = 0;
  for (size_t l = 0; l < sizeof lines / sizeof lines[0]; l++) {
    size_t size = strlen(lines[l]);
    char *line = strdup(lines[l]);
    assert_true(check_flat(line, size) == (l < 5));
    for (size_t i = 0; i < size; i++) {
      check_flat(line, i);
      for (size_t b = 0; b < sizeof bytes - 1; b++) {
        line[i] = bytes[b];
        taken += check_flat(line, size);
      }
      line[i] = lines[l][i];
    }
    free(line);
  }
  assert_true(taken > 500);
}

/* ---- csv ------------------------------------------------------------------------------------ */

static void test_csv(void **state)
{
  (void)state;
  expect(mt_reader_csv, "", "");
  expect(mt_reader_csv, "id,date,title,text\n", "");
  expect(mt_reader_csv,
         "\xEF\xBB\xBFid,date,title,text\r\na,1987-02-26,\"t, "
         "\"\"q\"\"\",\"x\ny\"\r\n\r\nb,,,z",
         "a|1987-02-26|t, \"q\"|x\ny;b|-||z;");
  expect(mt_reader_csv, "text;date\nx;1987\ny;1988\n",
         "in@10|1987|-|x;in@17|1988|-|y;");
  expect(mt_reader_csv, "text\tdate\nx, y\t1987\n", "in@10|1987|-|x, y;");
  assert_int_equal(read_bytes(mt_reader_csv, "id,when,text\n1,2,3\n", 19),
                   MT_ERR_INPUT);
  MT_EXPECT_SAID("no column \"date\" in the header: id,when,text");
  assert_int_equal(read_bytes(mt_reader_csv, "id,date\n1,2\n", 12), MT_ERR_INPUT);
  MT_EXPECT_SAID("no column \"text\"");
}

static void test_csv_damage(void **state)
{
  (void)state;
  expect_damage(mt_reader_csv, "date,text\n1,\"a\nb\"\n1,2,3\n1,c\n",
                "in:4: a row of 3 fields where the header has 2",
                "in@10|1|-|a\nb;(damaged);in@24|1|-|c;");
  expect_damage(mt_reader_csv, "date,text\n1,a\n1,\"open\nto the end",
                "in:3: a quote that is opened here is not closed",
                "in@10|1|-|a;(damaged);");
  expect_damage(mt_reader_csv, "date,text\n1,a\"b\n", "in:2: a quote inside a field",
                "in@10|1|-|a\"b;");
  expect_damage(mt_reader_csv, "date,text\n1,\xFC\n2,b\n",
                "in:2: a row that is not UTF-8", "(invalid encoding);in@14|2|-|b;");
}

/* Cut wherever a row begins, malformed rows have the same records. */
static void expect_same_in_pieces(const mt_csv_rows *rows, const char *text,
                                  size_t size)
{
  char *whole;
  size_t head = mt_csv_head(rows, text, size);
  int state = MT_CSV_ROW;
  read_bytes(mt_reader_csv, text, size);
  whole = strdup(given.bytes);
  assert_non_null(whole);
  for (size_t at = head; at < size; at++) {
    mt_piece piece = {.name = "in", .bytes = text, .size = at, .line = 1};
    uint8_t map[MT_CSV_STATES];
    for (int s = 0; s < MT_CSV_STATES; s++) map[s] = (uint8_t)s;
    mt_csv_rows_map(rows, map, text + head, at - head);
    assert_int_equal(map[MT_CSV_ROW], state);
    if (state == MT_CSV_ROW) {
      read_bytes(mt_reader_csv, text, at);
      piece.head = (mt_span){text, head};
      piece.bytes = text + at;
      piece.size = size - at;
      piece.offset = (int64_t)at;
      assert_int_equal(mt_reader_csv(&piece, &options, on_record, NULL), MT_OK);
      if (strcmp(given.bytes, whole) != 0)
        fail_msg("cut at %zu of \"%.*s\": %s, not %s", at, (int)size, text, given.bytes,
                 whole);
    }
    state = mt_csv_rows_pass(rows, state, text + at, 1);
  }
  free(whole);
}

static void test_csv_rows(void **state)
{
  (void)state;
  static const char bytes[] = "ab,,\"\"\"\n\n\r \t;";
  mt_csv_rows rows;
  char text[80] = "\xEF\xBB\xBF\r\n date,text\r\n";
  const size_t head = strlen(text);
  assert_int_equal(mt_csv_rows_make(',', &rows), MT_OK);
  assert_int_equal(mt_csv_head(&rows, text, head), head - 1);
  options.strict = false;
  for (uint64_t i = 0; i < 3000; i++) {
    size_t size = head + i % 50;
    for (size_t at = head; at < size; at++) {
      uint32_t words[4];
      mt_random_words(1, MT_STREAM_TEST, i, (uint32_t)at, 0, words);
      text[at] = bytes[words[0] % (sizeof bytes - 1)];
    }
    expect_same_in_pieces(&rows, text, size);
  }
}

/* ---- text ------------------------------------------------------------------------------------ */

static void test_text(void **state)
{
  (void)state;
  expect(mt_reader_text, "", "in|1987-03|-|;");
  expect(mt_reader_text, "\xEF\xBB\xBFx\n", "in|1987-03|-|x\n;");
  expect_damage(mt_reader_text, "\xFC", "in:1: not UTF-8 text", "(invalid encoding);");
  options.encoding = "ISO-8859-1";
  expect(mt_reader_text, "\xFC", "in|1987-03|-|ü;");
}

/* ---- dates ----------------------------------------------------------------------------------- */

static void expect_period(const char *text, mt_period_kind kind, const char *want)
{
  mt_date date = {0};
  int64_t key = 0, again = 0;
  char name[MT_PERIOD_NAME] = "-";
  if (mt_date_read(text, strlen(text), &date) && mt_period_of(kind, &date, &key)) {
    mt_period_name(kind, key, name);
    assert_true(mt_period_named(kind, name, strlen(name), &again));
    assert_int_equal(key, again);
  }
  if (strcmp(name, want) != 0) fail_msg("\"%s\": got %s, want %s", text, name, want);
}

static void test_dates(void **state)
{
  (void)state;
  static const char *const readable[] = {"26-FEB-1987 15:01:01.79",
                                         "26-feb-1987 605:00:00",
                                         "26-Feb-1987garbage",
                                         " 26-FEB-1987",
                                         "1987-02-26",
                                         "1987-02-26T15:01:01Z",
                                         "1987-02-26 junk",
                                         "19870226",
                                         "1987-02",
                                         " 1987-02\n"};
  static const char *const unreadable[] = {"",
                                           " ",
                                           "30-FEB-1987 01:02:03",
                                           "29-FEB-1987",
                                           "0-FEB-1987",
                                           "26-FOO-1987",
                                           "26-FEB-87",
                                           "26-FEB-19877",
                                           "1987-02-30",
                                           "1987-13",
                                           "1987-2",
                                           "1987-02x",
                                           "0000-01",
                                           "1987-02-261",
                                           "198702",
                                           "Feb 26, 1987",
                                           "1987-Q5",
                                           "1987-W54",
                                           "1987-W",
                                           "-",
                                           "1987-"};
  for (size_t i = 0; i < sizeof readable / sizeof *readable; i++)
    expect_period(readable[i], MT_PERIOD_MONTH, "1987-02");
  for (size_t i = 0; i < sizeof unreadable / sizeof *unreadable; i++)
    expect_period(unreadable[i], MT_PERIOD_MONTH, "-");
  expect_period(" 3-MAR-1987", MT_PERIOD_DAY, "1987-03-03");
  expect_period("29-FEB-1988", MT_PERIOD_DAY, "1988-02-29");
  expect_period("1900-02-29", MT_PERIOD_DAY, "-");
  expect_period("2000-02-29", MT_PERIOD_DAY, "2000-02-29");
}

static void test_periods(void **state)
{
  (void)state;
  int64_t key;
  expect_period("1987-11-30", MT_PERIOD_YEAR, "1987");
  expect_period("1987", MT_PERIOD_YEAR, "1987");
  expect_period("1987", MT_PERIOD_MONTH, "-");
  expect_period("1987-02", MT_PERIOD_DAY, "-");
  expect_period("1987-11-30", MT_PERIOD_QUARTER, "1987-Q4");
  expect_period("1987-Q3", MT_PERIOD_QUARTER, "1987-Q3");
  expect_period("1987-Q3", MT_PERIOD_MONTH, "-");
  /* ISO weeks, from the standard's table of years that begin on each day */
  expect_period("2005-01-01", MT_PERIOD_WEEK, "2004-W53");
  expect_period("2005-12-31", MT_PERIOD_WEEK, "2005-W52");
  expect_period("2007-01-01", MT_PERIOD_WEEK, "2007-W01");
  expect_period("2008-12-29", MT_PERIOD_WEEK, "2009-W01");
  expect_period("2010-01-03", MT_PERIOD_WEEK, "2009-W53");
  expect_period("1987-02-26", MT_PERIOD_WEEK, "1987-W09");
  expect_period("1987-W09", MT_PERIOD_WEEK, "1987-W09");
  assert_false(mt_period_named(MT_PERIOD_MONTH, "1987-3", 6, &key));
  assert_false(mt_period_named(MT_PERIOD_MONTH, "1987-03-01", 10, &key));
  assert_false(mt_period_named(MT_PERIOD_YEAR, "all", 3, &key));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(test_sgml, standard),
    cmocka_unit_test_setup(test_sgml_characters, standard),
    cmocka_unit_test_setup(test_sgml_plain, standard),
    cmocka_unit_test_setup(test_sgml_damage, standard),
    cmocka_unit_test_setup(test_sgml_large, standard),
    cmocka_unit_test_setup(test_jsonl, standard),
    cmocka_unit_test_setup(test_jsonl_damage, standard),
    cmocka_unit_test_setup(test_flat_json, standard),
    cmocka_unit_test_setup(test_csv, standard),
    cmocka_unit_test_setup(test_csv_damage, standard),
    cmocka_unit_test_setup(test_csv_rows, standard),
    cmocka_unit_test_setup(test_text, standard),
    cmocka_unit_test_setup(test_dates, standard),
    cmocka_unit_test_setup(test_periods, standard),
};

MT_TEST_MAIN(tests)
