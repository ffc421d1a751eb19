#include "report/record.h"
#include "report/json_file.h"
#include "report/versions.h"
#include "base/log.h"
#include "base/memory.h"
#include "deck/deck.h"
#include "store/folder.h"

#include <fcntl.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

struct mt_record {
  const mt_run *run;
  int64_t ranks, threads, nodes, gpus; /* threads: of all ranks together */
  double began, stage_began;           /* mt_seconds */
  int64_t stage_cpu;                   /* microseconds of this rank */
  char started[32];
  mt_backend_versions versions; /* of the ranks that own a GPU */
  char *path;                   /* OUT/run.json */
  json_t *devices; /* the GPUs in use; NULL on ranks but 0, and without GPUs */
  json_t *stages;  /* of this run; rank 0 */
  json_t *earlier; /* stages of the run.json that was there; may be NULL */
};

/* 1987-03-17T14:05:09Z */
static void time_now(char out[32])
{
  time_t now = time(NULL);
  struct tm parts;
  gmtime_r(&now, &parts);
  strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

static int64_t cpu_microseconds(void)
{
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
         usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

/* From here on the kernel counts the peak of resident memory anew. Where it cannot, a
 * stage's peak is that of the process so far. */
static void memory_peak_reset(void)
{
  int file = open("/proc/self/clear_refs", O_WRONLY);
  if (file < 0) return;
  if (write(file, "5", 1) != 1) mt_debug("peak memory is counted over the whole run");
  close(file);
}

/* Ranks that are first on their node. */
static mt_status count_nodes(const mt_comm *world, int64_t *nodes_out)
{
  mt_status status = MT_OK;
  mt_comm node = {0};
  MT_TRY(mt_comm_node(world, &node));
  *nodes_out = node.rank == 0 ? 1 : 0;
  MT_TRY(mt_sum_i64(world, 1, nodes_out));
done:
  mt_comm_free(&node);
  return status;
}

/* All stages that a run.json knows, new reference; NULL if there is none to be read. */
static json_t *earlier_stages(const char *path)
{
  json_t *record = mt_json_load(path);
  json_t *stages = json_incref(json_object_get(record, "stages"));
  json_t *before = json_object_get(record, "earlier_stages");
  if (json_is_array(stages) && json_is_array(before)) json_array_extend(stages, before);
  json_decref(record);
  return stages;
}

static mt_status begin_root(mt_record *record)
{
  record->path = mt_path_join(record->run->out, "run.json");
  record->stages = json_array();
  if (record->path == NULL || record->stages == NULL)
    return mt_fail(MT_ERR_MEMORY, "no memory for the run record");
  record->earlier = earlier_stages(record->path);
  return MT_OK;
}

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
  record->gpus = layout->n_devices;
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
  record->ranks = world->size;
  record->began = record->stage_began = mt_seconds();
  record->threads = omp_get_max_threads();
  time_now(record->started);
  MT_TRY(mt_sum_i64(world, 1, &record->threads));
  MT_TRY(count_nodes(world, &record->nodes));
  MT_TRY(note_devices(world, layout, record));
  MT_TRY(mt_agree(world, world->rank == 0 ? begin_root(record) : MT_OK));
  *record_out = record;
  record = NULL;
done:
  mt_record_destroy(record);
  return status;
}

/* Bytes of this rank's GPU since it was asked last. */
static int64_t gpu_memory_peak(const mt_record *record)
{
  mt_backend *be = record->run->backend;
  return be != NULL && be->memory_peak != NULL ? be->memory_peak(be) : 0;
}

mt_status mt_record_stage_begin(const mt_comm *world, mt_record *record)
{
  memory_peak_reset();
  gpu_memory_peak(record);
  record->stage_began = mt_seconds();
  record->stage_cpu = cpu_microseconds();
  return mt_barrier(world);
}

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

static bool uses_backend(const char *stage)
{
  return strcmp(stage, "knn") == 0 || strcmp(stage, "umap") == 0 ||
         strcmp(stage, "hdbscan") == 0;
}

static json_t *stage_figures(const mt_record *record, const mt_stage *stage,
                             const mt_stage_result *result, double seconds,
                             double cpu_seconds, const int64_t peak[2])
{
  bool backend = uses_backend(stage->name) && record->run->backend != NULL;
  double offered = seconds * (double)record->threads;
  return json_pack(
      "{s:s, s:s, s:I, s:f, s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:O*}", "name",
      stage->name, "path", stage->file, "rows", (json_int_t)result->rows, "seconds",
      seconds, "backend", backend ? record->run->backend->name : "cpu", "ranks",
      (json_int_t)record->ranks, "threads", (json_int_t)record->threads, "gpus",
      (json_int_t)(backend ? record->gpus : 0), "peak_memory_bytes",
      (json_int_t)peak[0], "gpu_peak_memory_bytes", (json_int_t)peak[1], "cpu_seconds",
      cpu_seconds, "cpu_efficiency", offered > 0.0 ? cpu_seconds / offered : 0.0,
      "metrics", result->metrics);
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

static mt_status record_save(mt_record *record, json_t *exit_status);

static mt_status end_root(mt_record *record, const mt_stage *stage,
                          const mt_stage_result *result, double seconds,
                          double cpu_seconds, const int64_t peak[2])
{
  mt_status status = MT_OK;
  json_t *figures = stage_figures(record, stage, result, seconds, cpu_seconds, peak);
  MT_REQUIRE(figures != NULL, MT_ERR_INTERNAL,
             "the figures of stage %s cannot be recorded", stage->name);
  MT_TRY(add_stage(record, stage->name, result->kept, figures));
  MT_TRY(record_save(record, json_null()));
done:
  json_decref(figures);
  return status;
}

mt_status mt_record_stage_end(const mt_comm *world, mt_record *record,
                              const mt_stage *stage, const mt_stage_result *result)
{
  mt_status status = MT_OK;
  int64_t peak[2] = {mt_memory_peak(), gpu_memory_peak(record)};
  int64_t cpu = cpu_microseconds() - record->stage_cpu;
  MT_TRY(mt_max_i64(world, 2, peak));
  MT_TRY(mt_sum_i64(world, 1, &cpu));
  double seconds = mt_seconds() - record->stage_began;
  mt_status root = MT_OK;
  if (world->rank == 0)
    root = end_root(record, stage, result, seconds, 1e-6 * (double)cpu, peak);
  MT_TRY(mt_agree(world, root));
done:
  return status;
}

/* The job and what it is charged; NULL outside Slurm. */
static json_t *slurm_job(const mt_record *record, double seconds)
{
  const char *job = getenv("SLURM_JOB_ID"), *nodes = getenv("SLURM_JOB_NUM_NODES");
  if (job == NULL || job[0] == '\0') return NULL;
  int64_t count = nodes != NULL ? atoll(nodes) : 0;
  if (count < 1) count = record->nodes;
  return json_pack("{s:s, s:I, s:f}", "job_id", job, "nodes", (json_int_t)count,
                   "node_hours", (double)count * seconds / 3600.0);
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

/* exit_status: a new reference or null; taken over. */
static mt_status record_save(mt_record *record, json_t *exit_status)
{
  mt_status status = MT_OK;
  char now[32];
  double seconds = mt_seconds() - record->began;
  time_now(now);
  json_t *root = json_pack(
      "{s:s, s:s, s:s, s:f, s:o, s:I, s:I, s:I, s:I, s:s, s:O*, s:o*, s:o*, s:o*, "
      "s:O, s:o}",
      "program", "metatopics", "started", record->started, "finished", now, "seconds",
      seconds, "exit_status", exit_status, "ranks", (json_int_t)record->ranks,
      "threads", (json_int_t)record->threads, "nodes", (json_int_t)record->nodes,
      "gpus", (json_int_t)record->gpus, "backend",
      record->run->backend != NULL ? record->run->backend->name : "cpu", "devices",
      record->devices, "slurm", slurm_job(record, seconds), "versions",
      mt_versions(&record->versions), "parameters",
      mt_parameters_json(record->run->parameters), "stages", record->stages,
      "earlier_stages", stages_to_come(record));
  MT_REQUIRE(root != NULL, MT_ERR_MEMORY, "no memory for the run record");
  MT_TRY(mt_json_save(root, record->path));
done:
  json_decref(root);
  return status;
}

mt_status mt_record_write(mt_record *record, mt_status outcome)
{
  if (record->path == NULL) return MT_OK; /* not rank 0 */
  return record_save(record, json_integer(mt_exit_code(outcome)));
}

/* Of one stage: MiB of the rank, or of the GPU, that took most. */
static double peak_of(const json_t *stage, const char *key)
{
  return json_number_value(json_object_get(stage, key)) / 1048576.0;
}

static bool on_gpus(const json_t *stages)
{
  size_t i;
  json_t *stage;
  json_array_foreach(stages, i, stage)
  {
    if (peak_of(stage, "gpu_peak_memory_bytes") > 0.0) return true;
  }
  return false;
}

void mt_record_print_stages(const json_t *stages, FILE *out)
{
  size_t i;
  json_t *stage;
  double total = 0.0;
  bool gpus = on_gpus(stages);
  fprintf(out, "%-8s %12s %10s %12s %s%6s  %s\n", "stage", "rows", "seconds",
          "memory MiB", gpus ? "   GPU MiB " : "", "CPU %", "");
  json_array_foreach(stages, i, stage)
  {
    const char *name = json_string_value(json_object_get(stage, "name"));
    bool kept = json_is_true(json_object_get(stage, "kept"));
    double seconds = json_number_value(json_object_get(stage, "seconds"));
    if (!kept) total += seconds;
    fprintf(out, "%-8s %12lld %10.2f %12.0f ", name != NULL ? name : "?",
            (long long)json_integer_value(json_object_get(stage, "rows")), seconds,
            peak_of(stage, "peak_memory_bytes"));
    if (gpus) fprintf(out, "%10.0f ", peak_of(stage, "gpu_peak_memory_bytes"));
    fprintf(out, "%6.0f  %s\n",
            100.0 * json_number_value(json_object_get(stage, "cpu_efficiency")),
            kept ? "kept from an earlier run" : "");
  }
  fprintf(out, "%-8s %12s %10.2f\n", "made", "", total);
}

void mt_record_print(const mt_record *record, FILE *out)
{
  if (record->stages != NULL) mt_record_print_stages(record->stages, out);
}

void mt_record_destroy(mt_record *record)
{
  if (record == NULL) return;
  json_decref(record->stages);
  json_decref(record->earlier);
  json_decref(record->devices);
  free(record->path);
  free(record);
}
