#include "report/show.h"
#include "base/log.h"
#include "base/memory.h"
#include "corpus/corpus.h"
#include "deck/deck.h"
#include "lda/fits.h"
#include "report/costs.h"
#include "report/json_file.h"
#include "report/tables.h"
#include "stage/stage.h"
#include "store/folder.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A stage, the files that it leaves and the dataset whose rows tell how much it made. */
typedef struct mt_shown {
  const mt_stage *stage;
  const char *files, *measure;
} mt_shown;

static const mt_shown shown[] = {
    {&mt_stage_corpus, "corpus.h5", "/documents/id"},
    {&mt_stage_lda, "lda/*/seed-*.h5", NULL},
    {&mt_stage_matrix, "topics.h5", "/matrix"},
    {&mt_stage_knn, "knn.h5", "/indices"},
    {&mt_stage_umap, "umap.h5", "/embedding"},
    {&mt_stage_hdbscan, "hdbscan.h5", "/labels"},
    {&mt_stage_map, "summary.json", NULL},
};
enum { N_SHOWN = sizeof shown / sizeof *shown };

typedef enum mt_state {
  MT_STATE_MISSING,
  MT_STATE_PART,
  MT_STATE_STALE,
  MT_STATE_UNKNOWN,
  MT_STATE_DONE
} mt_state;

/* What is known of the run in a folder. */
typedef struct mt_folder_run {
  const char *folder;
  json_t *record;           /* run.json; NULL if there is none */
  mt_parameters parameters; /* as recorded */
  bool have_parameters;
  int64_t fits_wanted; /* by the parameters; -1: not known */
  int64_t fits_there;  /* of those, whole and made with them */
} mt_folder_run;

/* ---- parameters out of the record --------------------------------------------------- */

static bool format_value(const json_t *value, char *text, size_t size)
{
  if (json_is_integer(value))
    snprintf(text, size, "%lld", (long long)json_integer_value(value));
  else if (json_is_real(value)) { /* with a point: "1.0" is a share, "1" a count */
    int wrote = snprintf(text, size, "%.17g", json_real_value(value));
    if (strpbrk(text, ".e") == NULL) snprintf(text + wrote, size - (size_t)wrote, ".0");
  } else if (json_is_boolean(value))
    snprintf(text, size, "%s", json_is_true(value) ? "true" : "false");
  else
    return false;
  return true;
}

static mt_status set_parameter(mt_parameters *parameters, const char *section,
                               const char *name, const json_t *value)
{
  mt_status status = MT_OK;
  char number[64], *assignment = NULL;
  const char *text = json_string_value(value);
  if (text == NULL && format_value(value, number, sizeof number)) text = number;
  MT_REQUIRE(text != NULL, MT_ERR_INPUT,
             "run.json: the value of %s.%s is neither text nor "
             "number",
             section, name);
  MT_REQUIRE(asprintf(&assignment, "%s.%s=%s", section, name, text) > 0, MT_ERR_MEMORY,
             "no memory for a parameter");
  MT_TRY(mt_parameters_set(parameters, assignment));
done:
  free(assignment);
  return status;
}

/* The same parameter, with the same value? */
static bool is_default(const json_t *defaults, const char *section, const char *name,
                       const json_t *value)
{
  const json_t *other = json_object_get(json_object_get(defaults, section), name);
  return other != NULL && json_equal(other, value) != 0;
}

/* Takes over what differs from the defaults, and prints it. */
static mt_status take_parameters(mt_folder_run *run, FILE *out)
{
  mt_status status = MT_OK;
  json_t *defaults = NULL, *names, *value;
  const char *section, *name;
  json_t *recorded = json_object_get(run->record, "parameters");
  MT_TRY(mt_parameters_default(&run->parameters));
  run->have_parameters = true;
  defaults = mt_parameters_json(&run->parameters);
  fputs("\nparameters that differ from the defaults\n", out);
  json_object_foreach(recorded, section, names)
  {
    json_object_foreach(names, name, value)
    {
      if (is_default(defaults, section, name, value)) continue;
      char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
      fprintf(out, "  %s.%s = %s\n", section, name, text != NULL ? text : "?");
      free(text);
      MT_TRY(set_parameter(&run->parameters, section, name, value));
    }
  }
done:
  json_decref(defaults);
  return status;
}

