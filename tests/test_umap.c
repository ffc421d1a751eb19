/* RANKS 1 2 3 4 7   EMULATED 1 2 3:2
 * UMAP: the graph, the curve and the quality against umap-learn, eigenvectors against
 * LAPACK, epochs against plain loops; the same bits for any number of ranks and threads. */
#include "backend.h"

#include "base/memory.h"
#include "base/stop.h"
#include "deck/deck.h"
#include "stage/stage.h"
#include "store/folder.h"
#include "store/store.h"
#include "umap/eigen.h"
#include "umap/formulas.h"
#include "umap/kernel.h"
#include "umap/start.h"
#include "umap/umap.h"

#include <float.h>
#include <math.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const mt_umap_options usual = {.n_components = 2,
                                      .min_dist = 0.1,
                                      .spread = 1.0,
                                      .learning_rate = 1.0,
                                      .negative_sample_rate = 5,
                                      .repulsion_strength = 1.0,
                                      .set_op_mix_ratio = 1.0,
                                      .local_connectivity = 1.0,
                                      .random_state = 42};

/* ---- points and their neighbours ------------------------------------------------------ */

typedef struct {
  int64_t n, d, k;
  float *rows, *distances;
  int64_t *indices;
} points;

static points points_new(int64_t n, int64_t d)
{
  points p = {.n = n, .d = d};
  assert_int_equal(mt_memory_new(n * d, sizeof *p.rows, "rows", (void **)&p.rows),
                   MT_OK);
  return p;
}

static void points_free(points *p)
{
  free(p->rows);
  free(p->distances);
  free(p->indices);
}

/* The k nearest others by plain search, ties by index; k is cut to n - 1. */
static void find_neighbors(points *p, int64_t k)
{
  p->k = k < p->n ? k : p->n > 0 ? p->n - 1 : 0;
  p->distances = calloc((size_t)(p->n * p->k + 1), sizeof *p->distances);
  p->indices = calloc((size_t)(p->n * p->k + 1), sizeof *p->indices);
  for (int64_t i = 0; i < p->n; i++) {
    float *distances = p->distances + i * p->k;
    int64_t *indices = p->indices + i * p->k, count = 0;
    for (int64_t j = 0; j < p->n; j++) {
      double sum = 0.0;
      for (int64_t c = 0; c < p->d; c++)
        sum += pow((double)p->rows[i * p->d + c] - p->rows[j * p->d + c], 2);
      float distance = (float)sqrt(sum);
      if (j == i || (count == p->k && distance >= distances[count - 1])) continue;
      if (count < p->k) count++;
      int64_t at = count - 1;
      for (; at > 0 && distances[at - 1] > distance; at--) {
        distances[at] = distances[at - 1];
        indices[at] = indices[at - 1];
      }
      distances[at] = distance;
      indices[at] = j;
    }
  }
}

static double noise(int64_t index)
{
  return mt_random_normal(7, MT_STREAM_TEST, (uint64_t)index, 0);
}

/* `parts` blobs of unit noise, centres `apart` times a normal draw away. */
static points blobs(int64_t n, int64_t d, int64_t parts, double apart, int64_t k)
{
  points p = points_new(n, d);
  for (int64_t at = 0; at < n * d; at++)
    p.rows[at] =
        (float)(noise(at) + apart * noise(1000000 + at / d % parts * d + at % d));
  find_neighbors(&p, k);
  return p;
}

static mt_status lay_out_by(mt_backend *be, const mt_comm *comm,
                            const mt_umap_options *options, const points *p,
                            float *positions, mt_umap_result *result)
{
  mt_rows rows = mt_rows_memory(p->n, p->d, p->rows);
  int64_t first = mt_part_first(p->n, comm->size, comm->rank);
  return mt_umap_layout(be, comm, options, MT_METRIC_EUCLIDEAN, p->k,
                        p->indices + first * p->k, p->distances + first * p->k, &rows,
                        positions, result);
}

static mt_status lay_out(const mt_umap_options *options, const points *p,
                         float *positions, mt_umap_result *result)
{
  return lay_out_by(mt_test_backend, &mt_test_world, options, p, positions, result);
}

/* A layout over all ranks: finite, and the bits of one rank of CPU with three threads. */
static mt_umap_result check_layout(const mt_umap_options *options, const points *p,
                                   float **positions_out)
{
  mt_umap_result result, alone;
  mt_comm self = mt_comm_self();
  size_t size = (size_t)(p->n * options->n_components);
  float *all = calloc(size + 1, sizeof *all), *one = calloc(size + 1, sizeof *one);
  int threads = omp_get_max_threads();
  assert_int_equal(lay_out(options, p, all, &result), MT_OK);
  omp_set_num_threads(3);
  assert_int_equal(lay_out_by(mt_test_cpu, &self, options, p, one, &alone), MT_OK);
  omp_set_num_threads(threads);
  for (size_t at = 0; at < size; at++) assert_true(isfinite(all[at]));
  assert_memory_equal(all, one, size * sizeof *all);
  assert_int_equal(result.components, alone.components);
  assert_int_equal(result.edges, alone.edges);
  free(one);
  if (positions_out != NULL)
    *positions_out = all;
  else
    free(all);
  return result;
}

/* ---- exp and pow ------------------------------------------------------------------------ */

/* Units in the last place of float between a value and the true one. */
static double float_error(float found, double expected)
{
  int exponent;
  if (isnan(expected) || isinf((float)expected))
    return found == (float)expected || (isnan(found) && isnan(expected)) ? 0.0 : 1e9;
  frexp(expected, &exponent);
  return fabs(found - expected) / ldexp(1.0, (exponent < -125 ? -125 : exponent) - 24);
}

