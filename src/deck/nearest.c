#include "deck/nearest.h"

#include <ctype.h>
#include <string.h>

enum { LONGEST = 48 }; /* names are shorter; a longer word is near to none of them */

static int least(int a, int b)
{
  return a < b ? a : b;
}

static int same(char a, char b)
{
  return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Optimal string alignment distance (Damerau 1964; no substring is edited twice). */
static int distance(const char *a, const char *b)
{
  int rows[LONGEST + 1][LONGEST + 1];
  int n = (int)strlen(a), m = (int)strlen(b);
  for (int i = 0; i <= n; i++) rows[i][0] = i;
  for (int j = 0; j <= m; j++) rows[0][j] = j;
  for (int i = 1; i <= n; i++)
    for (int j = 1; j <= m; j++) {
      int replace = rows[i - 1][j - 1] + !same(a[i - 1], b[j - 1]);
      rows[i][j] = least(replace, least(rows[i - 1][j], rows[i][j - 1]) + 1);
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
        rows[i][j] = least(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  return rows[n][m];
}

const char *mt_nearest(const char *name, const char *const *words)
{
  const char *nearest = NULL;
  int best = (int)(strnlen(name, LONGEST + 1) + 2) / 3 + 1;
  if (strnlen(name, LONGEST + 1) > LONGEST) return NULL;
  for (; *words != NULL; words++) {
    if (strlen(*words) > LONGEST) continue;
    int steps = distance(name, *words);
    if (steps < best) best = steps, nearest = *words;
  }
  return nearest;
}
