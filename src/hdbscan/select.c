/* From the condensed tree to labels and scores. */
#include "hdbscan/select.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void mt_selection_destroy(mt_selection *s)
{
  free(s->parent);
  free(s->size);
  free(s->birth);
  free(s->death);
  free(s->stability);
  free(s->has_children);
  free(s->below);
  free(s->chosen);
  free(s->climb);
  free(s->label);
  free(s->leaving);
  memset(s, 0, sizeof *s);
}

mt_status mt_selection_create(int64_t n_clusters, mt_selection *s)
{
  mt_status status = MT_OK;
  s->n = n_clusters;
  MT_NEW(s->parent, s->n);
  MT_NEW(s->size, s->n);
  MT_NEW(s->birth, s->n);
  MT_NEW(s->death, s->n);
  MT_NEW(s->stability, s->n);
  MT_NEW(s->has_children, s->n);
  MT_NEW(s->below, s->n);
  MT_NEW(s->chosen, s->n);
  MT_NEW(s->climb, s->n);
  MT_NEW(s->label, s->n);
  MT_NEW(s->leaving, s->n);
done:
  return status;
}

/* Births, deaths and stabilities: sum over what leaves of (lambda - birth) x points. */
static void measure(const mt_condensed_tree *tree, mt_selection *s)
{
  for (int64_t row = 0; row < tree->n_rows; row++) {
    int64_t parent = tree->parent[row] - tree->n, child = tree->child[row] - tree->n;
    double lambda = tree->lambda[row];
    if (child > 0) {
      s->parent[child] = parent;
      s->birth[child] = lambda;
      s->size[child] = tree->child_size[row];
      s->has_children[parent] = true;
      if (parent == 0) s->size[0] += s->size[child];
    } else if (lambda > s->last_point) {
      s->last_point = lambda;
    }
    if (lambda > s->death[parent]) s->death[parent] = lambda;
    s->stability[parent] +=
        mt_mass_leaving(lambda, s->birth[parent], tree->child_size[row]);
  }
}

/* What has a chosen ancestor is not chosen itself. */
static void keep_topmost(mt_selection *s)
{
  bool *covered = s->has_children; /* not needed any more */
  covered[0] = s->chosen[0];
  for (int64_t c = 1; c < s->n; c++) {
    bool above = covered[s->parent[c]];
    covered[c] = above || s->chosen[c];
    if (above) s->chosen[c] = false;
  }
}

/* Excess of mass: a cluster, or the best of those below it, whichever is more stable. */
static void choose_most_mass(const mt_hdbscan_options *options, mt_selection *s)
{
  for (int64_t c = s->n - 1; c >= 0; c--) {
    bool too_large =
        options->max_cluster_size > 0 && s->size[c] > options->max_cluster_size;
    s->chosen[c] = s->below[c] <= s->stability[c] && !too_large;
    if (c == 0 && !options->allow_single_cluster) s->chosen[c] = false;
    if (!s->chosen[c]) s->stability[c] = s->below[c];
    if (c > 0) s->below[s->parent[c]] += s->stability[c];
  }
  keep_topmost(s);
}

/* The leaves of the cluster tree; a lone root is none. */
static void choose_leaves(mt_selection *s)
{
  for (int64_t c = 1; c < s->n; c++) s->chosen[c] = !s->has_children[c];
}

/* The lowest cluster above c that was born at a distance above epsilon; failing that the
 * root, or the one below the root where the root may not be a cluster. */
static void find_climbs(const mt_hdbscan_options *options, mt_selection *s)
{
  double epsilon = options->cluster_selection_epsilon;
  for (int64_t c = 1; c < s->n; c++) {
    int64_t parent = s->parent[c];
    if (parent == 0)
      s->climb[c] = options->allow_single_cluster ? 0 : c;
    else
      s->climb[c] = 1.0 / s->birth[parent] > epsilon ? parent : s->climb[parent];
  }
}

