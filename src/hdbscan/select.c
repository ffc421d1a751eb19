/* From the condensed tree to labels and scores. Clusters are counted from 0, the root, here;
 * parents have lower numbers than their children. */
#include "hdbscan/hdbscan.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

typedef struct selection {
  const mt_condensed_tree *tree;
  int64_t n;       /* clusters */
  int64_t *parent; /* (n) */
  int64_t *
      size; /* (n) points at birth; of the root: those in its children, as hdbscan has it */
  double *birth;      /* (n) lambda at which it begins */
  double *death;      /* (n) largest lambda at which anything leaves it */
  double *stability;  /* (n) */
  double *below;      /* (n) scratch: the sum of its children */
  bool *has_children; /* (n) */
  bool *chosen;       /* (n) */
  int64_t *climb;     /* (n) scratch */
  int64_t *label;     /* (n) label of a point that leaves it; -1: noise */
} selection;

static void selection_destroy(selection *s)
{
  free(s->parent);
  free(s->size);
  free(s->birth);
  free(s->death);
  free(s->stability);
  free(s->below);
  free(s->has_children);
  free(s->chosen);
  free(s->climb);
  free(s->label);
}

static mt_status selection_create(const mt_condensed_tree *tree, selection *s)
{
  mt_status status = MT_OK;
  s->tree = tree;
  s->n = tree->n_clusters;
  MT_NEW(s->parent, s->n);
  MT_NEW(s->size, s->n);
  MT_NEW(s->birth, s->n);
  MT_NEW(s->death, s->n);
  MT_NEW(s->stability, s->n);
  MT_NEW(s->below, s->n);
  MT_NEW(s->has_children, s->n);
  MT_NEW(s->chosen, s->n);
  MT_NEW(s->climb, s->n);
  MT_NEW(s->label, s->n);
done:
  return status;
}

/* Births, deaths and stabilities: sum over what leaves of (lambda - birth) x points. */
static void measure(selection *s)
{
  const mt_condensed_tree *tree = s->tree;
  for (int64_t row = 0; row < tree->n_rows; row++) {
    int64_t parent = tree->parent[row] - tree->n, child = tree->child[row] - tree->n;
    double lambda = tree->lambda[row];
    if (child > 0) {
      s->parent[child] = parent;
      s->birth[child] = lambda;
      s->size[child] = tree->child_size[row];
      s->has_children[parent] = true;
      if (parent == 0) s->size[0] += s->size[child];
    }
    if (lambda > s->death[parent]) s->death[parent] = lambda;
    s->stability[parent] += (lambda - s->birth[parent]) * (double)tree->child_size[row];
  }
}

/* What has a chosen ancestor is not chosen itself. */
static void keep_topmost(selection *s)
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
static void choose_most_mass(const mt_hdbscan_options *options, selection *s)
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
static void choose_leaves(selection *s)
{
  for (int64_t c = 1; c < s->n; c++) s->chosen[c] = !s->has_children[c];
}

/* The lowest cluster above c that was born at a distance above epsilon; failing that the
 * root, or the one below the root where the root may not be a cluster. */
static void find_climbs(const mt_hdbscan_options *options, selection *s)
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
static void merge_below_epsilon(const mt_hdbscan_options *options, selection *s)
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
static bool stays_in_root(const mt_hdbscan_options *options, const selection *s,
                          double lambda)
{
  double epsilon = options->cluster_selection_epsilon;
  return lambda >= (epsilon != 0.0 ? 1.0 / epsilon : s->death[0]);
}

/* A root beside other clusters, or that no point stays in, would be a cluster without
 * points (hdbscan counts it as one). */
static void drop_empty_root(const mt_hdbscan_options *options, selection *s)
{
  const mt_condensed_tree *tree = s->tree;
  if (!s->chosen[0]) return;
  bool stays = false, others = false;
  for (int64_t row = 0; row < tree->n_rows && !stays; row++)
    stays = tree->child[row] < tree->n && stays_in_root(options, s, tree->lambda[row]);
  for (int64_t c = 1; c < s->n; c++) others = others || s->chosen[c];
  s->chosen[0] = stays && !others;
}

