/* How much memory the largest rank needs for each stage, from sizes alone. */
#ifndef MT_MEMORY_NEED_H
#define MT_MEMORY_NEED_H
#include "deck/command_line.h"
#include "deck/parameters.h"

/* What a run works on. */
typedef struct mt_sizes {
  int64_t documents, stored; /* of the whole corpus */
  int64_t terms, periods;
  int64_t period_documents, period_stored; /* of the period with most counts */
  int64_t topics;                          /* rows of the matrix */
  int64_t ranks, team;                     /* all; those of knn, umap and hdbscan */
  int64_t threads;                         /* of a rank */
  bool nn_descent;                         /* for knn, instead of all pairs */
  int64_t base;                            /* bytes of a rank that does nothing */
} mt_sizes;

/**
 * bytes_out  [MT_N_STAGES], in the order of mt_stage_names; an estimate. The largest was
 *            within a third of what run.json said afterwards; small stages take more there,
 *            since a process keeps memory that earlier stages have freed
 */
void mt_memory_need(const mt_sizes *sizes, const mt_parameters *parameters,
                    int64_t *bytes_out);

/* Likewise of the GPU that needs most, for knn, umap and hdbscan, in that order. With less,
 * knn streams its rows; the others need it. */
enum { MT_N_GPU_STAGES = 3 };
void mt_device_memory_need(const mt_sizes *sizes, const mt_parameters *parameters,
                           int64_t *bytes_out);

#endif
