#include "corpus/sgml_parts.h"
#include "corpus/decode.h"
#include "corpus/scan.h"

#include <ctype.h>
#include <utf8proc.h>

/* ---- events -------------------------------------------------------------------------- */

static inline bool is(mt_span span, const char *word)
{
  return span.size == strlen(word) && memcmp(span.at, word, span.size) == 0;
}

/* The part that an element is; -1: none. */
static inline int part_of(mt_span element)
{
  if (is(element, "DATE")) return MT_SGML_DATE;
  if (is(element, "TITLE")) return MT_SGML_TITLE;
  return is(element, "BODY") ? MT_SGML_BODY : -1;
}

void mt_sgml_begin(mt_sgml_parts *parts)
{
  for (int p = 0; p < MT_SGML_PARTS; p++) {
    parts->part[p].text.size = 0;
    parts->part[p].seen = false;
  }
  parts->id.size = 0;
  parts->open = -1;
}

void mt_sgml_start(mt_sgml_parts *parts, mt_span element)
{
  int part = part_of(element);
  if (part < 0) return;
  parts->open = part;
  parts->part[part].seen = true;
}

void mt_sgml_attribute(mt_sgml_parts *parts, mt_span name, mt_span value)
{
  if (!is(name, "NEWID") || parts->status != MT_OK) return;
  parts->id.size = 0;
  parts->status = mt_buffer_add(&parts->id, value.at, value.size);
}

void mt_sgml_text(mt_sgml_parts *parts, mt_span text)
{
  if (parts->open >= 0 && parts->status == MT_OK)
    parts->status = mt_buffer_add(&parts->part[parts->open].text, text.at, text.size);
}

void mt_sgml_end(mt_sgml_parts *parts, mt_span element)
{
  if (parts->open >= 0 && part_of(element) == parts->open) parts->open = -1;
}

void mt_sgml_destroy(mt_sgml_parts *parts)
{
  for (int p = 0; p < MT_SGML_PARTS; p++) mt_buffer_destroy(&parts->part[p].text);
  mt_buffer_destroy(&parts->id);
}

/* ---- characters ------------------------------------------------------------------------ */

static bool is_letter(char c)
{
  return (c | 32) >= 'a' && (c | 32) <= 'z';
}

static bool is_control(int32_t code)
{
  return code < 32 ? code != 9 && code != 10 && code != 13 : code >= 127 && code < 160;
}

static bool is_xml_character(int32_t code)
{
  return code == 9 || code == 10 || code == 13 || (code >= 32 && code < 0xD800) ||
         (code >= 0xE000 && code < 0xFFFE) || (code >= 0x10000 && code < 0x110000);
}

static size_t named_reference(const char *at, size_t left, int32_t *code_out)
{
  static const char *const names[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&apos;"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    size_t length = strlen(names[i]);
    if (left < length || memcmp(at, names[i], length) != 0) continue;
    *code_out = "<>&\"'"[i];
    return length;
  }
  return 0;
}

size_t mt_sgml_reference(const char *at, size_t left, int32_t *code_out)
{
  if (left < 4 || at[1] != '#') return named_reference(at, left, code_out);
  bool hex = at[2] == 'x';
  size_t i = hex ? 3 : 2, first = i;
  int64_t code = 0; /* of ten digits at most */
  for (; i < left && i < 12 &&
         (hex ? isxdigit((unsigned char)at[i]) : isdigit((unsigned char)at[i]));
       i++) {
    int digit = isdigit((unsigned char)at[i]) ? at[i] - '0' : (at[i] | 32) - 'a' + 10;
    code = code * (hex ? 16 : 10) + digit;
  }
  if (i == first || i >= left || at[i] != ';' || code >= 0x110000) return 0;
  *code_out = (int32_t)code;
  return is_xml_character(*code_out) && !is_control(*code_out) ? i + 1 : 0;
}

bool mt_sgml_is_markup(const char *at, size_t left)
{
  if (left < 2) return false;
  char c = at[1];
  return is_letter(c) || c == '/' || c == '!' || c == '?' || c == '_';
}

/* ---- plain markup ---------------------------------------------------------------------- */

enum { DEEPEST = 16, MOST_ATTRIBUTES = 16 };

typedef struct scanner {
  const char *at, *end;
  mt_sgml_parts *parts;
  mt_span open[DEEPEST]; /* elements */
  int depth;
} scanner;

enum { BLANK = 1, LETTER = 2, IN_NAME = 4 };
static const unsigned char kinds[256] = {[' '] = BLANK,
                                         ['\n'] = BLANK,
                                         ['\t'] = BLANK,
                                         ['\r'] = BLANK,
                                         ['0' ... '9'] = IN_NAME,
                                         ['_'] = IN_NAME,
                                         ['-'] = IN_NAME,
                                         ['.'] = IN_NAME,
                                         ['a' ... 'z'] = LETTER | IN_NAME,
                                         ['A' ... 'Z'] = LETTER | IN_NAME};

static inline void skip(scanner *s, unsigned char kind)
{
  while (s->at < s->end && (kinds[(unsigned char)*s->at] & kind) != 0) s->at++;
}

static bool take(scanner *s, char wanted)
{
  if (s->at == s->end || *s->at != wanted) return false;
  s->at++;
  return true;
}

