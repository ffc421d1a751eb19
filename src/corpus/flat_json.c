#include "corpus/flat_json.h"
#include "corpus/scan.h"

enum { DEEPEST = 32, LONGEST_NUMBER = 18 };

typedef struct cursor {
  const char *at, *end;
  char *to; /* where unescaped text goes */
} cursor;

static void skip_blanks(cursor *c)
{
  while (c->at < c->end &&
         (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
    c->at++;
}

static bool take(cursor *c, char wanted)
{
  skip_blanks(c);
  if (c->at == c->end || *c->at != wanted) return false;
  c->at++;
  return true;
}

static bool take_word(cursor *c, const char *word)
{
  size_t size = strlen(word);
  if ((size_t)(c->end - c->at) < size || memcmp(c->at, word, size) != 0) return false;
  c->at += size;
  return true;
}

/* ---- strings ----------------------------------------------------------------------------- */

static bool take_hex(cursor *c, uint32_t *out)
{
  *out = 0;
  if (c->end - c->at < 4) return false;
  for (int i = 0; i < 4; i++) {
    char h = *c->at++;
    int digit = h >= '0' && h <= '9'                 ? h - '0'
                : (h | 32) >= 'a' && (h | 32) <= 'f' ? (h | 32) - 'a' + 10
                                                     : -1;
    if (digit < 0) return false;
    *out = *out << 4 | (uint32_t)digit;
  }
  return true;
}

static void put_code(cursor *c, uint32_t code)
{
  int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static const unsigned char lead[] = {0, 0xC0, 0xE0, 0xF0};
  *c->to++ = (char)(lead[more] | code >> 6 * more);
  while (more-- > 0) *c->to++ = (char)(0x80 | (code >> 6 * more & 0x3F));
}

/* After \u: a character, or a pair of surrogates. */
static bool take_code(cursor *c)
{
  uint32_t code, low;
  if (!take_hex(c, &code)) return false;
  if (code >= 0xD800 && code < 0xE000) {
    if (code >= 0xDC00 || !take_word(c, "\\u") || !take_hex(c, &low)) return false;
    if (low < 0xDC00 || low >= 0xE000) return false;
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  put_code(c, code);
  return true;
}

/* After a backslash. */
static bool take_escape(cursor *c)
{
  static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
  if (c->at == c->end) return false;
  char name = *c->at++;
  if (name == 'u') return take_code(c);
  const char *found = memchr(names, name, sizeof names - 1);
  if (found == NULL) return false;
  *c->to++ = meanings[found - names];
  return true;
}

/* A string, its first quote taken: in the line if nothing in it is escaped, else at c->to. */
static bool take_string(cursor *c, mt_span *out)
{
  const char *first = c->at;
  char *copy = c->to;
  c->at += mt_plain_size(c->at, (size_t)(c->end - c->at), '"', '\\');
  if (c->at < c->end && *c->at == '"') {
    *out = (mt_span){first, (size_t)(c->at++ - first)};
    return true;
  }
  c->at = first;
  for (;;) {
    size_t size = mt_plain_size(c->at, (size_t)(c->end - c->at), '"', '\\');
    memcpy(c->to, c->at, size);
    c->to += size;
    c->at += size;
    if (c->at == c->end || (unsigned char)*c->at < 0x20) return false;
    if (*c->at++ == '"') break;
    if (!take_escape(c)) return false;
  }
  *out = (mt_span){copy, (size_t)(c->to - copy)};
  return true;
}

/* ---- other values -------------------------------------------------------------------------- */

static size_t digits(const cursor *c)
{
  size_t n = 0;
  while (c->at + n < c->end && c->at[n] >= '0' && c->at[n] <= '9') n++;
  return n;
}

/* A number of a few digits, without an exponent; *integer: nothing but a sign and digits,
 * as one would print it. */
static bool take_number(cursor *c, bool *integer)
{
  const char *first = c->at;
  if (*c->at == '-') c->at++;
  size_t n = digits(c);
  if (n == 0 || n > LONGEST_NUMBER || (n > 1 && *c->at == '0')) return false;
  *integer = !(*first == '-' && *c->at == '0');
  c->at += n;
  if (c->at < c->end && *c->at == '.') {
    c->at++;
    n = digits(c);
    if (n == 0 || n > LONGEST_NUMBER) return false;
    *integer = false;
    c->at += n;
  }
  return c->at == c->end || (*c->at != 'e' && *c->at != 'E');
}

static bool skip_value(cursor *c, int depth);

/* Its bracket taken. An object's members have names. */
static bool skip_members(cursor *c, char closing, int depth)
{
  mt_span name;
  if (depth == DEEPEST) return false;
  if (take(c, closing)) return true;
  do {
    if (closing == '}' && !(take(c, '"') && take_string(c, &name) &&
                            memchr(name.at, '\0', name.size) == NULL && take(c, ':')))
      return false;
    if (!skip_value(c, depth + 1)) return false;
  } while (take(c, ','));
  return take(c, closing);
}

static bool skip_value(cursor *c, int depth)
{
  mt_span text;
  bool integer;
  if (take(c, '"')) return take_string(c, &text);
  if (take(c, '{')) return skip_members(c, '}', depth);
  if (take(c, '[')) return skip_members(c, ']', depth);
  if (take_word(c, "null") || take_word(c, "true") || take_word(c, "false"))
    return true;
  return c->at < c->end && take_number(c, &integer);
}

/* ---- the object ---------------------------------------------------------------------------- */

/* A text, an integer or null. */
static bool take_simple(cursor *c, mt_span *out, bool *integer)
{
  *out = (mt_span){NULL, 0};
  *integer = false;
  if (take(c, '"')) return take_string(c, out);
  if (take_word(c, "null")) return true;
  const char *first = c->at;
  if (c->at == c->end || !take_number(c, integer)) return false;
  *out = (mt_span){first, (size_t)(c->at - first)};
  return *integer;
}

static bool is_named(const mt_json_field *field, mt_span name)
{
  return strlen(field->name) == name.size &&
         memcmp(field->name, name.at, name.size) == 0;
}

/* A name and its value, which several fields may be. */
static bool take_member(cursor *c, int n, const mt_json_field *fields)
{
  mt_span name, value;
  bool integer;
  int f = 0;
  if (!take(c, '"') || !take_string(c, &name)) return false;
  if (name.at + name.size + 1 != c->at || !take(c, ':')) return false; /* escapes */
  while (f < n && !is_named(&fields[f], name)) f++;
  if (f == n) return skip_value(c, 0);
  if (!take_simple(c, &value, &integer)) return false;
  for (; f < n; f++) {
    if (!is_named(&fields[f], name)) continue;
    if (integer && !fields[f].number_too) return false;
    *fields[f].value = value;
  }
  return true;
}

bool mt_json_flat(mt_span line, int n, const mt_json_field *fields, mt_buffer *buffer)
{
  cursor c = {line.at, line.at + line.size, buffer->bytes};
  for (int f = 0; f < n; f++) *fields[f].value = (mt_span){NULL, 0};
  if (!take(&c, '{')) return false;
  if (!take(&c, '}')) {
    do
      if (!take_member(&c, n, fields)) return false;
    while (take(&c, ','));
    if (!take(&c, '}')) return false;
  }
  skip_blanks(&c);
  return c.at == c.end;
}
