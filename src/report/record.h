/* OUT/run.json: what a run did and what it took, stage by stage. Written again after every
 * stage, so that a run that was killed leaves the figures of the stages that it finished. */
#ifndef MT_REPORT_RECORD_H
#define MT_REPORT_RECORD_H
#include "stage/stage.h"

#include <stdio.h>

/* run.json's "format": raised when a figure changes its name or meaning. */
enum { MT_RECORD_FORMAT = 2 };

typedef struct mt_record mt_record;

/**
 * Starts the clocks of a run. Rank 0 reads OUT/run.json of an earlier run, if there is one: a
 * stage that is kept keeps its figures, and earlier starts of the same Slurm job (it was queued
 * again) are listed. Collective.
 * run      borrowed until mt_record_destroy
 * layout   whose GPUs the run uses; NULL: none
 */
mt_status mt_record_begin(const mt_comm *world, const mt_run *run,
                          const mt_layout *layout, mt_record **record_out);

/* Before a stage: its usage (report/meter.h) counts from here. Collective. */
mt_status mt_record_stage_begin(const mt_comm *world, mt_record *record);

/**
 * After a stage, done or kept: takes its figures and writes run.json (exit_status null).
 * Collective.
 * result   as the stage filled it; used on rank 0
 */
mt_status mt_record_stage_end(const mt_comm *world, mt_record *record,
                              const mt_stage *stage, const mt_stage_result *result);

/* Writes run.json with the run's outcome, MT_OK or what stopped it, the same on all ranks.
 * Collective. */
mt_status mt_record_end(const mt_comm *world, mt_record *record, mt_status outcome);

/* What was written last, as mt_costs_print has it. Rank 0 alone; does nothing on the others. */
void mt_record_print(const mt_record *record, FILE *out);

void mt_record_destroy(mt_record *record); /* NULL is fine */

#endif
