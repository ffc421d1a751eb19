/* RANKS 1 2 3 4 7   EMULATED 1 2 3:2
 * Nearest neighbours: a backend against the brute force in double. */
#include "backend.h"

#include "../cuda/knn_sizes.h"
#include "backend/cpu_knn.h"
#include "backend/cpu_product.h"
#include "base/hash.h"
#include "base/memory.h"
#include "deck/deck.h"
#include "knn/knn.h"
#include "stage/stage.h"
#include "store/folder.h"
#include "store/store.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct data {
  const char *name;
  int64_t n, d;
  float *rows; /* (n, d) */
} data;

static float uniform(int64_t i, uint32_t step)
{
  return (float)mt_random_unit(7, MT_STREAM_TEST, (uint64_t)i, step);
}

static float normal(int64_t i, uint32_t step)
{
  return (float)mt_random_normal(7, MT_STREAM_TEST, (uint64_t)i, step);
}

static void new_data(data *out, const char *name, int64_t n, int64_t d)
{
  *out = (data){.name = name, .n = n, .d = d};
  assert_int_equal(mt_memory_new(n * d, sizeof(float), name, (void **)&out->rows),
                   MT_OK);
}

/* Rows like a fit's components: few large values, a small floor, sum 1. Rows whose number
 * is equal modulo `themes` are alike: log-normal noise of the given width. */
static void fill_topics(data *out, int64_t themes, float width)
{
  for (int64_t i = 0; i < out->n; i++) {
    float *row = out->rows + i * out->d, sum = 0.0f;
    for (int64_t t = 0; t < out->d; t++) {
      float theme = uniform(i % themes * out->d + t, 1);
      row[t] = powf(theme, 12.0f) * expf(width * normal(i * out->d + t, 2)) + 1e-6f;
      sum += row[t];
    }
    for (int64_t t = 0; t < out->d; t++) row[t] /= sum;
  }
}

static void fill_normal(data *out, float centre, float spread)
{
  for (int64_t i = 0; i < out->n * out->d; i++)
    out->rows[i] = fabsf(centre + spread * normal(i, 3));
}

static void copy_row(data *out, int64_t from, int64_t to)
{
  memcpy(out->rows + to * out->d, out->rows + from * out->d,
         (size_t)out->d * sizeof(float));
}

/* The blocks of both backends. */
typedef struct sizes {
  mt_cpu_knn_sizes cpu;
  mt_gpu_knn_sizes gpu;
} sizes;

static const sizes usual = {{0}, {0}};

