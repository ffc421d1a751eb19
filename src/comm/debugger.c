#include "comm/debugger.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef struct process {
  char host[64];
  int64_t pid;
} process;

/* 1: yes, 0: no, -1: the system does not say */
static int is_traced(void)
{
  char line[256];
  int tracer = -1;
  FILE *file = fopen("/proc/self/status", "r");
  if (file == NULL) return -1;
  while (tracer < 0 && fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "TracerPid: %d", &tracer) == 1) tracer = tracer != 0;
  fclose(file);
  return tracer;
}

static mt_status log_processes(const mt_comm *world)
{
  mt_status status = MT_OK;
  process own = {.pid = getpid()}, *all = NULL;
  gethostname(own.host, sizeof own.host - 1);
  MT_TRY(mt_agree(world,
                  mt_memory_new(world->size, sizeof *all, "processes", (void **)&all)));
  MT_TRY(mt_allgather(world, sizeof own, &own, all));
  mt_info("waiting for a debugger: gdb -p PROCESS on the rank's node, set breakpoints, "
          "continue");
  for (int r = 0; r < world->size; r++)
    mt_info("  rank %d: node %s, process %lld", r, all[r].host, (long long)all[r].pid);
done:
  free(all);
  return status;
}

mt_status mt_debugger_wait(const mt_comm *world)
{
  static const struct timespec tenth = {.tv_nsec = 100000000};
  mt_status status = MT_OK;
  int64_t traced = is_traced();
  MT_TRY(mt_agree(world, traced < 0 ? mt_fail(MT_ERR_INPUT,
                                              "--wait-for-debugger: this system does "
                                              "not say who is being debugged (no "
                                              "/proc/self/status)")
                                    : MT_OK));
  MT_TRY(log_processes(world));
  for (;;) {
    traced = is_traced() == 1;
    MT_TRY(mt_max_i64(world, 1, &traced));
    if (traced) break;
    MT_TRY(mt_stop_agreed(world) ? MT_STOPPED : MT_OK);
    nanosleep(&tenth, NULL);
  }
  mt_info("a debugger is attached: going on");
done:
  return status;
}
