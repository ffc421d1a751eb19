#include "backend/cpu_product.h"
#include "base/vectors.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum {
  GROUP = MT_PRODUCT_GROUP,
  PANEL = 256 /* pairs at a time: those of a's rows stay in the second-level cache */
};

static const mt_product_kernel *const kernels[] = {
#if defined(__x86_64__)
    &mt_product_kernel_vnni, &mt_product_kernel_avx2,
#endif
    &mt_product_kernel_portable};

const mt_product_kernel *mt_product_kernel_find(const char *name)
{
  for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
    if (kernels[i]->usable() && (name == NULL || strcmp(name, kernels[i]->name) == 0))
      return kernels[i];
  return NULL;
}

int64_t mt_product_groups(int64_t count)
{
  return (count + GROUP - 1) / GROUP;
}

int64_t mt_product_pairs(int64_t d)
{
  return (d + 1) / 2;
}

int64_t mt_product_place(int64_t pairs, int64_t row)
{
  return row / GROUP * GROUP * pairs + row % GROUP;
}

void mt_product_multiply(const mt_product_kernel *kernel, int64_t pairs,
                         int64_t a_groups, const mt_product_pair *a, int64_t b_groups,
                         const mt_product_pair *b, int64_t width, int32_t *sums_out)
{
  int64_t apart = GROUP * pairs;
  for (int64_t i = 0; i < GROUP * a_groups; i++)
    memset(sums_out + i * width, 0, (size_t)(GROUP * b_groups) * sizeof *sums_out);
  for (int64_t p = 0; p < pairs; p += PANEL) {
    int64_t many = pairs - p < PANEL ? pairs - p : PANEL;
    for (int64_t h = 0, taken; h < b_groups; h += taken) {
      bool wide = b_groups - h >= kernel->groups;
      taken = wide ? kernel->groups : 1;
      for (int64_t g = 0; g < a_groups; g++)
        (wide ? kernel->add : kernel->add_one)(
            many, a + g * apart + p * GROUP, b + h * apart + p * GROUP, apart, width,
            sums_out + g * GROUP * width + h * GROUP);
    }
  }
}

/* ---- rounding ------------------------------------------------------------------------------ */

enum { LANES = 8 };

static double sum_of(const double *lane)
{
  double sum = 0.0;
  for (int l = 0; l < LANES; l++) sum += lane[l];
  return sum;
}

/* The least step for which no integer is beyond its range, nor their norm. */
MT_FOR_VECTORS static double least_step(int64_t d, const double *y, double *norm_out)
{
  const double most = sqrt(0x1p31) - 1.0 - 0.5 * sqrt((double)d), range = INT16_MAX - 1;
  double square[LANES] = {0.0}, largest[LANES] = {0.0};
  for (int64_t from = 0; from < d; from += LANES) {
    int many = d - from < LANES ? (int)(d - from) : LANES;
    for (int l = 0; l < many; l++) {
      double size = fabs(y[from + l]);
      square[l] += size * size;
      largest[l] = size > largest[l] ? size : largest[l];
    }
  }
  for (int l = 1; l < LANES; l++) largest[0] = fmax(largest[0], largest[l]);
  *norm_out = sqrt(sum_of(square));
  return fmax(*norm_out / most, largest[0] / range) * (1.0 + 0x1p-20);
}

/* square_out, off_out: of the integers, and of what is lost in rounding. */
MT_FOR_VECTORS static void round_values(int64_t d, const double *y, double step,
                                        int32_t *integers, double *square_out,
                                        double *off_out)
{
  const double whole = 0x1.8p52; /* has no digits below 1 */
  double off[LANES] = {0.0}, square[LANES] = {0.0};
  double inverse = step > 0.0 ? 1.0 / step : 0.0;
  for (int64_t from = 0; from < d; from += LANES) {
    int many = d - from < LANES ? (int)(d - from) : LANES;
    for (int l = 0; l < many; l++) {
      double value = (y[from + l] * inverse + whole) - whole;
      double rest = y[from + l] - value * step;
      off[l] += rest * rest;
      square[l] += value * value;
      integers[from + l] = (int32_t)value;
    }
  }
  *square_out = sum_of(square);
  *off_out = sum_of(off);
}

void mt_product_round(int64_t d, const double *y, int32_t *integers_out,
                      mt_rounded *out)
{
  double norm, square, off, step = least_step(d, y, &norm);
  out->step = step < 0x1p-100 ? 0.0f : (float)step;
  round_values(d, y, (double)out->step, integers_out, &square, &off);
  out->square = (double)out->step * (double)out->step * square;
  out->error = sqrt(off) * (1.0 + 1e-6) + 0x1p-48 * norm; /* as off was rounded, too */
}
