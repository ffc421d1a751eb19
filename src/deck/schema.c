/* The RELAX NG schema of a deck, from the table. It says no more and no less than
 * mt_parameter_read; the reader holds every deck against both. */
#include "deck/schema.h"
#include "deck/deck.h"
#include "deck/table.h"

#include <string.h>

static void number(FILE *out, const char *type, double low, double high)
{
  fprintf(out,
          "<data type=\"%s\"><param name=\"minInclusive\">%.15g</param>"
          "<param name=\"maxInclusive\">%.15g</param></data>",
          type, low, high);
}

static void choice(FILE *out, const char *const *words)
{
  fputs("<choice>", out);
  for (; *words != NULL; words++) fprintf(out, "<value>%s</value>", *words);
  fputs("</choice>", out);
}

/* A number, or the word that stands for a special one. */
static void number_or_word(FILE *out, const char *type, const mt_parameter *p)
{
  if (p->words[0] != NULL) fprintf(out, "<choice><value>%s</value>", p->words[0]);
  number(out, type, p->low, p->high);
  if (p->words[0] != NULL) fputs("</choice>", out);
}

static void value(FILE *out, const mt_parameter *p)
{
  switch (p->kind) {
  case MT_KIND_INT:
    number_or_word(out, "integer", p);
    break;
  case MT_KIND_REAL:
    number_or_word(out, "double", p);
    break;
  case MT_KIND_BOOL:
    choice(out, (const char *const[]){"true", "false", NULL});
    break;
  case MT_KIND_CHOICE:
    choice(out, p->words);
    break;
  case MT_KIND_TEXT:
    fprintf(out,
            "<data type=\"string\"><param name=\"minLength\">1</param>"
            "<param name=\"maxLength\">%d</param></data>",
            MT_TEXT_LONGEST);
    break;
  case MT_KIND_FREQUENCY:
    fputs("<choice>", out);
    number(out, "integer", p->low, p->high);
    number(out, "double", 0, 1);
    fputs("</choice>", out);
    break;
  case MT_KIND_SEEDS:
    fputs("<list><oneOrMore><data type=\"string\">"
          "<param name=\"pattern\">[0-9]+(-[0-9]+)?</param></data></oneOrMore></list>",
          out);
    break;
  case MT_KIND_FORMATS:
    fputs("<list><oneOrMore>", out);
    choice(out, p->words);
    fputs("</oneOrMore></list>", out);
    break;
  }
}

static void section(FILE *out, const char *name, mt_is_given *is_given,
                    const void *context)
{
  fprintf(out, "  <optional><element name=\"%s\">\n", name);
  for (const mt_parameter *p = mt_parameter_table; p->section != NULL; p++) {
    if (strcmp(p->section, name) != 0) continue;
    bool given = is_given != NULL && is_given(context, p->section, p->name);
    fprintf(out, "    %s<attribute name=\"%s\">", given ? "" : "<optional>", p->name);
    value(out, p);
    fprintf(out, "</attribute>%s\n", given ? "" : "</optional>");
  }
  fputs("  </element></optional>\n", out);
}

void mt_schema_write(FILE *out, mt_is_given *is_given, const void *context)
{
  fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<element name=\"metatopics\" xmlns=\"http://relaxng.org/ns/structure/1.0\"\n"
        "         datatypeLibrary=\"http://www.w3.org/2001/XMLSchema-datatypes\">\n"
        " <interleave>\n",
        out);
  for (const mt_section *s = mt_section_table; s->name != NULL; s++)
    section(out, s->name, is_given, context);
  fputs(" </interleave>\n</element>\n", out);
}

void mt_deck_schema(FILE *out)
{
  mt_schema_write(out, NULL, NULL);
}
