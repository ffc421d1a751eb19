#include "lda/lda.h"
#include "base/memory.h"
#include "base/random.h"
#include "lda/bound.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct reference {
  const mt_lda_options *options;
  const mt_lda_extras *extras;
  const mt_counts *counts;
  uint32_t seed;
  int64_t K, V;
  double doc_prior, term_prior;
  double *lambda;               /* (K, V) components_ */
  double *beta;                 /* (K, V) exp_dirichlet_component_ */
  double *stats;                /* (K, V) */
  double *gamma, *theta, *last; /* (K) doc_topic_d, exp_doc_topic_d, last_d */
  double *topic_psi;            /* (K) psi of lambda's row sums, for the bound */
  int64_t updates;
} reference;

static double row_psi(const double *row, int64_t n)
{
  double sum = 0.0;
  for (int64_t i = 0; i < n; i++) sum += row[i];
  return mt_lda_psi(sum);
}

static void expect_row(const double *row, int64_t n, double *out)
{
  double total = row_psi(row, n);
  for (int64_t i = 0; i < n; i++) out[i] = exp(mt_lda_psi(row[i]) - total);
}

static void expect_beta(reference *ref)
{
  for (int64_t k = 0; k < ref->K; k++)
    expect_row(ref->lambda + k * ref->V, ref->V, ref->beta + k * ref->V);
}

static void start_components(reference *ref)
{
  for (int64_t k = 0; k < ref->K; k++)
    for (int64_t w = 0; w < ref->V; w++)
      ref->lambda[k * ref->V + w] =
          ref->extras->components != NULL
              ? ref->extras->components[k * ref->V + w]
              : mt_random_gamma(ref->seed, MT_STREAM_LDA_COMPONENTS,
                                (uint64_t)(k * ref->V + w), 0, 100.0, 0.01);
  expect_beta(ref);
}

/* pass < 0: ones, as when a finished model is judged */
static void start_document(reference *ref, int64_t pass, int64_t d)
{
  if (pass >= 0 && ref->extras->document != NULL) {
    ref->extras->document(ref->extras->document_context, pass, d, ref->gamma);
    return;
  }
  for (int64_t k = 0; k < ref->K; k++)
    ref->gamma[k] = pass < 0 ? 1.0
                             : mt_random_gamma(ref->seed, MT_STREAM_LDA_DOCUMENT,
                                               (uint64_t)(d * ref->K + k),
                                               (uint32_t)pass + 1, 100.0, 0.01);
}

static double norm_of(const reference *ref, int32_t term)
{
  double norm = 0.0;
  for (int64_t k = 0; k < ref->K; k++)
    norm += ref->theta[k] * ref->beta[k * ref->V + term];
  return norm + DBL_EPSILON;
}

static double step(reference *ref, int64_t d)
{
  const mt_counts *c = ref->counts;
  double change = 0.0;
  memcpy(ref->last, ref->gamma, (size_t)ref->K * sizeof *ref->last);
  for (int64_t k = 0; k < ref->K; k++) ref->gamma[k] = 0.0;
  for (int64_t i = c->indptr[d]; i < c->indptr[d + 1]; i++) {
    double ratio = c->data[i] / norm_of(ref, c->indices[i]);
    for (int64_t k = 0; k < ref->K; k++)
      ref->gamma[k] += ratio * ref->beta[k * ref->V + c->indices[i]];
  }
  for (int64_t k = 0; k < ref->K; k++) {
    ref->gamma[k] = ref->theta[k] * ref->gamma[k] + ref->doc_prior;
    change += fabs(ref->last[k] - ref->gamma[k]);
  }
  expect_row(ref->gamma, ref->K, ref->theta);
  return change / (double)ref->K;
}

/* _update_doc_distribution of one document; pass < 0: no statistics */
static void update_document(reference *ref, int64_t pass, int64_t d)
{
  const mt_counts *c = ref->counts;
  start_document(ref, pass, d);
  expect_row(ref->gamma, ref->K, ref->theta);
  for (int64_t s = 0; s < ref->options->max_doc_update_iter; s++) {
    ref->updates += pass < 0 ? 0 : c->indptr[d + 1] - c->indptr[d];
    if (step(ref, d) < ref->options->mean_change_tol) break;
  }
  if (pass < 0) return;
  for (int64_t i = c->indptr[d]; i < c->indptr[d + 1]; i++) {
    double ratio = c->data[i] / norm_of(ref, c->indices[i]);
    for (int64_t k = 0; k < ref->K; k++)
      ref->stats[k * ref->V + c->indices[i]] += ref->theta[k] * ratio;
  }
}

/* _em_step: weight 1 and ratio 1 are the batch update */
static void update_components(reference *ref, int64_t pass, int64_t first, int64_t last,
                              double weight, double ratio)
{
  memset(ref->stats, 0, (size_t)(ref->K * ref->V) * sizeof *ref->stats);
  for (int64_t d = first; d < last; d++) update_document(ref, pass, d);
  for (int64_t i = 0; i < ref->K * ref->V; i++) {
    double now = ref->term_prior + ratio * ref->stats[i] * ref->beta[i];
    ref->lambda[i] = (1.0 - weight) * ref->lambda[i] + weight * now;
  }
  expect_beta(ref);
}

/* E[log theta_k] + E[log beta_kw], less the psi of the document's total */
static double topic_log(const reference *ref, int64_t k, int32_t term)
{
  return mt_lda_psi(ref->gamma[k]) + mt_lda_psi(ref->lambda[k * ref->V + term]) -
         ref->topic_psi[k];
}

