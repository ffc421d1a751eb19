#include "report/tables.h"
#include "base/memory.h"
#include "report/json_file.h"
#include "store/checksum.h"
#include "store/folder.h"

#include <stdlib.h>
#include <string.h>

void mt_csv_print(const char *value, FILE *out)
{
  if (value[strcspn(value, "\",\r\n")] == '\0') {
    fputs(value, out);
    return;
  }
  putc('"', out);
  for (; *value != '\0'; value++) {
    if (*value == '"') putc('"', out);
    putc(*value, out);
  }
  putc('"', out);
}

/* ---- topics.csv --------------------------------------------------------------------- */

static void print_topic(const mt_findings *f, const mt_meta_topic *meta, int64_t i,
                        char *terms, FILE *out)
{
  int64_t m = f->labels[i];
  fprintf(out, "%lld,", (long long)i);
  mt_csv_print(f->periods[f->period[i]], out);
  fprintf(out, ",%lld,%lld,", (long long)f->seeds[f->seed[i]], (long long)f->topic[i]);
  if (m >= 0) fprintf(out, "%lld", (long long)m);
  putc(',', out);
  if (m >= 0) mt_csv_print(meta[m].label, out);
  fprintf(out, ",%.9g,%.9g,%.9g,%.9g,", f->probabilities[i], f->outlier_scores[i],
          f->positions[2 * i], f->positions[2 * i + 1]);
  char *at = terms;
  *at = '\0';
  for (int64_t j = 0; j < f->n_top; j++) {
    if (j > 0) *at++ = ' ';
    at = stpcpy(at, f->terms[f->top_terms[i * f->n_top + j]]);
  }
  mt_csv_print(terms, out);
  putc('\n', out);
}

static size_t longest_term(const mt_findings *f)
{
  size_t longest = 0;
  for (int64_t t = 0; t < f->n_terms; t++) {
    size_t length = strlen(f->terms[t]);
    if (length > longest) longest = length;
  }
  return longest;
}

static mt_status print_topics(const mt_findings *f, const mt_meta_topic *meta,
                              FILE *out)
{
  mt_status status = MT_OK;
  char *terms = NULL;
  MT_NEW(terms, f->n_top * (int64_t)(longest_term(f) + 1) + 1);
  fputs("index,period,seed,topic,meta_topic,label,probability,outlier_score,x,y,top_"
        "terms\n",
        out);
  for (int64_t i = 0; i < f->n_topics; i++) print_topic(f, meta, i, terms, out);
done:
  free(terms);
  return status;
}

/* ---- meta_topics.csv ---------------------------------------------------------------- */

/* Terms that say anything of n: those with a score. */
static int64_t scored(int64_t n, const mt_scored_term *terms)
{
  int64_t count = 0;
  while (count < n && terms[count].score > 0.0) count++;
  return count;
}

static int64_t shown_terms(const mt_findings *f, const mt_meta_topic *meta,
                           const mt_scored_term *terms)
{
  int64_t most = f->n_top > meta->label_terms ? f->n_top : meta->label_terms;
  return scored(meta->n_terms < most ? meta->n_terms : most, terms);
}

static mt_status print_terms(const mt_findings *f, const mt_meta_topic *meta,
                             const mt_scored_term *terms, FILE *out)
{
  mt_status status = MT_OK;
  char *joined = NULL;
  int64_t n = shown_terms(f, meta, terms), bytes = 1;
  for (int64_t i = 0; i < n; i++) bytes += (int64_t)strlen(f->terms[terms[i].term]) + 1;
  MT_NEW(joined, bytes);
  char *at = joined;
  for (int64_t i = 0; i < n; i++) {
    if (i > 0) *at++ = ' ';
    at = stpcpy(at, f->terms[terms[i].term]);
  }
  mt_csv_print(joined, out);
done:
  free(joined);
  return status;
}

