/* Reuters' SGML has no root element and holds references that XML forbids, so that an XML
 * parser with its recover option stops after the first document of a file and reports
 * success. Here the file is cut at <REUTERS, and each document is cleaned and parsed alone
 * (libxml2, SAX): what is damaged is one document, and none can be lost unseen. */
#include "corpus/decode.h"
#include "corpus/readers.h"

#include <ctype.h>
#include <libxml/parser.h>
#include <libxml/xmlerror.h>
#include <limits.h>

static const char opening[] = "<REUTERS", closing[] = "</REUTERS>";

/* What is between the tags goes to one of these, or nowhere. */
typedef struct sgml_part {
  const char *element;
  mt_buffer text;
  bool seen;
} sgml_part;
enum { PART_DATE, PART_TITLE, PART_BODY, PARTS };

typedef struct sgml_reader {
  const mt_piece *piece;
  const mt_corpus_options *options;
  mt_sink sink;
  void *context;
  mt_decoder decoder;
  xmlParserCtxtPtr parser;
  mt_buffer clean, id;
  sgml_part parts[PARTS];
  sgml_part *open;  /* the part that characters belong to now */
  mt_status status; /* of the callbacks, which cannot return one */
} sgml_reader;

/* ---- cleaning ------------------------------------------------------------------------ */

static bool is_control(long code)
{
  return code < 32 ? code != 9 && code != 10 && code != 13 : code >= 127 && code < 160;
}

static bool is_xml_character(long code)
{
  return code == 9 || code == 10 || code == 13 || (code >= 32 && code < 0xD800) ||
         (code >= 0xE000 && code < 0xFFFE) || (code >= 0x10000 && code < 0x110000);
}

/* The length of a reference that XML can read at at[0] = '&', up to its ';'; else 0. */
static size_t reference_length(const char *at, size_t left)
{
  static const char *const names[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&apos;"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    size_t length = strlen(names[i]);
    if (left >= length && memcmp(at, names[i], length) == 0) return length;
  }
  if (left < 4 || at[1] != '#') return 0;
  bool hex = at[2] == 'x';
  size_t i = hex ? 3 : 2, first = i;
  long code = 0;
  for (; i < left && i < 12 &&
         (hex ? isxdigit((unsigned char)at[i]) : isdigit((unsigned char)at[i]));
       i++) {
    int digit = isdigit((unsigned char)at[i]) ? at[i] - '0' : (at[i] | 32) - 'a' + 10;
    code = code * (hex ? 16 : 10) + digit;
  }
  bool whole = i > first && i < left && at[i] == ';';
  return whole && is_xml_character(code) && !is_control(code) ? i + 1 : 0;
}

/* Does '<' begin a tag, a comment or the like? */
static bool is_markup(const char *at, size_t left)
{
  return left > 1 && (isalpha((unsigned char)at[1]) || strchr("/!?_", at[1]) != NULL) &&
         at[1] != '\0';
}

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
    if (*at == '&') {
      length = reference_length(at, left);
      if (length == 0) text = "&amp;", length = 1;
    } else if (*at == '<' && !is_markup(at, left)) {
      text = "&lt;";
    } else if (*at == '>' && out->size >= 2 &&
               memcmp(out->bytes + out->size - 2, "]]", 2) == 0) {
      text = "&gt;";
    } else if (is_noncharacter(at, left)) {
      text = " ", length = 3;
    } else if ((unsigned char)*at < 32 && is_control(*at)) {
      text = " ";
    }
    MT_TRY(mt_buffer_add(out, text, text == at ? length : strlen(text)));
    at += length;
  }
done:
  return status;
}

/* ---- libxml2's callbacks --------------------------------------------------------------- */

static void on_start(void *context, const xmlChar *name, const xmlChar **attributes)
{
  sgml_reader *reader = context;
  for (int p = 0; p < PARTS; p++)
    if (strcmp((const char *)name, reader->parts[p].element) == 0) {
      reader->open = &reader->parts[p];
      reader->open->seen = true;
    }
  for (; attributes != NULL && attributes[0] != NULL; attributes += 2)
    if (strcmp((const char *)attributes[0], "NEWID") == 0 && attributes[1] != NULL &&
        reader->status == MT_OK) {
      const char *id = (const char *)attributes[1];
      reader->id.size = 0;
      reader->status = mt_buffer_add(&reader->id, id, strlen(id));
    }
}

static void on_end(void *context, const xmlChar *name)
{
  sgml_reader *reader = context;
  if (reader->open != NULL && strcmp((const char *)name, reader->open->element) == 0)
    reader->open = NULL;
}

