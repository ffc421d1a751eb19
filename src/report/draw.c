#include "report/draw.h"
#include "base/log.h"
#include "base/stop.h"
#include "report/process.h"
#include "store/folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The prefix of pictures that are not whole yet. */
#define PART ".part-"

/* 'text', which gnuplot takes literally but for the quote itself. It does not know that XML
 * forbids ]]>, so a word joiner (of no width) breaks that. */
void mt_gnuplot_quote(const char *text, FILE *out)
{
  putc('\'', out);
  for (const char *at = text; *at != '\0'; at++) {
    if (*at == '\'') putc('\'', out);
    if (*at == '>' && at - text >= 2 && at[-1] == ']' && at[-2] == ']')
      fputs("\xE2\x81\xA0", out);
    putc(*at, out);
  }
  putc('\'', out);
}

mt_status mt_printed_save(const char *folder, const char *name, FILE *printed,
                          char **bytes, size_t *size)
{
  mt_status status = MT_OK;
  char *path = NULL;
  bool whole = ferror(printed) == 0;
  whole = fclose(printed) == 0 && whole;
  MT_REQUIRE(whole, MT_ERR_MEMORY, "%s: no memory to write it", name);
  path = mt_path_join(folder, name);
  MT_REQUIRE(path != NULL, MT_ERR_MEMORY, "%s: no memory for its path", name);
  MT_TRY(mt_file_replace(path, *bytes, *size));
done:
  free(path);
  free(*bytes);
  *bytes = NULL;
  return status;
}

/* FOLDER/NAME, with the prefix of a part or without; NULL after an error. */
static char *picture_path(const char *folder, const char *prefix, const char *name,
                          const char *kind)
{
  char *path = NULL;
  if (asprintf(&path, "%s/%s%s.%s", folder, prefix, name, kind) >= 0) return path;
  mt_fail(MT_ERR_MEMORY, "%s.%s: no memory for its path", name, kind);
  return NULL;
}

/* FOLDER/.part-NAME.KIND becomes FOLDER/NAME.KIND. One that was not drawn is not there then: a
 * picture of before is not this one. */
static mt_status take_picture(const char *folder, const char *name, const char *kind,
                              bool wanted, bool *drawn_out)
{
  mt_status status = MT_OK;
  struct stat info;
  char *part = picture_path(folder, PART, name, kind);
  char *path = picture_path(folder, "", name, kind);
  if (part == NULL || path == NULL) MT_TRY(MT_ERR_MEMORY);
  *drawn_out = wanted && stat(part, &info) == 0 && info.st_size > 0;
  if (*drawn_out)
    MT_REQUIRE(rename(part, path) == 0, MT_ERR_IO, "cannot rename %s: %s", part,
               strerror(errno));
  else
    remove(path), remove(part);
done:
  free(path);
  free(part);
  return status;
}

static void warn_not_drawn(const char *folder, const char *name,
                           const mt_process_end *end)
{
  if (!end->found) {
    mt_warn("gnuplot is not on the PATH, so the %s is not drawn (Debian: gnuplot-nox). "
            "Its script and data are there: run \"gnuplot %s.gp\" in %s, or this "
            "command again",
            name, name, folder);
    return;
  }
  char *output = end->output;
  while (output != NULL && (*output == '\n' || *output == ' ')) output++;
  mt_warn("gnuplot did not draw the whole %s (exit status %d): %.600s", name, end->code,
          output != NULL ? output : "");
  mt_warn("its script and data are there: run \"gnuplot %s.gp\" in %s", name, folder);
}

mt_status mt_pictures_draw(const char *folder, const char *name, bool svg, bool png,
                           bool *drawn_out)
{
  char script[64];
  const char *const arguments[] = {"gnuplot",         "-d",   "-e",
                                   "part='" PART "'", script, NULL};
  mt_status status = MT_OK;
  mt_process_end end = {.found = true};
  bool svg_drawn, png_drawn;
  snprintf(script, sizeof script, "%s.gp", name);
  if (svg || png) MT_TRY(mt_process_run(folder, arguments, &end));
  MT_TRY(take_picture(folder, name, "svg", svg, &svg_drawn));
  MT_TRY(take_picture(folder, name, "png", png, &png_drawn));
  if (end.code != 0 && mt_stop_requested()) {
    status = MT_STOPPED;
    goto done;
  }
  /* one that gnuplot broke off may be cut short, but SVG comes first and whole */
  *drawn_out = end.found && end.code == 0 && svg_drawn == svg && png_drawn == png;
  if (!*drawn_out) warn_not_drawn(folder, name, &end);
done:
  free(end.output);
  return status;
}