/* Floats of all sizes against libm, the special ones among them. */
static void test_elementary(void **state)
{
  (void)state;
  const float powers[] = {0.02f, 0.5f, 0.79f, 0.8951f, 1.0f, 1.5f, 2.0f, 15.9f};
  const float special[] = {0.0f,    -0.0f,  1.0f,  INFINITY, -INFINITY, NAN,    FLT_MAX,
                           FLT_MIN, 1e-45f, 88.8f, -87.5f,   -103.9f,   -104.1f};
  double worst = 0.0;
  for (int64_t at = 0; at < 400000; at++) {
    uint32_t bits = (uint32_t)at * 10739u;
    float x, size;
    memcpy(&x, &bits, sizeof x);
    if (at < (int64_t)(sizeof special / sizeof *special)) x = special[at];
    worst = fmax(worst, float_error(mt_exp(x), exp(x)));
    size = isnan(x) ? x : fabsf(x);
    worst = fmax(worst,
                 float_error(mt_pow(size, powers[at % 8]), pow(size, powers[at % 8])));
  }
  if (worst > 0.6) fail_msg("%g units in the last place off", worst);
  assert_true(mt_pow(1.0f, 0.8951f) == 1.0f && mt_exp(0.0f) == 1.0f);
}

/* ---- fixtures of umap-learn ---------------------------------------------------------- */

static FILE *open_fixture(const char *name)
{
  char path[200], line[400];
  snprintf(path, sizeof path, "tests/data/%s", name);
  FILE *file = fopen(path, "r");
  if (file == NULL) fail_msg("cannot open %s: run from the top folder", path);
  assert_non_null(fgets(line, sizeof line, file));
  return file;
}

static void test_curve(void **state)
{
  (void)state;
  FILE *file = open_fixture("umap-curve.txt");
  double min_dist, spread, expected[2], found[2];
  int cases = 0;
  while (fscanf(file, "%lf %lf %lf %lf", &min_dist, &spread, &expected[0],
                &expected[1]) == 4) {
    mt_umap_fit_ab(min_dist, spread, &found[0], &found[1]);
    MT_TEST_CLOSE(found, expected, 2, 1e-4, 0.0);
    cases++;
  }
  assert_true(cases > 20);
  fclose(file);
}

/* A graph's rows of all ranks, dense; on every rank. */
static float *dense_graph(const mt_graph *graph)
{
  int64_t n = graph->n;
  size_t bytes[16];
  float *dense = calloc((size_t)(n * n + 1), sizeof *dense);
  for (int64_t i = 0; i < graph->local; i++)
    for (int64_t e = graph->indptr[i]; e < graph->indptr[i + 1]; e++) {
      assert_true(e == graph->indptr[i] || graph->indices[e] > graph->indices[e - 1]);
      assert_true(graph->weights[e] > 0.0f && graph->weights[e] <= 1.0f);
      dense[(graph->first + i) * n + graph->indices[e]] = graph->weights[e];
    }
  for (int r = 0; r < mt_test_world.size; r++)
    bytes[r] = (size_t)(mt_part_count(n, mt_test_world.size, r) * n) * sizeof *dense;
  assert_int_equal(mt_allgatherv(&mt_test_world, bytes, dense), MT_OK);
  return dense;
}

static float *make_graph(const mt_umap_options *options, const points *p,
                         mt_graph *graph)
{
  int64_t first = mt_part_first(p->n, mt_test_world.size, mt_test_world.rank);
  assert_int_equal(mt_test_backend->umap_graph(mt_test_backend, &mt_test_world, options,
                                               p->n, p->k, p->indices + first * p->k,
                                               p->distances + first * p->k, graph),
                   MT_OK);
  return dense_graph(graph);
}

static void test_graph_fixture(void **state)
{
  (void)state;
  FILE *file = open_fixture("umap-graph.txt");
  long long n, k, edges;
  int cases = 0;
  mt_umap_options options = usual;
  while (fscanf(file, "%lld %lld %lf %lf %lld", &n, &k, &options.local_connectivity,
                &options.set_op_mix_ratio, &edges) == 5) {
    mt_graph graph = {0};
    points p = points_new(n, 1);
    float *expected = calloc((size_t)(n * n), sizeof *expected);
    find_neighbors(&p, k);
    for (int64_t at = 0; at < n * k; at++) {
      long long index;
      assert_int_equal(fscanf(file, "%lld %f", &index, &p.distances[at]), 2);
      p.indices[at] = index;
    }
    for (long long e = 0; e < edges; e++) {
      long long i, j;
      float weight;
      assert_int_equal(fscanf(file, "%lld %lld %f", &i, &j, &weight), 3);
      expected[i * n + j] = weight;
    }
    float *found = make_graph(&options, &p, &graph);
    MT_TEST_CLOSE(found, expected, n * n, 0.0, 1e-5);
    for (int64_t at = 0; at < n * n; at++)
      assert_true((found[at] > 0) == (expected[at] > 0));
    mt_graph_destroy(&graph);
    points_free(&p);
    free(found);
    free(expected);
    cases++;
  }
  assert_int_equal(cases, 5);
  fclose(file);
}

/* Trustworthiness (as scikit-learn's) and the share of the k nearest that stay among them. */
static void quality(const points *p, const float *positions, double out[2])
{
  points flat = {.n = p->n, .d = 2, .rows = (float *)positions};
  double lost = 0.0, kept = 0.0;
  int64_t n = p->n, k = 15;
  find_neighbors(&flat, k);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < k; j++) {
      int64_t rank = 1, other = flat.indices[i * k + j];
      double to = 0.0;
      for (int64_t c = 0; c < p->d; c++)
        to += pow((double)p->rows[i * p->d + c] - p->rows[other * p->d + c], 2);
      for (int64_t q = 0; q < n; q++) {
        double sum = 0.0;
        for (int64_t c = 0; c < p->d; c++)
          sum += pow((double)p->rows[i * p->d + c] - p->rows[q * p->d + c], 2);
        rank += q != i && q != other && (sum < to || (sum == to && q < other));
      }
      lost += rank > k ? (double)(rank - k) : 0.0;
      kept += rank <= k;
    }
  out[0] = 1.0 - lost * 2.0 / (double)(n * k * (2 * n - 3 * k - 1));
  out[1] = kept / (double)(n * k);
  free(flat.distances);
  free(flat.indices);
}

