/* Eigenvectors of a large symmetric matrix that is known by its products: what spectral and
 * pca starts need. Small matrices go to LAPACK, larger ones through Chebyshev-filtered
 * subspace iteration (Zhou, Saad, Tiago, Chelikowsky 2006): products, block sums of fixed
 * length, and small matrices alone, so that the bits do not depend on the ranks, nor on
 * whether the vectors lie in host or device memory. */
#ifndef MT_UMAP_EIGEN_H
#define MT_UMAP_EIGEN_H
#include "base/both.h"
#include "base/random.h"
#include "comm/comm.h"

#include <stdbool.h>

struct mt_operator;

/* What a matrix falls into: parts of its rows that share no entry. Each is solved for itself,
 * all of them at once. */
typedef struct mt_eigen_parts {
  int64_t count;
  const int64_t *first;   /* (count + 1) where each part begins in members */
  const int64_t *members; /* (first[count]) rows part by part, ascending in each */
  const int32_t *part_of; /* (n) part of each row; -1: of none */
} mt_eigen_parts;

/* A step for a part's rows: y = scale (A x - shift x) - back y. scale 0: they stay. */
typedef struct mt_eigen_step {
  double scale, shift, back;
} mt_eigen_step;

/* Rows of a part, as members [first, first + rows). */
typedef struct mt_eigen_rows {
  int64_t first, rows;
} mt_eigen_rows;

/* Work on blocks of vectors, (n, m) doubles, row-major, whole on every rank, in the memory
 * where the operator wants them; small arrays with something for each part are in host
 * memory. Only parts with a flag are touched. What is not collective reports its own errors. */
typedef struct mt_vectors {
  /* Memory for `count` numbers, zeroed. */
  mt_status (*take)(const struct mt_operator *op, int64_t count, double **out);
  void (*give)(const struct mt_operator *op, int64_t count,
               double *x); /* NULL is fine */
  /* Columns [from[p], m) of part p anew: mt_eigen_random of the row's number in it. */
  mt_status (*randomize)(const struct mt_operator *op, int64_t m, const int64_t *from,
                         uint32_t seed, const uint32_t *draws, double *x);
  /* Steps (n_steps, parts): the first from x to y, the second back, and so on.
   * work (n, m) for its use. */
  mt_status (*steps)(const mt_comm *comm, const struct mt_operator *op, int64_t m,
                     int64_t n_steps, const mt_eigen_step *steps, double *x,
                     double *work, double *y);
  /* x^T y of each of `count` stretches of rows, added in order; x (n, p), y (n, q).
   * out (count, p, q) in host memory. */
  mt_status (*products)(const struct mt_operator *op, int64_t count,
                        const mt_eigen_rows *rows, int64_t p, int64_t q,
                        const double *x, const double *y, double *out);
  /* y = x t; t (parts, m, m). Rows without a flag are copied. */
  mt_status (*transform)(const struct mt_operator *op, int64_t m, const uint8_t *flags,
                         const double *t, const double *x, double *y);
  /* y (n, m) -= x t; x (n, p), t (parts, p, m). */
  mt_status (*subtract)(const struct mt_operator *op, int64_t p, int64_t m,
                        const uint8_t *flags, const double *x, const double *t,
                        double *y);
  /* The first k columns to out (n, k) in host memory. */
  mt_status (*fetch)(const struct mt_operator *op, int64_t m, int64_t k,
                     const double *x, double *out);
} mt_vectors;

typedef struct mt_operator {
  int64_t n;
  const int64_t *firsts; /* (size + 1): rank r makes rows [firsts[r], firsts[r + 1]) */
  double low;            /* no eigenvalue is lower */
  double high;           /* the known vectors' eigenvalue; without them, low */
  const double *known; /* (n) in each part a unit eigenvector to leave out, or NULL; in
                            the same memory as the vectors */
  const void *context; /* the maker's */
  const mt_eigen_parts
      *parts; /* set by mt_eigen_largest if it is NULL: all rows are one */
  const mt_vectors *vectors; /* NULL: mt_eigen_on_host */
  /* y (own rows, m) = A x, x (n, m) whole on every rank; row-major. Collective; a row's
   * bits must not depend on the number of ranks. step: (parts) rows whose scale is 0 are of
   * no use; NULL: all are. */
  mt_status (*apply)(const mt_comm *comm, const struct mt_operator *op, int64_t m,
                     const mt_eigen_step *step, const double *x, double *y);
} mt_operator;

/* In host memory; steps by the operator's apply. */
extern const mt_vectors mt_eigen_on_host;

enum {
  MT_EIGEN_BLOCK = 1024, /* rows of a sum: fixed, whoever computes it */
  MT_EIGEN_WIDTH = 4 /* m of the blocks is a multiple: a row of them is whole sectors */
};

/* Element `at` of a block of random vectors. */
MT_BOTH double mt_eigen_random(uint32_t seed, uint32_t step, int64_t at)
{
  return mt_random_unit(seed, MT_STREAM_EIGEN, (uint64_t)at, step) - 0.5;
}

/* y after a step; it may hold anything if back is 0. */
MT_BOTH double mt_eigen_combine(const mt_eigen_step *step, double product, double x,
                                double y)
{
  return step->scale * (product - step->shift * x) -
         (step->back == 0.0 ? 0.0 : step->back * y);
}

/* Sum of x[a] t[a step], in order. */
MT_BOTH double mt_eigen_dot(int64_t m, const double *x, const double *t, int64_t step)
{
  double sum = 0.0;
  for (int64_t a = 0; a < m; a++) sum += x[a] * t[a * step];
  return sum;
}

/* Whether n rows, k vectors wanted, are solved densely: by apply, in host memory. */
bool mt_eigen_is_small(int64_t n, int64_t k);

/* The dense way, by LAPACK: not collective. a (n, n) is destroyed; the rest as below and in
 * mt_operator. Set OpenBLAS to one thread before calling it from several. */
mt_status mt_eigen_dense(int64_t n, int64_t k, double low, const double *known,
                         double *a, double *values_out, double *vectors_out);

/**
 * The k largest eigenvalues of each part. Collective; the same bits for any number of ranks and
 * threads, and for a part that is solved with others or alone.
 * k            1 to a part's rows, or to one less with a known vector
 * tolerance    stop when |A v - w v| is under this share of the largest |w|
 * values_out   (parts, k) descending
 * vectors_out  (n, k) row-major, whole on every rank; each of length 1 in its part, its entry of
 *              largest magnitude (the first of several) positive; 0 in rows of no part
 * residual_out (parts) the largest |A v - w v| over the largest |w| (0 when computed densely):
 *              above the tolerance if the iteration was given up
 * Errors       MT_ERR_ARG k; MT_ERR_LIBRARY LAPACK failed; MT_STOPPED after a signal
 * Without parts, all rows are one, and few rows are solved densely. With parts, none may be
 * small (mt_eigen_is_small).
 */
mt_status mt_eigen_largest(const mt_comm *comm, const mt_operator *op, int64_t k,
                           double tolerance, uint32_t seed, double *values_out,
                           double *vectors_out, double *residual_out);

#endif
