#include "report/history.h"
#include "base/log.h"
#include "report/draw.h"
#include "store/folder.h"

#include <math.h>
#include <stdlib.h>

/* A panel of the plot: its figures are columns of history.dat, by the run's number. */
typedef struct mt_panel {
  const char *title;
  const char *names[2]; /* of its lines; NULL: no second */
  int columns[2];
  double least; /* that its axis reaches */
  bool marks;   /* lines at the median and at what is clearly more */
} mt_panel;

enum {
  NUMBER = 1,
  RATIO,
  NODE_HOURS,
  CPU,
  MEMORY,
  GPU_BUSY,
  GPU_MEMORY,
  QUEUE,
  MARKED
};
static const mt_panel panels[] = {
    {"cost per unit of work, the median of the runs before = 1",
     {"cost"},
     {RATIO},
     1.5,
     true},
    {"node hours", {"node hours"}, {NODE_HOURS}, 1e-6, false},
    {"busy, %", {"CPU efficiency", "GPUs"}, {CPU, GPU_BUSY}, 100.0, false},
    {"memory, MiB", {"largest rank", "fullest GPU"}, {MEMORY, GPU_MEMORY}, 1.0, false},
    {"waited in the queue, s", {"queue"}, {QUEUE}, 1.0, false},
};
enum { N_PANELS = sizeof panels / sizeof *panels };

/* Pixels. */
enum {
  WIDTH = 1200,
  TOP = 50,
  PANEL = 150,
  GAP = 44,
  BOTTOM = 100,
  LEFT = 90,
  RIGHT = 20
};
enum { HEIGHT = TOP + N_PANELS * (PANEL + GAP) + BOTTOM };

static void print_value(double value, FILE *out)
{
  if (isnan(value))
    fputs(" NaN", out);
  else
    fprintf(out, " %.6g", value);
}

static void print_data(const mt_history *history, FILE *out)
{
  fputs("# The runs of history.gp, oldest first; NaN: not measured.\n"
        "# number ratio node_hours cpu_percent memory_MiB gpu_percent gpu_MiB queue_s "
        "marked started\n",
        out);
  for (int64_t r = 0; r < history->n; r++) {
    const mt_past_run *run = &history->runs[r];
    const mt_costs *costs = &run->costs;
    fprintf(out, "%lld", (long long)r + 1);
    print_value(run->ratio, out);
    print_value(costs->node_hours, out);
    print_value(100.0 * mt_costs_efficiency(costs), out);
    print_value(costs->peak_memory / 1048576.0, out);
    print_value(100.0 * costs->gpu_busy, out);
    print_value(costs->gpu_memory / 1048576.0, out);
    print_value(costs->queue_seconds, out);
    fprintf(out, " %d %s\n", run->marked, mt_past_run_started(run));
  }
}

/* ---- the script --------------------------------------------------------------------------- */

/* Day and name below so many of the runs that they can be read. */
static void print_names(const mt_history *history, FILE *out)
{
  enum { MOST = 40, COLUMNS = 12 };
  int64_t every = (history->n + MOST - 1) / MOST;
  fputs("set xtics nomirror rotate by 40 right noenhanced font ',9' (", out);
  for (int64_t r = 0; r < history->n; r += every) {
    const mt_past_run *run = &history->runs[r];
    char *name = NULL, label[128];
    if (mt_past_run_name(run, COLUMNS, &name) != MT_OK) continue;
    snprintf(label, sizeof label, "%.5s %s", mt_past_run_started(run) + 5, name);
    free(name);
    if (r > 0) fputs(", ", out);
    mt_gnuplot_quote(label, out);
    fprintf(out, " %lld", (long long)r + 1);
  }
  fputs(")\n", out);
}

static double from_below(double pixels)
{
  return 1.0 - pixels / HEIGHT;
}

static void print_line(const mt_panel *panel, int which, FILE *out)
{
  static const char *const colours[] = {"#0072B2", "#009E73"};
  fprintf(
      out,
      ", \\\n  'history.dat' using %d:%d with linespoints pt 7 ps 0.7 lw 1.5 lc rgb "
      "'%s' title '%s'",
      NUMBER, panel->columns[which], colours[which],
      panel->names[1] != NULL ? panel->names[which] : "");
}

/* Is there anything to draw? gnuplot stops at a range without a point. */
static bool has_values(const mt_history *history, int column)
{
  for (int64_t r = 0; r < history->n; r++) {
    const mt_past_run *run = &history->runs[r];
    const double values[] = {[RATIO] = run->ratio,
                             [NODE_HOURS] = run->costs.node_hours,
                             [CPU] = mt_costs_efficiency(&run->costs),
                             [MEMORY] = run->costs.peak_memory,
                             [GPU_BUSY] = run->costs.gpu_busy,
                             [GPU_MEMORY] = run->costs.gpu_memory,
                             [QUEUE] = run->costs.queue_seconds};
    if (!isnan(values[column])) return true;
  }
  return false;
}

