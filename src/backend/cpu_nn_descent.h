/* The CPU backend's NN-Descent with its plan in hand. */
#ifndef MT_BACKEND_CPU_NN_DESCENT_H
#define MT_BACKEND_CPU_NN_DESCENT_H
#include "backend/backend.h"
#include "knn/nn_descent.h"

/* As mt_cpu_knn_approximate; the same plan on all ranks. */
mt_status mt_cpu_knn_planned(const mt_comm *comm, mt_metric metric, int64_t k,
                             const mt_rows *rows, const mt_nn_plan *plan,
                             int64_t *indices_out, float *distances_out,
                             mt_knn_quality *quality_out);

#endif
