#include "base/log.h"
#include "base/memory.h"
#include "report/json_file.h"
#include "report/tables.h"
#include "report/text.h"
#include "store/checksum.h"
#include "store/folder.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

json_t *mt_summary_load(const char *folder)
{
  char *path = mt_path_join(folder, "summary.json");
  if (path == NULL) return NULL;
  json_t *summary = mt_json_load(path);
  free(path);
  return summary;
}

static bool is_there(const char *folder, const char *name)
{
  char *path = mt_path_join(folder, name);
  bool there = path != NULL && access(path, R_OK) == 0;
  free(path);
  return there;
}

bool mt_summary_is_there(const char *folder, const mt_fingerprint *made_by)
{
  json_t *summary = mt_summary_load(folder), *checksum;
  const char *hex = json_string_value(json_object_get(summary, "fingerprint")), *name;
  json_t *files = json_object_get(summary, "files");
  bool there =
      hex != NULL && strcmp(hex, made_by->hex) == 0 && json_object_size(files) > 0;
  json_object_foreach(files, name, checksum) there = there && is_there(folder, name);
  json_decref(summary);
  return there;
}

/* Has a file the checksum that summary.json gives it? */
static bool is_whole(const char *folder, const char *name, const char *checksum)
{
  char *path = mt_path_join(folder, name);
  mt_fingerprint found = {""};
  if (path != NULL) found = mt_checksum_of(path);
  bool whole = checksum != NULL && strcmp(found.hex, checksum) == 0;
  if (!whole && found.hex[0] != '\0')
    mt_warn("%s is damaged, or was changed: summary.json has another checksum", path);
  free(path);
  return whole;
}

bool mt_summary_is_whole(const char *folder)
{
  json_t *summary = mt_summary_load(folder), *checksum;
  json_t *files = json_object_get(summary, "files");
  const char *name;
  bool whole = summary != NULL;
  json_object_foreach(files, name, checksum) whole =
      is_whole(folder, name, json_string_value(checksum)) && whole;
  json_decref(summary);
  return whole;
}

/* ---- the table ---------------------------------------------------------------------- */

static int64_t number(const json_t *object, const char *key)
{
  return json_integer_value(json_object_get(object, key));
}

static int compare_sizes(const void *a, const void *b)
{
  const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
  int64_t p = number(x, "size"), q = number(y, "size");
  if (p != q) return p > q ? -1 : 1;
  p = number(x, "meta_topic"), q = number(y, "meta_topic");
  return p < q ? -1 : p > q;
}

static int64_t count_nonzero(const json_t *counts)
{
  int64_t used = 0;
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)counts, key, value) used +=
      json_integer_value(value) != 0;
  return used;
}

static void print_row(const json_t *meta, FILE *out)
{
  const char *label = json_string_value(json_object_get(meta, "label"));
  const char *kind = json_string_value(json_object_get(meta, "kind"));
  char *drawn = NULL;
  if (mt_text_drawable(label != NULL ? label : "?", 48, &drawn) != MT_OK) return;
  fprintf(out, "%5lld %6lld %8lld %6lld %12.3f  %-11s %s\n",
          (long long)number(meta, "meta_topic"), (long long)number(meta, "size"),
          (long long)count_nonzero(json_object_get(meta, "per_period")),
          (long long)count_nonzero(json_object_get(meta, "per_seed")),
          json_number_value(json_object_get(meta, "persistence")),
          kind != NULL ? kind : "?", drawn);
  free(drawn);
}

void mt_summary_print(const json_t *summary, int64_t most, FILE *out)
{
  const json_t *metas = json_object_get(summary, "meta_topics");
  int64_t n = (int64_t)json_array_size(metas);
  const json_t **sorted = calloc((size_t)n + 1, sizeof *sorted);
  if (sorted == NULL) return;
  for (int64_t i = 0; i < n; i++) sorted[i] = json_array_get(metas, (size_t)i);
  qsort(sorted, (size_t)n, sizeof *sorted, compare_sizes);
  if (n > 0)
    fprintf(out, "%5s %6s %8s %6s %12s  %-11s %s\n", "meta", "topics", "periods",
            "seeds", "persistence", "kind", "label");
  for (int64_t i = 0; i < n && (most < 0 || i < most); i++) print_row(sorted[i], out);
  if (most >= 0 && n > most)
    fprintf(out, "... and %lld more: meta_topics.csv\n", (long long)(n - most));
  fprintf(out, "%lld of %lld topics (%.1f %%) belong to no meta-topic\n",
          (long long)number(summary, "noise"), (long long)number(summary, "topics"),
          100.0 * json_number_value(json_object_get(summary, "noise_share")));
  free(sorted);
}
