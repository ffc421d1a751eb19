/* RANKS 1 2 3
 * run.json: figures of stages, what a later run keeps of them, a Slurm job, a bad file. */
#include "test.h"

#include "deck/deck.h"
#include "report/costs.h"
#include "report/job.h"
#include "report/meter.h"
#include "report/record.h"

#include <errno.h>
#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[96];

static int make_folder(void **state)
{
  (void)state;
  strcpy(folder, "/tmp/mt-record-XXXXXX");
  bool made = mt_test_world.rank != 0 || mkdtemp(folder) != NULL;
  mt_bcast(&mt_test_world, 0, sizeof folder, folder);
  snprintf(path, sizeof path, "%s/run.json", folder);
  return !made;
}

/* A scontrol that answers so, before all others. */
static void put_scontrol(const char *answer)
{
  char name[96], search[8192];
  snprintf(name, sizeof name, "%s/scontrol", folder);
  FILE *file = fopen(name, "w");
  assert_non_null(file);
  fprintf(file,
          "#!/bin/sh\n[ \"$SLURM_TIME_FORMAT $*\" = '%%s -o show job 4711' ] || "
          "exit 9\n%s\n",
          answer);
  fclose(file);
  chmod(name, 0755);
  const char *before = getenv("PATH");
  if (strncmp(before, folder, strlen(folder)) == 0) return;
  snprintf(search, sizeof search, "%s:%s", folder, before);
  setenv("PATH", search, 1);
}

static int remove_folder(void **state)
{
  (void)state;
  char name[96];
  mt_barrier(&mt_test_world);
  if (mt_test_world.rank != 0) return 0;
  unlink(path);
  snprintf(name, sizeof name, "%s/scontrol", folder);
  unlink(name);
  return rmdir(folder);
}

static const mt_stage corpus = {.name = "corpus", .file = "corpus.h5"};
static const mt_stage knn = {.name = "knn", .file = "knn.h5", .on_team = true};

/* A stage that took `rows` rows and CPU time, or one that was kept. */
static void add_stage(mt_record *record, const mt_stage *stage, int64_t rows, bool kept)
{
  mt_stage_result result = {.rows = rows,
                            .kept = kept,
                            .metrics = mt_test_world.rank == 0 ? json_object() : NULL};
  if (result.metrics != NULL)
    json_object_set_new(result.metrics, "figure", json_integer(7));
  assert_int_equal(mt_record_stage_begin(&mt_test_world, record), MT_OK);
  double until = mt_seconds() + 0.02;
  while (!kept && mt_seconds() < until) {
  }
  assert_int_equal(mt_record_stage_end(&mt_test_world, record, stage, &result), MT_OK);
  json_decref(result.metrics);
}

static json_t *stage_at(const json_t *record, const char *list, size_t i)
{
  return json_array_get(json_object_get(record, list), i);
}

static double figure(const json_t *object, const char *key)
{
  return json_number_value(json_object_get(object, key));
}

static void begin(mt_run *run, mt_parameters *parameters, mt_record **record_out)
{
  static mt_backend backend = {.name = "cpu"};
  *run = (mt_run){.parameters = parameters, .out = folder, .backend = &backend};
  assert_int_equal(mt_parameters_default(parameters), MT_OK);
  assert_int_equal(mt_record_begin(&mt_test_world, run, NULL, record_out), MT_OK);
}

