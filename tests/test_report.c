/* RANKS 1
 * Labels against plain loops, tables read back, label boxes, the map for hostile terms and
 * for nothing at all. */
#include "test.h"

#include "base/memory.h"
#include "report/glyphs.h"
#include "report/labels.h"
#include "report/map.h"
#include "report/place.h"
#include "report/tables.h"
#include "report/text.h"

#include <csv.h>
#include <libxml/parser.h>
#include <libxml/xpath.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEED = 7, TOP = 4 };

/* ---- data to report ------------------------------------------------------------------- */

static char *copy_of(const char *text)
{
  char *copy = NULL;
  assert_int_equal(mt_string_copy(text, &copy), MT_OK);
  return copy;
}

static double unit(uint64_t index, uint32_t step)
{
  return mt_random_unit(SEED, MT_STREAM_TEST, index, step);
}

/* n topics of V terms (named by terms, or "term17") in m clusters around random places; the
 * last `noise` topics are noise. The matrix is (n, V). */
static void make_findings(int64_t n, int64_t n_terms, int64_t m, int64_t noise,
                          const char *const *terms, mt_findings *f, float **matrix_out)
{
  float *matrix = calloc((size_t)(n * n_terms + 1), sizeof *matrix);
  *f = (mt_findings){.n_topics = n,
                     .n_terms = n_terms,
                     .n_top = TOP,
                     .n_periods = 3,
                     .n_seeds = 2,
                     .n_meta = m,
                     .n_axes = 2};
  f->corpus = copy_of("a_corpus");
  f->terms = calloc((size_t)n_terms + 1, sizeof *f->terms);
  f->periods = calloc(3, sizeof *f->periods);
  f->seeds = calloc(2, sizeof *f->seeds);
  int64_t **numbers[] = {&f->period, &f->seed, &f->topic, &f->labels};
  for (int i = 0; i < 4; i++) *numbers[i] = calloc((size_t)n + 1, sizeof(int64_t));
  f->top_terms = calloc((size_t)(n * TOP) + 1, sizeof *f->top_terms);
  double **reals[] = {&f->probabilities, &f->outlier_scores, &f->persistence};
  for (int i = 0; i < 3; i++) *reals[i] = calloc((size_t)(n + m) + 1, sizeof(double));
  f->positions = calloc(2 * (size_t)n + 1, sizeof *f->positions);
  for (int64_t t = 0; t < n_terms; t++) {
    char name[32];
    snprintf(name, sizeof name, "term%02lld", (long long)t);
    f->terms[t] = copy_of(terms != NULL ? terms[t] : name);
  }
  for (int p = 0; p < 3; p++) {
    char name[32];
    snprintf(name, sizeof name, "1987-0%d", p + 1);
    f->periods[p] = copy_of(name);
  }
  f->seeds[0] = 3, f->seeds[1] = 11;
  for (int64_t i = 0; i < n; i++) {
    int64_t label = i < n - noise && m > 0 ? i % m : -1;
    f->labels[i] = label;
    f->period[i] = i % 3;
    f->seed[i] = i / 3 % 2;
    f->topic[i] = i;
    f->probabilities[i] = label < 0 ? 0.0 : unit((uint64_t)i, 1);
    for (int axis = 0; axis < 2; axis++)
      f->positions[2 * i + axis] = 10.0 * unit((uint64_t)(2 * (label + 1) + axis), 2) +
                                   unit((uint64_t)(2 * i + axis), 3);
    double sum = 0.0;
    for (int64_t t = 0; t < n_terms; t++)
      sum += matrix[i * n_terms + t] =
          (float)(unit((uint64_t)(i * n_terms + t), 4) +
                  3.0 * unit((uint64_t)((label + 1) * n_terms + t), 5));
    for (int64_t t = 0; t < n_terms; t++) matrix[i * n_terms + t] /= (float)sum;
    for (int64_t j = 0; j < TOP; j++) { /* the j-th largest */
      int64_t best = -1;
      for (int64_t t = 0; t < n_terms; t++) {
        bool taken = false;
        for (int64_t k = 0; k < j; k++) taken |= f->top_terms[i * TOP + k] == t;
        if (!taken &&
            (best < 0 || matrix[i * n_terms + t] > matrix[i * n_terms + best]))
          best = t;
      }
      f->top_terms[i * TOP + j] = best < 0 ? 0 : best;
    }
  }
  for (int64_t c = 0; c < m; c++) f->persistence[c] = unit((uint64_t)c, 6);
  *matrix_out = matrix;
}

