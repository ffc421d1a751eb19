#include "report/job.h"
#include "base/log.h"
#include "report/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NAME=number of a line; -1: it is not there. */
static int64_t field(const char *line, const char *end, const char *name)
{
  size_t length = strlen(name);
  for (const char *at = line; (at = strstr(at, name)) != NULL && at < end; at++) {
    char *behind;
    if (at[-1] != ' ' || at[length] != '=') continue;
    long long value = strtoll(at + length + 1, &behind, 10);
    return behind > at + length + 1 && value >= 0 ? value : -1;
  }
  return -1;
}

static int64_t add_known(int64_t sum, int64_t value)
{
  return sum < 0 || value < 0 ? -1 : sum + value;
}

/* Is it another task of the array that the job belongs to? The last task has the array's own
 * id, for which scontrol tells of all. */
static bool is_other_task(const char *line, const char *end, const mt_job *job)
{
  return field(line, end, "ArrayJobId") >= 0 &&
         strtoll(strchr(line, '=') + 1, NULL, 10) != atoll(job->id);
}

/* A line of the answer is a component. */
bool mt_job_read(const char *text, mt_job *job)
{
  static const char start[] = "JobId=";
  int64_t components = 0, nodes = 0, cores = 0;
  for (const char *line = strstr(text, start); line != NULL;
       line = strstr(line + 1, start)) {
    const char *end = line + strcspn(line, "\n");
    if (line > text && line[-1] != '\n') continue; /* of another field's name */
    if (is_other_task(line, end, job)) continue;
    nodes = add_known(nodes, field(line, end, "NumNodes"));
    cores = add_known(cores, field(line, end, "NumCPUs"));
    if (components++ > 0) continue;
    int64_t begun = field(line, end, "StartTime"),
            submitted = field(line, end, "SubmitTime");
    job->cpus_per_task = field(line, end, "CPUs/Task");
    job->restarts = field(line, end, "Restarts");
    job->queue_seconds = submitted >= 0 && begun >= submitted ? begun - submitted : -1;
  }
  if (components == 0) return false;
  job->components = components;
  job->nodes = nodes;
  job->cores = cores;
  return true;
}

static int64_t from_environment(const char *name)
{
  const char *text = getenv(name);
  long long value = text != NULL ? atoll(text) : 0;
  return value > 0 ? value : -1;
}

void mt_job_ask(mt_job *job_out)
{
  mt_job job = {.components = 1, .queue_seconds = -1, .cores = -1};
  const char *id = getenv("SLURM_JOB_ID");
  mt_process_end end = {0};
  *job_out = job;
  if (id == NULL || id[0] == '\0') return;
  snprintf(job.id, sizeof job.id, "%s", id);
  job.nodes = from_environment("SLURM_JOB_NUM_NODES");
  job.cpus_per_task = from_environment("SLURM_CPUS_PER_TASK");
  job.restarts = from_environment("SLURM_RESTART_COUNT");
  const char *const arguments[] = {"timeout",  "10", "env",  "SLURM_TIME_FORMAT=%s",
                                   "scontrol", "-o", "show", "job",
                                   job.id,     NULL};
  if (mt_process_run(NULL, arguments, &end) != MT_OK || !end.found || end.code != 0 ||
      !mt_job_read(end.output, &job))
    mt_info("scontrol does not tell of job %s: how long it waited, and which cores it "
            "holds beside those of the ranks, is not known",
            job.id);
  free(end.output);
  *job_out = job;
}
