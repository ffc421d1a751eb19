/* Sorting edges: merges, by threads. */
#include "base/memory.h"
#include "hdbscan/hdbscan.h"

#include <stdlib.h>
#include <string.h>

enum { RUN = 16 }; /* edges that are sorted by insertion */

static inline bool is_before(const mt_edge *p, const mt_edge *q)
{
  return mt_edge_before(p->weight, p->a, p->b, q->weight, q->a, q->b);
}

static void sort_run(int64_t n, mt_edge *edges)
{
  for (int64_t i = 1; i < n; i++) {
    mt_edge moving = edges[i];
    int64_t at = i;
    for (; at > 0 && is_before(&moving, &edges[at - 1]); at--)
      edges[at] = edges[at - 1];
    edges[at] = moving;
  }
}

static void merge_runs(const mt_edge *p, const mt_edge *p_end, const mt_edge *q,
                       const mt_edge *q_end, mt_edge *out)
{
  while (p < p_end && q < q_end) {
    bool second = is_before(q, p);
    *out++ = second ? *q : *p;
    q += second;
    p += !second;
  }
  memcpy(out, p, (size_t)(p_end - p) * sizeof *p);
  memcpy(out + (p_end - p), q, (size_t)(q_end - q) * sizeof *q);
}

static const mt_edge *at_most(const mt_edge *edges, int64_t n, int64_t at)
{
  return edges + (at < n ? at : n);
}

mt_status mt_edges_sort(int64_t n, mt_edge *edges)
{
  mt_status status = MT_OK;
  mt_edge *from = edges, *to = NULL, *other = NULL;

  MT_NEW(other, n);
  to = other;
#pragma omp parallel for schedule(static)
  for (int64_t at = 0; at < n; at += RUN)
    sort_run(n - at < RUN ? n - at : RUN, edges + at);
  for (int64_t width = RUN; width < n; width *= 2) {
#pragma omp parallel for schedule(static)
    for (int64_t at = 0; at < n; at += 2 * width) {
      const mt_edge *middle = at_most(from, n, at + width);
      merge_runs(from + at, middle, middle, at_most(from, n, at + 2 * width), to + at);
    }
    mt_edge *sorted = to;
    to = from;
    from = sorted;
  }
  if (from != edges) memcpy(edges, from, (size_t)n * sizeof *edges);
done:
  free(other);
  return status;
}