/* The CUDA backend's search with sizes, from the shared object that the table is from. */
static mt_gpu_knn_search *gpu_search(void)
{
  Dl_info from;
  union { /* ISO C has no other way from one to the other */
    mt_status (*of_table)(mt_backend *, const mt_comm *, mt_metric, int64_t,
                          const mt_rows *, int64_t *, float *);
    mt_gpu_knn_search *sized;
    void *address;
  } found = {.of_table = mt_test_backend->knn};
  assert_true(dladdr(found.address, &from) != 0);
  void *library = dlopen(from.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  assert_non_null(library);
  found.address = dlsym(library, "mt_gpu_knn_sized");
  assert_non_null(found.address);
  dlclose(library); /* it stays: the backend holds it */
  return found.sized;
}

/* The result of this rank's rows for given sizes and threads. */
typedef struct found {
  int64_t local, k, *indices;
  float *distances;
  mt_cpu_knn_cost cost;
  mt_gpu_knn_cost gpu_cost;
} found;

/* Of this rank's rows, in memory that is there. */
static mt_status search(mt_metric metric, const mt_rows *rows, const sizes *some,
                        found *f)
{
  if (mt_test_on_gpus())
    return gpu_search()(mt_test_backend, &mt_test_world, metric, f->k, rows, &some->gpu,
                        f->indices, f->distances, &f->gpu_cost);
  return mt_cpu_knn_sized(&mt_test_world, metric, f->k, rows, &some->cpu, f->indices,
                          f->distances, &f->cost);
}

static found find(const data *in, mt_metric metric, int64_t k, const sizes *some,
                  int threads)
{
  found f = {.k = k};
  mt_rows rows = mt_rows_memory(in->n, in->d, in->rows);
  f.local = mt_part_count(in->n, mt_test_world.size, mt_test_world.rank);
  assert_int_equal(mt_memory_new(f.local * k, 8, "indices", (void **)&f.indices),
                   MT_OK);
  assert_int_equal(mt_memory_new(f.local * k, 4, "distances", (void **)&f.distances),
                   MT_OK);
  omp_set_num_threads(threads);
  assert_int_equal(search(metric, &rows, some, &f), MT_OK);
  return f;
}

static void forget(found *f)
{
  free(f->indices);
  free(f->distances);
}

/* wide: neighbours a row of the reference has */
static void compare(const data *in, mt_metric metric, const found *f, int64_t wide,
                    const int64_t *indices, const double *distances)
{
  int64_t first = mt_part_first(in->n, mt_test_world.size, mt_test_world.rank);
  for (int64_t m = 0; m < f->local * f->k; m++) {
    int64_t row = first + m / f->k, at = row * wide + m % f->k;
    float want = mt_metric_store(distances[at]);
    if (f->indices[m] != indices[at] || f->distances[m] != want)
      fail_msg(
          "%s, %s, k %lld, row %lld, neighbour %lld: %lld at %.9g, want %lld at %.9g",
          in->name, mt_metric_name(metric), (long long)f->k, (long long)row,
          (long long)(m % f->k), (long long)f->indices[m], f->distances[m],
          (long long)indices[at], distances[at]);
  }
}

/* The reference's result, computed on rank 0. */
static void look_up(const data *in, mt_metric metric, int64_t k, int64_t *indices,
                    double *distances)
{
  mt_status status = MT_OK;
  if (mt_test_world.rank == 0)
    status = mt_knn_ref(metric, in->n, in->d, in->rows, k, indices, distances);
  assert_int_equal(mt_agree(&mt_test_world, status), MT_OK);
  mt_bcast(&mt_test_world, 0, (size_t)(in->n * k) * 8, indices);
  mt_bcast(&mt_test_world, 0, (size_t)(in->n * k) * 8, distances);
}

/* All metrics, some k, sizes and threads: the same as the reference, to the bit. Slow GPUs: for
 * each metric one k, another one the next time; MT_TEST_SMALL: one metric. */
static void check_all(const data *in)
{
  static int round;
  static const sizes some[] = {
      {{0, 0, 3, 0}, {0}},
      {{17, 9, 2, 5},
       {.tile = 12, .keep = 1, .room = 1, .again = 60, .panel = 64, .group = 8}},
      {{64, 37, 64, 0},
       {.tile = 37, .keep = 19, .room = 64, .again = 20, .stream = 23, .query = 40}},
      {{31, 64, 1, 7},
       {.tile = 64, .again = 52, .panel = 128, .stream = 40, .query = 9, .piece = 31}}};
  static const int64_t some_k[] = {1, 14, 2, 50};
  int64_t *indices = NULL, wide = in->n > 50 ? 50 : in->n - 1;
  int threads = mt_test_world.size <= 2 ? 2 : 1; /* waiting threads spin */
  double *distances = NULL;
  assert_int_equal(mt_memory_new(in->n * 50, 8, "indices", (void **)&indices), MT_OK);
  assert_int_equal(mt_memory_new(in->n * 50, 8, "distances", (void **)&distances),
                   MT_OK);
  for (int metric = 0; metric < 3; metric++) {
    if (getenv("MT_TEST_SMALL") != NULL && metric != round % 3) continue;
    look_up(in, metric, wide, indices, distances);
    for (int i = 0; i < 4; i++) {
      int64_t k = some_k[i] < wide ? some_k[i] : wide;
      if (mt_test_small() && i != (round + metric) % 4) continue;
      found f = find(in, metric, k, &some[i], i == 0 ? threads : 1);
      compare(in, metric, &f, wide, indices, distances);
      forget(&f);
    }
  }
  round++;
  free(indices);
  free(distances);
}

static void test_small(void **state)
{
  (void)state;
  static const int64_t some_n[] = {2, 3, 5, 8, 17}, some_d[] = {0, 1, 7, 8, 9, 530};
  for (int a = 0; a < 5; a++)
    for (int b = a % 2; b < 6; b += 2) {
      data in;
      new_data(&in, "small", some_n[a], some_d[b]);
      fill_normal(&in, 0.0f, 1.0f);
      check_all(&in);
      free(in.rows);
    }
}

/* More terms than a vocabulary usually has: sums of 16-bit products stay within 32 bits. */
static void test_wide(void **state)
{
  (void)state;
  if (mt_test_on_gpus()) skip(); /* the emulated ones are slow */
  data in;
  new_data(&in, "wide", 19, 100003);
  fill_topics(&in, 3, 0.5f);
  check_all(&in);
  fill_normal(&in, 1.0f, 0.01f); /* all values alike: the largest sums */
  check_all(&in);
  free(in.rows);
}

static void test_topics(void **state)
{
  (void)state;
  data in;
  new_data(&in, "topics", 151, 1203);
  fill_topics(&in, 10, 0.5f);
  check_all(&in);
  free(in.rows);
}

/* Cosine distances within a theme are about width^2 and less. */
static void test_near_identical(void **state)
{
  (void)state;
  data in;
  new_data(&in, "near-identical", 120, 601);
  fill_topics(&in, 4, 3e-4f);
  check_all(&in);
  fill_topics(&in, 1, 1e-6f);
  check_all(&in);
  free(in.rows);
}

static void test_far_from_origin(void **state)
{
  (void)state;
  data in;
  new_data(&in, "far from the origin", 120, 301);
  fill_normal(&in, 1e4f, 1.0f);
  check_all(&in);
  fill_normal(&in, 1e30f, 1e26f);
  check_all(&in);
  fill_normal(&in, 0.0f, 1e-38f);
  check_all(&in);
  in.rows[5] = 3e38f; /* squares beyond float, all others alike beside it */
  check_all(&in);
  free(in.rows);
}

static void test_duplicates(void **state)
{
  (void)state;
  data in;
  new_data(&in, "duplicates", 130, 67);
  for (int64_t i = 0; i < in.n * in.d; i++) in.rows[i] = 0.25f;
  check_all(&in); /* all rows the same */
  fill_topics(&in, 10, 0.5f);
  for (int64_t i = 0; i < in.n; i++)
    if (i % 2 == 1) copy_row(&in, 7, i);
  check_all(&in);
  for (int64_t i = 0; i < in.n; i += 3) /* the same direction, other lengths */
    for (int64_t t = 0; t < in.d; t++)
      in.rows[i * in.d + t] = in.rows[7 * in.d + t] * (float)(i + 1);
  check_all(&in);
  free(in.rows);
}

static void test_zero_rows(void **state)
{
  (void)state;
  data in;
  new_data(&in, "zero rows", 60, 40);
  check_all(&in); /* nothing but zeros */
  fill_topics(&in, 5, 0.5f);
  for (int64_t i = 0; i < in.n; i += 3)
    memset(in.rows + i * in.d, 0, (size_t)in.d * sizeof(float));
  check_all(&in);
  found f = find(&in, MT_METRIC_COSINE, 59, &usual, 1);
  int64_t first = mt_part_first(in.n, mt_test_world.size, mt_test_world.rank);
  for (int64_t i = 0; i < f.local; i++)
    for (int64_t m = 0; m < 59; m++) {
      bool zero = (first + i) % 3 == 0, other = f.indices[i * 59 + m] % 3 == 0;
      if (zero && other) assert_true(f.distances[i * 59 + m] == 0.0f);
      if (zero != other) assert_true(f.distances[i * 59 + m] == 1.0f);
    }
  forget(&f);
  free(in.rows);
}

/* The distances of the reference themselves, in long double and the plain order. */
static void test_metrics(void **state)
{
  (void)state;
  data in;
  new_data(&in, "metrics", 2, 1001);
  fill_topics(&in, 2, 0.5f);
  long double xx = 0, yy = 0, cosine = 0, hellinger = 0, euclidean = 0;
  const float *x = in.rows, *y = in.rows + in.d;
  for (int64_t t = 0; t < in.d; t++) {
    xx += (long double)x[t] * x[t];
    yy += (long double)y[t] * y[t];
    cosine += (long double)x[t] * y[t];
    hellinger += powl(sqrtl(x[t]) - sqrtl(y[t]), 2);
    euclidean += powl((long double)x[t] - y[t], 2);
  }
  double exact[3] = {(double)(1 - cosine / sqrtl(xx * yy)),
                     (double)sqrtl(hellinger / 2), (double)sqrtl(euclidean)};
  for (int metric = 0; metric < 3; metric++) {
    int64_t index[2];
    double distance[2];
    assert_int_equal(mt_knn_ref(metric, 2, in.d, in.rows, 1, index, distance), MT_OK);
    MT_TEST_CLOSE(distance, exact + metric, 1, 1e-12, 0.0);
    assert_true(distance[0] == distance[1]);
  }
  free(in.rows);
}

/* What scikit-learn finds (tests/data/knn.txt, made by tools/reference/knn.py). */
static void test_scikit_learn(void **state)
{
  (void)state;
  FILE *file = fopen("tests/data/knn.txt", "r");
  int n, d, k, index;
  data in;
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%d %d %d", &n, &d, &k), 3);
  new_data(&in, "scikit-learn", n, d);
  for (int i = 0; i < n * d; i++)
    assert_int_equal(fscanf(file, "%" SCNx32, (uint32_t *)in.rows + i), 1);
  int64_t first = mt_part_first(n, mt_test_world.size, mt_test_world.rank);
  for (int metric = 0; metric < 3; metric++) {
    char name[32];
    found f = find(&in, metric, k, &usual, 1);
    assert_int_equal(fscanf(file, "%31s", name), 1);
    assert_string_equal(name, mt_metric_name(metric));
    for (int64_t m = -first * k; m < (n - first) * k; m++) {
      assert_int_equal(fscanf(file, "%d", &index), 1);
      if (m >= 0 && m < f.local * k) assert_int_equal(f.indices[m], index);
    }
    for (int64_t m = -first * k; m < (n - first) * k; m++) {
      double distance;
      assert_int_equal(fscanf(file, "%lf", &distance), 1);
      if (m >= 0 && m < f.local * k)
        MT_TEST_CLOSE(f.distances + m, &distance, 1, 1e-6, 1e-9);
    }
    forget(&f);
  }
  fclose(file);
  free(in.rows);
}

/* ---- products of integers ----------------------------------------------------------------- */

/* Any value that two rows of d columns may have when their norms are below 2^15.5. */
static int16_t integer(int64_t i, int64_t d)
{
  double most = fmin(INT16_MAX, floor(46340.0 / sqrt((double)d)));
  float place = uniform(i, 11);
  return (int16_t)(place < 0.2f   ? -most
                   : place > 0.8f ? most
                                  : most * normal(i, 12) / 8.0);
}

static void fill_pairs(int64_t rows, int64_t d, int64_t number, mt_product_pair *out)
{
  int64_t pairs = mt_product_pairs(d);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t t = 0; t < d; t++) {
      uint32_t value = (uint16_t)integer(number + i * d + t, d);
      out[mt_product_place(pairs, i) + t / 2 * MT_PRODUCT_GROUP] |= value
                                                                    << 16 * (t % 2);
    }
}

