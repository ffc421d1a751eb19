#include "deck/deck.h"
#include "base/memory.h"
#include "deck/locate.h"
#include "deck/nearest.h"
#include "deck/schema.h"
#include "deck/table.h"

#include <ctype.h>
#include <errno.h>
#include <iconv.h>
#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <libxml/relaxng.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DECK_LARGEST = 256 * 1024 };

#if LIBXML_VERSION >= 21200
typedef const xmlError *xml_error;
#else
typedef xmlError *xml_error;
#endif

static const char sections[] = "corpus lda knn umap hdbscan map output";

/* ---- parameters ------------------------------------------------------------------------ */

mt_status mt_parameters_default(mt_parameters *parameters_out)
{
  mt_parameters parameters = {0};
  char why[MT_SAID_LONGEST];
  for (const mt_parameter *p = mt_parameter_table; p->section != NULL; p++) {
    if (p->text[0] == '\0') continue; /* must be given */
    mt_status status = mt_parameter_read(p, p->text, &parameters, why);
    if (status == MT_OK) continue;
    mt_parameters_destroy(&parameters);
    return mt_fail(status == MT_ERR_MEMORY ? status : MT_ERR_INTERNAL,
                   "default of %s.%s: %s", p->section, p->name, why);
  }
  *parameters_out = parameters;
  return MT_OK;
}

void mt_parameters_destroy(mt_parameters *parameters)
{
  for (const mt_parameter *p = mt_parameter_table; p->section != NULL; p++)
    if (p->kind == MT_KIND_TEXT) free(*(char **)((char *)parameters + p->offset));
  free(parameters->lda.seeds);
  *parameters = (mt_parameters){0};
}

/* The names of the sections, or of the parameters of one; NULL after the last. */
static const char *nearest_name(const char *name, const char *section)
{
  const char *names[128];
  int n = 0;
  if (section == NULL)
    for (const mt_section *s = mt_section_table; s->name != NULL; s++)
      names[n++] = s->name;
  else
    for (const mt_parameter *p = mt_parameter_table; p->section != NULL; p++)
      if (strcmp(p->section, section) == 0) names[n++] = p->name;
  names[n] = NULL;
  return mt_nearest(name, names);
}

static bool is_section(const char *name)
{
  const mt_section *s = mt_section_table;
  while (s->name != NULL && strcmp(s->name, name) != 0) s++;
  return s->name != NULL;
}

/* What is wrong with a name, for after "...: ". */
static const char *unknown_section(const char *name, char *out, size_t size)
{
  const char *nearest = nearest_name(name, NULL);
  snprintf(out, size, "no such section%s%s%s; allowed: %s",
           nearest ? " (did you mean " : "", nearest ? nearest : "",
           nearest ? "?)" : "", sections);
  return out;
}

static const char *unknown_name(const char *section, const char *name, char *out,
                                size_t size)
{
  const char *nearest = nearest_name(name, section);
  size_t at = (size_t)snprintf(
      out, size, "no such parameter%s%s%s; allowed:", nearest ? " (did you mean " : "",
      nearest ? nearest : "", nearest ? "?)" : "");
  for (const mt_parameter *p = mt_parameter_table; p->section != NULL && at < size; p++)
    if (strcmp(p->section, section) == 0)
      at += (size_t)snprintf(out + at, size - at, " %s", p->name);
  return out;
}

/* The parameter whose SECTION.NAME an option's words begin with; form: as they should be. */
static mt_status look_up(const char *option, const char *words, const char *form,
                         const mt_parameter **out)
{
  char section[40], name[40], said[MT_SAID], what[640];
  size_t dot = strcspn(words, ".="), end = strcspn(words, "=");
  mt_said(words, said);
  if (words[dot] != '.' || dot == 0 || end == dot + 1 ||
      (words[end] == '=') != (strchr(form, '=') != NULL))
    return mt_fail(MT_ERR_INPUT, "%s %s: allowed: %s", option, said, form);
  snprintf(section, sizeof section, "%.*s", (int)(dot < 39 ? dot : 39), words);
  snprintf(name, sizeof name, "%.*s", (int)(end - dot < 40 ? end - dot - 1 : 39),
           words + dot + 1);
  if (!is_section(section))
    return mt_fail(MT_ERR_INPUT, "%s %s: %s", option, said,
                   unknown_section(section, what, sizeof what));
  *out = mt_parameter_find(section, name);
  if (*out == NULL)
    return mt_fail(MT_ERR_INPUT, "%s %s: %s", option, said,
                   unknown_name(section, name, what, sizeof what));
  return MT_OK;
}

