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
  mt_array<float> rows, distances; /* on the device */
  mt_array<int64_t> indices;
  std::vector<float> host_rows, host_distances; /* rows: all, to be streamed */
  std::vector<int64_t> host_indices;
  mt_gpu_knn_sizes sizes;
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

static void add_phases(const mt_gpu_knn_cost *cost, mt_bench_row *row)
{
  mt_bench_phase(row, "look", cost->look);
  mt_bench_phase(row, "round", cost->round);
  mt_bench_phase(row, "select", cost->select);
  mt_bench_phase(row, "measure", cost->measure);
  mt_bench_phase(row, "repeat", cost->repeat);
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
  add_phases(&job->cost, row);
  return MT_OK;
}

static mt_status fetch(mt_bench *b, knn_job *job)
{
  const int64_t count = mt_bench_local(b, job->n) * job->k;
  MT_PASS(mt_to_host(b->gpu, count, job->indices.data, job->host_indices.data()));
  return mt_to_host(b->gpu, count, job->distances.data, job->host_distances.data());
}

/* All rows in the memory of every process, as if in a file that it reads. */
static mt_status make_host_rows(mt_bench *b, knn_job *job)
{
  const int64_t most = std::min<int64_t>(job->n, 8192);
  MT_PASS(job->rows.make(b->gpu, most * job->d, "topic vectors"));
  job->host_rows.resize((size_t)(job->n * job->d));
  for (int64_t first = 0; first < job->n; first += most) {
    const int64_t count = std::min(most, job->n - first);
    MT_PASS(mt_planted_rows(b->gpu, &job->planted, first, count, job->rows.data));
    MT_PASS(mt_to_host(b->gpu, count * job->d, job->rows.data,
                       job->host_rows.data() + first * job->d));
  }
  job->rows.drop();
  return MT_OK;
}

/* From rows on the host, which are streamed in blocks, to neighbours there. */
static mt_status search_streamed(mt_bench *b, void *any, mt_bench_row *row,
                                 double *seconds_out)
{
  knn_job *job = (knn_job *)any;
  mt_rows rows = mt_rows_memory(job->n, job->d, job->host_rows.data());
  job->cost = {};
  double begun = mt_seconds();
  MT_PASS(mt_gpu_knn_sized(&b->gpu->table, b->team, job->metric, job->k, &rows,
                           &job->sizes, job->host_indices.data(),
                           job->host_distances.data(), &job->cost));
  *seconds_out = mt_seconds() - begun;
  add_phases(&job->cost, row);
  mt_bench_rest(row, "reading and waiting", *seconds_out);
  return MT_OK;
}

static mt_status note_cost(mt_bench *b, const knn_job *job, mt_bench_row *row)
{
  int64_t sums[5] = {job->cost.exact, job->cost.again, job->cost.with_double,
                     job->cost.brute, job->cost.streamed};
  MT_PASS(mt_sum_i64(b->team, 5, sums));
  mt_bench_note(
      row,
      "k %lld, %s; %.1f exact distances a row; rows again %lld, with double %lld, "
      "by brute force %lld",
      (long long)job->k, mt_metric_name(job->metric), (double)sums[0] / (double)job->n,
      (long long)sums[1], (long long)sums[2], (long long)sums[3]);
  if (sums[4] > 0)
    mt_bench_note(row, "%.1f GB streamed in blocks of %lld rows",
                  1e-9 * (double)sums[4], (long long)job->sizes.stream);
  return MT_OK;
}

/* The neighbours, whole on rank 0: one block, indices first. */
static mt_status collect(mt_bench *b, knn_job *job, std::vector<char> *all_out)
{
  const size_t all = b->team->rank == 0 ? (size_t)(job->n * job->k) : 0;
  all_out->resize(all * (sizeof(int64_t) + sizeof(float)));
  MT_PASS(mt_bench_gather(b, job->n, (size_t)job->k * sizeof(int64_t),
                          job->host_indices.data(), all_out->data()));
  return mt_bench_gather(b, job->n, (size_t)job->k * sizeof(float),
                         job->host_distances.data(),
                         all_out->data() + all * sizeof(int64_t));
}

static mt_status check(mt_bench *b, knn_job *job, mt_bench_row *row)
{
  std::vector<char> all;
  MT_PASS(collect(b, job, &all));
  mt_status status = mt_bench_same_bits(b, row, "knn", all.size(), all.data());
  if (b->options->check && b->team->rank == 0 && status == MT_OK) {
    const int64_t *indices = (const int64_t *)all.data();
    const float *distances = (const float *)(indices + job->n * job->k);
    status = mt_bench_check_knn(b->gpu, &job->planted, job->metric, job->n, job->k,
                                indices, distances, row);
  }
  return status;
}

static mt_status hold_against_product(mt_bench *b, mt_bench_row *row)
{
  double product = 0.0;
  row->work = 2e-12 * (double)row->n * (double)row->n * (double)row->d;
  row->unit = "TFLOP";
  if (b->options->once) return MT_OK;
  MT_PASS(mt_agree(b->team, mt_limit_product(b->gpu, row->n, row->d, &product)));
  MT_PASS(mt_min_f64(b->team, 1, &product));
  row->limit_seconds = row->work / (1e-12 * product * row->gpus);
  snprintf(row->limit, sizeof row->limit, "fp16 product %.0f TFLOP/s", 1e-12 * product);
  return MT_OK;
}

static mt_status run(mt_bench *b, int64_t n, bool streamed)
{
  const mt_knn_options *options = &b->options->parameters.knn;
  const char *stage = streamed ? "stream" : "knn";
  mt_bench_row row = mt_bench_row_of(stage, n, b->options->columns, b->team->size);
  knn_job job = {};
  job.planted = mt_planted_default(row.d);
  job.metric = options->metric;
  job.n = n;
  job.d = row.d;
  job.k = std::min(n, options->n_neighbors) - 1;
  job.sizes.stream = (n + 39) / 40;
  job.host_indices.resize((size_t)(mt_bench_local(b, n) * job.k));
  job.host_distances.resize((size_t)(mt_bench_local(b, n) * job.k));
  MT_PASS(hold_against_product(b, &row));
  MT_PASS(mt_agree(b->team, streamed ? make_host_rows(b, &job) : make_rows(b, &job)));
  MT_PASS(mt_bench_measure(b, streamed ? search_streamed : search, &job, &row));
  MT_PASS(note_cost(b, &job, &row));
  if (!streamed) MT_PASS(mt_agree(b->team, fetch(b, &job)));
  job.rows.drop();
  return mt_bench_done(b, &row, check(b, &job, &row));
}

mt_status mt_bench_knn(mt_bench *b, int64_t n)
{
  return run(b, n, false);
}

mt_status mt_bench_stream(mt_bench *b, int64_t n)
{
  return run(b, n, true);
}
