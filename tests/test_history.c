/* RANKS 1
 * What runs took: totals, what was asked for too much, cost per unit of work against the runs
 * before, the table and the plot, from run.json files that are written here. */
#include "test.h"

#include "report/history.h"
#include "report/json_file.h"
#include "report/record.h"
#include "store/folder.h"

#include <ftw.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static int make_folder(void **state)
{
  (void)state;
  strcpy(folder, "/tmp/mt-history-XXXXXX");
  return mkdtemp(folder) == NULL;
}

static int remove_one(const char *path, const struct stat *info, int kind,
                      struct FTW *place)
{
  (void)info;
  (void)kind;
  (void)place;
  return remove(path);
}

static int remove_folder(void **state)
{
  (void)state;
  return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static char *path_of(const char *name)
{
  char *path = mt_path_join(folder, name);
  assert_non_null(path);
  return path;
}

static void write_text(const char *name, const char *text)
{
  char *path = path_of(name), *file = mt_path_join(path, "run.json");
  assert_int_equal(mt_folder_make(path), MT_OK);
  assert_int_equal(mt_file_replace(file, text, strlen(text)), MT_OK);
  free(file);
  free(path);
}

static json_t *stage(const char *name, double seconds, double rows, json_t *metrics)
{
  return json_pack("{s:s, s:f, s:f, s:i, s:i, s:b, s:o}", "name", name, "seconds",
                   seconds, "rows", rows, "cores", 8, "gpus", 0, "kept", 0, "metrics",
                   metrics);
}

/* A run of the day with so many seconds of LDA for so much work, and 10 s of kNN. */
static json_t *run_of(int day, double lda_seconds, double gflop)
{
  char started[32];
  double seconds = lda_seconds + 10.0;
  snprintf(started, sizeof started, "2026-11-%02dT10:00:00.250Z", day);
  json_t *stages = json_array();
  json_array_append_new(
      stages, stage("lda", lda_seconds, 20, json_pack("{s:f}", "gflop", gflop)));
  json_array_append_new(stages,
                        stage("matrix", 0.0, 400, json_pack("{s:i}", "terms", 5000)));
  json_array_append_new(stages, stage("knn", 10.0, 400, json_object()));
  return json_pack(
      "{s:s, s:i, s:s, s:i, s:f, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:i, s:o}",
      "program", "metatopics", "format", MT_RECORD_FORMAT, "started", started,
      "exit_status", 0, "seconds", seconds, "ranks", 4, "threads", 8, "nodes", 2,
      "cores", 8, "gpus", 0, "node_hours", 2.0 * seconds / 3600.0, "cpu_seconds",
      6.0 * seconds, "cpu_efficiency", 0.75, "peak_memory_bytes", 100 << 20, "stages",
      stages);
}

static json_t *set(json_t *record, const char *key, json_t *value)
{
  assert_int_equal(json_object_set_new(record, key, value), 0);
  return record;
}

static void write_run(const char *name, json_t *record)
{
  char *path = path_of(name), *file = mt_path_join(path, "run.json");
  assert_int_equal(mt_folder_make(path), MT_OK);
  assert_int_equal(mt_json_save(record, file), MT_OK);
  json_decref(record);
  free(file);
  free(path);
}

/* ---- one run ------------------------------------------------------------------------ */

static void test_totals(void **state)
{
  (void)state;
  mt_costs costs;
  json_t *run = run_of(1, 90.0, 1.0);
  mt_costs_read(run, &costs);
  assert_int_equal(costs.starts, 1);
  assert_true(costs.seconds == 100.0 && costs.core_seconds == 800.0);
  assert_true(fabs(mt_costs_efficiency(&costs) - 0.75) < 1e-12);
  assert_true(isnan(costs.queue_seconds) && isnan(costs.gpu_busy));
  set(run, "slurm", json_pack("{s:s, s:i}", "job_id", "7", "queue_seconds", 30));
  set(run, "earlier_starts",
      json_pack("[{s:f, s:i, s:f, s:f, s:i, s:i}, {s:f, s:i, s:f, s:f}]", "seconds",
                50.0, "cores", 16, "node_hours", 0.25, "cpu_seconds", 200.0,
                "queue_seconds", 5, "peak_memory_bytes", 300 << 20, "seconds", 10.0,
                "cores", 16, "node_hours", 0.05, "cpu_seconds", 100.0));
  mt_costs_read(run, &costs);
  assert_int_equal(costs.starts, 3);
  assert_true(costs.seconds == 160.0 && costs.queue_seconds == 35.0);
  assert_true(fabs(costs.node_hours - (200.0 / 3600.0 + 0.3)) < 1e-12);
  assert_true(fabs(mt_costs_efficiency(&costs) - 900.0 / (800.0 + 800.0 + 160.0)) <
              1e-12);
  assert_true(costs.peak_memory == 300 << 20);
  json_decref(run);
}

/* The request that would have been enough for the cores that were busy. */
static void test_surplus(void **state)
{
  (void)state;
  static const struct {
    int ranks, nodes, cores, threads, components;
    double busy;
    const char *option; /* NULL: none, "": low, but no one request */
    int now, enough;
  } cases[] = {
      {4, 2, 8, 2, 1, 4.0, NULL, 0, 0},               /* half is enough */
      {4, 2, 16, 4, 1, 7.9, "--cpus-per-task", 4, 2}, /* 8 of 16: two a rank */
      {4, 2, 16, 4, 1, 3.0, "--cpus-per-task", 4, 1},
      {4, 2, 16, 4, 1, 0.2, "--cpus-per-task", 4, 1},
      {12, 3, 12, 1, 1, 4.2, "--ntasks", 12, 5},
      {12, 3, 12, -1, 1, 4.0, "--ntasks", 12, 4}, /* it was not asked for */
      {4, 4, 256, 2, 1, 7.5, "--nodes", 4, 1},    /* whole nodes of 64 */
      {4, 4, 256, 8, 1, 100.0, "--nodes", 4, 2},
      {1, 1, 64, 1, 1, 1.0, "", 0, 0}, /* a whole node for one rank */
      {1, 1, 1, 1, 1, 0.2, NULL, 0, 0},
      {6, 3, 24, 4, 2, 3.0, "", 0, 0}, /* two components */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    mt_surplus s;
    json_t *run = run_of(1, 90.0, 1.0);
    set(run, "ranks", json_integer(cases[i].ranks));
    set(run, "nodes", json_integer(cases[i].nodes));
    set(run, "cores", json_integer(cases[i].cores));
    set(run, "cpu_seconds", json_real(100.0 * cases[i].busy));
    assert_false(mt_costs_surplus(run, &s)); /* not in a job */
    json_t *slurm =
        json_pack("{s:s, s:i}", "job_id", "7", "components", cases[i].components);
    if (cases[i].threads > 0)
      json_object_set_new(slurm, "cpus_per_task", json_integer(cases[i].threads));
    set(run, "slurm", slurm);
    bool low = mt_costs_surplus(run, &s);
    if (low != (cases[i].option != NULL)) fail_msg("case %zu: low is %d", i, low);
    json_decref(run);
    if (!low) continue;
    assert_true(fabs(s.busy - cases[i].busy) < 1e-9 && s.cores == cases[i].cores);
    if (cases[i].option[0] == '\0') {
      assert_null(s.option);
      continue;
    }
    assert_string_equal(s.option, cases[i].option);
    assert_int_equal(s.now, cases[i].now);
    if (s.enough != cases[i].enough) fail_msg("case %zu: %lld", i, (long long)s.enough);
  }
}

static char *print_one(const json_t *run)
{
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  mt_costs_print(run, out);
  fclose(out);
  return text;
}

static void expect(const char *text, const char *part, bool there)
{
  if ((strstr(text, part) != NULL) != there)
    fail_msg("\"%s\" is%s in:\n%s", part, there ? " not" : "", text);
}

static void test_table_of_a_run(void **state)
{
  (void)state;
  json_t *run = run_of(1, 90.0, 1.0);
  char *text = print_one(run);
  expect(text, "run               -     100.00     0.0556     75         100\n", true);
  expect(text, "held: 2 nodes, 8 cores; ", true);
  expect(text, "GPU", false);
  expect(text, "queue", false);
  expect(text, "efficiency", false);
  free(text);
  set(run, "gpus", json_integer(2));
  set(run, "gpu_busy_share", json_real(0.125));
  set(run, "slurm",
      json_pack("{s:s, s:i, s:i}", "job_id", "7", "queue_seconds", 30, "cpus_per_task",
                2));
  set(run, "cpu_seconds", json_real(150.0));
  json_object_set_new(json_array_get(json_object_get(run, "stages"), 0),
                      "peak_memory_since", json_string("start"));
  text = print_one(run);
  expect(text, "     12        -\n", true); /* busy, but no memory figure */
  expect(text, "2 GPUs", true);
  expect(text, "memory: since the start", true);
  expect(text, "job 7: waited 30 s in the queue\n", true);
  expect(text, "of 8 cores 1.5 were busy on average; ask for --cpus-per-task=1 (now 2)",
         true);
  free(text);
  json_decref(run);
}

/* ---- many ----------------------------------------------------------------------------- */

static mt_status read_all(mt_history *history)
{
  const char *const folders[] = {folder};
  return mt_history_read(1, folders, history);
}

static void test_cost_per_unit_of_work(void **state)
{
  (void)state;
  mt_history h;
  write_run("e", run_of(5, 100.0, 1000.0));         /* as e..a before it */
  write_run("a", run_of(1, 100.0, 1000.0));         /* none before */
  write_run("deep/er/b", run_of(2, 180.0, 1800.0)); /* more work, more time */
  write_run("c", run_of(3, 200.0, 1000.0));         /* twice as much for the same */
  write_run("d", run_of(4, 10.0, 100.0)); /* LDA of another size: kNN alone is alike */
  assert_int_equal(read_all(&h), MT_OK);
  assert_int_equal(h.n, 5);
  assert_int_equal(h.skipped, 0);
  assert_non_null(strstr(h.runs[1].folder, "/deep/er/b"));
  assert_true(isnan(h.runs[0].ratio));
  assert_true(fabs(h.runs[1].ratio - 1.0) < 1e-9);
  assert_true(fabs(h.runs[2].ratio - 210.0 / 110.0) < 1e-9);
  assert_true(h.runs[2].marked && h.runs[2].predecessors == 2);
  assert_string_equal(h.runs[2].dearest, "lda");
  assert_true(fabs(h.runs[2].dearest_ratio - 2.0) < 1e-9);
  assert_true(fabs(h.runs[3].ratio - 1.0) < 1e-9 && h.runs[3].predecessors == 3);
  /* the median of 1, 1, 2 is not moved by the one that was dear */
  assert_true(fabs(h.runs[4].ratio - 1.0) < 1e-9 && !h.runs[4].marked);
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  mt_history_print(&h, out);
  fclose(out);
  expect(text, "1.91 ! done\n", true);
  expect(text,
         "/c: 1.91 times the cost per unit of work of the runs before it (median "
         "of 2), above all in lda (2.00 times)",
         true);
  expect(text, "5 runs; ", true);
  assert_true(strstr(text, "2026-11-01") < strstr(text, "2026-11-02"));
  free(text);
  mt_history_destroy(&h);
}

/* What was kept costs nothing, GPUs are not cores, seconds under one are noise. */
static void test_what_is_compared(void **state)
{
  (void)state;
  mt_history h;
  json_t *kept = run_of(2, 300.0, 1000.0), *gpus = run_of(3, 100.0, 1000.0);
  json_object_set_new(json_array_get(json_object_get(kept, "stages"), 0), "kept",
                      json_true());
  json_t *knn = json_array_get(json_object_get(gpus, "stages"), 2);
  json_object_set_new(knn, "gpus", json_integer(1));
  json_object_set_new(knn, "seconds", json_real(500.0));
  write_run("a", run_of(1, 100.0, 1000.0));
  write_run("kept", kept);
  write_run("gpus", gpus);
  write_run("small-1", run_of(4, 0.5, 1.0));
  write_run("small-2", run_of(5, 1.3, 1.0));
  assert_int_equal(read_all(&h), MT_OK);
  assert_true(fabs(h.runs[1].ratio - 1.0) < 1e-9); /* kNN */
  assert_true(fabs(h.runs[2].ratio - 1.0) < 1e-9); /* LDA */
  assert_true(fabs(h.runs[4].ratio - 11.3 / 10.5) < 1e-9 && !h.runs[4].marked);
  mt_history_destroy(&h);
}

static void test_skipped(void **state)
{
  (void)state;
  mt_history h;
  char *said = NULL;
  size_t size;
  FILE *real = stderr;
  json_t *none_such = run_of(1, 1.0, 1.0);
  json_object_del(none_such, "format");
  write_run("none", none_such);
  write_run("new", set(run_of(1, 1.0, 1.0), "format", json_integer(99)));
  write_run("negative", set(run_of(1, 1.0, 1.0), "seconds", json_real(-1.0)));
  write_run("texts", set(run_of(1, 1.0, 1.0), "cores", json_string("many")));
  write_text("cut", "{\"program\": \"metatopics\", \"stages\": [");
  write_run("other", json_pack("{s:i}", "a", 1));
  write_text("empty", "");
  char *path = path_of("pipe/run.json");
  write_text("pipe", "");
  assert_int_equal(unlink(path), 0);
  assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes to it */
  free(path);
  stderr = open_memstream(&said, &size);
  mt_status none = read_all(&h);
  write_run("good", run_of(2, 1.0, 1.0));
  mt_status one = read_all(&h);
  fclose(stderr);
  stderr = real;
  assert_int_equal(none, MT_ERR_INPUT);
  assert_int_equal(one, MT_OK);
  assert_int_equal(h.n, 1);
  assert_int_equal(h.skipped, 8);
  expect(said, "no run is left to show", true);
  expect(said, "none/run.json is skipped: its figure \"format\" is missing", true);
  expect(said, "new/run.json is skipped: it has format 99, this version reads", true);
  expect(said, "figure \"seconds\" is negative", true);
  expect(said, "figure \"cores\" is missing", true);
  expect(said, "cut/run.json is damaged or of an older version", true);
  expect(said, "other/run.json is skipped: it is no record of metatopics", true);
  expect(said, "pipe/run.json is skipped: it is no file", true);
  free(said);
  mt_history_destroy(&h);
}

/* A folder that is named twice, or lies below another, is one run; one that is not there ends
 * it; one without runs is skipped. */
static void test_folders(void **state)
{
  (void)state;
  mt_history h;
  write_run("runs/a", run_of(1, 1.0, 1.0));
  write_run("runs/a/inside", run_of(2, 1.0, 1.0)); /* of a run's own folder */
  char *runs = path_of("runs"), *a = path_of("runs/a"), *bare = path_of("bare"),
       *gone = path_of("gone"), *file = path_of("runs/a/run.json");
  assert_int_equal(mt_folder_make(bare), MT_OK);
  mt_log_setup(0, 1, MT_LOG_SILENT);
  const char *const good[] = {a, runs, bare}, *const bad[] = {runs, gone},
                    *const wrong[] = {file};
  assert_int_equal(mt_history_read(3, good, &h), MT_OK);
  assert_int_equal(h.n, 1);
  assert_int_equal(h.skipped, 1);
  mt_history_destroy(&h);
  assert_int_equal(mt_history_read(2, bad, &h), MT_ERR_INPUT);
  assert_int_equal(mt_history_read(1, wrong, &h), MT_ERR_INPUT);
  mt_log_setup(0, 1, MT_LOG_WARN);
  free(runs);
  free(a);
  free(bare);
  free(gone);
  free(file);
}

static char *read_plot(const char *name)
{
  char *path = path_of(name), *text = calloc(1 << 20, 1);
  FILE *file = fopen(path, "rb");
  if (file == NULL) fail_msg("no %s", path);
  text[fread(text, 1, (1 << 20) - 1, file)] = '\0';
  fclose(file);
  free(path);
  return text;
}

/* One run, and many with hostile names: pictures, with what is marked written beside it. */
static void test_plot(void **state)
{
  (void)state;
  static const char *const names[] = {"it's", "{\\Symbol a}_b^c", "]]>&<x", "\xFF\xFE",
                                      "a name much longer than there is room for it"};
  bool gnuplot = system("gnuplot --version > /dev/null 2>&1") == 0;
  mt_history h;
  char *to = path_of("plot");
  write_run(names[0], run_of(1, 100.0, 1000.0));
  for (int i = 1; i < 6; i++) {
    assert_int_equal(read_all(&h), MT_OK);
    assert_int_equal(mt_history_plot(&h, to), MT_OK);
    mt_history_destroy(&h);
    char *data = read_plot("plot/history.dat");
    expect(data, "1 NaN 0.0611111 75 100 NaN NaN NaN 0 2026-11-01T10:00:00.250Z", true);
    free(data);
    if (gnuplot) {
      char *svg = read_plot("plot/history.svg");
      expect(svg, "</svg>", true);
      expect(svg, "not measured", true);
      expect(svg, "2.68: lda", i == 5);
      free(svg);
      free(read_plot("plot/history.png"));
    }
    if (i < 5) write_run(names[i], run_of(1 + i, i == 4 ? 285.0 : 100.0, 1000.0));
  }
  free(to);
}

#define IN_FOLDER(test) \
  cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_totals),
    cmocka_unit_test(test_surplus),
    cmocka_unit_test(test_table_of_a_run),
    IN_FOLDER(test_cost_per_unit_of_work),
    IN_FOLDER(test_what_is_compared),
    IN_FOLDER(test_skipped),
    IN_FOLDER(test_folders),
    IN_FOLDER(test_plot),
};

MT_TEST_MAIN(tests)
