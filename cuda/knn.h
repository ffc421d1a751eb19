/* Exact nearest neighbours on GPUs: the same bits as the CPU backend's (knn/metric.h), for any
 * number of GPUs and any sizes below. A product of rows rounded to half precision, on the
 * tensor cores, says which pairs could matter, with a bound on its error; their distances are
 * computed in double from differences; each row then shows, or fails to show, that no pair
 * was left out which could belong to its k nearest. Rows that fail are searched again with
 * what is known of them, and with products in double if that is not enough. */
#ifndef MT_CUDA_KNN_H
#define MT_CUDA_KNN_H
#include "gpu.h"
#include "knn_sizes.h"

/* The backend table's knn (backend/backend.h). */
mt_status mt_gpu_knn(mt_backend *be, const mt_comm *comm, mt_metric metric, int64_t k,
                     const mt_rows *rows, int64_t *indices_out, float *distances_out);

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
