/* RANKS 1 2 3 4 7   EMULATED 1 2 3:2
 * HDBSCAN against the Python package's clusters (tests/data/hdbscan.txt, made by
 * tools/reference/hdbscan.py), the spanning tree against brute force, the same bits from any
 * number of ranks and threads, and input that breaks others. */
#include "backend.h"
#include "backend/cpu_kdtree.h"
#include "base/memory.h"
#include "hdbscan/hdbscan.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const mt_stream fixture_stream =
    (mt_stream)9001; /* also in tools/reference/hdbscan.py */

/* A data set of the file: how its points are drawn, the options, what the package said. */
typedef struct set {
  char kind[16];
  int64_t n, d, parts;
  uint32_t seed;
  double spread, noise;
  uint64_t checksum;
  mt_hdbscan_options options;
  int64_t n_clusters;
  double *persistence;              /* (n_clusters) */
  int32_t *labels;                  /* (n) */
  double *probabilities, *outliers; /* (n), or NULL: large, or ties matter */
} set;

enum { MAX_SETS = 64 };
static set sets[MAX_SETS];
static int n_sets;

/* Large data only then: every rank holds all of it. */
static bool few_ranks(void)
{
  return mt_test_world.size <= 2 && !mt_test_small();
}

/* Under compute-sanitizer each launch is slow: 1 of 8 cases there. */
static bool leave_out(int64_t number)
{
  return getenv("MT_TEST_SMALL") != NULL && number % 8 != 1;
}

static void *zeros(int64_t count, size_t size)
{
  void *memory = NULL;
  assert_int_equal(mt_memory_new(count, size, "test", &memory), MT_OK);
  return memory;
}

/* ---- the points: as points_of in tools/reference/hdbscan.py --------------------------- */

static double draw(const set *s, int64_t index, uint32_t step)
{
  return mt_random_unit(s->seed, fixture_stream, (uint64_t)index, step);
}

static double bell(const set *s, int64_t index)
{
  double total = draw(s, index, 0);
  for (uint32_t step = 1; step < 6; step++) total = total + draw(s, index, step);
  return (total - 3.0) * 1.4142135623730951;
}

static double moon(const set *s, int64_t i, int64_t t, int64_t part)
{
  double u = draw(s, i, 7) * 2.0 - 1.0;
  double x = 2.0 * u / (1.0 + u * u), y = (1.0 - u * u) / (1.0 + u * u);
  if (part % 2) x = x + 1.0, y = 0.5 - y;
  return t == 0 ? x + 3.0 * (double)(part / 2) : t == 1 ? y : 0.0;
}

static double coordinate(const set *s, int64_t i, int64_t t)
{
  int64_t at = i * s->d + t, part = i * s->parts / s->n;
  double shake = bell(s, at) * s->spread;
  if (strcmp(s->kind, "uniform") == 0 || (double)i < (double)s->n * s->noise)
    return draw(s, at, 6) * 10.0;
  if (strcmp(s->kind, "moons") == 0) return moon(s, i, t, part) + shake;
  if (strcmp(s->kind, "varying") == 0) shake = shake * (1.0 + (double)part);
  return draw(s, part * s->d + t, 8) * 10.0 + shake;
}

static float *points_of(const set *s)
{
  float *points = zeros(s->n * s->d, sizeof *points);
  uint64_t sum = 0;
  for (int64_t i = 0; i < s->n * s->d; i++) {
    uint32_t word;
    points[i] = (float)coordinate(s, i / s->d, i % s->d);
    memcpy(&word, &points[i], sizeof word);
    sum += ((uint64_t)word + 1) * (2 * (uint64_t)i + 1);
  }
  assert_true(sum == s->checksum);
  return points;
}

/* ---- the file ------------------------------------------------------------------------- */

static double *read_numbers(const char *text, int64_t n)
{
  double *values = zeros(n, sizeof *values);
  char *end = NULL;
  for (int64_t i = 0; i < n; i++, text = end) {
    values[i] = strtod(text, &end);
    assert_true(end != text);
  }
  return values;
}

