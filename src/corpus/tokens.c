#include "corpus/tokens.h"
#include "base/vectors.h"
#include "corpus/decode.h"
#include "corpus/scan.h"

#include <utf8proc.h>

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
  int64_t characters, n;
  mt_span tokens[MT_TOKENS_MOST]; /* (n) not given yet */
  mt_token_sink sink;
  void *context;
} tokenizer;

static mt_status give_tokens(tokenizer *t)
{
  int64_t n = t->n;
  t->n = 0;
  return n > 0 ? t->sink(t->context, n, t->tokens) : MT_OK;
}

static inline mt_status end_token(tokenizer *t)
{
  if (t->characters >= 2)
    t->tokens[t->n++] = (mt_span){(const char *)t->token, (size_t)(t->to - t->token)};
  t->token = t->to;
  t->characters = 0;
  return t->n < MT_TOKENS_MOST ? MT_OK : give_tokens(t);
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

enum { BLOCK = 64, FULL = MT_TOKENS_MOST - BLOCK };

/* All bits of a byte where low <= x <= high. */
static inline mt_block between(mt_block x, unsigned char low, unsigned char high)
{
  return (mt_block)((x - low) <= (unsigned char)(high - low));
}

/* A block in lower case, if that is wanted; and which of its characters are of words. */
static inline uint64_t lower_block(const char *from, bool lowercase, char *to)
{
  uint64_t words = 0;
  for (int i = 0; i < BLOCK / MT_BLOCK; i++) {
    mt_block x = mt_block_at(from + MT_BLOCK * i);
    mt_block upper = between(x, 'A', 'Z'), lower = x | (upper & 0x20);
    mt_block word =
        between(lower, 'a', 'z') | between(x, '0', '9') | (mt_block)(x == '_');
    x = lowercase ? lower : x;
    memcpy(to + MT_BLOCK * i, &x, sizeof x);
    words |= (uint64_t)mt_block_bits(word) << MT_BLOCK * i;
  }
  return words;
}

/* Where words begin and end, after `at`. A word that has begun may end in another block. */
typedef struct edges {
  int64_t n_first, n_end;
  size_t first[MT_TOKENS_MOST], end[MT_TOKENS_MOST];
} edges;

/* The places of n bits that are set, four at a time; what comes after them has no meaning. */
static inline void put_places(uint64_t bits, int n, size_t at, size_t *out)
{
  for (int i = 0; i < n; i += 4)
    for (int j = 0; j < 4; j++) {
      out[i + j] = at + (size_t)__builtin_ctzll(bits | 1ull << (BLOCK - 1));
      bits &= bits - 1;
    }
}

/* Words that have ended, of two characters at least. */
static inline mt_status give_words(edges *e, const char *text, tokenizer *t)
{
  for (int64_t i = 0; i < e->n_end; i++) {
    t->tokens[t->n] = (mt_span){text + e->first[i], e->end[i] - e->first[i]};
    t->n += t->tokens[t->n].size >= 2;
  }
  if (e->n_first > e->n_end) e->first[0] = e->first[e->n_end];
  e->n_first -= e->n_end;
  e->n_end = 0;
  return give_tokens(t);
}

/* Cuts at the bits' changes. */
MT_FOR_VECTORS static mt_status cut_ascii(const char *text, size_t size, bool lowercase,
                                          char *to, tokenizer *t)
{
  mt_status status = MT_OK;
  char last[BLOCK];
  edges e = {.n_first = 0};
  uint64_t inside = 0;
  for (size_t at = 0; at < size + 1; at += BLOCK) { /* one more: a last word ends */
    const char *from = text + at;
    if (size - at < BLOCK) {
      memset(last, ' ', sizeof last);
      memcpy(last, from, size - at);
      from = last;
    }
    uint64_t words = lower_block(from, lowercase, to + at);
    uint64_t before = words << 1 | inside, firsts = words & ~before;
    int n = __builtin_popcountll(firsts), n_ends = n + (int)inside;
    inside = words >> (BLOCK - 1);
    n_ends -= (int)inside;
    put_places(firsts, n, at, e.first + e.n_first);
    put_places(before & ~words, n_ends, at, e.end + e.n_end);
    e.n_first += n;
    e.n_end += n_ends;
    if (e.n_end >= FULL) MT_TRY(give_words(&e, to, t));
  }
  status = give_words(&e, to, t);
done:
  return status;
}

mt_status mt_tokenize(const char *text, size_t size, bool lowercase, mt_buffer *scratch,
                      mt_token_sink sink, void *context)
{
  mt_status status = MT_OK;
  tokenizer t;
  const utf8proc_uint8_t *begin = (const utf8proc_uint8_t *)text, *end = begin + size;
  if (ascii_same['a'] == 0) fill_tables();
  const unsigned char *ascii = lowercase ? ascii_lower : ascii_same;

  t.n = 0; /* its tokens are not cleared: that would take longer than a short text */
  t.sink = sink;
  t.context = context;
  scratch->size = 0; /* lower case is longer than the text by half at most */
  MT_TRY(mt_buffer_reserve(scratch, 2 * size + 2 * BLOCK));
  if (mt_ascii_only(text, size))
    return cut_ascii(text, size, lowercase, scratch->bytes, &t);
  t.token = t.to = (utf8proc_uint8_t *)scratch->bytes;
  t.characters = 0;
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
  status = give_tokens(&t);
done:
  return status;
}
