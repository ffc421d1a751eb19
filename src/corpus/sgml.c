/* Reuters' SGML has no root element and holds references that XML forbids, so that an XML
 * parser with its recover option stops after the first document of a file and reports
 * success. Here the file is cut at <REUTERS, and each document is read alone: by a scan if
 * its markup is plain (sgml_parts.c), else cleaned and parsed (libxml2, SAX). What is
 * damaged is one document, and none can be lost unseen. */
#include "corpus/decode.h"
#include "corpus/readers.h"
#include "corpus/scan.h"
#include "corpus/sgml_parts.h"

#include <ctype.h>
#include <libxml/parser.h>
#include <libxml/xmlerror.h>
#include <limits.h>

static const char opening[] = "<REUTERS", closing[] = "</REUTERS>";
enum { OPENING_RARE = 3, CLOSING_RARE = 4 }; /* UT, which lower case texts have not */

typedef struct sgml_reader {
  const mt_piece *piece;
  const mt_corpus_options *options;
  mt_sink sink;
  void *context;
  mt_decoder decoder;
  xmlParserCtxtPtr parser;
  mt_buffer clean;
  mt_sgml_parts parts;
} sgml_reader;

/* ---- cleaning ------------------------------------------------------------------------ */

/* U+FFFE and U+FFFF, which XML forbids. */
static bool is_noncharacter(const char *at, size_t left)
{
  return left >= 3 && memcmp(at, "\xEF\xBF", 2) == 0 &&
         ((unsigned char)at[2] & 0xFE) == 0xBE;
}

/* What XML can read and means the same. */
static mt_status clean(mt_buffer *out, mt_span in)
{
  mt_status status = MT_OK;
  const char *at = in.at, *end = in.at + in.size;
  out->size = 0;
  MT_TRY(mt_buffer_reserve(out, in.size + 1));
  while (at < end) {
    const char *plain = at;
    while (at < end && *at != '&' && *at != '<' && *at != '>' &&
           (unsigned char)*at >= 32 && (unsigned char)*at != 0xEF)
      at++;
    MT_TRY(mt_buffer_add(out, plain, (size_t)(at - plain)));
    if (at == end) break;
    size_t left = (size_t)(end - at), length = 1;
    const char *text = at;
    int32_t code;
    if (*at == '&') {
      length = mt_sgml_reference(at, left, &code);
      if (length == 0) text = "&amp;", length = 1;
    } else if (*at == '<' && !mt_sgml_is_markup(at, left)) {
      text = "&lt;";
    } else if (*at == '>' && out->size >= 2 &&
               memcmp(out->bytes + out->size - 2, "]]", 2) == 0) {
      text = "&gt;";
    } else if (is_noncharacter(at, left)) {
      text = " ", length = 3;
    } else if ((unsigned char)*at < 32 && memchr("\t\n\r", *at, 3) == NULL) {
      text = " ";
    }
    MT_TRY(mt_buffer_add(out, text, text == at ? length : strlen(text)));
    at += length;
  }
done:
  return status;
}

/* ---- libxml2's callbacks --------------------------------------------------------------- */

static mt_span span(const xmlChar *text)
{
  return (mt_span){(const char *)text, strlen((const char *)text)};
}

static void on_start(void *context, const xmlChar *name, const xmlChar **attributes)
{
  mt_sgml_start(context, span(name));
  for (; attributes != NULL && attributes[0] != NULL; attributes += 2)
    if (attributes[1] != NULL)
      mt_sgml_attribute(context, span(attributes[0]), span(attributes[1]));
}

static void on_end(void *context, const xmlChar *name)
{
  mt_sgml_end(context, span(name));
}

static void on_text(void *context, const xmlChar *text, int length)
{
  mt_sgml_text(context, (mt_span){(const char *)text, (size_t)length});
}

static void on_message(void *context, const char *format, ...)
{
  (void)context; /* the error is asked for after the parse */
  (void)format;
}

static mt_status start_parser(sgml_reader *reader)
{
  reader->parser = xmlNewParserCtxt();
  if (reader->parser == NULL)
    return mt_fail(MT_ERR_MEMORY, "no memory for an XML parser");
  xmlSAXHandler *handler = reader->parser->sax;
  memset(handler, 0, sizeof *handler);
  handler->initialized =
      1; /* the first SAX interface: names and attributes as they stand */
  handler->startElement = on_start;
  handler->endElement = on_end;
  handler->characters = on_text;
  handler->ignorableWhitespace = on_text;
  handler->cdataBlock = on_text;
  handler->warning = on_message;
  handler->error = on_message;
  handler->fatalError = on_message;
  reader->parser->userData = &reader->parts;
  return MT_OK;
}

/* ---- documents ------------------------------------------------------------------------- */

size_t mt_sgml_next(const char *bytes, size_t size, size_t at)
{
  while (at < size) {
    const char *found =
        mt_find(bytes + at, size - at, opening, sizeof opening - 1, OPENING_RARE);
    if (found == NULL) return size;
    at = (size_t)(found - bytes);
    size_t after = at + sizeof opening - 1;
    if (after == size || bytes[after] == '>' || isspace((unsigned char)bytes[after]))
      return at;
    at = after;
  }
  return size;
}

static mt_span span_of(const mt_buffer *buffer)
{
  return (mt_span){buffer->bytes != NULL ? buffer->bytes : "", (size_t)buffer->size};
}

static void parse(sgml_reader *reader)
{
  mt_sgml_begin(&reader->parts);
  xmlCtxtResetLastError(reader->parser);
  xmlDocPtr tree =
      xmlCtxtReadMemory(reader->parser, reader->clean.bytes, (int)reader->clean.size,
                        NULL, "UTF-8", XML_PARSE_HUGE | XML_PARSE_NONET);
  if (tree != NULL) xmlFreeDoc(tree);
}