/* Run lengths: "0*12 -1 0 1*30". */
static int32_t *read_labels(const char *text, int64_t n)
{
  int32_t *labels = zeros(n, sizeof *labels);
  for (int64_t i = 0; i < n;) {
    char *end = NULL;
    int32_t label = (int32_t)strtol(text, &end, 10);
    int64_t count = 1;
    assert_true(end != text);
    if (*end == '*') count = strtol(end + 1, &end, 10);
    assert_true(count >= 1 && i + count <= n);
    while (count-- > 0) labels[i++] = label;
    text = end;
  }
  return labels;
}

static void read_options(const char *text, mt_hdbscan_options *o)
{
  char method[8];
  int single;
  long long least, samples, most;
  assert_int_equal(sscanf(text, "%lld %lld %7s %lf %d %lld %lf", &least, &samples,
                          method, &o->cluster_selection_epsilon, &single, &most,
                          &o->alpha),
                   7);
  o->min_cluster_size = least;
  o->min_samples = samples;
  o->max_cluster_size = most;
  o->allow_single_cluster = single != 0;
  o->cluster_selection_method =
      strcmp(method, "leaf") == 0 ? MT_SELECT_LEAF : MT_SELECT_EOM;
}

static void read_line(const char *word, const char *rest, set *s)
{
  if (strcmp(word, "set") == 0) {
    long long n, d, parts, sum;
    assert_int_equal(sscanf(rest, "%15s %lld %lld %u %lld %lf %lf %llx", s->kind, &n,
                            &d, &s->seed, &parts, &s->spread, &s->noise,
                            (unsigned long long *)&sum),
                     8);
    s->n = n, s->d = d, s->parts = parts, s->checksum = (uint64_t)sum;
  } else if (strcmp(word, "options") == 0) {
    read_options(rest, &s->options);
  } else if (strcmp(word, "persistence") == 0) {
    char *values;
    s->n_clusters = strtoll(rest, &values, 10);
    s->persistence = read_numbers(values, s->n_clusters);
  } else if (strcmp(word, "labels") == 0) {
    s->labels = read_labels(rest, s->n);
  } else if (strcmp(word, "probabilities") == 0) {
    s->probabilities = read_numbers(rest, s->n);
  } else if (strcmp(word, "outliers") == 0) {
    s->outliers = read_numbers(rest, s->n);
  } else {
    assert_string_equal(word, "end");
    n_sets++;
  }
}

static int read_sets(void **state)
{
  (void)state;
  FILE *file = fopen("tests/data/hdbscan.txt", "r");
  char *line = NULL, word[16];
  size_t size = 0;
  int used = 0;
  assert_non_null(file);
  while (getline(&line, &size, file) > 0)
    if (line[0] != '#' && n_sets < MAX_SETS && sscanf(line, "%15s%n", word, &used) == 1)
      read_line(word, line + used, &sets[n_sets]);
  free(line);
  fclose(file);
  return n_sets >= 30 ? 0 : -1;
}

static int free_sets(void **state)
{
  (void)state;
  for (int i = 0; i < n_sets; i++) {
    free(sets[i].persistence);
    free(sets[i].labels);
    free(sets[i].probabilities);
    free(sets[i].outliers);
  }
  return 0;
}

/* The world's clusters by the backend under test, whole on every rank. */
static mt_status find_clusters(const mt_hdbscan_options *options, int64_t n, int64_t d,
                               const float *points, mt_clusters *clusters_out)
{
  mt_status status =
      mt_hdbscan(mt_test_backend, &mt_test_world, options, n, d, points, clusters_out);
  if (status != MT_OK) return status;
  mt_part own = mt_part_of(n, mt_test_world.size, mt_test_world.rank);
  assert_int_equal(clusters_out->points.first, own.first);
  assert_int_equal(clusters_out->points.count, own.count);
  assert_int_equal(mt_clusters_gather(&mt_test_world, clusters_out), MT_OK);
  int64_t noise = 0;
  for (int64_t i = 0; i < n; i++) noise += clusters_out->labels[i] < 0;
  assert_int_equal(clusters_out->n_noise, noise);
  return MT_OK;
}

/* ---- against the package ---------------------------------------------------------------- */

