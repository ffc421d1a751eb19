#include "base/random.h"

#include <math.h>

static double normal_of(const uint32_t w[4])
{
  double radius = sqrt(-2.0 * log(mt_random_unit_of(w[0], w[1])));
  return radius * cos(2.0 * M_PI * mt_random_unit_of(w[2], w[3]));
}

double mt_random_normal(uint32_t seed, mt_stream stream, uint64_t index, uint32_t step)
{
  uint32_t w[4];
  mt_random_words(seed, stream, index, step, 0, w);
  return normal_of(w);
}

double mt_random_gamma(uint32_t seed, mt_stream stream, uint64_t index, uint32_t step,
                       double shape, double scale)
{
  double d = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
  for (uint32_t block = 0;; block += 2) {
    uint32_t w[4], u[4];
    mt_random_words(seed, stream, index, step, block, w);
    mt_random_words(seed, stream, index, step, block + 1, u);
    double x = normal_of(w), v = 1.0 + c * x;
    if (v <= 0.0) continue;
    v = v * v * v;
    if (log(mt_random_unit_of(u[0], u[1])) < 0.5 * x * x + d - d * v + d * log(v))
      return d * v * scale;
  }
}
