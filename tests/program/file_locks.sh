#!/bin/bash
# A file system without locks, as NFS and Lustre may be mounted: a run warns and goes on, whatever the
# error is. Where HDF5_USE_FILE_LOCKING asks for HDF5's own locks, an error says so.
. tests/program/lib.sh
cat >"$tmp/none.c" <<'C'
/* flock and locking fcntl fail, with the errno that NO_LOCKS says */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>

int flock(int file, int how)
{
  (void)file, (void)how;
  errno = atoi(getenv("NO_LOCKS"));
  return -1;
}

int fcntl(int file, int command, ...)
{
  va_list more;
  va_start(more, command);
  void *argument = va_arg(more, void *);
  va_end(more);
  int (*next)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl");
  if (command == F_OFD_SETLK) return flock(file, 0);
  return next(file, command, argument);
}
C
${CC:-cc} -D_GNU_SOURCE -shared -fPIC -o "$tmp/none.so" "$tmp/none.c" -ldl
write_jsonl "$tmp/corpus.jsonl" 120 2
write_deck "$tmp/deck.xml" "$tmp/corpus.jsonl"
expect_status 0 "$metatopics" run "$tmp/deck.xml" --out "$tmp/one"

# without_locks ERRNO RANKS [ASSIGNMENT]...: a run where there are none
without_locks() {
  local errno=$1 ranks=$2
  shift 2
  rm -rf "$tmp/out"
  mpi "$ranks" env "$@" NO_LOCKS="$errno" LD_PRELOAD="$tmp/none.so" \
    "$metatopics" run "$tmp/deck.xml" --out "$tmp/out"
}
for errno in 37 38; do # ENOLCK, ENOSYS
  expect_status 0 without_locks $errno 2
  expect_output 'this file system has no locks'
  expect_same "$tmp/one" "$tmp/out"
  expect_status 1 without_locks $errno 1 HDF5_USE_FILE_LOCKING=TRUE
  expect_output 'error: .*lock.*HDF5_USE_FILE_LOCKING=FALSE'
done
for value in TRUE BEST_EFFORT; do # where there are locks
  rm -rf "$tmp/out"
  HDF5_USE_FILE_LOCKING=$value expect_status 0 mpi 2 "$metatopics" run "$tmp/deck.xml" --out "$tmp/out"
  expect_same "$tmp/one" "$tmp/out"
done
