/* What this process says on stderr between mt_listen and mt_heard. */
#ifndef MT_TESTS_HEARD_H
#define MT_TESTS_HEARD_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
  char *text;
  size_t size;
  FILE *stream, *before;
} mt_said;

static inline void mt_listen(void)
{
  free(mt_said.text);
  mt_said.text = NULL;
  mt_said.before = stderr;
  mt_said.stream = open_memstream(&mt_said.text, &mt_said.size);
  if (mt_said.stream == NULL) abort();
  stderr = mt_said.stream;
}

/* The text is there until the next mt_listen. */
static inline const char *mt_heard(void)
{
  stderr = mt_said.before;
  fclose(mt_said.stream);
  return mt_said.text;
}

#define MT_EXPECT_SAID(words)                               \
  do {                                                      \
    if (strstr(mt_said.text, (words)) == NULL)              \
      fail_msg("said: %s\nnot: %s", mt_said.text, (words)); \
  } while (0)

#endif