mt_status mt_parameters_set(mt_parameters *parameters, const char *assignment)
{
  char said[MT_SAID], why[MT_SAID_LONGEST], allowed[MT_SAID_LONGEST];
  const mt_parameter *p = NULL;
  mt_status status =
      look_up("--set", assignment, "SECTION.NAME=VALUE, e.g. lda.n_components=20", &p);
  if (status != MT_OK) return status;
  status = mt_parameter_read(p, strchr(assignment, '=') + 1, parameters, why);
  if (status == MT_OK) return MT_OK;
  mt_parameter_allowed(p, allowed);
  return mt_fail(status, "--set %s: %s; allowed: %s", mt_said(assignment, said), why,
                 allowed);
}

mt_status mt_parameters_get(const mt_parameters *parameters, const char *name,
                            char **text_out)
{
  const mt_parameter *p = NULL;
  mt_status status = look_up("--get", name, "SECTION.NAME, e.g. output.path", &p);
  if (status != MT_OK) return status;
  *text_out = mt_parameter_text(p, parameters);
  return *text_out != NULL ? MT_OK : mt_fail(MT_ERR_MEMORY, "no memory for %s", name);
}

/* ---- what one parameter alone cannot tell ---------------------------------------------- */

static mt_status check_corpus(const mt_corpus_options *corpus)
{
  if (corpus->path == NULL || corpus->path[0] == '\0')
    return mt_fail(MT_ERR_INPUT,
                   "no corpus: give <corpus path=\"...\"/> in the deck or "
                   "--set corpus.path=...");
  if (strcmp(corpus->encoding, "auto") != 0) {
    iconv_t convert = iconv_open("UTF-8", corpus->encoding);
    if (convert == (iconv_t)-1)
      return mt_fail(MT_ERR_INPUT,
                     "corpus.encoding \"%s\" is unknown; allowed: auto, or a "
                     "name that iconv -l lists",
                     corpus->encoding);
    iconv_close(convert);
  }
  if (corpus->min_df.is_share == corpus->max_df.is_share &&
      corpus->min_df.value > corpus->max_df.value)
    return mt_fail(MT_ERR_INPUT,
                   "corpus.min_df (%g) is above max_df (%g): no term would be "
                   "left",
                   corpus->min_df.value, corpus->max_df.value);
  return MT_OK;
}

static mt_status check_umap(const mt_umap_options *umap)
{
  if (umap->min_dist > umap->spread)
    return mt_fail(MT_ERR_INPUT,
                   "umap.min_dist (%g) is above umap.spread (%g); allowed: at "
                   "most spread",
                   umap->min_dist, umap->spread);
  if ((umap->a == 0) != (umap->b == 0))
    return mt_fail(MT_ERR_INPUT, "umap.%s is given without %s; give both, or none",
                   umap->a != 0 ? "a" : "b", umap->a != 0 ? "b" : "a");
  return MT_OK;
}

mt_status mt_parameters_check(const mt_parameters *parameters)
{
  mt_status status = MT_OK;
  const mt_knn_options *knn = &parameters->knn;
  const mt_hdbscan_options *hdbscan = &parameters->hdbscan;

  MT_TRY(check_corpus(&parameters->corpus));
  MT_TRY(check_umap(&parameters->umap));
  MT_REQUIRE(parameters->umap.local_connectivity < (double)knn->n_neighbors,
             MT_ERR_INPUT,
             "umap.local_connectivity (%g) is not below knn.n_neighbors (%lld)",
             parameters->umap.local_connectivity, (long long)knn->n_neighbors);
  MT_REQUIRE(
      hdbscan->max_cluster_size == 0 ||
          hdbscan->max_cluster_size >= hdbscan->min_cluster_size,
      MT_ERR_INPUT,
      "hdbscan.max_cluster_size (%lld) is below min_cluster_size (%lld); allowed: 0 "
      "or none (no limit), or at least min_cluster_size",
      (long long)hdbscan->max_cluster_size, (long long)hdbscan->min_cluster_size);
  MT_REQUIRE(parameters->map.label_terms <= parameters->lda.top_terms, MT_ERR_INPUT,
             "map.label_terms (%lld) is above lda.top_terms (%lld)",
             (long long)parameters->map.label_terms,
             (long long)parameters->lda.top_terms);
done:
  return status;
}

/* ---- from XML to a tree ------------------------------------------------------------------ */

typedef struct deck {
  const char *name, *xml; /* borrowed */
  size_t size;
  xmlDoc *doc;
  mt_parameters parameters;
  bool has_doctype;
  int line;          /* of the first error; 0: none */
  char message[256]; /* its words */
} deck;

