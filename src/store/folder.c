#include "store/folder.h"
#include "base/log.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

char *mt_path_join(const char *folder, const char *name)
{
  char *path = NULL;
  if (asprintf(&path, "%s/%s", folder, name) < 0) {
    mt_fail(MT_ERR_MEMORY, "no memory for a path");
    return NULL;
  }
  return path;
}

static bool is_folder(const char *path)
{
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

mt_status mt_folder_make(const char *path)
{
  mt_status status = MT_OK;
  char *partial = NULL;
  MT_TRY(mt_string_copy(path, &partial));
  for (char *at = partial + 1; *partial != '\0'; at++) {
    char kept = *at;
    if (kept != '/' && kept != '\0') continue;
    *at = '\0';
    int cause = mkdir(partial, 0777) == 0 ? 0 : errno;
    MT_REQUIRE(cause == 0 || is_folder(partial), MT_ERR_INPUT,
               "cannot make the folder %s: %s", partial,
               cause == EEXIST ? "it exists and is no folder" : strerror(cause));
    if (kept == '\0') break;
    *at = kept;
  }
  MT_REQUIRE(is_folder(path), MT_ERR_INPUT, "\"%s\" is no folder", path);
done:
  free(partial);
  return status;
}

int mt_file_open(const char *path)
{
  struct stat info;
  int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0 || (fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode)))
    return descriptor;
  close(descriptor);
  errno = EINVAL;
  return -1;
}

static mt_status write_all(int descriptor, const char *path, const void *bytes,
                           size_t size)
{
  for (const char *at = bytes; size > 0;) {
    ssize_t wrote = write(descriptor, at, size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0)
      return mt_fail(MT_ERR_IO, "cannot write %s: %s", path, strerror(errno));
    at += wrote;
    size -= (size_t)wrote;
  }
  return MT_OK;
}

mt_status mt_file_replace(const char *path, const void *bytes, size_t size)
{
  mt_status status = MT_OK;
  char *part = NULL;
  int descriptor = -1;
  MT_REQUIRE(asprintf(&part, "%s.part", path) > 0, MT_ERR_MEMORY,
             "no memory for a path");
  descriptor = open(part, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  MT_REQUIRE(descriptor >= 0, MT_ERR_IO, "cannot write %s: %s", part, strerror(errno));
  MT_TRY(write_all(descriptor, part, bytes, size));
  int failed = close(descriptor);
  descriptor = -1;
  MT_REQUIRE(failed == 0, MT_ERR_IO, "cannot write %s: %s", part, strerror(errno));
  MT_TRY(mt_rename_synced(part, path));
done:
  if (descriptor >= 0) close(descriptor);
  if (status != MT_OK && part != NULL) remove(part);
  free(part);
  return status;
}

/* ---- the lock -------------------------------------------------------------------------- */

struct mt_lock {
  int descriptor;
};

/* Who holds a lock: "host cpu1, process 4711, job 17, since 2026-11-30 12:00:00". */
static int describe_holder(char *text, size_t size)
{
  char host[256] = "?", when[32] = "";
  time_t now = time(NULL);
  struct tm broken;
  const char *job = getenv("SLURM_JOB_ID");
  gethostname(host, sizeof host - 1);
  strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", localtime_r(&now, &broken));
  return snprintf(text, size, "host %s, process %ld%s%.64s, since %s\n", host,
                  (long)getpid(), job != NULL ? ", Slurm job " : "",
                  job != NULL ? job : "", when);
}

static mt_status refuse(const char *folder, int descriptor)
{
  char holder[512] = "";
  ssize_t length = pread(descriptor, holder, sizeof holder - 1, 0);
  while (length > 0 && (holder[length - 1] == '\n')) length--;
  holder[length > 0 ? length : 0] = '\0';
  return mt_fail(
      MT_ERR_INPUT,
      "%s is in use by another run (%s): wait for it, or choose another --out", folder,
      holder[0] != '\0' ? holder : "it left no name");
}

static mt_status take(const char *folder, mt_lock **lock_out)
{
  mt_status status = MT_OK;
  mt_lock *lock = NULL;
  char holder[512], *path = mt_path_join(folder, ".lock");
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  MT_REQUIRE(path != NULL, MT_ERR_MEMORY, "no lock on %s", folder);
  MT_NEW(lock, 1);
  lock->descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  MT_REQUIRE(lock->descriptor >= 0, MT_ERR_INPUT,
             "cannot write in the output folder %s: %s", folder, strerror(errno));
  if (fcntl(lock->descriptor, F_OFD_SETLK, &whole) != 0) {
    if (errno == EAGAIN || errno == EACCES) MT_TRY(refuse(folder, lock->descriptor));
    mt_warn(
        "%s: this file system has no locks (%s): make sure that no other run uses it",
        folder, strerror(errno));
  }
  int length = describe_holder(holder, sizeof holder);
  MT_REQUIRE(ftruncate(lock->descriptor, 0) == 0 &&
                 pwrite(lock->descriptor, holder, (size_t)length, 0) == length,
             MT_ERR_IO, "cannot write %s: %s", path, strerror(errno));
  *lock_out = lock;
  lock = NULL;
done:
  if (lock != NULL && lock->descriptor >= 0) close(lock->descriptor);
  free(lock);
  free(path);
  return status;
}

mt_status mt_lock_take(const mt_comm *comm, const char *folder, mt_lock **lock_out)
{
  return mt_agree(comm, comm->rank == 0 ? take(folder, lock_out) : MT_OK);
}

void mt_lock_release(mt_lock *lock)
{
  if (lock == NULL) return;
  if (ftruncate(lock->descriptor, 0) != 0) mt_debug("the lock file keeps its text");
  close(lock->descriptor);
  free(lock);
}
