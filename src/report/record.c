#include "report/record.h"
#include "base/log.h"
#include "base/memory.h"
#include "deck/deck.h"
#include "report/costs.h"
#include "report/job.h"
#include "report/json_file.h"
#include "report/meter.h"
#include "report/versions.h"
#include "store/folder.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct mt_record {
  const mt_run *run;
  mt_meter *meter;
  mt_holding holding; /* of the whole job, if there is one */
  mt_job job;         /* rank 0 */
  char started[32];
  mt_backend_versions versions; /* of the ranks that own a GPU */
  char *path;                   /* OUT/run.json */
  json_t *devices; /* the GPUs in use; NULL on ranks but 0, and without GPUs */
  json_t *stages;  /* of this run; rank 0 */
  json_t *earlier; /* stages of the run.json that was there; may be NULL */
  json_t *starts;  /* earlier ones of this job; may be NULL */
  json_t *written; /* run.json as it is now; rank 0 */
};

/* 1987-03-17T14:05:09.250Z: runs may follow one another within a second. */
static void time_now(char out[32])
{
  struct timespec now;
  struct tm parts;
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &parts);
  size_t length = strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &parts);
  snprintf(out + length, 32 - length, ".%03dZ", (int)(now.tv_nsec / 1000000));
}

/* ---- what earlier runs left --------------------------------------------------------- */

/* All stages that a run.json knows, new reference; NULL if there are none to be read. */
static json_t *earlier_stages(const json_t *before)
{
  json_t *stages = json_incref(json_object_get(before, "stages"));
  json_t *older = json_object_get(before, "earlier_stages");
  if (json_is_array(stages) && json_is_array(older)) json_array_extend(stages, older);
  return stages;
}

static const char *job_id(const json_t *before)
{
  return json_string_value(json_object_get(json_object_get(before, "slurm"), "job_id"));
}

/* If that run was this job, which has been queued again: its starts, new reference; else NULL. */
static json_t *earlier_starts(const json_t *before, const mt_job *job)
{
  static const char *const keys[] = {
      "started", "finished", "exit_status", "seconds",     "ranks",
      "nodes",   "cores",    "node_hours",  "cpu_seconds", "peak_memory_bytes"};
  const char *id = job_id(before);
  if (id == NULL || strcmp(id, job->id) != 0) return NULL;
  json_t *starts = json_object_get(before, "earlier_starts"), *start = json_object();
  starts = json_is_array(starts) ? json_incref(starts) : json_array();
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    json_t *value = json_object_get(before, keys[i]);
    if (value != NULL) json_object_set(start, keys[i], value);
  }
  json_t *queue = json_object_get(json_object_get(before, "slurm"), "queue_seconds");
  if (queue != NULL) json_object_set(start, "queue_seconds", queue);
  json_array_append_new(starts, start);
  return starts;
}

static mt_status begin_root(mt_record *record)
{
  record->path = mt_path_join(record->run->out, "run.json");
  record->stages = json_array();
  if (record->path == NULL || record->stages == NULL)
    return mt_fail(MT_ERR_MEMORY, "no memory for the run record");
  mt_job_ask(&record->job);
  if (record->job.nodes > 0) record->holding.nodes = record->job.nodes;
  if (record->job.cores > 0) record->holding.cores = record->job.cores;
  json_t *before = mt_json_load(record->path);
  record->earlier = earlier_stages(before);
  record->starts = earlier_starts(before, &record->job);
  json_decref(before);
  return MT_OK;
}

/* ---- beginning ---------------------------------------------------------------------- */

/* On rank 0: who owns which GPU. */
static json_t *list_devices(int size, const mt_layout *all)
{
  json_t *devices = json_array();
  for (int r = 0; r < size; r++) {
    if (all[r].device < 0) continue;
    json_array_append_new(
        devices, json_pack("{s:i, s:s, s:s, s:s, s:I}", "rank", r, "host", all[r].host,
                           "bus_id", all[r].gpu.id, "name", all[r].gpu.name,
                           "memory_bytes", (json_int_t)all[r].gpu.memory));
  }
  return devices;
}

static mt_status note_devices(const mt_comm *world, const mt_layout *layout,
                              mt_record *record)
{
  mt_status status = MT_OK;
  mt_layout *all = NULL;
  mt_backend_ask_versions(false, &record->versions);
  if (layout == NULL || layout->n_devices == 0) return MT_OK;
  MT_TRY(
      mt_bcast(world, layout->team_root, sizeof record->versions, &record->versions));
  MT_TRY(mt_agree(world,
                  mt_memory_new(world->size, sizeof *all, "layout", (void **)&all)));
  MT_TRY(mt_allgather(world, sizeof *layout, layout, all));
  if (world->rank == 0) record->devices = list_devices(world->size, all);
done:
  free(all);
  return status;
}

