/* Products of all pairs of rows of 16-bit integers: exact, and twice as quick as those of floats,
 * in ways that are chosen at run time. Nothing here is collective.
 *
 * Rows lie in groups of 16, and in a group pairs of columns: the first two columns of each of
 * its rows, then the next two of each. A band of `count` rows of d columns has whole groups
 * and whole pairs; beyond its columns it has 0, beyond its rows whatever. Values are within
 * +-32767, and the norms of two rows that meet below 2^15.5: no sum leaves an int32. */
#ifndef MT_BACKEND_CPU_PRODUCT_H
#define MT_BACKEND_CPU_PRODUCT_H
#include <stdbool.h>
#include <stdint.h>

enum { MT_PRODUCT_GROUP = 16, MT_PRODUCT_ROWS = 4 };

/* Two columns of a row, the first in the low half. */
typedef uint32_t mt_product_pair;

typedef struct mt_product_kernel {
  const char *name;
  bool (*usable)(void); /* on this processor */
  int64_t groups;       /* of b that it takes at a time */

  /* Adds what `pairs` pairs contribute to the products of one group of a with `groups` (or
   * one) of b.
   * a, b     where those pairs begin in the first group
   * apart    from a group of b to the next
   * width    from a row of the sums to the next */
  void (*add)(int64_t pairs, const mt_product_pair *a, const mt_product_pair *b,
              int64_t apart, int64_t width, int32_t *sums);
  void (*add_one)(int64_t pairs, const mt_product_pair *a, const mt_product_pair *b,
                  int64_t apart, int64_t width, int32_t *sums);

  /* sums_out (MT_PRODUCT_ROWS, MT_PRODUCT_GROUP): the products of rows that lie one after the
   * other, pair after pair, with those of a group. */
  void (*of_group)(int64_t pairs, const mt_product_pair *a, const mt_product_pair *b,
                   int32_t *sums_out);

  /* The product of two rows that lie pair after pair; pairs a multiple of
   * MT_PRODUCT_GROUP. */
  int32_t (*of_two)(int64_t pairs, const mt_product_pair *a, const mt_product_pair *b);
} mt_product_kernel;

extern const mt_product_kernel mt_product_kernel_vnni, mt_product_kernel_avx2,
    mt_product_kernel_portable;

/* The fastest that is usable; or the one called `name`, NULL if it is not. */
const mt_product_kernel *mt_product_kernel_find(const char *name);

/* Groups that `count` rows take, pairs that d columns take. */
int64_t mt_product_groups(int64_t count);
int64_t mt_product_pairs(int64_t d);

/* Where a row's first pair is; the next ones are MT_PRODUCT_GROUP apart. */
int64_t mt_product_place(int64_t pairs, int64_t row);

/**
 * The products of all rows of a with all rows of b.
 * sums_out   rows of `width` each, as many as a's groups have; of a row as many elements as
 *            b's groups have are written. Aligned to 64 bytes, width a multiple of 16.
 */
void mt_product_multiply(const mt_product_kernel *kernel, int64_t pairs,
                         int64_t a_groups, const mt_product_pair *a, int64_t b_groups,
                         const mt_product_pair *b, int64_t width, int32_t *sums_out);

/* What a row y and its integers have to do with each other. */
typedef struct mt_rounded {
  float step;    /* r = step x integers stands for y */
  double square; /* |r|^2 */
  double error;  /* a little above |y - r| */
} mt_rounded;

/**
 * Rounds a row, as finely as norms and range of the integers allow.
 * y              (d) finite, its square too
 * integers_out   (d); all 0, and step 0, if y is next to 0
 */
void mt_product_round(int64_t d, const double *y, int32_t *integers_out,
                      mt_rounded *out);

#endif
