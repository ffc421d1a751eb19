/* Every parameter, once. The order is the order of every listing; the words of a choice
 * stand in the order of its enum (deck/parameters.h). */
#include "deck/table.h"

#include <string.h>

static const char *const no_words[] = {NULL};
static const char *const automatic[] = {"auto", NULL};
static const char *const none[] = {"none", NULL};
static const char *const formats[] = {"auto", "reuters-sgml", "jsonl",
                                      "csv",  "text",         NULL};
static const char *const periods[] = {"month", "year", "quarter", "week", "day", NULL};
static const char *const methods[] = {"batch", "online", NULL};
static const char *const metrics[] = {"cosine", "hellinger", "euclidean", NULL};
static const char *const algorithms[] = {"auto", "brute_force", "nn_descent", NULL};
static const char *const inits[] = {"spectral", "pca", "random", NULL};
static const char *const selections[] = {"eom", "leaf", NULL};
static const char *const labels[] = {"frequency", "c-tf-idf", NULL};
static const char *const pictures[] = {"svg", "png", NULL};

static const double most_rows =
    2147483647; /* of documents, terms and other things counted */
static const double most_seed = 4294967295;

/* ROW(kind, section, field): default, lowest, highest, words, what the word means, help */
#define ROW(kind, section, field, ...)                                        \
  {                                                                           \
#section, #field, MT_KIND_##kind, offsetof(mt_parameters, section.field), \
        __VA_ARGS__                                                           \
  }
#define INT(section, field, text, low, high, help) \
  ROW(INT, section, field, text, low, high, no_words, 0, help)
#define REAL(section, field, text, low, high, help) \
  ROW(REAL, section, field, text, low, high, no_words, 0, help)
#define BOOL(section, field, text, help) \
  ROW(BOOL, section, field, text, 0, 1, no_words, 0, help)
#define CHOICE(section, field, text, words, help) \
  ROW(CHOICE, section, field, text, 0, 0, words, 0, help)
#define TEXT(section, field, text, help) \
  ROW(TEXT, section, field, text, 0, 0, no_words, 0, help)
#define FREQUENCY(section, field, text, help) \
  ROW(FREQUENCY, section, field, text, 1, most_rows, no_words, 0, help)

const mt_section mt_section_table[] = {
    {"corpus", "Which documents are read, and which terms are counted."},
    {"lda", "The topic models: one fit for each period and seed."},
    {"knn", "Which topics are near one another."},
    {"umap", "The layout of the topics on the map."},
    {"hdbscan", "The groups of topics: the meta-topics."},
    {"map", "The picture."},
    {"output", "Where a run's files go."},
    {NULL, NULL}};