static void check_products(const mt_product_kernel *kernel, int64_t rows,
                           int64_t columns, int64_t d)
{
  int64_t pairs = mt_product_pairs(d), height = mt_product_groups(rows);
  int64_t across = mt_product_groups(columns), width = (across + 1) * MT_PRODUCT_GROUP;
  mt_product_pair *a = NULL, *b = NULL;
  int32_t *sums = NULL;
  size_t group = MT_PRODUCT_GROUP * sizeof *a;
  assert_int_equal(mt_memory_new(height * pairs, group, "a", (void **)&a), MT_OK);
  assert_int_equal(mt_memory_new(across * pairs, group, "b", (void **)&b), MT_OK);
  assert_int_equal(mt_memory_new(height * width, group, "sums", (void **)&sums), MT_OK);
  fill_pairs(rows, d, 0, a);
  fill_pairs(columns, d, rows * d, b);
  mt_product_multiply(kernel, pairs, height, a, across, b, width, sums);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      int64_t sum = 0;
      for (int64_t t = 0; t < d; t++)
        sum += (int64_t)integer(i * d + t, d) * integer((rows + j) * d + t, d);
      assert_int_equal(sums[i * width + j], sum);
    }
  free(a);
  free(b);
  free(sums);
}

/* Rows that lie one after the other, with each other and with a group. */
static void check_plain(const mt_product_kernel *kernel, int64_t d)
{
  enum { GROUP = MT_PRODUCT_GROUP, ROWS = MT_PRODUCT_ROWS };
  int64_t pairs = GROUP * mt_product_groups(mt_product_pairs(d));
  mt_product_pair *a = NULL, *b = NULL;
  int32_t sums[ROWS * GROUP];
  assert_int_equal(mt_memory_new(GROUP * pairs, sizeof *a, "a", (void **)&a), MT_OK);
  assert_int_equal(mt_memory_new(GROUP * pairs, sizeof *b, "b", (void **)&b), MT_OK);
  for (int64_t i = 0; i < GROUP; i++)
    for (int64_t t = 0; t < d; t++) {
      uint32_t value = (uint32_t)(uint16_t)integer(i * d + t, d) << 16 * (t % 2);
      a[i * pairs + t / 2] |= value;
      b[t / 2 * GROUP + i] |= value;
    }
  kernel->of_group(pairs, a, b, sums);
  for (int64_t i = 0; i < ROWS; i++)
    for (int64_t j = 0; j < GROUP; j++) {
      int64_t sum = 0;
      for (int64_t t = 0; t < d; t++)
        sum += (int64_t)integer(i * d + t, d) * integer(j * d + t, d);
      assert_int_equal(sums[i * GROUP + j], sum);
      assert_int_equal(kernel->of_two(pairs, a + i * pairs, a + j * pairs), sum);
    }
  free(a);
  free(b);
}

