/* RANKS 2   EMULATED 2
 * SECONDS 200
 * Every stage with one fault in it: memory, reading and writing fail, at each place in the
 * code in turn, on one rank. All ranks must come back with the same status, without a file
 * half written; with the sanitizers, without a leak. The Makefile wraps the functions; of the
 * CUDA backend the emulated GPU runs out of memory. */
#include "backend.h"

#include "base/memory.h"
#include "deck/deck.h"
#include "stage/stage.h"
#include "store/folder.h"
#include "store/store.h"

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- faults -------------------------------------------------------------------------- */

enum { MOST_PLACES = 2000 };

static struct {
  bool armed, fired;
  int64_t n;
  int64_t places[MOST_PLACES]; /* that have failed, in bytes from this file's code */
} faults;

/* Does a call from this place fail? Each does so once, the first time that it is armed. The
 * emulated GPU asks as well, when it is to give memory. */
bool mt_test_fails(int64_t place);
bool mt_test_fails(int64_t place)
{
  if (!faults.armed || faults.fired || faults.n == MOST_PLACES) return false;
  for (int64_t i = 0; i < faults.n; i++)
    if (faults.places[i] == place) return false;
  faults.places[faults.n++] = place;
  faults.fired = true;
  return true;
}

static bool fails(const void *caller)
{
  return mt_test_fails((int64_t)((intptr_t)caller - (intptr_t)&fails));
}

#define WRAP(name, error, parameters, arguments)                                 \
  mt_status __real_##name parameters;                                            \
  mt_status __wrap_##name parameters;                                            \
  mt_status __wrap_##name parameters                                             \
  {                                                                              \
    if (fails(__builtin_return_address(0))) return mt_fail(error, #name ": no"); \
    return __real_##name arguments;                                              \
  }

WRAP(mt_memory_new, MT_ERR_MEMORY,
     (int64_t count, size_t size, const char *what, void **out),
     (count, size, what, out))
WRAP(mt_memory_grow, MT_ERR_MEMORY,
     (int64_t count, size_t size, const char *what, int64_t *capacity, void **memory),
     (count, size, what, capacity, memory))
WRAP(mt_string_copy, MT_ERR_MEMORY, (const char *text, char **out), (text, out))
WRAP(mt_store_open, MT_ERR_IO, (const char *path, mt_file **file_out), (path, file_out))
WRAP(mt_store_shape, MT_ERR_IO,
     (mt_file * file, const char *name, int64_t *rows_out, int64_t *width_out),
     (file, name, rows_out, width_out))
WRAP(mt_store_read, MT_ERR_IO,
     (mt_file * file, const char *name, mt_type type, int64_t first, int64_t count,
      void *out),
     (file, name, type, first, count, out))
WRAP(mt_rename_synced, MT_ERR_IO, (const char *part, const char *path), (part, path))
WRAP(mt_folder_make, MT_ERR_INPUT, (const char *path), (path))

/* ---- a small run --------------------------------------------------------------------- */

static char folder[200];
static mt_parameters parameters;
static mt_run run;

static void set(const char *name, const char *value)
{
  char assignment[400];
  snprintf(assignment, sizeof assignment, "%s=%s", name, value);
  assert_int_equal(mt_parameters_set(&parameters, assignment), MT_OK);
}

static void write_corpus(const char *path)
{
  static const char *const words[] = {"corn",   "wheat",  "tonnes", "oil",
                                      "barrel", "crude",  "yen",    "dollar",
                                      "banks",  "shares", "merger", "stake"};
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  for (int month = 1; month <= 3; month++)
    for (int d = 0; d < 20; d++) {
      fprintf(file, "{\"id\": %d, \"date\": \"1987-%02d-11\", \"text\": \"", d, month);
      for (uint64_t w = 0; w < 12; w++) {
        uint64_t index = (uint64_t)(month * 1000 + d * 16) + w;
        int word = (int)(3.0 * mt_random_unit(1, MT_STREAM_TEST, index, 0));
        fprintf(file, "%s ", words[3 * (d % 4) + word]);
      }
      fputs("\"}\n", file);
    }
  assert_int_equal(fclose(file), 0);
}

static int begin(void **state)
{
  (void)state;
  char path[300];
  const char *temporary = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/metatopics-faults-XXXXXX",
           temporary != NULL && strlen(temporary) < 100 ? temporary : "/tmp");
  if (mt_test_world.rank == 0 && mkdtemp(folder) == NULL) return -1;
  mt_bcast(&mt_test_world, 0, sizeof folder, folder);
  snprintf(path, sizeof path, "%s/corpus.jsonl", folder);
  if (mt_test_world.rank == 0) write_corpus(path);
  if (mt_parameters_default(&parameters) != MT_OK) return -1;
  set("corpus.path", path);
  set("corpus.min_df", "1");
  set("corpus.periods", "1987-01 1987-02 1987-03");
  set("lda.seeds", "0 1");
  set("lda.min_docs", "10");
  set("lda.n_components", "4");
  set("lda.max_iter", "2");
  set("knn.n_neighbors", "5");
  set("umap.n_epochs", "5");
  run = (mt_run){.parameters = &parameters,
                 .out = folder,
                 .backend = mt_test_backend,
                 .force = true};
  setenv("PATH", "/nonexistent",
         1); /* no gnuplot: the map's script and data are enough */
  mt_barrier(&mt_test_world);
  return 0;
}

