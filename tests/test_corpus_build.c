/* RANKS 1 2 3 4 7
 * Collections in files to the corpus, and to corpus.h5: the vocabulary and counts of
 * scikit-learn, the same bits for any number of ranks and any form of the input, and what
 * must be refused. With REUTERS_TARBALL: the figures of Reuters-21578. */
#include "heard.h"
#include "test.h"

#include "base/stop.h"
#include "base/random.h"
#include "corpus/buffer.h"
#include "corpus/build.h"
#include "deck/deck.h"
#include "stage/stage.h"
#include "store/folder.h"

#include <archive.h>
#include <archive_entry.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static mt_comm comm;
static mt_parameters parameters;
static char folder[256], path[600];

/* ---- files, made by rank 0 ---------------------------------------------------------------- */

static int set_up(void **state)
{
  (void)state;
  comm = mt_test_world;
  snprintf(folder, sizeof folder, "/tmp/mt_corpus_XXXXXX");
  if (comm.rank == 0 && mkdtemp(folder) == NULL) abort();
  mt_bcast(&comm, 0, sizeof folder, folder);
  if (mt_parameters_default(&parameters) != MT_OK) abort();
  parameters.corpus.min_df = (mt_frequency){1, false};
  parameters.corpus.max_df = (mt_frequency){1, true};
  return 0;
}

static int remove_one(const char *name, const struct stat *info, int flag,
                      struct FTW *at)
{
  (void)info, (void)flag, (void)at;
  return remove(name);
}

static int tear_down(void **state)
{
  (void)state;
  mt_barrier(&comm);
  if (comm.rank == 0) nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  mt_parameters_destroy(&parameters);
  return 0;
}

static void set_text(char **option, const char *value)
{
  free(*option);
  *option = strdup(value);
  assert_non_null(*option);
}

/* corpus.path = the test's folder, or a file in it. */
static void look_at(const char *name)
{
  snprintf(path, sizeof path, "%s%s%s", folder, name[0] != '\0' ? "/" : "", name);
  set_text(&parameters.corpus.path, path);
}