/* Every kernel that this processor has: exact sums, of any number of rows and columns, also
 * of the largest values. */
static void test_products(void **state)
{
  (void)state;
  static const char *const names[] = {"vnni", "avx2", "portable"};
  for (int i = 0; i < 3; i++) {
    const mt_product_kernel *kernel = mt_product_kernel_find(names[i]);
    if (kernel == NULL) continue;
    assert_string_equal(kernel->name, names[i]);
    check_products(kernel, 1, 1, 1);
    check_products(kernel, 16, 64, 2);
    check_products(kernel, 37, 101, 33);
    check_products(kernel, 17, 130, 1027);
    check_plain(kernel, 1);
    check_plain(kernel, 333);
  }
  assert_non_null(mt_product_kernel_find("portable"));
  assert_null(mt_product_kernel_find("none"));
}

/* Few distances are computed in double, also where many rows are alike. */
static void test_cost(void **state)
{
  (void)state;
  enum { K = 5 };
  data in;
  new_data(&in, "cost", mt_test_small() ? 170 : 400, 50);
  for (int kind = 0; kind < 4; kind++) {
    fill_topics(&in, kind == 3 ? 2 : 1, kind == 0 ? 0.5f : 1e-2f);
    for (int64_t i = 0; kind == 2 && i < in.n; i++) copy_row(&in, 0, i);
    for (int metric = 0; metric < 3; metric++) {
      found f = find(&in, metric, K, &usual, 1);
      int64_t exact = f.cost.exact; /* some of other ranks' rows */
      mt_sum_i64(&mt_test_world, 1, &exact);
      if (!mt_test_on_gpus())
        assert_in_range(exact, in.n * K, 2 * in.n * K * mt_test_world.size);
      else if (kind < 2) /* of equal rows all candidates are computed */
        assert_in_range(f.gpu_cost.exact, f.local * K, 4 * f.local * K);
      forget(&f);
    }
  }
  free(in.rows);
}

