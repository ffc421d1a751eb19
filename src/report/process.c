#include "report/process.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
enum { MOST_OUTPUT = 1 << 20 };

/* A new process with stdout and stderr in a file; 0 or an errno. */
static int spawn(const char *folder, const char *const *arguments, int output,
                 pid_t *pid_out)
{
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none;
  int failed = posix_spawn_file_actions_init(&actions);
  if (failed != 0) return failed;
  failed = posix_spawnattr_init(&attributes);
  if (failed != 0) {
    posix_spawn_file_actions_destroy(&actions);
    return failed;
  }
  sigemptyset(&none);
  failed = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (failed == 0) failed = posix_spawn_file_actions_adddup2(&actions, output, 1);
  if (failed == 0) failed = posix_spawn_file_actions_adddup2(&actions, output, 2);
  if (failed == 0 && folder != NULL)
    failed = posix_spawn_file_actions_addchdir_np(&actions, folder);
  if (failed == 0) failed = posix_spawnattr_setsigmask(&attributes, &none);
  if (failed == 0)
    failed = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  if (failed == 0)
    failed = posix_spawnp(pid_out, arguments[0], &actions, &attributes,
                          (char *const *)arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failed;
}

static mt_status wait_for(pid_t pid, const char *name, int *code_out)
{
  int state;
  pid_t ended;
  do ended = waitpid(pid, &state, 0);
  while (ended < 0 && errno == EINTR);
  if (ended < 0)
    return mt_fail(MT_ERR_IO, "cannot wait for %s: %s", name, strerror(errno));
  *code_out = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  return MT_OK;
}

static mt_status read_output(FILE *file, char **output_out)
{
  mt_status status = MT_OK;
  char *output = NULL;
  MT_NEW(output, MOST_OUTPUT + 1);
  rewind(file);
  output[fread(output, 1, MOST_OUTPUT, file)] = '\0';
  *output_out = output;
done:
  return status;
}

mt_status mt_process_run(const char *folder, const char *const *arguments,
                         mt_process_end *end_out)
{
  mt_status status = MT_OK;
  mt_process_end end = {.found = true};
  pid_t pid;
  FILE *output = tmpfile();
  MT_REQUIRE(output != NULL, MT_ERR_IO, "no temporary file for %s: %s", arguments[0],
             strerror(errno));
  int failed = spawn(folder, arguments, fileno(output), &pid);
  end.found = failed != ENOENT && failed != EACCES;
  if (end.found) {
    MT_REQUIRE(failed == 0, MT_ERR_IO, "cannot start %s: %s", arguments[0],
               strerror(failed));
    MT_TRY(wait_for(pid, arguments[0], &end.code));
    MT_TRY(read_output(output, &end.output));
  }
  *end_out = end;
done:
  if (output != NULL) fclose(output);
  return status;
}