static mt_status print_meta_topic(const mt_findings *f, const mt_meta_topic *meta,
                                  int64_t number, FILE *out)
{
  mt_status status = MT_OK;
  fprintf(out, "%lld,", (long long)number);
  mt_csv_print(meta->label, out);
  fprintf(out, ",%s,%lld,%lld,%lld,%.9g,%.9g,", mt_meta_kind_name(meta->kind),
          (long long)meta->size,
          (long long)mt_count_used(f->n_periods, meta->per_period),
          (long long)mt_count_used(f->n_seeds, meta->per_seed), meta->persistence,
          meta->probability);
  MT_TRY(print_terms(f, meta, meta->frequent, out));
  putc(',', out);
  MT_TRY(print_terms(f, meta, meta->distinct, out));
  for (int64_t p = 0; p < f->n_periods; p++)
    fprintf(out, ",%lld", (long long)meta->per_period[p]);
  for (int64_t s = 0; s < f->n_seeds; s++)
    fprintf(out, ",%lld", (long long)meta->per_seed[s]);
  putc('\n', out);
done:
  return status;
}

static mt_status print_meta_topics(const mt_findings *f, const mt_meta_topic *meta,
                                   FILE *out)
{
  mt_status status = MT_OK;
  fputs(
      "meta_topic,label,kind,size,periods,seeds,persistence,probability,frequent_terms,"
      "c_tf_idf_terms",
      out);
  for (int64_t p = 0; p < f->n_periods; p++) {
    putc(',', out);
    mt_csv_print(f->periods[p], out);
  }
  for (int64_t s = 0; s < f->n_seeds; s++)
    fprintf(out, ",seed %lld", (long long)f->seeds[s]);
  putc('\n', out);
  for (int64_t m = 0; m < f->n_meta; m++) MT_TRY(print_meta_topic(f, &meta[m], m, out));
done:
  return status;
}

/* ---- files -------------------------------------------------------------------------- */

static mt_status replace_file(const char *folder, const char *name, const char *bytes,
                              size_t size)
{
  char *path = mt_path_join(folder, name);
  if (path == NULL) return MT_ERR_MEMORY;
  mt_status status = mt_file_replace(path, bytes, size);
  free(path);
  return status;
}

typedef mt_status printer(const mt_findings *f, const mt_meta_topic *meta, FILE *out);

static mt_status write_table(const mt_findings *f, const mt_meta_topic *meta,
                             const char *folder, const char *name, printer *print)
{
  mt_status status = MT_OK;
  char *bytes = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&bytes, &size);
  MT_REQUIRE(out != NULL, MT_ERR_MEMORY, "%s: no memory to write it", name);
  MT_TRY(print(f, meta, out));
  bool whole = ferror(out) == 0;
  whole = fclose(out) == 0 && whole;
  out = NULL;
  MT_REQUIRE(whole, MT_ERR_MEMORY, "%s: no memory to write it", name);
  MT_TRY(replace_file(folder, name, bytes, size));
done:
  if (out != NULL) fclose(out);
  free(bytes);
  return status;
}

mt_status mt_tables_write(const mt_findings *findings, const mt_meta_topic *meta,
                          const char *folder)
{
  mt_status status = MT_OK;
  MT_TRY(write_table(findings, meta, folder, "topics.csv", print_topics));
  MT_TRY(write_table(findings, meta, folder, "meta_topics.csv", print_meta_topics));
done:
  return status;
}

/* ---- summary.json ------------------------------------------------------------------- */

static json_t *terms_json(const mt_findings *f, const mt_meta_topic *meta,
                          const mt_scored_term *terms)
{
  json_t *array = json_array();
  int64_t n = shown_terms(f, meta, terms);
  for (int64_t i = 0; i < n; i++)
    json_array_append_new(array,
                          json_pack("{s:s, s:f}", "term", f->terms[terms[i].term],
                                    "score", terms[i].score));
  return array;
}

static json_t *period_counts(const mt_findings *f, const mt_meta_topic *meta)
{
  json_t *counts = json_object();
  for (int64_t p = 0; p < f->n_periods; p++)
    json_object_set_new(counts, f->periods[p], json_integer(meta->per_period[p]));
  return counts;
}

static json_t *seed_counts(const mt_findings *f, const mt_meta_topic *meta)
{
  json_t *counts = json_object();
  char name[32];
  for (int64_t s = 0; s < f->n_seeds; s++) {
    snprintf(name, sizeof name, "%lld", (long long)f->seeds[s]);
    json_object_set_new(counts, name, json_integer(meta->per_seed[s]));
  }
  return counts;
}

