/* What people and programs are told about parameters, all from the table. */
#include "deck/deck.h"
#include "deck/table.h"

#include <stdlib.h>
#include <string.h>

static bool in_section(const mt_parameter *p, const char *section)
{
  return section == NULL || strcmp(p->section, section) == 0;
}

/* Words of text, broken into lines of at most `width` letters after `indent` blanks. */
static void write_wrapped(FILE *out, const char *text, int indent, int width)
{
  int at = 0;
  for (const char *word = text; *word != '\0';) {
    int length = (int)strcspn(word, " ");
    if (at > 0 && at + 1 + length > width) at = 0, fputc('\n', out);
    if (at == 0)
      fprintf(out, "%*s", indent, "");
    else
      fputc(' ', out), at++;
    fwrite(word, 1, (size_t)length, out);
    at += length;
    word += length;
    word += strspn(word, " ");
  }
  fputc('\n', out);
}

mt_status mt_parameters_hash(const mt_parameters *parameters, const char *section,
                             const char *const *leave_out, mt_hash *hash)
{
  bool any = false;
  for (const mt_parameter *p = mt_parameter_table; p->section != NULL; p++) {
    if (strcmp(p->section, section) != 0) continue;
    bool left_out = false;
    for (const char *const *name = leave_out; name != NULL && *name != NULL; name++)
      if (strcmp(*name, p->name) == 0) left_out = true;
    if (!left_out) mt_parameter_hash(p, parameters, hash);
    any = true;
  }
  return any ? MT_OK : mt_fail(MT_ERR_ARG, "there is no section %s", section);
}

json_t *mt_parameters_json(const mt_parameters *parameters)
{
  json_t *all = json_object();
  for (const mt_section *s = mt_section_table; s->name != NULL; s++) {
    json_t *section = json_object();
    for (const mt_parameter *p = mt_parameter_table; p->section != NULL; p++)
      if (in_section(p, s->name) &&
          json_object_set_new(section, p->name, mt_parameter_json(p, parameters)) != 0)
        goto no_memory;
    if (json_object_set_new(all, s->name, section) == 0) continue;
    section = NULL;
  no_memory:
    json_decref(section);
    json_decref(all);
    return NULL;
  }
  return all;
}

/* One line; standard: the defaults. */
static void print_one(const mt_parameter *p, const mt_parameters *parameters,
                      const mt_parameters *standard, FILE *out)
{
  char name[64];
  char *text = mt_parameter_text(p, parameters),
       *usual = mt_parameter_text(p, standard);
  bool is_default = text != NULL && usual != NULL && strcmp(text, usual) == 0;
  snprintf(name, sizeof name, "%s.%s", p->section, p->name);
  fprintf(out, "  %-34s %s%s\n", name, text != NULL ? text : "?",
          is_default ? "  (default)" : "");
  free(usual);
  free(text);
}

void mt_parameters_print(const mt_parameters *parameters, const char *section,
                         FILE *out)
{
  mt_parameters standard = {0};
  if (mt_parameters_default(&standard) != MT_OK) return;
  for (const mt_parameter *p = mt_parameter_table; p->section != NULL; p++)
    if (in_section(p, section)) print_one(p, parameters, &standard, out);
  mt_parameters_destroy(&standard);
}

static const mt_section *find_section(const char *name)
{
  const mt_section *s = mt_section_table;
  while (s->name != NULL && strcmp(s->name, name) != 0) s++;
  return s->name != NULL ? s : NULL;
}

static void help_section(const mt_section *s, FILE *out)
{
  char allowed[MT_SAID_LONGEST];
  fprintf(out, "<%s>  %s\n", s->name, s->help);
  for (const mt_parameter *p = mt_parameter_table; p->section != NULL; p++) {
    if (!in_section(p, s->name)) continue;
    mt_parameter_allowed(p, allowed);
    fprintf(out, "\n  %s=\"%s\"\n", p->name, p->text);
    fprintf(out, "      allowed: %s\n", allowed);
    write_wrapped(out, p->help, 6, 76);
  }
}

bool mt_parameters_help(const char *section, FILE *out)
{
  if (section != NULL) {
    const mt_section *only = find_section(section);
    if (only != NULL) help_section(only, out);
    return only != NULL;
  }
  for (const mt_section *s = mt_section_table; s->name != NULL; s++) {
    help_section(s, out);
    if (s[1].name != NULL) fputc('\n', out);
  }
  return true;
}

/* Text for man: a leading dot or quote, backslashes and minus signs are marked. */
static void write_man(FILE *out, const char *text)
{
  if (*text == '.' || *text == '\'') fputs("\\&", out);
  for (; *text != '\0'; text++) {
    if (*text == '\\')
      fputs("\\e", out);
    else if (*text == '-')
      fputs("\\-", out);
    else
      fputc(*text, out);
  }
}

void mt_parameters_manual(FILE *out)
{
  char allowed[MT_SAID_LONGEST];
  for (const mt_section *s = mt_section_table; s->name != NULL; s++) {
    fprintf(out, ".SS <%s>\n", s->name);
    write_man(out, s->help);
    fputc('\n', out);
    for (const mt_parameter *p = mt_parameter_table; p->section != NULL; p++) {
      if (!in_section(p, s->name)) continue;
      mt_parameter_allowed(p, allowed);
      fprintf(out, ".TP\n.BR %s \"=\\(dq", p->name);
      write_man(out, p->text);
      fputs("\\(dq\"\n", out);
      write_man(out, p->help);
      fputs("\n.br\nAllowed: ", out);
      write_man(out, allowed);
      fputs(".\n", out);
    }
  }
}

void mt_deck_every_parameter(FILE *out)
{
  char allowed[MT_SAID_LONGEST];
  fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<!-- Every parameter of metatopics at its default, with what it does; written "
        "by\n"
        "     metatopics help -deck (two dashes). Keep what you change, leave out the "
        "rest:\n"
        "     <metatopics><corpus path=\"...\"/></metatopics> is a whole deck. -->\n"
        "<metatopics>\n",
        out);
  for (const mt_section *s = mt_section_table; s->name != NULL; s++) {
    fprintf(out, "\n  <!-- %s\n", s->help);
    for (const mt_parameter *p = mt_parameter_table; p->section != NULL; p++) {
      if (!in_section(p, s->name)) continue;
      mt_parameter_allowed(p, allowed);
      fprintf(out, "\n       %s: %s\n", p->name, allowed);
      write_wrapped(out, p->help, 9, 79);
    }
    fprintf(out, "  -->\n  <%s", s->name);
    for (const mt_parameter *p = mt_parameter_table; p->section != NULL; p++)
      if (in_section(p, s->name))
        fprintf(out, "\n    %s=\"%s\"", p->name,
                p->text[0] != '\0' ? p->text : "corpus");
    fputs("/>\n", out);
  }
  fputs("\n</metatopics>\n", out);
}