static void keep_first(deck *d, xml_error error)
{
  if (d->line != 0 || error->level < XML_ERR_ERROR) return;
  d->line = error->line > 0 ? error->line : 1;
  snprintf(d->message, sizeof d->message, "%s", error->message ? error->message : "?");
  for (char *at = d->message; *at != '\0'; at++)
    if (iscntrl((unsigned char)*at)) *at = ' ';
  for (size_t n = strlen(d->message); n > 0 && d->message[n - 1] == ' ';)
    d->message[--n] = '\0';
}

static void on_parse_error(void *context, xml_error error)
{
  keep_first(((xmlParserCtxt *)context)->_private, error);
}

static void on_schema_error(void *data, xml_error error)
{
  keep_first(data, error);
}

/* Entities are declared in a DOCTYPE: reading ends before the first of them. */
static void on_doctype(void *context, const xmlChar *name, const xmlChar *external,
                       const xmlChar *system)
{
  (void)name, (void)external, (void)system;
  xmlParserCtxt *parser = context;
  deck *d = parser->_private;
  d->has_doctype = true;
  if (d->line == 0) d->line = parser->input != NULL ? parser->input->line : 1;
  xmlStopParser(parser);
}

static mt_status parse_xml(deck *d)
{
  mt_status status = MT_OK;
  xmlParserCtxt *parser = xmlNewParserCtxt();

  MT_REQUIRE(parser != NULL, MT_ERR_MEMORY, "no memory to parse %s", d->name);
  MT_REQUIRE(d->size > 0, MT_ERR_INPUT,
             "%s: is empty; a deck is at least <metatopics><corpus "
             "path=\"...\"/></metatopics>",
             d->name);
  parser->_private = d;
  parser->sax->serror = on_parse_error;
  parser->sax->internalSubset = on_doctype;
  d->doc = xmlCtxtReadMemory(parser, d->xml, (int)d->size, NULL, NULL,
                             XML_PARSE_NONET | XML_PARSE_BIG_LINES | XML_PARSE_NOCDATA);
  MT_REQUIRE(!d->has_doctype, MT_ERR_INPUT,
             "%s:%d: <!DOCTYPE: a deck has no document type and no entities; remove it",
             d->name, d->line);
  MT_REQUIRE(d->doc != NULL && d->line == 0, MT_ERR_INPUT,
             "%s:%d: not well-formed XML: %s", d->name, d->line > 0 ? d->line : 1,
             d->message[0] ? d->message : "no element");
done:
  xmlFreeParserCtxt(parser);
  return status;
}

/* ---- the tree against the table ----------------------------------------------------------- */

/* element: its number in document order, the root being 0. */
static int line_of(const deck *d, const xmlNode *node, int element,
                   const char *attribute)
{
  int line = mt_locate(d->xml, d->size, element, attribute);
  return line > 0 ? line : (int)xmlGetLineNo((xmlNode *)node);
}

/* The deck's folder and a relative path in it; owned. */
static char *beside(const char *deck_name, const char *path)
{
  const char *slash = strrchr(deck_name, '/');
  char *out = NULL;
  if (path[0] == '/' || slash == NULL) return strdup(path);
  if (asprintf(&out, "%.*s/%s", (int)(slash - deck_name), deck_name, path) < 0)
    return NULL;
  return out;
}

/* Paths of input are relative to the deck. */
static bool is_beside(const mt_parameter *p, const char *value)
{
  if (strcmp(p->section, "corpus") != 0) return false;
  if (strcmp(p->name, "stop_words") == 0)
    return strcmp(value, "none") != 0 && strcmp(value, "english") != 0;
  return strcmp(p->name, "path") == 0;
}

static mt_status read_value(deck *d, const mt_parameter *p, const char *value,
                            char *why)
{
  if (value[0] == '\0' || !is_beside(p, value))
    return mt_parameter_read(p, value, &d->parameters, why);
  char *path = beside(d->name, value);
  if (path == NULL) return mt_fail(MT_ERR_MEMORY, "no memory to read %s", d->name);
  mt_status status = mt_parameter_read(p, path, &d->parameters, why);
  free(path);
  return status;
}

