/* What this machine can do at most, with OMP_NUM_THREADS threads:
 *   bench_limits fma               float multiplications and additions, GFLOP/s
 *   bench_limits memory            reading memory in order, GB/s
 *   bench_limits gather BYTES      reading 8 bytes anywhere in an array, billion a second
 *   bench_limits sgemm N D TILE BLOCK   OpenBLAS: all rows times all rows (N x D), each thread
 *                                  TILE x BLOCK of the products at a time, seconds */
#include "bench.h"
#include "base/memory.h"
#include "base/random.h"

#include <cblas.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 16, CHAINS = 10, STEPS = 10000000 };
typedef float lanes __attribute__((vector_size(4 * LANES)));

#ifdef __x86_64__
#define FASTEST __attribute__((target_clones("avx512f", "avx2,fma", "default")))
#else
#define FASTEST
#endif

/* As many sums at once as the processor can have in flight. */
FASTEST static float multiply_add(int64_t steps, float start)
{
  lanes sum[CHAINS], factor, last = {0};
  for (int l = 0; l < LANES; l++) factor[l] = 0.999f + 1e-5f * (float)l;
  for (int c = 0; c < CHAINS; c++)
    sum[c] = factor * (start + (float)c); /* none alike */
  for (int64_t step = 0; step < steps; step++)
    for (int c = 0; c < CHAINS; c++) sum[c] = sum[c] * factor + factor;
  for (int c = 0; c < CHAINS; c++) last += sum[c];
  return last[0] + last[LANES - 1];
}

static mt_status fma_rate(double *rate_out)
{
  float keep = 0.0f;
  double begin = mt_seconds();
#pragma omp parallel reduction(+ : keep)
  keep += multiply_add(STEPS, (float)omp_get_thread_num());
  double seconds = mt_seconds() - begin;
  *rate_out = 2e-9 * LANES * CHAINS * (double)STEPS * omp_get_max_threads() / seconds;
  return keep > 0.0f ? MT_OK : mt_fail(MT_ERR_INTERNAL, "the sums are gone");
}

static mt_status memory_rate(double *rate_out)
{
  enum { TIMES = 4 };
  mt_status status = MT_OK;
  const int64_t n = (int64_t)1 << 25; /* 256 MB */
  uint64_t *words = NULL, sum = 0;
  double begin = 0.0;
  MT_NEW(words, n);
#pragma omp parallel for
  for (int64_t i = 0; i < n; i++) words[i] = (uint64_t)i;
  begin = mt_seconds();
  for (int t = 0; t < TIMES; t++) {
#pragma omp parallel for simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += words[i];
  }
  *rate_out = 8e-9 * TIMES * (double)n / (mt_seconds() - begin);
  MT_REQUIRE(sum != 0, MT_ERR_INTERNAL, "the sum is gone");
done:
  free(words);
  return status;
}

static mt_status gather_rate(int64_t bytes, double *rate_out)
{
  enum { READS = 100000000 };
  mt_status status = MT_OK;
  const int64_t n = bytes / 8;
  uint64_t *words = NULL, sum = 0;
  double begin = 0.0;
  MT_REQUIRE(n >= 1 && n <= INT32_MAX, MT_ERR_INPUT,
             "gather %lld: want 8 bytes to 16 GB", (long long)bytes);
  MT_NEW(words, n);
  for (int64_t i = 0; i < n; i++) words[i] = (uint64_t)i;
  begin = mt_seconds();
#pragma omp parallel reduction(+ : sum)
  {
    uint32_t state = 1u + (uint32_t)omp_get_thread_num();
    for (int64_t i = 0; i < READS; i++) {
      state = state * 1664525u + 1013904223u;
      sum += words[(uint64_t)state * (uint64_t)n >> 32];
    }
  }
  *rate_out = 1e-9 * READS * omp_get_max_threads() / (mt_seconds() - begin);
  MT_REQUIRE(sum != 0, MT_ERR_INTERNAL, "the sum is gone");
done:
  free(words);
  return status;
}

static mt_status multiply(int64_t n, int64_t d, int64_t tile, int64_t block)
{
  mt_status status = MT_OK;
  mt_comm self = mt_comm_self();
  mt_elapsed took;
  float *rows = NULL, *product = NULL;
  int64_t columns = (n + block - 1) / block, lines = (n + tile - 1) / tile;
  MT_REQUIRE(n >= 1 && d >= 1 && tile >= 1 && block >= 1, MT_ERR_INPUT,
             "sgemm N D TILE BLOCK: want 1 or more");
  MT_NEW(rows, n * d);
  MT_NEW(product, tile * block * omp_get_max_threads());
#pragma omp parallel for
  for (int64_t i = 0; i < n * d; i++)
    rows[i] = (float)(i * 2654435761 % 1000003) * 1e-6f;
  openblas_set_num_threads(1);
  mt_elapsed begin = mt_bench_now();
#pragma omp parallel for schedule(dynamic)
  for (int64_t part = 0; part < columns * lines; part++) {
    int64_t a = part % lines * tile, b = part / lines * block;
    int64_t m = n - a < tile ? n - a : tile, w = n - b < block ? n - b : block;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)m, (blasint)w,
                (blasint)d, 1.0f, rows + a * d, (blasint)d, rows + b * d, (blasint)d,
                0.0f, product + omp_get_thread_num() * tile * block, (blasint)block);
  }
  MT_TRY(mt_bench_since(&self, begin, &took));
  printf("{\"seconds\": %.6f, \"cpu\": %.6f}\n", took.clock, took.processor);
done:
  free(rows);
  free(product);
  return status;
}

static mt_status measure(int argc, char **argv)
{
  mt_status status = MT_OK;
  const char *what = argc > 1 ? argv[1] : "";
  double rate = 0.0;
  if (strcmp(what, "sgemm") == 0 && argc == 6)
    return multiply(atoll(argv[2]), atoll(argv[3]), atoll(argv[4]), atoll(argv[5]));
  if (strcmp(what, "fma") == 0 && argc == 2)
    MT_TRY(fma_rate(&rate));
  else if (strcmp(what, "memory") == 0 && argc == 2)
    MT_TRY(memory_rate(&rate));
  else if (strcmp(what, "gather") == 0 && argc == 3)
    MT_TRY(gather_rate(atoll(argv[2]), &rate));
  else
    return mt_fail(MT_ERR_INPUT, "bench_limits fma | memory | gather BYTES | sgemm N D "
                                 "TILE BLOCK");
  printf("{\"rate\": %.6f}\n", rate);
done:
  return status;
}

int main(int argc, char **argv)
{
  mt_comm world;
  if (mt_comm_start(&argc, &argv, &world) != MT_OK) return 1;
  mt_log_setup(world.rank, world.size, MT_LOG_WARN);
  mt_status status = measure(argc, argv);
  mt_comm_stop(&world);
  return mt_exit_code(status);
}
