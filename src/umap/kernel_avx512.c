#if defined(__x86_64__)
#ifndef __clang__ /* which takes them from the command line alone */
#pragma GCC target("avx2,avx512f,avx512dq,avx512vl,avx512bw")
#endif
#define KERNEL      mt_umap_kernel_avx512
#define KERNEL_NAME "avx512"
#define USABLE                                                                \
  (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && \
   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
#include "umap/kernel_body.h"
#endif
