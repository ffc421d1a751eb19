#include "cublas_v2.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include <vector>

struct mt_emulated_blas {
  cudaStream_t stream;
};

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
  *handle = new mt_emulated_blas{};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion(cublasHandle_t, int *version)
{
  *version = 130000;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t)
{
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode(cublasHandle_t, cublasPointerMode_t)
{
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *, size_t)
{
  return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusName(cublasStatus_t code)
{
  switch (code) {
  case CUBLAS_STATUS_SUCCESS:
    return "CUBLAS_STATUS_SUCCESS";
  case CUBLAS_STATUS_NOT_INITIALIZED:
    return "CUBLAS_STATUS_NOT_INITIALIZED";
  case CUBLAS_STATUS_ALLOC_FAILED:
    return "CUBLAS_STATUS_ALLOC_FAILED";
  case CUBLAS_STATUS_INVALID_VALUE:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "unknown status";
}

const char *cublasGetStatusString(cublasStatus_t code)
{
  return cublasGetStatusName(code);
}

/* Element i of an array of that type. */
static double element(const void *data, cudaDataType type, int64_t i)
{
  switch (type) {
  case CUDA_R_32F:
    return ((const float *)data)[i];
  case CUDA_R_64F:
    return ((const double *)data)[i];
  case CUDA_R_16F:
    return (float)((const __half *)data)[i];
  case CUDA_R_16BF:
    return (float)((const __nv_bfloat16 *)data)[i];
  }
  abort();
}

static void set_element(void *data, cudaDataType type, int64_t i, double value)
{
  switch (type) {
  case CUDA_R_32F:
    ((float *)data)[i] = (float)value;
    return;
  case CUDA_R_64F:
    ((double *)data)[i] = value;
    return;
  case CUDA_R_16F:
    ((__half *)data)[i] = __half((float)value);
    return;
  case CUDA_R_16BF:
    ((__nv_bfloat16 *)data)[i] = __nv_bfloat16((float)value);
    return;
  }
}

/* op(matrix) (rows, columns) as T, its rows or its columns one after the other. */
template <class T>
static std::vector<T> gather(cublasOperation_t op, bool by_rows, int64_t rows,
                             int64_t columns, const void *data, cudaDataType type,
                             int64_t ld)
{
  std::vector<T> out((size_t)(rows * columns));
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      out[(size_t)(by_rows ? i * columns + j : j * rows + i)] =
          (T)element(data, type, op == CUBLAS_OP_N ? j * ld + i : i * ld + j);
  return out;
}

template <class T>
static void product(cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                    const void *alpha, const void *a, cudaDataType type_a, int lda,
                    const void *b, cudaDataType type_b, int ldb, const void *beta,
                    void *c, cudaDataType type_c, int ldc)
{
  std::vector<T> rows = gather<T>(op_a, true, m, k, a, type_a, lda);
  std::vector<T> columns = gather<T>(op_b, false, k, n, b, type_b, ldb);
  T scale = *(const T *)alpha, keep = *(const T *)beta;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < m; i++) {
      T sum = 0;
      for (int64_t l = 0; l < k; l++)
        sum += rows[(size_t)(i * k + l)] * columns[(size_t)(j * k + l)];
      int64_t at = j * (int64_t)ldc + i;
      T before = keep == 0 ? (T)0 : keep * (T)element(c, type_c, at);
      set_element(c, type_c, at, scale * sum + before);
    }
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a,
                            cublasOperation_t op_b, int m, int n, int k,
                            const void *alpha, const void *a, cudaDataType type_a,
                            int lda, const void *b, cudaDataType type_b, int ldb,
                            const void *beta, void *c, cudaDataType type_c, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t)
{
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || k < 0 || lda < (op_a == CUBLAS_OP_N ? m : k) || lda < 1 ||
      ldb < (op_b == CUBLAS_OP_N ? k : n) || ldb < 1 || ldc < m || ldc < 1)
    return CUBLAS_STATUS_INVALID_VALUE;
  mt_emulated_access access;
  if (compute == CUBLAS_COMPUTE_64F)
    product<double>(op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c,
                    type_c, ldc);
  else
    product<float>(op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c,
                   type_c, ldc);
  return CUBLAS_STATUS_SUCCESS;
}

static int64_t bytes_of(cudaDataType type)
{
  return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
    int k, const void *alpha, const void *a, cudaDataType type_a, int lda,
    long long stride_a, const void *b, cudaDataType type_b, int ldb, long long stride_b,
    const void *beta, void *c, cudaDataType type_c, int ldc, long long stride_c,
    int count, cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
  for (int i = 0; i < count; i++) {
    cublasStatus_t code = cublasGemmEx(
        handle, op_a, op_b, m, n, k, alpha,
        (const char *)a + i * stride_a * bytes_of(type_a), type_a, lda,
        (const char *)b + i * stride_b * bytes_of(type_b), type_b, ldb, beta,
        (char *)c + i * stride_c * bytes_of(type_c), type_c, ldc, compute, algorithm);
    if (code != CUBLAS_STATUS_SUCCESS) return code;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t op_a,
                           cublasOperation_t op_b, int m, int n, int k,
                           const float *alpha, const float *a, int lda, const float *b,
                           int ldb, const float *beta, float *c, int ldc)
{
  return cublasGemmEx(handle, op_a, op_b, m, n, k, alpha, a, CUDA_R_32F, lda, b,
                      CUDA_R_32F, ldb, beta, c, CUDA_R_32F, ldc, CUBLAS_COMPUTE_32F,
                      CUBLAS_GEMM_DEFAULT);
}

cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t op_a,
                           cublasOperation_t op_b, int m, int n, int k,
                           const double *alpha, const double *a, int lda,
                           const double *b, int ldb, const double *beta, double *c,
                           int ldc)
{
  return cublasGemmEx(handle, op_a, op_b, m, n, k, alpha, a, CUDA_R_64F, lda, b,
                      CUDA_R_64F, ldb, beta, c, CUDA_R_64F, ldc, CUBLAS_COMPUTE_64F,
                      CUBLAS_GEMM_DEFAULT);
}
