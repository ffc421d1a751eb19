/* The Slurm job that a run is part of: what it holds, and how long it waited for it. */
#ifndef MT_REPORT_JOB_H
#define MT_REPORT_JOB_H
#include <stdbool.h>
#include <stdint.h>

/* What is not known is -1. */
typedef struct mt_job {
  char id[32];           /* empty: not in a Slurm job */
  int64_t components;    /* of a heterogeneous job; else 1 */
  int64_t nodes, cores;  /* of all components; cores as Slurm counts CPUs */
  int64_t cpus_per_task; /* as asked for, 1 if it was not; of the first component */
  int64_t restarts;      /* how often it was queued again */
  int64_t
      queue_seconds; /* from its submission, or from when it was queued again, to this
                            start */
} mt_job;

/**
 * Asks the environment and, in a job, `scontrol show job` once; a log line says so if that does
 * not answer within ten seconds. Not collective: for rank 0.
 */
void mt_job_ask(mt_job *job_out);

/* Takes what `scontrol -o show job` printed of job->id, times in seconds (SLURM_TIME_FORMAT=%s):
 * a line for each component, or for each task if it is a job array's own id. false: it tells of
 * no such job. id stays. */
bool mt_job_read(const char *text, mt_job *job);

#endif