/* The same partition: a one-to-one renaming of labels, -1 for -1 (and so an adjusted Rand
 * index of 1). name_out: (n_clusters) the package's label for each of ours. */
static void compare_labels(const set *s, const mt_clusters *found, int32_t *name_out)
{
  assert_int_equal(found->n_clusters, s->n_clusters);
  bool *taken = zeros(s->n_clusters, sizeof *taken);
  for (int64_t c = 0; c < s->n_clusters; c++) name_out[c] = -1;
  for (int64_t i = 0; i < s->n; i++) {
    int32_t mine = found->labels[i], theirs = s->labels[i];
    if ((mine < 0) != (theirs < 0))
      fail_msg("point %lld: %d, not %d", (long long)i, mine, theirs);
    if (mine < 0) continue;
    if (name_out[mine] < 0) {
      assert_false(taken[theirs]);
      taken[theirs] = true;
      name_out[mine] = theirs;
    }
    if (name_out[mine] != theirs)
      fail_msg("point %lld: with %d, not %d", (long long)i, name_out[mine], theirs);
  }
  for (int64_t c = 0; c < s->n_clusters; c++) assert_true(name_out[c] >= 0);
  free(taken);
}

static void compare_set(const set *s)
{
  float *points = points_of(s);
  mt_clusters found = {0};
  assert_int_equal(find_clusters(&s->options, s->n, s->d, points, &found), MT_OK);
  int32_t *name = zeros(s->n_clusters, sizeof *name);
  double *persistence = zeros(s->n_clusters, sizeof *persistence);
  compare_labels(s, &found, name);
  for (int64_t c = 0; c < s->n_clusters; c++)
    persistence[name[c]] = found.persistence[c];
  MT_TEST_CLOSE(persistence, s->persistence, s->n_clusters, 0.0, 1e-5);
  if (s->probabilities != NULL)
    MT_TEST_CLOSE(found.probabilities, s->probabilities, s->n, 0.0, 1e-5);
  if (s->outliers != NULL)
    MT_TEST_CLOSE(found.outlier_scores, s->outliers, s->n, 0.0, 1e-5);
  mt_clusters_destroy(&found);
  free(points);
  free(name);
  free(persistence);
}

static void test_clusters_of_package(void **state)
{
  (void)state;
  for (int i = 0; i < n_sets; i++) {
    if (sets[i].n > (few_ranks() ? 20000 : 1000) || leave_out(i)) continue;
    compare_set(&sets[i]);
  }
}

/* ---- the spanning tree against brute force --------------------------------------------- */

/* The CPU backend's on one rank alone: on GPUs too the same edges and the same bits. */
static void compare_with_cpu(const mt_hdbscan_options *options, int64_t n, int64_t d,
                             const float *points, const mt_edge *tree,
                             const double *core)
{
  mt_comm self = mt_comm_self();
  mt_edge *tree_cpu = zeros(n, sizeof *tree_cpu);
  double *core_cpu = zeros(n, sizeof *core_cpu);
  assert_int_equal(mt_test_cpu->spanning_tree(mt_test_cpu, &self, options, n, d, points,
                                              tree_cpu, core_cpu),
                   MT_OK);
  assert_memory_equal(tree, tree_cpu, (size_t)(n - 1) * sizeof *tree);
  assert_memory_equal(core, core_cpu, (size_t)n * sizeof *core);
  free(tree_cpu);
  free(core_cpu);
}

