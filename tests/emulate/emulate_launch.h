/* gpu.h's ways to start kernels, on the CPU. Included by gpu.h alone. */
#ifndef MT_EMULATE_LAUNCH_H
#define MT_EMULATE_LAUNCH_H

template <class F>
static inline mt_status mt_emulate_start(const char *kernel, dim3 blocks, dim3 threads,
                                         size_t shared, F body)
{
  bool run = mt_emulate_launch(
      kernel, blocks, threads, shared, [](void *f) { (*(F *)f)(); }, &body);
  return run ? MT_OK
             : mt_cuda_error(cudaErrorInvalidConfiguration, kernel, __FILE__, __LINE__);
}

#define MT_LAUNCH(gpu, kernel, blocks, threads, shared, ...)           \
  ((void)(gpu), mt_emulate_start(#kernel, dim3(blocks), dim3(threads), \
                                 (size_t)(shared), [&]() { kernel(__VA_ARGS__); }))
#define MT_SHARED(T, name) T *name = reinterpret_cast<T *>(mt_emulated_shared)

template <class F> static inline mt_status mt_gpu_each(mt_gpu *, int64_t n, F each)
{
  static const char *order = getenv("MT_EMULATED_ORDER");
  bool reverse = order != nullptr && strcmp(order, "reverse") == 0;
  mt_emulated_access access;
  for (int64_t i = 0; i < n; i++) each(reverse ? n - 1 - i : i);
  return MT_OK;
}

#endif
