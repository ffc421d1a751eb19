/* Waiting for a debugger: which process to attach to, on which node. */
#ifndef MT_COMM_DEBUGGER_H
#define MT_COMM_DEBUGGER_H
#include "comm/comm.h"

/**
 * Rank 0 logs each rank's node and process; then all wait until a debugger is attached to at
 * least one and has let it go on. A stopped rank keeps the others waiting, so that several can
 * be attached to, one after the other. Collective.
 * Errors   MT_STOPPED if a signal asks to stop; MT_ERR_INPUT if the system cannot tell who is
 *          being debugged (no /proc)
 */
mt_status mt_debugger_wait(const mt_comm *world);

#endif