static mt_status walk_attribute(deck *d, const xmlNode *node, int element,
                                const xmlAttr *attribute)
{
  const char *section = (const char *)node->name, *name = (const char *)attribute->name;
  char said[MT_SAID], said_name[MT_SAID], why[MT_SAID_LONGEST],
      allowed[MT_SAID_LONGEST];
  char what[640];
  xmlChar *value = xmlNodeListGetString(d->doc, attribute->children, 1);
  const char *text = value != NULL ? (const char *)value : "";
  const mt_parameter *p =
      attribute->ns == NULL ? mt_parameter_find(section, name) : NULL;
  int line = line_of(d, node, element, name);
  mt_status status = MT_OK;

  mt_said(text, said);
  mt_said(name, said_name);
  MT_REQUIRE(p != NULL, MT_ERR_INPUT, "%s:%d: <%s %s=\"%s\">: %s", d->name, line,
             section, said_name, said, unknown_name(section, name, what, sizeof what));
  status = read_value(d, p, text, why);
  if (status == MT_ERR_INPUT) {
    mt_parameter_allowed(p, allowed);
    mt_fail(status, "%s:%d: <%s %s=\"%s\">: %s; allowed: %s", d->name, line, section,
            said_name, said, why, allowed);
  }
done:
  xmlFree(value);
  return status;
}

/* A section holds attributes alone; the root sections alone. Blanks and comments are fine. */
static bool is_filling(const xmlNode *node)
{
  if (node->type == XML_COMMENT_NODE || node->type == XML_PI_NODE) return true;
  return node->type == XML_TEXT_NODE && xmlIsBlankNode((xmlNode *)node);
}

static mt_status refuse_content(const deck *d, const xmlNode *parent,
                                const xmlNode *node, int next_element)
{
  char said[MT_SAID];
  if (node->type == XML_ELEMENT_NODE)
    return mt_fail(MT_ERR_INPUT, "%s:%d: <%s> in <%s>: allowed: attributes only",
                   d->name, line_of(d, node, next_element, NULL),
                   mt_said((const char *)node->name, said), (const char *)parent->name);
  xmlChar *text = xmlNodeGetContent((xmlNode *)node);
  mt_said(text != NULL ? (const char *)text + strspn((const char *)text, " \t\r\n")
                       : "",
          said);
  xmlFree(text);
  return mt_fail(MT_ERR_INPUT, "%s:%d: text in <%s>: \"%s\"; allowed: %s only", d->name,
                 (int)xmlGetLineNo((xmlNode *)node), (const char *)parent->name, said,
                 parent->parent->type == XML_DOCUMENT_NODE ? "sections" : "attributes");
}

static mt_status walk_section(deck *d, const xmlNode *node, int element)
{
  const char *name = (const char *)node->name;
  char said[MT_SAID], what[640];
  mt_status status = MT_OK;
  MT_REQUIRE(node->ns == NULL && is_section(name), MT_ERR_INPUT, "%s:%d: <%s>: %s",
             d->name, line_of(d, node, element, NULL), mt_said(name, said),
             node->ns != NULL ? "is in a namespace; a deck has none"
                              : unknown_section(name, what, sizeof what));
  int before = 0;
  for (const xmlNode *other = node->parent->children; other != node;
       other = other->next)
    if (other->type == XML_ELEMENT_NODE) {
      before++;
      MT_REQUIRE(!xmlStrEqual(other->name, node->name), MT_ERR_INPUT,
                 "%s:%d: <%s> is there twice, the first in line %d; allowed: once",
                 d->name, line_of(d, node, element, NULL), name,
                 line_of(d, other, before, NULL));
    }
  for (const xmlAttr *at = node->properties; at != NULL; at = at->next)
    MT_TRY(walk_attribute(d, node, element, at));
  for (const xmlNode *inner = node->children; inner != NULL; inner = inner->next)
    if (!is_filling(inner)) MT_TRY(refuse_content(d, node, inner, element + 1));
done:
  return status;
}

static mt_status walk(deck *d)
{
  mt_status status = MT_OK;
  char said[MT_SAID];
  const xmlNode *root = xmlDocGetRootElement(d->doc);
  int element = 0;

  MT_REQUIRE(root != NULL && root->ns == NULL &&
                 xmlStrEqual(root->name, (const xmlChar *)"metatopics"),
             MT_ERR_INPUT, "%s:%d: <%s>: is no deck; allowed: <metatopics> as the root",
             d->name, line_of(d, root, 0, NULL),
             root != NULL ? mt_said((const char *)root->name, said) : "");
  MT_REQUIRE(
      root->properties == NULL, MT_ERR_INPUT,
      "%s:%d: <metatopics %s=...>: allowed: no attributes here, they stand in %s",
      d->name, line_of(d, root, 0, (const char *)root->properties->name),
      mt_said((const char *)root->properties->name, said), sections);
  for (const xmlNode *node = root->children; node != NULL; node = node->next) {
    if (node->type == XML_ELEMENT_NODE)
      MT_TRY(walk_section(d, node, ++element));
    else if (!is_filling(node))
      MT_TRY(refuse_content(d, root, node, element + 1));
  }
done:
  return status;
}

