#include "umap/eigen.h"
#include "base/memory.h"
#include "base/random.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  DENSE_ROWS = 512, /* LAPACK up to here */
  GUARD = 2,        /* vectors carried along beyond the wanted ones, at least */
  WIDTH = 4,        /* their number is a multiple: a row of them is whole sectors */
  LEAST_DEGREE = 8,
  MOST_DEGREE = 2000,   /* of a filter */
  MOST_PRODUCTS = 4000, /* in all */
  SWEEPS = 60,          /* of Jacobi's method */
};

/* How much a filter lifts the largest eigenvalue's vector over what it cuts off (more is of
 * no use while the cut is still far from its place), and how much the known one's at most:
 * the rounding errors along it grow alike. */
static const double lift = 1e2, most_lift = 1e8;

void dsyevr_(const char *jobz, const char *range, const char *uplo, const int *n,
             double *a, const int *lda, const double *vl, const double *vu,
             const int *il, const int *iu, const double *abstol, int *found, double *w,
             double *z, const int *ldz, int *isuppz, double *work, const int *lwork,
             int *iwork, const int *liwork, int *info);

/* ---- vectors in host memory ------------------------------------------------------------ */

/* Every rank's own rows to all. */
static mt_status share(const mt_comm *comm, const mt_operator *op, int64_t m, double *x)
{
  mt_status status = MT_OK;
  size_t *bytes = NULL;
  MT_TRY(mt_agree(comm,
                  mt_memory_new(comm->size, sizeof *bytes, "sizes", (void **)&bytes)));
  for (int r = 0; r < comm->size; r++)
    bytes[r] = (size_t)((op->firsts[r + 1] - op->firsts[r]) * m) * sizeof *x;
  MT_TRY(mt_allgatherv(comm, bytes, x));
done:
  free(bytes);
  return status;
}

static mt_status host_take(const mt_operator *op, int64_t count, double **out)
{
  (void)op;
  return mt_memory_new(count, sizeof **out, "vectors", (void **)out);
}

static void host_give(const mt_operator *op, int64_t count, double *x)
{
  (void)op;
  (void)count;
  free(x);
}

static mt_status host_randomize(const mt_operator *op, int64_t m, int64_t first,
                                uint32_t seed, uint32_t step, double *x)
{
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < op->n; i++)
    for (int64_t c = first; c < m; c++)
      x[i * m + c] = mt_eigen_random(seed, step, i * m + c);
  return MT_OK;
}

static mt_status host_multiply(const mt_comm *comm, const mt_operator *op, int64_t m,
                               double scale, double shift, double back, const double *x,
                               double *work, double *y)
{
  mt_status status = MT_OK;
  int64_t first = op->firsts[comm->rank], own = op->firsts[comm->rank + 1] - first;
  const double *x_own = x + first * m;
  double *y_own = y + first * m;
  MT_TRY(op->apply(comm, op, m, x, work));
#pragma omp parallel for schedule(static)
  for (int64_t at = 0; at < own * m; at++)
    y_own[at] = mt_eigen_combine(work[at], x_own[at], scale, shift, back, y_own[at]);
  MT_TRY(share(comm, op, m, y));
done:
  return status;
}

static void block_product(int64_t p, int64_t q, int64_t rows, const double *x,
                          const double *y, double *out)
{
  memset(out, 0, (size_t)(p * q) * sizeof *out);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t a = 0; a < p; a++)
      for (int64_t b = 0; b < q; b++) out[a * q + b] += x[i * p + a] * y[i * q + b];
}

static mt_status host_products(const mt_operator *op, int64_t first, int64_t count,
                               int64_t p, int64_t q, const double *x, const double *y,
                               double *out)
{
#pragma omp parallel for schedule(static)
  for (int64_t b = 0; b < count; b++) {
    int64_t at = (first + b) * MT_EIGEN_BLOCK,
            rows = op->n - at < MT_EIGEN_BLOCK ? op->n - at : MT_EIGEN_BLOCK;
    block_product(p, q, rows, x + at * p, y + at * q, out + b * p * q);
  }
  return MT_OK;
}