static void compare_trees(const mt_hdbscan_options *options, int64_t n, int64_t d,
                          const float *points)
{
  mt_edge *tree = zeros(n, sizeof *tree), *ref = zeros(n, sizeof *ref);
  double *core = zeros(n, sizeof *core), *core_ref = zeros(n, sizeof *core_ref);
  double *weight = zeros(n, sizeof *weight), *weight_ref = zeros(n, sizeof *weight_ref);
  assert_int_equal(mt_test_backend->spanning_tree(mt_test_backend, &mt_test_world,
                                                  options, n, d, points, tree, core),
                   MT_OK);
  if (mt_test_on_gpus() || mt_test_world.size > 1)
    compare_with_cpu(options, n, d, points, tree, core);
  if (mt_test_world.rank == 0) {
    mt_merge *merges = zeros(n, sizeof *merges); /* a tree, and sorted */
    assert_int_equal(mt_spanning_tree_ref(options, n, d, points, ref, core_ref), MT_OK);
    for (int64_t i = 0; i < n - 1; i++)
      weight[i] = tree[i].weight, weight_ref[i] = ref[i].weight;
    MT_TEST_CLOSE(weight, weight_ref, n - 1, 1e-12, 0.0);
    MT_TEST_CLOSE(core, core_ref, n, 1e-12, 0.0);
    assert_int_equal(mt_single_linkage(n, tree, merges), MT_OK);
    free(merges);
  }
  free(tree);
  free(ref);
  free(core);
  free(core_ref);
  free(weight);
  free(weight_ref);
}

static void test_trees_of_sets(void **state)
{
  (void)state;
  for (int i = 0; i < n_sets; i++) {
    if (sets[i].n > (mt_test_world.size > 1 ? 300
                     : mt_test_small()      ? 2000
                                            : 20000) ||
        leave_out(i))
      continue;
    float *points = points_of(&sets[i]);
    compare_trees(&sets[i].options, sets[i].n, sets[i].d, points);
    free(points);
  }
}

/* Whole-number coordinates: nearly all weights are equal, many points are the same. */
static void test_trees_with_ties(void **state)
{
  (void)state;
  enum { N = 400, D = 3 };
  float points[N * D];
  for (int d = 1; d <= D; d++)
    for (int side = 1; side <= 20; side = side * 2 + 1)
      for (int samples = 1; samples < 40; samples = samples * 3 + 1) {
        if (leave_out(d + side)) continue;
        mt_hdbscan_options options = {.min_samples = samples,
                                      .alpha = samples == 4 ? 1.3 : 1.0};
        for (int i = 0; i < N * d; i++) {
          points[i] = (float)floor(
              side * mt_random_unit((uint32_t)side, MT_STREAM_TEST, (uint64_t)i, 0));
          if (points[i] == 0.0f && i % 2) points[i] = -0.0f;
        }
        compare_trees(&options, N, d, points);
      }
}

static void test_trees_of_few_points(void **state)
{
  (void)state;
  float points[40 * 17];
  for (int i = 0; i < 40 * 17; i++)
    points[i] = (float)mt_random_unit(5, MT_STREAM_TEST, (uint64_t)i, 0);
  for (int d = 1; d <= 17; d += 4)
    for (int n = 2; n <= 40; n += n < 20 ? 1 : 5) {
      if (leave_out(n)) continue;
      mt_hdbscan_options options = {.min_samples = 1 + n % 7, .alpha = 1.0};
      compare_trees(&options, n, d, points);
    }
}

/* ---- the condensed tree against union-find and a queue -------------------------------------- */

/* A path, a star, and trees that grow at any point or at one of the last; weights all 0, few
 * or all different. */
static void grow_tree(int shape, int64_t n_weights, int64_t n, mt_edge *tree)
{
  for (int64_t i = 1; i < n; i++) {
    double u = mt_random_unit(11, MT_STREAM_TEST, (uint64_t)i, (uint32_t)shape),
           v = mt_random_unit(12, MT_STREAM_TEST, (uint64_t)i, (uint32_t)n_weights);
    int64_t from = shape == 0   ? i - 1
                   : shape == 1 ? 0
                   : shape == 2 ? (int64_t)(u * (double)i)
                                : i - 1 - (int64_t)(u * (double)(i < 8 ? i : 8));
    double weight = n_weights > 0 ? floor(v * (double)n_weights) : v;
    if (shape == 0 && n_weights == 0) weight = 1.0 + 0.5 * (double)i;
    tree[i - 1] = (mt_edge){from, i, weight};
  }
  assert_int_equal(mt_edges_sort(n - 1, tree), MT_OK);
}

