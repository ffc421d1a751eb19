#include "corpus/decode.h"
#include "corpus/scan.h"

#include <errno.h>
#include <strings.h>
#include <utf8proc.h>

static const iconv_t no_iconv = (iconv_t)-1;

bool mt_ascii_only(const char *bytes, size_t size)
{
  size_t i = 0;
  for (; i + 4 * MT_BLOCK <= size; i += 4 * MT_BLOCK) {
    const char *at = bytes + i;
    mt_block x = mt_block_at(at) | mt_block_at(at + MT_BLOCK) |
                 mt_block_at(at + 2 * MT_BLOCK) | mt_block_at(at + 3 * MT_BLOCK);
    if (mt_block_bits(x) != 0) return false;
  }
  for (; i < size; i++)
    if (bytes[i] & 0x80) return false;
  return true;
}

bool mt_utf8_valid(const char *bytes, size_t size)
{
  if (mt_ascii_only(bytes, size)) return true;
  const utf8proc_uint8_t *at = (const utf8proc_uint8_t *)bytes, *end = at + size;
  while (at < end) {
    utf8proc_int32_t code = 0;
    utf8proc_ssize_t left = end - at;
    utf8proc_ssize_t step = *at < 0x80 ? 1 : utf8proc_iterate(at, left, &code);
    if (step <= 0) return false;
    at += step;
  }
  return true;
}

/* Do the bytes that mark records mean themselves? */
static bool keeps_ascii(iconv_t converter)
{
  char marks[] = "<REUTERS NEWID=\"1\">{}[]:,;\t\r\n0129azAZ", out[2 * sizeof marks];
  char *in = marks, *to = out;
  size_t in_left = sizeof marks - 1, out_left = sizeof out;
  size_t wrong = iconv(converter, &in, &in_left, &to, &out_left);
  iconv(converter, NULL, NULL, NULL, NULL);
  size_t length = (size_t)(to - out);
  return wrong == 0 && length == sizeof marks - 1 && memcmp(out, marks, length) == 0;
}

mt_status mt_decoder_open(const char *encoding, mt_fallback fallback, mt_decoder *out)
{
  mt_status status = MT_OK;
  mt_decoder decoder = {.name = "UTF-8", .iconv = no_iconv};
  bool automatic = encoding == NULL || strcmp(encoding, "auto") == 0;

  if (automatic) decoder.fallback = fallback;
  if (!automatic && strcasecmp(encoding, "UTF-8") != 0 &&
      strcasecmp(encoding, "UTF8") != 0) {
    decoder.name = encoding;
    decoder.iconv = iconv_open("UTF-8", encoding);
    MT_REQUIRE(decoder.iconv != no_iconv, MT_ERR_INPUT,
               "corpus.encoding=\"%s\": no such encoding; `iconv -l` lists them",
               encoding);
    MT_REQUIRE(
        keeps_ascii(decoder.iconv), MT_ERR_INPUT,
        "corpus.encoding=\"%s\": records cannot be found in an encoding that does "
        "not hold ASCII as it is; convert the files first (iconv -t UTF-8)",
        encoding);
  }
  *out = decoder;
  decoder.iconv = no_iconv;
done:
  if (decoder.iconv != no_iconv) iconv_close(decoder.iconv);
  return status;
}

void mt_decoder_close(mt_decoder *decoder)
{
  if (decoder->name != NULL && decoder->iconv != no_iconv) iconv_close(decoder->iconv);
  mt_buffer_destroy(&decoder->buffer);
  decoder->name = NULL;
}

/* ISO-8859-1: byte = code point. */
static mt_status from_latin1(mt_buffer *buffer, mt_span bytes)
{
  mt_status status = MT_OK;
  buffer->size = 0;
  MT_TRY(mt_buffer_reserve(buffer, 2 * bytes.size + 1));
  char *to = buffer->bytes;
  for (size_t i = 0; i < bytes.size; i++) {
    unsigned char c = (unsigned char)bytes.at[i];
    if (c >= 0x80) *to++ = (char)(0xC0 | c >> 6);
    *to++ = (char)(c >= 0x80 ? 0x80 | (c & 0x3F) : c);
  }
  buffer->size = to - buffer->bytes;
done:
  return status;
}

static mt_status from_iconv(mt_decoder *decoder, mt_span bytes, bool *valid_out)
{
  mt_status status = MT_OK;
  mt_buffer *buffer = &decoder->buffer;
  char *in = (char *)bytes.at; /* iconv does not write there */
  size_t left = bytes.size, wrong = 0;

  buffer->size = 0;
  iconv(decoder->iconv, NULL, NULL, NULL, NULL);
  do {
    MT_TRY(mt_buffer_reserve(buffer, left + left / 2 + 64));
    char *to = buffer->bytes + buffer->size;
    size_t room = (size_t)(buffer->capacity - buffer->size);
    wrong = iconv(decoder->iconv, &in, &left, &to, &room);
    buffer->size = to - buffer->bytes;
  } while (wrong == (size_t)-1 && errno == E2BIG);
  *valid_out =
      wrong != (size_t)-1 && mt_utf8_valid(buffer->bytes, (size_t)buffer->size);
done:
  return status;
}

mt_status mt_decode(mt_decoder *decoder, mt_span bytes, mt_span *out, bool *valid_out)
{
  mt_status status = MT_OK;
  *valid_out = true;
  if (decoder->iconv != no_iconv) {
    MT_TRY(from_iconv(decoder, bytes, valid_out));
  } else if (mt_utf8_valid(bytes.at, bytes.size)) {
    *out = bytes;
    return MT_OK;
  } else if (decoder->fallback == MT_FALLBACK_LATIN1) {
    MT_TRY(from_latin1(&decoder->buffer, bytes));
  } else {
    *valid_out = false;
  }
  if (*valid_out) *out = (mt_span){decoder->buffer.bytes, (size_t)decoder->buffer.size};
done:
  return status;
}
