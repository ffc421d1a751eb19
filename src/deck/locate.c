#include "deck/locate.h"

#include <stdbool.h>
#include <string.h>

typedef struct scan {
  const char *at, *end;
  int line;
} scan;

static void step(scan *s)
{
  if (*s->at++ == '\n') s->line++;
}

static bool begins(const scan *s, const char *text)
{
  size_t length = strlen(text);
  return (size_t)(s->end - s->at) >= length && memcmp(s->at, text, length) == 0;
}

/* To behind the next `text`, or to the end. */
static void skip_past(scan *s, const char *text)
{
  while (s->at < s->end && !begins(s, text)) step(s);
  for (size_t i = strlen(text); i > 0 && s->at < s->end; i--) step(s);
}

/* To the '<' of the next start tag, past comments and the like. */
static bool next_tag(scan *s)
{
  while (s->at < s->end) {
    if (*s->at != '<')
      step(s);
    else if (begins(s, "<!--"))
      skip_past(s, "-->");
    else if (begins(s, "<![CDATA["))
      skip_past(s, "]]>");
    else if (begins(s, "<?"))
      skip_past(s, "?>");
    else if (begins(s, "</") || begins(s, "<!"))
      skip_past(s, ">");
    else
      return true;
  }
  return false;
}

static bool is_blank(char c)
{
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* From behind the '<': to the attribute's name, if the tag has it, else behind the tag. */
static bool find_attribute(scan *s, const char *name)
{
  while (s->at < s->end && *s->at != '>') {
    const char *word = s->at;
    while (s->at < s->end && strchr(" \t\r\n=>/\"'", *s->at) == NULL) step(s);
    size_t length = (size_t)(s->at - word);
    if (name != NULL && word[-1] != '<' && length == strlen(name) &&
        memcmp(word, name, length) == 0)
      return true;
    while (s->at < s->end && (is_blank(*s->at) || *s->at == '=' || *s->at == '/'))
      step(s);
    if (s->at == s->end || (*s->at != '"' && *s->at != '\'')) continue;
    char quote[2] = {*s->at, '\0'};
    step(s);
    skip_past(s, quote);
  }
  return false;
}

int mt_locate(const char *xml, size_t size, int element, const char *attribute)
{
  scan s = {xml, xml + size, 1};
  for (int i = 0; next_tag(&s); i++) {
    int line = s.line;
    step(&s);
    if (i == element && attribute == NULL) return line;
    bool found = find_attribute(&s, i == element ? attribute : NULL);
    if (i == element) return found ? s.line : line;
  }
  return 0;
}