static const mt_map_options options = {.label_terms = 3,
                                       .label_method = MT_LABEL_FREQUENCY,
                                       .width = 1200,
                                       .height = 900,
                                       .svg = true,
                                       .png = true};

/* ---- labels --------------------------------------------------------------------------- */

static void test_scores_against_loops(void **state)
{
  (void)state;
  enum { N = 40, V = 23, M = 5 };
  mt_findings f;
  float *matrix;
  mt_meta_topic *meta = NULL;
  make_findings(N, V, M, 6, NULL, &f, &matrix);
  mt_rows rows = mt_rows_memory(N, V, matrix);
  assert_int_equal(mt_meta_topics_make(&mt_test_world, &f, &rows, &options, &meta),
                   MT_OK);
  double all = 0.0;
  for (int64_t i = 0; i < N * V; i++) all += matrix[i];
  for (int64_t m = 0; m < M; m++) {
    assert_int_equal(meta[m].n_terms, TOP + 5);
    for (int64_t k = 0; k < meta[m].n_terms; k++) {
      double listed = 0, size = 0, tf = 0, f_t = 0, members = 0;
      int64_t t = meta[m].frequent[k].term, u = meta[m].distinct[k].term;
      for (int64_t i = 0; i < N; i++) {
        f_t += matrix[i * V + u];
        if (f.labels[i] != m) continue;
        size++;
        tf += matrix[i * V + u];
        for (int64_t v = 0; v < V; v++) members += matrix[i * V + v];
        for (int64_t j = 0; j < TOP; j++) listed += f.top_terms[i * TOP + j] == t;
      }
      assert_int_equal(meta[m].size, (int64_t)size);
      assert_true(fabs(meta[m].frequent[k].score - listed / size) < 1e-12);
      double want = tf / members * log(1.0 + all / (M + 1) / f_t); /* + 1: noise */
      assert_true(fabs(meta[m].distinct[k].score - want) < 1e-9);
      if (k == 0) continue;
      assert_true(meta[m].frequent[k - 1].score >= meta[m].frequent[k].score);
      assert_true(meta[m].distinct[k - 1].score >= meta[m].distinct[k].score);
    }
  }
  mt_meta_topics_destroy(M, meta);
  mt_findings_destroy(&f);
  free(matrix);
}

/* Four topics in two clusters, written down by hand. */
static void hand_made(mt_findings *f, float **matrix_out)
{
  static const float rows[4][5] = {{.4f, .3f, .1f, .1f, .1f},
                                   {.3f, .4f, .1f, .1f, .1f},
                                   {.1f, .1f, .2f, .3f, .3f},
                                   {.1f, .1f, .2f, .3f, .3f}};
  static const int64_t top[4][TOP] = {
      {0, 1, 2, 3}, {1, 0, 2, 3}, {3, 4, 2, 0}, {3, 4, 2, 1}};
  static const int64_t period[] = {0, 0, 1, 1}, seed[] = {0, 0, 0, 1};
  make_findings(4, 5, 2, 0, NULL, f, matrix_out);
  memcpy(*matrix_out, rows, sizeof rows);
  memcpy(f->top_terms, top, sizeof top);
  for (int i = 0; i < 4; i++) {
    f->labels[i] = i / 2;
    f->period[i] = period[i];
    f->seed[i] = seed[i];
  }
}

