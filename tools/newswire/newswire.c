/* newswire: makes a dated text collection whose topics are known. Each document is mostly
 * about one subject; some subjects live in all periods, some in one alone; function words,
 * general words, figures and boilerplate lie over all of them. The truth is left beside it.
 * A document depends on (seed, its number, the plan) alone: any can be made without those
 * before it. */
#include "base/log.h"
#include "base/random.h"
#include "base/status.h"
#include "words.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_SUBJECTS = 40, DOCUMENTS_A_FILE = 1000, LINE_WIDTH = 64 };

typedef struct wordlist {
  int64_t n;
  char **words;       /* into text */
  char *text;         /* owned */
  double *cumulative; /* (n) shares up to and with each word; the last is 1 */
} wordlist;

typedef struct theme {
  wordlist list;
  int64_t period; /* the only one it lives in; -1: all */
} theme;

typedef struct plan {
  int64_t documents, periods, persistent, local;
  int64_t year, month; /* of the first period; month from 0 */
  bool jsonl;
  uint32_t seed;
  const char *out;
  theme subjects[MOST_SUBJECTS]; /* persistent ones first */
  wordlist function, general;
} plan;

/* The numbers of one document, drawn one after the other. */
typedef struct dice {
  uint32_t seed, step;
  uint64_t index;
} dice;

/* What a document is, before it is written down. */
typedef struct document {
  int64_t number, period, day; /* day of the month, from 1 */
  int64_t main, second;        /* subjects; second -1: none */
  bool has_body, is_brief;
  char *title, *body; /* plain text; owned */
} document;

/* ---- chance ---------------------------------------------------------------------- */

static double roll(dice *d)
{
  return mt_random_unit(d->seed, MT_STREAM_NEWSWIRE, d->index, d->step++);
}

static int64_t roll_below(dice *d, int64_t n)
{
  return (int64_t)(roll(d) * (double)n);
}

/* A number of the plan rather than of a document: uniform in (0, 1). */
static double plan_unit(const plan *p, int64_t subject, int64_t period)
{
  uint32_t w[4];
  mt_random_words(p->seed, MT_STREAM_NEWSWIRE, (uint64_t)period, (uint32_t)subject, 1,
                  w);
  return mt_random_unit_of(w[0], w[1]);
}

static const char *roll_word(dice *d, const wordlist *list)
{
  double u = roll(d);
  int64_t low = 0, high = list->n - 1;
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if (list->cumulative[middle] < u)
      low = middle + 1;
    else
      high = middle;
  }
  return list->words[low];
}

/* ---- the plan -------------------------------------------------------------------- */

/* Splits at blanks; the share of the word of rank r is as 1 / (r + flat). scattered: the
 * ranks do not follow the order of the list. */
