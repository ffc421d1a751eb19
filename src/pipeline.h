/* The stages, one after the other: what is there is kept, the rest is done. */
#ifndef MT_PIPELINE_H
#define MT_PIPELINE_H
#include "comm/layout.h"
#include "report/record.h"
#include "stage/stage.h"

/**
 * Runs stages[from .. until] in order. A stage whose files are there, undamaged, with the
 * fingerprint that it would write now is kept, unless run->force. Between stages a signal is heeded.
 * world    all ranks; a stage of the backend's team runs on layout->team alone
 * from     the stages before it are taken as they lie in the folder: MT_ERR_INPUT, naming
 *          the first that is missing or damaged
 * Errors   a stage's own; MT_STOPPED when a signal came
 */
mt_status mt_pipeline_run(const mt_comm *world, const mt_layout *layout,
                          const mt_run *run, const mt_stage *const *stages, int from,
                          int until, mt_record *record);

#endif
