/* Exact nearest neighbours on GPUs: the same bits as the CPU backend's (knn/metric.h), for any
 * number of GPUs and any sizes below. A product of rows rounded to half precision, on the
 * tensor cores, says which pairs could matter, with a bound on its error; their distances are
 * computed in double from differences; each row then shows, or fails to show, that no pair
 * was left out which could belong to its k nearest. Rows that fail are searched again with
 * what is known of them, and with products in double if that is not enough. */
#ifndef MT_CUDA_KNN_H
#define MT_CUDA_KNN_H
#include "gpu.h"

/* 0: as the data and the memory allow. The same on all ranks. They change the speed and the
 * memory, never the result. */
typedef struct mt_gpu_knn_sizes {
  int64_t tile;  /* rows of a block of products */
  int64_t keep;  /* candidates that a row keeps, at least k */
  int64_t room;  /* candidates that a row's list holds before it is cut to keep */
  int64_t again; /* candidates that a row may have when it is searched again */
  int64_t panel; /* columns that the tensor cores add up before a float takes the sum */
  int64_t fine;  /* the same when a row is searched again */
  int64_t
      stream; /* rows of a block that is read while the GPU works; 0: none if all fit */
  int64_t piece; /* own rows that are searched for at a time, if rows are streamed */
} mt_gpu_knn_sizes;

/* What it cost this GPU. */
typedef struct mt_gpu_knn_cost {
  int64_t exact;       /* distances computed in double */
  int64_t again;       /* rows that were searched again, knowing their k-th distance */
  int64_t with_double; /* rows of these that needed products in double */
  int64_t brute;       /* rows whose distances were all computed */
  int64_t streamed;    /* bytes read from the host while searching */
  /* seconds, by CUDA events: looking at the rows; rounding them; products and selection;
   * distances in double; all that is done again */
  double look, round, select, measure, repeat;
} mt_gpu_knn_cost;

/* The backend table's knn (backend/backend.h). */
mt_status mt_gpu_knn(mt_backend *be, const mt_comm *comm, mt_metric metric, int64_t k,
                     const mt_rows *rows, int64_t *indices_out, float *distances_out);

/* Likewise with sizes in hand. cost_out may be NULL. Tests find it by name. */
extern "C" __attribute__((visibility("default"))) mt_status
mt_gpu_knn_sized(mt_backend *be, const mt_comm *comm, mt_metric metric, int64_t k,
                 const mt_rows *rows, const mt_gpu_knn_sizes *sizes,
                 int64_t *indices_out, float *distances_out, mt_gpu_knn_cost *cost_out);

/**
 * Likewise of rows that lie on the GPUs, spread as mt_part_first says. 1 <= k < n.
 * rows        (local, d) float32 on the device, this GPU's
 * indices     (local, k) on the device: nearest first, ties by lower index
 * distances   (local, k) on the device
 * cost_out    or NULL
 * Errors      as the table's knn, agreed on; MT_ERR_MEMORY if they do not fit
 */
mt_status mt_gpu_knn_resident(mt_gpu *gpu, const mt_comm *comm, mt_metric metric,
                              int64_t k, int64_t n, int64_t d, const float *rows,
                              int64_t *indices, float *distances,
                              mt_gpu_knn_cost *cost_out);

#endif
