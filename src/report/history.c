#include "report/history.h"
#include "base/log.h"
#include "base/memory.h"
#include "report/json_file.h"
#include "report/record.h"
#include "report/text.h"
#include "store/folder.h"

#include <errno.h>
#include <fts.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reading ------------------------------------------------------------------------ */

/* Why a record cannot be compared with others; NULL: it can. */
static const char *why_not(const json_t *record)
{
  static const char *const numbers[] = {
      "format", "seconds",    "ranks", "threads",     "nodes",
      "cores",  "node_hours", "gpus",  "cpu_seconds", "cpu_efficiency"};
  static char why[128];
  const char *program = json_string_value(json_object_get(record, "program"));
  const char *started = json_string_value(json_object_get(record, "started"));
  double format = mt_figure(record, "format");
  if (program == NULL || strcmp(program, "metatopics") != 0)
    return "it is no record of metatopics";
  if (!isnan(format) && format != MT_RECORD_FORMAT) {
    snprintf(why, sizeof why, "it has format %.0f, this version reads %d", format,
             MT_RECORD_FORMAT);
    return why;
  }
  if (started == NULL || strlen(started) != strlen("1987-03-17T14:05:09.250Z"))
    return "it does not say when it started";
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    double value = mt_figure(record, numbers[i]);
    if (value >= 0.0) continue;
    snprintf(why, sizeof why, "its figure \"%s\" is %s", numbers[i],
             isnan(value) ? "missing" : "negative");
    return why;
  }
  return json_is_array(json_object_get(record, "stages")) ? NULL : "it has no stages";
}

static void skip(mt_history *history, const char *path, const char *why)
{
  history->skipped++;
  mt_warn("%s is skipped: %s", path, why);
}

/* NULL: it is skipped, and that was said. */
static json_t *load(mt_history *history, const char *path, struct stat *info)
{
  bool file = stat(path, info) == 0 && S_ISREG(info->st_mode);
  if (!file || access(path, R_OK) != 0) {
    skip(history, path, file ? "it cannot be read" : "it is no file");
    return NULL;
  }
  json_t *record = mt_json_load(path);
  const char *reason = record != NULL ? why_not(record) : NULL;
  if (record == NULL) history->skipped++; /* damaged: said */
  if (reason == NULL) return record;
  skip(history, path, reason);
  json_decref(record);
  return NULL;
}

static bool is_known(const mt_history *history, const struct stat *info)
{
  for (int64_t i = 0; i < history->n; i++)
    if (history->runs[i].device == info->st_dev &&
        history->runs[i].file == info->st_ino)
      return true;
  return false;
}

/* The run of a folder that has a run.json. */
static mt_status add_run(mt_history *history, const char *folder)
{
  mt_status status = MT_OK;
  struct stat info;
  mt_past_run run = {.ratio = NAN};
  char *path = mt_path_join(folder, "run.json");
  MT_REQUIRE(path != NULL, MT_ERR_MEMORY, "no memory for a path");
  run.record = load(history, path, &info);
  if (run.record == NULL || is_known(history, &info)) goto done;
  run.device = info.st_dev;
  run.file = info.st_ino;
  mt_costs_read(run.record, &run.costs);
  MT_GROW(history->runs, history->capacity, history->n + 1);
  MT_TRY(mt_string_copy(folder, &run.folder));
  history->runs[history->n++] = run;
  run.record = NULL;
done:
  json_decref(run.record);
  free(path);
  return status;
}

/* Has the folder that the search is at a run.json? */
static bool has_record(const FTSENT *at)
{
  struct stat info;
  char *path = mt_path_join(at->fts_accpath, "run.json");
  bool has = path != NULL && lstat(path, &info) == 0;
  free(path);
  return has;
}

