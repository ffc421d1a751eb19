#include "report/labels.h"
#include "base/memory.h"
#include "report/topic_sums.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_texts(int64_t n, char **texts)
{
  for (int64_t i = 0; texts != NULL && i < n; i++) free(texts[i]);
  free(texts);
}

void mt_findings_destroy(mt_findings *findings)
{
  free(findings->corpus);
  free_texts(findings->n_terms, findings->terms);
  free_texts(findings->n_periods, findings->periods);
  free(findings->seeds);
  free(findings->period);
  free(findings->seed);
  free(findings->topic);
  free(findings->top_terms);
  free(findings->labels);
  free(findings->probabilities);
  free(findings->outlier_scores);
  free(findings->persistence);
  free(findings->positions);
  *findings = (mt_findings){0};
}

const char *mt_meta_kind_name(mt_meta_kind kind)
{
  static const char *const names[] = {"persistent", "local", "single-fit"};
  return names[kind];
}

int64_t mt_findings_noise(const mt_findings *findings)
{
  int64_t noise = 0;
  for (int64_t i = 0; i < findings->n_topics; i++) noise += findings->labels[i] < 0;
  return noise;
}

int64_t mt_meta_kind_count(int64_t n, const mt_meta_topic *meta, mt_meta_kind kind)
{
  int64_t count = 0;
  for (int64_t m = 0; m < n; m++) count += meta[m].kind == kind;
  return count;
}

int64_t mt_count_used(int64_t n, const int64_t *counts)
{
  int64_t used = 0;
  for (int64_t i = 0; i < n; i++) used += counts[i] != 0;
  return used;
}

/* ---- members and counts ------------------------------------------------------------ */

static mt_status allocate(const mt_findings *f, mt_meta_topic *meta)
{
  mt_status status = MT_OK;
  for (int64_t i = 0; i < f->n_topics; i++)
    if (f->labels[i] >= 0) meta[f->labels[i]].size++;
  for (int64_t m = 0; m < f->n_meta; m++) {
    MT_NEW(meta[m].members, meta[m].size);
    MT_NEW(meta[m].per_period, f->n_periods);
    MT_NEW(meta[m].per_seed, f->n_seeds);
    meta[m].size = 0; /* counted again while they are filled in */
  }
done:
  return status;
}

static mt_meta_kind kind_of(const mt_findings *f, const mt_meta_topic *meta)
{
  if (mt_count_used(f->n_periods, meta->per_period) > 1) return MT_META_PERSISTENT;
  if (mt_count_used(f->n_seeds, meta->per_seed) > 1) return MT_META_LOCAL;
  return MT_META_SINGLE_FIT;
}

static mt_status collect_members(const mt_findings *f, mt_meta_topic *meta)
{
  mt_status status = MT_OK;
  MT_TRY(allocate(f, meta));
  for (int64_t i = 0; i < f->n_topics; i++) {
    if (f->labels[i] < 0) continue;
    mt_meta_topic *its = &meta[f->labels[i]];
    its->members[its->size++] = i;
    its->per_period[f->period[i]]++;
    its->per_seed[f->seed[i]]++;
    its->probability += f->probabilities[i];
  }
  for (int64_t m = 0; m < f->n_meta; m++) {
    if (meta[m].size > 0) meta[m].probability /= (double)meta[m].size;
    meta[m].persistence = f->persistence[m];
    meta[m].kind = kind_of(f, &meta[m]);
  }
done:
  return status;
}

/* ---- scores ------------------------------------------------------------------------ */

typedef struct mt_candidate {
  int64_t term;
  double score, tie; /* larger first; then the lower term */
} mt_candidate;

static bool is_better(const mt_candidate *x, const mt_candidate *y)
{
  if (x->score != y->score) return x->score > y->score;
  if (x->tie != y->tie) return x->tie > y->tie;
  return x->term < y->term;
}

/* The best n <= V of V candidates, best first, as scored terms. */
static mt_status keep_best(const mt_candidate *candidates, int64_t n_terms, int64_t n,
                           mt_scored_term **out)
{
  mt_status status = MT_OK;
  const mt_candidate **best = NULL; /* sorted */
  mt_scored_term *scored = NULL;
  int64_t held = 0;
  MT_NEW(best, n + 1);
  MT_NEW(scored, n);
  for (int64_t t = 0; t < n_terms; t++) {
    int64_t at = held;
    while (at > 0 && is_better(&candidates[t], best[at - 1])) {
      best[at] = best[at - 1];
      at--;
    }
    best[at] = &candidates[t];
    if (held < n) held++;
  }
  for (int64_t i = 0; i < n; i++)
    scored[i] = (mt_scored_term){best[i]->term, best[i]->score};
  *out = scored;
  scored = NULL;
done:
  free(scored);
  free(best);
  return status;
}