static mt_status host_transform(const mt_operator *op, int64_t m, const double *t,
                                const double *x, double *y)
{
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < op->n; i++)
    for (int64_t b = 0; b < m; b++) y[i * m + b] = mt_eigen_dot(m, x + i * m, t + b, m);
  return MT_OK;
}

static mt_status host_subtract(const mt_operator *op, int64_t p, int64_t m,
                               const double *x, const double *t, double *y)
{
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < op->n; i++)
    for (int64_t b = 0; b < m; b++)
      y[i * m + b] -= mt_eigen_dot(p, x + i * p, t + b, m);
  return MT_OK;
}

static mt_status host_fetch(const mt_operator *op, int64_t m, int64_t k,
                            const double *x, double *out)
{
  for (int64_t i = 0; i < op->n; i++)
    memcpy(out + i * k, x + i * m, (size_t)k * sizeof *out);
  return MT_OK;
}

static const mt_vectors host = {.take = host_take,
                                .give = host_give,
                                .randomize = host_randomize,
                                .multiply = host_multiply,
                                .products = host_products,
                                .transform = host_transform,
                                .subtract = host_subtract,
                                .fetch = host_fetch};

static const mt_vectors *vectors_of(const mt_operator *op)
{
  return op->vectors == NULL ? &host : op->vectors;
}

/* out (p, q) = x^T y; x (n, p), y (n, q). Blocks are spread over ranks and added in order. */
static mt_status inner(const mt_comm *comm, const mt_operator *op, int64_t p, int64_t q,
                       const double *x, const double *y, double *out)
{
  mt_status status = MT_OK;
  int64_t blocks = (op->n + MT_EIGEN_BLOCK - 1) / MT_EIGEN_BLOCK;
  int64_t first = mt_part_first(blocks, comm->size, comm->rank);
  int64_t count = mt_part_count(blocks, comm->size, comm->rank);
  double *parts = NULL;

  MT_TRY(mt_agree(
      comm, mt_memory_new(blocks * p * q, sizeof *parts, "sums", (void **)&parts)));
  MT_TRY(mt_agree(comm, vectors_of(op)->products(op, first, count, p, q, x, y,
                                                 parts + first * p * q)));
  MT_TRY(mt_allgather_rows(comm, blocks, (size_t)(p * q) * sizeof *parts, parts));
  memset(out, 0, (size_t)(p * q) * sizeof *out);
  for (int64_t b = 0; b < blocks; b++)
    for (int64_t at = 0; at < p * q; at++) out[at] += parts[b * p * q + at];
done:
  free(parts);
  return status;
}

/* ---- small symmetric matrices, on every rank alike ------------------------------------ */

/* One plane rotation that makes a[p][q] zero, applied to a and to the vectors v. */
static void rotate(int64_t m, int64_t p, int64_t q, double *a, double *v)
{
  double off = a[p * m + q];
  if (off == 0.0) return;
  double theta = (a[q * m + q] - a[p * m + p]) / (2.0 * off);
  double t = (theta < 0.0 ? -1.0 : 1.0) / (fabs(theta) + sqrt(theta * theta + 1.0));
  double c = 1.0 / sqrt(t * t + 1.0), s = t * c;
  for (int64_t i = 0; i < m; i++) {
    double x = a[i * m + p], y = a[i * m + q];
    a[i * m + p] = c * x - s * y;
    a[i * m + q] = s * x + c * y;
  }
  for (int64_t i = 0; i < m; i++) {
    double x = a[p * m + i], y = a[q * m + i];
    a[p * m + i] = c * x - s * y;
    a[q * m + i] = s * x + c * y;
  }
  for (int64_t i = 0; i < m; i++) {
    double x = v[i * m + p], y = v[i * m + q];
    v[i * m + p] = c * x - s * y;
    v[i * m + q] = s * x + c * y;
  }
}

static double off_diagonal(int64_t m, const double *a, double *diagonal_out)
{
  double off = 0.0, diagonal = 0.0;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < m; j++)
      *(i == j ? &diagonal : &off) += a[i * m + j] * a[i * m + j];
  *diagonal_out = diagonal;
  return off;
}

