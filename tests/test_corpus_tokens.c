/* RANKS 1
 * Tokens against scikit-learn's CountVectorizer (tests/data/corpus.json, made by
 * tools/reference/corpus.py), and what no text file holds. */
#include "test.h"

#include "corpus/stop_words.h"
#include "corpus/terms.h"
#include "corpus/tokens.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static json_t *fixture;

static int load(void **state)
{
  (void)state;
  json_error_t error;
  fixture = json_load_file("tests/data/corpus.json", JSON_ALLOW_NUL, &error);
  if (fixture == NULL) fprintf(stderr, "tests/data/corpus.json: %s\n", error.text);
  return fixture == NULL;
}

static int unload(void **state)
{
  (void)state;
  json_decref(fixture);
  return 0;
}

static mt_status collect(void *context, int64_t n, const mt_span *tokens)
{
  assert_true(n >= 1 && n <= MT_TOKENS_MOST);
  for (int64_t t = 0; t < n; t++)
    assert_int_equal(
        json_array_append_new(context, json_stringn(tokens[t].at, tokens[t].size)), 0);
  return MT_OK;
}

static json_t *tokens_of(const char *text, size_t size, bool lowercase)
{
  mt_buffer scratch = {0};
  json_t *tokens = json_array();
  assert_int_equal(mt_tokenize(text, size, lowercase, &scratch, collect, tokens),
                   MT_OK);
  mt_buffer_destroy(&scratch);
  return tokens;
}

static void expect(const json_t *row, const char *name, bool lowercase)
{
  const json_t *text = json_object_get(row, "text"), *want = json_object_get(row, name);
  json_t *got = tokens_of(json_string_value(text), json_string_length(text), lowercase);
  if (!json_equal(got, want)) {
    char *got_text = json_dumps(got, 0), *want_text = json_dumps(want, 0);
    fail_msg("\"%s\" (%s): got %s, want %s", json_string_value(text), name, got_text,
             want_text);
  }
  json_decref(got);
}

static void test_as_scikit_learn(void **state)
{
  (void)state;
  size_t i;
  json_t *row;
  assert_true(json_array_size(json_object_get(fixture, "tokens")) > 15);
  json_array_foreach(json_object_get(fixture, "tokens"), i, row)
  {
    expect(row, "lower", true);
    expect(row, "same", false);
  }
}

/* Bytes that are no UTF-8 end a token and nothing else. */
static void test_wrong_bytes(void **state)
{
  (void)state;
  static const char text[] = "ab\xFF"
                             "cd \xC3 ef\xE2\x82 gh\xED\xA0\x80ij \xF0\x9F";
  json_t *got = tokens_of(text, sizeof text - 1, true);
  json_t *want = json_pack("[s,s,s,s,s]", "ab", "cd", "ef", "gh", "ij");
  assert_true(json_equal(got, want));
  json_decref(got);
  json_decref(want);
}

static mt_status count(void *context, int64_t n, const mt_span *tokens)
{
  int64_t *seen = context;
  seen[0] += n;
  for (int64_t t = 0; t < n; t++)
    if ((int64_t)tokens[t].size > seen[1]) seen[1] = (int64_t)tokens[t].size;
  return MT_OK;
}

static void test_large(void **state)
{
  (void)state;
  enum { SIZE = 10 << 20 };
  mt_buffer scratch = {0};
  char *text = malloc(SIZE);
  int64_t words[2] = {0, 0}, one[2] = {0, 0};
  assert_non_null(text);
  for (int i = 0; i < SIZE; i++) text[i] = "Words, and 10 MB\n"[i % 17];
  assert_int_equal(mt_tokenize(text, SIZE, true, &scratch, count, words), MT_OK);
  memset(text, 'Q', SIZE);
  assert_int_equal(mt_tokenize(text, SIZE, true, &scratch, count, one), MT_OK);
  assert_true(words[0] >= SIZE / 17 * 4);
  assert_int_equal(one[0], 1);
  assert_int_equal(one[1], SIZE);
  free(text);
  mt_buffer_destroy(&scratch);
}

static void test_terms(void **state)
{
  (void)state;
  mt_terms terms = {0};
  char word[32];
  int64_t number;
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < 20000; i++) {
      int size = snprintf(word, sizeof word, "w%d", i * 7);
      assert_int_equal(mt_terms_add(&terms, word, (size_t)size, &number), MT_OK);
      assert_int_equal(number, i);
    }
  assert_int_equal(terms.n, 20000);
  assert_int_equal(mt_terms_find(&terms, "w7", 2), 1);
  assert_int_equal(mt_terms_find(&terms, "w8", 2), -1);
  mt_terms_destroy(&terms);
  assert_int_equal(mt_terms_find(&terms, "w7", 2), -1);
}

static void test_stop_words(void **state)
{
  (void)state;
  mt_terms words = {0};
  mt_corpus_options options = {.stop_words = "english", .lowercase = true};
  assert_int_equal(mt_stop_words_load(&mt_test_world, &options, &words), MT_OK);
  assert_int_equal(words.n, 318);
  assert_true(mt_terms_find(&words, "whereupon", 9) >= 0);
  mt_terms_destroy(&words);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_as_scikit_learn, load, unload),
    cmocka_unit_test(test_wrong_bytes),
    cmocka_unit_test(test_large),
    cmocka_unit_test(test_terms),
    cmocka_unit_test(test_stop_words),
};

MT_TEST_MAIN(tests)
