#include "base/progress.h"
#include "base/log.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

enum { BAR_WIDTH = 30 };
static const double terminal_interval = 0.1, file_interval = 10.0; /* seconds */

static struct {
  bool active, terminal, drawn;
  const char *label;
  int64_t total;
  double started, last;
} bar;

void mt_progress_begin(int rank, const char *label, int64_t total)
{
  bar.active = rank == 0 && total > 0 && mt_log_level_now() >= MT_LOG_INFO;
  bar.terminal = isatty(STDERR_FILENO) == 1;
  bar.drawn = false;
  bar.label = label;
  bar.total = total;
  bar.started = bar.last = mt_seconds();
}

static void draw_bar(int64_t done, double left)
{
  char cells[BAR_WIDTH + 1];
  int filled = (int)((double)done / (double)bar.total * BAR_WIDTH);
  for (int c = 0; c < BAR_WIDTH; c++) cells[c] = c < filled ? '#' : '.';
  cells[BAR_WIDTH] = '\0';
  fprintf(stderr, "\r%-8s [%s] %3.0f %%  %.0f s left \033[K", bar.label, cells,
          100.0 * (double)done / (double)bar.total, left);
  fflush(stderr);
  bar.drawn = true;
}

void mt_progress_update(int64_t done)
{
  if (!bar.active || done <= 0) return;
  double now = mt_seconds();
  if (now - bar.last < (bar.terminal ? terminal_interval : file_interval)) return;
  double left = (now - bar.started) * (double)(bar.total - done) / (double)done;
  bar.last = now;
  if (bar.terminal) {
    draw_bar(done, left);
    return;
  }
  mt_info("%s: %lld of %lld (%.0f %%), about %.0f s left", bar.label, (long long)done,
          (long long)bar.total, 100.0 * (double)done / (double)bar.total, left);
}

void mt_progress_clear(void)
{
  if (!bar.drawn) return;
  fputs("\r\033[K", stderr);
  bar.drawn = false;
}

void mt_progress_end(void)
{
  mt_progress_clear();
  bar.active = false;
}