static void compare_condensed(int64_t min_size, int64_t n, const mt_edge *tree)
{
  mt_condensed_tree mine = {0}, ref = {0};
  assert_int_equal(
      mt_test_backend->condensed_tree(mt_test_backend, min_size, n, tree, &mine),
      MT_OK);
  assert_int_equal(mt_condensed_tree_find(min_size, n, tree, &ref), MT_OK);
  assert_int_equal(mine.n, ref.n);
  assert_int_equal(mine.n_clusters, ref.n_clusters);
  assert_int_equal(mine.n_rows, ref.n_rows);
  size_t bytes = (size_t)ref.n_rows * sizeof(int64_t);
  assert_memory_equal(mine.parent, ref.parent, bytes);
  assert_memory_equal(mine.child, ref.child, bytes);
  assert_memory_equal(mine.child_size, ref.child_size, bytes);
  assert_memory_equal(mine.lambda, ref.lambda, bytes);
  mt_condensed_tree_destroy(&mine);
  mt_condensed_tree_destroy(&ref);
}

static void test_condensed_trees(void **state)
{
  (void)state;
  if (mt_test_world.rank != 0 || !mt_test_on_gpus()) return;
  int64_t most = getenv("MT_TEST_SMALL") != NULL ? 300 : 3000;
  mt_edge *tree = zeros(most, sizeof *tree);
  for (int shape = 0; shape < 4; shape++)
    for (int64_t n_weights = 0; n_weights < 300; n_weights = n_weights * 5 + 1)
      for (int64_t n = 2; n <= most; n += 1 + n * 2 / 3) {
        if (leave_out(shape + n_weights + n)) continue;
        grow_tree(shape, n_weights, n, tree);
        for (int64_t min_size = 2; min_size <= 2 * n; min_size = min_size * 3 - 1)
          compare_condensed(min_size, n, tree);
      }
  free(tree);
}

/* ---- the same bits ----------------------------------------------------------------------- */

static void assert_same_clusters(const mt_clusters *p, const mt_clusters *q)
{
  size_t n = (size_t)p->n, k = (size_t)p->n_clusters, rows = (size_t)p->tree.n_rows;
  assert_int_equal(p->n_clusters, q->n_clusters);
  assert_int_equal(p->tree.n_rows, q->tree.n_rows);
  assert_memory_equal(p->labels, q->labels, n * sizeof *p->labels);
  assert_memory_equal(p->probabilities, q->probabilities, n * sizeof(double));
  assert_memory_equal(p->outlier_scores, q->outlier_scores, n * sizeof(double));
  if (k > 0) assert_memory_equal(p->persistence, q->persistence, k * sizeof(double));
  assert_memory_equal(p->tree.parent, q->tree.parent, rows * sizeof(int64_t));
  assert_memory_equal(p->tree.child, q->tree.child, rows * sizeof(int64_t));
  assert_memory_equal(p->tree.lambda, q->tree.lambda, rows * sizeof(double));
}

/* Points by options, over the world with each number of threads: all as one rank has it. */
static void check_same_bits(const mt_hdbscan_options *options, int64_t n, int64_t d,
                            const float *points)
{
  mt_comm self = mt_comm_self();
  mt_clusters alone = {0}, found = {0};
  int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  assert_int_equal(mt_hdbscan(mt_test_cpu, &self, options, n, d, points, &alone),
                   MT_OK);
  /* threads that wait for one another crowd the cores: few of them beside ranks */
  int most = mt_test_world.size == 1 ? 3 : mt_test_world.size == 2 && n <= 300 ? 2 : 1;
  for (int t = 1; t <= most; t++) {
    omp_set_num_threads(t);
    assert_int_equal(find_clusters(options, n, d, points, &found), MT_OK);
    assert_same_clusters(&found, &alone);
    mt_clusters_destroy(&found);
  }
  omp_set_num_threads(threads);
  mt_clusters_destroy(&alone);
}

static void test_same_bits(void **state)
{
  (void)state;
  for (int i = 0; i < n_sets; i += few_ranks() ? 3 : 7) {
    if (leave_out(i)) continue;
    if (sets[i].n > 3000) continue;
    float *points = points_of(&sets[i]);
    check_same_bits(&sets[i].options, sets[i].n, sets[i].d, points);
    for (int64_t j = 0; j < sets[i].n * sets[i].d; j++) /* many ties and duplicates */
      points[j] = rintf(points[j] * 3.0f);
    check_same_bits(&sets[i].options, sets[i].n, sets[i].d, points);
    free(points);
  }
}

