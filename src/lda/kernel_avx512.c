#if defined(__x86_64__)
#ifndef __clang__ /* which takes them from the command line alone */
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")
#endif
#define KERNEL      mt_lda_kernel_avx512
#define KERNEL_NAME "avx512"
#define USABLE                                                                 \
  (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&  \
   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") && \
   __builtin_cpu_supports("fma"))
#define GROUP 16
#include "lda/kernel_body.h"
#endif
