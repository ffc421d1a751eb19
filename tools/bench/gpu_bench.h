/* What the parts of bench_gpu share. The GPUs of a row form a team, one process each; all
 * functions here are collective over the team unless they say otherwise. */
#ifndef MT_BENCH_GPU_BENCH_H
#define MT_BENCH_GPU_BENCH_H
#include "gpu.h"
#include "gpu_limits.h"
#include "planted.h"

extern "C" {
#include "base/hash.h"
#include "gpu_table.h"
}

enum { MT_BENCH_RUNS = 32, MT_BENCH_SIZES = 64 };

typedef struct mt_bench_options {
  const char *stages; /* names joined by commas; NULL: all */
  int n_sizes, n_gpus;
  int64_t sizes[MT_BENCH_SIZES]; /* n_sizes 0: each stage's own */
  int64_t gpus[MT_BENCH_SIZES];  /* n_gpus 0: 1 and all, and all between */
  int64_t runs;
  int64_t columns;    /* of the topic vectors */
  int64_t dimensions; /* of HDBSCAN's points */
  bool check, once;   /* once: a single run, nothing before or after it (profilers) */
  const char *csv, *peers;
  mt_parameters parameters; /* options of the stages */
} mt_bench_options;

/* A result's fingerprint, to compare those of other numbers of GPUs with it. */
typedef struct mt_bench_bits {
  const char *work;
  int64_t n;
  int gpus;
  mt_fingerprint bits;
} mt_bench_bits;

typedef struct mt_bench {
  const mt_bench_options *options;
  const mt_comm *team;
  mt_gpu *gpu;
  double copy_rate; /* bytes/s, of device memory */
  double link_rate; /* bytes/s, between pinned host memory and the device */
  mt_bench_table *table;
  mt_bench_bits seen[MT_BENCH_SIZES]; /* on rank 0 */
  int n_seen;
} mt_bench;

static inline int64_t mt_bench_first(const mt_bench *b, int64_t n)
{
  return mt_part_first(n, b->team->size, b->team->rank);
}
static inline int64_t mt_bench_local(const mt_bench *b, int64_t n)
{
  return mt_part_count(n, b->team->size, b->team->rank);
}

/* ---- measuring ------------------------------------------------------------------------- */

/* One run, made by a stage: seconds of this process, phases in the row. */
typedef mt_status mt_bench_once(mt_bench *b, void *job, mt_bench_row *row,
                                double *seconds_out);

/**
 * Runs once to warm up, options->runs times, and once more to count what is exchanged;
 * a first run of more than five seconds is enough. Sets the row's seconds (a run takes as long
 * as its slowest process), its phases (the median run's), and what was sent.
 */
mt_status mt_bench_measure(mt_bench *b, mt_bench_once *once, void *job,
                           mt_bench_row *row);

/* What of a run's seconds its phases do not say, as a phase of that name. */
void mt_bench_rest(mt_bench_row *row, const char *name, double seconds);

/* On rank 0: notes that the result has the bits that other GPUs, or another way, gave for that
 * work and the row's size. Errors, on all ranks: MT_ERR_INTERNAL if it has not. size bytes, used
 * on rank 0 only. */
mt_status mt_bench_same_bits(mt_bench *b, mt_bench_row *row, const char *work,
                             size_t size, const void *result);

/* Rows of `bytes` bytes of this process's share of n, gathered on rank 0 (there: n rows). */
mt_status mt_bench_gather(const mt_bench *b, int64_t n, size_t bytes, const void *local,
                          void *all_out);

/* The row is done: to the table, on rank 0. Answers the worst of the team's verdicts on its
 * result, so that a wrong one has its row too. */
mt_status mt_bench_done(mt_bench *b, const mt_bench_row *row, mt_status verdict);

/* ---- stages: each adds its rows to the table --------------------------------------------- */

mt_status mt_bench_knn(mt_bench *b, int64_t n);
mt_status mt_bench_stream(mt_bench *b,
                          int64_t n); /* kNN of rows streamed from the host */
mt_status mt_bench_umap(mt_bench *b, int64_t n);
mt_status mt_bench_sheet(mt_bench *b, int64_t n); /* UMAP of one piece */
mt_status mt_bench_hdbscan(mt_bench *b, int64_t n);

/* ---- checks, on rank 0 alone; what they find goes to the row's notes ------------------------ */

/* Sampled rows against distances in double: recall, and the largest error. */
mt_status mt_bench_check_knn(mt_gpu *gpu, const mt_planted *planted, mt_metric metric,
                             int64_t n, int64_t k, const int64_t *indices,
                             const float *distances, mt_bench_row *row);

#endif
