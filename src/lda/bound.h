/* The parts of the variational bound, in double, as scikit-learn's _approx_bound adds
 * them up (Hoffman, Blei, Bach 2010). Not collective; they cannot fail. */
#ifndef MT_LDA_BOUND_H
#define MT_LDA_BOUND_H
#include <stdint.h>

/* psi(x) and log(gamma(x)), x > 0; psi as scikit-learn's (absolute error 3e-9). */
double mt_lda_psi(double x);
double mt_lda_log_gamma(double x);

/* psi of the sum of a document's topic parameters gamma (K). */
double mt_lda_psi_total(int64_t n_components, const float *gamma);

/* log(sum over topics of exp(psi(gamma) + psi(lambda) - psi_total)), for one term. */
double mt_lda_word_log(int64_t n_components, const float *gamma, const double *lambda,
                       const double *psi_total);

/* E[log p(theta | prior) - log q(theta | gamma)] of one document. */
double mt_lda_document_score(int64_t n_components, double prior, const float *gamma);

/* The same of the topics' terms for rows of lambda (rows, padded), without the parts that
 * only depend on a topic's total: mt_lda_topic_score. psi_total (K). */
double mt_lda_terms_score(int64_t rows, int64_t n_components, int64_t padded,
                          double prior, const double *lambda, const double *psi_total);

/* log(gamma(prior x V)) - log(gamma(total)), summed over the topics. */
double mt_lda_topics_score(int64_t n_components, int64_t n_terms, double prior,
                           const double *total);

#endif