mt_status mt_record_begin(const mt_comm *world, const mt_run *run,
                          const mt_layout *layout, mt_record **record_out)
{
  mt_status status = MT_OK;
  mt_record *record = calloc(1, sizeof *record);
  if (record == NULL) status = mt_fail(MT_ERR_MEMORY, "no memory for the run record");
  MT_TRY(mt_agree(world, status));
  record->run = run;
  time_now(record->started);
  MT_TRY(mt_meter_create(world, layout, run->backend, &record->meter));
  record->holding = *mt_meter_holding(record->meter);
  MT_TRY(note_devices(world, layout, record));
  MT_TRY(mt_agree(world, world->rank == 0 ? begin_root(record) : MT_OK));
  *record_out = record;
  record = NULL;
done:
  mt_record_destroy(record);
  return status;
}

mt_status mt_record_stage_begin(const mt_comm *world, mt_record *record)
{
  return mt_meter_begin(world, record->meter);
}

/* ---- a stage ------------------------------------------------------------------------ */

/* The figures of an earlier run's stage, borrowed; NULL if it has none. */
static json_t *find_stage(json_t *stages, const char *name)
{
  size_t i;
  json_t *stage;
  json_array_foreach(stages, i, stage)
  {
    const char *here = json_string_value(json_object_get(stage, "name"));
    if (here != NULL && strcmp(here, name) == 0) return stage;
  }
  return NULL;
}

/* Adds what was used to an object; what was not measured is left out. */
static void add_usage(const mt_record *record, const mt_usage *usage, json_t *to)
{
  const mt_holding *holding = &record->holding;
  double offered = usage->seconds * (double)holding->cores;
  json_object_set_new(to, "seconds", json_real(usage->seconds));
  json_object_set_new(to, "node_hours",
                      json_real((double)holding->nodes * usage->seconds / 3600.0));
  json_object_set_new(to, "cpu_seconds", json_real(usage->cpu_seconds));
  json_object_set_new(to, "cpu_efficiency",
                      json_real(offered > 0.0 ? usage->cpu_seconds / offered : 0.0));
  json_object_set_new(to, "peak_memory_bytes", json_integer(usage->peak));
  if (holding->gpus == 0) return;
  json_object_set_new(to, "gpu_peak_memory_bytes", json_integer(usage->gpu_peak));
  if (usage->gpu_busy >= 0.0)
    json_object_set_new(to, "gpu_busy_share", json_real(usage->gpu_busy));
}

static json_t *stage_figures(const mt_record *record, const mt_stage *stage,
                             const mt_stage_result *result, const mt_usage *usage)
{
  const mt_holding *holding = &record->holding;
  bool backend = stage->on_team && record->run->backend != NULL;
  json_t *figures = json_pack(
      "{s:s, s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:O*}", "name", stage->name,
      "path", stage->file, "rows", (json_int_t)result->rows, "backend",
      backend ? record->run->backend->name : "cpu", "ranks", (json_int_t)holding->ranks,
      "threads", (json_int_t)holding->threads, "nodes", (json_int_t)holding->nodes,
      "cores", (json_int_t)holding->cores, "gpus",
      (json_int_t)(backend ? holding->gpus : 0), "peak_memory_since",
      usage->peak_is_own ? "stage" : "start", "metrics", result->metrics);
  if (figures != NULL) add_usage(record, usage, figures);
  return figures;
}

/* Adds or replaces a stage: one that was kept has its earlier figures, if they are known. */
static mt_status add_stage(mt_record *record, const char *name, bool kept,
                           json_t *figures)
{
  json_t *earlier = kept ? find_stage(record->earlier, name) : NULL;
  json_t *stage = earlier != NULL ? json_deep_copy(earlier) : json_incref(figures);
  if (stage == NULL || json_object_set_new(stage, "kept", json_boolean(kept)) != 0 ||
      json_array_append(record->stages, stage) != 0) {
    json_decref(stage);
    return mt_fail(MT_ERR_MEMORY, "no memory for the run record");
  }
  json_decref(stage);
  return MT_OK;
}

/* exit_status: a new reference or null; taken over. */
static mt_status record_save(mt_record *record, const mt_usage *run,
                             json_t *exit_status);

static mt_status end_root(mt_record *record, const mt_stage *stage,
                          const mt_stage_result *result, const mt_usage *usage,
                          const mt_usage *run)
{
  mt_status status = MT_OK;
  json_t *figures = stage_figures(record, stage, result, usage);
  MT_REQUIRE(figures != NULL, MT_ERR_INTERNAL,
             "the figures of stage %s cannot be recorded", stage->name);
  MT_TRY(add_stage(record, stage->name, result->kept, figures));
  MT_TRY(record_save(record, run, json_null()));
done:
  json_decref(figures);
  return status;
}