static mt_status search(mt_history *history, const char *folder)
{
  mt_status status = MT_OK;
  char *const roots[] = {(char *)folder, NULL};
  int64_t found = 0;
  FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
  MT_REQUIRE(tree != NULL, MT_ERR_IO, "cannot look into %s: %s", folder,
             strerror(errno));
  for (FTSENT *at; (at = fts_read(tree)) != NULL;) {
    bool named = at->fts_level == FTS_ROOTLEVEL;
    MT_REQUIRE(!named || at->fts_info != FTS_NS, MT_ERR_INPUT, "there is no folder %s",
               folder);
    MT_REQUIRE(!named || at->fts_info == FTS_D || at->fts_info == FTS_DP ||
                   at->fts_info == FTS_DNR,
               MT_ERR_INPUT, "%s is no folder", folder);
    if (at->fts_info == FTS_DNR) skip(history, at->fts_path, strerror(at->fts_errno));
    if (at->fts_info != FTS_D || !has_record(at)) continue;
    found++;
    MT_TRY(add_run(history, at->fts_path));
    fts_set(tree, at, FTS_SKIP);
  }
  if (found == 0) skip(history, folder, "there is no run.json in it or below it");
done:
  if (tree != NULL) fts_close(tree);
  return status;
}

const char *mt_past_run_started(const mt_past_run *run)
{
  return json_string_value(json_object_get(run->record, "started"));
}

static int compare_times(const void *a, const void *b)
{
  const mt_past_run *x = a, *y = b;
  int order = strcmp(mt_past_run_started(x), mt_past_run_started(y));
  return order != 0 ? order : strcmp(x->folder, y->folder);
}

mt_status mt_history_read(int n, const char *const *folders, mt_history *history_out)
{
  mt_status status = MT_OK;
  mt_history history = {.n = 0};
  for (int i = 0; i < n; i++) MT_TRY(search(&history, folders[i]));
  MT_REQUIRE(history.n > 0, MT_ERR_INPUT,
             "no run is left to show: each needs a run.json of this version");
  qsort(history.runs, (size_t)history.n, sizeof *history.runs, compare_times);
  MT_TRY(mt_history_compare(&history));
  *history_out = history;
  history = (mt_history){.n = 0};
done:
  mt_history_destroy(&history);
  return status;
}

void mt_history_destroy(mt_history *history)
{
  for (int64_t i = 0; i < history->n; i++) {
    json_decref(history->runs[i].record);
    free(history->runs[i].folder);
  }
  free(history->runs);
  *history = (mt_history){.n = 0};
}

/* ---- comparing ---------------------------------------------------------------------- */

typedef enum mt_kind { CORPUS, LDA, MATRIX, KNN, UMAP, HDBSCAN, MAP, N_KINDS } mt_kind;
static const char *const kind_names[N_KINDS] = {
    [CORPUS] = "corpus", [LDA] = "lda",         [MATRIX] = "matrix", [KNN] = "knn",
    [UMAP] = "umap",     [HDBSCAN] = "hdbscan", [MAP] = "map"};

/* A stage in a list of stages; NULL: it is not there. */
static const json_t *find(const json_t *record, const char *list, mt_kind kind)
{
  size_t i;
  json_t *stage;
  json_array_foreach(json_object_get(record, list), i, stage)
  {
    const char *name = json_string_value(json_object_get(stage, "name"));
    if (name != NULL && strcmp(name, kind_names[kind]) == 0) return stage;
  }
  return NULL;
}

/* Units of work of a stage that this run made (history.h); NAN: not known. */
static double work_of(const json_t *record, const json_t *stage, mt_kind kind)
{
  const json_t *matrix = find(record, "stages", MATRIX);
  if (matrix == NULL) matrix = find(record, "earlier_stages", MATRIX);
  const json_t *metrics = json_object_get(stage, "metrics");
  double topics = mt_figure(matrix, "rows"),
         terms = mt_figure(json_object_get(matrix, "metrics"), "terms"),
         pairs = mt_figure(metrics, "compared_pairs");
  switch (kind) {
  case CORPUS:
    return mt_figure(stage, "rows");
  case LDA:
    return mt_figure(metrics, "gflop");
  case MATRIX:
    return topics * terms;
  case KNN:
    return (isnan(pairs) ? topics * topics : pairs) * terms;
  case UMAP:
    return mt_figure(metrics, "graph_edges") * mt_figure(metrics, "n_epochs");
  default:
    return topics;
  }
}