static void score_frequent(const mt_findings *f, const mt_meta_topic *meta,
                           const double *sums, mt_candidate *candidates)
{
  for (int64_t t = 0; t < f->n_terms; t++)
    candidates[t] = (mt_candidate){t, 0.0, sums[t] / (double)meta->size};
  for (int64_t i = 0; i < meta->size; i++)
    for (int64_t j = 0; j < f->n_top; j++)
      candidates[f->top_terms[meta->members[i] * f->n_top + j]].score += 1.0;
  for (int64_t t = 0; t < f->n_terms; t++) candidates[t].score /= (double)meta->size;
}

static void score_distinct(const mt_findings *f, const double *sums, const double *all,
                           double mean_class, mt_candidate *candidates)
{
  double total = 0.0;
  for (int64_t t = 0; t < f->n_terms; t++) total += sums[t];
  for (int64_t t = 0; t < f->n_terms; t++) {
    double score = 0.0;
    if (total > 0.0 && all[t] > 0.0)
      score = sums[t] / total * log1p(mean_class / all[t]);
    candidates[t] = (mt_candidate){t, score, 0.0};
  }
}

/* Classes that there are: the meta-topics, and noise if there is any. */
static double mean_class_sum(const mt_findings *f, const double *all)
{
  double total = 0.0;
  for (int64_t t = 0; t < f->n_terms; t++) total += all[t];
  return total / (double)(f->n_meta + (mt_findings_noise(f) > 0));
}

/* What the terms of a meta-topic are chosen by; on rank 0. */
typedef struct mt_scoring {
  const mt_findings *findings;
  mt_meta_topic *meta;
  int64_t n;          /* terms in each list */
  double *all;        /* (V) sums over all topics */
  double mean_class;  /* mean sum of a class */
  mt_candidate *room; /* (V) */
} mt_scoring;

/* Fills in both lists of meta-topic m. */
static mt_status score_terms(void *context, int64_t m, double *sums)
{
  mt_status status = MT_OK;
  const mt_scoring *s = context;
  const mt_findings *f = s->findings;
  mt_meta_topic *meta = &s->meta[m];
  score_frequent(f, meta, sums, s->room);
  MT_TRY(keep_best(s->room, f->n_terms, s->n, &meta->frequent));
  score_distinct(f, sums, s->all, s->mean_class, s->room);
  MT_TRY(keep_best(s->room, f->n_terms, s->n, &meta->distinct));
  meta->n_terms = s->n;
done:
  return status;
}

/* Of every meta-topic; findings and meta are on rank 0. */
static mt_status score_all(const mt_comm *comm, const mt_findings *findings,
                           const mt_rows *rows, int64_t n, mt_meta_topic *meta)
{
  mt_status status = MT_OK;
  mt_scoring scoring = {.findings = findings, .meta = meta, .n = n};
  int64_t n_meta = comm->rank == 0 ? findings->n_meta : 0, *labels = NULL;
  MT_TRY(mt_agree(comm, mt_memory_new(rows->d, sizeof *scoring.all, "sums",
                                      (void **)&scoring.all)));
  MT_TRY(
      mt_agree(comm, mt_memory_new(comm->rank == 0 ? rows->d : 0, sizeof *scoring.room,
                                   "scores", (void **)&scoring.room)));
  MT_TRY(mt_agree(comm,
                  mt_memory_new(rows->n, sizeof *labels, "labels", (void **)&labels)));
  if (comm->rank == 0)
    memcpy(labels, findings->labels, (size_t)rows->n * sizeof *labels);
  MT_TRY(mt_bcast(comm, 0, sizeof n_meta, &n_meta));
  MT_TRY(mt_bcast(comm, 0, (size_t)rows->n * sizeof *labels, labels));
  MT_TRY(mt_topic_sums(comm, rows, scoring.all));
  if (comm->rank == 0) scoring.mean_class = mean_class_sum(findings, scoring.all);
  MT_TRY(mt_topic_cluster_sums(comm, rows, n_meta, labels, score_terms, &scoring));
done:
  free(labels);
  free(scoring.room);
  free(scoring.all);
  return status;
}

/* ---- labels ------------------------------------------------------------------------ */

/* The first n terms, joined; then " (number)" unless number < 0. */
static mt_status make_label(char **terms, const mt_scored_term *scored, int64_t n,
                            int64_t number, char **label_out)
{
  mt_status status = MT_OK;
  char *label = NULL;
  size_t bytes = 32;
  for (int64_t i = 0; i < n; i++) bytes += strlen(terms[scored[i].term]) + 2;
  MT_NEW(label, (int64_t)bytes);
  char *at = label;
  for (int64_t i = 0; i < n; i++) {
    if (i > 0) at = stpcpy(at, ", ");
    at = stpcpy(at, terms[scored[i].term]);
  }
  if (number >= 0) sprintf(at, " (%lld)", (long long)number);
  free(*label_out);
  *label_out = label;
done:
  return status;
}