/* Largest eigenvalue first; vectors in columns. */
static void sort_pairs(int64_t m, double *values, double *v)
{
  for (int64_t a = 0; a < m; a++) {
    int64_t best = a;
    for (int64_t b = a + 1; b < m; b++)
      if (values[b] > values[best]) best = b;
    double keep = values[a];
    values[a] = values[best];
    values[best] = keep;
    for (int64_t i = 0; i < m && best != a; i++) {
      keep = v[i * m + a];
      v[i * m + a] = v[i * m + best];
      v[i * m + best] = keep;
    }
  }
}

/* Jacobi's method: a (m, m) is destroyed, values descend, v (m, m) has vectors in columns. */
static void jacobi(int64_t m, double *a, double *values, double *v)
{
  memset(v, 0, (size_t)(m * m) * sizeof *v);
  for (int64_t i = 0; i < m; i++) v[i * m + i] = 1.0;
  for (int sweep = 0; sweep < SWEEPS; sweep++) {
    double diagonal, off = off_diagonal(m, a, &diagonal);
    if (off <= 1e-32 * diagonal) break;
    for (int64_t p = 0; p < m; p++)
      for (int64_t q = p + 1; q < m; q++) rotate(m, p, q, a, v);
  }
  for (int64_t i = 0; i < m; i++) values[i] = a[i * m + i];
  sort_pairs(m, values, v);
}

/* The entry of largest magnitude, the first of several, becomes positive. */
static void fix_signs(int64_t n, int64_t k, double *vectors)
{
  for (int64_t c = 0; c < k; c++) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
      if (fabs(vectors[i * k + c]) > fabs(vectors[best * k + c])) best = i;
    if (vectors[best * k + c] >= 0.0) continue;
    for (int64_t i = 0; i < n; i++) vectors[i * k + c] = -vectors[i * k + c];
  }
}

/* ---- subspace iteration ------------------------------------------------------------- */

typedef struct {
  int64_t m;            /* vectors carried along */
  double *x, *y, *z;    /* (n, m), where the operator's vectors are */
  double *gram, *v;     /* (m, m) */
  double *values, *row; /* (m) */
  uint32_t seed, fresh; /* fresh: columns that were drawn anew so far */
} mt_subspace;

static int64_t width_of(int64_t k)
{
  return (k + GUARD + WIDTH - 1) / WIDTH * WIDTH;
}

static void subspace_destroy(const mt_operator *op, mt_subspace *s)
{
  const mt_vectors *on = vectors_of(op);
  on->give(op, op->n * s->m, s->x);
  on->give(op, op->n * s->m, s->y);
  on->give(op, op->n * s->m, s->z);
  free(s->gram);
  free(s->v);
  free(s->values);
  free(s->row);
}

static mt_status subspace_create(const mt_operator *op, mt_subspace *s)
{
  mt_status status = MT_OK;
  const mt_vectors *on = vectors_of(op);
  MT_TRY(on->take(op, op->n * s->m, &s->x));
  MT_TRY(on->take(op, op->n * s->m, &s->y));
  MT_TRY(on->take(op, op->n * s->m, &s->z));
  MT_NEW(s->gram, s->m * s->m);
  MT_NEW(s->v, s->m * s->m);
  MT_NEW(s->values, s->m);
  MT_NEW(s->row, s->m);
  MT_TRY(on->randomize(op, s->m, 0, s->seed, 0, s->x));
done:
  return status;
}

static void exchange(double **x, double **y)
{
  double *keep = *x;
  *x = *y;
  *y = keep;
}

/* *x = *x t; z is for its use. */
static mt_status transform(const mt_operator *op, mt_subspace *s, const double *t,
                           double **x)
{
  mt_status status = vectors_of(op)->transform(op, s->m, t, *x, s->z);
  if (status == MT_OK) exchange(x, &s->z);
  return status;
}

/* How far the columns are from orthonormal. */
static double gram_error(int64_t m, const double *gram)
{
  double worst = 0.0;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < m; j++)
      worst = fmax(worst, fabs(gram[i * m + j] - (i == j ? 1.0 : 0.0)));
  return worst;
}

