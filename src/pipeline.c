#include "pipeline.h"
#include "base/log.h"
#include "base/stop.h"
#include "store/folder.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Is the stage's file in the folder? */
static mt_status require_file(const mt_run *run, const mt_stage *stage)
{
  mt_status status = MT_OK;
  char *path = mt_path_join(run->out, stage->file);
  MT_REQUIRE(path != NULL, MT_ERR_MEMORY, "no memory");
  MT_REQUIRE(access(path, R_OK) == 0, MT_ERR_INPUT,
             "%s is not there: run the stages up to \"%s\" first (--until %s)", path,
             stage->name, stage->name);
done:
  free(path);
  return status;
}

/* On rank 0: what the stage would write now, and whether that is there already. */
static mt_status look(const mt_run *run, const mt_stage *stage, mt_fingerprint *made_by,
                      bool *done_out)
{
  mt_status status = MT_OK;
  char *path = NULL;
  MT_TRY(stage->fingerprint(run, made_by));
  if (run->force) goto done;
  if (stage->is_done != NULL) {
    *done_out = stage->is_done(run, made_by);
    goto done;
  }
  path = mt_path_join(run->out, stage->file);
  MT_REQUIRE(path != NULL, MT_ERR_MEMORY, "no memory");
  mt_fingerprint there = mt_store_fingerprint(path);
  *done_out = mt_fingerprint_equal(&there, made_by);
done:
  free(path);
  return status;
}

/* Rank 0 keeps the record, also where it has no part in the team. */
static mt_status bring_result(const mt_comm *world, const mt_layout *layout,
                              mt_stage_result *result)
{
  mt_status status = MT_OK;
  char *text = NULL;
  size_t size = 0;
  json_t *parcel = NULL;
  if (layout->team_root == 0) return MT_OK;
  if (world->rank == layout->team_root) {
    parcel = json_pack("{s:I, s:O}", "rows", (json_int_t)result->rows, "metrics",
                       result->metrics);
    text = json_dumps(parcel, JSON_REAL_PRECISION(17));
    if (text == NULL)
      status = mt_fail(MT_ERR_MEMORY, "no memory for a stage's figures");
    size = text != NULL ? strlen(text) : 0;
  }
  MT_TRY(mt_agree(world, status));
  MT_TRY(mt_bcast_bytes(world, layout->team_root, &size, &text));
  if (world->rank == 0) {
    parcel = json_loadb(text, size, 0, NULL);
    result->rows = json_integer_value(json_object_get(parcel, "rows"));
    json_object_update(result->metrics, json_object_get(parcel, "metrics"));
  }
done:
  json_decref(parcel);
  free(text);
  return status;
}

/* The work, on the ranks that the stage wants; the others wait for the verdict. */
static mt_status work(const mt_comm *world, const mt_layout *layout, const mt_run *run,
                      const mt_stage *stage, const mt_fingerprint *made_by,
                      mt_stage_result *result)
{
  mt_status status = MT_OK;
  if (!stage->on_team) return mt_agree(world, stage->work(world, run, made_by, result));
  mt_log_speak(world->rank == layout->team_root);
  if (layout->team.size > 0) status = stage->work(&layout->team, run, made_by, result);
  mt_log_speak(world->rank == 0);
  status = mt_agree(world, status);
  return status == MT_OK ? bring_result(world, layout, result) : status;
}

static mt_status run_stage(const mt_comm *world, const mt_layout *layout,
                           const mt_run *run, const mt_stage *stage, mt_record *record)
{
  mt_status status = MT_OK;
  struct {
    mt_fingerprint made_by;
    bool done;
  } plan;
  bool tells = world->rank == 0 || world->rank == layout->team_root;
  mt_stage_result result = {.metrics = tells ? json_object() : NULL};
  memset(&plan, 0, sizeof plan);
  MT_TRY(mt_record_stage_begin(world, record));
  MT_TRY(mt_agree(world, world->rank == 0 ? look(run, stage, &plan.made_by, &plan.done)
                                          : MT_OK));
  MT_TRY(mt_bcast(world, 0, sizeof plan, &plan));
  result.kept = plan.done;
  if (plan.done)
    mt_info("%s: %s is there, made with the same input and parameters: kept",
            stage->name, stage->file);
  else
    MT_TRY(work(world, layout, run, stage, &plan.made_by, &result));
  MT_TRY(mt_record_stage_end(world, record, stage, &result));
done:
  json_decref(result.metrics);
  return status;
}

mt_status mt_pipeline_run(const mt_comm *world, const mt_layout *layout,
                          const mt_run *run, const mt_stage *const *stages, int from,
                          int until, mt_record *record)
{
  mt_status status = MT_OK;
  for (int s = 0; s < from; s++)
    MT_TRY(mt_agree(world, world->rank == 0 ? require_file(run, stages[s]) : MT_OK));
  for (int s = from; s <= until; s++) {
    if (mt_stop_agreed(world)) {
      status = MT_STOPPED;
      goto done;
    }
    MT_TRY(run_stage(world, layout, run, stages[s], record));
  }
done:
  return status;
}
