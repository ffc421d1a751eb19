#include "umap/move.h"
#include "umap/umap.h"

mt_moment mt_umap_first_moment(const mt_umap_options *options, int64_t n, int64_t first)
{
  double a, b;
  mt_umap_ab(options, &a, &b);
  return (mt_moment){.n = n,
                     .first = first,
                     .dims = options->n_components,
                     .a = (float)a,
                     .b = (float)b,
                     .strength = (float)options->repulsion_strength,
                     .negatives = options->negative_sample_rate,
                     .seed = (uint32_t)options->random_state};
}