/* v = gram^-1/2 as columns; those that hang on others become 0. Returns how many. */
static int64_t whiten(int64_t m, double *gram, double *values, double *scale, double *v)
{
  int64_t lost = 0;
  for (int64_t i = 0; i < m; i++)
    scale[i] = gram[i * m + i] > 0.0 ? 1.0 / sqrt(gram[i * m + i]) : 0.0;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < m; j++) gram[i * m + j] *= scale[i] * scale[j];
  jacobi(m, gram, values, v);
  for (int64_t j = 0; j < m; j++) {
    bool hangs = !(values[j] > 1e-13 * values[0]);
    double length = hangs ? 0.0 : 1.0 / sqrt(values[j]);
    for (int64_t i = 0; i < m; i++) v[i * m + j] *= scale[i] * length;
    lost += hangs;
  }
  return lost;
}

/* Takes the known eigenvector out of every column of x. */
static mt_status leave_out(const mt_comm *comm, const mt_operator *op, mt_subspace *s)
{
  mt_status status = MT_OK;
  if (op->known == NULL) return MT_OK;
  MT_TRY(inner(comm, op, 1, s->m, op->known, s->x, s->row));
  MT_TRY(
      mt_agree(comm, vectors_of(op)->subtract(op, 1, s->m, op->known, s->row, s->x)));
done:
  return status;
}

/* Makes the columns of x orthonormal and free of the known vector; lost ones are drawn
 * anew. */
static mt_status orthonormalize(const mt_comm *comm, const mt_operator *op,
                                mt_subspace *s)
{
  mt_status status = MT_OK;
  for (int pass = 0; pass < 8; pass++) {
    MT_TRY(leave_out(comm, op, s));
    MT_TRY(inner(comm, op, s->m, s->m, s->x, s->x, s->gram));
    if (gram_error(s->m, s->gram) < 1e-12) break;
    int64_t lost = whiten(s->m, s->gram, s->values, s->row, s->v);
    MT_TRY(mt_agree(comm, transform(op, s, s->v, &s->x)));
    if (lost == 0) continue;
    s->fresh++;
    MT_TRY(mt_agree(comm, vectors_of(op)->randomize(op, s->m, s->m - lost, s->seed,
                                                    s->fresh, s->x)));
  }
done:
  return status;
}

/* Rayleigh and Ritz: turns x to the eigenvectors of A within its span; y = A x. */
static mt_status turn(const mt_comm *comm, const mt_operator *op, mt_subspace *s)
{
  mt_status status = MT_OK;
  MT_TRY(vectors_of(op)->multiply(comm, op, s->m, 1.0, 0.0, 0.0, s->x, s->z, s->y));
  MT_TRY(inner(comm, op, s->m, s->m, s->x, s->y, s->gram));
  for (int64_t i = 0; i < s->m; i++)
    for (int64_t j = 0; j < i; j++) {
      double mean = 0.5 * (s->gram[i * s->m + j] + s->gram[j * s->m + i]);
      s->gram[i * s->m + j] = s->gram[j * s->m + i] = mean;
    }
  jacobi(s->m, s->gram, s->values, s->v);
  MT_TRY(mt_agree(comm, transform(op, s, s->v, &s->x)));
  MT_TRY(mt_agree(comm, transform(op, s, s->v, &s->y)));
done:
  return status;
}

/* Largest |A v - w v| of the first k, over the largest |w|; y is used up. */
static mt_status measure(const mt_comm *comm, const mt_operator *op, int64_t k,
                         mt_subspace *s, double *residual_out)
{
  mt_status status = MT_OK;
  double worst = 0.0, scale = fmax(fabs(s->values[0]), fabs(s->values[s->m - 1]));
  memset(s->v, 0, (size_t)(s->m * s->m) * sizeof *s->v);
  for (int64_t a = 0; a < s->m; a++) s->v[a * s->m + a] = s->values[a];
  MT_TRY(mt_agree(comm, vectors_of(op)->subtract(op, s->m, s->m, s->x, s->v, s->y)));
  MT_TRY(inner(comm, op, s->m, s->m, s->y, s->y, s->gram));
  for (int64_t a = 0; a < k; a++) worst = fmax(worst, sqrt(s->gram[a * s->m + a]));
  *residual_out = scale > 0.0 ? worst / scale : worst;
done:
  return status;
}

/* The polynomial that is small from op->low to the last Ritz value and grows fast above. */
typedef struct {
  double center, half; /* of what it is to keep small */
  double reach;        /* from the center to where it is scaled to 1 */
  int64_t degree;
} mt_filter;