/* What a run's stage cost; seconds NAN: the run did not make it, or its work is not known. */
typedef struct mt_cost {
  bool gpus; /* on GPUs */
  double seconds;
  double held; /* GPUs or cores */
  double work;
} mt_cost;

static mt_cost cost_of(const json_t *record, mt_kind kind)
{
  mt_cost cost = {.seconds = NAN};
  const json_t *stage = find(record, "stages", kind);
  if (stage == NULL || json_is_true(json_object_get(stage, "kept"))) return cost;
  double gpus = mt_figure(stage, "gpus");
  cost.gpus = gpus > 0.0;
  cost.held = cost.gpus ? gpus : mt_figure(stage, "cores");
  cost.work = work_of(record, stage, kind);
  if (cost.held > 0.0 && cost.work > 0.0) cost.seconds = mt_figure(stage, "seconds");
  return cost;
}

static bool are_alike(const mt_cost *a, const mt_cost *b)
{
  return !isnan(a->seconds) && !isnan(b->seconds) && a->gpus == b->gpus &&
         a->work <= 2.0 * b->work && b->work <= 2.0 * a->work;
}

static int compare_doubles(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double median(int64_t n, double *values)
{
  qsort(values, (size_t)n, sizeof *values, compare_doubles);
  return n == 0 ? NAN : 0.5 * (values[(n - 1) / 2] + values[n / 2]);
}

/* Seconds that a run's stage would have taken at the median of its predecessors. */
static double expected_seconds(const mt_cost *costs, int64_t run, mt_kind kind,
                               double *rates, int64_t *predecessors_out)
{
  const mt_cost *mine = &costs[run * N_KINDS + kind];
  int64_t n = 0;
  for (int64_t r = 0; r < run; r++) {
    const mt_cost *other = &costs[r * N_KINDS + kind];
    if (are_alike(mine, other)) rates[n++] = other->seconds * other->held / other->work;
  }
  *predecessors_out = n;
  return median(n, rates) * mine->work / mine->held;
}

static void compare_run(mt_history *history, const mt_cost *costs, int64_t run,
                        double *rates)
{
  mt_past_run *past = &history->runs[run];
  double took = 0.0, expected = 0.0, most = 0.0;
  past->predecessors = 0;
  for (mt_kind kind = 0; kind < N_KINDS; kind++) {
    int64_t n;
    double seconds = costs[run * N_KINDS + kind].seconds;
    double usual = expected_seconds(costs, run, kind, rates, &n);
    if (n == 0) continue;
    took += seconds;
    expected += usual;
    if (n > past->predecessors) past->predecessors = n;
    if (seconds - usual <= most) continue;
    most = seconds - usual;
    past->dearest = kind_names[kind];
    past->dearest_ratio = seconds / usual;
  }
  past->ratio = expected > 0.0 ? took / expected : NAN;
  past->marked = past->ratio > MT_CLEARLY_MORE && took - expected > 1.0;
  if (!past->marked) past->dearest = NULL;
}

mt_status mt_history_compare(mt_history *history)
{
  mt_status status = MT_OK;
  mt_cost *costs = NULL;
  double *rates = NULL;
  MT_NEW(costs, history->n * N_KINDS);
  MT_NEW(rates, history->n);
  for (int64_t r = 0; r < history->n; r++)
    for (mt_kind kind = 0; kind < N_KINDS; kind++)
      costs[r * N_KINDS + kind] = cost_of(history->runs[r].record, kind);
  for (int64_t r = 0; r < history->n; r++) compare_run(history, costs, r, rates);
done:
  free(rates);
  free(costs);
  return status;
}

/* ---- the table ------------------------------------------------------------------------ */

const char *mt_past_run_outcome(const mt_past_run *run)
{
  static const char *const outcomes[] = {"done", "failed", "wrong input", "stopped"};
  const json_t *code = json_object_get(run->record, "exit_status");
  json_int_t value = json_is_integer(code) ? json_integer_value(code) : -1;
  return value >= 0 && value < 4 ? outcomes[value] : "killed?";
}

mt_status mt_past_run_name(const mt_past_run *run, int columns, char **name_out)
{
  size_t length = strlen(run->folder), most = (size_t)columns;
  const char *end = length > most ? run->folder + length - most : run->folder;
  while ((*end & 0xC0) == 0x80) end++; /* not in the middle of a letter */
  return mt_text_drawable(end, columns, name_out);
}

static void print_name(const mt_past_run *run, FILE *out)
{
  enum { COLUMNS = 28 };
  char *name = NULL;
  if (mt_past_run_name(run, COLUMNS, &name) == MT_OK)
    fprintf(out, "%-*s", COLUMNS, name);
  free(name);
}

static void print_run(const mt_past_run *run, bool gpus, FILE *out)
{
  const mt_costs *costs = &run->costs;
  const char *job = json_string_value(
      json_object_get(json_object_get(run->record, "slurm"), "job_id"));
  const char *started = mt_past_run_started(run);
  fprintf(out, "%.10s %.5s  ", started, started + 11);
  print_name(run, out);
  fprintf(out, " %8.8s", job != NULL ? job : "-");
  mt_figure_print(mt_figure(run->record, "nodes"), 5, 0, out);
  mt_figure_print(mt_figure(run->record, "ranks"), 5, 0, out);
  mt_figure_print(mt_figure(run->record, "cores"), 5, 0, out);
  mt_figure_print(costs->seconds, 9, 1, out);
  mt_figure_print(costs->node_hours, 9, 4, out);
  mt_figure_print(100.0 * mt_costs_efficiency(costs), 5, 0, out);
  mt_figure_print(costs->peak_memory / 1048576.0, 7, 0, out);
  if (gpus) {
    mt_figure_print(100.0 * costs->gpu_busy, 5, 0, out);
    mt_figure_print(costs->gpu_memory / 1048576.0, 7, 0, out);
  }
  mt_figure_print(costs->queue_seconds, 8, 0, out);
  mt_figure_print(run->ratio, 5, 2, out);
  fprintf(out, " %c %s\n", run->marked ? '!' : ' ', mt_past_run_outcome(run));
}

static void print_marked(const mt_past_run *run, FILE *out)
{
  if (run->marked)
    fprintf(out,
            "! %s: %.2f times the cost per unit of work of the runs before it (median "
            "of %lld), above all in %s (%.2f times)\n",
            run->folder, run->ratio, (long long)run->predecessors, run->dearest,
            run->dearest_ratio);
}

/* What the next run could ask for less of. */
static void print_surplus(const mt_past_run *last, FILE *out)
{
  mt_surplus s;
  if (!mt_costs_surplus(last->record, &s) || s.option == NULL) return;
  fprintf(out,
          "last run, %s: of %.0f cores %.1f were busy on average; ask for %s=%lld "
          "(now %lld)\n",
          last->folder, s.cores, s.busy, s.option, (long long)s.enough,
          (long long)s.now);
}

bool mt_history_has_gpus(const mt_history *history)
{
  for (int64_t r = 0; r < history->n; r++)
    if (mt_figure(history->runs[r].record, "gpus") > 0.0) return true;
  return false;
}

void mt_history_print(const mt_history *history, FILE *out)
{
  bool gpus = mt_history_has_gpus(history);
  fprintf(out, "%-16s  %-28s %8s %5s %5s %5s %9s %9s %5s %7s%s %8s %5s\n", "started",
          "run", "job", "nodes", "ranks", "cores", "seconds", "node h", "CPU %", "MiB",
          gpus ? " GPU % GPU MiB" : "", "queued s", "cost");
  for (int64_t r = 0; r < history->n; r++) print_run(&history->runs[r], gpus, out);
  for (int64_t r = 0; r < history->n; r++) print_marked(&history->runs[r], out);
  print_surplus(&history->runs[history->n - 1], out);
  fprintf(out, "%lld run%s", (long long)history->n, history->n == 1 ? "" : "s");
  if (history->skipped > 0) fprintf(out, ", %lld skipped", (long long)history->skipped);
  fputs("; MiB: of the largest rank; cost: per unit of work, the median before = 1\n",
        out);
}