/* What the GPUs' search falls back on, when products of halves do not tell rows apart and
 * lists are short: all of it is needed here, and each time the neighbours are the nearest. */
static void test_again(void **state)
{
  (void)state;
  enum { K = 5 };
  static const sizes some[] = {
      {{0}, {.keep = 8, .room = 64, .again = 200, .group = 20}},
      {{0}, {.keep = 8, .room = 64, .again = 40, .stream = 50}},
      {{0}, {.keep = 8, .room = 64, .again = 9, .piece = 60, .stream = 50}}};
  if (!mt_test_on_gpus()) skip();
  data in;
  new_data(&in, "again", 150, 90);
  int64_t indices[150 * K], reached[4] = {0};
  double distances[150 * K];
  for (int i = 0; i < 3; i++) {
    fill_topics(&in, i < 2 ? 3 : 1, i < 2 ? 1e-3f : 1e-12f);
    for (int64_t t = 0; t < in.d; t++) in.rows[7 * in.d + t] *= 1.5f;
    look_up(&in, MT_METRIC_EUCLIDEAN, K, indices, distances);
    found f = find(&in, MT_METRIC_EUCLIDEAN, K, &some[i], 1);
    compare(&in, MT_METRIC_EUCLIDEAN, &f, K, indices, distances);
    reached[0] += f.gpu_cost.again;
    reached[1] += f.gpu_cost.with_double;
    reached[2] += f.gpu_cost.brute;
    reached[3] += f.gpu_cost.again - f.gpu_cost.ungrouped;
    forget(&f);
  }
  assert_int_equal(mt_sum_i64(&mt_test_world, 4, reached), MT_OK);
  for (int i = 0; i < 4; i++) assert_true(reached[i] > 0);
  free(in.rows);
}