/* Chosen clusters that were born at a distance below epsilon give way to what they climb to. */
static void merge_below_epsilon(const mt_hdbscan_options *options, mt_selection *s)
{
  double epsilon = options->cluster_selection_epsilon;
  if (epsilon == 0.0 || s->chosen[0]) return;
  find_climbs(options, s);
  for (int64_t c = s->n - 1; c > 0; c--) /* a climb is to a lower number */
    if (s->chosen[c] && 1.0 / s->birth[c] < epsilon && s->climb[c] != c) {
      s->chosen[c] = false;
      s->label[s->climb[c]] = 1; /* for the time being: chosen by a climb */
    }
  for (int64_t c = 0; c < s->n; c++)
    if (s->label[c] == 1) s->chosen[c] = true;
}

/* A root that is the one cluster keeps only the points that stay to the end, or, with an
 * epsilon, those that are still there at it. */
static double least_in_root(const mt_hdbscan_options *options, const mt_selection *s)
{
  double epsilon = options->cluster_selection_epsilon;
  return epsilon != 0.0 ? 1.0 / epsilon : s->death[0];
}

/* A root beside other clusters, or that no point stays in, would be a cluster without
 * points (hdbscan counts it as one). */
static void drop_empty_root(const mt_hdbscan_options *options, mt_selection *s)
{
  if (!s->chosen[0]) return;
  bool stays = s->last_point >= least_in_root(options, s), others = false;
  for (int64_t c = 1; c < s->n; c++) others = others || s->chosen[c];
  s->chosen[0] = stays && !others;
}

static int64_t number(mt_selection *s)
{
  int64_t n_chosen = 0;
  for (int64_t c = 0; c < s->n; c++)
    s->label[c] = s->chosen[c] ? n_chosen++ : (c > 0 ? s->label[s->parent[c]] : -1);
  return n_chosen;
}

/* Points that leave c count for itself or the nearest chosen above, kept in climb; the densest
 * place that they are compared with is that of all below c. */
static void describe_leaving(const mt_hdbscan_options *options, mt_selection *s)
{
  for (int64_t c = 0; c < s->n; c++) {
    int64_t owner = s->chosen[c] || c == 0 ? c : s->climb[s->parent[c]];
    s->climb[c] = owner;
    double least = owner > 0      ? 0.0
                   : s->chosen[0] ? least_in_root(options, s)
                                  : INFINITY;
    s->leaving[c] =
        (mt_leaving){(int32_t)s->label[owner], s->death[owner], least, s->death[c]};
  }
  for (int64_t c = s->n - 1; c > 0; c--) {
    mt_leaving *above = &s->leaving[s->parent[c]];
    if (s->leaving[c].densest > above->densest) above->densest = s->leaving[c].densest;
  }
}

mt_status mt_selection_choose(const mt_hdbscan_options *options, mt_selection *s,
                              int64_t *n_chosen_out)
{
  if (options->cluster_selection_method == MT_SELECT_EOM)
    choose_most_mass(options, s);
  else
    choose_leaves(s);
  merge_below_epsilon(options, s);
  drop_empty_root(options, s);
  *n_chosen_out = number(s);
  if (*n_chosen_out > INT32_MAX)
    return mt_fail(MT_ERR_INPUT, "more than 2^31 clusters");
  describe_leaving(options, s);
  return MT_OK;
}

mt_status mt_selection_persistence(const mt_selection *s, const int64_t *members,
                                   mt_clusters *out)
{
  mt_status status = MT_OK;
  double largest = 0.0;

  MT_NEW(out->persistence, out->n_clusters);
  out->n_noise = out->n;
  for (int64_t c = 0; c < out->n_clusters; c++) out->n_noise -= members[c];
  for (int64_t c = 0; c < s->n; c++)
    if (s->death[c] > largest) largest = s->death[c];
  for (int64_t c = 0; c < s->n; c++) {
    if (!s->chosen[c]) continue;
    double all = (double)members[s->label[c]] * largest;
    out->persistence[s->label[c]] = s->stability[c] / all;
  }
done:
  return status;
}

