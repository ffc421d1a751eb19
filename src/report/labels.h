/* Meta-topics: the groups of topics that HDBSCAN found, with the terms that their members
 * share, a label made of them, and where and how often each was found. */
#ifndef MT_REPORT_LABELS_H
#define MT_REPORT_LABELS_H
#include "base/rows.h"
#include "comm/comm.h"
#include "deck/parameters.h"

/* What the report is made of, whole in memory; arrays are owned (mt_findings_destroy). */
typedef struct mt_findings {
  char *corpus;      /* its name, for the title */
  int64_t n_topics;  /* N >= 0 */
  int64_t n_terms;   /* V */
  int64_t n_top;     /* top terms a topic */
  char **terms;      /* (V) UTF-8, lexicographic */
  int64_t n_periods; /* periods with at least one fit */
  char **periods;    /* (n_periods) names, in order */
  int64_t n_seeds;
  int64_t *seeds;         /* (n_seeds) values, ascending */
  int64_t *period, *seed; /* (N) in [0, n_periods) and [0, n_seeds) */
  int64_t *topic;         /* (N) number of the topic in its fit */
  int64_t *top_terms;     /* (N, n_top) in [0, V), most probable first */
  int64_t n_meta;         /* M: clusters */
  int64_t *labels;        /* (N) in [0, M), or -1: noise */
  double *probabilities;  /* (N) of belonging to its cluster, 0 to 1 */
  double *outlier_scores; /* (N) */
  double *persistence;    /* (M) of the clusters */
  int64_t n_axes;         /* dimensions of the embedding */
  double *positions;      /* (N, 2) its first two; the second 0 if there is one only */
} mt_findings;
void mt_findings_destroy(mt_findings *findings); /* empties it; all 0 is fine */

typedef enum mt_meta_kind {
  MT_META_PERSISTENT, /* found in several periods */
  MT_META_LOCAL,      /* in one period, by several seeds */
  MT_META_SINGLE_FIT, /* in one fit: it may be an accident of that fit */
  MT_META_N_KINDS
} mt_meta_kind;
const char *
mt_meta_kind_name(mt_meta_kind kind); /* "persistent", "local", "single-fit" */

typedef struct mt_scored_term {
  int64_t term; /* in [0, V) */
  double score;
} mt_scored_term;

typedef struct mt_meta_topic {
  int64_t size;
  int64_t *members; /* (size) topics, ascending */
  mt_meta_kind kind;
  double persistence;
  double probability;       /* mean of the members' */
  int64_t n_terms;          /* how many of each of the next two */
  mt_scored_term *frequent; /* score: share of the members that have it as a top term */
  mt_scored_term *distinct; /* score: class-based TF-IDF */
  int64_t *per_period;      /* (n_periods) members */
  int64_t *per_seed;        /* (n_seeds) members */
  char *label;              /* terms joined by ", "; no two are equal */
  int64_t label_terms;      /* how many terms the label has */
} mt_meta_topic;

/**
 * The M meta-topics of findings, in the order of their numbers. Collective.
 * findings on rank 0; unused elsewhere
 * rows     (N, V) topic-term probabilities; each is read twice, in blocks, by the ranks together
 * options  label_terms, label_method
 * out      (M) on rank 0, owned: mt_meta_topics_destroy; elsewhere untouched
 * Each of the two term lists has as many terms as the other: label_terms, n_top, or what
 * equal labels need, as far as there are terms.
 *   frequent   by members that list the term among their top terms, then mean probability
 *              over the members, then term order
 *   distinct   by tf(t, c) log(1 + A / f(t)), then term order: tf is the term's share of
 *              the summed members' probabilities, f its sum over all topics, A the mean
 *              sum of a class; noise is a class of its own, as BERTopic has it
 * Labels that would be equal get further terms until they differ, or else a number.
 * Errors   MT_ERR_MEMORY, or what reading the rows gives; agreed
 * Source   Grootendorst 2022 (arXiv 2203.05794), section 3.3
 */
mt_status mt_meta_topics_make(const mt_comm *comm, const mt_findings *findings,
                              const mt_rows *rows, const mt_map_options *options,
                              mt_meta_topic **out);
void mt_meta_topics_destroy(int64_t n,
                            mt_meta_topic *meta); /* the array too; NULL is fine */

/* The list that labels by this method are made of; the meta-topic's. */
const mt_scored_term *mt_meta_topic_terms(const mt_meta_topic *meta,
                                          mt_label_method method);

/* How many topics no cluster took. */
int64_t mt_findings_noise(const mt_findings *findings);

/* How many meta-topics are of a kind. */
int64_t mt_meta_kind_count(int64_t n, const mt_meta_topic *meta, mt_meta_kind kind);

/* How many of n counts are not 0. */
int64_t mt_count_used(int64_t n, const int64_t *counts);

#endif