/* The same bits for every number of ranks: compared with a constant of one rank's run on
 * values that are exact in any arithmetic. */
static void test_same_bits(void **state)
{
  (void)state;
  data in;
  new_data(&in, "same bits", 97, 33);
  for (int64_t i = 0; i < in.n * in.d; i++) in.rows[i] = floorf(8.0f * uniform(i, 5));
  found f = find(&in, MT_METRIC_EUCLIDEAN, 9, &usual, 1);
  size_t bytes[16];
  int64_t all[97 * 9],
      first = mt_part_first(in.n, mt_test_world.size, mt_test_world.rank);
  for (int r = 0; r < mt_test_world.size; r++)
    bytes[r] = (size_t)mt_part_count(in.n, mt_test_world.size, r) * 9 * 8;
  memcpy(all + first * 9, f.indices, bytes[mt_test_world.rank]);
  assert_int_equal(mt_allgatherv(&mt_test_world, bytes, all), MT_OK);
  assert_int_equal(mt_hash_key(all, sizeof all), 0x1f6aea4bb62e5aac);
  forget(&f);
  free(in.rows);
}

/* Errors that are expected are not shown. */
static int silence(void)
{
  int kept = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDERR_FILENO);
  close(nowhere);
  return kept;
}

static void restore(int kept)
{
  dup2(kept, STDERR_FILENO);
  close(kept);
}