static void test_stages_and_what_is_kept(void **state)
{
  (void)state;
  mt_run run;
  mt_parameters parameters;
  mt_record *record = NULL;
  bool root = mt_test_world.rank == 0;
  json_t *json = NULL;
  setenv("SLURM_JOB_ID", "4711", 1);
  setenv("SLURM_JOB_NUM_NODES", "3", 1);
  if (root)
    put_scontrol("echo 'JobId=4711 JobName=a Restarts=0 SubmitTime=1000 StartTime=1090 "
                 "NumNodes=3 NumCPUs=12 CPUs/Task=4'");
  begin(&run, &parameters, &record);
  add_stage(record, &corpus, 100, false);
  if (root) {
    json = json_load_file(path, 0, NULL); /* there while the run goes on */
    assert_true(json_is_null(json_object_get(json, "exit_status")));
    json_decref(json);
  }
  add_stage(record, &knn, 50, false);
  assert_int_equal(mt_record_end(&mt_test_world, record, MT_STOPPED), MT_OK);
  mt_record_destroy(record);
  record = NULL;
  double seconds = 0.0;
  if (root) {
    json = json_load_file(path, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(json, "exit_status")), 3);
    assert_int_equal(figure(json, "ranks"), mt_test_world.size);
    assert_non_null(json_object_get(json_object_get(json, "versions"), "hdf5"));
    assert_non_null(json_object_get(
        json_object_get(json_object_get(json, "parameters"), "umap"), "spread"));
    json_t *slurm = json_object_get(json, "slurm");
    assert_string_equal(json_string_value(json_object_get(slurm, "job_id")), "4711");
    assert_int_equal(figure(slurm, "queue_seconds"), 90);
    assert_int_equal(figure(slurm, "cpus_per_task"), 4);
    assert_int_equal(figure(json, "nodes"), 3);
    assert_int_equal(figure(json, "cores"), 12);
    assert_int_equal(figure(json, "format"), MT_RECORD_FORMAT);
    assert_true(fabs(figure(json, "node_hours") - 3 * figure(json, "seconds") / 3600) <
                1e-9);
    assert_true(fabs(figure(json, "cpu_efficiency") -
                     figure(json, "cpu_seconds") / figure(json, "seconds") / 12) <
                1e-6);
    assert_null(json_object_get(json, "earlier_starts"));
    assert_null(json_object_get(json, "gpu_busy_share"));
    assert_null(json_object_get(json, "gpu_peak_memory_bytes"));
    json_t *stage = stage_at(json, "stages", 1);
    assert_string_equal(json_string_value(json_object_get(stage, "name")), "knn");
    assert_string_equal(json_string_value(json_object_get(stage, "path")), "knn.h5");
    assert_int_equal(figure(stage, "rows"), 50);
    assert_int_equal(figure(json_object_get(stage, "metrics"), "figure"), 7);
    assert_true(figure(stage, "peak_memory_bytes") > 1e6);
    const char *since = json_string_value(json_object_get(stage, "peak_memory_since"));
    assert_true(strcmp(since, "stage") == 0 || strcmp(since, "start") == 0);
    assert_true(figure(json, "peak_memory_bytes") >=
                figure(stage, "peak_memory_bytes"));
    assert_true(
        fabs(figure(stage, "node_hours") - 3 * figure(stage, "seconds") / 3600) < 1e-9);
    double offered = figure(stage, "seconds") * figure(stage, "cores");
    assert_true(fabs(figure(stage, "cpu_efficiency") -
                     figure(stage, "cpu_seconds") / offered) < 1e-6);
    assert_true(figure(stage, "cpu_seconds") > 0.0);
    assert_true(json_is_false(json_object_get(stage, "kept")));
    seconds = figure(stage_at(json, "stages", 0), "seconds");
    assert_true(seconds >= 0.02);
    json_decref(json);
  }
  mt_parameters_destroy(&parameters);
  unsetenv("SLURM_JOB_ID");

  /* the next run keeps the corpus and fails before it comes to knn */
  begin(&run, &parameters, &record);
  add_stage(record, &corpus, 0, true);
  assert_int_equal(mt_record_end(&mt_test_world, record, MT_ERR_IO), MT_OK);
  if (root) {
    json = json_load_file(path, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(json, "exit_status")), 1);
    assert_null(json_object_get(json, "slurm"));
    json_t *stage = stage_at(json, "stages", 0);
    assert_true(json_is_true(json_object_get(stage, "kept")));
    assert_int_equal(figure(stage, "rows"), 100);
    assert_true(fabs(figure(stage, "seconds") - seconds) < 1e-6);
    assert_int_equal(json_array_size(json_object_get(json, "stages")), 1);
    assert_string_equal(
        json_string_value(json_object_get(stage_at(json, "earlier_stages", 0), "name")),
        "knn");
    json_decref(json);
    char *table = NULL;
    size_t size;
    FILE *out = open_memstream(&table, &size);
    mt_record_print(record, out);
    fclose(out);
    assert_non_null(strstr(table, "kept from an earlier run"));
    free(table);
  }
  mt_record_destroy(record);
  mt_parameters_destroy(&parameters);

  /* and one after that still knows knn's figures */
  begin(&run, &parameters, &record);
  add_stage(record, &corpus, 0, true);
  add_stage(record, &knn, 0, true);
  if (root) {
    json = json_load_file(path, 0, NULL);
    assert_int_equal(figure(stage_at(json, "stages", 1), "rows"), 50);
    assert_int_equal(json_array_size(json_object_get(json, "earlier_stages")), 0);
    json_decref(json);
  }
  mt_record_destroy(record);
  mt_parameters_destroy(&parameters);
}

