/* What a stage of the job is: the row of the table in main.c. */
#ifndef MT_STAGE_STAGE_H
#define MT_STAGE_STAGE_H
#include "backend/backend.h"
#include "base/hash.h"
#include "comm/comm.h"
#include "deck/parameters.h"
#include <jansson.h>

/* What every stage is given; the same on all ranks; borrowed. */
typedef struct mt_run {
  const mt_parameters *parameters;
  const char *out;     /* the output folder; exists and is locked */
  mt_backend *backend; /* for knn, umap, hdbscan */
  bool force;          /* make everything again, whatever is there */
} mt_run;

/* What a stage tells about its work, for run.json; filled on rank 0. */
typedef struct mt_stage_result {
  int64_t rows; /* documents, fits, topics, ... */
  bool kept;    /* all of it was there already; the same on all ranks */
  json_t *
      metrics; /* an object to add figures to; made and freed by the caller; NULL on other ranks */
} mt_stage_result;

typedef struct mt_stage {
  const char *name;
  const char *file; /* what it leaves in the output folder, for messages */

  /**
   * The fingerprint of what this stage would write now, from the parameters that matter to
   * it and its inputs' fingerprints. Called on rank 0 alone, inputs being there.
   */
  mt_status (*fingerprint)(const mt_run *run, mt_fingerprint *out);

  /* Have the files that are there their checksums? Says which has not (mt_warn). Collective
   * over the world; reads them to the end. NULL: ask the HDF5 file. */
  mt_status (*is_whole)(const mt_comm *comm, const mt_run *run, bool *whole_out);

  /* Is it there, with that fingerprint? On rank 0 alone. NULL: ask the HDF5 file. */
  bool (*is_done)(const mt_run *run, const mt_fingerprint *made_by);

  /* Does the work and writes the file(s). Collective over comm: the world, or the
   * layout's team if on_team is set. */
  mt_status (*work)(const mt_comm *comm, const mt_run *run,
                    const mt_fingerprint *made_by, mt_stage_result *result);
  bool in_parts; /* work itself looks for what is left, and sets result->kept */
  bool on_team;  /* run by the ranks that own a GPU, when there are any */
} mt_stage;

/* One in each stage's folder. */
extern const mt_stage mt_stage_corpus, mt_stage_lda, mt_stage_matrix, mt_stage_knn,
    mt_stage_umap, mt_stage_hdbscan, mt_stage_map;

#endif
