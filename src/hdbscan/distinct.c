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
static void find_all(int64_t n, int64_t d, const float *points, int64_t size,
                     int64_t *slots, float *scratch, mt_distinct *distinct)
{
  for (int64_t i = 0; i < n; i++) {
    const float *point = points + i * d;
    int64_t at = (int64_t)(hash_of(d, point, scratch) & (uint64_t)(size - 1));
    while (slots[at] != 0 &&
           !same_point(d, point, points + distinct->first[slots[at] - 1] * d))
      at = (at + 1) & (size - 1);
    if (slots[at] == 0) {
      distinct->first[distinct->n++] = i;
      slots[at] = distinct->n;
    }
    distinct->of[i] = slots[at] - 1;
    distinct->count[slots[at] - 1]++;
  }
}

mt_status mt_distinct_find(int64_t n, int64_t d, const float *points,
                           mt_distinct *distinct_out)
{
  mt_status status = MT_OK;
  mt_distinct distinct = {0};
  int64_t *slots = NULL, size = 16;
  float *scratch = NULL;

  while (size < 2 * n) size *= 2;
  MT_NEW(slots, size);
  MT_NEW(scratch, d);
  MT_NEW(distinct.first, n);
  MT_NEW(distinct.count, n);
  MT_NEW(distinct.of, n);
  find_all(n, d, points, size, slots, scratch, &distinct);
  *distinct_out = distinct;
  memset(&distinct, 0, sizeof distinct);
done:
  mt_distinct_destroy(&distinct);
  free(scratch);
  free(slots);
  return status;
}
