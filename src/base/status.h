/* What a function answers, and how an error travels. */
#ifndef MT_BASE_STATUS_H
#define MT_BASE_STATUS_H

/* Ordered by weight: ranks that disagree settle on the largest (mt_agree). */
typedef enum mt_status {
  MT_OK = 0,
  MT_STOPPED,      /* a signal asked for it; the work so far is saved */
  MT_ERR_INPUT,    /* the command line, the deck or the input is wrong */
  MT_ERR_ARG,      /* a caller broke a function's contract */
  MT_ERR_IO,       /* a file could not be read or written */
  MT_ERR_MEMORY,   /* out of memory */
  MT_ERR_LIBRARY,  /* a library answered with an error */
  MT_ERR_INTERNAL, /* what should never happen */
} mt_status;

/**
 * Logs an error and returns its status: `return mt_fail(MT_ERR_IO, "cannot ...")`.
 * Whoever finds an error calls this, once; callers only pass the status on.
 * status   what to return; MT_OK is not an error and must not be given
 * format   printf's; lower case, the cause and the next step, no newline
 */
mt_status mt_fail(mt_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/**
 * The program's exit status for a result: 0 done, 1 the run failed, 2 the command
 * line, the deck or the input is wrong, 3 stopped by a signal after a checkpoint.
 */
int mt_exit_code(mt_status status);

/* In a function with `mt_status status` and one `done:` label. */
#define MT_TRY(call)                \
  do {                              \
    status = (call);                \
    if (status != MT_OK) goto done; \
  } while (0)

/* Likewise: if the condition does not hold, log, set status and leave. */
#define MT_REQUIRE(condition, code, ...)   \
  do {                                     \
    if (!(condition)) {                    \
      status = mt_fail(code, __VA_ARGS__); \
      goto done;                           \
    }                                      \
  } while (0)

#endif
