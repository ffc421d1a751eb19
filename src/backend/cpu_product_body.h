/* A kernel of cpu_product.h: defines KERNEL, named KERNEL_NAME, for the instructions that the
 * file may use. USABLE says whether the processor has them. */
#include "backend/cpu_product.h"
#include "base/vectors.h"

#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512VNNI__)
enum { LANES = 16, GROUPS = 4 };
#elif defined(__AVX2__)
enum { LANES = 8, GROUPS = 1 };
#else
enum { LANES = 4, GROUPS = 1 };
#endif
enum { ROWS = MT_PRODUCT_ROWS, ONE = MT_PRODUCT_GROUP / LANES, MOST = GROUPS * ONE };

typedef uint32_t lanes __attribute__((vector_size(4 * LANES)));

MT_INLINE lanes load(const void *from)
{
  lanes out;
  memcpy(&out, from, sizeof out);
  return out;
}

/* Adds both columns' products in each lane. */
MT_INLINE lanes add_pairs(lanes sum, lanes a, lanes b)
{
#if defined(__AVX512VNNI__)
  return (lanes)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return sum + (lanes)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#else
  typedef int32_t with_sign __attribute__((vector_size(4 * LANES)));
  with_sign a_low = (with_sign)(a << 16) >> 16, a_high = (with_sign)a >> 16;
  with_sign b_low = (with_sign)(b << 16) >> 16, b_high = (with_sign)b >> 16;
  return sum + (lanes)a_low * (lanes)b_low + (lanes)a_high * (lanes)b_high;
#endif
}

/* ROWS rows of a with `vectors` vectors of rows of b; a's pairs are `pair` apart, its rows `row`. */
MT_INLINE void add_rows(int vectors, int64_t pairs, const mt_product_pair *a,
                        int64_t pair, int64_t row, const mt_product_pair *b,
                        int64_t apart, int64_t width, int32_t *sums)
{
  lanes sum[ROWS][MOST], column[MOST];
#pragma GCC unroll 4
  for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) sum[i][v] = load(sums + i * width + v * LANES);
  for (int64_t p = 0; p < pairs; p++) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
      column[v] = load(b + v / ONE * apart + p * MT_PRODUCT_GROUP + v % ONE * LANES);
#pragma GCC unroll 4
    for (int i = 0; i < ROWS; i++) {
      lanes both = (lanes){0} + a[p * pair + i * row];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++)
        sum[i][v] = add_pairs(sum[i][v], both, column[v]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
      memcpy(sums + i * width + v * LANES, &sum[i][v], sizeof sum[i][v]);
}

static void add(int64_t pairs, const mt_product_pair *a, const mt_product_pair *b,
                int64_t apart, int64_t width, int32_t *sums)
{
  for (int i = 0; i < MT_PRODUCT_GROUP; i += ROWS)
    add_rows(MOST, pairs, a + i, MT_PRODUCT_GROUP, 1, b, apart, width,
             sums + i * width);
}

static void add_one(int64_t pairs, const mt_product_pair *a, const mt_product_pair *b,
                    int64_t apart, int64_t width, int32_t *sums)
{
  for (int i = 0; i < MT_PRODUCT_GROUP; i += ROWS)
    add_rows(ONE, pairs, a + i, MT_PRODUCT_GROUP, 1, b, apart, width, sums + i * width);
}

static void of_group(int64_t pairs, const mt_product_pair *a, const mt_product_pair *b,
                     int32_t *sums_out)
{
  memset(sums_out, 0, ROWS * MT_PRODUCT_GROUP * sizeof *sums_out);
  add_rows(ONE, pairs, a, 1, pairs, b, 0, MT_PRODUCT_GROUP, sums_out);
}

static int32_t of_two(int64_t pairs, const mt_product_pair *a, const mt_product_pair *b)
{
  enum { CHAINS = 4 };
  lanes sum[CHAINS] = {{0}};
  uint32_t all = 0;
  int64_t p = 0;
  for (; p + CHAINS * LANES <= pairs; p += CHAINS * LANES)
#pragma GCC unroll 4
    for (int c = 0; c < CHAINS; c++)
      sum[c] = add_pairs(sum[c], load(a + p + c * LANES), load(b + p + c * LANES));
  for (; p < pairs; p += LANES) sum[0] = add_pairs(sum[0], load(a + p), load(b + p));
  sum[0] += sum[1] + sum[2] + sum[3];
  for (int l = 0; l < LANES; l++) all += sum[0][l];
  return (int32_t)all;
}

static bool usable(void)
{
  return USABLE;
}

const mt_product_kernel KERNEL = {.name = KERNEL_NAME,
                                  .usable = usable,
                                  .groups = GROUPS,
                                  .add = add,
                                  .add_one = add_one,
                                  .of_group = of_group,
                                  .of_two = of_two};