/* A bad row is an error on every rank, wherever it lies. */
static void test_bad_rows(void **state)
{
  (void)state;
  static const float bad[] = {NAN, INFINITY, -INFINITY, -1e-30f};
  static const sizes some[] = {{{.block = 3}, {0}}, {{.block = 5}, {.stream = 7}}};
  int64_t indices[25 * 2];
  float distances[25 * 2];
  found f = {.k = 2, .indices = indices, .distances = distances};
  int errors = silence();
  for (int b = 0; b < 4; b++)
    for (int64_t where = 0; where < 25; where += 12) {
      data in;
      new_data(&in, "bad", 25, 11);
      fill_normal(&in, 1.0f, 0.1f);
      in.rows[where * in.d + where % in.d] = bad[b];
      mt_rows rows = mt_rows_memory(in.n, in.d, in.rows);
      for (int metric = 0; metric < 3; metric++)
        assert_int_equal(search(metric, &rows, &some[b % 2], &f),
                         b < 3 || metric == MT_METRIC_HELLINGER ? MT_ERR_INPUT : MT_OK);
      free(in.rows);
    }
  data in;
  new_data(&in, "k", 3, 2);
  mt_rows rows = mt_rows_memory(in.n, in.d, in.rows);
  for (f.k = 0; f.k < 5; f.k++)
    assert_int_equal(search(MT_METRIC_COSINE, &rows, &usual, &f),
                     f.k == 1 || f.k == 2 ? MT_OK : MT_ERR_ARG);
  free(in.rows);
  restore(errors);
}

/* A file that cannot be read on one rank ends the search on all. */
static mt_status fail_to_read(const mt_rows *rows, int64_t first, int64_t count,
                              float *out)
{
  for (int64_t i = 0; i < count * rows->d; i++) out[i] = 1.0f;
  return first <= 11 && 11 < first + count ? MT_ERR_IO : MT_OK;
}

static void test_read_error(void **state)
{
  (void)state;
  mt_rows rows = {.n = 20, .d = 3, .read = fail_to_read};
  static const sizes some[] = {{{4, 3, 2, 2}, {0}}, {{3, 4, 2, 3}, {.stream = 3}}};
  int64_t indices[20 * 2];
  float distances[20 * 2];
  found f = {.k = 2, .indices = indices, .distances = distances};
  for (int i = 0; i < 2; i++)
    assert_int_equal(search(MT_METRIC_COSINE, &rows, &some[i], &f), MT_ERR_IO);
}

/* ---- the stage ------------------------------------------------------------------------- */

static const mt_dataset topic_rows = {
    "/matrix", MT_FLOAT32, "topic vectors", "1", {"topic", "term"}};
static const mt_fingerprint topics_print = {"0123456789abcdef0123456789abcdef"};

static void write_topics(const char *folder, const data *in)
{
  int64_t first = mt_part_first(in->n, mt_test_world.size, mt_test_world.rank);
  int64_t local = mt_part_count(in->n, mt_test_world.size, mt_test_world.rank);
  mt_file *file = NULL;
  char *path = mt_path_join(folder, "topics.h5");
  assert_int_equal(mt_store_create(&mt_test_world, path, &topics_print, &file), MT_OK);
  assert_int_equal(mt_store_write(&mt_test_world, file, &topic_rows, local, in->d,
                                  in->rows + first * in->d),
                   MT_OK);
  assert_int_equal(mt_store_commit(&mt_test_world, &file), MT_OK);
  free(path);
}

/* knn.h5 holds what the reference finds, as many as there are. */
static void check_stored(const char *path, const data *in,
                         const mt_knn_options *options)
{
  int64_t rows, width, k = in->n > 0 ? in->n - 1 : 0, given;
  int64_t *stored = calloc((size_t)in->n * 50 + 1, 8),
          *want = calloc((size_t)in->n * 50 + 1, 8);
  float *stored_at = calloc((size_t)in->n * 50 + 1, 4);
  double *want_at = calloc((size_t)in->n * 50 + 1, 8);
  char *metric = NULL;
  mt_file *file = NULL;
  if (k > options->n_neighbors - 1) k = options->n_neighbors - 1;
  assert_int_equal(mt_store_open(path, &file), MT_OK);
  assert_int_equal(mt_store_shape(file, "/indices", &rows, &width), MT_OK);
  assert_int_equal(rows, in->n);
  assert_int_equal(width, k);
  assert_int_equal(mt_store_read(file, "/indices", MT_INT64, 0, rows, stored), MT_OK);
  assert_int_equal(mt_store_read(file, "/distances", MT_FLOAT32, 0, rows, stored_at),
                   MT_OK);
  assert_int_equal(
      mt_knn_ref(options->metric, in->n, in->d, in->rows, k, want, want_at), MT_OK);
  for (int64_t m = 0; m < rows * k; m++) {
    assert_int_equal(stored[m], want[m]);
    assert_true(stored_at[m] == (float)want_at[m]);
  }
  assert_int_equal(mt_store_get_text(file, "metric", &metric), MT_OK);
  assert_string_equal(metric, mt_metric_name(options->metric));
  assert_int_equal(mt_store_get_i64(file, "n_neighbors", &given), MT_OK);
  assert_int_equal(given, options->n_neighbors);
  mt_store_close(file);
  free(metric);
  free(stored);
  free(stored_at);
  free(want);
  free(want_at);
}