static void test_ties_and_kinds(void **state)
{
  (void)state;
  mt_findings f;
  float *matrix;
  mt_meta_topic *meta = NULL;
  hand_made(&f, &matrix);
  mt_rows rows = mt_rows_memory(4, 5, matrix);
  assert_int_equal(mt_meta_topics_make(&mt_test_world, &f, &rows, &options, &meta),
                   MT_OK);
  /* all four terms are listed by both; 0 and 1 have equal means, so have 2 and 3: term order */
  assert_string_equal(meta[0].label, "term00, term01, term02");
  /* 3 and 4 have equal means; 2 less; 0 and 1 are listed by one each */
  assert_string_equal(meta[1].label, "term03, term04, term02");
  assert_int_equal(meta[1].frequent[3].term, 0);
  assert_true(meta[1].frequent[3].score == 0.5);
  assert_int_equal(meta[0].kind, MT_META_SINGLE_FIT);
  assert_int_equal(meta[1].kind, MT_META_LOCAL);
  assert_int_equal(meta[1].per_seed[0], 1);
  assert_int_equal(meta[1].per_seed[1], 1);
  assert_int_equal(meta[1].per_period[1], 2);
  mt_meta_topics_destroy(2, meta);
  f.period[0] = 2;
  assert_int_equal(mt_meta_topics_make(&mt_test_world, &f, &rows, &options, &meta),
                   MT_OK);
  assert_int_equal(meta[0].kind, MT_META_PERSISTENT);
  mt_meta_topics_destroy(2, meta);
  mt_findings_destroy(&f);
  free(matrix);
}

/* Labels that would be equal get further terms; with no terms left, a number. */
static void test_equal_labels(void **state)
{
  (void)state;
  mt_findings f;
  float *matrix;
  mt_meta_topic *meta = NULL;
  hand_made(&f, &matrix);
  for (int i = 2; i < 4; i++) { /* the second cluster differs in the fourth term only */
    static const float row[5] = {.3f, .25f, .2f, .05f, .2f};
    static const int64_t top[TOP] = {0, 1, 2, 4};
    memcpy(matrix + 5 * i, row, sizeof row);
    memcpy(f.top_terms + TOP * i, top, sizeof top);
  }
  mt_rows rows = mt_rows_memory(4, 5, matrix);
  assert_int_equal(mt_meta_topics_make(&mt_test_world, &f, &rows, &options, &meta),
                   MT_OK);
  assert_string_equal(meta[0].label, "term00, term01, term02, term03");
  assert_string_equal(meta[1].label, "term00, term01, term02, term04");
  mt_meta_topics_destroy(2, meta);
  memcpy(matrix + 10, matrix, 10 * sizeof *matrix); /* now nothing tells them apart */
  memcpy(f.top_terms + 2 * TOP, f.top_terms, 2 * TOP * sizeof *f.top_terms);
  assert_int_equal(mt_meta_topics_make(&mt_test_world, &f, &rows, &options, &meta),
                   MT_OK);
  assert_string_equal(meta[0].label, "term00, term01, term02, term03, term04 (0)");
  assert_string_equal(meta[1].label, "term00, term01, term02, term03, term04 (1)");
  mt_meta_topics_destroy(2, meta);
  mt_findings_destroy(&f);
  free(matrix);
}

/* ---- where labels go ------------------------------------------------------------------ */

static bool box_inside(const mt_box *box, const mt_box *frame)
{
  return box->x >= frame->x && box->y >= frame->y &&
         box->x + box->w <= frame->x + frame->w &&
         box->y + box->h <= frame->y + frame->h;
}

/* n labels at random places (or all at one): how many found no room for the whole text. */
static int64_t check_places(int64_t n, bool one_place, double width)
{
  const mt_box frame = {20, 60, 1160, 770};
  mt_label_place *places = calloc((size_t)n, sizeof *places);
  mt_point *points = calloc((size_t)n, sizeof *points);
  int64_t shortened = 0;
  for (int64_t i = 0; i < n; i++) {
    double x = one_place ? 0.5 : unit((uint64_t)i, (uint32_t)(2 * n));
    double y = one_place ? 0.5 : unit((uint64_t)i, (uint32_t)(2 * n + 1));
    points[i] = (mt_point){frame.x + x * frame.w, frame.y + y * frame.h};
    places[i] = (mt_label_place){.anchor = points[i], .height = 20.0};
    places[i].width[0] = width * (0.5 + unit((uint64_t)i, 9));
    places[i].width[1] = 40.0;
  }
  assert_int_equal(mt_labels_place(frame, n, points, 3.0, n, places), MT_OK);
  for (int64_t i = 0; i < n; i++) {
    shortened += places[i].choice != 0;
    if (places[i].choice < 0) continue;
    assert_true(box_inside(&places[i].box, &frame));
    assert_true(places[i].box.w == places[i].width[places[i].choice]);
    for (int64_t j = 0; j < i; j++)
      if (places[j].choice >= 0)
        assert_false(mt_box_overlap(&places[i].box, &places[j].box));
  }
  free(points);
  free(places);
  return shortened;
}

