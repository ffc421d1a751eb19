/* The parts of the CUDA backend, as backend.cu puts them together. */
#ifndef MT_CUDA_BACKEND_H
#define MT_CUDA_BACKEND_H
#include "gpu.h"
#include "knn.h"

/* ---- device.cu -------------------------------------------------------------------------- */

/* Errors tell of this GPU from now on; NULL: of none. */
void mt_gpu_is_current(const mt_gpu *gpu);

/* The GPUs that this process sees and this build can use; makes no context. why_out: why
 * there are none, or fewer. */
void mt_gpu_find(mt_devices *devices_out, char *why_out, size_t why_size);

/* Has the device's pool keep its memory. */
mt_status mt_gpu_open_pool(int device);

/* Sets gpu->memory: METATOPICS_GPU_MEMORY, or what is free now but for a reserve. */
mt_status mt_gpu_measure_memory(mt_gpu *gpu);

/* ---- nn_descent.cu: the table's knn_approximate ------------------------------------------ */

mt_status mt_gpu_knn_approximate(mt_backend *be, const mt_comm *comm, mt_metric metric,
                                 int64_t k, const mt_rows *rows, int64_t *indices_out,
                                 float *distances_out, mt_knn_quality *quality_out);

#endif
