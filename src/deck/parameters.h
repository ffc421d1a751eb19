/* Every parameter of a run. The names are scikit-learn's, umap-learn's and hdbscan's; the
 * one table in parameters.c holds each one's default, range and help. Strings are owned by
 * the deck. Plain data: stages read it and change nothing. */
#ifndef MT_DECK_PARAMETERS_H
#define MT_DECK_PARAMETERS_H
#include <stdbool.h>
#include <stdint.h>

typedef enum mt_corpus_format {
  MT_FORMAT_AUTO,
  MT_FORMAT_REUTERS_SGML,
  MT_FORMAT_JSONL,
  MT_FORMAT_CSV,
  MT_FORMAT_TEXT
} mt_corpus_format;

typedef enum mt_period_kind {
  MT_PERIOD_MONTH,
  MT_PERIOD_YEAR,
  MT_PERIOD_QUARTER,
  MT_PERIOD_WEEK,
  MT_PERIOD_DAY
} mt_period_kind;

/* A document frequency: a count (min_df="5"), or a share of the documents when written
 * with a decimal point (max_df="0.5", "1.0"), as scikit-learn's int and float. */
typedef struct mt_frequency {
  double value;
  bool is_share;
} mt_frequency;

typedef struct mt_corpus_options {
  char *path; /* file, folder or archive; relative to the deck's folder */
  mt_corpus_format format;
  char *encoding; /* "auto" or a name that iconv knows */
  mt_period_kind period;
  char *periods; /* "all", or names separated by blanks */
  mt_frequency min_df, max_df;
  int64_t max_features; /* 0: no limit */
  char *stop_words;     /* "none", "english" or a file */
  bool lowercase;
  bool strict; /* a damaged document is an error; else skipped and counted */
  char *id_field, *date_field, *title_field, *text_field; /* of jsonl and csv */
} mt_corpus_options;

typedef enum mt_learning_method {
  MT_LEARNING_BATCH,
  MT_LEARNING_ONLINE
} mt_learning_method;

typedef struct mt_lda_options {
  int64_t n_components; /* K */
  int64_t *seeds;       /* n_seeds distinct values, ascending as given; 0..2^32-1 */
  int64_t n_seeds;
  int64_t max_iter;
  mt_learning_method learning_method;
  double doc_topic_prior;  /* 0: 1 / K */
  double topic_word_prior; /* 0: 1 / K */
  int64_t max_doc_update_iter;
  double mean_change_tol;
  int64_t batch_size;
  double learning_decay, learning_offset;
  double perp_tol;
  int64_t evaluate_every; /* <= 0: never */
  int64_t min_docs;       /* a period with fewer documents gets no fit */
  int64_t top_terms;
} mt_lda_options;

typedef enum mt_metric {
  MT_METRIC_COSINE,
  MT_METRIC_HELLINGER,
  MT_METRIC_EUCLIDEAN
} mt_metric;
typedef enum mt_build_algo {
  MT_BUILD_AUTO,
  MT_BUILD_BRUTE_FORCE,
  MT_BUILD_NN_DESCENT
} mt_build_algo;

typedef struct mt_knn_options {
  int64_t n_neighbors; /* the point itself counted: k = n_neighbors - 1 are stored */
  mt_metric metric;
  mt_build_algo build_algo;
} mt_knn_options;

typedef enum mt_umap_init {
  MT_INIT_SPECTRAL,
  MT_INIT_PCA,
  MT_INIT_RANDOM
} mt_umap_init;

typedef struct mt_umap_options {
  int64_t n_components;
  double min_dist, spread;
  int64_t n_epochs; /* 0: 500 up to 10,000 points, else 200 */
  double learning_rate;
  mt_umap_init init;
  int64_t negative_sample_rate;
  double repulsion_strength, set_op_mix_ratio, local_connectivity;
  double a, b;          /* both 0: fitted to min_dist and spread */
  int64_t random_state; /* 0..2^32-1 */
} mt_umap_options;

typedef enum mt_selection_method { MT_SELECT_EOM, MT_SELECT_LEAF } mt_selection_method;

typedef struct mt_hdbscan_options {
  int64_t min_cluster_size;
  int64_t min_samples; /* the point itself not counted */
  mt_selection_method cluster_selection_method;
  double cluster_selection_epsilon;
  bool allow_single_cluster;
  int64_t max_cluster_size; /* 0: no limit */
  double alpha;
} mt_hdbscan_options;

typedef enum mt_label_method { MT_LABEL_FREQUENCY, MT_LABEL_C_TF_IDF } mt_label_method;

typedef struct mt_map_options {
  int64_t label_terms;
  mt_label_method label_method;
  int64_t width, height; /* pixels */
  bool svg, png;         /* the format parameter's words */
} mt_map_options;

typedef struct mt_output_options {
  char *path;
} mt_output_options;

typedef struct mt_parameters {
  mt_corpus_options corpus;
  mt_lda_options lda;
  mt_knn_options knn;
  mt_umap_options umap;
  mt_hdbscan_options hdbscan;
  mt_map_options map;
  mt_output_options output;
} mt_parameters;

/* What --backend asks for: no parameter, since the result is the same. */
typedef enum mt_backend_choice {
  MT_BACKEND_AUTO,
  MT_BACKEND_CPU,
  MT_BACKEND_CUDA
} mt_backend_choice;

#endif
