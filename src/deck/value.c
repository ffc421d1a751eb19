/* A parameter's value, kind by kind: from text, to text, to JSON, into a hash. */
#include "deck/table.h"
#include "base/memory.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static void *place(const mt_parameter *parameter, const mt_parameters *parameters)
{
  return (char *)parameters + parameter->offset;
}

/* A place in words, -1 if it is none. */
static int index_of(const char *const *words, const char *text, size_t length)
{
  for (int i = 0; words[i] != NULL; i++)
    if (strlen(words[i]) == length && memcmp(words[i], text, length) == 0) return i;
  return -1;
}

static mt_status wrong(char *why, const char *what)
{
  snprintf(why, MT_SAID_LONGEST, "%s", what);
  return MT_ERR_INPUT;
}

static mt_status no_memory(char *why)
{
  snprintf(why, MT_SAID_LONGEST, "no memory for it");
  return MT_ERR_MEMORY;
}

/* ---- numbers: the same in every locale ---------------------------------------------- */

locale_t mt_plain_locale(void)
{
  static locale_t plain;
  if (plain == NULL) plain = newlocale(LC_ALL_MASK, "C", NULL);
  return plain;
}

/* [+-] digits, with at least one; the rest of the text. NULL if there is none. */
static const char *after_digits(const char *text)
{
  const char *at = text;
  while (*at >= '0' && *at <= '9') at++;
  return at == text ? NULL : at;
}

static bool is_integer(const char *text)
{
  const char *end = after_digits(text + (*text == '-' || *text == '+'));
  return end != NULL && *end == '\0' && end - text <= 20;
}

/* [+-] digits [. digits] [e [+-] digits], digits on one side of the point suffice */
static bool is_real(const char *text)
{
  const char *at = text + (*text == '-' || *text == '+'), *whole = after_digits(at);
  if (whole != NULL) at = whole;
  if (*at == '.') {
    const char *part = after_digits(at + 1);
    if (whole == NULL && part == NULL) return false;
    at = part != NULL ? part : at + 1;
  } else if (whole == NULL) {
    return false;
  }
  if (*at == 'e' || *at == 'E') {
    at = after_digits(at + 1 + (at[1] == '-' || at[1] == '+'));
    if (at == NULL) return false;
  }
  return *at == '\0' && at - text <= 60;
}

static mt_status parse_integer(const char *text, double low, double high, int64_t *out,
                               char *why)
{
  if (!is_integer(text))
    return wrong(why, is_real(text) ? "must be a whole number" : "not an integer");
  errno = 0;
  long long value = strtoll(text, NULL, 10);
  if (errno != 0 || (double)value < low || (double)value > high)
    return wrong(why, "out of range");
  *out = value;
  return MT_OK;
}

static mt_status parse_real(const char *text, double low, double high, double *out,
                            char *why)
{
  if (!is_real(text)) return wrong(why, "not a number");
  double value = strtod_l(text, NULL, mt_plain_locale());
  if (!(value >= low && value <= high)) return wrong(why, "out of range");
  *out = value == 0.0 ? 0.0 : value; /* no -0 */
  return MT_OK;
}

/* The shortest of 15 to 17 digits that reads back as the same number. */
static void write_real(double value, char *out, size_t size)
{
  locale_t before = uselocale(mt_plain_locale());
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(out, size, "%.*g", digits, value);
    if (strtod_l(out, NULL, mt_plain_locale()) == value) break;
  }
  uselocale(before);
}

static mt_status read_int(const mt_parameter *p, const char *text, mt_parameters *all,
                          char *why)
{
  int64_t value = (int64_t)p->special;
  if (index_of(p->words, text, strlen(text)) < 0) {
    mt_status status = parse_integer(text, p->low, p->high, &value, why);
    if (status != MT_OK) return status;
  }
  *(int64_t *)place(p, all) = value;
  return MT_OK;
}

static mt_status read_real(const mt_parameter *p, const char *text, mt_parameters *all,
                           char *why)
{
  double value = p->special;
  if (index_of(p->words, text, strlen(text)) < 0) {
    mt_status status = parse_real(text, p->low, p->high, &value, why);
    if (status != MT_OK) return status;
  }
  *(double *)place(p, all) = value;
  return MT_OK;
}

static char *copy(const char *text)
{
  char *out = NULL;
  return mt_string_copy(text, &out) == MT_OK ? out : NULL;
}

static char *text_int(const mt_parameter *p, const mt_parameters *all)
{
  char text[32];
  int64_t value = *(int64_t *)place(p, all);
  if (p->words[0] != NULL && value == (int64_t)p->special) return copy(p->words[0]);
  snprintf(text, sizeof text, "%lld", (long long)value);
  return copy(text);
}