/* Of the Chebyshev polynomial that takes x > 1 to `factor`. */
static double degree_to_lift(double factor, double x)
{
  return acosh(factor) / acosh(fmax(x, 1.0 + 1e-9));
}

static mt_filter choose_filter(const mt_operator *op, const mt_subspace *s)
{
  double top = s->values[0], cut = s->values[s->m - 1];
  double half = fmax(0.5 * (cut - op->low), 1e-9 * fmax(fabs(top), fabs(op->low)));
  double center = op->low + half, reach = fmax(fmax(top, op->high) - center, half);
  double degree = fmin(degree_to_lift(lift, (top - center) / half),
                       degree_to_lift(most_lift, reach / half));
  return (mt_filter){.center = center,
                     .half = half,
                     .reach = reach,
                     .degree = (int64_t)fmin(fmax(degree, LEAST_DEGREE), MOST_DEGREE)};
}

/* x = p(A) x, p the Chebyshev polynomial of the filter. */
static mt_status filter(const mt_comm *comm, const mt_operator *op, const mt_filter *f,
                        mt_subspace *s)
{
  mt_status status = MT_OK;
  const mt_vectors *on = vectors_of(op);
  double sigma_1 = f->half / f->reach, sigma = sigma_1;
  MT_TRY(on->multiply(comm, op, s->m, sigma_1 / f->half, f->center, 0.0, s->x, s->z,
                      s->y));
  for (int64_t degree = 2; degree <= f->degree; degree++) {
    double next = 1.0 / (2.0 / sigma_1 - sigma);
    MT_TRY(on->multiply(comm, op, s->m, 2.0 * next / f->half, f->center, sigma * next,
                        s->y, s->z, s->x));
    exchange(&s->x, &s->y);
    sigma = next;
  }
  exchange(&s->x, &s->y);
done:
  return status;
}

static mt_status iterate(const mt_comm *comm, const mt_operator *op, int64_t k,
                         double tolerance, mt_subspace *s, double *residual_out)
{
  mt_status status = MT_OK;
  for (int64_t products = 0;;) {
    MT_TRY(mt_stop_agreed(comm) ? MT_STOPPED : MT_OK);
    MT_TRY(orthonormalize(comm, op, s));
    MT_TRY(turn(comm, op, s));
    MT_TRY(measure(comm, op, k, s, residual_out));
    if (*residual_out <= tolerance || products >= MOST_PRODUCTS) break;
    mt_filter f = choose_filter(op, s);
    MT_TRY(filter(comm, op, &f, s));
    products += f.degree;
  }
done:
  return status;
}

static mt_status solve_subspace(const mt_comm *comm, const mt_operator *op, int64_t k,
                                double tolerance, uint32_t seed, double *values,
                                double *vectors, double *residual_out)
{
  mt_status status = MT_OK;
  mt_subspace s = {.m = width_of(k), .seed = seed};

  MT_TRY(mt_agree(comm, subspace_create(op, &s)));
  MT_TRY(iterate(comm, op, k, tolerance, &s, residual_out));
  memcpy(values, s.values, (size_t)k * sizeof *values);
  MT_TRY(mt_agree(comm, vectors_of(op)->fetch(op, s.m, k, s.x, vectors)));
  fix_signs(op->n, k, vectors);
done:
  subspace_destroy(op, &s);
  return status;
}

/* ---- small matrices ----------------------------------------------------------------- */

/* Moves the known eigenvector's value to the lower end. product: n. */
static void push_down(int64_t n, double low, const double *known, double *a,
                      double *product)
{
  double value = 0.0;
  for (int64_t i = 0; i < n; i++) {
    product[i] = 0.0;
    for (int64_t j = 0; j < n; j++) product[i] += a[i * n + j] * known[j];
    value += product[i] * known[i];
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) a[i * n + j] -= (value - low) * known[i] * known[j];
}