mt_status mt_record_stage_end(const mt_comm *world, mt_record *record,
                              const mt_stage *stage, const mt_stage_result *result)
{
  mt_status status = MT_OK;
  mt_usage usage, run;
  MT_TRY(mt_meter_end(world, record->meter, &usage));
  MT_TRY(mt_meter_read(world, record->meter, &run));
  mt_status root = MT_OK;
  if (world->rank == 0) root = end_root(record, stage, result, &usage, &run);
  MT_TRY(mt_agree(world, root));
done:
  return status;
}

/* ---- run.json ----------------------------------------------------------------------- */

static void add_known(json_t *object, const char *key, int64_t value)
{
  if (value >= 0) json_object_set_new(object, key, json_integer(value));
}

/* NULL outside Slurm. */
static json_t *slurm_job(const mt_job *job)
{
  if (job->id[0] == '\0') return NULL;
  json_t *slurm = json_pack("{s:s}", "job_id", job->id);
  add_known(slurm, "components", job->components);
  add_known(slurm, "cpus_per_task", job->cpus_per_task);
  add_known(slurm, "restarts", job->restarts);
  add_known(slurm, "queue_seconds", job->queue_seconds);
  return slurm;
}

/* The stages of earlier runs that this one has not come to: a later run may keep them. */
static json_t *stages_to_come(const mt_record *record)
{
  json_t *rest = json_array(), *stage;
  size_t i;
  json_array_foreach(record->earlier, i, stage)
  {
    const char *name = json_string_value(json_object_get(stage, "name"));
    if (name != NULL && find_stage(record->stages, name) == NULL)
      json_array_append(rest, stage);
  }
  return rest;
}

static json_t *whole_record(const mt_record *record, const mt_usage *run,
                            json_t *exit_status)
{
  const mt_holding *holding = &record->holding;
  char now[32];
  time_now(now);
  json_t *root = json_pack(
      "{s:s, s:i, s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:s, s:O*, s:o*, s:O*}",
      "program", "metatopics", "format", MT_RECORD_FORMAT, "started", record->started,
      "finished", now, "exit_status", exit_status, "ranks", (json_int_t)holding->ranks,
      "threads", (json_int_t)holding->threads, "nodes", (json_int_t)holding->nodes,
      "cores", (json_int_t)holding->cores, "gpus", (json_int_t)holding->gpus, "backend",
      record->run->backend != NULL ? record->run->backend->name : "cpu", "devices",
      record->devices, "slurm", slurm_job(&record->job), "earlier_starts",
      record->starts);
  json_t *rest =
      json_pack("{s:o*, s:o*, s:O, s:o}", "versions", mt_versions(&record->versions),
                "parameters", mt_parameters_json(record->run->parameters), "stages",
                record->stages, "earlier_stages", stages_to_come(record));
  if (root != NULL && rest != NULL) add_usage(record, run, root);
  if (root != NULL && rest != NULL && json_object_update(root, rest) == 0) {
    json_decref(rest);
    return root;
  }
  json_decref(rest);
  json_decref(root);
  return NULL;
}

static mt_status record_save(mt_record *record, const mt_usage *run,
                             json_t *exit_status)
{
  mt_status status = MT_OK;
  json_t *root = whole_record(record, run, exit_status);
  MT_REQUIRE(root != NULL, MT_ERR_MEMORY, "no memory for the run record");
  json_decref(record->written);
  record->written = json_incref(root);
  MT_TRY(mt_json_save(root, record->path));
done:
  json_decref(root);
  return status;
}

mt_status mt_record_end(const mt_comm *world, mt_record *record, mt_status outcome)
{
  mt_status status = MT_OK, root = MT_OK;
  mt_usage run;
  MT_TRY(mt_meter_read(world, record->meter, &run));
  if (world->rank == 0)
    root = record_save(record, &run, json_integer(mt_exit_code(outcome)));
  MT_TRY(mt_agree(world, root));
done:
  return status;
}

void mt_record_print(const mt_record *record, FILE *out)
{
  if (record->written != NULL) mt_costs_print(record->written, out);
}

void mt_record_destroy(mt_record *record)
{
  if (record == NULL) return;
  mt_meter_destroy(record->meter);
  json_decref(record->stages);
  json_decref(record->earlier);
  json_decref(record->starts);
  json_decref(record->written);
  json_decref(record->devices);
  free(record->path);
  free(record);
}
