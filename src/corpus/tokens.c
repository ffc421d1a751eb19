#include "corpus/tokens.h"
#include "corpus/decode.h"

#include <utf8proc.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Of ASCII: 0 for what is no word character, else the character in lower case. */
static unsigned char ascii_lower[128], ascii_same[128];

static void fill_tables(void)
{
  for (int c = 0; c < 128; c++) {
    bool upper = c >= 'A' && c <= 'Z';
    bool word = upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    ascii_same[c] = word ? (unsigned char)c : 0;
    ascii_lower[c] = word ? (unsigned char)(upper ? c + 32 : c) : 0;
  }
}

/* Letters and numbers of every kind: str.isalnum(). */
static bool is_word(utf8proc_int32_t code)
{
  switch (utf8proc_category(code)) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO:
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_NO:
    return true;
  default:
    return false;
  }
}

/* ---- the capital sigma, whose small form depends on its neighbours ------------------------- */

enum {
  CAPITAL_SIGMA = 0x3A3,
  SMALL_SIGMA = 0x3C3,
  FINAL_SIGMA = 0x3C2,
  I_WITH_DOT = 0x130
};

static bool is_cased(utf8proc_int32_t code)
{
  utf8proc_category_t category = utf8proc_category(code);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT || utf8proc_tolower(code) != code ||
         utf8proc_toupper(code) != code || code == 0xAA || code == 0xBA;
}

/* Unicode's Case_Ignorable: marks, formats, modifiers, and what stands inside words. */
static bool is_case_ignorable(utf8proc_int32_t code)
{
  static const utf8proc_int32_t inside[] = {
      0x27,   0x2E,   0x3A,   0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
      0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
  for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++)
    if (code == inside[i]) return true;
  switch (utf8proc_category(code)) {
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_ME:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_SK:
    return true;
  default:
    return false;
  }
}

/* Is the nearest character that is not ignorable before `at` (after it) a cased one? */
static bool cased_before(const utf8proc_uint8_t *text, const utf8proc_uint8_t *at)
{
  while (at > text) {
    utf8proc_int32_t code;
    do at--;
    while (at > text && (*at & 0xC0) == 0x80);
    if (utf8proc_iterate(at, 4, &code) <= 0) return false;
    if (!is_case_ignorable(code)) return is_cased(code);
  }
  return false;
}

static bool cased_after(const utf8proc_uint8_t *at, const utf8proc_uint8_t *end)
{
  while (at < end) {
    utf8proc_int32_t code;
    utf8proc_ssize_t step = utf8proc_iterate(at, end - at, &code);
    if (step <= 0) return false;
    if (!is_case_ignorable(code)) return is_cased(code);
    at += step;
  }
  return false;
}

/* ---- tokens -------------------------------------------------------------------------------- */

typedef struct tokenizer {
  utf8proc_uint8_t *token, *to; /* the token so far is [token, to) */
  int64_t characters;
  mt_token_sink sink;
  void *context;
} tokenizer;

static inline mt_status end_token(tokenizer *t)
{
  mt_status status = MT_OK;
  if (t->characters >= 2)
    status = t->sink(t->context, (const char *)t->token, (size_t)(t->to - t->token));
  t->token = t->to;
  t->characters = 0;
  return status;
}

/* A character beyond ASCII, at [at, at + step) of the text. */
static mt_status add_wide(tokenizer *t, const utf8proc_uint8_t *text,
                          const utf8proc_uint8_t *end, const utf8proc_uint8_t *at,
                          utf8proc_ssize_t step, utf8proc_int32_t code, bool lowercase)
{
  if (!is_word(code)) return end_token(t);
  if (lowercase && code == CAPITAL_SIGMA)
    code = cased_before(text, at) && !cased_after(at + step, end) ? FINAL_SIGMA
                                                                  : SMALL_SIGMA;
  else if (lowercase && code != I_WITH_DOT)
    code = utf8proc_tolower(code);
  if (lowercase && code == I_WITH_DOT) { /* i and a mark, which ends the token */
    *t->to++ = 'i';
    t->characters++;
    return end_token(t);
  }
  t->to += utf8proc_encode_char(code, t->to);
  t->characters++;
  return MT_OK;
}

