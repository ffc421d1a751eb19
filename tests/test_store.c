/* RANKS 1 2 3 4 7
 * What is written by any number of ranks is read back, whole, or not there at all. */
#include "test.h"

#include "base/memory.h"
#include "store/checksum.h"
#include "store/folder.h"
#include "store/store.h"

#include <hdf5.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64]; /* of this test, the same on all ranks */

static const mt_dataset words = {"/a/words", MT_TEXT, "some words", "1", {"row", NULL}};
static const mt_dataset pairs = {
    "/a/pairs", MT_TEXT, "pairs of words", "1", {"row", "column"}};
static const mt_dataset matrix = {
    "/matrix", MT_FLOAT32, "numbers", "1", {"row", "column"}};
static const mt_dataset count = {
    "/b/c/count", MT_INT64, "counts", "documents", {"row", NULL}};
static const mt_dataset empty = {"/empty", MT_INT32, "nothing", "1", {"row", NULL}};
static const mt_dataset narrow = {
    "/narrow", MT_INT64, "rows without columns", "1", {"row", "column"}};
static const mt_fingerprint made_by = {"0123456789abcdef0123456789abcdef"};

static int make_folder(void **state)
{
  (void)state;
  if (mt_test_world.rank == 0) {
    strcpy(folder, "/tmp/mt-store-XXXXXX");
    if (mkdtemp(folder) == NULL) return 1;
  }
  return mt_bcast(&mt_test_world, 0, sizeof folder, folder) != MT_OK;
}

static int remove_folder(void **state)
{
  (void)state;
  char command[128];
  mt_barrier(&mt_test_world);
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return mt_test_world.rank == 0 ? system(command) : 0;
}

/* Row i's word: odd lengths, empty, quotes, letters beyond ASCII. */
static char *word_of(int64_t i)
{
  static const char *const odd[] = {"", "\"quoted\", with comma", "\xc3\xa9t\xc3\xa9",
                                    "_a_"};
  char *text = NULL;
  assert_true(asprintf(&text, "%s%.*s", odd[i % 4], (int)(i * 37 % 1000), odd[1]) >= 0);
  return text;
}

static void write_file(const mt_comm *comm, const char *path, int64_t n)
{
  int64_t first = mt_part_first(n, comm->size, comm->rank);
  int64_t local = mt_part_count(n, comm->size, comm->rank);
  char **texts = calloc((size_t)(2 * local + 1), sizeof *texts);
  float *numbers = calloc((size_t)(3 * local + 1), sizeof *numbers);
  int64_t *counts = calloc((size_t)(local + 1), sizeof *counts);
  for (int64_t i = 0; i < 2 * local; i++) texts[i] = word_of(2 * first + i);
  for (int64_t i = 0; i < 3 * local; i++) numbers[i] = (float)(3 * first + i);
  for (int64_t i = 0; i < local; i++) counts[i] = (first + i) << 40;
  mt_file *file = NULL;
  assert_int_equal(mt_store_create(comm, path, &made_by, &file), MT_OK);
  assert_int_equal(mt_store_write(comm, file, &words, local, 0, texts), MT_OK);
  assert_int_equal(mt_store_write(comm, file, &pairs, local, 2, texts), MT_OK);
  assert_int_equal(mt_store_set_text(comm, file, "name", "x \xc3\xa9"), MT_OK);
  assert_int_equal(mt_store_write(comm, file, &matrix, local, 3, numbers), MT_OK);
  assert_int_equal(mt_store_write(comm, file, &count, local, 0, counts), MT_OK);
  assert_int_equal(mt_store_write(comm, file, &empty, 0, 0, NULL), MT_OK);
  assert_int_equal(mt_store_write(comm, file, &narrow, local, 0, NULL), MT_OK);
  assert_int_equal(mt_store_set_i64(comm, file, "n", n), MT_OK);
  assert_int_equal(mt_store_set_f64(comm, file, "half", 0.5), MT_OK);
  assert_int_equal(access(path, F_OK), -1); /* not there before the commit */
  assert_int_equal(mt_barrier(comm), MT_OK);
  assert_int_equal(mt_store_commit(comm, &file), MT_OK);
  mt_store_free_texts(2 * local, texts);
  free(texts);
  free(numbers);
  free(counts);
}

