/* Long work shows itself: a bar with the time left on a terminal, a plain line every
 * few seconds in a log file. Only rank 0 draws; the others' calls do nothing. */
#ifndef MT_BASE_PROGRESS_H
#define MT_BASE_PROGRESS_H
#include <stdint.h>

/**
 * Starts a display of `total` units of work; one at a time per process.
 * rank     who is calling: only 0 draws
 * label    e.g. "lda"; borrowed until mt_progress_end
 */
void mt_progress_begin(int rank, const char *label, int64_t total);

/* `done` of total units are finished (all ranks together); cheap, call it often. */
void mt_progress_update(int64_t done);

void mt_progress_end(void);

/* Wipes the bar so that a log line can be written; the next update draws it again. */
void mt_progress_clear(void);

#endif
