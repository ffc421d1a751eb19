/* `metatopics check`: everything that a run would do, without doing it. */
#ifndef MT_CHECK_H
#define MT_CHECK_H
#include "comm/comm.h"
#include "deck/command_line.h"
#include "deck/parameters.h"

#include <stdio.h>

/**
 * Prints every parameter in force, the periods and their fits, which rank does what, and
 * the memory that a rank needs. The periods come from corpus.h5 if the output folder has
 * one of this input; otherwise the collection is read through once to count documents.
 * Nothing is written to the folder. Collective.
 * out      used on rank 0
 * Errors   what reading the collection finds (MT_ERR_INPUT); the backend is not there
 */
mt_status mt_check_print(const mt_comm *world, const mt_command *command,
                         const mt_parameters *parameters, FILE *out);

#endif
