/* A large collection whose words are drawn as in real text: many_documents N FILE.jsonl
 * [MONTHS]. Word r has a share as 1 / (r + 20)^1.6: 50,000 distinct words in the first
 * 2,500,000 (Reuters-21578 has 41,633), 600,000 in 200 million. The lengths of documents are spread (median 1 kB), and so are the months'
 * (1 / rank^0.7, 120 of them), as heavy-tailed periods are. In all about 1.2 kB a document.
 * Each document depends on its number alone. */
#include "base/random.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 2000000, MOST_MONTHS = 1200 };

typedef struct dice {
  uint64_t document;
  uint32_t step;
} dice;

static double roll(dice *d)
{
  return mt_random_unit(1, MT_STREAM_NEWSWIRE, d->document, d->step++);
}

/* By the integral of the shares, from 0 on. */
static int64_t roll_word(dice *d)
{
  static const double shift = 20.0, p = 1.0 - 1.6;
  double low = pow(shift, p), high = pow(shift + WORDS, p);
  return (int64_t)(pow(low + roll(d) * (high - low), 1.0 / p) - shift);
}

/* Syllables: 17 consonants, 5 vowels; short words are the frequent ones. */
static size_t spell(int64_t word, char *out)
{
  size_t n = 0;
  do {
    out[n++] = "bdfghjklmnprstvwz"[word % 17];
    out[n++] = "aeiou"[word / 17 % 5];
    word /= 85;
  } while (word-- > 0);
  return n;
}

static int64_t roll_month(dice *d, int64_t months, const double *until)
{
  double u = roll(d) * until[months - 1];
  int64_t m = 0;
  while (until[m] <= u) m++;
  return m;
}

static void write_document(FILE *file, int64_t number, int64_t months,
                           const double *until)
{
  dice d = {(uint64_t)number, 0};
  char word[32];
  int64_t month = roll_month(&d, months, until), line = 0;
  double spread = sqrt(-2.0 * log(roll(&d))) * cos(6.283185307179586 * roll(&d));
  int64_t length = (int64_t)(232.0 * exp(0.6 * spread)) + 5;
  fprintf(file,
          "{\"id\": \"d%lld\", \"date\": \"%lld-%02lld-%02d\", \"title\": \"Document "
          "%lld\", "
          "\"text\": \"",
          (long long)number, (long long)(2000 + month / 12),
          (long long)(month % 12 + 1), 1 + (int)(28.0 * roll(&d)), (long long)number);
  for (int64_t w = 0; w < length; w++) {
    size_t size = spell(roll_word(&d), word);
    if (line + (int64_t)size > 64)
      line = 0, fputs("\\n", file);
    else if (w > 0)
      fputc(' ', file);
    fwrite(word, 1, size, file);
    line += (int64_t)size + 1;
  }
  fputs(".\"}\n", file);
}

int main(int argc, char **argv)
{
  int64_t n = argc > 2 ? atoll(argv[1]) : 0, months = argc > 3 ? atoll(argv[3]) : 120;
  static double until[MOST_MONTHS];
  if (argc < 3 || argc > 4 || n < 1 || months < 1 || months > MOST_MONTHS) {
    fprintf(stderr, "many_documents N FILE.jsonl [MONTHS]\n");
    return 2;
  }
  /* The ranks of the months are scattered: 37 goes round any number that it is prime to. */
  for (int64_t m = 0; m < months; m++)
    until[m] =
        (m > 0 ? until[m - 1] : 0.0) + pow(1.0 + (double)((m * 37) % months), -0.7);
  FILE *file = fopen(argv[2], "w");
  for (int64_t i = 0; file != NULL && i < n; i++)
    write_document(file, i, months, until);
  if (file == NULL || fclose(file) != 0) {
    fprintf(stderr, "many_documents: %s: %s\n", argv[2], strerror(errno));
    return 1;
  }
  return 0;
}