static void on_text(void *context, const xmlChar *text, int length)
{
  sgml_reader *reader = context;
  if (reader->open != NULL && reader->status == MT_OK)
    reader->status = mt_buffer_add(&reader->open->text, text, (size_t)length);
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
  reader->parser->userData = reader;
  return MT_OK;
}

/* ---- documents ------------------------------------------------------------------------- */

size_t mt_sgml_next(const char *bytes, size_t size, size_t at)
{
  while (at < size) {
    const char *found = memmem(bytes + at, size - at, opening, sizeof opening - 1);
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
  for (int p = 0; p < PARTS; p++) {
    reader->parts[p].text.size = 0;
    reader->parts[p].seen = false;
  }
  reader->open = NULL;
  reader->id.size = 0;
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
  record.id = span_of(&reader->id);
  if (reader->id.size == 0)
    MT_TRY(mt_piece_id(reader->piece, record.offset, &reader->id, &record.id));
  if (reader->parts[PART_DATE].seen)
    record.date = span_of(&reader->parts[PART_DATE].text);
  if (reader->parts[PART_TITLE].seen)
    record.title = mt_span_trim(span_of(&reader->parts[PART_TITLE].text));
  if (reader->parts[PART_BODY].seen)
    record.text = span_of(&reader->parts[PART_BODY].text);
  MT_TRY(reader->sink(reader->context, &record));
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
  MT_TRY(clean(&reader->clean, text));
  if (reader->clean.size > INT_MAX)
    return mt_piece_damaged(piece, reader->options, reader->sink, reader->context,
                            MT_SKIP_DAMAGED, at, at, "a document of more than 2 GiB");
  parse(reader);
  MT_TRY(reader->status);
  if (!reader->parser->wellFormed) {
    const xmlError *error = xmlCtxtGetLastError(reader->parser);
    const char *message =
        error != NULL && error->message != NULL ? error->message : "?\n";
    int64_t below = error != NULL && error->line > 1 ? error->line - 1 : 0;
    return mt_piece_damaged(
        piece, reader->options, reader->sink, reader->context, MT_SKIP_DAMAGED, at, at,
        "document NEWID=\"%.*s\" is not well formed, %lld lines below: %.*s",
        (int)reader->id.size, reader->id.size > 0 ? reader->id.bytes : "",
        (long long)below, (int)strcspn(message, "\n"), message);
  }
  MT_TRY(give(reader, at));
done:
  return status;
}

/* What follows the last document may be the beginning of one more, cut inside its tag. */
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
  const char *end = memmem(first, next - at, closing, sizeof closing - 1);
  if (end == NULL)
    return mt_piece_damaged(
        piece, reader->options, reader->sink, reader->context, MT_SKIP_DAMAGED, at, at,
        "the document %.*s> has no </REUTERS>", tag_length(first, next - at), first);
  size_t size = (size_t)(end - first) + sizeof closing - 1;
  mt_status status = read_document(reader, at, size);
  mt_span rest = {first + size, next - at - size};
  if (status != MT_OK || next != piece->size || !is_cut_opening(rest)) return status;
  return mt_piece_damaged(piece, reader->options, reader->sink, reader->context,
                          MT_SKIP_DAMAGED, at + size, at + size,
                          "the file is cut inside a <REUTERS tag");
}

mt_status mt_reader_sgml(const mt_piece *piece, const mt_corpus_options *options,
                         mt_sink sink, void *context)
{
  mt_status status = MT_OK;
  sgml_reader reader = {
      .piece = piece, .options = options, .sink = sink, .context = context};
  reader.parts[PART_DATE].element = "DATE";
  reader.parts[PART_TITLE].element = "TITLE";
  reader.parts[PART_BODY].element = "BODY";

  MT_TRY(mt_decoder_open(options->encoding, MT_FALLBACK_LATIN1, &reader.decoder));
  MT_TRY(start_parser(&reader));
  size_t at = mt_sgml_next(piece->bytes, piece->size, 0);
  while (at < piece->size) {
    size_t next = mt_sgml_next(piece->bytes, piece->size, at + 1);
    MT_TRY(read_between(&reader, at, next));
    at = next;
  }
done:
  if (reader.parser != NULL) xmlFreeParserCtxt(reader.parser);
  for (int p = 0; p < PARTS; p++) mt_buffer_destroy(&reader.parts[p].text);
  mt_buffer_destroy(&reader.clean);
  mt_buffer_destroy(&reader.id);
  mt_decoder_close(&reader.decoder);
  return status;
}
