/* The table of the CUDA backend, and the one symbol that the program finds here. */
#include "backend.h"
#include "exchange.h"
#include "hdbscan.h"
#include "umap.h"

#include <cstdio>
#include <nccl.h>

/* Not collective: a device, its stream, its libraries. */
static mt_status open_device(mt_gpu *gpu, int device)
{
  MT_CUDA(cudaSetDevice(device));
  gpu->device = device;
  MT_CUDA(cudaFree(nullptr)); /* the context: here, where its error has a name */
  MT_CUDA(
      cudaDeviceGetAttribute(&gpu->processors, cudaDevAttrMultiProcessorCount, device));
  MT_CUDA(cudaStreamCreateWithFlags(&gpu->stream, cudaStreamNonBlocking));
  MT_PASS(mt_gpu_open_pool(device));
  MT_CUBLAS(cublasCreate(&gpu->blas));
  MT_CUBLAS(cublasSetStream(gpu->blas, gpu->stream));
  return MT_OK;
}

static mt_status start(mt_backend *be, const mt_comm *team, int device)
{
  mt_gpu *gpu = mt_gpu_of(be);
  mt_gpu_is_current(gpu);
  MT_PASS(mt_agree(team, open_device(gpu, device)));
  MT_PASS(mt_exchange_open(gpu, team));
  return mt_agree(team, mt_gpu_measure_memory(gpu));
}

static int64_t memory_peak(mt_backend *be)
{
  mt_gpu *gpu = mt_gpu_of(be);
  int64_t peak = gpu->peak;
  gpu->peak = gpu->used;
  return peak;
}

static void close_backend(mt_backend *be)
{
  mt_gpu *gpu = mt_gpu_of(be);
  mt_exchange_close(gpu);
  if (gpu->blas != nullptr) cublasDestroy(gpu->blas);
  if (gpu->stream != nullptr) cudaStreamDestroy(gpu->stream);
  mt_gpu_is_current(nullptr);
  free(gpu);
}

static mt_status open_backend(mt_backend **backend_out)
{
  mt_gpu *gpu = (mt_gpu *)calloc(1, sizeof *gpu);
  if (gpu == nullptr) return mt_fail(MT_ERR_MEMORY, "no memory for the CUDA backend");
  gpu->device = -1;
  gpu->table.name = "cuda";
  gpu->table.start = start;
  gpu->table.knn = mt_gpu_knn;
  gpu->table.knn_approximate = mt_gpu_knn_approximate;
  gpu->table.umap_graph = mt_gpu_umap_graph;
  gpu->table.umap_start = mt_gpu_umap_start;
  gpu->table.umap_epochs = mt_gpu_umap_epochs;
  gpu->table.umap_layout = mt_gpu_umap_layout;
  gpu->table.spanning_tree = mt_cuda_spanning_tree;
  gpu->table.condensed_tree = mt_cuda_condensed_tree;
  gpu->table.clusters = mt_cuda_clusters;
  gpu->table.memory_peak = memory_peak;
  gpu->table.close = close_backend;
  *backend_out = &gpu->table;
  return MT_OK;
}

/* CUDA's way of writing a version, 13020 for 13.2; NCCL's, 22809 for 2.28.9. */
static void ask_versions(mt_backend_versions *out)
{
  int runtime = 0, driver = 0, nccl = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  ncclGetVersion(&nccl);
  int at = snprintf(out->cuda, sizeof out->cuda, "%d.%d built, %d.%d found, driver ",
                    CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10, runtime / 1000,
                    runtime % 1000 / 10);
  if (driver > 0)
    snprintf(out->cuda + at, sizeof out->cuda - (size_t)at, "for %d.%d", driver / 1000,
             driver % 1000 / 10);
  else
    snprintf(out->cuda + at, sizeof out->cuda - (size_t)at, "not found");
  snprintf(out->nccl, sizeof out->nccl, "%d.%d.%d built, %d.%d.%d found",
           NCCL_VERSION_CODE / 10000, NCCL_VERSION_CODE % 10000 / 100,
           NCCL_VERSION_CODE % 100, nccl / 10000, nccl % 10000 / 100, nccl % 100);
}

extern "C" {
extern const mt_cuda_library mt_cuda __attribute__((visibility("default")));
const mt_cuda_library mt_cuda = {MT_CUDA_INTERFACE, (int)sizeof(mt_backend),
                                 MT_VERSION,        mt_gpu_find,
                                 open_backend,      ask_versions};
}