static char *text_real(const mt_parameter *p, const mt_parameters *all)
{
  char text[64];
  double value = *(double *)place(p, all);
  if (p->words[0] != NULL && value == p->special) return copy(p->words[0]);
  write_real(value, text, sizeof text);
  return copy(text);
}

/* A frequency: a share if it is written as a real, as scikit-learn tells int from float. */
static mt_status read_frequency(const mt_parameter *p, const char *text,
                                mt_parameters *all, char *why)
{
  mt_frequency value = {0};
  int64_t count = 0;
  mt_status status;
  if (is_integer(text)) {
    status = parse_integer(text, p->low, p->high, &count, why);
    value.value = (double)count;
  } else {
    status = parse_real(text, 0, 1, &value.value, why);
    value.is_share = true;
  }
  if (status == MT_OK) *(mt_frequency *)place(p, all) = value;
  return status;
}

static char *text_frequency(const mt_parameter *p, const mt_parameters *all)
{
  char text[64];
  const mt_frequency *frequency = place(p, all);
  write_real(frequency->value, text, sizeof text - 2);
  if (frequency->is_share && strpbrk(text, ".e") == NULL) strcat(text, ".0");
  return copy(text);
}

/* ---- words ---------------------------------------------------------------------------- */

static mt_status read_bool(const mt_parameter *p, const char *text, mt_parameters *all,
                           char *why)
{
  bool is_true = strcmp(text, "true") == 0;
  if (!is_true && strcmp(text, "false") != 0)
    return wrong(why, "neither true nor false");
  *(bool *)place(p, all) = is_true;
  return MT_OK;
}

static char *text_bool(const mt_parameter *p, const mt_parameters *all)
{
  return copy(*(bool *)place(p, all) ? "true" : "false");
}

static mt_status read_choice(const mt_parameter *p, const char *text,
                             mt_parameters *all, char *why)
{
  int at = index_of(p->words, text, strlen(text));
  if (at < 0) return wrong(why, "not one of the words");
  *(unsigned *)place(p, all) = (unsigned)at;
  return MT_OK;
}

static char *text_choice(const mt_parameter *p, const mt_parameters *all)
{
  return copy(p->words[*(unsigned *)place(p, all)]);
}

static mt_status read_text(const mt_parameter *p, const char *text, mt_parameters *all,
                           char *why)
{
  const unsigned char *at = (const unsigned char *)text;
  utf8proc_ssize_t left = (utf8proc_ssize_t)strlen(text), step;
  utf8proc_int32_t letter;
  char **to = place(p, all), *value = NULL;

  if (left == 0) return wrong(why, "empty");
  if (left > MT_TEXT_LONGEST) return wrong(why, "too long");
  for (; left > 0; left -= step, at += step) {
    step = utf8proc_iterate(at, left, &letter);
    if (step <= 0) return wrong(why, "not UTF-8");
    if (letter < 0x20 || letter == 0x7f || letter == 0xfffe || letter == 0xffff)
      return wrong(why, "holds a control character");
  }
  value = copy(text);
  if (value == NULL) return no_memory(why);
  free(*to);
  *to = value;
  return MT_OK;
}

static char *text_text(const mt_parameter *p, const mt_parameters *all)
{
  const char *text = *(char **)place(p, all);
  return copy(text != NULL ? text : "");
}

_Static_assert(offsetof(mt_map_options, png) ==
                   offsetof(mt_map_options, svg) + sizeof(bool),
               "the flags of format lie in the order of its words");

static mt_status read_formats(const mt_parameter *p, const char *text,
                              mt_parameters *all, char *why)
{
  bool given[2] = {false, false}, *flags = place(p, all);
  int n = 0;
  for (const char *at = text + strspn(text, " "); *at != '\0';
       at += strspn(at, " "), n++) {
    size_t length = strcspn(at, " ");
    int word = index_of(p->words, at, length);
    if (word < 0) return wrong(why, "not one of the words");
    if (given[word]) return wrong(why, "a word stands there twice");
    given[word] = true;
    at += length;
  }
  if (n == 0) return wrong(why, "empty");
  flags[0] = given[0];
  flags[1] = given[1];
  return MT_OK;
}

static char *text_formats(const mt_parameter *p, const mt_parameters *all)
{
  const bool *flags = place(p, all);
  return copy(!flags[1] ? p->words[0] : flags[0] ? p->text : p->words[1]);
}

