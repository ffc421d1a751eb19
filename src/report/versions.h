/* What the program was built with and what it found at run time. */
#ifndef MT_REPORT_VERSIONS_H
#define MT_REPORT_VERSIONS_H
#include <jansson.h>
#include <stdio.h>

/* {"metatopics": ..., "mpi": ..., "hdf5": ..., ...}; new reference, NULL: out of memory. */
json_t *mt_versions(void);

/* The same for people, a line each. */
void mt_versions_print(FILE *out);

#endif