static void test_boxes_never_overlap(void **state)
{
  (void)state;
  for (int64_t n = 1; n <= 60; n++) assert_int_equal(check_places(n, false, 130.0), 0);
  assert_int_equal(check_places(40, true, 130.0), 0);
  assert_true(check_places(300, true, 130.0) >
              0); /* there is no room for all of them */
  assert_int_equal(check_places(3, false, 5000.0), 3);
}

/* ---- texts ---------------------------------------------------------------------------- */

static void check_drawable(const char *text, int64_t columns, const char *want)
{
  char *drawn = NULL;
  assert_int_equal(mt_text_drawable(text, columns, &drawn), MT_OK);
  assert_string_equal(drawn, want);
  free(drawn);
}

static void test_texts(void **state)
{
  (void)state;
  check_drawable("money", 10, "money");
  check_drawable("", 10, "");
  check_drawable("exactlyten", 10, "exactlyten");
  check_drawable("eleven char", 10, "eleven ch\xE2\x80\xA6");
  check_drawable("a\nb\tc\x01"
                 "d",
                 10, "a b c d");
  check_drawable("bad \xFF byte", 20, "bad \xEF\xBF\xBD byte");
  check_drawable("cut \xE6\x97", 20, "cut \xEF\xBF\xBD\xEF\xBF\xBD");
  check_drawable("\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E", 5,
                 "\xE6\x97\xA5\xE6\x9C\xAC\xE2\x80\xA6"); /* two columns each */
  assert_true(mt_text_width("mmm", 10.0) > mt_text_width("iii", 10.0));
  assert_true(fabs(mt_text_width("0000", 10.0) - 25.44) < 1e-9);
  char *marks = malloc(100001), *drawn = NULL; /* one letter with 50,000 accents */
  for (int i = 0; i < 50000; i++) memcpy(marks + 2 * i, i == 0 ? "aa" : "\xCC\x81", 2);
  marks[100000] = '\0';
  assert_int_equal(mt_text_drawable(marks, 24, &drawn), MT_OK);
  free(marks);
  free(drawn);
}

static void test_glyphs(void **state)
{
  (void)state;
  mt_glyphs glyphs = {0};
  char *text = NULL;
  bool changed = false;
  assert_true(mt_glyphs_have(&glyphs, 0x436)); /* nothing known: Cyrillic, no kanji */
  assert_false(mt_glyphs_have(&glyphs, 0x65E5));
  assert_int_equal(
      mt_glyphs_parse(":charset=20-7e a0 25a1\n:family=x:charset=65e5-65e6\n", &glyphs),
      MT_OK);
  assert_true(mt_glyphs_have(&glyphs, 0x65E5));
  assert_true(mt_glyphs_have(&glyphs, 0xA0));
  assert_false(mt_glyphs_have(&glyphs, 0x672C));
  assert_int_equal(
      mt_glyphs_replace(&glyphs, "a \xE6\x97\xA5\xE6\x9C\xAC", &text, &changed), MT_OK);
  assert_string_equal(text, "a \xE6\x97\xA5\xE2\x96\xA1");
  assert_true(changed);
  free(text);
  assert_int_equal(mt_glyphs_replace(&glyphs, "plain", &text, &changed), MT_OK);
  assert_false(changed);
  free(text);
  mt_glyphs_destroy(&glyphs);
}

/* ---- files ---------------------------------------------------------------------------- */

static char folder[64];

static int make_folder(void **state)
{
  (void)state;
  strcpy(folder, "/tmp/mt-report-XXXXXX");
  return mkdtemp(folder) == NULL;
}