/* ---- lists of seeds --------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static mt_status parse_seed(const mt_parameter *p, const char *word, int64_t *out,
                            char *why)
{
  if (word[0] >= '0' && word[0] <= '9' &&
      parse_integer(word, p->low, p->high, out, why) == MT_OK)
    return MT_OK;
  bool number = is_integer(word) && word[0] != '+';
  return wrong(why, number ? "a number is out of range"
                           : "not a list of numbers and ranges");
}

/* "7" or "0-99": first, last; the text after it. */
static mt_status parse_range(const mt_parameter *p, const char **text, int64_t *first,
                             int64_t *last, char *why)
{
  char word[48] = "";
  size_t length = strcspn(*text, " ");
  if (length < sizeof word) memcpy(word, *text, length);
  char *dash = word[0] != '\0' ? strchr(word + 1, '-') : NULL;
  if (dash != NULL) *dash = '\0';
  mt_status status = parse_seed(p, word, first, why);
  *last = *first;
  if (status == MT_OK && dash != NULL) status = parse_seed(p, dash + 1, last, why);
  if (status == MT_OK && *last < *first) status = wrong(why, "a range runs backwards");
  *text += length;
  *text += strspn(*text, " ");
  return status;
}

static mt_status parse_seeds(const mt_parameter *p, const char *text,
                             int64_t **seeds_out, int64_t *n_out, char *why)
{
  int64_t *seeds = *seeds_out, n = 0, capacity = 0, first = 0, last = 0;
  for (text += strspn(text, " "); *text != '\0';) {
    mt_status status = parse_range(p, &text, &first, &last, why);
    if (status != MT_OK) return status;
    if (last - first >= MT_SEEDS_MOST - n) return wrong(why, "too many seeds");
    status = mt_memory_grow(n + last - first + 1, sizeof *seeds, "seeds", &capacity,
                            (void **)&seeds);
    *seeds_out = seeds;
    if (status != MT_OK) return no_memory(why);
    for (int64_t seed = first; seed <= last; seed++) seeds[n++] = seed;
  }
  *n_out = n;
  return n > 0 ? MT_OK : wrong(why, "empty");
}

static mt_status find_twice(const int64_t *seeds, int64_t n, char *why)
{
  mt_status status = MT_OK;
  int64_t *sorted = malloc(sizeof *sorted * (size_t)n);
  if (sorted == NULL) return no_memory(why);
  memcpy(sorted, seeds, sizeof *sorted * (size_t)n);
  qsort(sorted, (size_t)n, sizeof *sorted, by_value);
  for (int64_t i = 1; i < n && status == MT_OK; i++)
    if (sorted[i] == sorted[i - 1]) {
      snprintf(why, MT_SAID_LONGEST, "%lld is there twice", (long long)sorted[i]);
      status = MT_ERR_INPUT;
    }
  free(sorted);
  return status;
}

static mt_status read_seeds(const mt_parameter *p, const char *text, mt_parameters *all,
                            char *why)
{
  int64_t *seeds = NULL, n = 0;
  mt_status status = parse_seeds(p, text, &seeds, &n, why);
  if (status == MT_OK) status = find_twice(seeds, n, why);
  if (status != MT_OK) {
    free(seeds);
    return status;
  }
  free(all->lda.seeds);
  all->lda.seeds = seeds;
  all->lda.n_seeds = n;
  return MT_OK;
}

/* Four or more in a row become a range. */
static char *text_seeds(const mt_parameter *p, const mt_parameters *all)
{
  (void)p;
  const int64_t *seeds = all->lda.seeds, n = all->lda.n_seeds;
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  if (out == NULL) return NULL;
  for (int64_t i = 0, run; i < n; i += run) {
    for (run = 1; i + run < n && seeds[i + run] == seeds[i] + run;) run++;
    if (run < 4) run = 1;
    fprintf(out, "%s%lld", i > 0 ? " " : "", (long long)seeds[i]);
    if (run > 1) fprintf(out, "-%lld", (long long)seeds[i + run - 1]);
  }
  fclose(out);
  return text;
}

/* ---- by kind ---------------------------------------------------------------------------- */

static const struct {
  mt_status (*read)(const mt_parameter *, const char *, mt_parameters *, char *);
  char *(*text)(const mt_parameter *, const mt_parameters *);
} kinds[] = {
    [MT_KIND_INT] = {read_int, text_int},
    [MT_KIND_REAL] = {read_real, text_real},
    [MT_KIND_BOOL] = {read_bool, text_bool},
    [MT_KIND_CHOICE] = {read_choice, text_choice},
    [MT_KIND_TEXT] = {read_text, text_text},
    [MT_KIND_FREQUENCY] = {read_frequency, text_frequency},
    [MT_KIND_SEEDS] = {read_seeds, text_seeds},
    [MT_KIND_FORMATS] = {read_formats, text_formats},
};