/* From the median of each axis. */
static int ascending(const void *a, const void *b)
{
  float p = *(const float *)a, q = *(const float *)b;
  return (p > q) - (p < q);
}

static double furthest(int64_t n, const float *positions)
{
  float *axis = calloc((size_t)n, sizeof *axis), center[2];
  double most = 0.0;
  for (int c = 0; c < 2; c++) {
    for (int64_t i = 0; i < n; i++) axis[i] = positions[i * 2 + c];
    qsort(axis, (size_t)n, sizeof *axis, ascending);
    center[c] = axis[n / 2];
  }
  for (int64_t i = 0; i < n; i++)
    most = fmax(most,
                hypot(positions[i * 2] - center[0], positions[i * 2 + 1] - center[1]));
  free(axis);
  return most;
}

/* Means over five seeds, not below umap-learn's by more than 0.01. On one rank of CPU: others
 * give the same bits (test_same_bits). */
static void test_quality(void **state)
{
  (void)state;
  if (mt_test_world.size > 1 || mt_test_on_gpus()) skip();
  FILE *file = open_fixture("umap-quality.txt");
  long long n, d;
  double expected[3];
  int cases = 0;
  while (fscanf(file, "%lld %lld %lf %lf %lf", &n, &d, &expected[0], &expected[1],
                &expected[2]) == 5) {
    points p = points_new(n, d);
    double mean[2] = {0.0, 0.0}, most = 0.0, one[2];
    float *positions = calloc((size_t)n * 2, sizeof *positions);
    for (int64_t at = 0; at < n * d; at++) {
      assert_int_equal(fscanf(file, "%f", &p.rows[at]), 1);
      p.rows[at] /= 100.0f;
    }
    find_neighbors(&p, 14);
    for (int seed = 0; seed < 5; seed++) {
      mt_umap_options options = usual;
      mt_umap_result result;
      options.random_state = seed;
      assert_int_equal(lay_out(&options, &p, positions, &result), MT_OK);
      quality(&p, positions, one);
      for (int q = 0; q < 2; q++) mean[q] += one[q] / 5.0;
      most = fmax(most, furthest(n, positions));
    }
    if (getenv("MT_TEST_SHOW") != NULL)
      print_message(
          "%lld points: trustworthiness %.4f (umap-learn %.4f), kept %.4f (%.4f), "
          "furthest %.2f (%.2f)\n",
          n, mean[0], expected[0], mean[1], expected[1], most, expected[2]);
    assert_true(mean[0] >= expected[0] - 0.01);
    assert_true(mean[1] >= expected[1] - 0.01);
    assert_true(most <=
                1.1 * expected[2]); /* the most of five draws varies by as much */
    points_free(&p);
    free(positions);
    cases++;
  }
  assert_int_equal(cases, 2);
  fclose(file);
}

/* ---- the definitions ------------------------------------------------------------------ */

static void test_graph(void **state)
{
  (void)state;
  const double local[] = {1.0, 1.5, 0.5, 3.0}, mix[] = {1.0, 0.5, 0.0, 1.0};
  points p = blobs(90, 4, 3, 1.0, 9);
  for (int c = 0; c < 4; c++) {
    mt_umap_options options = usual;
    mt_graph graph = {0};
    double *expected = calloc((size_t)(p.n * p.n), sizeof *expected);
    options.local_connectivity = local[c];
    options.set_op_mix_ratio = mix[c];
    float *found = make_graph(&options, &p, &graph);
    assert_int_equal(
        mt_umap_graph_ref(&options, p.n, p.k, p.indices, p.distances, expected), MT_OK);
    MT_TEST_CLOSE(found, expected, p.n * p.n, 0.0,
                  5e-5); /* the bisection's tolerance */
    for (int64_t i = 0; i < p.n; i++)
      for (int64_t j = 0; j < i; j++)
        assert_true(found[i * p.n + j] == found[j * p.n + i]);
    mt_graph_destroy(&graph);
    free(found);
    free(expected);
  }
  points_free(&p);
}

static void test_bad_neighbors(void **state)
{
  (void)state;
  points p = blobs(20, 2, 1, 1.0, 3);
  float positions[40];
  mt_umap_result result;
  mt_log_replicated(true);
  p.indices[5] = 20;
  assert_int_equal(lay_out(&usual, &p, positions, &result), MT_ERR_INPUT);
  p.indices[5] = 5 / 3; /* itself */
  assert_int_equal(lay_out(&usual, &p, positions, &result), MT_ERR_INPUT);
  p.indices[5] = 0;
  p.distances[50] = NAN;
  assert_int_equal(lay_out(&usual, &p, positions, &result), MT_ERR_INPUT);
  mt_log_replicated(false);
  points_free(&p);
}

static void test_prune(void **state)
{
  (void)state;
  points p = blobs(60, 4, 3, 1.0, 9);
  mt_graph graph = {0};
  float heaviest = 0.0f;
  float *before = make_graph(&usual, &p, &graph);
  for (int64_t at = 0; at < p.n * p.n; at++) heaviest = fmaxf(heaviest, before[at]);
  assert_int_equal(mt_graph_prune(&mt_test_world, 12, &graph), MT_OK);
  float *after = dense_graph(&graph);
  int64_t dropped = 0;
  for (int64_t at = 0; at < p.n * p.n; at++) {
    bool stays = before[at] >= heaviest / 12.0f;
    assert_true(after[at] == (stays ? before[at] : 0.0f));
    dropped += before[at] > 0.0f && !stays;
  }
  assert_true(dropped > 0);
  mt_graph_destroy(&graph);
  free(before);
  free(after);
  points_free(&p);
}