static json_t *meta_json(const mt_findings *f, const mt_meta_topic *meta,
                         int64_t number, mt_label_method method)
{
  const mt_scored_term *chosen = mt_meta_topic_terms(meta, method);
  return json_pack("{s:I, s:s, s:s, s:I, s:f, s:f, s:o, s:o, s:o, s:o, s:o}",
                   "meta_topic", (json_int_t)number, "label", meta->label, "kind",
                   mt_meta_kind_name(meta->kind), "size", (json_int_t)meta->size,
                   "persistence", meta->persistence, "probability", meta->probability,
                   "terms", terms_json(f, meta, chosen), "frequency",
                   terms_json(f, meta, meta->frequent), "c_tf_idf",
                   terms_json(f, meta, meta->distinct), "per_period",
                   period_counts(f, meta), "per_seed", seed_counts(f, meta));
}

static json_t *metas_json(const mt_findings *f, const mt_meta_topic *meta,
                          mt_label_method method)
{
  json_t *array = json_array();
  for (int64_t m = 0; m < f->n_meta; m++)
    json_array_append_new(array, meta_json(f, &meta[m], m, method));
  return array;
}

static json_t *names_json(int64_t n, char **names)
{
  json_t *array = json_array();
  for (int64_t i = 0; i < n; i++) json_array_append_new(array, json_string(names[i]));
  return array;
}

static json_t *numbers_json(int64_t n, const int64_t *numbers)
{
  json_t *array = json_array();
  for (int64_t i = 0; i < n; i++)
    json_array_append_new(array, json_integer(numbers[i]));
  return array;
}

static json_t *kinds_json(const mt_findings *f, const mt_meta_topic *meta)
{
  json_t *kinds = json_object();
  for (int kind = 0; kind < MT_META_N_KINDS; kind++)
    json_object_set_new(kinds, mt_meta_kind_name(kind),
                        json_integer(mt_meta_kind_count(f->n_meta, meta, kind)));
  return kinds;
}

static void add_file(json_t *files, const char *folder, const char *name)
{
  char *path = mt_path_join(folder, name);
  mt_fingerprint checksum = {""};
  if (path != NULL) checksum = mt_checksum_of(path);
  json_object_set_new(files, name, json_string(checksum.hex));
  free(path);
}

/* Pictures are named even if they could not be drawn: the next run tries again. */
static json_t *files_json(const mt_map_options *options, const char *folder)
{
  static const char *const tables[] = {"topics.csv", "meta_topics.csv", "map.gp",
                                       "map.dat"};
  json_t *files = json_object();
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    add_file(files, folder, tables[i]);
  if (options->svg) add_file(files, folder, "map.svg");
  if (options->png) add_file(files, folder, "map.png");
  return files;
}

mt_status mt_summary_write(const mt_findings *findings, const mt_meta_topic *meta,
                           const mt_map_options *options, const mt_fingerprint *made_by,
                           const char *backend, json_t *parameters, const char *folder)
{
  mt_status status = MT_OK;
  const mt_findings *f = findings;
  int64_t noise = mt_findings_noise(f);
  char *path = mt_path_join(folder, "summary.json");
  json_t *summary = json_pack(
      "{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:o, s:s, s:o, s:o, s:o, "
      "s:o, s:O}",
      "program", "metatopics", "version", MT_VERSION, "fingerprint", made_by->hex,
      "corpus", f->corpus, "backend", backend, "topics", (json_int_t)f->n_topics,
      "terms", (json_int_t)f->n_terms, "meta_topic_count", (json_int_t)f->n_meta,
      "noise", (json_int_t)noise, "noise_share",
      f->n_topics > 0 ? (double)noise / (double)f->n_topics : 0.0, "kinds",
      kinds_json(f, meta), "label_method",
      options->label_method == MT_LABEL_C_TF_IDF ? "c-tf-idf" : "frequency", "periods",
      names_json(f->n_periods, f->periods), "seeds", numbers_json(f->n_seeds, f->seeds),
      "files", files_json(options, folder), "meta_topics",
      metas_json(f, meta, options->label_method), "parameters", parameters);
  MT_REQUIRE(summary != NULL && path != NULL, MT_ERR_INTERNAL,
             "summary.json cannot be made: no memory, or a term that is no UTF-8");
  MT_TRY(mt_json_save(summary, path));
done:
  free(path);
  json_decref(summary);
  return status;
}
