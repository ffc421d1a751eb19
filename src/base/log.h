/* Lines for people: one stream (stderr), prefixed with seconds since the start. */
#ifndef MT_BASE_LOG_H
#define MT_BASE_LOG_H
#include <stdbool.h>

typedef enum mt_log_level {
  MT_LOG_SILENT, /* for tests that expect an error */
  MT_LOG_ERROR,
  MT_LOG_WARN,
  MT_LOG_INFO,
  MT_LOG_DEBUG
} mt_log_level;

/**
 * Sets who speaks: errors and warnings come from any rank (with its number when
 * size > 1), info and debug from rank 0 alone. Before the first call: rank 0 of 1, info.
 */
void mt_log_setup(int rank, int size, mt_log_level level);

mt_log_level mt_log_level_now(void);

/* Does this rank say info and debug from now on? Rank 0 does, but where it has no part. */
void mt_log_speak(bool on);

/**
 * While all ranks do the same work on the same data (parsing the deck), each would find
 * the same error: with `on`, only rank 0 says it. Nests (counts).
 */
void mt_log_replicated(bool on);

void mt_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void mt_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void mt_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Seconds since the program started (monotonic clock). */
double mt_seconds(void);

#endif