/* Chains that cross the ranks: i and i + step are joined. */
static void test_components(void **state)
{
  (void)state;
  for (int64_t step = 1; step < 6; step++) {
    int64_t n = 100, count = 0, labels[100];
    points p = points_new(n, 1);
    mt_graph graph = {0};
    find_neighbors(&p, 1);
    for (int64_t i = 0; i < n; i++) {
      p.indices[i] = i + step < n ? i + step : i - step;
      p.distances[i] = 1.0f;
    }
    free(make_graph(&usual, &p, &graph));
    assert_int_equal(mt_graph_components(&mt_test_world, &graph, labels, &count),
                     MT_OK);
    assert_int_equal(count, step);
    for (int64_t i = 0; i < n; i++) assert_int_equal(labels[i], i % step);
    mt_graph_destroy(&graph);
    points_free(&p);
  }
}

/* A few epochs in float against double loops: later ones grow every rounding. */
static void test_epochs(void **state)
{
  (void)state;
  for (int64_t dims = 1; dims <= 3; dims++) {
    mt_umap_options options = usual;
    mt_graph graph = {0};
    points p = blobs(50, 4, 3, 1.0, 6);
    float found[150];
    double expected[150];
    options.n_components = dims;
    options.n_epochs = 12;
    options.learning_rate = 0.05;
    options.negative_sample_rate = 3;
    for (int at = 0; at < 150; at++)
      expected[at] = found[at] = (float)(3.0 * noise(500 + at));
    free(make_graph(&options, &p, &graph));
    assert_int_equal(mt_graph_prune(&mt_test_world, options.n_epochs, &graph), MT_OK);
    float *weights = dense_graph(&graph);
    assert_int_equal(mt_umap_epochs_ref(&options, p.n, weights, expected), MT_OK);
    assert_int_equal(mt_test_backend->umap_epochs(mt_test_backend, &mt_test_world,
                                                  &options, &graph, found),
                     MT_OK);
    MT_TEST_CLOSE(found, expected, p.n * dims, 1e-3, 1e-3);
    mt_graph_destroy(&graph);
    points_free(&p);
    free(weights);
  }
}

/* Edges of points that have 0 to 12 in a turn, the last one hundreds: what the moves of a
 * point hang on, in any combination. */
static mt_turns make_turns(int64_t n)
{
  mt_turns edges = {.points = n};
  int64_t most = MT_UMAP_TURNS * n * 12 + MT_UMAP_TURNS * 300, at = 0;
  edges.first = calloc((size_t)(MT_UMAP_TURNS * n + 1), sizeof *edges.first);
  edges.others = calloc((size_t)(most + MT_UMAP_SPARE), sizeof *edges.others);
  edges.shares = calloc((size_t)(most + MT_UMAP_SPARE), sizeof *edges.shares);
  for (int64_t row = 0; row < MT_UMAP_TURNS * n; row++) {
    int64_t degree = row % n == n - 1 ? 300 : (row * 7919 + row / 13) % 13;
    for (int64_t e = 0; e < degree; e++, at++) {
      edges.others[at] = (at * 48271 + row) % n;
      edges.shares[at] = (float)(1 + at * 31 % 16) / 16.0f;
    }
    edges.first[row + 1] = at;
  }
  return edges;
}

/* All over a square; every 5th on another, others so near or far that powers are none of a
 * normal float. */
static float *make_places(int64_t n)
{
  float *places = calloc((size_t)n, 2 * sizeof *places);
  for (int64_t i = 0; i < n; i++)
    for (int64_t c = 0; c < 2; c++) {
      double place = 10.0 * noise(2 * i + c);
      if (i % 5 == 0) place = (double)(i % 3);
      if (i % 11 == 0) place = ldexp(place, -70);
      if (i % 97 == 0) place = ldexp(place, 80);
      places[2 * i + c] = (float)place;
    }
  return places;
}

static float *move_by(const char *kernel, mt_moment now)
{
  const mt_umap_kernel *with = mt_umap_kernel_find(kernel, now.n, now.dims);
  int64_t n = now.edges.points;
  mt_umap_room *room = NULL;
  if (with == NULL) return NULL; /* not on this processor */
  float *next = calloc((size_t)n, 2 * sizeof *next);
  assert_int_equal(mt_umap_room_new(&now.edges, now.dims, MT_UMAP_CHUNK, &room), MT_OK);
  for (int64_t i = 0; i < n; i += MT_UMAP_CHUNK)
    with->move(&now, room, i, n - i < MT_UMAP_CHUNK ? n - i : MT_UMAP_CHUNK, next);
  mt_umap_room_free(room);
  return next;
}

/* A point in each lane goes where it goes alone, to the bit. */
static void test_kernels(void **state)
{
  (void)state;
  const char *const names[] = {"avx512", "avx2"};
  int64_t n = MT_UMAP_CHUNK + 1003;
  mt_turns edges = make_turns(n);
  float *places = make_places(n);
  for (int at = 0; at < 12; at++) {
    mt_moment now = {.n = n,
                     .dims = 2,
                     .edges = edges,
                     .positions = places,
                     .epoch = at % 6,
                     .turn = at % MT_UMAP_TURNS,
                     .a = 1.577f,
                     .b = at == 11 ? 9.0f : 0.8951f,
                     .strength = 1.0f,
                     .alpha = 0.7f,
                     .negatives = at % 5,
                     .seed = 42};
    float *expected = move_by("portable", now);
    for (int k = 0; k < 2; k++) {
      float *found = move_by(names[k], now);
      if (found == NULL) continue;
      assert_memory_equal(found, expected, (size_t)n * 2 * sizeof *found);
      free(found);
    }
    free(expected);
  }
  assert_null(mt_umap_kernel_find("avx2", n, 3));
  free(edges.first);
  free(edges.others);
  free(edges.shares);
  free(places);
}