static void score_points(const mt_selection *s, mt_clusters *out)
{
  const mt_condensed_tree *tree = &out->tree;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < tree->n_rows; row++) { /* a point is in one row */
    int64_t point = tree->child[row];
    if (point < tree->n)
      mt_score_point(&s->leaving[tree->parent[row] - tree->n], tree->lambda[row],
                     &out->labels[point], &out->probabilities[point],
                     &out->outlier_scores[point]);
  }
}

static mt_status select_clusters(const mt_hdbscan_options *options, mt_clusters *out)
{
  mt_status status = MT_OK;
  mt_selection s = {0};
  int64_t *members = NULL;

  MT_TRY(mt_selection_create(out->tree.n_clusters, &s));
  measure(&out->tree, &s);
  MT_TRY(mt_selection_choose(options, &s, &out->n_clusters));
  score_points(&s, out);
  MT_NEW(members, out->n_clusters);
  for (int64_t i = 0; i < out->n; i++)
    if (out->labels[i] >= 0) members[out->labels[i]]++;
  MT_TRY(mt_selection_persistence(&s, members, out));
done:
  free(members);
  mt_selection_destroy(&s);
  return status;
}

void mt_clusters_destroy(mt_clusters *clusters)
{
  free(clusters->labels);
  free(clusters->probabilities);
  free(clusters->outlier_scores);
  free(clusters->persistence);
  mt_condensed_tree_destroy(&clusters->tree);
  memset(clusters, 0, sizeof *clusters);
}

mt_status mt_hdbscan_check(const mt_hdbscan_options *options)
{
  if (options->min_cluster_size >= 2 && options->min_samples >= 1 &&
      options->alpha > 0.0 && options->cluster_selection_epsilon >= 0.0 &&
      options->max_cluster_size >= 0)
    return MT_OK;
  return mt_fail(MT_ERR_ARG, "hdbscan: an option is out of range");
}

mt_status mt_clusters_create(int64_t n, mt_part points, mt_clusters *clusters)
{
  mt_status status = MT_OK;
  clusters->n = clusters->n_noise = n;
  clusters->points = points;
  MT_NEW(clusters->labels, points.count);
  MT_NEW(clusters->probabilities, points.count);
  MT_NEW(clusters->outlier_scores, points.count);
  memset(clusters->labels, -1, (size_t)points.count * sizeof *clusters->labels);
done:
  return status;
}

mt_status mt_clusters_select(const mt_hdbscan_options *options, mt_condensed_tree *tree,
                             mt_clusters *clusters_out)
{
  mt_status status = MT_OK;
  int64_t n = tree->n;
  mt_clusters clusters = {.tree = *tree, .rows = {0, tree->n_rows}};

  memset(tree, 0, sizeof *tree);
  MT_TRY(mt_clusters_create(n, (mt_part){0, n}, &clusters));
  if (n >= options->min_cluster_size) /* and so 2 or more */
    MT_TRY(select_clusters(options, &clusters));
  else
    MT_NEW(clusters.persistence, 0);
  *clusters_out = clusters;
  memset(&clusters, 0, sizeof clusters);
done:
  mt_clusters_destroy(&clusters);
  return status;
}

mt_status mt_clusters_find(const mt_hdbscan_options *options, int64_t n,
                           const mt_edge *tree, mt_clusters *clusters_out)
{
  mt_status status = MT_OK;
  mt_condensed_tree condensed = {0};

  MT_REQUIRE(n >= 0, MT_ERR_ARG, "hdbscan: %lld points", (long long)n);
  MT_TRY(mt_hdbscan_check(options));
  MT_TRY(mt_condensed_tree_find(options->min_cluster_size, n, tree, &condensed));
  MT_TRY(mt_clusters_select(options, &condensed, clusters_out));
done:
  return status;
}
