/* RANKS 1 2 3
 * Sums over topics and clusters against plain loops: the same bits on any number of ranks, every
 * row read as often as promised, errors of one rank. */
#include "test.h"

#include "base/memory.h"
#include "base/random.h"
#include "report/topic_sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows in memory, and how often they are asked for. */
typedef struct source {
  mt_rows memory;
  int64_t rows_read, reads;
  int64_t bad_row; /* cannot be read; -1: all can */
} source;

static mt_status read_rows(const mt_rows *rows, int64_t first, int64_t count,
                           float *out)
{
  source *s = (source *)rows->source;
  s->rows_read += count;
  s->reads++;
  if (s->bad_row >= first && s->bad_row < first + count)
    return mt_fail(MT_ERR_IO, "row %lld", (long long)s->bad_row);
  return s->memory.read(&s->memory, first, count, out);
}

static mt_rows rows_of(source *s, int64_t n, int64_t d, const float *matrix)
{
  *s = (source){.memory = mt_rows_memory(n, d, matrix), .bad_row = -1};
  return (mt_rows){.n = n, .d = d, .source = s, .read = read_rows};
}

static float *matrix_of(int64_t n, int64_t d)
{
  float *matrix = malloc((size_t)(n * d) * sizeof *matrix);
  for (int64_t i = 0; i < n * d; i++)
    matrix[i] =
        (float)(mt_random_unit(3, MT_STREAM_NEWSWIRE, (uint64_t)i, 0) / (double)d);
  return matrix;
}

/* What is taken: sums of all clusters, in order. */
typedef struct taken {
  int64_t n, d;
  int64_t fails_at; /* -1: never */
  double *sums;
} taken;

static mt_status take(void *context, int64_t cluster, double *sums)
{
  taken *t = context;
  assert_int_equal(mt_test_world.rank, 0);
  assert_int_equal(cluster, t->n);
  if (cluster == t->fails_at) return mt_fail(MT_ERR_MEMORY, "no more");
  memcpy(t->sums + t->n++ * t->d, sums, (size_t)t->d * sizeof *sums);
  return MT_OK;
}

static void check(int64_t n, int64_t d, int64_t n_clusters, int64_t most_reads)
{
  mt_comm self = mt_comm_self();
  float *matrix = matrix_of(n, d);
  int64_t *labels = calloc((size_t)n + 1, sizeof *labels), members = 0;
  double *all = calloc((size_t)d, sizeof *all), *alone = calloc((size_t)d, sizeof *all),
         *plain = calloc((size_t)(d * n_clusters), sizeof *plain);
  taken t = {
      .d = d, .fails_at = -1, .sums = calloc((size_t)(d * n_clusters), sizeof *t.sums)};
  source s;
  mt_rows rows = rows_of(&s, n, d, matrix);
  for (int64_t i = 0; i < n; i++) {
    labels[i] = (int64_t)(mt_random_unit(3, MT_STREAM_NEWSWIRE, (uint64_t)i, 1) *
                          (double)(n_clusters + 1)) -
                1;
    for (int64_t c = 0; labels[i] >= 0 && c < d; c++)
      plain[labels[i] * d + c] += matrix[i * d + c];
    members += labels[i] >= 0;
  }

  assert_int_equal(mt_topic_sums(&mt_test_world, &rows, all), MT_OK);
  int64_t counts[2] = {s.rows_read, 0};
  assert_int_equal(mt_topic_sums(&self, &rows, alone), MT_OK);
  assert_memory_equal(all, alone, (size_t)d * sizeof *all);
  for (int64_t c = 0; c < d; c++) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += matrix[i * d + c];
    assert_true(fabs(sum - all[c]) <= 1e-12);
  }

  s.rows_read = s.reads = 0;
  assert_int_equal(
      mt_topic_cluster_sums(&mt_test_world, &rows, n_clusters, labels, take, &t),
      MT_OK);
  counts[1] = s.reads;
  mt_sum_i64(&mt_test_world, 2, counts);
  assert_int_equal(counts[0], n);
  assert_true(counts[1] <= most_reads && counts[1] <= members);
  if (mt_test_world.rank == 0) {
    assert_int_equal(t.n, n_clusters);
    assert_memory_equal(t.sums, plain, (size_t)(d * n_clusters) * sizeof *plain);
  }
  free(matrix);
  free(labels);
  free(all);
  free(alone);
  free(plain);
  free(t.sums);
}

static void test_sums(void **state)
{
  (void)state;
  int64_t ranks = mt_test_world.size;
  check(1000, 37, 11, ranks); /* a read for each rank: what is between is small */
  check(1000, 37, 1, 1);
  check(3, 5, 2, ranks);
  check(0, 5, 0, 0);
  check(11, 1 << 20, 5, 11); /* four rows, or two clusters, are a block */
}

static void test_errors(void **state)
{
  (void)state;
  enum { N = 60, D = 3, CLUSTERS = 8 };
  float *matrix = matrix_of(N, D);
  int64_t labels[N];
  double sums[CLUSTERS * D];
  source s;
  mt_rows rows = rows_of(&s, N, D, matrix);
  taken t = {.d = D, .fails_at = 5, .sums = sums};
  for (int64_t i = 0; i < N; i++) labels[i] = i % CLUSTERS;
  assert_int_equal(
      mt_topic_cluster_sums(&mt_test_world, &rows, CLUSTERS, labels, take, &t),
      MT_ERR_MEMORY);
  s.bad_row = N - 1; /* which one rank alone reads, for the sums of all */
  assert_int_equal(mt_topic_sums(&mt_test_world, &rows, sums), MT_ERR_IO);
  t = (taken){.d = D, .fails_at = -1, .sums = sums};
  assert_int_equal(
      mt_topic_cluster_sums(&mt_test_world, &rows, CLUSTERS, labels, take, &t),
      MT_ERR_IO);
  s.bad_row = -1;
  static const float bad[] = {NAN, -1e-3f, 3.0f, INFINITY};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    matrix[10 * D + 1] = bad[i];
    assert_int_equal(mt_topic_sums(&mt_test_world, &rows, sums), MT_ERR_INPUT);
  }
  free(matrix);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_sums),
    cmocka_unit_test(test_errors),
};

MT_TEST_MAIN(tests)
