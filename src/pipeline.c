#include "pipeline.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "store/checksum.h"
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

static mt_status is_whole(const mt_comm *world, const mt_run *run,
                          const mt_stage *stage, bool *whole_out)
{
  mt_status status = MT_OK;
  if (stage->is_whole != NULL) return stage->is_whole(world, run, whole_out);
  char *path = mt_path_join(run->out, stage->file);
  MT_TRY(mt_agree(world, path != NULL ? MT_OK : MT_ERR_MEMORY));
  MT_TRY(mt_checksum_verify(world, path, whole_out));
done:
  free(path);
  return status;
}

/* A stage before the first one: its file is taken as it lies there, if it is whole. */
static mt_status require_stage(const mt_comm *world, const mt_run *run,
                               const mt_stage *stage, const char *first)
{
  mt_status status = MT_OK;
  bool whole = false;
  MT_TRY(mt_agree(world, world->rank == 0 ? require_file(run, stage) : MT_OK));
  MT_TRY(is_whole(world, run, stage, &whole));
  if (!whole && world->rank == 0)
    status = mt_fail(MT_ERR_INPUT,
                     "%s/%s is damaged: run again without \"--from %s\", and the stage "
                     "\"%s\" makes it again",
                     run->out, stage->file, first, stage->name);
  MT_TRY(mt_agree(world, status));
done:
  return status;
}

/* On rank 0: has what is there that fingerprint? */
static mt_status ask(const mt_run *run, const mt_stage *stage,
                     const mt_fingerprint *made_by, bool *done_out)
{
  mt_status status = MT_OK;
  char *path = NULL;
  if (stage->is_done != NULL) {
    *done_out = stage->is_done(run, made_by);
    return MT_OK;
  }
  path = mt_path_join(run->out, stage->file);
  MT_REQUIRE(path != NULL, MT_ERR_MEMORY, "no memory");
  mt_fingerprint there = mt_store_fingerprint(path);
  *done_out = mt_fingerprint_equal(&there, made_by);
done:
  free(path);
  return status;
}

/* What the stage would write now, and whether that is there already, the same on all ranks.
 * Checksums go first: HDF5 is not given files that a disk has changed. */
static mt_status look(const mt_comm *world, const mt_run *run, const mt_stage *stage,
                      mt_fingerprint *made_by, bool *done_out)
{
  mt_status status = MT_OK;
  bool root = world->rank == 0, done = false;
  MT_TRY(mt_agree(world, root ? stage->fingerprint(run, made_by) : MT_OK));
  MT_TRY(mt_bcast(world, 0, sizeof *made_by, made_by));
  if (!run->force) MT_TRY(is_whole(world, run, stage, &done));
  if (done) MT_TRY(mt_agree(world, root ? ask(run, stage, made_by, &done) : MT_OK));
  MT_TRY(mt_bcast(world, 0, sizeof done, &done));
  *done_out = done;
done:
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
  mt_fingerprint made_by = {""};
  bool tells = world->rank == 0 || world->rank == layout->team_root;
  mt_stage_result result = {.metrics = tells ? json_object() : NULL};
  mt_memory_trim(); /* the peak is to be this stage's own */
  MT_TRY(mt_record_stage_begin(world, record));
  if (!stage->in_parts) MT_TRY(look(world, run, stage, &made_by, &result.kept));
  if (!result.kept) MT_TRY(work(world, layout, run, stage, &made_by, &result));
  if (result.kept)
    mt_info("%s: %s is there, made with the same input and parameters: kept",
            stage->name, stage->file);
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
    MT_TRY(require_stage(world, run, stages[s], stages[from]->name));
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