static void print_panel(const mt_history *history, int p, FILE *out)
{
  const mt_panel *panel = &panels[p];
  double top = TOP + p * (PANEL + GAP) + GAP;
  fprintf(out, "set tmargin at screen %.5f\nset bmargin at screen %.5f\n",
          from_below(top), from_below(top + PANEL));
  bool any = has_values(history, panel->columns[0]);
  fprintf(out,
          "set label 97 '%s' at graph 0,1.12 left font ',12' tc rgb '#202020'\n"
          "set yrange [0:%g%s]\n",
          panel->title, panel->least, any ? "<*" : "");
  if (p == N_PANELS - 1) print_names(history, out);
  if (!any)
    fputs("set label 99 'not measured' at graph 0.5,0.5 center tc rgb '#707070'\n",
          out);
  fputs("plot NaN notitle", out);
  if (panel->marks && any)
    fprintf(
        out,
        ", \\\n  1 lc rgb '#808080' lw 1 title '', \\\n  %.2f lc rgb '#D55E00' lw 1 "
        "dt 2 title ''",
        MT_CLEARLY_MORE);
  for (int i = 0; i < 2 && panel->names[i] != NULL; i++)
    if (has_values(history, panel->columns[i])) print_line(panel, i, out);
  if (any)
    fprintf(out,
            ", \\\n  '' using ($%d == 1 ? $%d : NaN):%d with points pt 7 ps 1.3 lc rgb "
            "'#D55E00' %s",
            MARKED, NUMBER, panel->columns[0],
            panel->marks ? "title 'costs clearly more'" : "notitle");
  fputs("\nunset label\n", out);
}

/* Beside marked runs: how much more, and where; one of several that lie close together. */
static void print_marks(const mt_history *history, FILE *out)
{
  int64_t apart = history->n / 12, last = -apart - 1;
  for (int64_t r = 0; r < history->n; r++) {
    const mt_past_run *run = &history->runs[r];
    bool left = 2 * r < history->n; /* of the page: room is to the right */
    if (!run->marked || r - last <= apart) continue;
    last = r;
    fprintf(out,
            "set label '%.2f: %s' at %lld,%.6g %s offset %d,0.4 font ',10' tc rgb "
            "'#D55E00' front\n",
            run->ratio, run->dearest, (long long)r + 1, run->ratio,
            left ? "left" : "right", left ? 1 : -1);
  }
}

static void print_picture(const mt_history *history, const char *kind, FILE *out)
{
  fprintf(
      out,
      "set output part.'history.%s'\nset multiplot\n"
      "set label 98 'Runs: %lld, from %.10s to %.10s' at screen 0.5,%.5f center font "
      "',18' tc rgb '#202020'\n",
      kind, (long long)history->n, mt_past_run_started(&history->runs[0]),
      mt_past_run_started(&history->runs[history->n - 1]), from_below(28));
  fputs("unset xtics\nset key at graph 1,1.22 right top horizontal samplen 2 font "
        "',10'\n",
        out);
  print_marks(history, out);
  for (int p = 0; p < N_PANELS; p++) print_panel(history, p, out);
  fputs("unset multiplot\nunset output\n\n", out);
}

static void print_script(const mt_history *history, FILE *out)
{
  fprintf(
      out,
      "# What runs took, oldest first. Draw it again: gnuplot history.gp\n"
      "if (!exists('part')) part = '' # before the names of the pictures\n"
      "set encoding utf8\n"
      "set lmargin at screen %.5f\nset rmargin at screen %.5f\n"
      "set xrange [0.5:%.1f]\nset border 3 lc rgb '#808080'\n"
      "set ytics nomirror font ',10'\nset grid ytics lt 1 lw 1 lc rgb '#E0E0E0'\n\n"
      "set terminal svg size %d,%d font 'sans-serif,12' background rgb 'white' name "
      "'metatopics'\n",
      (double)LEFT / WIDTH, 1.0 - (double)RIGHT / WIDTH, (double)history->n + 0.5,
      WIDTH, HEIGHT);
  print_picture(history, "svg", out);
  fprintf(out,
          "if (strstrt(GPVAL_TERMINALS, 'pngcairo') == 0) exit message 'this gnuplot "
          "has no pngcairo terminal'\n"
          "set terminal pngcairo size %d,%d font 'sans-serif,12' fontscale 0.75 "
          "background rgb 'white'\n",
          WIDTH, HEIGHT);
  print_picture(history, "png", out);
}

/* ---- files -------------------------------------------------------------------------------- */

static mt_status save(const mt_history *history, const char *folder, const char *name,
                      void (*print)(const mt_history *history, FILE *out))
{
  char *bytes = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&bytes, &size);
  if (out == NULL) return mt_fail(MT_ERR_MEMORY, "%s: no memory to write it", name);
  print(history, out);
  return mt_printed_save(folder, name, out, &bytes, &size);
}

mt_status mt_history_plot(const mt_history *history, const char *folder)
{
  mt_status status = MT_OK;
  bool drawn;
  MT_TRY(mt_folder_make(folder));
  MT_TRY(save(history, folder, "history.dat", print_data));
  MT_TRY(save(history, folder, "history.gp", print_script));
  MT_TRY(mt_pictures_draw(folder, "history", true, true, &drawn));
  if (drawn) mt_info("plot: %s/history.svg, %s/history.png", folder, folder);
done:
  return status;
}
