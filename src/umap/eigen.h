/* Eigenvectors of a large symmetric matrix that is known by its products: what spectral and
 * pca starts need. Small matrices go to LAPACK, larger ones through Chebyshev-filtered
 * subspace iteration (Zhou, Saad, Tiago, Chelikowsky 2006): products, block sums of fixed
 * length, and small matrices alone, so that the bits do not depend on the ranks. */
#ifndef MT_UMAP_EIGEN_H
#define MT_UMAP_EIGEN_H
#include "comm/comm.h"

typedef struct mt_operator {
  int64_t n;
  const int64_t *firsts; /* (size + 1): rank r makes rows [firsts[r], firsts[r + 1]) */
  double low;            /* no eigenvalue is lower */
  const double *known;   /* (n) a unit eigenvector to leave out, or NULL */
  const void *context;   /* the maker's */
  /* y (own rows, m) = A x, x (n, m) whole on every rank; row-major. Collective; a row's
   * bits must not depend on the number of ranks. */
  mt_status (*apply)(const mt_comm *comm, const struct mt_operator *op, int64_t m,
                     const double *x, double *y);
} mt_operator;

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