static void check_file(const char *path, int64_t n)
{
  mt_file *file = NULL;
  int64_t rows, width, stored;
  double half;
  char *name = NULL;
  mt_fingerprint print = mt_store_fingerprint(path);
  assert_true(mt_fingerprint_equal(&print, &made_by));
  assert_int_equal(mt_store_open(path, &file), MT_OK);
  assert_int_equal(mt_store_shape(file, "/matrix", &rows, &width), MT_OK);
  assert_int_equal(rows, n);
  assert_int_equal(width, 3);
  assert_int_equal(mt_store_shape(file, "/narrow", &rows, &width), MT_OK);
  assert_int_equal(rows, n);
  assert_int_equal(width, 0);
  assert_int_equal(mt_store_read(file, "/narrow", MT_INT64, 0, n, &stored), MT_OK);
  assert_int_equal(mt_store_get_i64(file, "n", &stored), MT_OK);
  assert_int_equal(stored, n);
  assert_int_equal(mt_store_get_f64(file, "half", &half), MT_OK);
  assert_true(half == 0.5);
  assert_int_equal(mt_store_get_text(file, "name", &name), MT_OK);
  assert_string_equal(name, "x \xc3\xa9");
  free(name);

  char **texts = calloc((size_t)(2 * n + 1), sizeof *texts);
  float *numbers = calloc((size_t)(3 * n + 1), sizeof *numbers);
  double *counts = calloc((size_t)(n + 1), sizeof *counts);
  assert_int_equal(mt_store_read(file, "/a/pairs", MT_TEXT, 0, n, texts), MT_OK);
  for (int64_t i = 0; i < 2 * n; i++) {
    char *want = word_of(i);
    assert_string_equal(texts[i], want);
    free(want);
  }
  assert_int_equal(mt_store_read(file, "/matrix", MT_FLOAT32, 0, n, numbers), MT_OK);
  for (int64_t i = 0; i < 3 * n; i++) assert_true(numbers[i] == (float)i);
  assert_int_equal(mt_store_read(file, "/b/c/count", MT_FLOAT64, 0, n, counts), MT_OK);
  for (int64_t i = 0; i < n; i++) assert_true(counts[i] == (double)(i << 40));
  mt_store_free_texts(2 * n, texts);
  free(texts);
  free(numbers);
  free(counts);
  mt_store_close(file);
}

static void test_round_trip(void **state)
{
  (void)state;
  static const int64_t sizes[] = {0, 1, 2, 5, 64};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (size_t message = 7; message < 1000; message += 900) {
      char path[128];
      mt_comm comm = mt_test_world;
      comm.max_message = message;
      snprintf(path, sizeof path, "%s/%d-%zu.h5", folder, (int)sizes[s], message);
      write_file(&comm, path, sizes[s]);
      check_file(path, sizes[s]);
    }
}

static void test_damaged(void **state)
{
  (void)state;
  char path[128];
  snprintf(path, sizeof path, "%s/cut.h5", folder);
  write_file(&mt_test_world, path, 100);
  if (mt_test_world.rank == 0) assert_int_equal(truncate(path, 1000), 0);
  assert_int_equal(mt_barrier(&mt_test_world), MT_OK);
  mt_fingerprint print = mt_store_fingerprint(path);
  assert_int_equal(print.hex[0], '\0');
  print = mt_store_fingerprint("/no/such/file");
  assert_int_equal(print.hex[0], '\0');
}