/* id = NEWID, or where the document stands. */
static mt_status give(sgml_reader *reader, size_t at)
{
  mt_status status = MT_OK;
  mt_record record = {.offset = reader->piece->offset + (int64_t)at};
  mt_sgml_part *part = reader->parts.part;
  mt_buffer *id = &reader->parts.id;
  record.id = span_of(id);
  if (id->size == 0) MT_TRY(mt_piece_id(reader->piece, record.offset, id, &record.id));
  if (part[MT_SGML_DATE].seen) record.date = span_of(&part[MT_SGML_DATE].text);
  if (part[MT_SGML_TITLE].seen)
    record.title = mt_span_trim(span_of(&part[MT_SGML_TITLE].text));
  if (part[MT_SGML_BODY].seen) record.text = span_of(&part[MT_SGML_BODY].text);
  MT_TRY(reader->sink(reader->context, &record));
done:
  return status;
}

/* By libxml2, which also knows what is wrong. */
static mt_status parse_document(sgml_reader *reader, size_t at, mt_span text)
{
  mt_status status = MT_OK;
  if (reader->parser == NULL) MT_TRY(start_parser(reader));
  MT_TRY(clean(&reader->clean, text));
  if (reader->clean.size > INT_MAX)
    return mt_piece_damaged(reader->piece, reader->options, reader->sink,
                            reader->context, MT_SKIP_DAMAGED, at, at,
                            "a document of more than 2 GiB");
  parse(reader);
  MT_TRY(reader->parts.status);
  if (!reader->parser->wellFormed) {
    const xmlError *error = xmlCtxtGetLastError(reader->parser);
    const char *message =
        error != NULL && error->message != NULL ? error->message : "?\n";
    int64_t below = error != NULL && error->line > 1 ? error->line - 1 : 0;
    mt_span id = span_of(&reader->parts.id);
    return mt_piece_damaged(
        reader->piece, reader->options, reader->sink, reader->context, MT_SKIP_DAMAGED,
        at, at, "document NEWID=\"%.*s\" is not well formed, %lld lines below: %.*s",
        (int)id.size, id.at, (long long)below, (int)strcspn(message, "\n"), message);
  }
  MT_TRY(give(reader, at));
done:
  return status;
}

/* The document at [at, at + size) of the piece, closing tag included. */
static mt_status read_document(sgml_reader *reader, size_t at, size_t size)
{
  mt_status status = MT_OK;
  const mt_piece *piece = reader->piece;
  mt_span text;
  bool valid;

  MT_TRY(
      mt_decode(&reader->decoder, (mt_span){piece->bytes + at, size}, &text, &valid));
  if (!valid)
    return mt_piece_damaged(piece, reader->options, reader->sink, reader->context,
                            MT_SKIP_ENCODING, at, at, "a document that is not %s text",
                            reader->decoder.name);
  bool plain = mt_sgml_plain(text, &reader->parts);
  MT_TRY(reader->parts.status);
  MT_TRY(plain ? give(reader, at) : parse_document(reader, at, text));
done:
  return status;
}

/* What follows a document may be the beginning of one more, cut inside its tag. */
static bool is_cut_opening(mt_span rest)
{
  rest = mt_span_trim(rest);
  return rest.size > 0 && rest.size < sizeof opening - 1 &&
         memcmp(rest.at, opening, rest.size) == 0;
}

/* Of a tag, for a message. */
static int tag_length(const char *at, size_t size)
{
  int length = 0;
  while ((size_t)length < size && length < 120 &&
         memchr(">\r\n", at[length], 3) == NULL)
    length++;
  return length;
}

/* From one <REUTERS to the next: a document. */
static mt_status read_between(sgml_reader *reader, size_t at, size_t next)
{
  const mt_piece *piece = reader->piece;
  const char *first = piece->bytes + at;
  const char *end =
      mt_find(first, next - at, closing, sizeof closing - 1, CLOSING_RARE);
  if (end == NULL)
    return mt_piece_damaged(
        piece, reader->options, reader->sink, reader->context, MT_SKIP_DAMAGED, at, at,
        "the document %.*s> has no </REUTERS>", tag_length(first, next - at), first);
  size_t size = (size_t)(end - first) + sizeof closing - 1;
  mt_status status = read_document(reader, at, size);
  mt_span rest = {first + size, next - at - size};
  if (status != MT_OK || !is_cut_opening(rest)) return status;
  return mt_piece_damaged(piece, reader->options, reader->sink, reader->context,
                          MT_SKIP_DAMAGED, at + size, at + size,
                          "a document is cut inside its <REUTERS tag");
}

mt_status mt_reader_sgml(const mt_piece *piece, const mt_corpus_options *options,
                         mt_sink sink, void *context)
{
  mt_status status = MT_OK;
  sgml_reader reader = {
      .piece = piece, .options = options, .sink = sink, .context = context};

  MT_TRY(mt_decoder_open(options->encoding, MT_FALLBACK_LATIN1, &reader.decoder));
  size_t at = mt_sgml_next(piece->bytes, piece->size, 0);
  while (at < piece->size) {
    size_t next = mt_sgml_next(piece->bytes, piece->size, at + 1);
    MT_TRY(read_between(&reader, at, next));
    at = next;
  }
done:
  if (reader.parser != NULL) xmlFreeParserCtxt(reader.parser);
  mt_sgml_destroy(&reader.parts);
  mt_buffer_destroy(&reader.clean);
  mt_decoder_close(&reader.decoder);
  return status;
}
