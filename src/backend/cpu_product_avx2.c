#if defined(__x86_64__)
#ifndef __clang__ /* which takes them from the command line alone */
#pragma GCC target("avx2")
#endif
#define KERNEL      mt_product_kernel_avx2
#define KERNEL_NAME "avx2"
#define USABLE      __builtin_cpu_supports("avx2")
#include "backend/cpu_product_body.h"
#endif
