/* The inner loops of a fit, in float, compiled three times (kernel_avx512.c,
 * kernel_avx2.c, kernel_portable.c, all from kernel_body.h) and chosen at run time. AVX-512
 * and AVX2 give the same bits. Nothing here allocates, and nothing is collective. */
#ifndef MT_LDA_KERNEL_H
#define MT_LDA_KERNEL_H
#include "base/random.h"
#include "base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What all documents of a pass share. Rows of terms are `padded` floats long, K rounded up
 * to 16, zero beyond K. */
typedef struct mt_lda_pass {
  int64_t n_components, padded;
  const int64_t *indptr; /* the documents, CSR */
  const int32_t *indices;
  const int32_t *data;
  const float *table; /* (V, padded) exp(E[log beta]) */
  double prior;       /* of a document's topics */
  double tolerance;   /* a document stops when its mean change falls below */
  int64_t max_steps;
  bool start_ones;      /* else from (seed, pass), or from `given` */
  uint32_t seed, pass;  /* pass counts from 1 */
  const float *given;   /* (documents, K) or NULL */
  const double *lambda; /* (V, padded), to score words that underflow; NULL: no score */
  const double *psi_total; /* (K) psi of the sum of lambda over the terms */
} mt_lda_pass;

/* A run of documents, and what they add up to. */
typedef struct mt_lda_lane {
  int64_t first, last; /* documents [first, last) */
  float *stats;    /* (V, padded), added to: sum of counts x exp(E[log theta]) / norm;
                          times exp(E[log beta]) it is scikit-learn's suff_stats; or NULL */
  double score;    /* the documents' part of the bound, if pass->lambda is there */
  int64_t updates; /* stored counts x update steps */
  bool (*poll)(
      void *context); /* called every few milliseconds; true: give up. NULL: not */
  void *context;
  bool gave_up;
} mt_lda_lane;

/* How lambda moves: to (1 - weight) lambda + weight (prior + ratio x sums x table). */
typedef struct mt_lda_update {
  double prior, weight, ratio;
} mt_lda_update;

/* Room for the documents in work of one thread. */
typedef struct mt_lda_room mt_lda_room;
mt_status mt_lda_room_new(int64_t n_components, int64_t longest,
                          mt_lda_room **room_out);
void mt_lda_room_free(mt_lda_room *room); /* NULL is fine */

typedef struct mt_lda_kernel {
  const char *name;
  bool (*usable)(void); /* on this processor */

  void (*documents)(const mt_lda_pass *pass, mt_lda_room *room, mt_lda_lane *lane);

  /* table = exp(psi(lambda)) x scale; rows of `padded`, scale (padded) zero beyond K. */
  void (*expect)(int64_t rows, int64_t padded, const double *lambda, const float *scale,
                 float *table);

  /* Rows of `padded`: new lambda from the documents' sums, which may be lambda itself, and
   * total (padded), the sum of its rows. */
  void (*update)(int64_t rows, int64_t padded, const mt_lda_update *update,
                 const double *sums, const float *table, double *lambda, double *total);

  /* mt_random_gamma(seed, stream, first + i, step, 100, 0.01) for i in [0, n), in float */
  void (*gamma)(uint32_t seed, mt_stream stream, uint64_t first, uint32_t step,
                int64_t n, float *out);

  /* Elementwise, x > 0, relative error below 1e-6 and absolute 3e-7; for tests. n is a
   * multiple of 16 and the memory aligned to 64 bytes. */
  void (*exp_digamma)(int64_t n, const float *x, float *out);
  void (*log)(int64_t n, const float *x, float *out);
} mt_lda_kernel;

extern const mt_lda_kernel mt_lda_kernel_avx512, mt_lda_kernel_avx2,
    mt_lda_kernel_portable;

/* The fastest that is usable; or the one called `name`, NULL if it is not usable here. */
const mt_lda_kernel *mt_lda_kernel_find(const char *name);

/* ---- what a thread's room is made of: for kernel_body.h alone ---- */

enum { MT_LDA_LANES = 16, MT_LDA_SLOTS = 2 };

/* A document in work. The arrays are aligned to 64 bytes. */
typedef struct mt_lda_slot {
  int64_t document, n, tiles; /* n stored counts in tiles of 16, padded with count 0 */
  int64_t steps;
  int64_t topics;       /* in work: at first K, and always one or more */
  int32_t *topic;       /* (topics) which they are, ascending */
  float eps, eps_later; /* added to the norms: in the first step, and after it */
  float *block;         /* (tiles, topics, 16): the terms' columns of the table */
  float *counts;        /* (tiles, 16) */
  float *ratio;         /* (tiles, 16): count / norm */
  bool has_ratios;      /* of gamma as it is now */
  float *gamma;         /* (padded) of the topics in work; the prior beyond */
  float *weight;        /* (padded) exp(psi(gamma)) */
  float *whole_gamma, *whole_weight; /* (padded) of all K, once the document is done */
  float fall; /* how far gamma of those just dropped is above the prior */
  int64_t n_groups;
  int32_t *groups; /* (n_groups) where the 16 topics begin that have one in work */
  int32_t *kept;   /* (padded) room: which stay in work */
} mt_lda_slot;

struct mt_lda_room {
  int64_t longest;
  float *memory;
  mt_lda_slot slots[MT_LDA_SLOTS];
};

#endif
