#include "backend/cpu_product.h"

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
