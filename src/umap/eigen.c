#include "umap/eigen.h"
#include "base/memory.h"
#include "base/random.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  DENSE_ROWS = 64, /* LAPACK up to here: its time grows with the cube */
  GUARD = 2,       /* vectors carried along beyond the wanted ones, at least */
  LEAST_DEGREE = 2,
  MOST_DEGREE = 2000,   /* of a filter */
  MOST_PRODUCTS = 4000, /* in all */
  FILTER_STEPS = 64,    /* handed on at a time; even */
  FEW_ROWS = 4096,      /* one thread does them sooner */
  SWEEPS = 60,          /* of Jacobi's method */
};

/* How much a filter lifts the last wanted vector over what it cuts off (more is of no use
 * while the cut is still far from its place), and how much the known or first one at most: the
 * rounding errors along it grow alike in all columns. */
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

static mt_status host_randomize(const mt_operator *op, int64_t m, const int64_t *from,
                                uint32_t seed, const uint32_t *draws, double *x)
{
  const mt_eigen_parts *parts = op->parts;
#pragma omp parallel for schedule(static) if (op->n > FEW_ROWS)
  for (int64_t at = 0; at < parts->first[parts->count]; at++) {
    int64_t row = parts->members[at], p = parts->part_of[row];
    for (int64_t c = from[p]; c < m; c++)
      x[row * m + c] = mt_eigen_random(seed, draws[p], (at - parts->first[p]) * m + c);
  }
  return MT_OK;
}

static mt_status host_step(const mt_comm *comm, const mt_operator *op, int64_t m,
                           const mt_eigen_step *step, const double *x, double *work,
                           double *y)
{
  mt_status status = MT_OK;
  int64_t first = op->firsts[comm->rank], own = op->firsts[comm->rank + 1] - first;
  const double *x_own = x + first * m;
  double *y_own = y + first * m;
  MT_TRY(op->apply(comm, op, m, step, x, work));
#pragma omp parallel for schedule(static) if (op->n > FEW_ROWS)
  for (int64_t i = 0; i < own; i++) {
    int32_t p = op->parts->part_of[first + i];
    if (p < 0 || step[p].scale == 0.0) continue;
    for (int64_t at = i * m; at < (i + 1) * m; at++)
      y_own[at] = mt_eigen_combine(&step[p], work[at], x_own[at], y_own[at]);
  }
  MT_TRY(share(comm, op, m, y));
done:
  return status;
}

static mt_status host_steps(const mt_comm *comm, const mt_operator *op, int64_t m,
                            int64_t n_steps, const mt_eigen_step *steps, double *x,
                            double *work, double *y)
{
  mt_status status = MT_OK;
  for (int64_t s = 0; s < n_steps; s++)
    MT_TRY(host_step(comm, op, m, steps + s * op->parts->count, s % 2 == 0 ? x : y,
                     work, s % 2 == 0 ? y : x));
done:
  return status;
}

static void block_product(int64_t p, int64_t q, int64_t rows, const int64_t *members,
                          const double *x, const double *y, double *out)
{
  memset(out, 0, (size_t)(p * q) * sizeof *out);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t a = 0; a < p; a++)
      for (int64_t b = 0; b < q; b++)
        out[a * q + b] += x[members[i] * p + a] * y[members[i] * q + b];
}

static mt_status host_products(const mt_operator *op, int64_t count,
                               const mt_eigen_rows *rows, int64_t p, int64_t q,
                               const double *x, const double *y, double *out)
{
#pragma omp parallel for schedule(static) if (op->n > FEW_ROWS)
  for (int64_t b = 0; b < count; b++)
    block_product(p, q, rows[b].rows, op->parts->members + rows[b].first, x, y,
                  out + b * p * q);
  return MT_OK;
}

