/* What a finished or half-finished run holds. */
#ifndef MT_REPORT_SHOW_H
#define MT_REPORT_SHOW_H
#include "base/status.h"

#include <stdio.h>

/**
 * Prints for people: how the run ended, the stages with their files, sizes and whether each
 * belongs to the parameters and inputs that are there, what a half-finished run does next,
 * parameters that differ from the defaults, metrics, and the meta-topics. Not collective;
 * changes nothing.
 * Errors   MT_ERR_INPUT: the folder is not there, or holds no run
 */
mt_status mt_show(const char *folder, FILE *out);

#endif
