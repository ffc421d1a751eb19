/* What all ranks together use: wall and CPU time, memory, how busy their GPUs are; for a stage,
 * and for the run so far. */
#ifndef MT_REPORT_METER_H
#define MT_REPORT_METER_H
#include "stage/stage.h"

typedef struct mt_meter mt_meter;

typedef struct mt_usage {
  double seconds;
  double cpu_seconds; /* of all ranks, their threads, and programs that they ran */
  int64_t peak;       /* resident bytes of the largest rank */
  bool peak_is_own; /* of this stage or run alone; false: since the processes started */
  int64_t gpu_peak; /* bytes of the GPU that held most; 0 without GPUs */
  double gpu_busy;  /* share, mean over the GPUs (gpu_watch.h); -1: not measured */
} mt_usage;

/**
 * Starts to measure. Collective.
 * layout   who owns which GPU; NULL: none
 * backend  asked for its device's memory; borrowed; NULL: none
 */
mt_status mt_meter_create(const mt_comm *world, const mt_layout *layout,
                          mt_backend *backend, mt_meter **meter_out);
void mt_meter_destroy(mt_meter *meter); /* NULL is fine */

/* What is held, the same on all ranks. Outside of a job that is what the ranks can use at once: on
 * each node their threads, but no more than the cores they may run on. */
typedef struct mt_holding {
  int64_t ranks, threads, nodes, cores, gpus;
} mt_holding;
const mt_holding *mt_meter_holding(const mt_meter *meter);

/* A stage begins: its usage counts from here. Collective. */
mt_status mt_meter_begin(const mt_comm *world, mt_meter *meter);

/* A stage ends; the same on all ranks. Collective. */
mt_status mt_meter_end(const mt_comm *world, mt_meter *meter, mt_usage *stage_out);

/* Since mt_meter_create; the same on all ranks. Collective. */
mt_status mt_meter_read(const mt_comm *world, mt_meter *meter, mt_usage *run_out);

#endif
