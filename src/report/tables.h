/* What a run found, for other programs: summary.json, topics.csv, meta_topics.csv. */
#ifndef MT_REPORT_TABLES_H
#define MT_REPORT_TABLES_H
#include "base/hash.h"
#include "report/labels.h"

#include <jansson.h>
#include <stdio.h>

/**
 * FOLDER/topics.csv and FOLDER/meta_topics.csv: a header, then a row for each; UTF-8, lines
 * end in a line feed, values are quoted as in RFC 4180 where they need it. Noise has an
 * empty meta_topic and label. Not collective.
 */
mt_status mt_tables_write(const mt_findings *findings, const mt_meta_topic *meta,
                          const char *folder);

/**
 * FOLDER/summary.json. Not collective.
 * options     label_method and the files that the run should leave
 * made_by     fingerprint of the map stage
 * backend     its name
 * parameters  those used; borrowed
 */
mt_status mt_summary_write(const mt_findings *findings, const mt_meta_topic *meta,
                           const mt_map_options *options, const mt_fingerprint *made_by,
                           const char *backend, json_t *parameters, const char *folder);

/* FOLDER/summary.json; NULL if there is none that can be read. New reference. */
json_t *mt_summary_load(const char *folder);

/* Has summary.json that fingerprint, and are all files that it names there? */
bool mt_summary_is_there(const char *folder, const mt_fingerprint *made_by);

/* Have summary.json and the files that it names their checksums? Says which has not. */
bool mt_summary_is_whole(const char *folder);

/* The meta-topics of a summary.json as a short table, largest first; most < 0: all. */
void mt_summary_print(const json_t *summary, int64_t most, FILE *out);

/* A value of a CSV file, in quotes if it needs them. */
void mt_csv_print(const char *value, FILE *out);

#endif