/* ---- files -------------------------------------------------------------------------- */

/* Files that a pattern finds, and their bytes. */
static mt_status count_files(const char *folder, const char *pattern,
                             int64_t *count_out, int64_t *bytes_out)
{
  mt_status status = MT_OK;
  glob_t found = {0};
  struct stat info;
  int64_t count = 0, bytes = 0;
  char *path = mt_path_join(folder, pattern);
  MT_REQUIRE(path != NULL, MT_ERR_MEMORY, "no memory for a path");
  int answer = glob(path, 0, NULL, &found);
  MT_REQUIRE(answer == 0 || answer == GLOB_NOMATCH, MT_ERR_IO, "cannot look into %s",
             folder);
  for (size_t i = 0; i < found.gl_pathc; i++) {
    if (stat(found.gl_pathv[i], &info) != 0) continue;
    count++;
    bytes += info.st_size;
  }
  *count_out = count;
  *bytes_out = bytes;
done:
  globfree(&found);
  free(path);
  return status;
}

/* "225 x 13713", from a file's dataset. */
static void measure(const char *folder, const mt_shown *row, char *text, size_t size)
{
  mt_file *file = NULL;
  int64_t rows = 0, width = 0;
  char *path = row->measure != NULL ? mt_path_join(folder, row->files) : NULL;
  text[0] = '\0';
  if (path != NULL && mt_store_open(path, &file) == MT_OK &&
      mt_store_shape(file, row->measure, &rows, &width) == MT_OK)
    snprintf(text, size, width > 0 ? "%lld x %lld" : "%lld", (long long)rows,
             (long long)width);
  mt_store_close(file);
  free(path);
}

/* What the recorded run says to the stages' own questions; the backend only has a name. */
static mt_run as_run(const mt_folder_run *run, mt_backend *named)
{
  const char *backend = json_string_value(json_object_get(run->record, "backend"));
  *named = (mt_backend){.name = backend != NULL ? backend : "cpu"};
  return (mt_run){.parameters = &run->parameters, .out = run->folder, .backend = named};
}

/* The fits that the parameters ask for, and how many of them are there. */
static mt_status count_fits(mt_folder_run *run)
{
  mt_status status = MT_OK;
  mt_fits fits = {0};
  mt_backend named;
  mt_run job = as_run(run, &named);
  char *path = mt_path_join(run->folder, "corpus.h5");
  if (path == NULL) return MT_ERR_MEMORY;
  if (!run->have_parameters || access(path, R_OK) != 0) goto done;
  MT_TRY(mt_fits_list(&job, &fits));
  run->fits_wanted = fits.n;
  for (int64_t i = 0; i < fits.n; i++)
    run->fits_there += mt_fit_is_there(&fits.fits[i]);
done:
  mt_fits_close(&fits);
  free(path);
  return status;
}

/* Is what is there what the recorded parameters would make of what lies before it? The
 * corpus is taken as it is: its source may be gone. */
static mt_state compare(const mt_folder_run *run, const mt_shown *row)
{
  mt_fingerprint expected = {""}, there;
  mt_backend named;
  mt_run job = as_run(run, &named);
  char *path = mt_path_join(run->folder, row->files);
  if (path == NULL || !run->have_parameters) {
    free(path);
    return MT_STATE_UNKNOWN;
  }
  there = mt_store_fingerprint(path);
  free(path);
  if (row->stage == &mt_stage_corpus)
    return there.hex[0] != '\0' ? MT_STATE_DONE : MT_STATE_STALE;
  if (row->stage->fingerprint(&job, &expected) != MT_OK) return MT_STATE_UNKNOWN;
  bool done = row->stage->is_done != NULL ? row->stage->is_done(&job, &expected)
                                          : mt_fingerprint_equal(&there, &expected);
  return done ? MT_STATE_DONE : MT_STATE_STALE;
}

static void print_size(int64_t bytes, FILE *out)
{
  if (bytes < 10240)
    fprintf(out, "%9lld B  ", (long long)bytes);
  else if (bytes < (int64_t)10 << 20)
    fprintf(out, "%9.0f KiB", (double)bytes / 1024.0);
  else
    fprintf(out, "%9.0f MiB", (double)bytes / 1048576.0);
}