static int end(void **state)
{
  (void)state;
  char command[300];
  mt_barrier(&mt_test_world);
  snprintf(command, sizeof command, "/bin/rm -rf '%s'", folder);
  mt_parameters_destroy(&parameters);
  return mt_test_world.rank == 0 && system(command) != 0 ? -1 : 0;
}

/* ---- the test ------------------------------------------------------------------------ */

static mt_status make(const mt_stage *stage, const mt_fingerprint *made_by)
{
  mt_stage_result result = {.metrics = mt_test_world.rank == 0 ? json_object() : NULL};
  mt_status status = stage->work(&mt_test_world, &run, made_by, &result);
  json_decref(result.metrics);
  return status;
}

static int64_t parts_left(void)
{
  static const char *const patterns[] = {"/*.part*", "/lda/*/*.part*"};
  int64_t n = 0;
  for (int i = 0; i < 2 && mt_test_world.rank == 0; i++) {
    char pattern[300];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s%s", folder, patterns[i]);
    if (glob(pattern, 0, NULL, &found) == 0) n += (int64_t)found.gl_pathc;
    globfree(&found);
  }
  mt_max_i64(&mt_test_world, 1, &n);
  return n;
}

static const char *stage_now; /* for the alarm */

static void no_end(int number)
{
  (void)number;
  static const char said[] = "\ntest_faults: a rank waits without end in the stage ";
  if (write(2, said, sizeof said - 1) > 0 && write(2, stage_now, strlen(stage_now)) > 0)
    (void)!write(2, "\n", 1);
  _exit(1);
}

/* Makes the stage until no place is left that has not failed yet; how many have. */
static int64_t fail_everywhere(const mt_stage *stage, const mt_fingerprint *made_by,
                               int rank)
{
  stage_now = stage->name;
  for (int64_t tried = 0;; tried++) {
    faults.fired = false;
    faults.armed = mt_test_world.rank == rank;
    alarm(30);
    mt_status status = make(stage, made_by);
    alarm(0);
    faults.armed = false;
    int64_t fired = faults.fired, low = status, high = status;
    mt_max_i64(&mt_test_world, 1, &fired);
    mt_min_i64(&mt_test_world, 1, &low);
    mt_max_i64(&mt_test_world, 1, &high);
    if (low != high)
      fail_msg("%s: fault %lld: not agreed", stage->name, (long long)tried);
    assert_int_equal(parts_left(), 0);
    if (fired) continue;
    assert_int_equal(status, MT_OK);
    mt_bcast(&mt_test_world, rank, sizeof faults, &faults); /* the next rank goes on */
    return tried;
  }
}

static void test_stages(void **state)
{
  (void)state;
  static const mt_stage *const stages[] = {
      &mt_stage_corpus, &mt_stage_lda,     &mt_stage_matrix, &mt_stage_knn,
      &mt_stage_umap,   &mt_stage_hdbscan, &mt_stage_map};
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_SILENT);
  signal(SIGALRM, no_end);
  for (int s = 0; s < 7; s++) {
    mt_fingerprint made_by = {""};
    if (mt_test_world.rank == 0)
      assert_int_equal(stages[s]->fingerprint(&run, &made_by), MT_OK);
    mt_bcast(&mt_test_world, 0, sizeof made_by, &made_by);
    memset(&faults, 0, sizeof faults);
    int64_t last = fail_everywhere(stages[s], &made_by, mt_test_world.size - 1);
    int64_t first = fail_everywhere(stages[s], &made_by, 0); /* what it alone does */
    assert_true(last + first > 20);
    if (mt_test_world.rank == 0)
      print_message("%s: faults at %lld places of all ranks, %lld of the first\n",
                    stages[s]->name, (long long)last, (long long)first);
  }
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_stages)};

MT_TEST_BACKEND_MAIN_AROUND(tests, begin, end)
