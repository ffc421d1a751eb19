/* A signal is a request to stop at the next safe point. */
#ifndef MT_BASE_STOP_H
#define MT_BASE_STOP_H
#include <stdbool.h>

/* SIGTERM, SIGINT and SIGUSR1 from now on set a flag. A second SIGINT kills. */
void mt_stop_install(void);

/* Has one arrived at this process? Ranks agree with mt_stop_agreed (comm/comm.h). */
bool mt_stop_requested(void);

/* The number of the signal, 0 if none came. */
int mt_stop_signal(void);

#endif
