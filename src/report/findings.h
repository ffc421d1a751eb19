/* From the files of a run to what the report is made of. */
#ifndef MT_REPORT_FINDINGS_H
#define MT_REPORT_FINDINGS_H
#include "report/labels.h"

/**
 * Reads FOLDER/{corpus,topics,umap,hdbscan}.h5 but for the matrix. Not collective.
 * Errors   MT_ERR_IO: a file or dataset is missing, or they do not fit one another
 */
mt_status mt_findings_load(const char *folder, const mt_parameters *parameters,
                           mt_findings *findings_out);

#endif
