#include "base/log.h"
#include "base/progress.h"
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static struct {
  int rank, size, replicated;
  mt_log_level level;
  bool speaks;
} logger = {0, 1, 0, MT_LOG_INFO, true};

void mt_log_setup(int rank, int size, mt_log_level level)
{
  logger.rank = rank;
  logger.size = size;
  logger.level = level;
  logger.speaks = rank == 0;
}

void mt_log_speak(bool on)
{
  logger.speaks = on;
}

mt_log_level mt_log_level_now(void)
{
  return logger.level;
}

void mt_log_replicated(bool on)
{
  logger.replicated += on ? 1 : -1;
}

double mt_seconds(void)
{
  static struct timespec start;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (start.tv_sec == 0) start = now;
  return (double)(now.tv_sec - start.tv_sec) +
         1e-9 * (double)(now.tv_nsec - start.tv_nsec);
}

/* One write per line, so that the lines of several ranks do not mix. */
static void say(const char *label, const char *format, va_list arguments)
{
  char line[4096];
  int at = snprintf(line, sizeof line, "%9.3f ", mt_seconds());
  if (logger.size > 1 && label[0] != '\0')
    at += snprintf(line + at, sizeof line - (size_t)at, "[rank %d] ", logger.rank);
  at += snprintf(line + at, sizeof line - (size_t)at, "%s", label);
  int wrote = vsnprintf(line + at, sizeof line - (size_t)at - 1, format, arguments);
  size_t length = (size_t)at + (wrote > 0 ? (size_t)wrote : 0);
  if (length > sizeof line - 2) length = sizeof line - 2;
  line[length] = '\n';
  mt_progress_clear();
  fwrite(line, 1, length + 1, stderr);
  fflush(stderr);
}

static bool heard(mt_log_level level)
{
  if (level > logger.level) return false;
  return logger.speaks || (level <= MT_LOG_WARN && logger.replicated == 0);
}

mt_status mt_fail(mt_status status, const char *format, ...)
{
  if (!heard(MT_LOG_ERROR)) return status;
  va_list arguments;
  va_start(arguments, format);
  say("error: ", format, arguments);
  va_end(arguments);
  return status;
}

#define MT_SPEAKER(name, level, label) \
  void name(const char *format, ...)   \
  {                                    \
    if (!heard(level)) return;         \
    va_list arguments;                 \
    va_start(arguments, format);       \
    say(label, format, arguments);     \
    va_end(arguments);                 \
  }

MT_SPEAKER(mt_warn, MT_LOG_WARN, "warning: ")
MT_SPEAKER(mt_info, MT_LOG_INFO, "")
MT_SPEAKER(mt_debug, MT_LOG_DEBUG, "")

int mt_exit_code(mt_status status)
{
  switch (status) {
  case MT_OK:
    return 0;
  case MT_STOPPED:
    return 3;
  case MT_ERR_INPUT:
    return 2;
  default:
    return 1;
  }
}
