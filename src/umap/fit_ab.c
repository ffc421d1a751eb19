#include "umap/umap.h"

#include <math.h>

enum { SAMPLES = 300, STEPS = 200 };

/* Sum of squared errors at (a, b); normal equations of the Gauss-Newton step if wanted. */
static double squared_error(double min_dist, double spread, double a, double b,
                            double normal[3], double right[2])
{
  double sum = 0.0;
  if (normal != NULL) normal[0] = normal[1] = normal[2] = right[0] = right[1] = 0.0;
  for (int i = 0; i < SAMPLES; i++) {
    double x = 3.0 * spread * i / (SAMPLES - 1);
    double want = x < min_dist ? 1.0 : exp(-(x - min_dist) / spread);
    double power = x > 0.0 ? pow(x, 2.0 * b) : 0.0, y = 1.0 / (1.0 + a * power);
    double error = want - y;
    sum += error * error;
    if (normal == NULL || x == 0.0) continue;
    double da = -power * y * y, db = -2.0 * a * log(x) * power * y * y;
    normal[0] += da * da;
    normal[1] += da * db;
    normal[2] += db * db;
    right[0] += da * error;
    right[1] += db * error;
  }
  return sum;
}

/* Levenberg and Marquardt: damped Gauss-Newton steps from a = b = 1, where scipy starts. */
void mt_umap_fit_ab(double min_dist, double spread, double *a_out, double *b_out)
{
  double a = 1.0, b = 1.0, damping = 1e-3, normal[3], right[2];
  double error = squared_error(min_dist, spread, a, b, normal, right);
  for (int step = 0; step < STEPS; step++) {
    double p = normal[0] * (1.0 + damping), q = normal[1],
           r = normal[2] * (1.0 + damping);
    double det = p * r - q * q;
    double da = (r * right[0] - q * right[1]) / det,
           db = (p * right[1] - q * right[0]) / det;
    double next = squared_error(min_dist, spread, a + da, b + db, NULL, NULL);
    if (!(a + da > 0.0 && b + db > 0.0 && next <= error)) {
      damping *= 10.0;
      if (damping > 1e12) break;
      continue;
    }
    a += da;
    b += db;
    damping *= 0.1;
    error = squared_error(min_dist, spread, a, b, normal, right);
    if (fabs(da) <= 1e-12 * a && fabs(db) <= 1e-12 * b) break;
  }
  *a_out = a;
  *b_out = b;
}

void mt_umap_ab(const mt_umap_options *options, double *a_out, double *b_out)
{
  if (options->a > 0.0 && options->b > 0.0) {
    *a_out = options->a;
    *b_out = options->b;
  } else {
    mt_umap_fit_ab(options->min_dist, options->spread, a_out, b_out);
  }
}