/* ---- the schema ----------------------------------------------------------------------------- */

static bool is_given(const void *context, const char *section, const char *name)
{
  const deck *d = context;
  for (const xmlNode *node = xmlDocGetRootElement(d->doc)->children; node;
       node = node->next)
    if (node->type == XML_ELEMENT_NODE &&
        xmlStrEqual(node->name, (const xmlChar *)section))
      return xmlHasNsProp((xmlNode *)node, (const xmlChar *)name, NULL) != NULL;
  return false;
}

static mt_status make_schema(deck *d, xmlRelaxNG **schema_out)
{
  mt_status status = MT_OK;
  char *text = NULL;
  size_t size = 0;
  xmlRelaxNGParserCtxt *parser = NULL;
  FILE *out = open_memstream(&text, &size);

  MT_REQUIRE(out != NULL, MT_ERR_MEMORY, "no memory for the deck's schema");
  mt_schema_write(out, is_given, d);
  fclose(out);
  parser = xmlRelaxNGNewMemParserCtxt(text, (int)size);
  MT_REQUIRE(parser != NULL, MT_ERR_MEMORY, "no memory for the deck's schema");
  xmlRelaxNGSetParserStructuredErrors(parser, on_schema_error, d);
  *schema_out = xmlRelaxNGParse(parser);
  MT_REQUIRE(*schema_out != NULL, MT_ERR_INTERNAL, "the deck's schema, line %d: %s",
             d->line, d->message);
done:
  if (parser != NULL) xmlRelaxNGFreeParserCtxt(parser);
  free(text);
  return status;
}

/* Everything that the walk let pass has to be valid by the schema too. */
static mt_status validate(deck *d)
{
  mt_status status = MT_OK;
  xmlRelaxNG *schema = NULL;
  xmlRelaxNGValidCtxt *validator = NULL;

  MT_TRY(make_schema(d, &schema));
  validator = xmlRelaxNGNewValidCtxt(schema);
  MT_REQUIRE(validator != NULL, MT_ERR_MEMORY, "no memory to validate %s", d->name);
  xmlRelaxNGSetValidStructuredErrors(validator, on_schema_error, d);
  MT_REQUIRE(xmlRelaxNGValidateDoc(validator, d->doc) == 0, MT_ERR_INPUT,
             "%s:%d: not valid by the schema (metatopics help --schema): %s", d->name,
             d->line, d->message);
done:
  if (validator != NULL) xmlRelaxNGFreeValidCtxt(validator);
  if (schema != NULL) xmlRelaxNGFree(schema);
  return status;
}

mt_status mt_deck_parse(const char *name, const char *xml, size_t size,
                        mt_parameters *parameters_out)
{
  mt_status status = MT_OK;
  deck d = {.name = name, .xml = xml, .size = size};
  locale_t before =
      uselocale(mt_plain_locale()); /* libxml2 reads numbers with sscanf */

  MT_REQUIRE(size <= DECK_LARGEST, MT_ERR_INPUT, "%s: %zu bytes; a deck has at most %d",
             name, size, DECK_LARGEST);
  MT_TRY(mt_parameters_default(&d.parameters));
  MT_TRY(parse_xml(&d));
  MT_TRY(walk(&d));
  MT_TRY(validate(&d));
  *parameters_out = d.parameters;
  d.parameters = (mt_parameters){0};
done:
  xmlFreeDoc(d.doc);
  mt_parameters_destroy(&d.parameters);
  uselocale(before);
  return status;
}

mt_status mt_deck_read(const char *path, char **xml_out, size_t *size_out)
{
  mt_status status = MT_OK;
  char *xml = NULL;
  struct stat about;
  FILE *file = fopen(path, "rb");

  MT_REQUIRE(file != NULL, MT_ERR_INPUT, "cannot open the deck %s: %s", path,
             strerror(errno));
  MT_REQUIRE(fstat(fileno(file), &about) != 0 || !S_ISDIR(about.st_mode), MT_ERR_INPUT,
             "%s is a folder; a deck is an XML file", path);
  MT_NEW(xml, DECK_LARGEST + 1);
  size_t size = fread(xml, 1, DECK_LARGEST + 1, file);
  MT_REQUIRE(!ferror(file), MT_ERR_INPUT, "cannot read the deck %s: %s", path,
             strerror(errno));
  MT_REQUIRE(size <= DECK_LARGEST, MT_ERR_INPUT, "%s: a deck has at most %d bytes",
             path, DECK_LARGEST);
  *xml_out = xml;
  *size_out = size;
  xml = NULL;
done:
  free(xml);
  if (file != NULL) fclose(file);
  return status;
}
