/* What past runs took, side by side in the order of time: a table and a plot. */
#ifndef MT_REPORT_HISTORY_H
#define MT_REPORT_HISTORY_H
#include "report/costs.h"
#include "base/status.h"

#include <sys/types.h>

/* A run that cost more than this, and a second more, than its predecessors' median is marked. */
#define MT_CLEARLY_MORE 1.25

typedef struct mt_past_run {
  char *folder;
  json_t *record; /* its run.json, which has the figures of this format */
  mt_costs costs;
  double
      ratio; /* what it cost per unit of work, predecessors' median = 1; NAN: none is alike */
  int64_t predecessors; /* of the stage that has most */
  bool marked;          /* clearly more */
  const char
      *dearest; /* the stage that adds most to it, of record; NULL if not marked */
  double dearest_ratio;
  dev_t device; /* of run.json: a folder that is named twice is one run */
  ino_t file;
} mt_past_run;

typedef struct mt_history {
  int64_t n, capacity, skipped;
  mt_past_run *runs; /* by the time when they started */
} mt_history;

/**
 * Reads DIR/run.json of each folder, or where a folder has none, those of the folders below it (a
 * run's own folder is searched no further; links are not followed). A run.json that is damaged,
 * or of another format, and a folder without any, are skipped, each with a warning that says why.
 * Compares the runs (see mt_history_compare). Not collective.
 * Errors   MT_ERR_INPUT: a folder is not there, or no run is left
 */
mt_status mt_history_read(int n, const char *const *folders, mt_history *history_out);
void mt_history_destroy(mt_history *history);

/**
 * What each run cost per unit of work: of the stages that it made itself, the core seconds (on GPUs
 * the GPU seconds) per unit, over the median of the same in the runs before it that made the stage
 * on the same backend with half to twice as much work; all stages together weighted by their
 * time: ratio = seconds / what the run would have taken at the medians, with what it held.
 * Units of work: corpus documents; lda floating-point operations; matrix topics x terms; knn pairs
 * that were compared x terms; umap edges x epochs; hdbscan and map topics.
 */
mt_status mt_history_compare(mt_history *history);

const char *
mt_past_run_started(const mt_past_run *run); /* "1987-03-17T14:05:09.250Z" */
/* The end of its folder's name, in so many columns, drawable; owned by the caller. */
mt_status mt_past_run_name(const mt_past_run *run, int columns, char **name_out);
/* "done", "failed", ...; "killed?" of one that did not come to its end, or is under way. */
const char *mt_past_run_outcome(const mt_past_run *run);
bool mt_history_has_gpus(const mt_history *history);

/* A table, a line a run, oldest first, then what is marked and what was skipped. */
void mt_history_print(const mt_history *history, FILE *out);

/**
 * FOLDER/history.dat, .gp, .svg and .png: the figures over the runs, marked ones in another colour.
 * The folder is made.
 * Errors   MT_ERR_INPUT, MT_ERR_IO; MT_STOPPED. Without gnuplot: a warning
 */
mt_status mt_history_plot(const mt_history *history, const char *folder);

#endif