/* ---- texts of ASCII alone: 64 characters at a time --------------------------------------- */

enum { BLOCK = 64 };
typedef unsigned char block_bytes __attribute__((vector_size(16)));

/* All bits of a byte where low <= x <= high. */
static inline block_bytes between(block_bytes x, unsigned char low, unsigned char high)
{
  return (block_bytes)((x - low) <= (unsigned char)(high - low));
}

/* The first bit of each byte, as a number. */
static inline uint64_t bits_of(block_bytes x)
{
#ifdef __SSE2__
  return (uint64_t)(unsigned)_mm_movemask_epi8((__m128i)x);
#else
  uint64_t bits = 0;
  for (int i = 0; i < 16; i++) bits |= (uint64_t)(x[i] >> 7) << i;
  return bits;
#endif
}

/* A block in lower case, if that is wanted; and which of its characters are of words. */
static inline uint64_t lower_block(const char *from, bool lowercase, char *to)
{
  uint64_t words = 0;
  for (int i = 0; i < BLOCK / 16; i++) {
    block_bytes x;
    memcpy(&x, from + 16 * i, sizeof x);
    block_bytes upper = between(x, 'A', 'Z'), lower = x | (upper & 0x20);
    block_bytes word =
        between(lower, 'a', 'z') | between(x, '0', '9') | (block_bytes)(x == '_');
    x = lowercase ? lower : x;
    memcpy(to + 16 * i, &x, sizeof x);
    words |= bits_of(word) << 16 * i;
  }
  return words;
}

/* Cuts at the bits' changes. What begins in one block may end in another. */
static mt_status cut_ascii(const char *text, size_t size, bool lowercase, char *to,
                           mt_token_sink sink, void *context)
{
  mt_status status = MT_OK;
  char last[BLOCK];
  size_t first = 0; /* of the word in hand */
  bool inside = false;
  for (size_t at = 0; at < size + 1; at += BLOCK) { /* one more: a last word ends */
    const char *from = text + at;
    if (size - at < BLOCK) {
      memset(last, ' ', sizeof last);
      memcpy(last, from, size - at);
      from = last;
    }
    uint64_t words = lower_block(from, lowercase, to + at);
    uint64_t changes = words ^ (words << 1 | (uint64_t)inside);
    for (; changes != 0; changes &= changes - 1) {
      size_t here = at + (size_t)__builtin_ctzll(changes);
      if (!inside)
        first = here;
      else if (here - first >= 2)
        MT_TRY(sink(context, to + first, here - first));
      inside = !inside;
    }
  }
done:
  return status;
}

mt_status mt_tokenize(const char *text, size_t size, bool lowercase, mt_buffer *scratch,
                      mt_token_sink sink, void *context)
{
  mt_status status = MT_OK;
  tokenizer t = {.sink = sink, .context = context};
  const utf8proc_uint8_t *begin = (const utf8proc_uint8_t *)text, *end = begin + size;
  if (ascii_same['a'] == 0) fill_tables();
  const unsigned char *ascii = lowercase ? ascii_lower : ascii_same;

  scratch->size = 0; /* lower case is longer than the text by half at most */
  MT_TRY(mt_buffer_reserve(scratch, 2 * size + 2 * BLOCK));
  if (mt_ascii_only(text, size))
    return cut_ascii(text, size, lowercase, scratch->bytes, sink, context);
  t.token = t.to = (utf8proc_uint8_t *)scratch->bytes;
  for (const utf8proc_uint8_t *at = begin; at < end;) {
    if (*at < 0x80) {
      unsigned char c = ascii[*at++];
      if (c != 0) {
        *t.to++ = c;
        t.characters++;
      } else if (t.characters > 0) {
        MT_TRY(end_token(&t));
      }
      continue;
    }
    utf8proc_int32_t code = -1;
    utf8proc_ssize_t step = utf8proc_iterate(at, end - at, &code);
    if (step <= 0) {
      MT_TRY(end_token(&t));
      step = 1;
    } else {
      MT_TRY(add_wide(&t, begin, end, at, step, code, lowercase));
    }
    at += step;
  }
  MT_TRY(end_token(&t));
done:
  return status;
}