/* ---- hostile input ------------------------------------------------------------------------ */

static const mt_hdbscan_options plain = {
    .min_cluster_size = 5, .min_samples = 3, .alpha = 1.0};

static void assert_sane(const mt_clusters *found)
{
  for (int64_t i = 0; i < found->n; i++) {
    assert_in_range(found->labels[i] + 1, 0, found->n_clusters);
    assert_true(found->probabilities[i] >= 0.0 && found->probabilities[i] <= 1.0);
    assert_true(found->outlier_scores[i] >= 0.0 && found->outlier_scores[i] <= 1.0);
    if (found->labels[i] < 0) assert_true(found->probabilities[i] == 0.0);
  }
  for (int64_t c = 0; c < found->n_clusters; c++)
    assert_true(found->persistence[c] >= 0.0 && found->persistence[c] <= 1.0 + 1e-12);
  for (int64_t row = 0; row < found->tree.n_rows; row++)
    assert_true(isfinite(found->tree.lambda[row]) && found->tree.lambda[row] > 0.0);
}

static void assert_all_noise(const mt_clusters *found)
{
  assert_int_equal(found->n_clusters, 0);
  for (int64_t i = 0; i < found->n; i++) assert_int_equal(found->labels[i], -1);
}

static void test_hardly_any_points(void **state)
{
  (void)state;
  float points[] = {0.0f, 1.0f, 2.0f, 4.0f, 7.0f, 7.0f, 1.0f, 0.0f};
  for (int64_t n = 0; n <= 4; n++)
    for (int single = 0; single < 2; single++) {
      mt_hdbscan_options options = plain;
      mt_clusters found = {0};
      options.allow_single_cluster = single != 0;
      assert_int_equal(find_clusters(&options, n, 2, points, &found), MT_OK);
      assert_int_equal(found.n, n);
      assert_int_equal(found.tree.n_rows, n < 2 ? 0 : n);
      assert_all_noise(&found);
      assert_sane(&found);
      mt_clusters_destroy(&found);
    }
}

static void test_identical_points(void **state)
{
  (void)state;
  int64_t n = few_ranks() ? 300000 : 20000;
  float *points = zeros(n, sizeof *points);
  for (int single = 0; single < 2; single++) {
    mt_hdbscan_options options = plain;
    mt_clusters found = {0};
    options.allow_single_cluster = single != 0;
    for (int64_t i = 0; i < n; i++) points[i] = 3.25f;
    assert_int_equal(find_clusters(&options, n, 1, points, &found), MT_OK);
    assert_sane(&found);
    if (single == 0) assert_all_noise(&found);
    for (int64_t i = 0; i < n && single == 1; i++) assert_int_equal(found.labels[i], 0);
    mt_clusters_destroy(&found);
  }
  free(points);
}

/* Two points many times over, and others once: the copies stay together. */
static void test_many_duplicates(void **state)
{
  (void)state;
  enum { N = 1200, D = 2 };
  float points[N * D];
  mt_clusters found = {0};
  mt_hdbscan_options options = plain;
  options.min_cluster_size = 20;
  for (int i = 0; i < N; i++)
    for (int t = 0; t < D; t++)
      points[i * D + t] =
          i % 3 == 0   ? 2.0f
          : i % 3 == 1 ? 8.0f
                       : (float)(10.0 * mt_random_unit(7, MT_STREAM_TEST,
                                                       (uint64_t)(i * D + t), 0));
  compare_trees(&options, N, D, points);
  assert_int_equal(find_clusters(&options, N, D, points, &found), MT_OK);
  assert_sane(&found);
  assert_true(found.labels[0] >= 0 && found.labels[1] >= 0 &&
              found.labels[0] != found.labels[1]);
  for (int i = 0; i < N; i++) {
    if (i % 3 == 2) continue;
    assert_int_equal(found.labels[i], found.labels[i % 3]);
    assert_true(found.probabilities[i] == 1.0);
    assert_true(found.outlier_scores[i] == 0.0);
  }
  mt_clusters_destroy(&found);
}