/* ---- eigenvectors -------------------------------------------------------------------- */

void dsyev_(const char *jobz, const char *uplo, const int *n, double *a, const int *lda,
            double *w, double *work, const int *lwork, int *info);

/* All eigenvectors of a (n, n): ascending, one a row of a. */
static void solve_dense(int n, double *a, double *values)
{
  int lwork = 40 * n, info = 0;
  double *work = calloc((size_t)lwork, sizeof *work);
  dsyev_("V", "U", &n, a, &n, values, work, &lwork, &info);
  assert_int_equal(info, 0);
  free(work);
}

static mt_status apply_dense(const mt_comm *comm, const mt_operator *op, int64_t m,
                             const mt_eigen_step *step, const double *x, double *y)
{
  (void)step;
  const double *a = op->context;
  int64_t first = op->firsts[comm->rank], own = op->firsts[comm->rank + 1] - first;
  memset(y, 0, (size_t)(own * m) * sizeof *y);
  for (int64_t i = 0; i < own; i++)
    for (int64_t j = 0; j < op->n; j++) {
      double value = a[(first + i) * op->n + j];
      if (value == 0.0) continue;
      for (int64_t c = 0; c < m; c++) y[i * m + c] += value * x[j * m + c];
    }
  return MT_OK;
}

/* Each vector v with its reference u, up to the sign: |v - u|, and the value. */
static void check_pairs(int64_t n, int64_t k, const double *values,
                        const double *vectors, const double *all_values,
                        const double *all, double tolerance)
{
  for (int64_t c = 0; c < k; c++) {
    const double *expected = all + (n - 1 - c) * n;
    double dot = 0.0, off = 0.0;
    for (int64_t i = 0; i < n; i++) dot += expected[i] * vectors[i * k + c];
    for (int64_t i = 0; i < n; i++)
      off += pow(vectors[i * k + c] - copysign(1.0, dot) * expected[i], 2);
    assert_true(fabs(values[c] - all_values[n - 1 - c]) < tolerance);
    if (sqrt(off) > tolerance) fail_msg("vector %d is off by %g", (int)c, sqrt(off));
  }
}

/* A banded matrix; 60 rows are solved whole, more are iterated on; then one whose largest
 * eigenvalue lies far beyond the others. */
static void test_eigen(void **state)
{
  (void)state;
  for (int at = 0; at < 4; at++) {
    enum { K = 4 };
    int64_t firsts[17], n = (int64_t[]){60, 100, 600, 400}[at];
    double *a = calloc((size_t)(n * n), sizeof *a), *all_values = calloc((size_t)n, 8);
    double *vectors = calloc((size_t)(n * K), sizeof *vectors), values[K], residual;
    for (int r = 0; r <= mt_test_world.size; r++)
      firsts[r] = mt_part_first(n, mt_test_world.size, r);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = i; j < n && j < i + 4; j++)
        a[i * n + j] = a[j * n + i] = 0.3 * noise(9000 + i * 4 + j - i);
    for (int64_t e = 0; at == 3 && e < n * n; e++) a[e] += 200.0 / (double)n;
    mt_operator op = {.n = n,
                      .firsts = firsts,
                      .low = -3.0,
                      .high = -3.0,
                      .context = a,
                      .apply = apply_dense};
    assert_int_equal(
        mt_eigen_largest(&mt_test_world, &op, K, 1e-9, 1, values, vectors, &residual),
        MT_OK);
    assert_true(residual <= 1e-9);
    solve_dense((int)n, a, all_values);
    check_pairs(n, K, values, vectors, all_values, a, 1e-5);
    free(a);
    free(all_values);
    free(vectors);
  }
}

/* A banded matrix's entry, of one of two. */
static double entry_of(int part, int64_t i, int64_t j)
{
  int64_t low = i < j ? i : j, off = i < j ? j - i : i - j;
  return off < 3 ? 0.2 * noise(40000 * (part + 1) + low * 3 + off) : 0.0;
}