/* A job that was queued again knows of its earlier starts; another job does not. Without an
 * answer of scontrol there is no wait, and cores are the ranks'. */
static void test_starts_of_a_job(void **state)
{
  (void)state;
  static const char *const answers[] = {
      "echo 'JobId=4711 Restarts=0 SubmitTime=1000 StartTime=1060 NumNodes=2 "
      "NumCPUs=8'",
      "exit 1",
      "echo 'JobId=4711 Restarts=2 SubmitTime=2000 StartTime=2007 NumNodes=2 NumCPUs=8'"
      ";echo 'JobId=4712 HetJobId=4711 NumNodes=1 NumCPUs=64'"};
  static const double waits[] = {60, NAN, 7}, nodes[] = {2, 1, 3};
  bool root = mt_test_world.rank == 0;
  setenv("SLURM_JOB_ID", "4711", 1);
  unsetenv("SLURM_JOB_NUM_NODES");
  for (int i = 0; i < 4; i++) {
    mt_run run;
    mt_parameters parameters;
    mt_record *record = NULL;
    if (i == 3)
      setenv("SLURM_JOB_ID", "5000", 1); /* which this scontrol does not know */
    if (root && i < 3) put_scontrol(answers[i]);
    begin(&run, &parameters, &record);
    add_stage(record, &corpus, 12, false);
    assert_int_equal(mt_record_end(&mt_test_world, record, MT_STOPPED), MT_OK);
    if (root) {
      json_t *json = json_load_file(path, 0, NULL);
      double waited = mt_figure(json_object_get(json, "slurm"), "queue_seconds");
      assert_int_equal(json_array_size(json_object_get(json, "earlier_starts")),
                       i < 3 ? i : 0);
      if (i < 3) {
        assert_true(isnan(waits[i]) ? isnan(waited) : waited == waits[i]);
        assert_int_equal(figure(json, "nodes"), nodes[i]);
      }
      if (i == 1) /* those that the ranks can use at once */
        assert_true(figure(json, "cores") >= 1 &&
                    figure(json, "cores") <= figure(json, "threads"));
      if (i == 2) {
        mt_costs costs;
        mt_costs_read(json, &costs);
        assert_int_equal(figure(json, "cores"), 72);
        assert_int_equal(figure(json_object_get(json, "slurm"), "components"), 2);
        assert_int_equal(costs.starts, 3);
        assert_true(costs.queue_seconds == 67);
        json_t *first = stage_at(json, "earlier_starts", 0);
        assert_int_equal(figure(first, "queue_seconds"), 60);
        assert_int_equal(figure(first, "exit_status"), 3);
        assert_true(costs.node_hours >=
                    figure(first, "node_hours") + figure(json, "node_hours"));
      }
      json_decref(json);
    }
    mt_record_destroy(record);
    mt_parameters_destroy(&parameters);
  }
  unsetenv("SLURM_JOB_ID");
}

