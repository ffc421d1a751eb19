/* What the program was built with and what it found at run time. */
#ifndef MT_REPORT_VERSIONS_H
#define MT_REPORT_VERSIONS_H
#include "backend/backend.h"

#include <jansson.h>
#include <stdio.h>

/* {"metatopics": ..., "mpi": ..., "hdf5": ..., ...}; new reference, NULL: out of memory.
 * gpu: of the ranks that own a GPU. */
json_t *mt_versions(const mt_backend_versions *gpu);

/* The same for people, a line each, of this process. */
void mt_versions_print(FILE *out);

#endif