static int64_t number(selection *s)
{
  int64_t n_chosen = 0;
  for (int64_t c = 0; c < s->n; c++)
    s->label[c] = s->chosen[c] ? n_chosen++ : (c > 0 ? s->label[s->parent[c]] : -1);
  return n_chosen;
}

/* The cluster that points which leave `c` count for: itself or the nearest chosen above;
 * kept in climb. */
static void find_owners(selection *s)
{
  s->climb[0] = 0;
  for (int64_t c = 1; c < s->n; c++)
    s->climb[c] = s->chosen[c] ? c : s->climb[s->parent[c]];
}

static void label_points(const mt_hdbscan_options *options, selection *s,
                         mt_clusters *out)
{
  const mt_condensed_tree *tree = s->tree;
  find_owners(s);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < tree->n_rows; row++) { /* a point is in one row */
    int64_t point = tree->child[row];
    if (point >= tree->n) continue;
    int64_t cluster = tree->parent[row] - tree->n, owner = s->climb[cluster];
    double lambda = tree->lambda[row], death = s->death[owner];
    bool in = owner > 0 || (s->chosen[0] && stays_in_root(options, s, lambda));
    out->labels[point] = in ? (int32_t)s->label[owner] : -1;
    if (in) out->probabilities[point] = lambda < death ? lambda / death : 1.0;
  }
}

static mt_status score_clusters(selection *s, mt_clusters *out)
{
  mt_status status = MT_OK;
  int64_t *members = NULL;
  double largest = 0.0;

  MT_NEW(members, out->n_clusters);
  for (int64_t i = 0; i < out->n; i++)
    if (out->labels[i] >= 0) members[out->labels[i]]++;
  for (int64_t c = 0; c < s->n; c++)
    if (s->death[c] > largest) largest = s->death[c];
  for (int64_t c = 0; c < s->n; c++) {
    if (!s->chosen[c]) continue;
    double all = (double)members[s->label[c]] * largest;
    out->persistence[s->label[c]] = s->stability[c] / all;
  }
done:
  free(members);
  return status;
}

/* GLOSH: how far below the densest place of its cluster's subtree a point leaves. */
static void score_outliers(selection *s, mt_clusters *out)
{
  const mt_condensed_tree *tree = s->tree;
  for (int64_t c = s->n - 1; c > 0; c--)
    if (s->death[c] > s->death[s->parent[c]]) s->death[s->parent[c]] = s->death[c];
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < tree->n_rows; row++) {
    double densest = s->death[tree->parent[row] - tree->n];
    if (tree->child[row] < tree->n)
      out->outlier_scores[tree->child[row]] = (densest - tree->lambda[row]) / densest;
  }
}

static mt_status select_clusters(const mt_hdbscan_options *options, mt_clusters *out)
{
  mt_status status = MT_OK;
  selection s = {0};

  MT_TRY(selection_create(&out->tree, &s));
  measure(&s);
  if (options->cluster_selection_method == MT_SELECT_EOM)
    choose_most_mass(options, &s);
  else
    choose_leaves(&s);
  merge_below_epsilon(options, &s);
  drop_empty_root(options, &s);
  out->n_clusters = number(&s);
  MT_REQUIRE(out->n_clusters <= INT32_MAX, MT_ERR_INPUT, "more than 2^31 clusters");
  MT_NEW(out->persistence, out->n_clusters);
  label_points(options, &s, out);
  MT_TRY(score_clusters(&s, out));
  score_outliers(&s, out);
done:
  selection_destroy(&s);
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

static mt_status clusters_create(int64_t n, mt_clusters *clusters)
{
  mt_status status = MT_OK;
  clusters->n = n;
  MT_NEW(clusters->labels, n);
  MT_NEW(clusters->probabilities, n);
  MT_NEW(clusters->outlier_scores, n);
  memset(clusters->labels, -1, (size_t)n * sizeof *clusters->labels);
done:
  return status;
}

mt_status mt_clusters_select(const mt_hdbscan_options *options, mt_condensed_tree *tree,
                             mt_clusters *clusters_out)
{
  mt_status status = MT_OK;
  int64_t n = tree->n;
  mt_clusters clusters = {.tree = *tree};

  memset(tree, 0, sizeof *tree);
  MT_TRY(clusters_create(n, &clusters));
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