/* A run.json that is cut off, damaged or something else is as good as none. */
static void test_damaged_record(void **state)
{
  (void)state;
  static const char *const texts[] = {"", "{\"stages\": [", "[1, 2]", "{\"stages\": 5}",
                                      "{\"stages\": [{\"name\": 5}, 7]}"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    mt_run run;
    mt_parameters parameters;
    mt_record *record = NULL;
    if (mt_test_world.rank == 0) {
      FILE *file = fopen(path, "w");
      fputs(texts[i], file);
      fclose(file);
    }
    begin(&run, &parameters, &record);
    add_stage(record, &corpus, 12, true);
    assert_int_equal(mt_record_end(&mt_test_world, record, MT_OK), MT_OK);
    if (mt_test_world.rank == 0) {
      json_t *json = json_load_file(path, 0, NULL);
      assert_int_equal(figure(stage_at(json, "stages", 0), "rows"), 12);
      json_decref(json);
    }
    mt_record_destroy(record);
    mt_parameters_destroy(&parameters);
  }
}

/* The last task of an array has the array's own id: scontrol tells of the other tasks, too. */
static void test_array(void **state)
{
  (void)state;
  static const char answer[] =
      "JobId=4711 ArrayJobId=4711 ArrayTaskId=3 Restarts=0 SubmitTime=50 StartTime=80 "
      "NumNodes=2 NumCPUs=8 CPUs/Task=4\n"
      "JobId=4713 ArrayJobId=4711 ArrayTaskId=2 Restarts=1 SubmitTime=50 StartTime=60 "
      "NumNodes=2 NumCPUs=8 CPUs/Task=4\n"
      "JobId=4712 ArrayJobId=4711 ArrayTaskId=1 Restarts=0 SubmitTime=50 StartTime=55 "
      "NumNodes=2 NumCPUs=8 CPUs/Task=4\n";
  static const char *const ids[] = {"4711", "4712"};
  static const int64_t waits[] = {30, 5};
  for (int i = 0; i < 2; i++) {
    mt_job job = {.components = -1};
    strcpy(job.id, ids[i]);
    assert_true(mt_job_read(answer, &job));
    assert_int_equal(job.components, 1);
    assert_int_equal(job.nodes, 2);
    assert_int_equal(job.cores, 8);
    assert_int_equal(job.queue_seconds, waits[i]);
  }
}

/* A machine with so many CPUs; 0: this one. */
static int64_t machine_cpus;
int __real_sched_getaffinity(pid_t process, size_t size, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t process, size_t size, cpu_set_t *set);

int __wrap_sched_getaffinity(pid_t process, size_t size, cpu_set_t *set)
{
  if (machine_cpus == 0) return __real_sched_getaffinity(process, size, set);
  if (8 * (int64_t)size < machine_cpus) {
    errno = EINVAL;
    return -1;
  }
  CPU_ZERO_S(size, set);
  for (int i = 1; i <= 2; i++) CPU_SET_S((size_t)(machine_cpus - i), size, set);
  return 0;
}

/* The ranks may use the same two CPUs, the last ones. */
static void test_many_cpus(void **state)
{
  (void)state;
  static const int64_t cpus[] = {16, 1024, 1025, 5000};
  int threads = omp_get_max_threads();
  omp_set_num_threads(4);
  for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++) {
    mt_meter *meter = NULL;
    machine_cpus = cpus[i];
    assert_int_equal(mt_meter_create(&mt_test_world, NULL, NULL, &meter), MT_OK);
    assert_int_equal(mt_meter_holding(meter)->cores, 2);
    mt_meter_destroy(meter);
  }
  machine_cpus = 0;
  omp_set_num_threads(threads);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_array),
    cmocka_unit_test(test_many_cpus),
    cmocka_unit_test_setup_teardown(test_stages_and_what_is_kept, make_folder,
                                    remove_folder),
    cmocka_unit_test_setup_teardown(test_starts_of_a_job, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(test_damaged_record, make_folder, remove_folder),
};

MT_TEST_MAIN(tests)