const mt_parameter mt_parameter_table[] = {
    TEXT(corpus, path, "",
         "The collection: a file, a folder or a .tar.gz. Must be given. In a deck, "
         "relative "
         "to the deck's folder; on the command line, to the working directory."),
    CHOICE(
        corpus, format, "auto", formats,
        "What the files are. auto looks at their names and first bytes. text: a folder "
        "for each period, a file for each document."),
    TEXT(corpus, encoding, "auto",
         "The character encoding, a name that iconv knows (UTF-8, ISO-8859-1). auto: "
         "what "
         "the format prescribes, ISO-8859-1 for reuters-sgml, else UTF-8."),
    CHOICE(corpus, period, "month", periods,
           "How dates are grouped into periods. Every period is fitted on its own."),
    TEXT(corpus, periods, "all",
         "The periods to keep, names separated by blanks (1987-02 1987-03), or all. "
         "Names: "
         "month 1987-03, year 1987, quarter 1987-Q1, week 1987-W09, day 1987-03-17."),
    FREQUENCY(
        corpus, min_df, "5",
        "Leaves out terms that fewer documents hold: a count (5), or with a decimal "
        "point a share of the documents (0.01). 1 keeps all."),
    FREQUENCY(
        corpus, max_df, "0.5",
        "Leaves out terms that more documents hold: with a decimal point a share of "
        "the documents (0.5), else a count. 1.0 keeps all."),
    ROW(INT, corpus, max_features, "20000", 0, most_rows, none, 0,
        "Keeps the terms that occur most often, after min_df and max_df. none or 0: no "
        "limit. Memory and time grow with it."),
    TEXT(corpus, stop_words, "none",
         "Words to leave out: none, english (a built-in list), or a file with a word a "
         "line. In a deck, relative to the deck's folder; on the command line, to the "
         "working directory."),
    BOOL(corpus, lowercase, "true",
         "Turns all letters into small ones before counting."),
    BOOL(corpus, strict, "true",
         "true: a damaged document ends the run with an error that names it. false: it "
         "is "
         "skipped and counted."),
    TEXT(corpus, id_field, "id", "The field of a document's name, in jsonl and csv."),
    TEXT(corpus, date_field, "date",
         "The field of a document's date, in jsonl and csv."),
    TEXT(corpus, title_field, "title",
         "The field of a document's title, in jsonl and csv."),
    TEXT(corpus, text_field, "text",
         "The field of a document's text, in jsonl and csv."),

    INT(lda, n_components, "15", 1, 100000,
        "Topics of a fit. More find finer subjects; time and memory grow with it."),
    ROW(SEEDS, lda, seeds, "0 1 2", 0, most_seed, no_words, 0,
        "Random seeds: every period is fitted once with each. Distinct numbers and "
        "ranges "
        "(0-9 20 30-39), at most 1000000 in all. Topics that come back under several "
        "seeds "
        "are no accident."),
    INT(lda, max_iter, "5", 1, 1000000, "Passes over a period's documents."),
    CHOICE(lda, learning_method, "batch", methods,
           "batch updates the topics after each pass, online after every batch_size "
           "documents, which is quicker on large periods."),
    ROW(REAL, lda, doc_topic_prior, "auto", 1e-6, 1000, automatic, 0,
        "Prior of a document's topic shares (alpha). Small: few topics in a document. "
        "auto: 1 / n_components."),
    ROW(REAL, lda, topic_word_prior, "auto", 1e-6, 1000, automatic, 0,
        "Prior of a topic's term shares (eta). Small: few terms in a topic. auto: "
        "1 / n_components."),
    INT(lda, max_doc_update_iter, "100", 1, 1000000,
        "Most update steps for a document in a pass."),
    REAL(lda, mean_change_tol, "0.001", 0, 1000,
         "A document is done when its topic weights change by less than this on "
         "average. "
         "0: always max_doc_update_iter steps."),
    INT(lda, batch_size, "128", 1, most_rows,
        "Documents between two updates. Only for online learning."),
    REAL(lda, learning_decay, "0.7", 0, 1,
         "How quickly later updates lose weight (kappa); above 0.5 it converges. Only "
         "for "
         "online learning."),
    REAL(lda, learning_offset, "10", 1, 1e9,
         "Gives the first updates less weight (tau_0). Only for online learning."),
    REAL(lda, perp_tol, "0.1", 0, 1e9,
         "Stops a fit when its perplexity falls by less than this. Only where "
         "evaluate_every is 1 or more."),
    INT(lda, evaluate_every, "-1", -1, 1000000,
        "Computes the perplexity after every so many passes, to stop early. 0 or -1: "
        "never."),
    INT(lda, min_docs, "50", 1, most_rows,
        "A period with fewer documents gets no fit."),
    INT(lda, top_terms, "10", 1, 1000,
        "Terms that are kept as a topic's top terms, for labels and tables."),

    INT(knn, n_neighbors, "15", 2, 1024,
        "Size of a topic's neighbourhood, the topic itself counted. Small: the map "
        "shows "
        "detail; large: the whole. More than there are topics is cut down."),
    CHOICE(knn, metric, "cosine", metrics,
           "How the distance of two topics is measured, on their rows of term shares."),
    CHOICE(
        knn, build_algo, "auto", algorithms,
        "How neighbours are found. brute_force compares all pairs: exact. nn_descent "
        "misses a few, which run.json counts (recall), and needs the whole matrix in "
        "the memory of each rank or GPU; it pays from ten thousand topics on, on a GPU "
        "from some hundred thousand. auto takes brute_force unless that would take "
        "more "
        "than an hour at a nominal rate (a node of CPUs 2 TFLOP/s, a GPU 400)."),

    INT(umap, n_components, "2", 1, 100,
        "Dimensions of the layout. The map shows the first two."),
    REAL(umap, min_dist, "0.1", 0, 100,
         "How close two points may lie. Small: tight groups. At most spread."),
    REAL(umap, spread, "1.0", 0.001, 100, "The scale of the layout, beside min_dist."),
    ROW(INT, umap, n_epochs, "auto", 1, 1000000, automatic, 0,
        "Rounds of the layout. auto: 500 up to 10000 points, else 200."),
    REAL(umap, learning_rate, "1.0", 1e-4, 100,
         "How far a point moves in the first round."),
    CHOICE(
        umap, init, "spectral", inits,
        "Where points start: eigenvectors of the neighbour graph, principal components "
        "of the topics, or anywhere."),
    INT(umap, negative_sample_rate, "5", 1, 100,
        "Points that a point is pushed from for each one that it is pulled to."),
    REAL(umap, repulsion_strength, "1.0", 0, 100,
         "Weight of the pushes against the pulls."),
    REAL(umap, set_op_mix_ratio, "1.0", 0, 1,
         "How the two directions of a neighbourhood are joined: 1 if either holds, 0 "
         "only "
         "if both do."),
    REAL(umap, local_connectivity, "1.0", 0, 100,
         "Nearest neighbours that count as fully connected. Below n_neighbors."),
    ROW(REAL, umap, a, "auto", 1e-3, 1000, automatic, 0,
        "The pull at a distance d is that of 1 / (1 + a d^(2b)). auto: fitted to "
        "min_dist "
        "and spread. Give both a and b, or none."),
    ROW(REAL, umap, b, "auto", 1e-3, 1000, automatic, 0, "See a."),
    INT(umap, random_state, "42", 0, most_seed, "Random seed of the layout."),

    INT(hdbscan, min_cluster_size, "3", 2, most_rows,
        "Fewest topics that make a meta-topic. Larger: fewer meta-topics."),
    INT(hdbscan, min_samples, "1", 1, 1024,
        "Neighbours that make a place dense, the topic itself not counted. Larger: "
        "more "
        "topics are noise."),
    CHOICE(hdbscan, cluster_selection_method, "eom", selections,
           "eom takes the groups that last longest, leaf the smallest ones."),
    REAL(hdbscan, cluster_selection_epsilon, "0", 0, 1e9,
         "Groups nearer than this, in units of the layout, are not split. 0: no such "
         "rule."),
    BOOL(hdbscan, allow_single_cluster, "false", "Whether all may be one meta-topic."),
    ROW(INT, hdbscan, max_cluster_size, "0", 0, most_rows, none, 0,
        "Most topics of a meta-topic; larger ones are split where they can be. Only "
        "for "
        "eom. none or 0: no limit."),
    REAL(hdbscan, alpha, "1.0", 1e-3, 1000,
         "Distances are divided by this before grouping."),

    INT(map, label_terms, "3", 1, 100,
        "Terms in a meta-topic's label. At most lda.top_terms."),
    CHOICE(
        map, label_method, "frequency", labels,
        "Which terms: those that most of its topics share, or those that set it apart "
        "from the others."),
    INT(map, width, "1600", 200, 20000, "Width of the picture, pixels."),
    INT(map, height, "1200", 200, 20000, "Height of the picture, pixels."),
    {"map", "format", MT_KIND_FORMATS, offsetof(mt_parameters, map.svg), "svg png", 0,
     0, pictures, 0, "The kinds of picture to draw, separated by blanks."},

    TEXT(
        output, path, "metatopics-out",
        "The folder of a run's files; made if it is not there. Relative to the working "
        "directory."),
    {NULL, NULL, MT_KIND_INT, 0, NULL, 0, 0, NULL, 0, NULL}};

const mt_parameter *mt_parameter_find(const char *section, const char *name)
{
  for (const mt_parameter *p = mt_parameter_table; p->section != NULL; p++)
    if (strcmp(p->section, section) == 0 && strcmp(p->name, name) == 0) return p;
  return NULL;
}
