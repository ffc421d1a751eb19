/* The last stage: labels, tables and the map, by rank 0; all ranks read the topics for it. */
#include "stage/stage.h"
#include "base/log.h"
#include "deck/deck.h"
#include "report/findings.h"
#include "report/map.h"
#include "report/tables.h"
#include "store/folder.h"
#include "store/store.h"

#include <stdlib.h>

enum { ROWS_SHOWN = 25 };

static mt_status fingerprint(const mt_run *run, mt_fingerprint *out)
{
  static const char *const inputs[] = {"corpus.h5", "topics.h5", "umap.h5",
                                       "hdbscan.h5"};
  mt_status status = MT_OK;
  mt_hash *hash = mt_hash_begin();
  mt_hash_text(hash, "map 2"); /* the number changes when the report does */
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
    MT_TRY(mt_store_hash(run->out, inputs[i], hash));
  MT_TRY(mt_parameters_hash(run->parameters, "map", NULL, hash));
done:
  *out = mt_hash_end(hash);
  return status;
}

static bool is_done(const mt_run *run, const mt_fingerprint *made_by)
{
  return mt_summary_is_there(run->out, made_by);
}

static mt_status is_whole(const mt_comm *comm, const mt_run *run, bool *whole_out)
{
  *whole_out = comm->rank == 0 && mt_summary_is_whole(run->out);
  return mt_bcast(comm, 0, sizeof *whole_out, whole_out);
}

static mt_status label_topics(const mt_comm *comm, const mt_run *run,
                              const mt_findings *findings, mt_meta_topic **meta_out)
{
  mt_status status = MT_OK;
  mt_file *topics = NULL;
  mt_rows rows;
  MT_TRY(mt_agree(comm, mt_store_open_in(run->out, "topics.h5", &topics)));
  mt_store_rows source = {topics, "/matrix"};
  MT_TRY(mt_agree(comm, mt_rows_stored(&source, &rows)));
  MT_TRY(mt_meta_topics_make(comm, findings, &rows, &run->parameters->map, meta_out));
done:
  mt_store_close(topics);
  return status;
}

static mt_status save_summary(const mt_run *run, const mt_findings *findings,
                              const mt_meta_topic *meta, const mt_fingerprint *made_by)
{
  json_t *parameters = mt_parameters_json(run->parameters);
  if (parameters == NULL) return mt_fail(MT_ERR_MEMORY, "summary.json: no memory");
  mt_status status = mt_summary_write(findings, meta, &run->parameters->map, made_by,
                                      run->backend != NULL ? run->backend->name : "cpu",
                                      parameters, run->out);
  json_decref(parameters);
  return status;
}

static void add_metrics(const mt_findings *findings, const mt_meta_topic *meta,
                        json_t *metrics)
{
  json_object_set_new(metrics, "meta_topics", json_integer(findings->n_meta));
  json_object_set_new(metrics, "noise", json_integer(mt_findings_noise(findings)));
  for (int kind = 0; kind < MT_META_N_KINDS; kind++)
    json_object_set_new(metrics, mt_meta_kind_name(kind),
                        json_integer(mt_meta_kind_count(findings->n_meta, meta, kind)));
}

/* Ends with what was found, and where it lies. */
static void tell(const mt_run *run, const mt_findings *findings, bool drawn)
{
  const mt_map_options *map = &run->parameters->map;
  json_t *summary = mt_summary_load(run->out);
  char *table = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&table, &size);
  if (out != NULL && summary != NULL) mt_summary_print(summary, ROWS_SHOWN, out);
  if (out != NULL && fclose(out) == 0 && mt_log_level_now() >= MT_LOG_INFO)
    fputs(table, stderr);
  if (findings->n_axes != 2)
    mt_info("the layout has %lld ax%s: the map shows %s", (long long)findings->n_axes,
            findings->n_axes == 1 ? "is" : "es",
            findings->n_axes == 1 ? "it from left to right" : "the first two");
  mt_info("tables: %s/meta_topics.csv, %s/topics.csv, %s/summary.json", run->out,
          run->out, run->out);
  if (drawn && (map->svg || map->png))
    mt_info("map: %s/map.%s%s%s%s", run->out, map->svg ? "svg" : "png",
            map->svg && map->png ? ", " : "", map->svg && map->png ? run->out : "",
            map->svg && map->png ? "/map.png" : "");
  json_decref(summary);
  free(table);
}

static mt_status write_report(const mt_run *run, const mt_findings *findings,
                              const mt_meta_topic *meta, const mt_fingerprint *made_by,
                              mt_stage_result *result)
{
  mt_status status = MT_OK;
  bool drawn = false;
  MT_TRY(mt_tables_write(findings, meta, run->out));
  MT_TRY(mt_map_write(findings, meta, &run->parameters->map, run->out));
  MT_TRY(mt_map_draw(&run->parameters->map, run->out, &drawn));
  MT_TRY(save_summary(run, findings, meta, made_by)); /* last: the stage is whole now */
  result->rows = findings->n_meta;
  if (result->metrics != NULL) add_metrics(findings, meta, result->metrics);
  tell(run, findings, drawn);
done:
  return status;
}

static mt_status work(const mt_comm *comm, const mt_run *run,
                      const mt_fingerprint *made_by, mt_stage_result *result)
{
  mt_status status = MT_OK;
  mt_findings findings = {0};
  mt_meta_topic *meta = NULL;
  bool root = comm->rank == 0;
  MT_TRY(mt_agree(comm, root ? mt_findings_load(run->out, run->parameters, &findings)
                             : MT_OK));
  MT_TRY(label_topics(comm, run, &findings, &meta));
  MT_TRY(mt_agree(comm,
                  root ? write_report(run, &findings, meta, made_by, result) : MT_OK));
done:
  mt_meta_topics_destroy(findings.n_meta, meta);
  mt_findings_destroy(&findings);
  return status;
}

const mt_stage mt_stage_map = {.name = "map",
                               .file = "summary.json",
                               .fingerprint = fingerprint,
                               .is_done = is_done,
                               .is_whole = is_whole,
                               .work = work};
