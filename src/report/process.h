/* Another program, run to its end. */
#ifndef MT_REPORT_PROCESS_H
#define MT_REPORT_PROCESS_H
#include "base/status.h"

#include <stdbool.h>

typedef struct mt_process_end {
  bool found;   /* false: there is no such program on the PATH */
  int code;     /* its exit status; 128 + the signal that ended it */
  char *output; /* what it wrote to stdout and stderr, the first MiB; owned */
} mt_process_end;

/**
 * Runs arguments[0], found on the PATH, in a folder, with no input; waits for its end. By
 * posix_spawn: the memory and the MPI of this process stay as they are.
 * folder     NULL: here
 * arguments  NULL at the end
 * Errors     MT_ERR_IO, MT_ERR_MEMORY if it cannot even be tried; one that fails is none
 */
mt_status mt_process_run(const char *folder, const char *const *arguments,
                         mt_process_end *end_out);

#endif
