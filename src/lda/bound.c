#include "lda/bound.h"

#include <math.h>

/* Bernardo 1976 (AS 103), the constants that scikit-learn uses. */
double mt_lda_psi(double x)
{
  double result = 0.0;
  if (x <= 1e-6) return -0.577215664901532860606512090082402431 - 1.0 / x;
  for (; x < 6.0; x += 1.0) result -= 1.0 / x;
  double r = 1.0 / x, q = r * r;
  result += log(x) - 0.5 * r;
  return result - q * (1.0 / 12.0 - q * (1.0 / 120.0 - q * (1.0 / 252.0)));
}

double mt_lda_log_gamma(double x)
{
  int sign; /* lgamma itself writes a global */
  return lgamma_r(x, &sign);
}

static double sum_of(int64_t n, const float *values)
{
  double sum = 0.0;
  for (int64_t i = 0; i < n; i++) sum += values[i];
  return sum;
}

double mt_lda_psi_total(int64_t n_components, const float *gamma)
{
  return mt_lda_psi(sum_of(n_components, gamma));
}

double mt_lda_word_log(int64_t n_components, const float *gamma, const double *lambda,
                       const double *psi_total)
{
  double most = -INFINITY, sum = 0.0;
  for (int64_t k = 0; k < n_components; k++)
    most = fmax(most, mt_lda_psi(gamma[k]) + mt_lda_psi(lambda[k]) - psi_total[k]);
  for (int64_t k = 0; k < n_components; k++)
    sum += exp(mt_lda_psi(gamma[k]) + mt_lda_psi(lambda[k]) - psi_total[k] - most);
  return most + log(sum);
}

double mt_lda_document_score(int64_t n_components, double prior, const float *gamma)
{
  double K = (double)n_components, total = sum_of(n_components, gamma);
  double shift = mt_lda_psi(total);
  double prior_log = mt_lda_log_gamma(prior);
  double score = mt_lda_log_gamma(prior * K) - mt_lda_log_gamma(total);
  for (int64_t k = 0; k < n_components; k++) {
    if (gamma[k] == (float)prior)
      continue; /* a topic that the document does not have */
    score += (prior - gamma[k]) * (mt_lda_psi(gamma[k]) - shift) +
             mt_lda_log_gamma(gamma[k]) - prior_log;
  }
  return score;
}

double mt_lda_terms_score(int64_t rows, int64_t n_components, int64_t padded,
                          double prior, const double *lambda, const double *psi_total)
{
  double score = 0.0, prior_log = mt_lda_log_gamma(prior);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < n_components; k++) {
      double value = lambda[i * padded + k];
      if (value == prior) continue; /* a term that no document has adds nothing */
      score += (prior - value) * (mt_lda_psi(value) - psi_total[k]) +
               mt_lda_log_gamma(value) - prior_log;
    }
  return score;
}

double mt_lda_topics_score(int64_t n_components, int64_t n_terms, double prior,
                           const double *total)
{
  double score = 0.0, whole = mt_lda_log_gamma(prior * (double)n_terms);
  for (int64_t k = 0; k < n_components; k++)
    score += whole - mt_lda_log_gamma(total[k]);
  return score;
}