static mt_status run_stage(const mt_run *run, const char *path)
{
  mt_fingerprint made_by = {""}, other, there;
  mt_stage_result result = {0};
  assert_int_equal(mt_stage_knn.fingerprint(run, &made_by), MT_OK);
  assert_int_equal(strlen(made_by.hex), 32);
  mt_parameters changed = *run->parameters;
  changed.knn.n_neighbors++;
  mt_run changed_run = {
      .parameters = &changed, .out = run->out, .backend = run->backend};
  assert_int_equal(mt_stage_knn.fingerprint(&changed_run, &other), MT_OK);
  assert_false(mt_fingerprint_equal(&made_by, &other));
  mt_barrier(&mt_test_world);
  mt_status status = mt_stage_knn.work(&mt_test_world, run, &made_by, &result);
  if (status != MT_OK) return status;
  there = mt_store_fingerprint(path);
  assert_true(mt_fingerprint_equal(&there, &made_by));
  return MT_OK;
}

static void test_stage(void **state)
{
  (void)state;
  static const int64_t some_n[] = {0, 1, 2, 5, 40};
  char folder[64] = "/tmp/mt-knn-XXXXXX", path[128], command[128];
  int errors = silence(); /* warnings that there are fewer rows than neighbours */
  if (mt_test_world.rank == 0) assert_non_null(mkdtemp(folder));
  mt_bcast(&mt_test_world, 0, sizeof folder, folder);
  snprintf(path, sizeof path, "%s/knn.h5", folder);
  mt_parameters parameters = {0};
  assert_int_equal(mt_parameters_default(&parameters), MT_OK);
  mt_run run = {.parameters = &parameters, .out = folder, .backend = mt_test_backend};
  data in;
  for (int s = 0; s < 5; s++) {
    new_data(&in, "stored", some_n[s], 33);
    fill_topics(&in, 4, 0.5f);
    parameters.knn.metric = (mt_metric)(s % 3);
    write_topics(folder, &in);
    assert_int_equal(run_stage(&run, path), MT_OK);
    check_stored(path, &in, &parameters.knn);
    mt_barrier(&mt_test_world);
    if (s < 4) free(in.rows);
  }
  in.rows[39 * 33 + 5] = NAN;
  write_topics(folder, &in);
  assert_int_equal(run_stage(&run, path), MT_ERR_INPUT);
  in.n = 1;
  in.rows[7] = -INFINITY;
  write_topics(folder, &in);
  assert_int_equal(run_stage(&run, path), MT_ERR_INPUT);
  mt_barrier(&mt_test_world);
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  if (mt_test_world.rank == 0) assert_int_equal(system(command), 0);
  mt_parameters_destroy(&parameters);
  free(in.rows);
  restore(errors);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_metrics),
    cmocka_unit_test(test_scikit_learn),
    cmocka_unit_test(test_cost),
    cmocka_unit_test(test_again),
    cmocka_unit_test(test_small),
    cmocka_unit_test(test_wide),
    cmocka_unit_test(test_topics),
    cmocka_unit_test(test_near_identical),
    cmocka_unit_test(test_far_from_origin),
    cmocka_unit_test(test_duplicates),
    cmocka_unit_test(test_zero_rows),
    cmocka_unit_test(test_same_bits),
    cmocka_unit_test(test_bad_rows),
    cmocka_unit_test(test_read_error),
    cmocka_unit_test(test_products),
    cmocka_unit_test(test_stage),
};

MT_TEST_BACKEND_MAIN(tests)
