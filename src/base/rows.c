#include "base/rows.h"

#include <stddef.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Past the caches where that can be said: what is copied in large blocks is not read soon, and
 * a line that is not fetched before it is written saves a third of the traffic. */
static void copy_piece(size_t bytes, const char *from, char *to)
{
#ifdef __SSE2__
  size_t head = (size_t)(-(ptrdiff_t)to & 63);
  if (head > bytes) head = bytes;
  memcpy(to, from, head);
  size_t end = head + (bytes - head) / 64 * 64;
  for (size_t at = head; at < end; at += 64) {
    const __m128i *source = (const __m128i *)(const void *)(from + at);
    __m128i *target = (__m128i *)(void *)(to + at);
    __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
    __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  _mm_sfence();
  memcpy(to + end, from + end, bytes - end);
#else
  memcpy(to, from, bytes);
#endif
}

/* By all threads: one alone reaches a fraction of the memory's speed. */
static void copy_large(size_t bytes, const char *from, char *to)
{
  const size_t piece = (size_t)1 << 20;
  long pieces = (long)((bytes + piece - 1) / piece);
#pragma omp parallel for schedule(static)
  for (long p = 0; p < pieces; p++) {
    size_t at = (size_t)p * piece;
    copy_piece(bytes - at < piece ? bytes - at : piece, from + at, to + at);
  }
}

static mt_status read_memory(const mt_rows *rows, int64_t first, int64_t count,
                             float *out)
{
  const size_t large = (size_t)1 << 23;
  if (first < 0 || count < 0 || count > rows->n - first)
    return mt_fail(MT_ERR_ARG, "rows %lld to %lld of %lld", (long long)first,
                   (long long)(first + count), (long long)rows->n);
  const char *from = (const char *)((const float *)rows->source + first * rows->d);
  size_t bytes = (size_t)(count * rows->d) * sizeof *out;
  if (bytes > large)
    copy_large(bytes, from, (char *)out);
  else if (bytes > 0)
    memcpy(out, from, bytes);
  return MT_OK;
}

mt_rows mt_rows_memory(int64_t n, int64_t d, const float *matrix)
{
  return (mt_rows){.n = n, .d = d, .source = matrix, .read = read_memory};
}
