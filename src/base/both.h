/* Formulas that both backends compute stand once, in headers that gcc and nvcc compile.
 * They give the same bits on both: float and double, + - * / and sqrt alone (IEEE rounds
 * these alike everywhere), nothing contracted (-ffp-contract=off, -fmad=false), no libm. */
#ifndef MT_BASE_BOTH_H
#define MT_BASE_BOTH_H

#ifdef __CUDACC__
#define MT_BOTH static inline __host__ __device__
#else
#define MT_BOTH static inline
#endif

#endif
