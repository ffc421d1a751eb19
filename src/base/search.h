/* Searching and joining that several parts need. Not collective, cannot fail. */
#ifndef MT_BASE_SEARCH_H
#define MT_BASE_SEARCH_H
#include <stdint.h>

/* The first of n ascending values that is not below the limit; n if there is none. */
static inline int64_t mt_lower_bound(int64_t n, const int64_t *values, int64_t limit)
{
  int64_t low = 0, high = n;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (values[middle] < limit)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The root of i in a forest where a root is its own parent; the way there is halved. */
static inline int64_t mt_root_of(int64_t *parent, int64_t i)
{
  while (parent[i] != i) i = parent[i] = parent[parent[i]];
  return i;
}

#endif