static void write_bytes(const char *name, const char *bytes, size_t size)
{
  if (comm.rank == 0) {
    char where[600], *slash;
    snprintf(where, sizeof where, "%s/%s", folder, name);
    for (slash = strchr(where + strlen(folder) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
      *slash = '\0';
      mkdir(where, 0700);
      *slash = '/';
    }
    FILE *file = fopen(where, "wb");
    if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
      abort();
  }
  mt_barrier(&comm);
}

static void write_file(const char *name, const char *text)
{
  write_bytes(name, text, strlen(text));
}

/* A .tar.gz of members; a name NULL: the bytes alone, compressed. Rank 0. */
static void write_archive(const char *name, int n, const char *const *names,
                          const char *const *texts)
{
  if (comm.rank == 0) {
    char where[600];
    snprintf(where, sizeof where, "%s/%s", folder, name);
    struct archive *out = archive_write_new();
    archive_write_add_filter_gzip(out);
    if (names != NULL)
      archive_write_set_format_pax_restricted(out);
    else
      archive_write_set_format_raw(out);
    if (archive_write_open_filename(out, where) != ARCHIVE_OK) abort();
    for (int i = 0; i < n; i++) {
      struct archive_entry *entry = archive_entry_new();
      archive_entry_set_pathname(entry, names != NULL ? names[i] : "x");
      archive_entry_set_filetype(entry, AE_IFREG);
      archive_entry_set_perm(entry, 0600);
      archive_entry_set_size(entry, (la_int64_t)strlen(texts[i]));
      if (archive_write_header(out, entry) != ARCHIVE_OK) abort();
      archive_write_data(out, texts[i], strlen(texts[i]));
      archive_entry_free(entry);
    }
    if (archive_write_close(out) != ARCHIVE_OK) abort();
    archive_write_free(out);
  }
  mt_barrier(&comm);
}

/* ---- building ------------------------------------------------------------------------------- */

static mt_status build(size_t piece_bytes, mt_built *built)
{
  memset(built, 0, sizeof *built);
  mt_listen();
  mt_status status = mt_corpus_build(&comm, &parameters.corpus, piece_bytes, built);
  mt_heard();
  return status;
}

static void must_build(size_t piece_bytes, mt_built *built)
{
  mt_status status = build(piece_bytes, built);
  if (status != MT_OK) fail_msg("status %d: %s", (int)status, mt_said.text);
}

/* An input error, and some rank says these words. */
static void must_refuse(const char *words)
{
  mt_built built;
  mt_status status = build(MT_PIECE_BYTES, &built);
  int64_t said = strstr(mt_said.text, words) != NULL;
  assert_int_equal(status, MT_ERR_INPUT);
  mt_max_i64(&comm, 1, &said);
  if (!said) fail_msg("said: %s\nnot: %s", mt_said.text, words);
}

static void expect_periods(const mt_built *built, const char *want)
{
  char got[512] = "";
  for (int64_t p = 0; p < built->survey.n_periods; p++) {
    const mt_period *period = &built->survey.periods[p];
    snprintf(got + strlen(got), sizeof got - strlen(got), "%s %lld+%lld;", period->name,
             (long long)period->n_documents, (long long)period->skipped);
  }
  assert_string_equal(got, want);
}

/* ---- as scikit-learn -------------------------------------------------------------------------- */

static mt_frequency frequency_of(const json_t *value)
{
  return (mt_frequency){json_number_value(value), json_is_real(value)};
}

static void take_options(const json_t *options)
{
  mt_corpus_options *corpus = &parameters.corpus;
  const json_t *stop_words = json_object_get(options, "stop_words");
  corpus->min_df = frequency_of(json_object_get(options, "min_df"));
  corpus->max_df = frequency_of(json_object_get(options, "max_df"));
  corpus->max_features = json_integer_value(json_object_get(options, "max_features"));
  corpus->lowercase = !json_is_false(json_object_get(options, "lowercase"));
  set_text(&corpus->stop_words,
           stop_words != NULL ? json_string_value(stop_words) : "none");
}

/* A line a text; the id is its number, the months go round. */
static void write_lines(const char *name, const json_t *texts)
{
  static const char *const dates[] = {"1987-04-01", "1987-03", "1988-01-31T00:00:00"};
  mt_buffer lines = {0};
  size_t i;
  json_t *text;
  json_array_foreach(texts, i, text)
  {
    json_t *line = json_pack("{s:I, s:s, s:O}", "id", (json_int_t)i, "date",
                             dates[i % 3], "text", text);
    char *written = json_dumps(line, JSON_COMPACT);
    assert_int_equal(mt_buffer_add(&lines, written, strlen(written)), MT_OK);
    assert_int_equal(mt_buffer_add(&lines, "\n", 1), MT_OK);
    free(written);
    json_decref(line);
  }
  write_bytes(name, lines.bytes, (size_t)lines.size);
  mt_buffer_destroy(&lines);
}

static void expect_terms(const mt_vocabulary *vocabulary, const json_t *terms)
{
  assert_int_equal(vocabulary->terms.n, json_array_size(terms));
  for (int64_t t = 0; t < vocabulary->terms.n; t++) {
    size_t size;
    const char *term = mt_term(&vocabulary->terms, t, &size);
    const json_t *want = json_array_get(terms, (size_t)t);
    assert_int_equal(size, json_string_length(want));
    assert_memory_equal(term, json_string_value(want), size);
  }
}

static int64_t number_at(const json_t *array, int64_t i)
{
  return json_integer_value(json_array_get(array, (size_t)i));
}

static void expect_row(const mt_built *built, int64_t row, const json_t *want)
{
  const json_t *indptr = json_object_get(want, "indptr");
  const json_t *indices = json_object_get(want, "indices"),
               *data = json_object_get(want, "data");
  int64_t document = strtoll(built->ids[row], NULL, 10);
  int64_t from = number_at(indptr, document),
          n = number_at(indptr, document + 1) - from;
  int64_t at = built->counts.indptr[row];
  assert_int_equal(built->counts.indptr[row + 1] - at, n);
  for (int64_t e = 0; e < n; e++) {
    assert_int_equal(built->counts.indices[at + e], number_at(indices, from + e));
    assert_int_equal(built->counts.data[at + e], number_at(data, from + e));
  }
}

/* Documents ascend by period, then by number; each as it must be. */
static void expect_documents(const mt_built *built, const json_t *want)
{
  static const int period_of[] = {1, 0, 2};
  int64_t before_period = -1, before = -1, n = built->counts.n_documents;
  assert_int_equal(built->survey.n_documents,
                   json_array_size(json_object_get(want, "texts")) -
                       (size_t)built->survey.skipped[MT_SKIP_EMPTY_BODY]);
  for (int64_t i = 0; i < n; i++) {
    int64_t document = strtoll(built->ids[i], NULL, 10), period = built->period_of[i];
    assert_int_equal(period, period_of[document % 3]);
    assert_true(period > before_period || document > before);
    before_period = period;
    before = document;
    expect_row(built, i, want);
  }
  int64_t part = mt_part_count(built->survey.n_documents, comm.size, comm.rank);
  assert_int_equal(n, part);
}

static void test_as_scikit_learn(void **state)
{
  (void)state;
  json_error_t error;
  json_t *fixture = json_load_file("tests/data/corpus.json", JSON_ALLOW_NUL, &error),
         *one;
  size_t i;
  assert_non_null(fixture);
  assert_true(json_array_size(json_object_get(fixture, "collections")) >= 6);
  json_array_foreach(json_object_get(fixture, "collections"), i, one)
  {
    static const size_t pieces[] = {1, 200, MT_PIECE_BYTES};
    mt_built built;
    take_options(json_object_get(one, "options"));
    write_lines("in.jsonl", json_object_get(one, "texts"));
    look_at("in.jsonl");
    must_build(pieces[i % 3], &built);
    expect_terms(&built.vocabulary, json_object_get(one, "terms"));
    expect_documents(&built, one);
    assert_int_equal(built.n_stored, json_array_size(json_object_get(one, "data")));
    mt_built_destroy(&built);
    mt_barrier(&comm);
  }
  json_decref(fixture);
}

/* ---- one content, many forms ------------------------------------------------------------------- */

static const char *const three_names[] = {"c.jsonl", "a.jsonl", "b.jsonl"};
static const char *const three_texts[] = {
    "{\"id\": 5, \"date\": \"1987-04\", \"text\": \"five gold rings\"}\n"
    "{\"id\": 6, \"date\": \"1987-03\", \"text\": \"geese a-laying\"}",
    "{\"id\": 1, \"date\": \"1987-04\", \"text\": \"partridge in a pear tree\"}\n\n"
    "{\"id\": 2, \"date\": \"1987-03\", \"text\": \"two turtle doves, two\"}\n",
    "{\"id\": 3, \"date\": \"1987-03\", \"title\": \"\xC3\xA4\", \"text\": \"three "
    "french hens\"}\r\n"
    "{\"id\": 4, \"date\": \"1987-04\", \"text\": \"four calling birds\"}\r\n"};

/* What the content's fingerprint must be, on any number of ranks. */
static const char three_content[] = "4f9d765ae0af72740f1d2f54db1abacd";

static void expect_three(size_t piece_bytes)
{
  static const char *const order[] = {"2", "3", "6", "1", "4", "5"};
  mt_built built;
  must_build(piece_bytes, &built);
  for (int64_t i = 0; i < built.counts.n_documents; i++)
    assert_string_equal(built.ids[i], order[built.first + i]);
  expect_periods(&built, "1987-03 3+0;1987-04 3+0;");
  assert_int_equal(built.n_counted, 19);
  assert_int_equal(built.n_stored, 18);
  assert_string_equal(built.content.hex, three_content);
  mt_built_destroy(&built);
}

static void test_forms(void **state)
{
  (void)state;
  for (int i = 0; i < 3; i++) write_file(three_names[i], three_texts[i]);
  look_at("");
  for (size_t piece_bytes = 1; piece_bytes < 300; piece_bytes += 23)
    expect_three(piece_bytes);
  comm.max_message = 7;
  expect_three(10);
  comm.max_message = mt_test_world.max_message;
  write_archive("all.tar.gz", 3, three_names, three_texts);
  look_at("all.tar.gz"); /* members in another order */
  expect_three(1);
  expect_three(MT_PIECE_BYTES);
}

static void test_compressed_files(void **state)
{
  (void)state;
  write_file(three_names[1], three_texts[1]);
  write_file("notes.md", "not a document");
  write_file(".hidden.jsonl", "not a document");
  write_archive("b.jsonl.gz", 1, NULL, &three_texts[2]);
  write_archive("c.tgz", 1, three_names, three_texts);
  look_at("");
  expect_three(1);
  expect_three(MT_PIECE_BYTES);
}

static void test_csv_and_text(void **state)
{
  (void)state;
  write_file(
      "csv/x.csv",
      "id,date,title,text\n1,1987-04,,partridge in a pear tree\n"
      "2,1987-03,,\"two turtle doves, two\"\n3,1987-03,\xC3\xA4,three french hens\n");
  write_file("csv/y.csv",
             "text,date,id\nfour calling birds,1987-04,4\nfive gold rings,1987-04,5\n"
             "geese a-laying,1987-03,6\n");
  look_at("csv");
  expect_three(1);
  write_file("text/1987-04/1", "partridge in a pear tree");
  write_file("text/1987-04/2", "four calling birds");
  write_file("text/1987-03/1.txt", "two turtle doves, two");
  write_file("text/1987-03/empty", " \n");
  write_file("text/other/3", "x");
  look_at("text");
  mt_built built;
  must_build(1, &built);
  expect_periods(&built, "1987-03 1+1;1987-04 2+0;");
  assert_int_equal(built.survey.skipped[MT_SKIP_UNREADABLE_DATE], 1);
  assert_int_equal(built.survey.skipped[MT_SKIP_EMPTY_BODY], 1);
  for (int64_t i = 0; i < built.counts.n_documents; i++)
    assert_string_equal(built.ids[i], ((const char *[]){"1987-03/1.txt", "1987-04/1",
                                                        "1987-04/2"})[built.first + i]);
  mt_built_destroy(&built);
}

/* ---- shares ------------------------------------------------------------------------------- */

/* What the ranks read of a file: in `seen`, how often each identifier was met by this one. */
typedef mt_status (*record_reader)(const mt_piece *, const mt_corpus_options *, mt_sink,
                                   void *);
static record_reader reader_of_shares;
static size_t longest_piece;

static mt_status on_one(void *context, const mt_record *record)
{
  int64_t *seen = context;
  char id[8] = "";
  memcpy(id, record->id.at, record->id.size < 7 ? record->id.size : 7);
  seen[atoi(id)]++;
  return MT_OK;
}

static mt_status on_piece(void *context, int64_t member, const mt_piece *piece)
{
  (void)member;
  if (piece->size > longest_piece) longest_piece = piece->size;
  return reader_of_shares(piece, &parameters.corpus, on_one, context);
}

static void expect_each_once(size_t piece_bytes, int n)
{
  enum { RECORD = 120 }; /* more than any has, with what stands around it */
  int64_t seen[64] = {0}, *place;
  mt_source source;
  longest_piece = 0;
  assert_int_equal(mt_source_share(&comm, &parameters.corpus, &source), MT_OK);
  assert_int_equal(mt_intake(&comm, &source, piece_bytes, on_piece, seen, &place),
                   MT_OK);
  assert_in_range(longest_piece, 0,
                  piece_bytes + RECORD); /* nobody holds a file whole */
  mt_sum_i64(&comm, 64, seen);
  for (int i = 0; i < 64; i++)
    if (seen[i] != (i < n))
      fail_msg("record %d of %d was read %lld times (pieces of %zu)", i, n,
               (long long)seen[i], piece_bytes);
  free(place);
  mt_source_destroy(&source);
}

/* Files of few records, so that parts are smaller than they, and of many. */
static void test_shares(void **state)
{
  (void)state;
  static const struct {
    const char *name, *record;
    record_reader read;
  } kinds[] = {{"a.jsonl", "{\"id\": %d, \"text\": \"%.*s\"}\n%s", mt_reader_jsonl},
               {"a.sgm", "<REUTERS NEWID=\"%d\">%.*s</REUTERS>%s", mt_reader_sgml},
               {"a.csv", "%d,,\"%.*s\n\"\n%s", mt_reader_csv}};
  for (int k = 0; k < 3; k++)
    for (int n = 0; n < 60; n += n < 6 ? 1 : 18) {
      mt_buffer bytes = {0};
      if (k == 2) mt_buffer_add(&bytes, "id,date,text\n", 13);
      for (int i = 0; i < n; i++) {
        char text[200];
        int size = snprintf(text, sizeof text, kinds[k].record, i, i * 7 % 40,
                            "........................................",
                            i % 9 == 0 ? "\n" : "");
        assert_int_equal(mt_buffer_add(&bytes, text, (size_t)size), MT_OK);
      }
      mt_buffer_add(&bytes, "", 1);
      char compressed[20];
      snprintf(compressed, sizeof compressed, "%s.gz", kinds[k].name);
      write_bytes(kinds[k].name, bytes.bytes, (size_t)bytes.size - 1);
      write_archive(compressed, 1, NULL, (const char *const *)&bytes.bytes);
      mt_buffer_destroy(&bytes);
      reader_of_shares = kinds[k].read;
      for (size_t piece_bytes = 1; piece_bytes < 5000;
           piece_bytes = 3 * piece_bytes + 2) {
        look_at(kinds[k].name);
        expect_each_once(piece_bytes, n);
        look_at(compressed);
        expect_each_once(piece_bytes, n);
      }
    }
}

/* Records of a CSV file, in any order: their sum, and how many. */
static mt_status on_csv_record(void *context, const mt_record *record)
{
  int64_t *sums = context;
  const mt_span *spans[] = {&record->id, &record->date, &record->title, &record->text};
  mt_hash *hash = mt_hash_begin();
  mt_hash_i64(hash, record->offset);
  mt_hash_i64(hash, record->skip);
  for (int i = 0; record->skip == MT_SKIP_NONE && i < 4; i++) {
    mt_hash_i64(hash, (int64_t)spans[i]->size);
    mt_hash_bytes(hash, spans[i]->at != NULL ? spans[i]->at : "", spans[i]->size);
  }
  sums[0] += (int64_t)(mt_hash_key(mt_hash_end(hash).hex, 16) >> 16);
  sums[1]++;
  return MT_OK;
}

static mt_status on_csv_piece(void *context, int64_t member, const mt_piece *piece)
{
  (void)member;
  return mt_reader_csv(piece, &parameters.corpus, on_csv_record, context);
}

static void expect_csv_of(const char *name, const char *text, size_t piece_bytes)
{
  int64_t want[2] = {0}, got[2] = {0}, *place;
  mt_source source;
  mt_piece whole = {.name = name, .bytes = text, .size = strlen(text), .line = 1};
  assert_int_equal(mt_reader_csv(&whole, &parameters.corpus, on_csv_record, want),
                   MT_OK);
  assert_int_equal(mt_source_share(&comm, &parameters.corpus, &source), MT_OK);
  assert_int_equal(mt_intake(&comm, &source, piece_bytes, on_csv_piece, got, &place),
                   MT_OK);
  mt_sum_i64(&comm, 2, got);
  if (got[0] != want[0] || got[1] != want[1])
    fail_msg("%lld records, not %lld, or others (pieces of %zu): %s", (long long)got[1],
             (long long)want[1], piece_bytes, text);
  free(place);
  mt_source_destroy(&source);
}

/* Whatever the quotes: what one reader finds in the whole file. The identifiers are offsets. */
static void test_csv_shares(void **state)
{
  (void)state;
  static const char *const rows[] = {
      "1987-03,plain\n",
      "1987-03,\"two\nlines\"\r\n",
      "1987-04,\"\"\"quoted\"\"\"\n",
      "\n",
      "\r\n",
      "  1987-04,after blanks\n",
      "1987-03,a\"b\n",
      "1987-03,\"x\"y,\"z\"\n",
      "one,two,three\r",
      "\"1987-03\" ,\"\r\n\"\"\n,\"\n",
      "1987-05,\"a row\n\nthat is\nlonger\n\nthan any\npart of the file is\n\"\n",
      "1987-05,\"never closed\n"};
  enum { ROWS = sizeof rows / sizeof rows[0] };
  parameters.corpus.strict = false;
  for (uint64_t i = 0; i < 24; i++) {
    char text[2000] = "date,text\n";
    for (uint32_t r = 0; r < 1 + i; r++) {
      uint32_t words[4];
      mt_random_words(2, MT_STREAM_TEST, i, r, 0, words);
      strcat(text, rows[words[0] % (i % 2 == 0 ? ROWS : ROWS - 1)]);
    }
    const char *const texts[] = {text};
    write_file("a.csv", text);
    write_archive("b.csv.gz", 1, NULL, texts);
    for (size_t piece_bytes = 1; piece_bytes < 2000;
         piece_bytes = 30 * piece_bytes + 7) {
      look_at("a.csv");
      expect_csv_of("a.csv", text, piece_bytes);
      look_at("b.csv.gz");
      expect_csv_of("b.csv.gz", text, piece_bytes);
    }
  }
}

/* Whoever reads the line says where it stands, and nobody waits for who has failed. */
static void test_damage_in_streams(void **state)
{
  (void)state;
  enum { LINES = 60 };
  for (int damaged = 1; damaged <= LINES; damaged += 7) {
    char text[LINES * 60] = "", words[80];
    for (int i = 1; i <= LINES; i++)
      sprintf(text + strlen(text), "{\"date\": \"1987-03\", \"text\": \"word\"%s\n",
              i == damaged ? "" : "}");
    const char *const texts[] = {text};
    mt_built built;
    write_archive("in.jsonl.gz", 1, NULL, texts);
    look_at("in.jsonl.gz");
    assert_int_equal(build(20, &built), MT_ERR_INPUT);
    snprintf(words, sizeof words, "in.jsonl.gz:%d: a line that is not JSON", damaged);
    int64_t said = strstr(mt_said.text, words) != NULL;
    mt_sum_i64(&comm, 1, &said);
    assert_int_equal(said, 1);
  }
}

/* ---- what must be refused ------------------------------------------------------------------------ */

static void test_paths(void **state)
{
  (void)state;
  look_at("nowhere");
  must_refuse("nowhere\": No such file or directory; give the folder");
  set_text(&parameters.corpus.path, "/dev/null");
  must_refuse("is neither a file nor a folder");
  look_at("");
  must_refuse("is empty: corpus.path names");
  write_file("notes.md", "x");
  must_refuse("set corpus.format");
  parameters.corpus.format = MT_FORMAT_JSONL;
  must_refuse("no file of the format jsonl (.jsonl .ndjson) in it");
  write_file("empty.jsonl", "");
  must_refuse("no document in it: read as jsonl");
  write_file("empty.jsonl", "{\"text\": \"x\"}\n{\"date\": \"1987\", \"text\": \"x\"}");
  must_refuse(
      "none of its 2 records (jsonl) gives a document: no date 1, unreadable date 1");
  look_at("notes.md");
  parameters.corpus.format = MT_FORMAT_AUTO;
  must_refuse("neither its name nor its contents tell its format");
}

static void test_cut_archive(void **state)
{
  (void)state;
  write_archive("all.tar.gz", 3, three_names, three_texts);
  char bytes[8192];
  size_t size = 0;
  snprintf(path, sizeof path, "%s/all.tar.gz", folder);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  assert_in_range(size, 100, sizeof bytes - 1);
  look_at("cut.tar.gz");
  for (size_t kept = size - 1; kept > 2; kept -= kept > size - 9 ? 1 : kept / 5 + 1) {
    write_bytes("cut.tar.gz", bytes, kept);
    must_refuse("cut.tar.gz: ");
  }
  write_bytes("cut.tar.gz", bytes, size);
  expect_three(MT_PIECE_BYTES);
}

#define SGML(id, date, body)                                                   \
  "<REUTERS NEWID=\"" id "\"><DATE>" date "</DATE><TEXT><TITLE>t</TITLE>" body \
  "</TEXT></REUTERS>\n"

static void test_sgml(void **state)
{
  (void)state;
  mt_built built;
  write_file("a.sgm",
             "<!DOCTYPE lewis SYSTEM \"lewis.dtd\">\n" SGML(
                 "1", "26-FEB-1987 15:01", "<BODY>one &#5; &amp;lt; more</BODY>")
                 SGML("2", "30-FEB-1987", "<BODY>never</BODY>")
                     SGML("3", "1-mar-1987 605:00", "<BODY>M\xFCnchen one</BODY>")
                         SGML("4", "1-MAR-1987", "")
                             SGML("5", "1-MAR-1987", "<BODY> \n</BODY>"));
  write_file(
      "b.sgm",
      "<REUTERS NEWID=\"6\"><TEXT><BODY>no date</BODY></TEXT></REUTERS>\n" SGML(
          "7", "2-MAR-1987", "<BODY>one</BODY>")
          SGML("8", "2-APR-1987", "") "<REUTERS NEWID=\"9\"><BODY>cut in the mid");
  write_file("README.txt", "<REUTERS is how a document begins");
  look_at("");
  must_refuse("b.sgm:4: the document <REUTERS NEWID=\"9\"> has no </REUTERS>");
  parameters.corpus.strict = false;
  for (size_t piece_bytes = 1; piece_bytes < 1000; piece_bytes = 4 * piece_bytes + 3) {
    must_build(piece_bytes, &built);
    expect_periods(&built, "1987-02 1+0;1987-03 2+2;1987-04 0+1;");
    assert_int_equal(built.survey.n_records, 9);
    static const int64_t skipped[MT_SKIP_KINDS] = {0, 1, 1, 2, 1, 0, 1, 0};
    assert_memory_equal(built.survey.skipped, skipped, sizeof skipped);
    assert_int_equal(built.n_counted, 6); /* one lt more, münchen one, one */
    mt_built_destroy(&built);
  }
}

static void test_json_line_number(void **state)
{
  (void)state;
  mt_buffer text = {0};
  mt_built built;
  for (int i = 1; i <= 500; i++) {
    char line[100];
    const char *word = i == 400 ? "\xFC" : "word";
    int size = snprintf(line, sizeof line,
                        "{\"date\": \"1987-03-01\", \"text\": \"%s %d\"}\n", word, i);
    assert_int_equal(mt_buffer_add(&text, line, (size_t)size), MT_OK);
  }
  write_bytes("in.jsonl", text.bytes, (size_t)text.size);
  mt_buffer_destroy(&text);
  look_at("in.jsonl");
  must_refuse("in.jsonl:400: a line that is not UTF-8 text");
  parameters.corpus.strict = false;
  must_build(100, &built);
  assert_int_equal(built.survey.n_documents, 499);
  assert_int_equal(built.survey.skipped[MT_SKIP_ENCODING], 1);
  mt_built_destroy(&built);
}

static void test_no_terms(void **state)
{
  (void)state;
  write_file("in.jsonl", "{\"date\": \"1987-03\", \"text\": \"The of AND\"}\n"
                         "{\"date\": \"1987-03\", \"text\": \"the and a\"}\n");
  look_at("in.jsonl");
  set_text(&parameters.corpus.stop_words, "english");
  must_refuse("no term is left of 3: stop words took 3, min_df 0, max_df 0");
  set_text(&parameters.corpus.stop_words, "none");
  parameters.corpus.min_df.value = 5;
  must_refuse("no term is left of 3: stop words took 0, min_df 3, max_df 0");
  parameters.corpus.min_df.value = 2;
  parameters.corpus.max_df.value = 0.5;
  must_refuse("stop words took 0, min_df 1, max_df 2");
  snprintf(path, sizeof path, "%s/stop.txt", folder);
  write_file("stop.txt", "the\r\n\nand of");
  set_text(&parameters.corpus.stop_words, path);
  must_refuse("no term is left of 3: stop words took 3");
  set_text(&parameters.corpus.stop_words, "/nowhere/stop.txt");
  must_refuse("corpus.stop_words=\"/nowhere/stop.txt\": No such file");
}

static void test_periods(void **state)
{
  (void)state;
  mt_built built;
  for (int i = 0; i < 3; i++) write_file(three_names[i], three_texts[i]);
  look_at("");
  set_text(&parameters.corpus.periods, "1987-05 1987-03");
  must_build(MT_PIECE_BYTES, &built);
  expect_periods(&built, "1987-03 3+0;1987-05 0+0;");
  assert_int_equal(built.survey.skipped[MT_SKIP_OUTSIDE_PERIODS], 3);
  mt_built_destroy(&built);
  set_text(&parameters.corpus.periods, "1987-3");
  must_refuse("\"1987-3\" is not the name of a period; write it as 1987-03");
  set_text(&parameters.corpus.periods, "1999-01");
  must_refuse("outside periods 6");
  parameters.corpus.period = MT_PERIOD_YEAR;
  set_text(&parameters.corpus.periods, "all");
  must_build(MT_PIECE_BYTES, &built);
  expect_periods(&built, "1987 6+0;");
  mt_built_destroy(&built);
}

/* A document of 10 MB, a term of 10 kB, names that need quotes. */
static void test_large(void **state)
{
  (void)state;
  enum { SIZE = 10 << 20, TERM = 10000 };
  char *text = malloc(SIZE + 100);
  assert_non_null(text);
  size_t at = (size_t)sprintf(
      text, "{\"date\": \"1987-03\", \"id\": \"a \\\"b\\\", c\", \"text\": \"");
  for (int i = 0; i < TERM; i++) text[at++] = 'q';
  for (; at < SIZE; at++) text[at] = "_x \xD0\x96\xD0\x96 "[at % 8];
  while ((text[at - 1] & 0x80) != 0) at--;
  at += (size_t)sprintf(text + at, "\"}\n");
  write_bytes("in.jsonl", text, at);
  free(text);
  look_at("in.jsonl");
  mt_built built;
  must_build(MT_PIECE_BYTES, &built);
  assert_int_equal(built.survey.n_documents, 1);
  size_t size, longest = 0;
  for (int64_t t = 0; t < built.vocabulary.terms.n; t++) {
    mt_term(&built.vocabulary.terms, t, &size);
    if (size > longest) longest = size;
  }
  assert_in_range(longest, TERM, TERM + 8);
  if (built.counts.n_documents > 0) assert_string_equal(built.ids[0], "a \"b\", c");
  mt_built_destroy(&built);
}

/* ---- the stage ------------------------------------------------------------------------------------ */

static mt_run make_run(void)
{
  return (mt_run){.parameters = &parameters, .out = folder};
}

static void run_stage(mt_fingerprint *made_by)
{
  mt_run run = make_run();
  json_t *metrics = comm.rank == 0 ? json_object() : NULL;
  mt_stage_result result = {.metrics = metrics};
  mt_listen();
  mt_status status =
      comm.rank == 0 ? mt_stage_corpus.fingerprint(&run, made_by) : MT_OK;
  assert_int_equal(status, MT_OK);
  mt_bcast(&comm, 0, sizeof *made_by, made_by);
  status = mt_stage_corpus.work(&comm, &run, made_by, &result);
  mt_heard();
  if (status != MT_OK) fail_msg("%s", mt_said.text);
  assert_int_equal(result.rows, 6);
  if (comm.rank == 0)
    assert_int_equal(json_integer_value(json_object_get(metrics, "sum_of_counts")), 19);
  json_decref(metrics);
}

static void expect_file(void)
{
  mt_file *file = NULL;
  mt_period *periods = NULL;
  mt_counts counts = {0};
  char **terms = NULL, *ids[6];
  int64_t n = 0, n_terms = 0;
  snprintf(path, sizeof path, "%s/corpus.h5", folder);
  assert_string_equal(mt_store_fingerprint(path).hex, three_content);
  assert_int_equal(mt_store_open(path, &file), MT_OK);
  assert_int_equal(mt_corpus_periods(file, &n, &periods), MT_OK);
  assert_int_equal(n, 2);
  assert_string_equal(periods[1].name, "1987-04");
  assert_int_equal(periods[1].first_document, 3);
  assert_int_equal(periods[0].n_stored + periods[1].n_stored, 18);
  assert_int_equal(mt_corpus_terms(file, &n_terms, &terms), MT_OK);
  assert_string_equal(terms[0], "birds");
  assert_string_equal(terms[n_terms - 1], "two");
  assert_int_equal(mt_corpus_counts(file, 0, 6, &counts), MT_OK);
  assert_int_equal(counts.indptr[6], 18);
  mt_counts_destroy(&counts);
  assert_int_equal(mt_corpus_counts(file, 1, 2, &counts),
                   MT_OK); /* three hens, geese */
  assert_int_equal(counts.indptr[0], 0);
  assert_int_equal(counts.indptr[1], 3);
  assert_int_equal(counts.indptr[2], 5);
  assert_string_equal(terms[counts.indices[0]], "french");
  mt_counts_destroy(&counts);
  assert_int_equal(mt_corpus_counts(file, 6, 0, &counts), MT_OK);
  assert_int_equal(counts.indptr[0], 0);
  mt_counts_destroy(&counts);
  assert_int_equal(mt_store_read(file, "/documents/id", MT_TEXT, 0, 6, ids), MT_OK);
  assert_string_equal(ids[5], "5");
  mt_store_free_texts(6, ids);
  mt_store_free_texts(n_terms, terms);
  free(terms);
  mt_periods_destroy(n, periods);
  mt_store_close(file);
}

static void test_stage(void **state)
{
  (void)state;
  mt_fingerprint first = {""}, second = {""};
  mt_run run = make_run();
  for (int i = 0; i < 3; i++) {
    char name[64];
    snprintf(name, sizeof name, "in/%s", three_names[i]);
    write_file(name, three_texts[i]);
  }
  look_at("in");
  run_stage(&first);
  expect_file();
  if (comm.rank == 0) {
    assert_true(mt_stage_corpus.is_done(&run, &first));
    parameters.corpus.max_features = 7;
    assert_int_equal(mt_stage_corpus.fingerprint(&run, &second), MT_OK);
    assert_false(mt_stage_corpus.is_done(&run, &second));
    parameters.corpus.max_features = 20000;
  }
  mt_barrier(&comm);
  write_file("in/d.jsonl", ""); /* another input, the same content */
  run_stage(&second);
  if (comm.rank == 0) assert_string_not_equal(first.hex, second.hex);
  expect_file();
}

/* What mt_corpus_counts says to a corpus.h5 with these counts of two documents. */
static mt_status read_damaged(const int64_t indptr[3], const int32_t indices[2],
                              const int32_t data[2], int64_t n_data)
{
  static const mt_dataset sets[] = {
      {"/vocabulary/terms", MT_TEXT, "terms", "1", {"term"}},
      {"/counts/indptr", MT_INT64, "indptr", "1", {"document"}},
      {"/counts/indices", MT_INT32, "indices", "1", {"count"}},
      {"/counts/data", MT_INT32, "data", "1", {"count"}}};
  char *terms[] = {"one", "two"}, file_path[600];
  mt_comm self = mt_comm_self();
  mt_fingerprint made_by = {"0123456789abcdef0123456789abcdef"};
  mt_file *file = NULL;
  mt_counts counts = {0};
  snprintf(file_path, sizeof file_path, "%s/damaged.%d.h5", folder, comm.rank);
  assert_int_equal(mt_store_create(&self, file_path, &made_by, &file), MT_OK);
  assert_int_equal(mt_store_write(&self, file, &sets[0], 2, 0, terms), MT_OK);
  assert_int_equal(mt_store_write(&self, file, &sets[1], 3, 0, indptr), MT_OK);
  assert_int_equal(mt_store_write(&self, file, &sets[2], 2, 0, indices), MT_OK);
  assert_int_equal(mt_store_write(&self, file, &sets[3], n_data, 0, data), MT_OK);
  assert_int_equal(mt_store_commit(&self, &file), MT_OK);
  assert_int_equal(mt_store_open(file_path, &file), MT_OK);
  mt_listen();
  mt_status status = mt_corpus_counts(file, 0, 2, &counts);
  mt_heard();
  mt_counts_destroy(&counts);
  mt_store_close(file);
  return status;
}

static void test_damaged_counts(void **state)
{
  (void)state;
  const int64_t good[3] = {0, 1, 2}, back[3] = {0, 2, 1}, far[3] = {0, 1, 90};
  const int32_t terms[2] = {1, 0}, beyond[2] = {1, 2}, below[2] = {-1, 0},
                once[2] = {1, 1}, never[2] = {1, 0};
  assert_int_equal(read_damaged(good, terms, once, 2), MT_OK);
  assert_int_equal(read_damaged(back, terms, once, 2), MT_ERR_IO);
  assert_int_equal(read_damaged(far, terms, once, 2), MT_ERR_IO);
  assert_int_equal(read_damaged(good, beyond, once, 2), MT_ERR_IO);
  assert_int_equal(read_damaged(good, below, once, 2), MT_ERR_IO);
  assert_int_equal(read_damaged(good, terms, never, 2), MT_ERR_IO);
  assert_int_equal(read_damaged(good, terms, once, 1), MT_ERR_IO);
}

/* ---- Reuters-21578 --------------------------------------------------------------------------------- */

static uint64_t fnv(const mt_terms *terms)
{
  uint64_t value = 0xCBF29CE484222325u;
  for (int64_t t = 0; t < terms->n; t++) {
    size_t size;
    const char *term = mt_term(terms, t, &size);
    if (t > 0) value = (value ^ '\n') * 0x100000001B3u;
    for (size_t i = 0; i < size; i++)
      value = (value ^ (unsigned char)term[i]) * 0x100000001B3u;
  }
  return value;
}

static void test_reuters(void **state)
{
  (void)state;
  const char *tarball = getenv("REUTERS_TARBALL");
  if (tarball == NULL || tarball[0] == '\0') skip();
  json_error_t error;
  json_t *fixture = json_load_file("tests/data/corpus.json", JSON_ALLOW_NUL, &error);
  assert_non_null(fixture);
  const json_t *want = json_object_get(fixture, "reuters");
  mt_built built;
  char hash[17];
  set_text(&parameters.corpus.path, tarball);
  parameters.corpus.min_df = (mt_frequency){5, false};
  parameters.corpus.max_df = (mt_frequency){0.5, true};
  must_build(MT_PIECE_BYTES, &built);
  expect_periods(&built,
                 "1987-02 211+18;1987-03 10536+1008;1987-04 4739+922;1987-06 2314+238;"
                 "1987-10 1243+349;");
  assert_int_equal(built.survey.n_records, 21578);
  assert_int_equal(built.survey.n_documents,
                   json_integer_value(json_object_get(want, "documents")));
  assert_int_equal(built.survey.skipped[MT_SKIP_NO_BODY], 2535);
  assert_int_equal(built.vocabulary.distinct, 41633);
  assert_int_equal(built.vocabulary.removed[MT_FILTER_MAX_DF], 9);
  assert_int_equal(built.vocabulary.terms.n,
                   json_integer_value(json_object_get(want, "terms")));
  assert_int_equal(built.n_stored, json_integer_value(json_object_get(want, "stored")));
  assert_int_equal(built.n_counted, json_integer_value(json_object_get(want, "sum")));
  assert_int_equal(built.n_empty, 1);
  for (int p = 0; p < 5; p++)
    assert_int_equal(built.survey.periods[p].n_stored,
                     number_at(json_object_get(want, "stored_by_month"), p));
  snprintf(hash, sizeof hash, "%016llx",
           (unsigned long long)fnv(&built.vocabulary.terms));
  assert_string_equal(hash, json_string_value(json_object_get(want, "terms_fnv1a")));
  assert_string_equal(built.content.hex, "b18c1207e40e5b4a2d84cf6165deaf88");
  mt_built_destroy(&built);
  json_decref(fixture);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
/* The last test: the flag stays. */
static void test_stop(void **state)
{
  (void)state;
  mt_built built = {0};
  write_file("stopped.jsonl", three_texts[0]);
  look_at("stopped.jsonl");
  mt_stop_install();
  if (comm.rank == comm.size - 1) raise(SIGTERM);
  assert_int_equal(mt_corpus_build(&comm, &parameters.corpus, MT_PIECE_BYTES, &built),
                   MT_STOPPED);
}

static const struct CMUnitTest tests[] = {
    CASE(test_as_scikit_learn),
    CASE(test_forms),
    CASE(test_compressed_files),
    CASE(test_shares),
    CASE(test_csv_shares),
    CASE(test_damage_in_streams),
    CASE(test_csv_and_text),
    CASE(test_paths),
    CASE(test_cut_archive),
    CASE(test_sgml),
    CASE(test_json_line_number),
    CASE(test_no_terms),
    CASE(test_periods),
    CASE(test_large),
    CASE(test_stage),
    CASE(test_damaged_counts),
    CASE(test_reuters),
    CASE(test_stop),
};

MT_TEST_MAIN(tests)