static mt_status host_transform(const mt_operator *op, int64_t m, const uint8_t *flags,
                                const double *t, const double *x, double *y)
{
#pragma omp parallel for schedule(static) if (op->n > FEW_ROWS)
  for (int64_t i = 0; i < op->n; i++) {
    int32_t p = op->parts->part_of[i];
    if (p >= 0 && flags[p])
      for (int64_t b = 0; b < m; b++)
        y[i * m + b] = mt_eigen_dot(m, x + i * m, t + p * m * m + b, m);
    else
      memcpy(y + i * m, x + i * m, (size_t)m * sizeof *y);
  }
  return MT_OK;
}

static mt_status host_subtract(const mt_operator *op, int64_t p, int64_t m,
                               const uint8_t *flags, const double *x, const double *t,
                               double *y)
{
#pragma omp parallel for schedule(static) if (op->n > FEW_ROWS)
  for (int64_t i = 0; i < op->n; i++) {
    int32_t part = op->parts->part_of[i];
    if (part < 0 || !flags[part]) continue;
    for (int64_t b = 0; b < m; b++)
      y[i * m + b] -= mt_eigen_dot(p, x + i * p, t + part * p * m + b, m);
  }
  return MT_OK;
}

static mt_status host_fetch(const mt_operator *op, int64_t m, int64_t k,
                            const double *x, double *out)
{
  for (int64_t i = 0; i < op->n; i++)
    memcpy(out + i * k, x + i * m, (size_t)k * sizeof *out);
  return MT_OK;
}

const mt_vectors mt_eigen_on_host = {.take = host_take,
                                     .give = host_give,
                                     .randomize = host_randomize,
                                     .steps = host_steps,
                                     .products = host_products,
                                     .transform = host_transform,
                                     .subtract = host_subtract,
                                     .fetch = host_fetch};

static const mt_vectors *vectors_of(const mt_operator *op)
{
  return op->vectors == NULL ? &mt_eigen_on_host : op->vectors;
}

/* Each vector's entry of largest magnitude, the first of several, becomes positive.
 * members: (count) rows of vectors, or NULL if it has no others. */
