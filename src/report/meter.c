#include "report/meter.h"
#include "base/log.h"
#include "base/memory.h"
#include "report/gpu_watch.h"

#include <errno.h>
#include <omp.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>

/* This rank's clocks at some moment. */
typedef struct mt_mark {
  double seconds;
  int64_t cpu; /* microseconds */
  double gpu_covered, gpu_busy;
} mt_mark;

struct mt_meter {
  mt_holding holding;
  mt_backend *backend;
  mt_gpu_watch *watch; /* of this rank's GPU; NULL: it has none, or it is not told */
  mt_mark start, stage;
  bool resets;            /* can every rank count its peak of memory anew? */
  int64_t peak, gpu_peak; /* of this rank, before the stage */
};

/* ---- this rank ------------------------------------------------------------------------ */

static int64_t cpu_microseconds(int who)
{
  struct rusage usage;
  getrusage(who, &usage);
  return (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
         usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static mt_mark mark(mt_meter *meter)
{
  mt_mark now = {.seconds = mt_seconds(),
                 .cpu =
                     cpu_microseconds(RUSAGE_SELF) + cpu_microseconds(RUSAGE_CHILDREN)};
  if (meter->watch != NULL)
    mt_gpu_watch_read(meter->watch, &now.gpu_covered, &now.gpu_busy);
  return now;
}

/* Bytes of this rank's GPU since it was asked last. */
static int64_t gpu_peak(const mt_meter *meter)
{
  mt_backend *be = meter->backend;
  return be != NULL && be->memory_peak != NULL ? be->memory_peak(be) : 0;
}

/* ---- what is held ---------------------------------------------------------------------- */

static bool is_too_small(int64_t cpus)
{
  cpu_set_t *set = CPU_ALLOC(cpus);
  bool small = set != NULL && sched_getaffinity(0, CPU_ALLOC_SIZE(cpus), set) != 0 &&
               errno == EINVAL;
  CPU_FREE(set);
  return small;
}

/* CPUs that a set must have room for: Linux refuses smaller ones. */
static int64_t set_size(void)
{
  int64_t cpus = CPU_SETSIZE;
  while (cpus < 1 << 24 && is_too_small(cpus)) cpus *= 2;
  return cpus;
}

/* Cores that any of the node's ranks may run on. */
static mt_status count_cores(const mt_comm *node, int64_t *cores_out)
{
  mt_status status = MT_OK;
  char *sets = NULL; /* of the node's ranks, then all of theirs together */
  int64_t size = set_size();
  MT_TRY(mt_max_i64(node, 1, &size));
  size_t bytes = CPU_ALLOC_SIZE(size);
  MT_TRY(mt_agree(node, mt_memory_new((node->size + 1) * (int64_t)bytes, 1, "cores",
                                      (void **)&sets)));
  cpu_set_t *mine = (cpu_set_t *)(sets + (size_t)node->rank * bytes),
            *all = (cpu_set_t *)(sets + (size_t)node->size * bytes);
  if (sched_getaffinity(0, bytes, mine) != 0) CPU_SET_S(0, bytes, mine);
  MT_TRY(mt_allgather(node, bytes, mine, sets));
  for (int r = 0; r < node->size; r++) {
    cpu_set_t *its = (cpu_set_t *)(sets + (size_t)r * bytes);
    CPU_OR_S(bytes, all, all, its);
  }
  *cores_out = CPU_COUNT_S(bytes, all);
done:
  free(sets);
  return status;
}

static mt_status count_holding(const mt_comm *world, const mt_layout *layout,
                               mt_holding *holding_out)
{
  mt_status status = MT_OK;
  mt_comm node = {0};
  int64_t cores, threads = omp_get_max_threads();
  MT_TRY(mt_comm_node(world, &node));
  MT_TRY(mt_sum_i64(&node, 1, &threads));
  MT_TRY(count_cores(&node, &cores));
  if (cores > threads) cores = threads;
  /* a node's figures once, by its first rank */
  int64_t sums[3] = {1, threads, cores};
  for (int i = 0; i < 3; i++) sums[i] = node.rank == 0 ? sums[i] : 0;
  MT_TRY(mt_sum_i64(world, 3, sums));
  *holding_out = (mt_holding){.ranks = world->size,
                              .nodes = sums[0],
                              .threads = sums[1],
                              .cores = sums[2],
                              .gpus = layout != NULL ? layout->n_devices : 0};
done:
  mt_comm_free(&node);
  return status;
}

const mt_holding *mt_meter_holding(const mt_meter *meter)
{
  return &meter->holding;
}

/* ---- the meter ------------------------------------------------------------------------- */

mt_status mt_meter_create(const mt_comm *world, const mt_layout *layout,
                          mt_backend *backend, mt_meter **meter_out)
{
  mt_status status = MT_OK;
  mt_meter *meter = NULL;
  MT_TRY(mt_agree(world, mt_memory_new(1, sizeof *meter, "meter", (void **)&meter)));
  MT_TRY(count_holding(world, layout, &meter->holding));
  meter->backend = backend;
  if (layout != NULL && layout->device >= 0)
    meter->watch = mt_gpu_watch_start(layout->gpu.id);
  meter->start = meter->stage = mark(meter);
  *meter_out = meter;
  meter = NULL;
done:
  mt_meter_destroy(meter);
  return status;
}

void mt_meter_destroy(mt_meter *meter)
{
  if (meter == NULL) return;
  mt_gpu_watch_stop(meter->watch);
  free(meter);
}

static int64_t larger(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

mt_status mt_meter_begin(const mt_comm *world, mt_meter *meter)
{
  mt_status status = MT_OK;
  meter->peak = larger(meter->peak, mt_memory_peak());
  meter->gpu_peak = larger(meter->gpu_peak, gpu_peak(meter));
  int64_t resets = mt_memory_peak_reset();
  MT_TRY(mt_min_i64(world, 1, &resets));
  meter->resets = resets != 0;
  meter->stage = mark(meter);
done:
  return status;
}

/* Of all ranks since a mark of each; peaks: this rank's. */
static mt_status gather(const mt_comm *world, mt_meter *meter, const mt_mark *since,
                        const int64_t peaks[2], mt_usage *out)
{
  mt_status status = MT_OK;
  mt_mark now = mark(meter);
  double seconds = now.seconds - since->seconds;
  double covered = now.gpu_covered - since->gpu_covered;
  /* samples come late: a short stage has none of its own */
  bool measured = meter->watch != NULL && seconds >= 1.0 && covered >= 0.5 * seconds;
  double busy = measured ? (now.gpu_busy - since->gpu_busy) / covered : 0.0;
  int64_t sums[3] = {now.cpu - since->cpu, measured, (int64_t)(1e9 * busy)};
  int64_t most[3] = {peaks[0], peaks[1], (int64_t)(1e9 * seconds)};
  MT_TRY(mt_sum_i64(world, 3, sums));
  MT_TRY(mt_max_i64(world, 3, most));
  *out = (mt_usage){.seconds = 1e-9 * (double)most[2],
                    .cpu_seconds = 1e-6 * (double)sums[0],
                    .peak = most[0],
                    .gpu_peak = most[1],
                    .gpu_busy = -1.0};
  if (sums[1] > 0 && sums[1] == meter->holding.gpus)
    out->gpu_busy = 1e-9 * (double)sums[2] / (double)sums[1];
done:
  return status;
}

mt_status mt_meter_end(const mt_comm *world, mt_meter *meter, mt_usage *stage_out)
{
  mt_status status = MT_OK;
  int64_t peaks[2] = {mt_memory_peak(), gpu_peak(meter)};
  MT_TRY(gather(world, meter, &meter->stage, peaks, stage_out));
  stage_out->peak_is_own = meter->resets;
  meter->peak = larger(meter->peak, peaks[0]);
  meter->gpu_peak = larger(meter->gpu_peak, peaks[1]);
done:
  return status;
}

mt_status mt_meter_read(const mt_comm *world, mt_meter *meter, mt_usage *run_out)
{
  mt_status status = MT_OK;
  int64_t peaks[2];
  peaks[0] = meter->peak = larger(meter->peak, mt_memory_peak());
  peaks[1] = meter->gpu_peak = larger(meter->gpu_peak, gpu_peak(meter));
  MT_TRY(gather(world, meter, &meter->start, peaks, run_out));
done:
  return status;
}
