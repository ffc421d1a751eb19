#if defined(__x86_64__)
#ifndef __clang__ /* which takes them from the command line alone */
#pragma GCC target("avx2,avx512f,avx512vnni")
#endif
#define KERNEL      mt_product_kernel_vnni
#define KERNEL_NAME "vnni"
#define USABLE \
  (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni"))
#include "backend/cpu_product_body.h"
#endif