/* A dendrogram 200,000 levels deep, on a stack of 256 kB. */
static void test_long_chain(void **state)
{
  (void)state;
  int64_t n = few_ranks() ? 200000 : 20000;
  struct rlimit usual, small;
  float *points = zeros(n, sizeof *points);
  mt_clusters found = {0};
  for (int64_t i = 0; i < n; i++) points[i] = (float)(1e-30 * exp(7e-4 * (double)i));
  assert_int_equal(getrlimit(RLIMIT_STACK, &usual), 0);
  small = usual;
  small.rlim_cur = 256 << 10;
  assert_int_equal(setrlimit(RLIMIT_STACK, &small), 0);
  mt_status status = find_clusters(&plain, n, 1, points, &found);
  setrlimit(RLIMIT_STACK, &usual);
  assert_int_equal(status, MT_OK);
  assert_sane(&found);
  assert_all_noise(&found);
  assert_int_equal(found.tree.n_clusters, 1);
  assert_int_equal(found.tree.n_rows, n);
  mt_clusters_destroy(&found);
  free(points);
}

static void test_wrong_arguments(void **state)
{
  (void)state;
  float points[] = {0.0f, 1.0f, NAN, 2.0f, 5.0f, 6.0f, 7.0f};
  mt_clusters found = {0};
  mt_hdbscan_options options = plain;
  mt_edge cycle[] = {{0, 1, 1.0}, {1, 2, 1.0}, {0, 2, 2.0}},
          mixed[] = {{0, 1, 2.0}, {1, 2, 1.0}};
  mt_log_setup(1, 2, MT_LOG_ERROR); /* these are expected */
  assert_int_equal(find_clusters(&plain, 7, 1, points, &found), MT_ERR_INPUT);
  points[2] = INFINITY;
  assert_int_equal(find_clusters(&plain, 7, 1, points, &found), MT_ERR_INPUT);
  options.min_cluster_size = 1;
  points[2] = 3.0f;
  assert_int_equal(find_clusters(&options, 7, 1, points, &found), MT_ERR_ARG);
  assert_int_equal(mt_clusters_find(&plain, 4, cycle, &found), MT_ERR_ARG);
  assert_int_equal(mt_clusters_find(&plain, 3, mixed, &found), MT_ERR_ARG);
  assert_null(found.labels);
  mt_condensed_tree tree = {0};
  mt_backend *be = mt_test_backend;
  mt_edge outside[] = {{0, 1, 1.0}, {1, 3, 1.0}};
  assert_int_equal(be->condensed_tree(be, 5, 4, cycle, &tree), MT_ERR_ARG);
  assert_int_equal(be->condensed_tree(be, 5, 3, mixed, &tree), MT_ERR_ARG);
  assert_int_equal(be->condensed_tree(be, 5, 3, outside, &tree), MT_ERR_ARG);
  assert_int_equal(be->condensed_tree(be, 1, 3, outside, &tree), MT_ERR_ARG);
  assert_null(tree.parent);
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_WARN);
}

/* lambda of 0 is above all others, and finite. */
static void test_lambda_of_zero(void **state)
{
  (void)state;
  assert_true(mt_lambda_of_zero(1e-20, 8.0) == 2.0 / 1e-20);
  assert_true(mt_lambda_of_zero(4.0, 8.0) == 2.0 * 0x1p24 / 8.0);
  assert_true(mt_lambda_of_zero(0.0, 0.0) == 1.0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_clusters_of_package),
    cmocka_unit_test(test_trees_of_sets),
    cmocka_unit_test(test_trees_with_ties),
    cmocka_unit_test(test_trees_of_few_points),
    cmocka_unit_test(test_condensed_trees),
    cmocka_unit_test(test_same_bits),
    cmocka_unit_test(test_hardly_any_points),
    cmocka_unit_test(test_identical_points),
    cmocka_unit_test(test_many_duplicates),
    cmocka_unit_test(test_long_chain),
    cmocka_unit_test(test_wrong_arguments),
    cmocka_unit_test(test_lambda_of_zero),
};

MT_TEST_BACKEND_MAIN_AROUND(tests, read_sets, free_sets)