static const char *in_folder(const char *name)
{
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static int remove_folder(void **state)
{
  (void)state;
  static const char *const names[] = {"topics.csv", "meta_topics.csv", "summary.json",
                                      "map.gp",     "map.dat",         "map.svg",
                                      "map.png"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(in_folder(names[i]));
  return rmdir(folder);
}

static bool exists(const char *name)
{
  struct stat info;
  return stat(in_folder(name), &info) == 0 && info.st_size > 0;
}

static char *read_file(const char *name, size_t *size_out)
{
  FILE *file = fopen(in_folder(name), "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  char *bytes = calloc((size_t)size + 1, 1);
  assert_int_equal(fread(bytes, 1, (size_t)size, file), size);
  fclose(file);
  *size_out = (size_t)size;
  return bytes;
}

static const char *const hostile[] = {"a_b",
                                      "{x}^2_3",
                                      "@gnuplot",
                                      "back\\slash\\n",
                                      "\"double\"",
                                      "it's",
                                      "<b>&amp;</b>",
                                      "]]>",
                                      "comma,",
                                      "two\nlines",
                                      "`date`",
                                      "$HOME %s %d",
                                      "=1+1",
                                      "#comment",
                                      "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E",
                                      "\xD0\xBC\xD0\xB8\xD1\x80",
                                      "caf\xC3\xA9",
                                      "\xF0\x9F\x98\x80",
                                      "\xD8\xB3\xD9\x84\xD8\xA7\xD9\x85",
                                      "tab\there",
                                      "semi;colon",
                                      "/*c*/",
                                      " blanks ",
                                      "\r\n"};
enum { N_HOSTILE = sizeof hostile / sizeof *hostile };

/* Everything for n topics in m clusters, with these terms. */
static void write_all(int64_t n, int64_t m, int64_t noise, int64_t n_terms,
                      const char *const *terms, const mt_map_options *map,
                      int64_t n_axes, bool *drawn_out)
{
  mt_findings f;
  float *matrix;
  mt_meta_topic *meta = NULL;
  mt_fingerprint made_by = {"0123456789abcdef0123456789abcdef"};
  make_findings(n, n_terms, m, noise, terms, &f, &matrix);
  f.n_axes = n_axes;
  mt_rows rows = mt_rows_memory(n, n_terms, matrix);
  json_t *parameters = json_object();
  assert_int_equal(mt_meta_topics_make(&mt_test_world, &f, &rows, map, &meta), MT_OK);
  assert_int_equal(mt_tables_write(&f, meta, folder), MT_OK);
  assert_int_equal(mt_map_write(&f, meta, map, folder), MT_OK);
  assert_int_equal(mt_map_draw(map, folder, drawn_out), MT_OK);
  assert_int_equal(mt_summary_write(&f, meta, map, &made_by, "cpu", parameters, folder),
                   MT_OK);
  json_decref(parameters);
  mt_meta_topics_destroy(m, meta);
  mt_findings_destroy(&f);
  free(matrix);
}

/* A CSV file read back by libcsv: cells in order, rows counted. */
typedef struct mt_cells {
  char *cells[4096];
  int n, rows, columns;
} mt_cells;

static void take_cell(void *bytes, size_t size, void *data)
{
  mt_cells *table = data;
  assert_true(table->n < 4096);
  table->cells[table->n++] = strndup(bytes != NULL ? bytes : "", size);
}

static void take_row(int end, void *data)
{
  mt_cells *table = data;
  (void)end;
  if (table->rows++ == 0) table->columns = table->n;
}

static int no_blank(unsigned char c)
{
  (void)c;
  return 0;
}

static void read_csv(const char *name, mt_cells *table)
{
  struct csv_parser parser;
  size_t size;
  char *bytes = read_file(name, &size);
  *table = (mt_cells){.n = 0};
  assert_int_equal(csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI), 0);
  csv_set_space_func(&parser, no_blank);
  assert_int_equal(csv_parse(&parser, bytes, size, take_cell, take_row, table), size);
  assert_int_equal(csv_fini(&parser, take_cell, take_row, table), 0);
  csv_free(&parser);
  free(bytes);
  assert_int_equal(table->n, table->rows * table->columns);
}

static const char *cell(const mt_cells *table, int row, const char *column)
{
  for (int c = 0; c < table->columns; c++)
    if (strcmp(table->cells[c], column) == 0)
      return table->cells[row * table->columns + c];
  fail_msg("no column %s", column);
  return NULL;
}

static void free_csv(mt_cells *table)
{
  for (int i = 0; i < table->n; i++) free(table->cells[i]);
}

/* Labels and terms come back from CSV as they are in JSON, whatever they hold. */
static void test_tables_round_trip(void **state)
{
  (void)state;
  enum { N = 60, M = 9 };
  bool drawn;
  mt_map_options none = options;
  none.svg = none.png = false;
  write_all(N, M, 5, N_HOSTILE, hostile, &none, 2, &drawn);
  json_t *summary = mt_summary_load(folder);
  assert_non_null(summary);
  assert_int_equal(json_integer_value(json_object_get(summary, "topics")), N);
  assert_int_equal(json_integer_value(json_object_get(summary, "noise")), 5);
  json_t *metas = json_object_get(summary, "meta_topics");
  assert_int_equal(json_array_size(metas), M);
  static mt_cells table;
  read_csv("meta_topics.csv", &table);
  assert_int_equal(table.rows, M + 1);
  assert_int_equal(table.columns, 10 + 3 + 2);
  for (int m = 0; m < M; m++) {
    json_t *meta = json_array_get(metas, (size_t)m);
    assert_string_equal(cell(&table, m + 1, "label"),
                        json_string_value(json_object_get(meta, "label")));
    json_t *first = json_array_get(json_object_get(meta, "c_tf_idf"), 0);
    const char *term = json_string_value(json_object_get(first, "term"));
    assert_memory_equal(cell(&table, m + 1, "c_tf_idf_terms"), term, strlen(term));
    assert_int_equal(atoll(cell(&table, m + 1, "1987-02")),
                     json_integer_value(json_object_get(
                         json_object_get(meta, "per_period"), "1987-02")));
  }
  free_csv(&table);
  read_csv("topics.csv", &table);
  assert_int_equal(table.rows, N + 1);
  assert_string_equal(cell(&table, 1, "meta_topic"), "0");
  assert_string_equal(cell(&table, N, "meta_topic"), "");
  assert_string_equal(cell(&table, 1, "seed"), "3");
  assert_string_equal(cell(&table, 1, "period"), "1987-01");
  assert_string_equal(
      cell(&table, 1, "label"),
      json_string_value(json_object_get(json_array_get(metas, 0), "label")));
  free_csv(&table);
  json_decref(summary);
}

/* A stage is done if the fingerprint is the same and all files are there. */
static void test_summary_is_there(void **state)
{
  (void)state;
  bool drawn;
  mt_map_options none = options;
  mt_fingerprint same = {"0123456789abcdef0123456789abcdef"}, other = {"01"};
  none.svg = none.png = false;
  assert_false(mt_summary_is_there(folder, &same));
  write_all(10, 2, 1, 12, NULL, &none, 2, &drawn);
  assert_true(mt_summary_is_there(folder, &same));
  assert_false(mt_summary_is_there(folder, &other));
  unlink(in_folder("topics.csv"));
  assert_false(mt_summary_is_there(folder, &same));
}

/* Turns a bit of one byte over; at < 0: from the end. */
static void flip(const char *name, long at)
{
  FILE *file = fopen(in_folder(name), "r+");
  assert_non_null(file);
  assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
  int byte = getc(file);
  assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
  putc(byte ^ 1, file);
  assert_int_equal(fclose(file), 0);
}

/* It is whole if no byte of these files is another. */
static void test_summary_is_whole(void **state)
{
  (void)state;
  bool drawn;
  mt_map_options none = options;
  static const char *const names[] = {"topics.csv", "meta_topics.csv", "map.gp",
                                      "map.dat", "summary.json"};
  const long places[] = {0, 100, -40, -1};
  none.svg = none.png = false;
  mt_log_setup(0, 1, MT_LOG_ERROR);
  assert_false(mt_summary_is_whole(folder));
  write_all(10, 2, 1, 12, NULL, &none, 2, &drawn);
  assert_true(mt_summary_is_whole(folder));
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
      flip(names[i], places[p]);
      assert_false(mt_summary_is_whole(folder));
      flip(names[i], places[p]);
      assert_true(mt_summary_is_whole(folder));
    }
  unlink(in_folder("topics.csv"));
  assert_false(mt_summary_is_whole(folder));
  mt_log_setup(0, 1, MT_LOG_WARN);
}

/* ---- the map -------------------------------------------------------------------------- */

/* The texts of an SVG, "\n" after each; fails if it is no well-formed XML. */
static char *svg_texts(void)
{
  xmlDoc *document = xmlReadFile(in_folder("map.svg"), NULL, XML_PARSE_NONET);
  assert_non_null(document);
  xmlXPathContext *context = xmlXPathNewContext(document);
  xmlXPathObject *found =
      xmlXPathEvalExpression((const xmlChar *)"//*[local-name()='text']", context);
  char *all = NULL;
  size_t size;
  FILE *out = open_memstream(&all, &size);
  for (int i = 0; found->nodesetval != NULL && i < found->nodesetval->nodeNr; i++) {
    xmlChar *text = xmlNodeGetContent(found->nodesetval->nodeTab[i]);
    fprintf(out, "%s\n", (char *)text);
    xmlFree(text);
  }
  fclose(out);
  xmlXPathFreeObject(found);
  xmlXPathFreeContext(context);
  xmlFreeDoc(document);
  return all;
}

static bool have_gnuplot(void)
{
  return system("gnuplot --version > /dev/null 2>&1") == 0;
}

/* Terms stand in the picture as they are, but for line ends and tabs. */
static void test_map_shows_hostile_terms(void **state)
{
  (void)state;
  bool drawn;
  if (!have_gnuplot()) skip();
  mt_map_options one = options;
  for (int t = 0; t < N_HOSTILE; t++) {
    const char *terms[] = {hostile[t], "second_{2}", "third"};
    one.label_terms = 3;
    one.png = t % 8 == 0;
    write_all(5, 1, 1, 3, terms, &one, 2, &drawn);
    assert_true(drawn);
    char *texts = svg_texts(), *want = NULL;
    assert_int_equal(mt_text_drawable(hostile[t], 24, &want), MT_OK);
    if (strcmp(want, "]]>") == 0) strcpy(want, "]]"); /* a joiner of no width follows */
    if (strstr(texts, want) == NULL) fail_msg("\"%s\" is not in:\n%s", want, texts);
    assert_non_null(strstr(texts, "second_{2}"));
    free(want);
    free(texts);
  }
}

static void test_map_of_long_terms(void **state)
{
  (void)state;
  bool drawn;
  if (!have_gnuplot()) skip();
  char *terms[6];
  for (int t = 0; t < 6; t++) {
    terms[t] = malloc(10001);
    memset(terms[t], 'a' + t, 10000);
    terms[t][10000] = '\0';
  }
  write_all(12, 3, 0, 6, (const char *const *)terms, &options, 2, &drawn);
  assert_true(drawn);
  size_t size;
  char *texts = svg_texts(), *table = read_file("meta_topics.csv", &size);
  assert_non_null(strstr(texts, "aaaa\xE2\x80\xA6"));
  assert_true(strlen(texts) < 2000);
  assert_non_null(strstr(table, terms[0])); /* the table has it whole */
  free(table);
  free(texts);
  for (int t = 0; t < 6; t++) free(terms[t]);
}

/* Nothing, one point, all noise, many clusters, small and large pages, other dimensions. */
static void test_map_of_any_size(void **state)
{
  (void)state;
  static const struct {
    int64_t n, m, noise, width, height, axes;
    const char *says;
  } cases[] = {
      {0, 0, 0, 1200, 900, 2, "no topics"},
      {1, 0, 1, 1200, 900, 2, "1 topic from"},
      {1, 1, 0, 1200, 900, 2, "1 meta-topic,"},
      {2, 1, 0, 1200, 900, 2, "2 topics from"},
      {30, 0, 30, 1200, 900, 2, "0 meta-topics, 100 % noise"},
      {30, 3, 2, 320, 200, 2, "3 meta-topics"},
      {30, 3, 2, 4000, 3000, 1, "one axis"},
      {30, 3, 2, 1200, 900, 5, "axes 1 and 2 of 5"},
      {900, 200, 50, 1200, 900, 2, "200 meta-topics"},
      {900, 450, 0, 600, 400, 2, "have no label here"},
  };
  if (!have_gnuplot()) skip();
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    bool drawn;
    mt_map_options page = options;
    page.width = cases[c].width;
    page.height = cases[c].height;
    write_all(cases[c].n, cases[c].m, cases[c].noise, 40, NULL, &page, cases[c].axes,
              &drawn);
    assert_true(drawn);
    assert_true(exists("map.png"));
    char *texts = svg_texts();
    if (strstr(texts, cases[c].says) == NULL)
      fail_msg("case %zu: \"%s\" is not in:\n%s", c, cases[c].says, texts);
    free(texts);
  }
}

