/* Reads what the stages before left into one struct. */
#include "report/findings.h"
#include "base/memory.h"
#include "corpus/corpus.h"
#include "store/folder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The name of a corpus for people: its path's last part without the ending of an archive. */
static mt_status name_corpus(const char *path, char **name_out)
{
  static const char *const endings[] = {".tar.gz", ".tar.xz", ".tar.bz2", ".tgz",
                                        ".tar",    ".zip",    ".gz",      ".jsonl",
                                        ".csv",    ".sgm",    ".txt"};
  mt_status status = MT_OK;
  char *name = NULL, *copy = NULL;
  MT_TRY(mt_string_copy(path, &copy));
  size_t length = strlen(copy);
  while (length > 1 && copy[length - 1] == '/') copy[--length] = '\0';
  const char *slash = strrchr(copy, '/');
  MT_TRY(mt_string_copy(slash != NULL && slash[1] != '\0' ? slash + 1 : copy, &name));
  length = strlen(name);
  for (size_t e = 0; e < sizeof endings / sizeof *endings; e++) {
    size_t end = strlen(endings[e]);
    if (length <= end || strcmp(name + length - end, endings[e]) != 0) continue;
    name[length - end] = '\0';
    break;
  }
  *name_out = name;
done:
  free(copy);
  return status;
}

/* A vector of n numbers, as that type. */
static mt_status read_vector(mt_file *file, const char *name, mt_type type, int64_t n,
                             void **out)
{
  mt_status status = MT_OK;
  void *values = NULL;
  MT_TRY(mt_store_expect(file, name, n, 0));
  MT_TRY(mt_memory_new(n, mt_type_size(type), name, &values));
  MT_TRY(mt_store_read(file, name, type, 0, n, values));
  *out = values;
  values = NULL;
done:
  free(values);
  return status;
}

/* ---- periods and seeds: those that have topics ---------------------------------------- */

/* Drops the names that no topic uses; renumbers period[]. */
static mt_status keep_used_periods(mt_findings *f)
{
  mt_status status = MT_OK;
  int64_t *number = NULL, used = 0;
  MT_NEW(number, f->n_periods);
  for (int64_t i = 0; i < f->n_topics; i++) {
    MT_REQUIRE(f->period[i] >= 0 && f->period[i] < f->n_periods, MT_ERR_IO,
               "topics.h5: topic %lld has the period %lld of %lld", (long long)i,
               (long long)f->period[i], (long long)f->n_periods);
    number[f->period[i]] = 1;
  }
  for (int64_t p = 0; p < f->n_periods; p++) {
    char *name = f->periods[p];
    f->periods[p] = NULL;
    if (number[p] == 0) {
      free(name);
      continue;
    }
    number[p] = used;
    f->periods[used++] = name;
  }
  f->n_periods = used;
  for (int64_t i = 0; i < f->n_topics; i++) f->period[i] = number[f->period[i]];
done:
  free(number);
  return status;
}

static mt_status take_periods(mt_file *corpus, mt_findings *f)
{
  mt_status status = MT_OK;
  mt_period *periods = NULL;
  int64_t n = 0;
  MT_TRY(mt_corpus_periods(corpus, &n, &periods));
  MT_NEW(f->periods, n);
  f->n_periods = n;
  for (int64_t p = 0; p < n; p++) {
    f->periods[p] = periods[p].name;
    periods[p].name = NULL;
  }
  MT_TRY(keep_used_periods(f));
done:
  mt_periods_destroy(n, periods);
  return status;
}