/* Two matrices whose rows take turns, solved at once: the bits of each alone. */
static void test_eigen_parts(void **state)
{
  (void)state;
  enum { A = 520, B = 540, N = A + B, K = 2 };
  int64_t firsts[17], first[] = {0, A, N}, members[N];
  int32_t part_of[N];
  double *both = calloc(N * N, sizeof *both), *vectors = calloc(N * K, 8);
  double values[2 * K], residuals[2];
  for (int64_t at = 0; at < N; at++) {
    int64_t p = at >= A, i = at - p * A;
    members[at] = i < A ? 2 * i + p : A + i;
    part_of[members[at]] = (int32_t)p;
  }
  for (int64_t at = 0; at < N * N; at++) {
    int64_t i = at / N, j = at % N, p = i >= A;
    if (p == (j >= A))
      both[members[i] * N + members[j]] = entry_of((int)p, i - p * A, j - p * A);
  }
  for (int r = 0; r <= mt_test_world.size; r++)
    firsts[r] = mt_part_first(N, mt_test_world.size, r);
  mt_eigen_parts parts = {
      .count = 2, .first = first, .members = members, .part_of = part_of};
  mt_operator op = {.n = N,
                    .firsts = firsts,
                    .low = -3.0,
                    .high = -3.0,
                    .context = both,
                    .parts = &parts,
                    .apply = apply_dense};
  assert_int_equal(
      mt_eigen_largest(&mt_test_world, &op, K, 1e-8, 1, values, vectors, residuals),
      MT_OK);
  for (int p = 0; p < 2; p++) {
    int64_t n = p ? B : A;
    double *one = calloc((size_t)(n * n), 8), *alone = calloc((size_t)(n * K), 8);
    double value[K], residual;
    for (int64_t at = 0; at < n * n; at++) one[at] = entry_of(p, at / n, at % n);
    for (int r = 0; r <= mt_test_world.size; r++)
      firsts[r] = mt_part_first(n, mt_test_world.size, r);
    mt_operator single = {.n = n,
                          .firsts = firsts,
                          .low = -3.0,
                          .high = -3.0,
                          .context = one,
                          .apply = apply_dense};
    assert_int_equal(
        mt_eigen_largest(&mt_test_world, &single, K, 1e-8, 1, value, alone, &residual),
        MT_OK);
    assert_true(residual <= 1e-8 && residual == residuals[p]);
    assert_memory_equal(value, values + p * K, sizeof value);
    for (int64_t i = 0; i < n; i++)
      assert_memory_equal(alone + i * K, vectors + members[first[p] + i] * K,
                          sizeof value);
    free(one);
    free(alone);
  }
  free(both);
  free(vectors);
}

/* The spectral layout of one part is the dense Laplacian's eigenvectors 2, 3. */
static void test_spectral(void **state)
{
  (void)state;
  for (int64_t n = 120; n <= 700; n += 580) {
    points p = blobs(n, 3, 1, 0.0, 10);
    mt_graph graph = {0};
    mt_rows rows = mt_rows_memory(p.n, p.d, p.rows);
    float *weights = make_graph(&usual, &p, &graph);
    double *a = calloc((size_t)(n * n), sizeof *a), *degrees = calloc((size_t)n, 8);
    double *values = calloc((size_t)n, 8), *layout = calloc((size_t)n * 2, 8);
    double length[2] = {0.0, 0.0}, top[2];
    for (int64_t at = 0; at < n * n; at++) degrees[at / n] += weights[at];
    for (int64_t at = 0; at < n * n; at++)
      a[at] = weights[at] / sqrt(degrees[at / n] * degrees[at % n]);
    solve_dense((int)n, a, values);
    assert_true(values[n - 2] < 0.9999); /* connected */
    mt_spectral_graph source = mt_spectral_graph_on_host(&graph);
    assert_int_equal(mt_umap_spectral(&mt_test_world, &usual, MT_METRIC_EUCLIDEAN,
                                      &source, &rows, layout),
                     MT_OK);
    for (int64_t at = 0; at < n * 2; at++) length[at % 2] += layout[at] * layout[at];
    for (int64_t at = 0; at < n * 2; at++) layout[at] /= sqrt(length[at % 2]);
    top[0] = values[n - 2];
    top[1] = values[n - 3];
    memmove(values + 1, values,
            (size_t)(n - 1) * sizeof *values); /* the second is first */
    memmove(a + n, a, (size_t)((n - 1) * n) * sizeof *a);
    check_pairs(n, 2, top, layout, values, a, 1e-3);
    mt_graph_destroy(&graph);
    points_free(&p);
    free(weights);
    free(a);
    free(degrees);
    free(values);
    free(layout);
  }
}

/* Scores on the first components: dense eigenvectors of the centred products. */
static void test_pca(void **state)
{
  (void)state;
  for (int64_t n = 80; n <= 600; n += 520) {
    points p = blobs(n, 5, 2, 2.0, 1);
    mt_rows rows = mt_rows_memory(p.n, p.d, p.rows);
    double *layout = calloc((size_t)n * 2, 8), mean[5] = {0}, cov[25] = {0}, values[5];
    assert_int_equal(mt_umap_pca(&mt_test_world, &usual, &rows, layout), MT_OK);
    for (int64_t at = 0; at < n * 5; at++) mean[at % 5] += p.rows[at] / (double)n;
    for (int64_t i = 0; i < n; i++)
      for (int at = 0; at < 25; at++)
        cov[at] += (p.rows[i * 5 + at / 5] - mean[at / 5]) *
                   (p.rows[i * 5 + at % 5] - mean[at % 5]);
    solve_dense(5, cov, values);
    for (int c = 0; c < 2; c++) {
      double dot = 0.0, *found = calloc((size_t)n, 8), *expected = calloc((size_t)n, 8);
      for (int64_t i = 0; i < n; i++) {
        for (int t = 0; t < 5; t++)
          expected[i] += (p.rows[i * 5 + t] - mean[t]) * cov[(4 - c) * 5 + t];
        dot += expected[i] * layout[i * 2 + c];
      }
      for (int64_t i = 0; i < n; i++) found[i] = copysign(1.0, dot) * layout[i * 2 + c];
      MT_TEST_CLOSE(found, expected, n, 0.0, 1e-3);
      free(found);
      free(expected);
    }
    free(layout);
    points_free(&p);
  }
}

/* ---- the whole layout: bits and hostile data ------------------------------------------ */

static void test_same_bits(void **state)
{
  (void)state;
  const mt_umap_init inits[] = {MT_INIT_SPECTRAL, MT_INIT_PCA, MT_INIT_RANDOM};
  points p = blobs(600, 5, 4, 0.6, 10);
  for (int at = 0; at < 3; at++)
    for (int64_t dims = 2; dims <= 3; dims++) {
      mt_umap_options options = usual;
      options.init = inits[at];
      options.n_components = dims;
      options.n_epochs = 12;
      check_layout(&options, &p, NULL);
    }
  points_free(&p);
}

