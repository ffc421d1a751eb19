#include "hdbscan/hdbscan.h"
#include "base/hash.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void mt_distinct_destroy(mt_distinct *distinct)
{
  free(distinct->first);
  free(distinct->count);
  free(distinct->of);
  memset(distinct, 0, sizeof *distinct);
}

static bool same_point(int64_t d, const float *p, const float *q)
{
  for (int64_t t = 0; t < d; t++)
    if (p[t] != q[t]) return false;
  return true;
}

/* Of the coordinates with -0 made +0; scratch: (d). */
static uint64_t hash_of(int64_t d, const float *point, float *scratch)
{
  for (int64_t t = 0; t < d; t++) scratch[t] = point[t] + 0.0f;
  return mt_hash_key(scratch, (size_t)d * sizeof *scratch);
}

/* Open addressing; slots hold distinct numbers + 1, 0 is empty. size: a power of two. */
typedef struct table {
  int64_t size, *slots;
  float *scratch; /* (d) */
} table;

static void add_point(const table *t, int64_t d, const float *points, int64_t i,
                      int64_t at, mt_distinct *distinct)
{
  const float *point = points + i * d;
  while (t->slots[at] != 0 &&
         !same_point(d, point, points + distinct->first[t->slots[at] - 1] * d))
    at = (at + 1) & (t->size - 1);
  if (t->slots[at] == 0) {
    distinct->first[distinct->n++] = i;
    t->slots[at] = distinct->n;
  }
  distinct->of[i] = t->slots[at] - 1;
  distinct->count[t->slots[at] - 1]++;
}

/* A few at a time, so that memory fetches their slots together. */
static void find_all(const table *t, int64_t n, int64_t d, const float *points,
                     mt_distinct *distinct)
{
  enum { MANY = 32 };
  int64_t at[MANY];
  for (int64_t from = 0; from < n; from += MANY) {
    int64_t to = from + MANY < n ? from + MANY : n;
    for (int64_t i = from; i < to; i++) {
      uint64_t hash = hash_of(d, points + i * d, t->scratch);
      at[i - from] = (int64_t)(hash & (uint64_t)(t->size - 1));
      __builtin_prefetch(&t->slots[at[i - from]], 1);
    }
    for (int64_t i = from; i < to; i++)
      add_point(t, d, points, i, at[i - from], distinct);
  }
}

mt_status mt_distinct_find(int64_t n, int64_t d, const float *points,
                           mt_distinct *distinct_out)
{
  mt_status status = MT_OK;
  mt_distinct distinct = {0};
  table t = {.size = 16};

  while (t.size < 2 * n) t.size *= 2;
  MT_NEW(t.slots, t.size);
  MT_NEW(t.scratch, d);
  MT_NEW(distinct.first, n);
  MT_NEW(distinct.count, n);
  MT_NEW(distinct.of, n);
  find_all(&t, n, d, points, &distinct);
  *distinct_out = distinct;
  memset(&distinct, 0, sizeof distinct);
done:
  mt_distinct_destroy(&distinct);
  free(t.scratch);
  free(t.slots);
  return status;
}
