/* RANKS 1 2 3
 * run.json: figures of stages, what a later run keeps of them, a Slurm job, a bad file. */
#include "test.h"

#include "deck/deck.h"
#include "report/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
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

static int remove_folder(void **state)
{
  (void)state;
  mt_barrier(&mt_test_world);
  if (mt_test_world.rank != 0) return 0;
  unlink(path);
  return rmdir(folder);
}

static const mt_stage corpus = {.name = "corpus", .file = "corpus.h5"};
static const mt_stage knn = {.name = "knn", .file = "knn.h5"};

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
  begin(&run, &parameters, &record);
  add_stage(record, &corpus, 100, false);
  if (root) {
    json = json_load_file(path, 0, NULL); /* there while the run goes on */
    assert_true(json_is_null(json_object_get(json, "exit_status")));
    json_decref(json);
  }
  add_stage(record, &knn, 50, false);
  assert_int_equal(mt_record_write(record, MT_STOPPED), MT_OK);
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
    assert_true(fabs(figure(slurm, "node_hours") - 3 * figure(json, "seconds") / 3600) <
                1e-6);
    json_t *stage = stage_at(json, "stages", 1);
    assert_string_equal(json_string_value(json_object_get(stage, "name")), "knn");
    assert_string_equal(json_string_value(json_object_get(stage, "path")), "knn.h5");
    assert_int_equal(figure(stage, "rows"), 50);
    assert_int_equal(figure(json_object_get(stage, "metrics"), "figure"), 7);
    assert_true(figure(stage, "peak_memory_bytes") > 1e6);
    double offered = figure(stage, "seconds") * figure(stage, "threads");
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
  assert_int_equal(mt_record_write(record, MT_ERR_IO), MT_OK);
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
    assert_int_equal(mt_record_write(record, MT_OK), MT_OK);
    if (mt_test_world.rank == 0) {
      json_t *json = json_load_file(path, 0, NULL);
      assert_int_equal(figure(stage_at(json, "stages", 0), "rows"), 12);
      json_decref(json);
    }
    mt_record_destroy(record);
    mt_parameters_destroy(&parameters);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_stages_and_what_is_kept, make_folder,
                                    remove_folder),
    cmocka_unit_test_setup_teardown(test_damaged_record, make_folder, remove_folder),
};

MT_TEST_MAIN(tests)
