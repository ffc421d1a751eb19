/* The CPU backend's nearest neighbours with the sizes of its blocks in hand. */
#ifndef MT_BACKEND_CPU_KNN_H
#define MT_BACKEND_CPU_KNN_H
#include "backend/backend.h"

/* Rows; 0: as memory allows. Taken up to whole groups (cpu_product.h). The same on all ranks. They
 * change the speed and the memory, never the result. */
typedef struct mt_cpu_knn_sizes {
  int64_t query; /* of this rank that are searched for at a time */
  int64_t block; /* that go round the ring at a time */
  int64_t tile;  /* queries in one matrix product */
  int64_t slab;  /* queries whose products with a block are kept at a time */
} mt_cpu_knn_sizes;

/* What this rank did, for rows of its own and of others. */
typedef struct mt_cpu_knn_cost {
  int64_t exact; /* distances computed in double */
} mt_cpu_knn_cost;

/* As mt_cpu_knn. cost_out may be NULL. */
mt_status mt_cpu_knn_sized(const mt_comm *comm, mt_metric metric, int64_t k,
                           const mt_rows *rows, const mt_cpu_knn_sizes *sizes,
                           int64_t *indices_out, float *distances_out,
                           mt_cpu_knn_cost *cost_out);

/* Memory that a rank takes at most, bytes: of `ranks` with n rows of d columns together. */
int64_t mt_cpu_knn_bytes(int64_t n, int64_t d, int64_t k, int64_t ranks,
                         int64_t threads);

#endif
