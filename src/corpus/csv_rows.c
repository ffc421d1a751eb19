#include "corpus/csv_rows.h"
#include "corpus/scan.h"

#include <csv.h>

/* What is known of the parser's state. Blanks count where they may be followed by a quote;
 * `fresh`: nothing of this line has been read, not even blanks, which belong to a row. */
typedef struct csv_state {
  int at, quoted;
  bool blanks, fresh;
} csv_state;

enum { LONGEST = 2 * MT_CSV_STATES }; /* bytes that lead to a state */

typedef struct csv_way {
  csv_state state;
  size_t size;
  char bytes[LONGEST];
} csv_way;

static bool same(const csv_state *a, const csv_state *b)
{
  return a->at == b->at && a->quoted == b->quoted && a->blanks == b->blanks &&
         a->fresh == b->fresh;
}

/* The state that bytes lead to. */
static mt_status follow(unsigned char separator, const char *bytes, size_t size,
                        csv_state *out)
{
  struct csv_parser parser;
  if (csv_init(&parser, 0) != 0) return mt_fail(MT_ERR_LIBRARY, "csv_init failed");
  csv_set_delim(&parser, separator);
  int begin = parser.pstate;
  size_t took = csv_parse(&parser, bytes, size, NULL, NULL, NULL);
  *out = (csv_state){.at = parser.pstate, .quoted = parser.quoted};
  out->blanks = parser.quoted && parser.spaces > 0;
  out->fresh = parser.pstate == begin &&
               (size == 0 || bytes[size - 1] == '\n' || bytes[size - 1] == '\r');
  csv_free(&parser);
  return took == size ? MT_OK : mt_fail(MT_ERR_MEMORY, "no memory for a CSV parser");
}

/* Where the byte leads after the way to state s: to one of the states, or to a new one. */
static mt_status step(mt_csv_rows *rows, csv_way *ways, int s, int byte)
{
  mt_status status = MT_OK;
  csv_way way = ways[s];
  int t = 0;
  MT_REQUIRE(way.size < LONGEST, MT_ERR_LIBRARY, "libcsv has more states than known");
  way.bytes[way.size++] = (char)byte;
  MT_TRY(follow(rows->separator, way.bytes, way.size, &way.state));
  while (t < rows->n && !same(&ways[t].state, &way.state)) t++;
  MT_REQUIRE(t < MT_CSV_STATES, MT_ERR_LIBRARY, "libcsv has more states than known");
  if (t == rows->n) ways[rows->n++] = way;
  rows->next[s][byte] = (uint8_t)t;
done:
  return status;
}

static bool is_calm(const mt_csv_rows *rows, int s)
{
  for (int byte = 32; byte < 256; byte++)
    if (byte != CSV_QUOTE && byte != rows->separator && rows->next[s][byte] != s)
      return false;
  return true;
}

mt_status mt_csv_rows_make(unsigned char separator, mt_csv_rows *out)
{
  mt_status status = MT_OK;
  mt_csv_rows rows = {.separator = separator, .n = 1};
  csv_way ways[MT_CSV_STATES] = {{.size = 0}};
  MT_TRY(follow(separator, "", 0, &ways[0].state));
  for (int s = 0; s < rows.n; s++)
    for (int byte = 0; byte < 256; byte++) MT_TRY(step(&rows, ways, s, byte));
  for (int s = 0; s < rows.n; s++) rows.calm[s] = is_calm(&rows, s);
  *out = rows;
done:
  return status;
}

int mt_csv_rows_pass(const mt_csv_rows *rows, int state, const char *bytes, size_t size)
{
  for (size_t i = 0; i < size;) {
    if (rows->calm[state])
      i += mt_plain_size(bytes + i, size - i, CSV_QUOTE, (char)rows->separator);
    if (i < size) state = rows->next[state][(unsigned char)bytes[i++]];
  }
  return state;
}

size_t mt_csv_rows_next(const mt_csv_rows *rows, int *state, const char *bytes,
                        size_t size)
{
  size_t i = 0;
  for (; i < size && *state != MT_CSV_ROW; i++)
    *state = rows->next[*state][(unsigned char)bytes[i]];
  return i;
}

void mt_csv_rows_map(const mt_csv_rows *rows, uint8_t map[static MT_CSV_STATES],
                     const char *bytes, size_t size)
{
  int after[MT_CSV_STATES];
  for (int s = 0; s < rows->n; s++) after[s] = -1;
  for (int s = 0; s < rows->n; s++) { /* few differ after some bytes */
    int before = map[s];
    if (after[before] < 0) after[before] = mt_csv_rows_pass(rows, before, bytes, size);
    map[s] = (uint8_t)after[before];
  }
}

/* ---- a file's first row -------------------------------------------------------------------- */

size_t mt_csv_mark(const char *bytes, size_t size)
{
  return size >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

unsigned char mt_csv_separator(const char *bytes, size_t size)
{
  size_t line = mt_csv_mark(bytes, size), first = line;
  while (line < size && bytes[line] != '\n' && bytes[line] != '\r') line++;
  for (const char *separator = ",\t;"; *separator != '\0'; separator++)
    if (memchr(bytes + first, *separator, line - first) != NULL)
      return (unsigned char)*separator;
  return ',';
}

/* Blank lines may come before the row. */
size_t mt_csv_head(const mt_csv_rows *rows, const char *bytes, size_t size)
{
  size_t at = mt_csv_mark(bytes, size);
  int state = MT_CSV_ROW, blank = rows->next[MT_CSV_ROW][CSV_SPACE];
  bool begun = false;
  while (at < size && !(begun && state == MT_CSV_ROW)) {
    state = rows->next[state][(unsigned char)bytes[at++]];
    begun = begun || (state != MT_CSV_ROW && state != blank);
  }
  return at;
}
