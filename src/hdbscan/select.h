/* Which clusters of a condensed tree are taken, and what that makes of a point: for every
 * backend that goes through the rows of the tree for itself. Not collective. */
#ifndef MT_HDBSCAN_SELECT_H
#define MT_HDBSCAN_SELECT_H
#include "base/both.h"
#include "hdbscan/hdbscan.h"

/* Of points that leave a cluster: their label if they do so at `least` or above, -1 else; the
 * largest lambda of the cluster that they count for, and of all below the one they leave. */
typedef struct mt_leaving {
  int32_t label;
  double death, least, densest;
} mt_leaving;

/* Clusters, counted from 0, the root, here; parents have lower numbers than their children. */
typedef struct mt_selection {
  int64_t n;
  /* measured by the caller; of the root, size is that of its children, as hdbscan has it */
  int64_t *parent;    /* (n) */
  int64_t *size;      /* (n) points at birth */
  double *birth;      /* (n) lambda at which it begins */
  double *death;      /* (n) largest lambda at which anything leaves it */
  double *stability;  /* (n) sum over its rows, in their order, of mt_mass_leaving */
  bool *has_children; /* (n) */
  double last_point;  /* largest lambda at which a point leaves any cluster */
  /* chosen from that */
  bool *chosen;        /* (n) */
  int64_t *label;      /* (n) label of a point that leaves it; -1: noise */
  mt_leaving *leaving; /* (n) */
  /* scratch */
  double *below;  /* (n) the sum of its children */
  int64_t *climb; /* (n) */
} mt_selection;

/* Zeroed arrays, owned. */
mt_status mt_selection_create(int64_t n_clusters, mt_selection *selection);
void mt_selection_destroy(mt_selection *selection); /* frees; empties the struct */

/* After measuring. Errors: more than 2^31 clusters. */
mt_status mt_selection_choose(const mt_hdbscan_options *options,
                              mt_selection *selection, int64_t *n_chosen_out);

/* Room for some of n points: all noise so far. */
mt_status mt_clusters_create(int64_t n, mt_part points, mt_clusters *clusters);
/* Fills in persistence and n_noise. members: (n_clusters) points by label, of all points. */
mt_status mt_selection_persistence(const mt_selection *selection,
                                   const int64_t *members, mt_clusters *clusters);

/* What a row adds to the stability of its parent. */
MT_BOTH double mt_mass_leaving(double lambda, double birth, int64_t size)
{
  return (lambda - birth) * (double)size;
}

/* Label, strength of membership and GLOSH (how far below the densest place of its cluster's
 * subtree it leaves) of a point. */
MT_BOTH void mt_score_point(const mt_leaving *from, double lambda, int32_t *label_out,
                            double *probability_out, double *outlier_out)
{
  bool in = lambda >= from->least;
  *label_out = in ? from->label : -1;
  *probability_out = !in ? 0.0 : lambda < from->death ? lambda / from->death : 1.0;
  *outlier_out = (from->densest - lambda) / from->densest;
}

#endif
