#include <algorithm>
#include <vector>

#include "gpu_bench.h"
#include "knn.h"

extern "C" {
#include "knn/knn.h"
}

struct knn_job {
  mt_planted planted;
  mt_metric metric;
  int64_t n, d, k;
  mt_array<float> rows, distances;
  mt_array<int64_t> indices;
  mt_gpu_knn_cost cost;
};

static mt_status make_rows(mt_bench *b, knn_job *job)
{
  const int64_t local = mt_bench_local(b, job->n);
  MT_PASS(job->rows.make(b->gpu, local * job->d, "topic vectors"));
  MT_PASS(job->indices.make(b->gpu, local * job->k, "neighbours"));
  MT_PASS(job->distances.make(b->gpu, local * job->k, "distances"));
  MT_PASS(mt_planted_rows(b->gpu, &job->planted, mt_bench_first(b, job->n), local,
                          job->rows.data));
  return mt_gpu_wait(b->gpu);
}

/* From rows on the device to neighbours on the device. */
static mt_status search(mt_bench *b, void *any, mt_bench_row *row, double *seconds_out)
{
  knn_job *job = (knn_job *)any;
  mt_stopwatch watch;
  job->cost = {};
  MT_PASS(watch.begin(b->gpu));
  MT_PASS(mt_gpu_knn_resident(b->gpu, b->team, job->metric, job->k, job->n, job->d,
                              job->rows.data, job->indices.data, job->distances.data,
                              &job->cost));
  MT_PASS(watch.end(b->gpu, seconds_out));
  mt_bench_phase(row, "look", job->cost.look);
  mt_bench_phase(row, "round", job->cost.round);
  mt_bench_phase(row, "select", job->cost.select);
  mt_bench_phase(row, "measure", job->cost.measure);
  mt_bench_phase(row, "repeat", job->cost.repeat);
  return MT_OK;
}

static mt_status note_cost(mt_bench *b, const knn_job *job, mt_bench_row *row)
{
  int64_t sums[4] = {job->cost.exact, job->cost.again, job->cost.with_double,
                     job->cost.brute};
  MT_PASS(mt_sum_i64(b->team, 4, sums));
  mt_bench_note(
      row,
      "k %lld, %s; %.1f exact distances a row; rows again %lld, with double %lld, "
      "by brute force %lld",
      (long long)job->k, mt_metric_name(job->metric), (double)sums[0] / (double)job->n,
      (long long)sums[1], (long long)sums[2], (long long)sums[3]);
  return MT_OK;
}

/* The neighbours, whole on rank 0: one block, indices first. */
static mt_status collect(mt_bench *b, knn_job *job, std::vector<char> *all_out)
{
  const size_t local = (size_t)(mt_bench_local(b, job->n) * job->k);
  const size_t all = b->team->rank == 0 ? (size_t)(job->n * job->k) : 0;
  std::vector<int64_t> indices(local);
  std::vector<float> distances(local);
  MT_PASS(mt_to_host(b->gpu, (int64_t)local, job->indices.data, indices.data()));
  MT_PASS(mt_to_host(b->gpu, (int64_t)local, job->distances.data, distances.data()));
  all_out->resize(all * (sizeof(int64_t) + sizeof(float)));
  MT_PASS(mt_bench_gather(b, job->n, (size_t)job->k * sizeof(int64_t), indices.data(),
                          all_out->data()));
  return mt_bench_gather(b, job->n, (size_t)job->k * sizeof(float), distances.data(),
                         all_out->data() + all * sizeof(int64_t));
}

static mt_status check(mt_bench *b, knn_job *job, const std::vector<char> &all,
                       mt_bench_row *row)
{
  MT_PASS(mt_bench_same_bits(b, row, all.size(), all.data()));
  job->rows.drop();
  mt_status status = MT_OK;
  if (b->options->check && b->team->rank == 0) {
    const int64_t *indices = (const int64_t *)all.data();
    const float *distances = (const float *)(indices + job->n * job->k);
    status = mt_bench_check_knn(b->gpu, &job->planted, job->metric, job->n, job->k,
                                indices, distances, row);
  }
  return mt_agree(b->team, status);
}

mt_status mt_bench_knn(mt_bench *b, int64_t n)
{
  const mt_knn_options *options = &b->options->parameters.knn;
  mt_bench_row row = mt_bench_row_of("knn", n, b->options->columns, b->team->size);
  std::vector<char> all;
  double product = 0.0;
  knn_job job;
  job.planted = mt_planted_default(row.d);
  job.metric = options->metric;
  job.n = n;
  job.d = row.d;
  job.k = std::min(n, options->n_neighbors) - 1;
  if (!b->options->once)
    MT_PASS(mt_agree(b->team, mt_limit_product(b->gpu, n, job.d, &product)));
  MT_PASS(mt_min_f64(b->team, 1, &product));
  MT_PASS(mt_agree(b->team, make_rows(b, &job)));
  MT_PASS(mt_bench_measure(b, search, &job, &row));
  row.work = 2e-12 * (double)n * (double)n * (double)job.d;
  row.unit = "TFLOP";
  if (product > 0.0) row.limit_seconds = row.work / (1e-12 * product * row.gpus);
  snprintf(row.limit, sizeof row.limit, "fp16 product %.0f TFLOP/s", 1e-12 * product);
  MT_PASS(note_cost(b, &job, &row));
  MT_PASS(collect(b, &job, &all));
  MT_PASS(check(b, &job, all, &row));
  return b->team->rank == 0 ? mt_bench_table_add(b->table, &row) : MT_OK;
}
