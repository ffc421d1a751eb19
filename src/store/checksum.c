#include "store/checksum.h"
#include "base/log.h"
#include "base/memory.h"
#include "store/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, LINE = 73 };

/* What is summed up over all blocks: the words of their hashes, and those not to be read. */
enum { WORDS = 4, HIDDEN = WORDS, SUMS };

/* `size` bytes from `at` on, all of them? */
static bool read_whole(int descriptor, int64_t at, size_t size, char *out)
{
  for (size_t have = 0; have < size;) {
    ssize_t got = pread(descriptor, out + have, size - have, (off_t)at + (off_t)have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    have += (size_t)got;
  }
  return true;
}

static void add_block(int descriptor, int64_t block, int64_t end, char *buffer,
                      int64_t *sums)
{
  int64_t at = block * BLOCK;
  size_t size = (size_t)(end - at < BLOCK ? end - at : BLOCK);
  uint32_t words[WORDS];
  if (!read_whole(descriptor, at, size, buffer)) {
    sums[HIDDEN]++;
    return;
  }
  mt_hash_words(buffer, size, (uint64_t)block, words);
  for (int w = 0; w < WORDS; w++) sums[w] += words[w];
}

/* This rank's share of the blocks, by all threads. */
static mt_status add_share(const mt_comm *comm, int descriptor, int64_t end,
                           int64_t *sums)
{
  mt_status status = MT_OK;
  int64_t blocks = (end + BLOCK - 1) / BLOCK;
  int64_t first = mt_part_first(blocks, comm->size, comm->rank);
  int64_t last = mt_part_first(blocks, comm->size, comm->rank + 1);
  int threads = omp_get_max_threads();
  char *buffers = NULL;
  if (last == first) goto done;
  if (last - first < threads) threads = (int)(last - first);
  MT_TRY(mt_memory_new(threads, BLOCK, "a file's blocks", (void **)&buffers));
#pragma omp parallel for num_threads(threads) reduction(+ : sums[:SUMS])
  for (int64_t block = first; block < last; block++)
    add_block(descriptor, block, end, buffers + (size_t)omp_get_thread_num() * BLOCK,
              sums);
done:
  free(buffers);
  return status;
}

/* The last line of a file whose first `end` bytes are given; false if some could not be read.
 * Collective. */
static mt_status make_line(const mt_comm *comm, int descriptor, int64_t end,
                           char line[LINE + 1], bool *read_out)
{
  mt_status status = MT_OK;
  int64_t sums[SUMS] = {0};
  MT_TRY(mt_agree(comm, add_share(comm, descriptor, end, sums)));
  MT_TRY(mt_sum_i64(comm, SUMS, sums));
  snprintf(line, LINE + 1, "\nchecksum %08x%08x%08x%08x of %020lld bytes\n",
           (uint32_t)sums[0], (uint32_t)sums[1], (uint32_t)sums[2], (uint32_t)sums[3],
           (long long)end);
  *read_out = sums[HIDDEN] == 0;
done:
  return status;
}

/* As rank 0 sees it; -1 if it does not. */
static mt_status find_size(const mt_comm *comm, int descriptor, int64_t *size_out)
{
  struct stat about;
  *size_out = descriptor >= 0 && fstat(descriptor, &about) == 0 ? about.st_size : -1;
  return mt_bcast(comm, 0, sizeof *size_out, size_out);
}

static mt_status write_line(const char *path, const char *line)
{
  mt_status status = MT_OK;
  int descriptor = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  MT_REQUIRE(descriptor >= 0, MT_ERR_IO, "cannot open %s: %s", path, strerror(errno));
  ssize_t wrote = write(descriptor, line, LINE);
  MT_REQUIRE(wrote == LINE, MT_ERR_IO, "cannot write %s: %s", path,
             strerror(wrote < 0 ? errno : ENOSPC));
done:
  if (descriptor >= 0 && close(descriptor) != 0 && status == MT_OK)
    status = mt_fail(MT_ERR_IO, "cannot write %s: %s", path, strerror(errno));
  return status;
}

mt_status mt_checksum_append(const mt_comm *comm, const char *path)
{
  mt_status status = MT_OK;
  char line[LINE + 1] = "";
  int64_t size = 0;
  bool read = false;
  int descriptor = mt_file_open(path);
  if (descriptor < 0)
    status = mt_fail(MT_ERR_IO, "cannot open %s: %s", path, strerror(errno));
  MT_TRY(mt_agree(comm, status));
  MT_TRY(find_size(comm, descriptor, &size));
  MT_TRY(make_line(comm, descriptor, size, line, &read));
  if (comm->rank == 0)
    status = read ? write_line(path, line)
                  : mt_fail(MT_ERR_IO, "%s: cannot read what was written", path);
  MT_TRY(mt_agree(comm, status));
done:
  if (descriptor >= 0) close(descriptor);
  return status;
}

/* Does the file end with that line? */
static bool ends_with(int descriptor, int64_t end, const char *line)
{
  char there[LINE];
  return end >= 0 && read_whole(descriptor, end, LINE, there) &&
         memcmp(there, line, LINE) == 0;
}

mt_status mt_checksum_verify(const mt_comm *comm, const char *path, bool *whole_out)
{
  mt_status status = MT_OK;
  char line[LINE + 1] = "";
  int64_t size = 0;
  int descriptor = mt_file_open(path);
  bool whole = false, there = descriptor >= 0 || errno != ENOENT;
  MT_TRY(find_size(comm, descriptor, &size));
  if (size >= LINE) MT_TRY(make_line(comm, descriptor, size - LINE, line, &whole));
  if (comm->rank == 0) whole = whole && ends_with(descriptor, size - LINE, line);
  MT_TRY(mt_bcast(comm, 0, sizeof whole, &whole));
  if (!whole && there && comm->rank == 0)
    mt_warn("%s is damaged: its bytes are not those that its checksum was made of",
            path);
  *whole_out = whole;
done:
  if (descriptor >= 0) close(descriptor);
  return status;
}

mt_fingerprint mt_checksum_of(const char *path)
{
  char bytes[1 << 14];
  ssize_t got;
  mt_fingerprint none = {""};
  int descriptor = mt_file_open(path);
  if (descriptor < 0) return none;
  mt_hash *hash = mt_hash_begin();
  while ((got = read(descriptor, bytes, sizeof bytes)) > 0)
    mt_hash_bytes(hash, bytes, (size_t)got);
  close(descriptor);
  mt_fingerprint print = mt_hash_end(hash);
  return got == 0 ? print : none;
}