/* All topics in one place, on a line, and one very far away. */
static void test_map_of_odd_places(void **state)
{
  (void)state;
  if (!have_gnuplot()) skip();
  for (int which = 0; which < 3; which++) {
    mt_findings f;
    float *matrix;
    mt_meta_topic *meta = NULL;
    bool drawn;
    make_findings(20, 12, 4, 2, NULL, &f, &matrix);
    for (int64_t i = 0; i < 20; i++) {
      if (which < 2) f.positions[2 * i + 1] = 4.25;
      if (which == 0) f.positions[2 * i] = -1e6;
      if (which == 2 && i == 3) f.positions[2 * i] = 1e30;
    }
    mt_rows rows = mt_rows_memory(20, 12, matrix);
    assert_int_equal(mt_meta_topics_make(&mt_test_world, &f, &rows, &options, &meta),
                     MT_OK);
    assert_int_equal(mt_map_write(&f, meta, &options, folder), MT_OK);
    assert_int_equal(mt_map_draw(&options, folder, &drawn), MT_OK);
    assert_true(drawn);
    free(svg_texts());
    mt_meta_topics_destroy(4, meta);
    mt_findings_destroy(&f);
    free(matrix);
  }
}

/* Without gnuplot: a warning, the script and its data, no pictures, no error. */
static void test_no_gnuplot(void **state)
{
  (void)state;
  bool drawn = true;
  char *path = copy_of(getenv("PATH"));
  mt_fingerprint made_by = {"0123456789abcdef0123456789abcdef"};
  mt_log_setup(0, 1, MT_LOG_ERROR);
  setenv("PATH", folder, 1);
  write_all(10, 2, 1, 12, NULL, &options, 2, &drawn);
  setenv("PATH", path, 1);
  mt_log_setup(0, 1, MT_LOG_WARN);
  free(path);
  assert_false(drawn);
  assert_true(exists("map.gp"));
  assert_true(exists("map.dat"));
  assert_false(exists("map.svg"));
  assert_false(mt_summary_is_there(folder, &made_by)); /* the next run draws it */
  if (!have_gnuplot()) skip();
  char command[160];
  snprintf(command, sizeof command, "cd %s && gnuplot map.gp", folder);
  assert_int_equal(system(command), 0);
  assert_true(exists("map.svg"));
  assert_true(exists("map.png"));
  assert_true(mt_summary_is_there(folder, &made_by));
}

#define IN_FOLDER(test) \
  cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_scores_against_loops),
    cmocka_unit_test(test_ties_and_kinds),
    cmocka_unit_test(test_equal_labels),
    cmocka_unit_test(test_boxes_never_overlap),
    cmocka_unit_test(test_texts),
    cmocka_unit_test(test_glyphs),
    IN_FOLDER(test_tables_round_trip),
    IN_FOLDER(test_summary_is_there),
    IN_FOLDER(test_summary_is_whole),
    IN_FOLDER(test_map_shows_hostile_terms),
    IN_FOLDER(test_map_of_long_terms),
    IN_FOLDER(test_map_of_any_size),
    IN_FOLDER(test_map_of_odd_places),
    IN_FOLDER(test_no_gnuplot),
};

MT_TEST_MAIN(tests)