static int compare_i64(const void *a, const void *b)
{
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

/* seeds[] from the values in seed[], which become numbers of it. */
static mt_status number_seeds(mt_findings *f)
{
  mt_status status = MT_OK;
  MT_NEW(f->seeds, f->n_topics);
  memcpy(f->seeds, f->seed, (size_t)f->n_topics * sizeof *f->seeds);
  qsort(f->seeds, (size_t)f->n_topics, sizeof *f->seeds, compare_i64);
  for (int64_t i = 0; i < f->n_topics; i++)
    if (f->n_seeds == 0 || f->seeds[f->n_seeds - 1] != f->seeds[i])
      f->seeds[f->n_seeds++] = f->seeds[i];
  for (int64_t i = 0; i < f->n_topics; i++) {
    int64_t *at = bsearch(&f->seed[i], f->seeds, (size_t)f->n_seeds, sizeof *f->seeds,
                          compare_i64);
    f->seed[i] = at - f->seeds;
  }
done:
  return status;
}

/* ---- one file after the other --------------------------------------------------------- */

static mt_status read_top_terms(mt_file *topics, mt_findings *f)
{
  mt_status status = MT_OK;
  int64_t rows;
  MT_TRY(mt_store_shape(topics, "/top_terms", &rows, &f->n_top));
  MT_REQUIRE(rows == f->n_topics, MT_ERR_IO,
             "topics.h5: /top_terms has %lld rows for %lld "
             "topics",
             (long long)rows, (long long)f->n_topics);
  MT_NEW(f->top_terms, rows * f->n_top);
  MT_TRY(mt_store_read(topics, "/top_terms", MT_INT64, 0, rows, f->top_terms));
  for (int64_t i = 0; i < rows * f->n_top; i++)
    MT_REQUIRE(f->top_terms[i] >= 0 && f->top_terms[i] < f->n_terms, MT_ERR_IO,
               "topics.h5: /top_terms names term %lld of %lld",
               (long long)f->top_terms[i], (long long)f->n_terms);
done:
  return status;
}

static mt_status read_topics(mt_file *topics, mt_findings *f)
{
  mt_status status = MT_OK;
  int64_t width;
  MT_TRY(mt_store_shape(topics, "/matrix", &f->n_topics, &width));
  MT_REQUIRE(width == f->n_terms, MT_ERR_IO,
             "topics.h5 has %lld terms, corpus.h5 %lld: one "
             "of them is of another run",
             (long long)width, (long long)f->n_terms);
  MT_TRY(read_vector(topics, "/period", MT_INT64, f->n_topics, (void **)&f->period));
  MT_TRY(read_vector(topics, "/seed", MT_INT64, f->n_topics, (void **)&f->seed));
  MT_TRY(read_vector(topics, "/topic", MT_INT64, f->n_topics, (void **)&f->topic));
  MT_TRY(read_top_terms(topics, f));
  MT_TRY(number_seeds(f));
done:
  return status;
}

static mt_status read_clusters(mt_file *clusters, mt_findings *f)
{
  mt_status status = MT_OK;
  int64_t n = f->n_topics, width;
  MT_TRY(mt_store_shape(clusters, "/persistence", &f->n_meta, &width));
  MT_TRY(read_vector(clusters, "/labels", MT_INT64, n, (void **)&f->labels));
  MT_TRY(read_vector(clusters, "/probabilities", MT_FLOAT64, n,
                     (void **)&f->probabilities));
  MT_TRY(read_vector(clusters, "/outlier_scores", MT_FLOAT64, n,
                     (void **)&f->outlier_scores));
  MT_TRY(read_vector(clusters, "/persistence", MT_FLOAT64, f->n_meta,
                     (void **)&f->persistence));
  for (int64_t i = 0; i < n; i++)
    MT_REQUIRE(f->labels[i] >= -1 && f->labels[i] < f->n_meta, MT_ERR_IO,
               "hdbscan.h5: topic %lld has the label %lld of %lld clusters",
               (long long)i, (long long)f->labels[i], (long long)f->n_meta);
done:
  return status;
}

static mt_status read_positions(mt_file *layout, mt_findings *f)
{
  mt_status status = MT_OK;
  double *whole = NULL;
  int64_t rows, n = f->n_topics;
  MT_TRY(mt_store_shape(layout, "/embedding", &rows, &f->n_axes));
  MT_REQUIRE(rows == n && (f->n_axes > 0 || n == 0), MT_ERR_IO,
             "umap.h5: /embedding has %lld rows of %lld for %lld topics",
             (long long)rows, (long long)f->n_axes, (long long)n);
  MT_NEW(whole, n * f->n_axes);
  MT_NEW(f->positions, 2 * n);
  MT_TRY(mt_store_read(layout, "/embedding", MT_FLOAT64, 0, n, whole));
  for (int64_t i = 0; i < n; i++)
    for (int64_t axis = 0; axis < 2 && axis < f->n_axes; axis++) {
      double at = whole[i * f->n_axes + axis];
      MT_REQUIRE(isfinite(at), MT_ERR_IO, "umap.h5: topic %lld is at no finite place",
                 (long long)i);
      f->positions[2 * i + axis] = at;
    }
done:
  free(whole);
  return status;
}

mt_status mt_findings_load(const char *folder, const mt_parameters *parameters,
                           mt_findings *findings_out)
{
  mt_status status = MT_OK;
  mt_file *corpus = NULL, *topics = NULL, *layout = NULL, *clusters = NULL;
  mt_findings f = {0};
  MT_TRY(mt_store_open_in(folder, "corpus.h5", &corpus));
  MT_TRY(mt_store_open_in(folder, "topics.h5", &topics));
  MT_TRY(mt_store_open_in(folder, "umap.h5", &layout));
  MT_TRY(mt_store_open_in(folder, "hdbscan.h5", &clusters));
  MT_TRY(name_corpus(parameters->corpus.path, &f.corpus));
  MT_TRY(mt_corpus_terms(corpus, &f.n_terms, &f.terms));
  MT_TRY(read_topics(topics, &f));
  MT_TRY(take_periods(corpus, &f));
  MT_TRY(read_clusters(clusters, &f));
  MT_TRY(read_positions(layout, &f));
  *findings_out = f;
  f = (mt_findings){0};
done:
  mt_findings_destroy(&f);
  mt_store_close(clusters);
  mt_store_close(layout);
  mt_store_close(topics);
  mt_store_close(corpus);
  return status;
}