/* Attributes and datasets that are larger than who reads them expects. */
static void test_strange(void **state)
{
  (void)state;
  char path[128];
  static const char texts[2][33] = {"0123456789abcdef0123456789abcdef", "more"};
  const int64_t numbers[100] = {1};
  hsize_t two = 2, hundred = 100;
  mt_file *file = NULL;
  int64_t number = 0;
  char *text = NULL;
  snprintf(path, sizeof path, "%s/strange.%d.h5", folder, mt_test_world.rank);
  hid_t id = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  hid_t type = H5Tcopy(H5T_C_S1), texts_of = H5Screate_simple(1, &two, NULL);
  hid_t numbers_of = H5Screate_simple(1, &hundred, NULL);
  H5Tset_size(type, sizeof texts[0]);
  hid_t print = H5Acreate2(id, "fingerprint", type, texts_of, H5P_DEFAULT, H5P_DEFAULT);
  hid_t n = H5Acreate2(id, "n", H5T_NATIVE_INT64, numbers_of, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(H5Awrite(print, type, texts) >= 0);
  assert_true(H5Awrite(n, H5T_NATIVE_INT64, numbers) >= 0);
  H5Aclose(print), H5Aclose(n), H5Tclose(type), H5Sclose(texts_of),
      H5Sclose(numbers_of);
  assert_true(H5Fclose(id) >= 0);
  mt_log_setup(0, 1, MT_LOG_SILENT);
  assert_int_equal(mt_store_fingerprint(path).hex[0], '\0');
  assert_int_equal(mt_store_open(path, &file), MT_OK);
  assert_int_equal(mt_store_get_i64(file, "n", &number), MT_ERR_IO);
  assert_int_equal(mt_store_get_text(file, "fingerprint", &text), MT_ERR_IO);
  mt_store_close(file);
  snprintf(path, sizeof path, "%s/own.%d.h5", folder, mt_test_world.rank);
  mt_comm self = mt_comm_self();
  write_file(&self, path, 5);
  assert_int_equal(mt_store_open(path, &file), MT_OK);
  assert_int_equal(mt_store_expect(file, "/matrix", 5, 3), MT_OK);
  assert_int_equal(mt_store_expect(file, "/matrix", 5, 2), MT_ERR_IO);
  assert_int_equal(mt_store_expect(file, "/matrix", 4, 3), MT_ERR_IO);
  assert_int_equal(mt_store_expect(file, "/nothing", 4, 3), MT_ERR_IO);
  mt_store_close(file);
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_WARN);
}

static void test_abandoned(void **state)
{
  (void)state;
  char path[128], part[140];
  mt_file *file = NULL;
  snprintf(path, sizeof path, "%s/left.h5", folder);
  snprintf(part, sizeof part, "%s.part", path);
  assert_int_equal(mt_store_create(&mt_test_world, path, &made_by, &file), MT_OK);
  mt_store_abandon(&mt_test_world, &file);
  assert_int_equal(mt_barrier(&mt_test_world), MT_OK);
  assert_int_equal(access(path, F_OK), -1);
  assert_int_equal(access(part, F_OK), -1);
  mt_log_setup(0, 1, MT_LOG_SILENT); /* the error is expected */
  assert_int_equal(
      mt_store_create(&mt_test_world, "/no/such/folder/x.h5", &made_by, &file),
      MT_ERR_IO);
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_WARN);
}

/* Turns one bit over; on rank 0, for all to see. */
static void flip(const char *path, long at)
{
  if (mt_test_world.rank == 0) {
    FILE *file = fopen(path, "r+");
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    int byte = getc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    putc(byte ^ 16, file);
    assert_int_equal(fclose(file), 0);
  }
  assert_int_equal(mt_barrier(&mt_test_world), MT_OK);
}

/* The same answer on all ranks together and on each alone. */
static void expect_whole(const char *path, bool expected)
{
  mt_comm self = mt_comm_self();
  bool whole = !expected;
  assert_int_equal(mt_checksum_verify(&mt_test_world, path, &whole), MT_OK);
  assert_int_equal(whole, expected);
  assert_int_equal(mt_checksum_verify(&self, path, &whole), MT_OK);
  assert_int_equal(whole, expected);
  assert_int_equal(mt_barrier(&mt_test_world), MT_OK);
}

