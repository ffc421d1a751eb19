#include <algorithm>

#include "exchange.h"
#include "gpu_bench.h"

/* Seconds from which one run is enough. */
static const double long_run = 5.0;

static mt_status run_once(mt_bench *b, mt_bench_once *once, void *job, bool count,
                          mt_bench_row *row, double *seconds_out)
{
  mt_exchange_cost cost = {};
  double seconds = 0.0;
  row->n_phases = 0;
  MT_PASS(mt_gpu_wait(b->gpu));
  mt_barrier(b->team);
  if (count) MT_PASS(mt_exchange_count(b->gpu, true, &cost));
  mt_status status = mt_agree(b->team, once(b, job, row, &seconds));
  if (count) MT_PASS(mt_exchange_count(b->gpu, false, &cost));
  MT_PASS(status);
  MT_PASS(mt_max_f64(b->team, 1, &seconds));
  *seconds_out = seconds;
  if (!count) return MT_OK;
  MT_PASS(mt_sum_i64(b->team, 1, &cost.bytes));
  MT_PASS(mt_max_f64(b->team, 1, &cost.seconds));
  row->bytes = cost.bytes;
  row->exchange_seconds = cost.seconds;
  return MT_OK;
}

typedef struct measured_run {
  double seconds;
  int n_phases;
  mt_phase phases[MT_MOST_PHASES];
} measured_run;

static bool shorter(const measured_run &a, const measured_run &b)
{
  return a.seconds < b.seconds;
}

static void keep(const mt_bench_row *row, double seconds, measured_run *run_out)
{
  run_out->seconds = seconds;
  run_out->n_phases = row->n_phases;
  std::copy(row->phases, row->phases + row->n_phases, run_out->phases);
}

static void take_median(int count, measured_run *runs, mt_bench_row *row)
{
  std::sort(runs, runs + count, shorter);
  const measured_run *median = &runs[count / 2];
  row->runs = count;
  row->seconds = median->seconds;
  row->least = runs[0].seconds;
  row->most = runs[count - 1].seconds;
  row->n_phases = median->n_phases;
  std::copy(median->phases, median->phases + median->n_phases, row->phases);
}

mt_status mt_bench_measure(mt_bench *b, mt_bench_once *once, void *job,
                           mt_bench_row *row)
{
  measured_run runs[MT_BENCH_RUNS];
  int count = 0, wanted = (int)b->options->runs;
  bool several = b->team->size > 1;
  double seconds;
  MT_PASS(run_once(b, once, job, several, row, &seconds));
  if (b->options->once || seconds > long_run) {
    keep(row, seconds, &runs[count++]);
    take_median(count, runs, row);
    return MT_OK;
  }
  while (count < wanted) {
    MT_PASS(run_once(b, once, job, false, row, &seconds));
    keep(row, seconds, &runs[count++]);
  }
  if (several) MT_PASS(run_once(b, once, job, true, row, &seconds));
  take_median(count, runs, row);
  return MT_OK;
}

mt_status mt_bench_gather(const mt_bench *b, int64_t n, size_t bytes, const void *local,
                          void *all_out)
{
  size_t *sizes = (size_t *)calloc((size_t)b->team->size, sizeof *sizes);
  if (sizes == nullptr)
    return mt_fail(MT_ERR_MEMORY, "no memory for %d sizes", b->team->size);
  for (int r = 0; r < b->team->size; r++)
    sizes[r] = (size_t)mt_part_count(n, b->team->size, r) * bytes;
  mt_status status = mt_gatherv(b->team, 0, sizes, local, all_out);
  free(sizes);
  return status;
}

static mt_status compare_bits(mt_bench *b, mt_bench_row *row, const char *work,
                              size_t size, const void *result)
{
  mt_hash *hash = mt_hash_begin();
  mt_hash_bytes(hash, result, size);
  mt_fingerprint bits = mt_hash_end(hash);
  for (int i = 0; i < b->n_seen; i++) {
    const mt_bench_bits *seen = &b->seen[i];
    if (strcmp(seen->work, work) != 0 || seen->n != row->n) continue;
    bool same = mt_fingerprint_equal(&seen->bits, &bits);
    mt_bench_note(row, "%s bits as %d GPU%s", same ? "same" : "OTHER", seen->gpus,
                  seen->gpus > 1 ? "s" : "");
    if (!same)
      return mt_fail(MT_ERR_INTERNAL,
                     "%s of %lld rows: %d GPUs give other bits than %d", row->stage,
                     (long long)row->n, row->gpus, seen->gpus);
    return MT_OK;
  }
  if (b->n_seen == MT_BENCH_SIZES) return MT_OK;
  mt_bench_bits *fresh = &b->seen[b->n_seen++];
  fresh->work = work;
  fresh->n = row->n;
  fresh->gpus = row->gpus;
  fresh->bits = bits;
  return MT_OK;
}

mt_status mt_bench_same_bits(mt_bench *b, mt_bench_row *row, const char *work,
                             size_t size, const void *result)
{
  return mt_agree(b->team, b->team->rank == 0 ? compare_bits(b, row, work, size, result)
                                              : MT_OK);
}

mt_status mt_bench_done(mt_bench *b, const mt_bench_row *row, mt_status verdict)
{
  mt_status status = MT_OK;
  if (b->team->rank == 0) status = mt_bench_table_add(b->table, row);
  return mt_agree(b->team, status > verdict ? status : verdict);
}

void mt_bench_rest(mt_bench_row *row, const char *name, double seconds)
{
  for (int i = 0; i < row->n_phases; i++) seconds -= row->phases[i].seconds;
  mt_bench_phase(row, name, seconds);
}
