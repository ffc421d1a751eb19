/* check_planted TRUTH OUT: did a run on newswire's collection bring the planted topics back?
 * TRUTH is truth.json, OUT the run's folder (summary.json, topics.csv). A row of topics.csv
 * is about a planted topic if most of its ten top terms are among that topic's first ten.
 * Says what is wrong; exit status 1 if
 * - a persistent topic is not one meta-topic of the kind persistent, found in all periods,
 *   with a label from the topic's ten first words;
 * - a topic of one period, seen in min_cluster_size fits or more, is not one local one;
 * - a meta-topic mixes planted topics. */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 10, MOST = 64 };

static int wrong; /* what was said */

/* One planted topic and where its rows went. */
typedef struct planted {
  const char *name;
  bool persistent;
  const json_t *words;
  size_t periods;
  long long rows, noise;
  long long metas[MOST]; /* meta-topics that hold rows of it */
  int n_metas;
} planted;

static json_t *load(const char *folder, const char *file)
{
  char path[4096];
  json_error_t error;
  snprintf(path, sizeof path, "%s%s%s", folder, *file ? "/" : "", file);
  json_t *json = json_load_file(path, 0, &error);
  if (json == NULL) {
    fprintf(stderr, "check_planted: %s: %s\n", path, error.text);
    exit(2);
  }
  return json;
}

static bool is_among_first(const json_t *words, const char *term, size_t length)
{
  for (size_t i = 0; i < FIRST && i < json_array_size(words); i++) {
    const char *word = json_string_value(json_array_get(words, i));
    if (strlen(word) == length && strncmp(word, term, length) == 0) return true;
  }
  return false;
}

static int count_among_first(const json_t *words, const char *terms)
{
  int count = 0;
  for (const char *t = terms; *t != '\0' && *t != '\n';) {
    size_t length = strcspn(t, " \r\n");
    count += is_among_first(words, t, length);
    t += length + strspn(t + length, " ");
  }
  return count;
}

/* The planted topic that a row's terms are about; -1: none. */
static int topic_of(int n, const planted *topics, const char *terms)
{
  int best = -1, most = FIRST / 2 - 1;
  for (int s = 0; s < n; s++) {
    int count = count_among_first(topics[s].words, terms);
    if (count > most) most = count, best = s;
  }
  return best;
}

static void add_meta(planted *topic, long long meta)
{
  for (int i = 0; i < topic->n_metas; i++)
    if (topic->metas[i] == meta) return;
  if (topic->n_metas < MOST) topic->metas[topic->n_metas++] = meta;
}

/* index,period,seed,topic,meta_topic,...,top_terms: the first five are never quoted. */
static void read_rows(const char *folder, int n, planted *topics)
{
  char path[4096], line[65536];
  snprintf(path, sizeof path, "%s/topics.csv", folder);
  FILE *file = fopen(path, "r");
  if (file == NULL || fgets(line, sizeof line, file) == NULL) {
    fprintf(stderr, "check_planted: cannot read %s\n", path);
    exit(2);
  }
  while (fgets(line, sizeof line, file) != NULL) {
    const char *at = line, *terms = strrchr(line, ',');
    for (int i = 0; i < 4 && at != NULL; i++) at = strchr(at + (i > 0), ',');
    if (at == NULL || terms == NULL) continue;
    int s = topic_of(n, topics, terms + 1);
    if (s < 0) continue;
    topics[s].rows++;
    if (at[1] == ',')
      topics[s].noise++;
    else
      add_meta(&topics[s], atoll(at + 1));
  }
  fclose(file);
}

static const json_t *meta_named(const json_t *summary, long long number)
{
  const json_t *metas = json_object_get(summary, "meta_topics"), *meta;
  size_t i;
  json_array_foreach(
      metas, i, meta) if (json_integer_value(json_object_get(meta, "meta_topic")) ==
                          number) return meta;
  return NULL;
}

