/* The GPUs' nearest neighbours with the sizes of their blocks in hand: what knn.h hides, for
 * tests and benchmarks, in C. */
#ifndef MT_CUDA_KNN_SIZES_H
#define MT_CUDA_KNN_SIZES_H
#ifdef __cplusplus
extern "C" {
#endif
#include "backend/backend.h"

/* 0: as the data and the memory allow. The same on all ranks. They change the speed and the
 * memory, never the result. */
typedef struct mt_gpu_knn_sizes {
  int64_t tile;  /* rows of a block of products */
  int64_t keep;  /* candidates that a row keeps, at least k */
  int64_t room;  /* candidates that a row's list holds before it is cut to keep */
  int64_t again; /* candidates that a row may have when it is searched again */
  int64_t panel; /* columns that the tensor cores add up before a float takes the sum */
  int64_t fine;  /* the same when a row is searched again */
  int64_t group; /* rows that a group of those searched again has at least */
  /* rows of a block that is read while the GPU works; 0: none if all fit */
  int64_t stream;
  int64_t query; /* own rows in hand while distances are computed, if streamed */
  int64_t piece; /* own rows that are searched for at a time, if rows are streamed */
} mt_gpu_knn_sizes;

/* What it cost this GPU. */
typedef struct mt_gpu_knn_cost {
  int64_t exact;       /* distances computed in double */
  int64_t again;       /* rows that were searched again, knowing their k-th distance */
  int64_t ungrouped;   /* rows of these that lay in no large group of alike ones */
  int64_t with_double; /* rows of these that needed products in double */
  int64_t brute;       /* rows whose distances were all computed */
  int64_t streamed;    /* bytes read from the host while searching */
  /* seconds, by CUDA events: looking at the rows; rounding them; products and selection;
   * distances in double; all that is done again */
  double look, round, select, measure, repeat;
} mt_gpu_knn_cost;

/* As the table's knn (backend/backend.h); cost_out may be NULL. Tests find it by its name in
 * the shared object. */
typedef mt_status mt_gpu_knn_search(mt_backend *be, const mt_comm *comm,
                                    mt_metric metric, int64_t k, const mt_rows *rows,
                                    const mt_gpu_knn_sizes *sizes, int64_t *indices_out,
                                    float *distances_out, mt_gpu_knn_cost *cost_out);
__attribute__((visibility("default"))) mt_gpu_knn_search mt_gpu_knn_sized;

#ifdef __cplusplus
}
#endif
#endif