static mt_status wordlist_make(const char *text, double flat, bool scattered,
                               wordlist *list_out)
{
  mt_status status = MT_OK;
  wordlist list = {0};
  int64_t most = 1;
  for (const char *c = text; *c; c++) most += *c == ' ';
  list.text = strdup(text);
  list.words = calloc((size_t)most, sizeof *list.words);
  list.cumulative = calloc((size_t)most, sizeof *list.cumulative);
  MT_REQUIRE(list.text && list.words && list.cumulative, MT_ERR_MEMORY,
             "out of memory");
  char *rest = NULL;
  for (char *w = strtok_r(list.text, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
    list.words[list.n++] = w;
  double sum = 0.0;
  for (int64_t i = 0; i < list.n; i++) {
    int64_t rank = scattered ? (i * 7919 + 13) % list.n : i;
    list.cumulative[i] = sum += 1.0 / ((double)rank + flat);
  }
  for (int64_t i = 0; i < list.n; i++) list.cumulative[i] /= sum;
  *list_out = list;
  list = (wordlist){0};
done:
  free(list.text), free(list.words), free(list.cumulative);
  return status;
}

static void wordlist_destroy(wordlist *list)
{
  free(list->text), free(list->words), free(list->cumulative);
  *list = (wordlist){0};
}

static void plan_destroy(plan *p)
{
  for (int64_t s = 0; s < MOST_SUBJECTS; s++) wordlist_destroy(&p->subjects[s].list);
  wordlist_destroy(&p->function), wordlist_destroy(&p->general);
}

static mt_status plan_make(plan *p)
{
  mt_status status = MT_OK;
  MT_REQUIRE(p->persistent + p->local <= MOST_SUBJECTS, MT_ERR_INPUT,
             "--topics %lld and --local-topics %lld: together at most %d",
             (long long)p->persistent, (long long)p->local, MOST_SUBJECTS);
  MT_REQUIRE(p->persistent > 0 || p->local >= p->periods, MT_ERR_INPUT,
             "a period has no topic: ask for a persistent one, or more local ones");
  for (int64_t s = 0; s < p->persistent + p->local; s++) {
    theme *it = &p->subjects[s];
    const char *line = mt_newswire_subjects[s], *words = strchr(line, ':') + 2;
    MT_TRY(wordlist_make(words, 4.0, false, &it->list));
    it->period = s < p->persistent ? -1 : (s - p->persistent) % p->periods;
  }
  MT_TRY(wordlist_make(mt_newswire_function, 1.5, false, &p->function));
  MT_TRY(wordlist_make(mt_newswire_general, 30.0, true, &p->general));
done:
  return status;
}

static int64_t subject_count(const plan *p)
{
  return p->persistent + p->local;
}

/* How much of a period is about a subject, in no unit; 0 where it does not live. */
static double subject_weight(const plan *p, int64_t s, int64_t period)
{
  if (p->subjects[s].period >= 0) return p->subjects[s].period == period ? 1.0 : 0.0;
  return 0.7 + 0.6 * plan_unit(p, s, period);
}

static int64_t roll_subject(dice *d, const plan *p, int64_t period)
{
  double total = 0.0;
  for (int64_t s = 0; s < subject_count(p); s++) total += subject_weight(p, s, period);
  double left = roll(d) * total;
  int64_t last = 0;
  for (int64_t s = 0; s < subject_count(p); s++) {
    double weight = subject_weight(p, s, period);
    if (weight > 0.0) last = s;
    if (weight > 0.0 && (left -= weight) <= 0.0) break;
  }
  return last;
}

/* ---- a document's text -------------------------------------------------------------- */

/* Words into lines of LINE_WIDTH; paragraphs start with four blanks. */
typedef struct paper {
  FILE *text;
  int column;
} paper;

static void put_word(paper *page, const char *word)
{
  int length = (int)strlen(word);
  if (page->column > 0 && page->column + 1 + length > LINE_WIDTH) {
    fputc('\n', page->text);
    page->column = 0;
  }
  page->column += fprintf(page->text, "%s%s", page->column > 0 ? " " : "", word);
}

static void put_figure(paper *page, dice *d)
{
  char figure[32];
  double kind = roll(d);
  if (kind < 0.4)
    snprintf(figure, sizeof figure, "%.1f mln", roll(d) * 90);
  else if (kind < 0.7)
    snprintf(figure, sizeof figure, "%lld,%03lld", (long long)roll_below(d, 900) + 1,
             (long long)roll_below(d, 1000));
  else if (kind < 0.9)
    snprintf(figure, sizeof figure, "%.1f pct", roll(d) * 30);
  else {
    int64_t code = roll_below(d, 26 * 26 * 26);
    snprintf(figure, sizeof figure, "<%c%c%c>", (char)('A' + code / 676),
             (char)('A' + code / 26 % 26), (char)('A' + code % 26));
  }
  put_word(page, figure);
}

static const char *roll_content(dice *d, const plan *p, const document *doc)
{
  int64_t s = doc->second >= 0 && roll(d) < 0.2 ? doc->second : doc->main;
  return roll_word(d, &p->subjects[s].list);
}

/* Returns the words that it wrote. */
static int64_t put_sentence(paper *page, dice *d, const plan *p, const document *doc)
{
  int64_t words = 8 + roll_below(d, 16), phrases = 0;
  for (int64_t i = 0; i < words; i++) {
    double kind = roll(d);
    if (kind < 0.50)
      put_word(page, roll_content(d, p, doc));
    else if (kind < 0.83)
      put_word(page, roll_word(d, &p->function));
    else if (kind < 0.95)
      put_word(page, roll_word(d, &p->general));
    else
      put_figure(page, d);
  }
  if (roll(d) < 0.3) {
    while (mt_newswire_phrases[phrases] != NULL) phrases++;
    put_word(page, mt_newswire_phrases[roll_below(d, phrases)]);
  }
  fputc('.', page->text);
  return words;
}

static mt_status write_body(dice *d, const plan *p, const document *doc,
                            char **body_out)
{
  size_t size = 0;
  paper page = {open_memstream(body_out, &size), 0};
  if (page.text == NULL) return mt_fail(MT_ERR_MEMORY, "out of memory");
  double u = roll(d);
  int64_t length = 60 + (int64_t)(180 * u * u);
  for (int64_t words = 0; words < length;) {
    words += put_sentence(&page, d, p, doc);
    if (words < length && roll(d) < 0.4) {
      fputs("\n    ", page.text);
      page.column = 0;
    }
  }
  fputs("\n Reuter\n", page.text);
  return fclose(page.text) == 0 ? MT_OK : mt_fail(MT_ERR_MEMORY, "out of memory");
}

static mt_status write_title(dice *d, const plan *p, const document *doc,
                             char **title_out)
{
  size_t size = 0;
  FILE *text = open_memstream(title_out, &size);
  if (text == NULL) return mt_fail(MT_ERR_MEMORY, "out of memory");
  int64_t words = 3 + roll_below(d, 4);
  for (int64_t i = 0; i < words; i++) {
    const char *word = i == 2 ? roll_word(d, &p->function) : roll_content(d, p, doc);
    if (i > 0) fputc(' ', text);
    for (const char *c = word; *c; c++) fputc(toupper((unsigned char)*c), text);
  }
  if (roll(d) < 0.1) fputs(" <A&B>", text);
  return fclose(text) == 0 ? MT_OK : mt_fail(MT_ERR_MEMORY, "out of memory");
}

/* The first document of a period: periods are between 2/3 and 4/3 of the mean. */
static int64_t first_document(const plan *p, int64_t period)
{
  if (period <= 0) return 0;
  if (period >= p->periods) return p->documents;
  double shift = (plan_unit(p, -1, period) - 0.5) / 3.0;
  return (int64_t)(((double)period + shift) * (double)p->documents /
                   (double)p->periods);
}

static int64_t period_of(const plan *p, int64_t number)
{
  int64_t low = 0, high = p->periods - 1;
  while (low < high) { /* the last period that starts at or before it */
    int64_t middle = (low + high + 1) / 2;
    if (first_document(p, middle) <= number)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

static int64_t days_of(int64_t year, int64_t month)
{
  static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return days[month] + (month == 1 && leap);
}

static int64_t year_of(const plan *p, int64_t period)
{
  return p->year + (p->month + period) / 12;
}

static int64_t month_of(const plan *p, int64_t period)
{
  return (p->month + period) % 12;
}

/* Makes document `number`. title and body are the caller's. */
static mt_status make_document(const plan *p, int64_t number, dice *d, document *doc)
{
  *doc = (document){.number = number, .period = period_of(p, number), .second = -1};
  *d = (dice){.seed = p->seed, .index = (uint64_t)number};
  int64_t first = first_document(p, doc->period),
          next = first_document(p, doc->period + 1);
  int64_t days = days_of(year_of(p, doc->period), month_of(p, doc->period));
  doc->day = 1 + (number - first) * days / (next - first);
  double kind = roll(d);
  doc->has_body = kind < 0.9;
  doc->is_brief = !doc->has_body && kind < 0.97;
  doc->main = roll_subject(d, p, doc->period);
  if (roll(d) < 0.2) doc->second = roll_subject(d, p, doc->period);
  mt_status status = write_title(d, p, doc, &doc->title);
  if (status == MT_OK) status = write_body(d, p, doc, &doc->body);
  return status;
}

/* ---- the formats -------------------------------------------------------------------- */

static void put_sgml_text(FILE *file, const char *text)
{
  for (const char *c = text; *c; c++) {
    if (*c == '<')
      fputs("&lt;", file);
    else if (*c == '&')
      fputs("&amp;", file);
    else
      fputc(*c, file);
  }
}

/* " 3-MAR-1987 09:19:43.22", and now and then what clerks make of it. */
static void put_sgml_date(FILE *file, dice *d, const plan *p, const document *doc)
{
  static const char months[] = "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC";
  double odd = roll(d);
  long long hour = odd < 0.002 ? 605 : (long long)roll_below(d, 24);
  fprintf(file, "<DATE>%2lld-%.3s-%lld %02lld:%02lld:%05.2f%s</DATE>\n",
          (long long)doc->day, months + 3 * month_of(p, doc->period),
          (long long)year_of(p, doc->period), hour, (long long)roll_below(d, 60),
          roll(d) * 59.99, odd > 0.98 ? "&#5;&#5;&#5;F" : "");
}

static void put_sgml(FILE *file, dice *d, const plan *p, const document *doc)
{
  const char *name = mt_newswire_subjects[doc->main];
  fprintf(file,
          "<REUTERS TOPICS=\"YES\" LEWISSPLIT=\"TRAIN\" CGISPLIT=\"TRAINING-SET\" "
          "OLDID=\"%lld\" NEWID=\"%lld\">\n",
          (long long)doc->number + 5544, (long long)doc->number + 1);
  put_sgml_date(file, d, p, doc);
  fprintf(file,
          "<TOPICS><D>%.*s</D></TOPICS>\n<PLACES></PLACES>\n<PEOPLE></PEOPLE>\n"
          "<ORGS></ORGS>\n<EXCHANGES></EXCHANGES>\n<COMPANIES></COMPANIES>\n"
          "<UNKNOWN> \n&#5;&#30;&#5;C T\n&#22;&#22;&#1;f0704&#31;newswire\n"
          "u f BC-%lld</UNKNOWN>\n",
          (int)strcspn(name, ":"), name, (long long)doc->number % 10000);
  const char *type = doc->has_body   ? ""
                     : doc->is_brief ? " TYPE=\"BRIEF\""
                                     : " TYPE=\"UNPROC\"";
  fprintf(file, "<TEXT%s>&#2;\n", type);
  if (doc->has_body || doc->is_brief) {
    fputs(doc->is_brief ? "******<TITLE>" : "<TITLE>", file);
    put_sgml_text(file, doc->title);
    fputs("</TITLE>\n", file);
  } else {
    put_sgml_text(file, doc->title);
    fputc('\n', file);
  }
  if (doc->has_body) {
    fputs("<DATELINE>    NEW YORK - </DATELINE><BODY>", file);
    put_sgml_text(file, doc->body);
    fputs("&#3;</BODY></TEXT>\n", file);
  } else
    fputs(doc->is_brief ? "Blah blah blah.\n&#3;\n\n</TEXT>\n" : "&#3;\n\n</TEXT>\n",
          file);
  fputs("</REUTERS>\n", file);
}

static void put_json_text(FILE *file, const char *text)
{
  fputc('"', file);
  for (const char *c = text; *c; c++) {
    if (*c == '\n')
      fputs("\\n", file);
    else if (*c == '"' || *c == '\\')
      fprintf(file, "\\%c", *c);
    else
      fputc(*c, file);
  }
  fputc('"', file);
}

static void put_jsonl(FILE *file, const plan *p, const document *doc)
{
  fprintf(file, "{\"id\": \"%lld\", \"date\": \"%04lld-%02lld-%02lld\", \"title\": ",
          (long long)doc->number + 1, (long long)year_of(p, doc->period),
          (long long)month_of(p, doc->period) + 1, (long long)doc->day);
  put_json_text(file, doc->title);
  fputs(", \"text\": ", file);
  put_json_text(file, doc->has_body ? doc->body : "");
  fputs("}\n", file);
}

/* ---- the files ---------------------------------------------------------------------- */

static mt_status open_file(const plan *p, const char *name, FILE **file_out)
{
  char *path = NULL;
  if (asprintf(&path, "%s/%s", p->out, name) < 0)
    return mt_fail(MT_ERR_MEMORY, "out of memory");
  *file_out = fopen(path, "wb");
  mt_status status = MT_OK;
  if (*file_out == NULL)
    status = mt_fail(MT_ERR_IO, "cannot write %s: %s", path, strerror(errno));
  free(path);
  return status;
}

static mt_status close_file(const plan *p, FILE **file)
{
  bool good = *file == NULL || (!ferror(*file) & (fclose(*file) == 0));
  *file = NULL;
  return good ? MT_OK : mt_fail(MT_ERR_IO, "cannot write in %s: disk full?", p->out);
}

/* The truth: topics with their words and periods, and each document's main topic (-1: it
 * has no body). */
static void put_truth_head(FILE *file, const plan *p)
{
  fprintf(file, "{\"seed\": %u, \"documents\": %lld,\n \"periods\": [", p->seed,
          (long long)p->documents);
  for (int64_t i = 0; i < p->periods; i++)
    fprintf(file, "%s\"%04lld-%02lld\"", i ? ", " : "", (long long)year_of(p, i),
            (long long)month_of(p, i) + 1);
  fputs("],\n \"topics\": [", file);
  for (int64_t s = 0; s < subject_count(p); s++) {
    const theme *it = &p->subjects[s];
    const char *name = mt_newswire_subjects[s];
    fprintf(file, "%s\n  {\"name\": \"%.*s\", \"kind\": \"%s\", \"periods\": [",
            s ? "," : "", (int)strcspn(name, ":"), name,
            it->period < 0 ? "persistent" : "local");
    for (int64_t i = 0, some = 0; i < p->periods; i++)
      if (it->period < 0 || it->period == i)
        fprintf(file, "%s\"%04lld-%02lld\"", some++ ? ", " : "",
                (long long)year_of(p, i), (long long)month_of(p, i) + 1);
    fputs("], \"words\": [", file);
    for (int64_t w = 0; w < it->list.n; w++)
      fprintf(file, "%s\"%s\"", w ? ", " : "", it->list.words[w]);
    fputs("]}", file);
  }
  fputs("],\n \"document_topics\": [", file);
}

static mt_status write_all(const plan *p)
{
  mt_status status = MT_OK;
  FILE *news = NULL, *truth = NULL;
  document doc = {0};
  dice d;
  MT_REQUIRE(mkdir(p->out, 0777) == 0 || errno == EEXIST, MT_ERR_IO,
             "cannot make %s: %s", p->out, strerror(errno));
  MT_TRY(open_file(p, "truth.json", &truth));
  put_truth_head(truth, p);
  for (int64_t i = 0; i < p->documents; i++) {
    if (p->jsonl ? i == 0 : i % DOCUMENTS_A_FILE == 0) {
      char name[48] = "news.jsonl";
      if (!p->jsonl)
        snprintf(name, sizeof name, "news-%03lld.sgm", (long long)i / DOCUMENTS_A_FILE);
      MT_TRY(close_file(p, &news));
      MT_TRY(open_file(p, name, &news));
      if (!p->jsonl) fputs("<!DOCTYPE lewis SYSTEM \"lewis.dtd\">\n", news);
    }
    MT_TRY(make_document(p, i, &d, &doc));
    if (p->jsonl)
      put_jsonl(news, p, &doc);
    else
      put_sgml(news, &d, p, &doc);
    fprintf(truth, "%s%lld", i ? "," : "", doc.has_body ? (long long)doc.main : -1LL);
    free(doc.title), free(doc.body);
    doc = (document){0};
  }
  fputs("]}\n", truth);
  MT_TRY(close_file(p, &news));
  MT_TRY(close_file(p, &truth));
  printf("newswire: %lld documents of %lld periods in %s\n", (long long)p->documents,
         (long long)p->periods, p->out);
done:
  free(doc.title), free(doc.body);
  if (news != NULL) fclose(news);
  if (truth != NULL) fclose(truth);
  return status;
}

/* ---- the command line ----------------------------------------------------------------- */

static const struct argp_option options[] = {
    {"documents", 'n', "N", 0, "how many (2000)", 0},
    {"periods", 'p', "N", 0, "how many months (5)", 0},
    {"start", 's', "YYYY-MM", 0, "the first month (1987-02)", 0},
    {"topics", 't', "N", 0, "topics that live in every month (7)", 0},
    {"local-topics", 'l', "N", 0, "topics that live in one month, over all months (10)",
     0},
    {"format", 'f', "sgml|jsonl", 0, "as Reuters-21578, or JSON Lines (sgml)", 0},
    {"seed", 'r', "N", 0, "another seed, another collection (1)", 0},
    {"out", 'o', "DIR", 0, "the folder to write (newswire)", 0},
    {0}};

static int64_t number_of(const char *text, int64_t low, int64_t high,
                         struct argp_state *state)
{
  char *end = NULL;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (end == text || *end || errno || value < low || value > high)
    argp_error(state, "\"%s\": allowed: an integer from %lld to %lld", text,
               (long long)low, (long long)high);
  return value;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
  plan *p = state->input;
  int end = 0;
  long long year, month;
  switch (key) {
  case 'n':
    p->documents = number_of(text, 1, INT64_C(1) << 40, state);
    return 0;
  case 'p':
    p->periods = number_of(text, 1, 12000, state);
    return 0;
  case 't':
    p->persistent = number_of(text, 0, MOST_SUBJECTS, state);
    return 0;
  case 'l':
    p->local = number_of(text, 0, MOST_SUBJECTS, state);
    return 0;
  case 'r':
    p->seed = (uint32_t)number_of(text, 0, UINT32_MAX, state);
    return 0;
  case 'o':
    p->out = text;
    return 0;
  case 'f':
    p->jsonl = strcmp(text, "jsonl") == 0;
    if (!p->jsonl && strcmp(text, "sgml") != 0)
      argp_error(state, "--format %s: allowed: sgml, jsonl", text);
    return 0;
  case 's':
    if (sscanf(text, "%4lld-%2lld%n", &year, &month, &end) != 2 || text[end] ||
        month < 1 || month > 12 || year < 1)
      argp_error(state, "--start %s: allowed: year-month as 1987-02", text);
    p->year = year, p->month = month - 1;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

int main(int argc, char **argv)
{
  static plan p = {.documents = 2000,
                   .periods = 5,
                   .persistent = 7,
                   .local = 10,
                   .year = 1987,
                   .month = 1,
                   .seed = 1,
                   .out = "newswire"};
  static const struct argp argp = {
      options,
      parse,
      NULL,
      "Makes a dated text collection whose topics are known (truth.json beside it).",
      NULL,
      NULL,
      NULL};
  mt_log_setup(0, 1, MT_LOG_INFO);
  argp_err_exit_status = 2;
  if (argp_parse(&argp, argc, argv, 0, NULL, &p) != 0) return 2;
  mt_status status = p.documents >= p.periods
                         ? plan_make(&p)
                         : mt_fail(MT_ERR_INPUT, "more periods than documents");
  if (status == MT_OK) status = write_all(&p);
  plan_destroy(&p);
  return mt_exit_code(status);
}