/* The backend's layout in one piece, and from step to step through the host. */
static void test_steps(void **state)
{
  (void)state;
  points p = blobs(700, 5, 2, 0.6, 10);
  const mt_comm *world = &mt_test_world;
  mt_rows rows = mt_rows_memory(p.n, p.d, p.rows);
  int64_t first = mt_part_first(p.n, world->size, world->rank) * p.k;
  mt_umap_options options = usual;
  mt_umap_result whole, steps = {0};
  float one[1400], other[1400];
  options.n_epochs = 6;
  assert_int_equal(lay_out(&options, &p, one, &whole), MT_OK);
  assert_int_equal(mt_umap_by_steps(mt_test_backend, world, &options,
                                    MT_METRIC_EUCLIDEAN, p.k, p.indices + first,
                                    p.distances + first, &rows, other, &steps),
                   MT_OK);
  assert_memory_equal(one, other, sizeof one);
  assert_int_equal(whole.edges, steps.edges);
  assert_int_equal(whole.components, steps.components);
  points_free(&p);
}

static void test_few_points(void **state)
{
  (void)state;
  for (int64_t n = 0; n < 8; n++)
    for (int init = 0; init < 3; init++)
      for (int64_t dims = 1; dims <= 3; dims++) {
        mt_umap_options options = usual;
        points p = blobs(n, 3, 1, 0.0, 14);
        options.init =
            (mt_umap_init[]){MT_INIT_SPECTRAL, MT_INIT_PCA, MT_INIT_RANDOM}[init];
        options.n_components = dims;
        options.n_epochs = 5;
        mt_umap_result result = check_layout(&options, &p, NULL);
        assert_int_equal(result.components, n == 0 ? 0 : 1);
        points_free(&p);
      }
}

static void test_identical_rows(void **state)
{
  (void)state;
  for (int init = 0; init < 2; init++) {
    mt_umap_options options = usual;
    points p = points_new(50, 3);
    options.init = init ? MT_INIT_PCA : MT_INIT_SPECTRAL;
    options.n_epochs = 15;
    for (int64_t at = 0; at < p.n * p.d; at++) p.rows[at] = 0.25f;
    find_neighbors(&p, 14);
    check_layout(&options, &p, NULL);
    points_free(&p);
  }
}

/* Groups of 20 equal rows, more than there are neighbours: parts without distances. */
static void test_duplicates(void **state)
{
  (void)state;
  mt_umap_options options = usual;
  points p = blobs(200, 3, 1, 0.0, 1);
  options.n_epochs = 15;
  for (int64_t at = 0; at < p.n * p.d; at++)
    p.rows[at] = p.rows[at / (20 * p.d) * 20 * p.d + at % p.d];
  free(p.distances);
  free(p.indices);
  find_neighbors(&p, 14);
  assert_int_equal(check_layout(&options, &p, NULL).components, 10);
  points_free(&p);
}

/* Pairs and chains, too small for eigenvectors: one neighbour each. */
static void test_pairs(void **state)
{
  (void)state;
  mt_umap_options options = usual;
  points p = blobs(100, 3, 1, 0.0, 1);
  options.n_epochs = 15;
  assert_true(check_layout(&options, &p, NULL).components > 10);
  points_free(&p);
}

/* Few parts are put on the axes, many by their centroids. */
static void test_disconnected(void **state)
{
  (void)state;
  for (int64_t parts = 2; parts <= 12; parts += 5) {
    mt_umap_options options = usual;
    points p = blobs(parts * 30, 4, parts, 1000.0, 8);
    options.n_epochs = 40;
    float *positions;
    assert_int_equal(check_layout(&options, &p, &positions).components, parts);
    for (int64_t i = parts; i < p.n; i++) { /* no part is torn */
      double own = hypot(positions[i * 2] - positions[i % parts * 2],
                         positions[i * 2 + 1] - positions[i % parts * 2 + 1]);
      assert_true(own < 20.0);
    }
    free(positions);
    points_free(&p);
  }
}

/* One part is iterated on, others are solved whole, and one is too small for either. */
static void test_unequal_parts(void **state)
{
  (void)state;
  mt_umap_options options = usual;
  points p = points_new(640, 4);
  options.n_epochs = 8;
  for (int64_t at = 0; at < p.n * p.d; at++) {
    int64_t i = at / p.d, part = i % 20 != 7 ? 0 : i < 300 ? 1 : i < 634 ? 2 : 3;
    p.rows[at] = (float)(noise(at) + 1000.0 * (double)part * (double)(at % p.d));
  }
  find_neighbors(&p, 3);
  assert_true(check_layout(&options, &p, NULL).components >= 3);
  points_free(&p);
}

/* Every point's nearest neighbour is the first. */
static void test_hub(void **state)
{
  (void)state;
  mt_umap_options options = usual;
  points p = points_new(300, 299);
  for (int64_t i = 1; i < p.n; i++)
    p.rows[i * p.d + i - 1] = 1.0f + 1e-3f * (float)(i % 7);
  find_neighbors(&p, 14);
  options.n_epochs = 60;
  float *positions;
  check_layout(&options, &p, &positions);
  assert_true(furthest(p.n, positions) < 30.0);
  free(positions);
  points_free(&p);
}

/* ---- the stage ------------------------------------------------------------------------ */

static const mt_dataset matrix_set = {
    "/matrix", MT_FLOAT32, "rows", "1", {"topic", "term"}};
static const mt_dataset indices_set = {
    "/indices", MT_INT64, "neighbours", "1", {"topic", "neighbour"}};
static const mt_dataset distances_set = {
    "/distances", MT_FLOAT32, "distances", "1", {"topic", "neighbour"}};