static void fix_signs(int64_t count, const int64_t *members, int64_t k, double *vectors)
{
  for (int64_t c = 0; c < k; c++) {
    double best = 0.0;
    for (int64_t i = 0; i < count; i++) {
      double value = vectors[(members == NULL ? i : members[i]) * k + c];
      if (fabs(value) > fabs(best)) best = value;
    }
    for (int64_t i = 0; i < count && best < 0.0; i++) {
      double *value = vectors + (members == NULL ? i : members[i]) * k + c;
      *value = -*value;
    }
  }
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

/* ---- subspace iteration, of all parts at once ---------------------------------------- */

typedef struct {
  int64_t m, parts;  /* vectors carried along; parts of the matrix */
  double *x, *y, *z; /* (n, m), where the operator's vectors are */
  double *gram, *v;  /* (parts, m, m) */
  double *values;    /* (parts, m) */
  double *row;       /* (parts, m) */
  uint8_t *active;   /* (parts) not there yet */
  uint8_t *busy;     /* (parts) not orthonormal yet */
  int64_t *from;     /* (parts) columns from here on are to be drawn */
  int64_t *products; /* (parts) with the matrix, so far */
  uint32_t *draws;   /* (parts) how often columns were drawn anew */
  uint32_t seed;
  mt_eigen_rows *rows; /* stretches of the parts in hand */
  int64_t *row_part;   /* whose they are */
  double *sums;        /* of the stretches */
} mt_subspace;

static int64_t width_of(int64_t k)
{
  return (k + GUARD + MT_EIGEN_WIDTH - 1) / MT_EIGEN_WIDTH * MT_EIGEN_WIDTH;
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
  free(s->active);
  free(s->busy);
  free(s->from);
  free(s->products);
  free(s->draws);
  free(s->rows);
  free(s->row_part);
  free(s->sums);
}

static mt_status subspace_create(const mt_operator *op, mt_subspace *s)
{
  mt_status status = MT_OK;
  const mt_vectors *on = vectors_of(op);
  int64_t square = s->m * s->m,
          most = s->parts + op->parts->first[s->parts] / MT_EIGEN_BLOCK;
  MT_TRY(on->take(op, op->n * s->m, &s->x));
  MT_TRY(on->take(op, op->n * s->m, &s->y));
  MT_TRY(on->take(op, op->n * s->m, &s->z));
  MT_NEW(s->gram, s->parts * square);
  MT_NEW(s->v, s->parts * square);
  MT_NEW(s->values, s->parts * s->m);
  MT_NEW(s->row, s->parts * s->m);
  MT_NEW(s->active, s->parts);
  MT_NEW(s->busy, s->parts);
  MT_NEW(s->from, s->parts);
  MT_NEW(s->products, s->parts);
  MT_NEW(s->draws, s->parts);
  MT_NEW(s->rows, most);
  MT_NEW(s->row_part, most);
  MT_NEW(s->sums, most * square);
  memset(s->active, 1, (size_t)s->parts);
  MT_TRY(on->randomize(op, s->m, s->from, s->seed, s->draws, s->x));
done:
  return status;
}

/* The stretches of the parts with a flag. Returns how many. */
static int64_t cut_rows(const mt_eigen_parts *parts, const uint8_t *flags,
                        mt_subspace *s)
{
  int64_t count = 0;
  for (int64_t p = 0; p < parts->count; p++)
    for (int64_t at = parts->first[p]; flags[p] && at < parts->first[p + 1];
         at += MT_EIGEN_BLOCK) {
      int64_t left = parts->first[p + 1] - at;
      s->row_part[count] = p;
      s->rows[count++] =
          (mt_eigen_rows){at, left < MT_EIGEN_BLOCK ? left : MT_EIGEN_BLOCK};
    }
  return count;
}

/* out (parts, p, q): x^T y of the parts with a flag; x (n, p), y (n, q). Stretches are spread
 * over the ranks and added in order. */
static mt_status inner(const mt_comm *comm, const mt_operator *op, mt_subspace *s,
                       const uint8_t *flags, int64_t p, int64_t q, const double *x,
                       const double *y, double *out)
{
  mt_status status = MT_OK;
  int64_t count = cut_rows(op->parts, flags, s);
  int64_t first = mt_part_first(count, comm->size, comm->rank);
  int64_t own = mt_part_count(count, comm->size, comm->rank);

  MT_TRY(mt_agree(comm, vectors_of(op)->products(op, own, s->rows + first, p, q, x, y,
                                                 s->sums + first * p * q)));
  MT_TRY(mt_allgather_rows(comm, count, (size_t)(p * q) * sizeof *s->sums, s->sums));
  for (int64_t b = 0; b < count; b++) {
    double *to = out + s->row_part[b] * p * q;
    if (b == 0 || s->row_part[b] != s->row_part[b - 1])
      memset(to, 0, (size_t)(p * q) * sizeof *to);
    for (int64_t at = 0; at < p * q; at++) to[at] += s->sums[b * p * q + at];
  }
done:
  return status;
}

static void exchange(double **x, double **y)
{
  double *keep = *x;
  *x = *y;
  *y = keep;
}

/* *x = *x v of the parts with a flag; z is for its use. */
static mt_status transform(const mt_operator *op, mt_subspace *s, const uint8_t *flags,
                           double **x)
{
  mt_status status = vectors_of(op)->transform(op, s->m, flags, s->v, *x, s->z);
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
static mt_status leave_out(const mt_comm *comm, const mt_operator *op,
                           const uint8_t *flags, mt_subspace *s)
{
  mt_status status = MT_OK;
  if (op->known == NULL) return MT_OK;
  MT_TRY(inner(comm, op, s, flags, 1, s->m, op->known, s->x, s->row));
  MT_TRY(mt_agree(
      comm, vectors_of(op)->subtract(op, 1, s->m, flags, op->known, s->row, s->x)));
done:
  return status;
}

/* Which busy parts are not orthonormal yet: v makes them so, but for columns [from, m), which
 * hang on the others. Returns how many; lost_out: how many have such columns. */
static int64_t whiten_parts(mt_subspace *s, int64_t *lost_out)
{
  int64_t left = 0, with_lost = 0, square = s->m * s->m;
#pragma omp parallel for schedule(static) reduction(+ : left, with_lost) if (s->parts > 8)
  for (int64_t p = 0; p < s->parts; p++) {
    s->from[p] = s->m;
    if (!s->busy[p]) continue;
    s->busy[p] = gram_error(s->m, s->gram + p * square) >= 1e-12;
    if (!s->busy[p]) continue;
    int64_t lost = whiten(s->m, s->gram + p * square, s->values + p * s->m,
                          s->row + p * s->m, s->v + p * square);
    s->from[p] = s->m - lost;
    s->draws[p] += lost > 0;
    with_lost += lost > 0;
    left++;
  }
  *lost_out = with_lost;
  return left;
}

/* Makes the columns of x orthonormal and free of the known vector; lost ones are drawn
 * anew. */
static mt_status orthonormalize(const mt_comm *comm, const mt_operator *op,
                                mt_subspace *s)
{
  mt_status status = MT_OK;
  int64_t lost = 0;
  memcpy(s->busy, s->active, (size_t)s->parts);
  for (int pass = 0; pass < 8; pass++) {
    MT_TRY(leave_out(comm, op, s->busy, s));
    MT_TRY(inner(comm, op, s, s->busy, s->m, s->m, s->x, s->x, s->gram));
    if (whiten_parts(s, &lost) == 0) break;
    MT_TRY(mt_agree(comm, transform(op, s, s->busy, &s->x)));
    if (lost > 0)
      MT_TRY(mt_agree(
          comm, vectors_of(op)->randomize(op, s->m, s->from, s->seed, s->draws, s->x)));
  }
done:
  return status;
}

/* Eigenvectors v of the active parts' gram = x^T A x, which is symmetric but for rounding. */
static void solve_grams(mt_subspace *s)
{
  int64_t m = s->m;
#pragma omp parallel for schedule(static) if (s->parts > 8)
  for (int64_t p = 0; p < s->parts; p++) {
    double *gram = s->gram + p * m * m;
    if (!s->active[p]) continue;
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < i; j++) {
        double mean = 0.5 * (gram[i * m + j] + gram[j * m + i]);
        gram[i * m + j] = gram[j * m + i] = mean;
      }
    jacobi(m, gram, s->values + p * m, s->v + p * m * m);
  }
}

/* Rayleigh and Ritz: turns x to the eigenvectors of A within its span; y = A x. steps: (parts)
 * for its use. */
static mt_status turn(const mt_comm *comm, const mt_operator *op, mt_eigen_step *steps,
                      mt_subspace *s)
{
  mt_status status = MT_OK;
  for (int64_t p = 0; p < s->parts; p++)
    steps[p] = (mt_eigen_step){.scale = s->active[p] ? 1.0 : 0.0};
  MT_TRY(vectors_of(op)->steps(comm, op, s->m, 1, steps, s->x, s->z, s->y));
  MT_TRY(inner(comm, op, s, s->active, s->m, s->m, s->x, s->y, s->gram));
  solve_grams(s);
  MT_TRY(mt_agree(comm, transform(op, s, s->active, &s->x)));
  MT_TRY(mt_agree(comm, transform(op, s, s->active, &s->y)));
done:
  return status;
}

/* Largest |A v - w v| of the first k, over the largest |w|. gram: of the residuals. */
static double residual_of(int64_t m, int64_t k, const double *values,
                          const double *gram)
{
  double worst = 0.0, scale = fmax(fabs(values[0]), fabs(values[m - 1]));
  for (int64_t a = 0; a < k; a++) worst = fmax(worst, sqrt(gram[a * m + a]));
  return scale > 0.0 ? worst / scale : worst;
}

/* The residuals of the active parts, which may then be active no more; y is used up. Returns
 * whether some are. */
static mt_status measure(const mt_comm *comm, const mt_operator *op, int64_t k,
                         double tolerance, mt_subspace *s, double *residuals,
                         bool *some_out)
{
  mt_status status = MT_OK;
  int64_t m = s->m;
  memset(s->v, 0, (size_t)(s->parts * m * m) * sizeof *s->v);
  for (int64_t at = 0; at < s->parts * m; at++)
    s->v[at / m * m * m + at % m * (m + 1)] = s->values[at];
  MT_TRY(
      mt_agree(comm, vectors_of(op)->subtract(op, m, m, s->active, s->x, s->v, s->y)));
  MT_TRY(inner(comm, op, s, s->active, m, m, s->y, s->y, s->gram));
  *some_out = false;
  for (int64_t p = 0; p < s->parts; p++) {
    if (!s->active[p]) continue;
    residuals[p] = residual_of(m, k, s->values + p * m, s->gram + p * m * m);
    s->active[p] = residuals[p] > tolerance && s->products[p] < MOST_PRODUCTS;
    if (s->active[p]) *some_out = true;
  }
done:
  return status;
}

/* The polynomial that is small from op->low to the last Ritz value and grows fast above. */
typedef struct {
  double center, half; /* of what it is to keep small */
  double sigma_1; /* half over the way from the center to where it is scaled to 1 */
  double sigma;   /* of the next step */
  int64_t degree; /* even, so that it ends where it began; 0: none */
} mt_filter;

/* Of the Chebyshev polynomial that takes x > 1 to `factor`. */
static double degree_to_lift(double factor, double x)
{
  return acosh(factor) / acosh(fmax(x, 1.0 + 1e-9));
}

static mt_filter choose_filter(const mt_operator *op, int64_t k, int64_t m,
                               const double *values)
{
  double top = values[0], cut = values[m - 1];
  double half = fmax(0.5 * (cut - op->low), 1e-9 * fmax(fabs(top), fabs(op->low)));
  double center = op->low + half, reach = fmax(fmax(top, op->high) - center, half);
  double degree = fmin(degree_to_lift(lift, (values[k - 1] - center) / half),
                       degree_to_lift(most_lift, reach / half));
  degree = fmin(fmax(degree, LEAST_DEGREE), MOST_DEGREE);
  return (mt_filter){.center = center,
                     .half = half,
                     .sigma_1 = half / reach,
                     .sigma = half / reach,
                     .degree = (int64_t)degree / 2 * 2};
}

/* The step to a degree, from 1 on. */
static mt_eigen_step next_step(mt_filter *f, int64_t degree)
{
  if (degree > f->degree) return (mt_eigen_step){.scale = 0.0};
  if (degree == 1)
    return (mt_eigen_step){.scale = f->sigma_1 / f->half, .shift = f->center};
  double next = 1.0 / (2.0 / f->sigma_1 - f->sigma), last = f->sigma;
  f->sigma = next;
  return (mt_eigen_step){
      .scale = 2.0 * next / f->half, .shift = f->center, .back = last * next};
}

/* x = p(A) x, p the Chebyshev polynomial of each active part's filter. steps: (FILTER_STEPS,
 * parts), filters: (parts) for its use. */
static mt_status filter(const mt_comm *comm, const mt_operator *op, int64_t k,
                        mt_filter *filters, mt_eigen_step *steps, mt_subspace *s)
{
  mt_status status = MT_OK;
  int64_t most = 0;
  for (int64_t p = 0; p < s->parts; p++) {
    filters[p] = (mt_filter){.degree = 0};
    if (s->active[p]) filters[p] = choose_filter(op, k, s->m, s->values + p * s->m);
    s->products[p] += filters[p].degree;
    if (filters[p].degree > most) most = filters[p].degree;
  }
  for (int64_t done_steps = 0; done_steps < most; done_steps += FILTER_STEPS) {
    int64_t count = most - done_steps < FILTER_STEPS ? most - done_steps : FILTER_STEPS;
    for (int64_t at = 0; at < count * s->parts; at++)
      steps[at] = next_step(&filters[at % s->parts], done_steps + at / s->parts + 1);
    MT_TRY(vectors_of(op)->steps(comm, op, s->m, count, steps, s->x, s->z, s->y));
  }
done:
  return status;
}

static mt_status iterate(const mt_comm *comm, const mt_operator *op, int64_t k,
                         double tolerance, mt_subspace *s, double *residuals)
{
  mt_status status = MT_OK;
  mt_eigen_step *steps = NULL;
  mt_filter *filters = NULL;
  bool some = true;
  MT_TRY(mt_agree(comm, mt_memory_new(s->parts * FILTER_STEPS, sizeof *steps, "steps",
                                      (void **)&steps)));
  MT_TRY(mt_agree(
      comm, mt_memory_new(s->parts, sizeof *filters, "filters", (void **)&filters)));
  for (;;) {
    MT_TRY(mt_stop_agreed(comm) ? MT_STOPPED : MT_OK);
    MT_TRY(orthonormalize(comm, op, s));
    MT_TRY(turn(comm, op, steps, s));
    MT_TRY(measure(comm, op, k, tolerance, s, residuals, &some));
    if (!some) break;
    MT_TRY(filter(comm, op, k, filters, steps, s));
  }
done:
  free(steps);
  free(filters);
  return status;
}

/* Eigenvectors to vectors (n, k); rows of no part were never touched. */
static mt_status take_out(const mt_operator *op, int64_t k, const mt_subspace *s,
                          double *vectors)
{
  mt_status status = vectors_of(op)->fetch(op, s->m, k, s->x, vectors);
  if (status != MT_OK) return status;
#pragma omp parallel for schedule(dynamic)
  for (int64_t p = 0; p < s->parts; p++)
    fix_signs(op->parts->first[p + 1] - op->parts->first[p],
              op->parts->members + op->parts->first[p], k, vectors);
  return MT_OK;
}

static mt_status solve_subspaces(const mt_comm *comm, const mt_operator *op, int64_t k,
                                 double tolerance, uint32_t seed, double *values,
                                 double *vectors, double *residuals)
{
  mt_status status = MT_OK;
  mt_subspace s = {.m = width_of(k), .parts = op->parts->count, .seed = seed};

  MT_TRY(mt_agree(comm, subspace_create(op, &s)));
  MT_TRY(iterate(comm, op, k, tolerance, &s, residuals));
  for (int64_t p = 0; p < s.parts; p++)
    memcpy(values + p * k, s.values + p * s.m, (size_t)k * sizeof *values);
  MT_TRY(mt_agree(comm, take_out(op, k, &s, vectors)));
done:
  subspace_destroy(op, &s);
  return status;
}

/* All rows are one part. */
static mt_status solve_whole(const mt_comm *comm, const mt_operator *op, int64_t k,
                             double tolerance, uint32_t seed, double *values,
                             double *vectors, double *residual)
{
  mt_status status = MT_OK;
  int64_t first[2] = {0, op->n}, *members = NULL;
  int32_t *part_of = NULL;
  mt_operator whole = *op;
  MT_TRY(
      mt_agree(comm, mt_memory_new(op->n, sizeof *members, "rows", (void **)&members)));
  MT_TRY(mt_agree(comm,
                  mt_memory_new(op->n, sizeof *part_of, "parts", (void **)&part_of)));
  for (int64_t i = 0; i < op->n; i++) members[i] = i;
  mt_eigen_parts parts = {
      .count = 1, .first = first, .members = members, .part_of = part_of};
  whole.parts = &parts;
  MT_TRY(solve_subspaces(comm, &whole, k, tolerance, seed, values, vectors, residual));
done:
  free(members);
  free(part_of);
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
  fix_signs(n, NULL, k, vectors_out);
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
  MT_TRY(op->apply(comm, op, n, NULL, unit, a + op->firsts[comm->rank] * n));
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
  if (op->parts != NULL)
    return solve_subspaces(comm, op, k, tolerance, seed, values_out, vectors_out,
                           residual_out);
  MT_REQUIRE(k >= 1 && k <= op->n - (op->known != NULL), MT_ERR_ARG,
             "%lld eigenvectors of %lld rows", (long long)k, (long long)op->n);
  *residual_out = 0.0;
  if (mt_eigen_is_small(op->n, k))
    MT_TRY(solve_dense(comm, op, k, values_out, vectors_out));
  else
    MT_TRY(solve_whole(comm, op, k, tolerance, seed, values_out, vectors_out,
                       residual_out));
done:
  return status;
}