static mt_state state_of(const mt_folder_run *run, const mt_shown *row, int64_t count)
{
  if (count == 0) return MT_STATE_MISSING;
  mt_state state = compare(run, row);
  bool lacks = row->stage == &mt_stage_lda && run->fits_there < run->fits_wanted;
  return lacks && run->fits_there > 0 ? MT_STATE_PART : state;
}

static void print_state(mt_state state, bool before_changed, FILE *out)
{
  static const char *const says[] = {
      [MT_STATE_MISSING] = "not there yet",
      [MT_STATE_PART] = "some are there",
      [MT_STATE_STALE] = "of other input or parameters: a run makes it again",
      [MT_STATE_UNKNOWN] = "there",
      [MT_STATE_DONE] = "whole"};
  if (before_changed && state >= MT_STATE_STALE)
    fputs("waits for a stage before it\n", out);
  else
    fprintf(out, "%s\n", says[state]);
}

/* One stage's line; its state. */
static mt_status print_stage(const mt_folder_run *run, const mt_shown *row,
                             bool before_changed, mt_state *state_out, FILE *out)
{
  mt_status status = MT_OK;
  int64_t count = 0, bytes = 0;
  char rows[64] = "";
  MT_TRY(count_files(run->folder, row->files, &count, &bytes));
  *state_out = state_of(run, row, count);
  if (row->stage == &mt_stage_lda && run->fits_wanted >= 0)
    snprintf(rows, sizeof rows, "%lld of %lld", (long long)run->fits_there,
             (long long)run->fits_wanted);
  else if (count > 0)
    measure(run->folder, row, rows, sizeof rows);
  fprintf(out, "  %-8s %-16s %14s ", row->stage->name, row->files, rows);
  print_size(bytes, out);
  fputs("  ", out);
  print_state(*state_out, before_changed, out);
done:
  return status;
}

static mt_status print_stages(const mt_folder_run *run, FILE *out)
{
  mt_status status = MT_OK;
  const mt_shown *next = NULL;
  fprintf(out, "\n  %-8s %-16s %14s %13s\n", "stage", "file", "rows", "size");
  for (int i = 0; i < N_SHOWN; i++) {
    mt_state state;
    MT_TRY(print_stage(run, &shown[i], next != NULL, &state, out));
    if (next == NULL && state <= MT_STATE_STALE) next = &shown[i];
  }
  if (next != NULL)
    fprintf(out, "next: stage %s (\"metatopics run DECK --out %s\" goes on there)\n",
            next->stage->name, run->folder);
done:
  return status;
}

/* ---- the record --------------------------------------------------------------------- */

static void print_outcome(const mt_folder_run *run, FILE *out)
{
  static const char *const outcomes[] = {"done", "failed", "the input was wrong",
                                         "stopped by a signal"};
  const json_t *code = json_object_get(run->record, "exit_status");
  const char *started = json_string_value(json_object_get(run->record, "started"));
  const char *finished = json_string_value(json_object_get(run->record, "finished"));
  const char *backend = json_string_value(json_object_get(run->record, "backend"));
  fprintf(out, "run in %s\n", run->folder);
  if (run->record == NULL) {
    fputs("no run.json (a run that ends before its first stage is done leaves none)\n",
          out);
    return;
  }
  int64_t outcome = json_is_integer(code) ? json_integer_value(code) : -1;
  fprintf(out, "last run: started %s, ", started != NULL ? started : "?");
  if (outcome >= 0 && outcome < 4)
    fprintf(out, "%s at %s", outcomes[outcome], finished != NULL ? finished : "?");
  else
    fprintf(out, "last sign of life at %s: it is under way, or was killed",
            finished != NULL ? finished : "?");
  fprintf(out, "; %lld ranks, %lld threads, backend %s\n",
          (long long)json_integer_value(json_object_get(run->record, "ranks")),
          (long long)json_integer_value(json_object_get(run->record, "threads")),
          backend != NULL ? backend : "?");
}

