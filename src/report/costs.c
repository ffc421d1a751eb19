#include "report/costs.h"

#include <math.h>
#include <string.h>

double mt_figure(const json_t *object, const char *key)
{
  const json_t *value = json_object_get(object, key);
  return json_is_number(value) ? json_number_value(value) : NAN;
}

/* ---- totals ----------------------------------------------------------------------------- */

/* Unknown and known: what is known. */
static double sum_known(double a, double b)
{
  return isnan(a) ? b : isnan(b) ? a : a + b;
}

static void add_start(const json_t *start, double queue_seconds, mt_costs *costs)
{
  double seconds = mt_figure(start, "seconds");
  costs->starts++;
  costs->seconds = sum_known(costs->seconds, seconds);
  costs->node_hours = sum_known(costs->node_hours, mt_figure(start, "node_hours"));
  costs->cpu_seconds = sum_known(costs->cpu_seconds, mt_figure(start, "cpu_seconds"));
  costs->core_seconds =
      sum_known(costs->core_seconds, mt_figure(start, "cores") * seconds);
  costs->queue_seconds = sum_known(costs->queue_seconds, queue_seconds);
  costs->peak_memory = fmax(costs->peak_memory, mt_figure(start, "peak_memory_bytes"));
}

void mt_costs_read(const json_t *run, mt_costs *costs_out)
{
  size_t i;
  json_t *start;
  mt_costs costs = {0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
  json_array_foreach(json_object_get(run, "earlier_starts"), i, start)
      add_start(start, mt_figure(start, "queue_seconds"), &costs);
  add_start(run, mt_figure(json_object_get(run, "slurm"), "queue_seconds"), &costs);
  costs.gpu_busy = mt_figure(run, "gpu_busy_share");
  costs.gpu_memory = mt_figure(run, "gpu_peak_memory_bytes");
  *costs_out = costs;
}

double mt_costs_efficiency(const mt_costs *costs)
{
  return costs->core_seconds > 0.0 ? costs->cpu_seconds / costs->core_seconds : NAN;
}

/* ---- what was too much ------------------------------------------------------------------ */

static int64_t ceiling(double value)
{
  int64_t up = (int64_t)ceil(value - 1e-9);
  return up > 1 ? up : 1;
}

/* Takes a request if it is smaller than the one that was made. */
static bool shrink(mt_surplus *surplus, const char *option, double now, double enough)
{
  surplus->option = option;
  surplus->now = (int64_t)now;
  surplus->enough = ceiling(enough);
  return surplus->enough < surplus->now;
}

bool mt_costs_surplus(const json_t *run, mt_surplus *surplus_out)
{
  const json_t *slurm = json_object_get(run, "slurm");
  double ranks = mt_figure(run, "ranks"), nodes = mt_figure(run, "nodes");
  double threads = fmax(mt_figure(slurm, "cpus_per_task"), 1.0); /* 1 if not known */
  mt_surplus s = {.busy = mt_figure(run, "cpu_seconds") / mt_figure(run, "seconds"),
                  .cores = mt_figure(run, "cores")};
  bool low = s.busy < 0.5 * s.cores && s.cores > 1.0 && ranks >= 1.0 && nodes >= 1.0;
  if (slurm == NULL || !low) return false;
  double enough = (double)ceiling(s.busy), enough_nodes = enough * nodes / s.cores;
  bool several = mt_figure(slurm, "components") > 1.0;
  bool whole_nodes = s.cores >= 2.0 * ranks * threads;
  bool found =
      !several && ((whole_nodes && shrink(&s, "--nodes", nodes, enough_nodes)) ||
                   shrink(&s, "--cpus-per-task", threads, enough / ranks) ||
                   shrink(&s, "--ntasks", ranks, enough / threads) ||
                   shrink(&s, "--nodes", nodes, enough_nodes));
  if (!found) s.option = NULL;
  *surplus_out = s;
  return true;
}

/* ---- the table ---------------------------------------------------------------------------- */

void mt_figure_print(double value, int width, int decimals, FILE *out)
{
  if (isnan(value))
    fprintf(out, " %*s", width, "-");
  else
    fprintf(out, " %*.*f", width, decimals, value);
}

/* Of a stage or of the run. */
static void print_row(const char *name, const json_t *row, bool gpus,
                      const char *remark, FILE *out)
{
  fprintf(out, "%-8s", name);
  mt_figure_print(mt_figure(row, "rows"), 10, 0, out);
  mt_figure_print(mt_figure(row, "seconds"), 10, 2, out);
  mt_figure_print(mt_figure(row, "node_hours"), 10, 4, out);
  mt_figure_print(100.0 * mt_figure(row, "cpu_efficiency"), 6, 0, out);
  mt_figure_print(mt_figure(row, "peak_memory_bytes") / 1048576.0, 11, 0, out);
  if (gpus) {
    mt_figure_print(100.0 * mt_figure(row, "gpu_busy_share"), 6, 0, out);
    mt_figure_print(mt_figure(row, "gpu_peak_memory_bytes") / 1048576.0, 8, 0, out);
  }
  fprintf(out, "%s\n", remark);
}

static void print_held(const json_t *run, FILE *out)
{
  double nodes = mt_figure(run, "nodes"), cores = mt_figure(run, "cores"),
         gpus = mt_figure(run, "gpus");
  if (isnan(nodes) || isnan(cores)) return;
  fprintf(out, "held: %.0f node%s, %.0f core%s", nodes, nodes == 1.0 ? "" : "s", cores,
          cores == 1.0 ? "" : "s");
  if (gpus > 0.0) fprintf(out, ", %.0f GPU%s", gpus, gpus == 1.0 ? "" : "s");
  fputs("; memory is the largest rank's\n", out);
}

static void print_job(const json_t *run, FILE *out)
{
  const json_t *slurm = json_object_get(run, "slurm");
  const char *id = json_string_value(json_object_get(slurm, "job_id"));
  double waited = mt_figure(slurm, "queue_seconds");
  mt_costs all;
  if (id == NULL) return;
  fprintf(out, "job %s: ", id);
  if (isnan(waited))
    fputs("how long it waited in the queue is not known", out);
  else
    fprintf(out, "waited %.0f s in the queue", waited);
  mt_costs_read(run, &all);
  if (all.starts > 1)
    fprintf(out, "; with %lld earlier start%s: %.4f node hours, %.0f s in the queue",
            (long long)all.starts - 1, all.starts == 2 ? "" : "s", all.node_hours,
            all.queue_seconds);
  putc('\n', out);
}

static void print_surplus(const json_t *run, FILE *out)
{
  mt_surplus s;
  if (!mt_costs_surplus(run, &s)) return;
  fprintf(out, "low CPU efficiency: of %.0f cores %.1f were busy on average; ", s.cores,
          s.busy);
  if (s.option != NULL)
    fprintf(out, "ask for %s=%lld (now %lld)\n", s.option, (long long)s.enough,
            (long long)s.now);
  else
    fputs("components of one job wait for each other, two jobs (twostep.sh) do not\n",
          out);
}

static const char *remark_on(const json_t *stage)
{
  const char *since = json_string_value(json_object_get(stage, "peak_memory_since"));
  if (json_is_true(json_object_get(stage, "kept"))) return "  kept from an earlier run";
  bool so_far = since != NULL && strcmp(since, "start") == 0;
  return so_far ? "  memory: since the start" : "";
}

void mt_costs_print(const json_t *run, FILE *out)
{
  size_t i;
  json_t *stage;
  bool gpus = mt_figure(run, "gpus") > 0.0;
  fprintf(out, "%-8s %10s %10s %10s %6s %11s%s\n", "stage", "rows", "seconds", "node h",
          "CPU %", "memory MiB", gpus ? "  GPU %  GPU MiB" : "");
  json_array_foreach(json_object_get(run, "stages"), i, stage)
  {
    const char *name = json_string_value(json_object_get(stage, "name"));
    print_row(name != NULL ? name : "?", stage, gpus, remark_on(stage), out);
  }
  print_row("run", run, gpus, "", out);
  print_held(run, out);
  print_job(run, out);
  print_surplus(run, out);
}