static void write_inputs(const char *folder, const points *p)
{
  mt_file *file = NULL;
  const mt_comm *world = &mt_test_world;
  mt_fingerprint made_by = {"0123456789abcdef0123456789abcdef"};
  int64_t first = mt_part_first(p->n, world->size, world->rank);
  int64_t own = mt_part_count(p->n, world->size, world->rank);
  char path[100];
  snprintf(path, sizeof path, "%s/topics.h5", folder);
  assert_int_equal(mt_store_create(world, path, &made_by, &file), MT_OK);
  assert_int_equal(
      mt_store_write(world, file, &matrix_set, own, p->d, p->rows + first * p->d),
      MT_OK);
  assert_int_equal(mt_store_commit(world, &file), MT_OK);
  snprintf(path, sizeof path, "%s/knn.h5", folder);
  assert_int_equal(mt_store_create(world, path, &made_by, &file), MT_OK);
  assert_int_equal(
      mt_store_write(world, file, &indices_set, own, p->k, p->indices + first * p->k),
      MT_OK);
  assert_int_equal(mt_store_write(world, file, &distances_set, own, p->k,
                                  p->distances + first * p->k),
                   MT_OK);
  assert_int_equal(mt_store_commit(world, &file), MT_OK);
}

static void test_stage(void **state)
{
  (void)state;
  char folder[] = "/tmp/mt-umap-XXXXXX", path[100];
  mt_parameters parameters = {0};
  mt_fingerprint made_by, other;
  mt_stage_result result = {0};
  mt_file *file = NULL;
  points p = blobs(80, 6, 3, 1.0, 14);
  float *expected = calloc((size_t)p.n * 2, sizeof *expected),
        *found = calloc((size_t)p.n * 2, sizeof *found);
  mt_umap_result outcome;
  int64_t epochs = 0;
  double a = 0.0;

  if (mt_test_world.rank == 0) assert_non_null(mkdtemp(folder));
  assert_int_equal(mt_bcast(&mt_test_world, 0, sizeof folder, folder), MT_OK);
  assert_int_equal(mt_parameters_default(&parameters), MT_OK);
  assert_int_equal(mt_parameters_set(&parameters, "knn.metric=euclidean"), MT_OK);
  assert_int_equal(mt_parameters_set(&parameters, "umap.n_epochs=20"), MT_OK);
  mt_run run = {.parameters = &parameters, .out = folder, .backend = mt_test_backend};
  write_inputs(folder, &p);
  assert_int_equal(mt_stage_umap.fingerprint(&run, &made_by), MT_OK);
  assert_int_equal(mt_stage_umap.work(&mt_test_world, &run, &made_by, &result), MT_OK);
  assert_int_equal(result.rows, p.n);
  assert_int_equal(lay_out(&parameters.umap, &p, expected, &outcome), MT_OK);
  snprintf(path, sizeof path, "%s/umap.h5", folder);
  assert_int_equal(mt_store_open(path, &file), MT_OK);
  assert_int_equal(mt_store_read(file, "/embedding", MT_FLOAT32, 0, p.n, found), MT_OK);
  assert_int_equal(mt_store_get_i64(file, "n_epochs", &epochs), MT_OK);
  assert_int_equal(mt_store_get_f64(file, "a", &a), MT_OK);
  mt_store_close(file);
  assert_memory_equal(found, expected, (size_t)p.n * 2 * sizeof *found);
  assert_int_equal(epochs, 20);
  assert_true(a == outcome.a);
  other = mt_store_fingerprint(path);
  assert_true(mt_fingerprint_equal(&made_by, &other));
  assert_int_equal(mt_parameters_set(&parameters, "umap.min_dist=0.2"), MT_OK);
  assert_int_equal(mt_stage_umap.fingerprint(&run, &other), MT_OK);
  assert_false(mt_fingerprint_equal(&made_by, &other));
  assert_int_equal(mt_barrier(&mt_test_world), MT_OK);
  if (mt_test_world.rank == 0) {
    unlink(path);
    for (int at = 0; at < 2; at++) {
      snprintf(path, sizeof path, "%s/%s", folder, at ? "knn.h5" : "topics.h5");
      unlink(path);
    }
    rmdir(folder);
  }
  mt_parameters_destroy(&parameters);
  points_free(&p);
  free(expected);
  free(found);
}

/* The last: the request stays. One rank is asked, all leave. */
static void test_stop(void **state)
{
  (void)state;
  points p = blobs(60, 3, 1, 0.0, 10);
  float positions[120];
  mt_umap_result result;
  mt_stop_install();
  if (mt_test_world.rank == mt_test_world.size - 1) raise(SIGTERM);
  assert_int_equal(lay_out(&usual, &p, positions, &result), MT_STOPPED);
  points_free(&p);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_elementary),    cmocka_unit_test(test_curve),
    cmocka_unit_test(test_graph_fixture), cmocka_unit_test(test_quality),
    cmocka_unit_test(test_graph),         cmocka_unit_test(test_bad_neighbors),
    cmocka_unit_test(test_prune),         cmocka_unit_test(test_components),
    cmocka_unit_test(test_epochs),        cmocka_unit_test(test_kernels),
    cmocka_unit_test(test_eigen),         cmocka_unit_test(test_eigen_parts),
    cmocka_unit_test(test_spectral),      cmocka_unit_test(test_pca),
    cmocka_unit_test(test_same_bits),     cmocka_unit_test(test_steps),
    cmocka_unit_test(test_few_points),    cmocka_unit_test(test_identical_rows),
    cmocka_unit_test(test_duplicates),    cmocka_unit_test(test_pairs),
    cmocka_unit_test(test_disconnected),  cmocka_unit_test(test_unequal_parts),
    cmocka_unit_test(test_hub),           cmocka_unit_test(test_stage),
    cmocka_unit_test(test_stop),
};

MT_TEST_BACKEND_MAIN(tests)