/* A flipped bit anywhere, a byte less and a byte more are seen. */
static void test_checksum(void **state)
{
  (void)state;
  char path[128];
  struct stat about;
  snprintf(path, sizeof path, "%s/sum.h5", folder);
  write_file(&mt_test_world, path, 100);
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_ERROR);
  expect_whole(path, true);
  assert_int_equal(stat(path, &about), 0);
  for (long at = 0; at < about.st_size; at += about.st_size / 13) {
    flip(path, at);
    expect_whole(path, false);
    flip(path, at);
  }
  flip(path, (long)about.st_size - 1);
  expect_whole(path, false);
  flip(path, (long)about.st_size - 1);
  expect_whole(path, true);
  for (int change = -1; change <= 1; change += 2) {
    if (mt_test_world.rank == 0)
      assert_int_equal(truncate(path, about.st_size + change), 0);
    assert_int_equal(mt_barrier(&mt_test_world), MT_OK);
    expect_whole(path, false);
  }
  snprintf(path, sizeof path, "%s/nothing.h5", folder);
  expect_whole(path, false);
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_WARN);
}

static void write_bytes(const char *path, size_t size)
{
  FILE *file = fopen(path, "w");
  for (size_t i = 0; i < size; i++) putc((int)(i * i / 7919 % 251), file);
  assert_int_equal(fclose(file), 0);
}

/* The same checksum from any number of ranks and threads; of sizes about whole blocks. */
static void test_checksum_ranks(void **state)
{
  (void)state;
  char together[128], alone[128], command[300];
  mt_comm self = mt_comm_self();
  static const size_t sizes[] = {0, 5, (1 << 20) - 1, 1 << 20, 1 << 22, (9 << 20) + 77};
  int threads = omp_get_max_threads();
  snprintf(together, sizeof together, "%s/together", folder);
  snprintf(alone, sizeof alone, "%s/alone", folder);
  snprintf(command, sizeof command, "cmp %s %s", together, alone);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    if (mt_test_world.rank == 0) write_bytes(together, sizes[i]);
    assert_int_equal(mt_barrier(&mt_test_world), MT_OK);
    omp_set_num_threads(3);
    assert_int_equal(mt_checksum_append(&mt_test_world, together), MT_OK);
    omp_set_num_threads(threads);
    if (mt_test_world.rank > 0) continue;
    write_bytes(alone, sizes[i]);
    assert_int_equal(mt_checksum_append(&self, alone), MT_OK);
    assert_int_equal(system(command), 0);
  }
}

static void test_lock(void **state)
{
  (void)state;
  mt_lock *lock = NULL, *second = NULL;
  assert_int_equal(mt_lock_take(&mt_test_world, folder, &lock), MT_OK);
  mt_log_setup(0, 1, MT_LOG_SILENT);
  assert_int_equal(mt_lock_take(&mt_test_world, folder, &second), MT_ERR_INPUT);
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_WARN);
  mt_lock_release(lock);
  assert_int_equal(mt_barrier(&mt_test_world), MT_OK);
  assert_int_equal(mt_lock_take(&mt_test_world, folder, &second), MT_OK);
  mt_lock_release(second);
}

static void test_folder(void **state)
{
  (void)state;
  char path[128];
  if (mt_test_world.rank != 0) return;
  snprintf(path, sizeof path, "%s/x/y/z", folder);
  assert_int_equal(mt_folder_make(path), MT_OK);
  assert_int_equal(mt_folder_make(path), MT_OK);
  mt_log_setup(0, 1, MT_LOG_SILENT);
  assert_int_equal(mt_folder_make("/dev/null/x"), MT_ERR_INPUT);
  mt_log_setup(mt_test_world.rank, mt_test_world.size, MT_LOG_WARN);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_round_trip), cmocka_unit_test(test_damaged),
    cmocka_unit_test(test_strange),    cmocka_unit_test(test_abandoned),
    cmocka_unit_test(test_checksum),   cmocka_unit_test(test_checksum_ranks),
    cmocka_unit_test(test_lock),       cmocka_unit_test(test_folder),
};

MT_TEST_MAIN_AROUND(tests, make_folder, remove_folder)
