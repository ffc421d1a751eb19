/* Bytes to UTF-8. */
#ifndef MT_CORPUS_DECODE_H
#define MT_CORPUS_DECODE_H
#include "corpus/buffer.h"
#include "corpus/readers.h"
#include <iconv.h>
#include <stdbool.h>

/* What auto means when bytes are not valid UTF-8. */
typedef enum mt_fallback { MT_FALLBACK_NONE, MT_FALLBACK_LATIN1 } mt_fallback;

typedef struct mt_decoder {
  const char *name; /* "UTF-8", or the encoding's; for messages */
  iconv_t iconv;    /* (iconv_t)-1: the bytes are UTF-8 already */
  mt_fallback fallback;
  mt_buffer buffer;
} mt_decoder;

/**
 * encoding  "auto" (UTF-8, else the fallback) or a name that iconv knows
 * Errors    MT_ERR_INPUT: iconv does not know it; or it does not hold ASCII as ASCII
 *           (UTF-16), so that records could not be found
 */
mt_status mt_decoder_open(const char *encoding, mt_fallback fallback, mt_decoder *out);
void mt_decoder_close(mt_decoder *decoder); /* a zeroed one is fine */

/**
 * out        UTF-8; the input itself, or the decoder's until the next call
 * valid_out  false: the bytes are not text in this encoding, and out is not set
 * Errors     MT_ERR_MEMORY
 */
mt_status mt_decode(mt_decoder *decoder, mt_span bytes, mt_span *out, bool *valid_out);

bool mt_utf8_valid(const char *bytes, size_t size);

/* Does it hold nothing but ASCII? */
bool mt_ascii_only(const char *bytes, size_t size);

#endif