static bool take_name(scanner *s, mt_span *out)
{
  const char *first = s->at;
  if (s->at == s->end || !is_letter(*s->at)) return false;
  skip(s, IN_NAME);
  *out = (mt_span){first, (size_t)(s->at - first)};
  return true;
}

static bool take_value(scanner *s, mt_span *out)
{
  if (s->at == s->end || (*s->at != '"' && *s->at != '\'')) return false;
  char quote = *s->at++;
  const char *first = s->at;
  for (; s->at < s->end && *s->at != quote; s->at++)
    if (*s->at == '<' || *s->at == '&' || (unsigned char)*s->at < 0x20) return false;
  *out = (mt_span){first, (size_t)(s->at - first)};
  return take(s, quote);
}

/* name="value", each name once, with a blank before it. */
static bool take_attributes(scanner *s)
{
  mt_span names[MOST_ATTRIBUTES], value;
  for (int n = 0;; n++) {
    const char *before = s->at;
    skip(s, BLANK);
    if (s->at == s->end || *s->at == '>' || *s->at == '/') return true;
    if (n == MOST_ATTRIBUTES || s->at == before || !take_name(s, &names[n]))
      return false;
    skip(s, BLANK);
    if (!take(s, '=')) return false;
    skip(s, BLANK);
    if (!take_value(s, &value)) return false;
    for (int o = 0; o < n; o++)
      if (names[o].size == names[n].size &&
          memcmp(names[o].at, names[n].at, names[n].size) == 0)
        return false;
    mt_sgml_attribute(s->parts, names[n], value);
  }
}

static bool take_start(scanner *s)
{
  mt_span name;
  if (s->depth == DEEPEST || !take_name(s, &name)) return false;
  mt_sgml_start(s->parts, name);
  if (!take_attributes(s)) return false;
  if (take(s, '/'))
    mt_sgml_end(s->parts, name);
  else
    s->open[s->depth++] = name;
  return take(s, '>');
}

/* Of the element that was opened last. */
static bool take_end(scanner *s)
{
  if (s->depth == 0) return false;
  mt_span open = s->open[--s->depth];
  if ((size_t)(s->end - s->at) <= open.size) return false;
  if (memcmp(s->at, open.at, open.size) != 0) return false;
  s->at += open.size;
  skip(s, BLANK);
  mt_sgml_end(s->parts, open);
  return take(s, '>');
}

/* How many of the bytes come before the first that may not stand for itself. */
static inline size_t plain_size(const char *bytes, size_t size)
{
  size_t i = 0;
  for (; i + MT_BLOCK <= size; i += MT_BLOCK) {
    mt_block x = mt_block_at(bytes + i);
    mt_block control = (mt_block)((x < 0x20) & (x != '\n') & (x != '\t'));
    unsigned hits = mt_block_bits((mt_block)((x == '<') | (x == '&')) | control);
    if (hits != 0) return i + (size_t)__builtin_ctz(hits);
  }
  for (; i < size; i++) {
    char c = bytes[i];
    if (c == '<' || c == '&' || ((unsigned char)c < 0x20 && c != '\n' && c != '\t'))
      break;
  }
  return i;
}

/* What stands for itself is passed on as a whole. */
static bool take_wanted_text(scanner *s)
{
  const char *first = s->at;
  while (s->at < s->end) {
    s->at += plain_size(s->at, (size_t)(s->end - s->at));
    if (s->at == s->end) break;
    size_t left = (size_t)(s->end - s->at), length = 1;
    char meaning[4] = " ";
    size_t size = 1;
    int32_t code;
    if (*s->at == '<') {
      if (mt_sgml_is_markup(s->at, left)) break;
      s->at++;
      continue;
    } else if (*s->at == '&') {
      length = mt_sgml_reference(s->at, left, &code);
      if (length == 0 && s->at++) continue;
      size = (size_t)utf8proc_encode_char(code, (utf8proc_uint8_t *)meaning);
    } else if (*s->at == '\r') {
      return false; /* XML has a word in line ends */
    }
    mt_sgml_text(s->parts, (mt_span){first, (size_t)(s->at - first)});
    mt_sgml_text(s->parts, (mt_span){meaning, size});
    first = s->at += length;
  }
  mt_sgml_text(s->parts, (mt_span){first, (size_t)(s->at - first)});
  return true;
}

/* To the next tag. */
static bool take_text(scanner *s)
{
  if (s->parts->open >= 0) return take_wanted_text(s);
  for (; s->at < s->end; s->at++) {
    s->at += mt_size_before(s->at, (size_t)(s->end - s->at), '<');
    if (s->at == s->end || mt_sgml_is_markup(s->at, (size_t)(s->end - s->at))) break;
  }
  return true;
}

bool mt_sgml_plain(mt_span document, mt_sgml_parts *parts)
{
  scanner s = {.at = document.at, .end = document.at + document.size, .parts = parts};
  mt_sgml_begin(parts);
  if (!mt_ascii_only(document.at, document.size) &&
      memmem(document.at, document.size, "\xEF\xBF", 2) != NULL)
    return false; /* may be U+FFFE or U+FFFF, which XML forbids */
  do {
    if (!take(&s, '<')) return false;
    if (!(take(&s, '/') ? take_end(&s) : take_start(&s))) return false;
    if (s.depth > 0 && !take_text(&s)) return false;
  } while (s.at < s.end && s.depth > 0);
  return s.at == s.end && s.depth == 0;
}
