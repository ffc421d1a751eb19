/* For the vector units that the processor at hand has. */
#ifndef MT_BASE_VECTORS_H
#define MT_BASE_VECTORS_H

/* Before a function: compiled for AVX2 too, which is taken where there is. No fused multiply-add
 * in either: both give the same bits. */
#if defined(__x86_64__) && defined(__GLIBC__)
#define MT_FOR_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define MT_FOR_VECTORS
#endif

/* Before a small function of vectors: part of whatever calls it, in that one's instructions. */
#define MT_INLINE static inline __attribute__((always_inline, unused))

#endif