const mt_scored_term *mt_meta_topic_terms(const mt_meta_topic *meta,
                                          mt_label_method method)
{
  return method == MT_LABEL_C_TF_IDF ? meta->distinct : meta->frequent;
}

typedef struct mt_labelled {
  const char *label;
  int64_t meta;
} mt_labelled;

static int compare_labelled(const void *a, const void *b)
{
  const mt_labelled *x = a, *y = b;
  int order = strcmp(x->label, y->label);
  return order != 0 ? order : x->meta < y->meta ? -1 : x->meta > y->meta;
}

/* Marks the meta-topics whose label another one has, too. */
static bool mark_equal(int64_t n, const mt_meta_topic *meta, mt_labelled *sorted,
                       bool *equal)
{
  bool any = false;
  for (int64_t m = 0; m < n; m++) sorted[m] = (mt_labelled){meta[m].label, m};
  qsort(sorted, (size_t)n, sizeof *sorted, compare_labelled);
  memset(equal, 0, (size_t)n * sizeof *equal);
  for (int64_t i = 1; i < n; i++)
    if (strcmp(sorted[i - 1].label, sorted[i].label) == 0)
      any = equal[sorted[i - 1].meta] = equal[sorted[i].meta] = true;
  return any;
}

/* Each label gets terms until no other has the same; when they run out, a number. */
static mt_status make_labels(const mt_findings *f, const mt_map_options *options,
                             mt_meta_topic *meta)
{
  mt_status status = MT_OK;
  bool *equal = NULL;
  mt_labelled *sorted = NULL;
  MT_NEW(equal, f->n_meta);
  MT_NEW(sorted, f->n_meta);
  for (int64_t m = 0; m < f->n_meta; m++) {
    mt_meta_topic *its = &meta[m];
    its->label_terms =
        its->n_terms < options->label_terms ? its->n_terms : options->label_terms;
    MT_TRY(make_label(f->terms, mt_meta_topic_terms(its, options->label_method),
                      its->label_terms, -1, &its->label));
  }
  while (mark_equal(f->n_meta, meta, sorted, equal))
    for (int64_t m = 0; m < f->n_meta; m++) {
      mt_meta_topic *its = &meta[m];
      if (!equal[m]) continue;
      bool more = its->label_terms < its->n_terms;
      its->label_terms += more;
      MT_TRY(make_label(f->terms, mt_meta_topic_terms(its, options->label_method),
                        its->label_terms, more ? -1 : m, &its->label));
    }
done:
  free(sorted);
  free(equal);
  return status;
}

/* The meta-topics but for their terms and labels; n_out: how many terms each gets. */
static mt_status begin_meta(const mt_findings *findings, const mt_map_options *options,
                            int64_t *n_out, mt_meta_topic **meta_out)
{
  enum { SPARE = 5 }; /* terms beyond those shown, for labels that would be equal */
  mt_status status = MT_OK;
  int64_t n =
      findings->n_top > options->label_terms ? findings->n_top : options->label_terms;
  *n_out = n + SPARE < findings->n_terms ? n + SPARE : findings->n_terms;
  MT_NEW(*meta_out, findings->n_meta);
  MT_TRY(collect_members(findings, *meta_out));
done:
  return status;
}

mt_status mt_meta_topics_make(const mt_comm *comm, const mt_findings *findings,
                              const mt_rows *rows, const mt_map_options *options,
                              mt_meta_topic **out)
{
  mt_status status = MT_OK;
  mt_meta_topic *meta = NULL;
  int64_t n = 0;
  bool root = comm->rank == 0;
  MT_TRY(mt_agree(comm, root ? begin_meta(findings, options, &n, &meta) : MT_OK));
  MT_TRY(score_all(comm, findings, rows, n, meta));
  MT_TRY(mt_agree(comm, root ? make_labels(findings, options, meta) : MT_OK));
  if (root) *out = meta;
  meta = NULL;
done:
  mt_meta_topics_destroy(root ? findings->n_meta : 0, meta);
  return status;
}

void mt_meta_topics_destroy(int64_t n, mt_meta_topic *meta)
{
  for (int64_t m = 0; meta != NULL && m < n; m++) {
    free(meta[m].members);
    free(meta[m].frequent);
    free(meta[m].distinct);
    free(meta[m].per_period);
    free(meta[m].per_seed);
    free(meta[m].label);
  }
  free(meta);
}