static size_t periods_of(const json_t *meta)
{
  const char *key;
  json_t *count;
  size_t used = 0;
  json_object_foreach(json_object_get(meta, "per_period"), key, count) used +=
      json_integer_value(count) > 0;
  return used;
}

static void check_label(const planted *topic, const json_t *meta, size_t label_terms)
{
  const json_t *terms = json_object_get(meta, "terms");
  for (size_t i = 0; i < label_terms; i++) {
    const char *term =
        json_string_value(json_object_get(json_array_get(terms, i), "term"));
    if (term != NULL && is_among_first(topic->words, term, strlen(term))) continue;
    printf("WRONG %s: its label has \"%s\", no first word of it\n", topic->name,
           term != NULL ? term : "nothing");
    wrong++;
  }
}

static void check_topic(const planted *topic, const json_t *summary)
{
  const json_t *parameters = json_object_get(summary, "parameters");
  long long least = json_integer_value(
      json_object_get(json_object_get(parameters, "hdbscan"), "min_cluster_size"));
  long long label_terms = json_integer_value(
      json_object_get(json_object_get(parameters, "map"), "label_terms"));
  const char *kind = topic->persistent ? "persistent" : "local";
  if (!topic->persistent && topic->rows < least) {
    printf("left  %-16s in %lld fits alone, fewer than min_cluster_size\n", topic->name,
           topic->rows);
    return;
  }
  if (topic->n_metas != 1) {
    printf("WRONG %s: in %d meta-topics (%lld topics, %lld noise)\n", topic->name,
           topic->n_metas, topic->rows, topic->noise);
    wrong++;
    return;
  }
  const json_t *meta = meta_named(summary, topic->metas[0]);
  const char *got = json_string_value(json_object_get(meta, "kind"));
  if (got == NULL || strcmp(got, kind) != 0 || periods_of(meta) != topic->periods) {
    printf("WRONG %s: %s, in %zu periods; planted: %s, in %zu\n", topic->name,
           got != NULL ? got : "of no kind", periods_of(meta), kind, topic->periods);
    wrong++;
  }
  check_label(topic, meta, (size_t)label_terms);
  printf("%-5s %-16s %3lld topics, meta-topic %lld: %s\n", "found", topic->name,
         topic->rows, topic->metas[0],
         json_string_value(json_object_get(meta, "label")));
}

static void check_mixtures(int n, const planted *topics)
{
  for (int a = 0; a < n; a++)
    for (int b = 0; b < a; b++)
      for (int i = 0; i < topics[a].n_metas; i++)
        for (int j = 0; j < topics[b].n_metas; j++)
          if (topics[a].metas[i] == topics[b].metas[j]) {
            printf("WRONG meta-topic %lld mixes %s and %s\n", topics[a].metas[i],
                   topics[a].name, topics[b].name);
            wrong++;
          }
}

int main(int argc, char **argv)
{
  if (argc != 3) {
    fprintf(stderr, "usage: check_planted TRUTH OUT\n");
    return 2;
  }
  static planted topics[MOST];
  json_t *truth = load(argv[1], ""), *summary = load(argv[2], "summary.json"), *topic;
  int n = 0;
  size_t i;
  json_array_foreach(json_object_get(truth, "topics"), i, topic)
  {
    if (n == MOST) return fprintf(stderr, "check_planted: too many topics\n"), 2;
    const char *kind = json_string_value(json_object_get(topic, "kind"));
    topics[n++] =
        (planted){.name = json_string_value(json_object_get(topic, "name")),
                  .persistent = strcmp(kind, "persistent") == 0,
                  .words = json_object_get(topic, "words"),
                  .periods = json_array_size(json_object_get(topic, "periods"))};
  }
  read_rows(argv[2], n, topics);
  for (int s = 0; s < n; s++) check_topic(&topics[s], summary);
  check_mixtures(n, topics);
  printf("%d planted topics, %d wrong\n", n, wrong);
  json_decref(truth), json_decref(summary);
  return n == 0 || wrong > 0;
}
