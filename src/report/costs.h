/* What a run took, read from its run.json: tables, totals, and what it asked for too much of. */
#ifndef MT_REPORT_COSTS_H
#define MT_REPORT_COSTS_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A number of an object; NAN if it has none of that name. */
double mt_figure(const json_t *object, const char *key);

/* After a blank, in so many columns; "-" for NAN. */
void mt_figure_print(double value, int width, int decimals, FILE *out);

/* All starts of the job together, if Slurm queued it again; NAN: not known, or not measured. */
typedef struct mt_costs {
  int64_t starts;
  double seconds, node_hours, cpu_seconds;
  double core_seconds;  /* cores held x wall seconds */
  double queue_seconds; /* waited, over the starts of which it is known */
  double peak_memory;   /* bytes of the largest rank */
  double gpu_busy,
      gpu_memory; /* of the last start: share; bytes of the GPU that held most */
} mt_costs;
void mt_costs_read(const json_t *run, mt_costs *costs_out);

/* CPU seconds used of those held, 0..1 and, where nothing binds ranks to cores, above. */
double mt_costs_efficiency(const mt_costs *costs);

/* What a Slurm job could have asked for less of. */
typedef struct mt_surplus {
  double busy, cores; /* cores that were busy on average; that were held */
  const char
      *option; /* "--cpus-per-task", "--ntasks" or "--nodes"; NULL: no one request */
  int64_t now, enough; /* enough: for as many cores as were busy on average */
} mt_surplus;

/**
 * Was a run in a Slurm job less than half efficient, and which request should shrink?
 * Whole nodes of which at most half were asked for: nodes. Else threads, as far as each rank can
 * spare them; else ranks. No one request: of a heterogeneous job, whose components wait for each
 * other whatever their sizes. false: outside of Slurm, and with a single core.
 */
bool mt_costs_surplus(const json_t *run, mt_surplus *surplus_out);

/* A table of the stages and the whole run, and lines about the job: the wait in the queue, a low
 * efficiency and what to ask for. A figure that was not measured is "-". */
void mt_costs_print(const json_t *run, FILE *out);

#endif