/* The k largest of a (n, n), which is destroyed; ascending, vectors (k, n) one a row. */
static mt_status solve_lapack(int64_t rows, int64_t k, double *a, double *values,
                              double *vectors)
{
  mt_status status = MT_OK;
  int n = (int)rows, lowest = n - (int)k + 1, found = 0, info = 0, threads;
  int lwork = 26 * n, liwork = 10 * n, *iwork = NULL, *support = NULL;
  double nothing = 0.0, *work = NULL, *w = NULL;

  threads = openblas_get_num_threads();
  MT_NEW(work, lwork);
  MT_NEW(iwork, liwork);
  MT_NEW(support, 2 * (int64_t)n);
  MT_NEW(w, n);
  openblas_set_num_threads(1); /* more would change the bits */
  dsyevr_("V", "I", "U", &n, a, &n, &nothing, &nothing, &lowest, &n, &nothing, &found,
          w, vectors, &n, support, work, &lwork, iwork, &liwork, &info);
  openblas_set_num_threads(threads);
  MT_REQUIRE(info == 0 && found == (int)k, MT_ERR_LIBRARY,
             "LAPACK's dsyevr found %d of %d eigenvectors of %d rows (info %d)", found,
             (int)k, n, info);
  memcpy(values, w, (size_t)k * sizeof *values);
done:
  free(work);
  free(iwork);
  free(support);
  free(w);
  return status;
}

mt_status mt_eigen_dense(int64_t n, int64_t k, double low, const double *known,
                         double *a, double *values_out, double *vectors_out)
{
  mt_status status = MT_OK;
  double *values = NULL, *vectors = NULL;
  MT_NEW(values, n);
  MT_NEW(vectors, n * k);
  if (known != NULL) push_down(n, low, known, a, values);
  MT_TRY(solve_lapack(n, k, a, values, vectors));
  for (int64_t c = 0; c < k; c++) {
    for (int64_t i = 0; i < n; i++)
      vectors_out[i * k + c] = vectors[(k - 1 - c) * n + i];
    values_out[c] = values[k - 1 - c];
  }
  fix_signs(n, k, vectors_out);
done:
  free(values);
  free(vectors);
  return status;
}

static mt_status solve_dense(const mt_comm *comm, const mt_operator *op, int64_t k,
                             double *values, double *vectors)
{
  mt_status status = MT_OK;
  int64_t n = op->n;
  double *unit = NULL, *a = NULL, *pairs = NULL;

  MT_TRY(
      mt_agree(comm, mt_memory_new(n * n, sizeof *a, "unit matrix", (void **)&unit)));
  MT_TRY(mt_agree(comm, mt_memory_new(n * n, sizeof *a, "dense matrix", (void **)&a)));
  MT_TRY(
      mt_agree(comm, mt_memory_new((n + 1) * k, sizeof *a, "pairs", (void **)&pairs)));
  for (int64_t i = 0; i < n; i++) unit[i * n + i] = 1.0;
  MT_TRY(op->apply(comm, op, n, unit, a + op->firsts[comm->rank] * n));
  MT_TRY(share(comm, op, n, a));
  if (comm->rank == 0) /* pairs: vectors, then values */
    status = mt_eigen_dense(n, k, op->low, op->known, a, pairs + n * k, pairs);
  MT_TRY(mt_agree(comm, status));
  MT_TRY(mt_bcast(comm, 0, (size_t)((n + 1) * k) * sizeof *pairs, pairs));
  memcpy(vectors, pairs, (size_t)(n * k) * sizeof *vectors);
  memcpy(values, pairs + n * k, (size_t)k * sizeof *values);
done:
  free(unit);
  free(a);
  free(pairs);
  return status;
}

bool mt_eigen_is_small(int64_t n, int64_t k)
{
  return n <= DENSE_ROWS || n < 4 * width_of(k);
}

mt_status mt_eigen_largest(const mt_comm *comm, const mt_operator *op, int64_t k,
                           double tolerance, uint32_t seed, double *values_out,
                           double *vectors_out, double *residual_out)
{
  mt_status status = MT_OK;
  MT_REQUIRE(k >= 1 && k <= op->n - (op->known != NULL), MT_ERR_ARG,
             "%lld eigenvectors of %lld rows", (long long)k, (long long)op->n);
  *residual_out = 0.0;
  if (mt_eigen_is_small(op->n, k))
    MT_TRY(solve_dense(comm, op, k, values_out, vectors_out));
  else
    MT_TRY(solve_subspace(comm, op, k, tolerance, seed, values_out, vectors_out,
                          residual_out));
done:
  return status;
}