static double document_score(reference *ref, int64_t d)
{
  const mt_counts *c = ref->counts;
  double total = row_psi(ref->gamma, ref->K), sum = 0.0;
  for (int64_t k = 0; k < ref->K; k++) sum += ref->gamma[k];
  double score =
      mt_lda_log_gamma(ref->doc_prior * (double)ref->K) - mt_lda_log_gamma(sum);
  for (int64_t k = 0; k < ref->K; k++)
    score += (ref->doc_prior - ref->gamma[k]) * (mt_lda_psi(ref->gamma[k]) - total) +
             mt_lda_log_gamma(ref->gamma[k]) - mt_lda_log_gamma(ref->doc_prior);
  for (int64_t i = c->indptr[d]; i < c->indptr[d + 1]; i++) {
    double most = -INFINITY, phi = 0.0;
    for (int64_t k = 0; k < ref->K; k++)
      most = fmax(most, topic_log(ref, k, c->indices[i]));
    for (int64_t k = 0; k < ref->K; k++)
      phi += exp(topic_log(ref, k, c->indices[i]) - most);
    score += c->data[i] * (most + log(phi) - total);
  }
  return score;
}

static double topic_score(const reference *ref, int64_t k)
{
  const double *row = ref->lambda + k * ref->V;
  double total = row_psi(row, ref->V), sum = 0.0;
  for (int64_t w = 0; w < ref->V; w++) sum += row[w];
  double score =
      mt_lda_log_gamma(ref->term_prior * (double)ref->V) - mt_lda_log_gamma(sum);
  for (int64_t w = 0; w < ref->V; w++)
    score += (ref->term_prior - row[w]) * (mt_lda_psi(row[w]) - total) +
             mt_lda_log_gamma(row[w]) - mt_lda_log_gamma(ref->term_prior);
  return score;
}

/* _perplexity_precomp_distr of the model as it is now */
static double judge(reference *ref, double *bound_out)
{
  double bound = 0.0, words = 0.0;
  for (int64_t k = 0; k < ref->K; k++)
    ref->topic_psi[k] = row_psi(ref->lambda + k * ref->V, ref->V);
  for (int64_t d = 0; d < ref->counts->n_documents; d++) {
    update_document(ref, -1, d);
    bound += document_score(ref, d);
  }
  for (int64_t k = 0; k < ref->K; k++) bound += topic_score(ref, k);
  for (int64_t i = 0; i < ref->counts->indptr[ref->counts->n_documents]; i++)
    words += ref->counts->data[i];
  *bound_out = bound;
  return words > 0.0 ? exp(-bound / words) : 1.0;
}

static void one_pass(reference *ref, int64_t pass, int64_t *batch)
{
  const mt_lda_options *o = ref->options;
  int64_t n = ref->counts->n_documents;
  if (o->learning_method == MT_LEARNING_BATCH) {
    update_components(ref, pass, 0, n, 1.0, 1.0);
    return;
  }
  for (int64_t first = 0; first < n; first += o->batch_size) {
    int64_t last = first + o->batch_size < n ? first + o->batch_size : n;
    double weight = pow(o->learning_offset + (double)++*batch, -o->learning_decay);
    update_components(ref, pass, first, last, weight,
                      (double)n / (double)(last - first));
  }
}

static void all_passes(reference *ref, mt_lda_model *model)
{
  const mt_lda_options *o = ref->options;
  double previous = 0.0;
  int64_t batch = 0;
  for (int64_t pass = 0; pass < o->max_iter; pass++) {
    one_pass(ref, pass, &batch);
    if (o->evaluate_every > 0 && (pass + 1) % o->evaluate_every == 0) {
      double perplexity = judge(ref, &model->bound);
      if (previous > 0.0 && fabs(previous - perplexity) < o->perp_tol) break;
      previous = perplexity;
    }
    model->n_iter++;
  }
  model->perplexity = judge(ref, &model->bound);
}

mt_status mt_lda_fit_ref(const mt_lda_options *options, int64_t seed,
                         const mt_counts *counts, const mt_lda_extras *extras,
                         mt_lda_model *model_out)
{
  mt_status status = MT_OK;
  static const mt_lda_extras none;
  int64_t K = options->n_components, V = counts->n_terms;
  double even = 1.0 / (double)K;
  reference ref = {
      .options = options,
      .extras = extras != NULL ? extras : &none,
      .counts = counts,
      .seed = (uint32_t)seed,
      .K = K,
      .V = V,
      .doc_prior = options->doc_topic_prior > 0 ? options->doc_topic_prior : even,
      .term_prior = options->topic_word_prior > 0 ? options->topic_word_prior : even};
  mt_lda_model model = {.n_components = K, .n_terms = V};

  MT_REQUIRE(K >= 1 && V >= 1, MT_ERR_ARG, "%lld topics of %lld terms", (long long)K,
             (long long)V);
  MT_NEW(ref.lambda, K * V);
  MT_NEW(ref.beta, K * V);
  MT_NEW(ref.stats, K * V);
  MT_NEW(ref.gamma, K);
  MT_NEW(ref.theta, K);
  MT_NEW(ref.last, K);
  MT_NEW(ref.topic_psi, K);
  start_components(&ref);
  all_passes(&ref, &model);
  model.components = ref.lambda;
  model.updates = ref.updates;
  ref.lambda = NULL;
  *model_out = model;
done:
  free(ref.lambda);
  free(ref.beta);
  free(ref.stats);
  free(ref.gamma);
  free(ref.theta);
  free(ref.last);
  free(ref.topic_psi);
  return status;
}
