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

/* Work on blocks of vectors, (n, m) doubles, row-major, whole on every rank, in the memory
 * where the operator wants them. What is not collective reports its own errors. */
typedef struct mt_vectors {
  mt_status (*take)(const struct mt_operator *op, int64_t count, double **out);
  void (*give)(const struct mt_operator *op, int64_t count,
               double *x); /* NULL is fine */
  /* Columns [first, m) of x anew: mt_eigen_random. */
  mt_status (*randomize)(const struct mt_operator *op, int64_t m, int64_t first,
                         uint32_t seed, uint32_t step, double *x);
  /* y = mt_eigen_combine(A x, x, scale, shift, back, y); work (n, m) for its use. */
  mt_status (*multiply)(const mt_comm *comm, const struct mt_operator *op, int64_t m,
                        double scale, double shift, double back, const double *x,
                        double *work, double *y);
  /* Blocks of MT_EIGEN_BLOCK rows, count of them from `first` on: each one's x^T y, its rows
   * added in order; x (n, p), y (n, q); out (count, p, q) in host memory. */
  mt_status (*products)(const struct mt_operator *op, int64_t first, int64_t count,
                        int64_t p, int64_t q, const double *x, const double *y,
                        double *out);
  /* y = x t; t (m, m) in host memory. */
  mt_status (*transform)(const struct mt_operator *op, int64_t m, const double *t,
                         const double *x, double *y);
  /* y (n, m) -= x t; x (n, p), t (p, m) in host memory. */
  mt_status (*subtract)(const struct mt_operator *op, int64_t p, int64_t m,
                        const double *x, const double *t, double *y);
  /* The first k columns to out (n, k) in host memory. */
  mt_status (*fetch)(const struct mt_operator *op, int64_t m, int64_t k,
                     const double *x, double *out);
} mt_vectors;

typedef struct mt_operator {
  int64_t n;
  const int64_t *firsts; /* (size + 1): rank r makes rows [firsts[r], firsts[r + 1]) */
  double low;            /* no eigenvalue is lower */
  double high;           /* the known vector's eigenvalue; without one, low */
  const double
      *known; /* (n) a unit eigenvector to leave out, or NULL; as the vectors */
  const void *context;       /* the maker's */
  const mt_vectors *vectors; /* NULL: in host memory, with apply */
  /* y (own rows, m) = A x, x (n, m) whole on every rank; row-major. Collective; a row's
   * bits must not depend on the number of ranks. */
  mt_status (*apply)(const mt_comm *comm, const struct mt_operator *op, int64_t m,
                     const double *x, double *y);
} mt_operator;

enum { MT_EIGEN_BLOCK = 1024 }; /* rows of a sum: fixed, whoever computes it */

/* Element `at` of a block of random vectors. */
MT_BOTH double mt_eigen_random(uint32_t seed, uint32_t step, int64_t at)
{
  return mt_random_unit(seed, MT_STREAM_EIGEN, (uint64_t)at, step) - 0.5;
}

/* scale (product - shift x) - back y; y may hold anything if back is 0. */
MT_BOTH double mt_eigen_combine(double product, double x, double scale, double shift,
                                double back, double y)
{
  return scale * (product - shift * x) - (back == 0.0 ? 0.0 : back * y);
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
 * The k largest eigenvalues. Collective; the same bits for any number of ranks and threads.
 * k            1 to n, or to n - 1 with a known vector
 * tolerance    stop when |A v - w v| is under this share of the largest |w|
 * values_out   (k) descending
 * vectors_out  (n, k) row-major, whole on every rank; each of length 1, its entry of largest
 *              magnitude (the first of several) positive
 * residual_out the largest |A v - w v| over the largest |w| (0 when computed densely): above
 *              the tolerance if the iteration was given up
 * Errors       MT_ERR_ARG k; MT_ERR_LIBRARY LAPACK failed; MT_STOPPED after a signal
 */
mt_status mt_eigen_largest(const mt_comm *comm, const mt_operator *op, int64_t k,
                           double tolerance, uint32_t seed, double *values_out,
                           double *vectors_out, double *residual_out);

#endif
