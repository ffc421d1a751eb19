#include "base/log.h"
#include "base/stop.h"
#include "report/map.h"
#include "report/process.h"
#include "store/folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The prefix of pictures that are not whole yet. */
#define PART ".part-"

/* FOLDER/.part-NAME becomes FOLDER/NAME; false if it was not drawn. */
static mt_status take_picture(const char *folder, const char *name, bool *drawn_out)
{
  mt_status status = MT_OK;
  char *part = NULL, *path = NULL;
  struct stat info;
  if (asprintf(&part, "%s/" PART "%s", folder, name) < 0) part = NULL;
  path = mt_path_join(folder, name);
  MT_REQUIRE(part != NULL && path != NULL, MT_ERR_MEMORY, "%s: no memory for its path",
             name);
  *drawn_out = stat(part, &info) == 0 && info.st_size > 0;
  if (*drawn_out)
    MT_REQUIRE(rename(part, path) == 0, MT_ERR_IO, "cannot rename %s: %s", part,
               strerror(errno));
  else
    remove(part);
done:
  free(path);
  free(part);
  return status;
}

/* A picture of an earlier run is not this run's. */
static void remove_picture(const char *folder, const char *name)
{
  char *path = mt_path_join(folder, name);
  if (path != NULL) remove(path);
  free(path);
}

static mt_status take_pictures(const mt_map_options *options, const char *folder,
                               bool succeeded, bool *drawn_out)
{
  mt_status status = MT_OK;
  const char *const names[] = {"map.svg", "map.png"};
  const bool wanted[] = {options->svg, options->png};
  *drawn_out = true;
  for (int i = 0; i < 2; i++) {
    bool drawn = false;
    if (wanted[i]) MT_TRY(take_picture(folder, names[i], &drawn));
    if (!drawn) remove_picture(folder, names[i]);
    /* one that gnuplot broke off may be cut short, but SVG comes first and whole */
    if (wanted[i] && !drawn) *drawn_out = false;
  }
  *drawn_out = *drawn_out && succeeded;
done:
  return status;
}

static void warn_not_drawn(const char *folder, const mt_process_end *end)
{
  if (!end->found) {
    mt_warn("gnuplot is not on the PATH, so the map is not drawn (Debian: "
            "gnuplot-nox). Its "
            "script and data are there: run \"gnuplot map.gp\" in %s, or this command "
            "again",
            folder);
    return;
  }
  char *output = end->output;
  while (output != NULL && (*output == '\n' || *output == ' ')) output++;
  mt_warn("gnuplot did not draw the whole map (exit status %d): %.600s", end->code,
          output != NULL ? output : "");
  mt_warn("the map's script and data are there: run \"gnuplot map.gp\" in %s", folder);
}

mt_status mt_map_draw(const mt_map_options *options, const char *folder,
                      bool *drawn_out)
{
  static const char *const arguments[] = {"gnuplot",         "-d",     "-e",
                                          "part='" PART "'", "map.gp", NULL};
  mt_status status = MT_OK;
  mt_process_end end = {.found = true};
  bool drawn = false;
  if (options->svg || options->png) MT_TRY(mt_process_run(folder, arguments, &end));
  MT_TRY(take_pictures(options, folder, end.found && end.code == 0, &drawn));
  if (end.code != 0 && mt_stop_requested()) {
    status = MT_STOPPED;
    goto done;
  }
  if (!drawn) warn_not_drawn(folder, &end);
  *drawn_out = drawn;
done:
  free(end.output);
  return status;
}