/* "GPUs: 2; NVIDIA H200: rank 0 on node1 0000:18:00.0, rank 1 on ...", and the versions. */
static void print_devices(const json_t *record, FILE *out)
{
  enum { SHOWN = 8 };
  size_t i;
  json_t *device, *versions = json_object_get(record, "versions");
  const json_t *devices = json_object_get(record, "devices");
  const char *before = NULL;
  if (json_array_size(devices) == 0) return;
  fprintf(out, "GPUs: %zu;", json_array_size(devices));
  json_array_foreach(devices, i, device)
  {
    const char *name = json_string_value(json_object_get(device, "name"));
    const char *host = json_string_value(json_object_get(device, "host"));
    const char *id = json_string_value(json_object_get(device, "bus_id"));
    if (name == NULL || host == NULL || id == NULL) continue;
    if (i == SHOWN) fputs(", ...", out);
    if (i >= SHOWN) continue;
    if (before == NULL || strcmp(before, name) != 0) fprintf(out, " %s:", name);
    before = name;
    fprintf(out, " rank %lld on %s %s%s",
            (long long)json_integer_value(json_object_get(device, "rank")), host, id,
            i + 1 < json_array_size(devices) && i + 1 < SHOWN ? "," : "");
  }
  const char *cuda = json_string_value(json_object_get(versions, "cuda"));
  const char *nccl = json_string_value(json_object_get(versions, "nccl"));
  fprintf(out, "\nCUDA %s; NCCL %s\n", cuda != NULL ? cuda : "?",
          nccl != NULL ? nccl : "?");
}

static void print_metrics(const json_t *stages, FILE *out)
{
  size_t i;
  json_t *stage, *value;
  const char *key;
  json_array_foreach(stages, i, stage)
  {
    json_t *metrics = json_object_get(stage, "metrics");
    const char *name = json_string_value(json_object_get(stage, "name"));
    if (json_object_size(metrics) == 0) continue;
    fprintf(out, "  %s:", name != NULL ? name : "?");
    json_object_foreach(metrics, key, value)
    {
      if (!json_is_number(value) && !json_is_string(value)) continue;
      char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(5));
      fprintf(out, " %s %s;", key, text != NULL ? text : "?");
      free(text);
    }
    putc('\n', out);
  }
}

static void print_findings(const mt_folder_run *run, FILE *out)
{
  json_t *summary = mt_summary_load(run->folder);
  if (summary == NULL) return;
  fputs("\nmeta-topics\n", out);
  mt_summary_print(summary, -1, out);
  json_decref(summary);
}

static mt_status require_run(const char *folder, const mt_folder_run *run)
{
  mt_status status = MT_OK;
  struct stat info;
  int64_t count = 0, bytes = 0;
  MT_REQUIRE(stat(folder, &info) == 0, MT_ERR_INPUT, "there is no folder %s", folder);
  MT_REQUIRE(S_ISDIR(info.st_mode), MT_ERR_INPUT, "%s is no folder", folder);
  for (int i = 0; i < N_SHOWN && count == 0; i++)
    MT_TRY(count_files(folder, shown[i].files, &count, &bytes));
  MT_REQUIRE(run->record != NULL || count > 0, MT_ERR_INPUT,
             "%s holds no run: neither run.json nor corpus.h5 is there", folder);
done:
  return status;
}

mt_status mt_show(const char *folder, FILE *out)
{
  mt_status status = MT_OK;
  mt_folder_run run = {.folder = folder, .fits_wanted = -1};
  char *path = mt_path_join(folder, "run.json");
  if (path == NULL) return MT_ERR_MEMORY;
  run.record = mt_json_load(path);
  MT_TRY(require_run(folder, &run));
  print_outcome(&run, out);
  print_devices(run.record, out);
  if (json_is_object(json_object_get(run.record, "parameters")))
    MT_TRY(take_parameters(&run, out));
  MT_TRY(count_fits(&run));
  MT_TRY(print_stages(&run, out));
  const json_t *stages = json_object_get(run.record, "stages");
  if (json_array_size(stages) > 0) {
    fputs("\nwhat it took\n", out);
    mt_costs_print(run.record, out);
    fputs("\nmetrics\n", out);
    print_metrics(stages, out);
  }
  print_findings(&run, out);
done:
  if (run.have_parameters) mt_parameters_destroy(&run.parameters);
  json_decref(run.record);
  free(path);
  return status;
}
