#if defined(__x86_64__)
#ifndef __clang__ /* which takes them from the command line alone */
#pragma GCC target("avx2,fma")
#endif
#define KERNEL      mt_lda_kernel_avx2
#define KERNEL_NAME "avx2"
#define USABLE      (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#define GROUP       5
#include "lda/kernel_body.h"
#endif