mt_status mt_parameter_read(const mt_parameter *parameter, const char *text,
                            mt_parameters *parameters, char *why)
{
  return kinds[parameter->kind].read(parameter, text, parameters, why);
}

char *mt_parameter_text(const mt_parameter *parameter, const mt_parameters *parameters)
{
  return kinds[parameter->kind].text(parameter, parameters);
}

static void join(const char *const *words, const char *between, char *out, size_t size)
{
  size_t at = 0;
  out[0] = '\0';
  for (int i = 0; words[i] != NULL && at < size; i++)
    at += (size_t)snprintf(out + at, size - at, "%s%s", i > 0 ? between : "", words[i]);
}

void mt_parameter_allowed(const mt_parameter *p, char *out)
{
  char words[MT_SAID_LONGEST - 40], low[32], high[32];
  const char *word = p->words[0] != NULL ? p->words[0] : "",
             *comma = word[0] ? ", or " : "";
  join(p->words, p->kind == MT_KIND_CHOICE ? " | " : " ", words, sizeof words);
  write_real(p->low, low, sizeof low);
  write_real(p->high, high, sizeof high);
  switch (p->kind) {
  case MT_KIND_INT:
    snprintf(out, MT_SAID_LONGEST, "%s%sinteger %s to %s", word, comma, low, high);
    break;
  case MT_KIND_REAL:
    snprintf(out, MT_SAID_LONGEST, "%s%snumber %s to %s", word, comma, low, high);
    break;
  case MT_KIND_BOOL:
    snprintf(out, MT_SAID_LONGEST, "true | false");
    break;
  case MT_KIND_CHOICE:
    snprintf(out, MT_SAID_LONGEST, "%s", words);
    break;
  case MT_KIND_TEXT:
    snprintf(out, MT_SAID_LONGEST, "text of 1 to %d bytes, UTF-8", MT_TEXT_LONGEST);
    break;
  case MT_KIND_FREQUENCY:
    snprintf(out, MT_SAID_LONGEST, "integer %s to %s, or share 0.0 to 1.0", low, high);
    break;
  case MT_KIND_SEEDS:
    snprintf(
        out, MT_SAID_LONGEST,
        "distinct integers %s to %s and ranges (0-99), separated by blanks, at most %d",
        low, high, MT_SEEDS_MOST);
    break;
  case MT_KIND_FORMATS:
    snprintf(out, MT_SAID_LONGEST, "one or more of: %s", words);
    break;
  }
}

json_t *mt_parameter_json(const mt_parameter *p, const mt_parameters *all)
{
  const mt_frequency *frequency = place(p, all);
  bool word = p->words[0] != NULL;
  char *text = NULL;
  switch (p->kind) {
  case MT_KIND_INT:
    if (word && *(int64_t *)place(p, all) == (int64_t)p->special) break;
    return json_integer(*(int64_t *)place(p, all));
  case MT_KIND_REAL:
    if (word && *(double *)place(p, all) == p->special) break;
    return json_real(*(double *)place(p, all));
  case MT_KIND_BOOL:
    return json_boolean(*(bool *)place(p, all));
  case MT_KIND_FREQUENCY:
    return frequency->is_share ? json_real(frequency->value)
                               : json_integer((int64_t)frequency->value);
  default:
    break;
  }
  text = mt_parameter_text(p, all);
  json_t *json = text != NULL ? json_string(text) : NULL;
  free(text);
  return json;
}

void mt_parameter_hash(const mt_parameter *p, const mt_parameters *all, mt_hash *hash)
{
  char *text = mt_parameter_text(p, all);
  mt_hash_text(hash, p->name);
  mt_hash_text(hash, text);
  free(text);
}

const char *mt_said(const char *text, char *out)
{
  size_t length = strnlen(text, MT_SAID);
  size_t keep = length < MT_SAID ? length : MT_SAID - 4;
  while (keep > 0 && length == MT_SAID && ((unsigned char)text[keep] & 0xc0) == 0x80)
    keep--;
  for (size_t i = 0; i < keep; i++) {
    unsigned char c = (unsigned char)text[i];
    out[i] = (char)(c < 0x20 || c == 0x7f ? '?' : c);
  }
  strcpy(out + keep, length < MT_SAID ? "" : "...");
  return out;
}
