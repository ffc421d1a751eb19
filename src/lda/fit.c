#include "lda/lda.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/search.h"
#include "lda/bound.h"
#include "lda/kernel.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* Terms are owned in whole blocks, and what is summed over terms is summed block by block,
 * so that no sum depends on the number of ranks. */
enum { TERM_BLOCK = 256 };

typedef struct fit {
  const mt_comm *comm;
  const mt_lda_options *options;
  const mt_lda_extras *extras;
  const mt_counts *counts;
  const mt_lda_kernel *kernel;
  uint32_t seed;
  int64_t K, padded, V;
  double doc_prior, term_prior;
  int threads;
  int64_t blocks, first_block, last_block; /* of terms: all, and this rank's */

  float *table; /* (V, padded) exp(E[log beta]), whole on every rank */
  double *
      lambda; /* (V, padded); this rank's terms are up to date, all after share_lambda */
  double *sums;         /* (V, padded) statistics of this rank's terms; may be lambda */
  double *totals;       /* (K) lambda summed over the terms */
  double *psi_total;    /* (K) */
  double *block_values; /* (blocks, padded) */
  float *scale;         /* (padded) exp(-psi_total) */
  float *given;         /* (documents, K) start parameters from the caller, or NULL */
  float *received; /* the ranks' statistics of this rank's terms, NULL on one rank */
  double *scores;  /* (lanes) */
  float **stats;   /* [threads] (V, padded) */
  mt_lda_room **rooms;             /* [threads] */
  size_t *block_bytes;             /* [size] */
  size_t *send_bytes, *recv_bytes; /* [size] */
  int64_t updates;
} fit;

void mt_lda_model_destroy(mt_lda_model *model)
{
  free(model->components);
  memset(model, 0, sizeof *model);
}

int64_t mt_lda_lanes(int64_t n_stored, int64_t n_terms)
{
  int64_t least = 65536; /* counts a lane should have: adding it up costs V rows */
  if (4 * n_terms > least) least = 4 * n_terms;
  return n_stored / least > 1 ? n_stored / least : 1;
}

int64_t mt_lda_lane_first(const int64_t *indptr, int64_t first, int64_t last,
                          int64_t lanes, int64_t lane)
{
  int64_t from = indptr[first], stored = indptr[last] - from;
  int64_t want = from + stored / lanes * lane + stored % lanes * lane / lanes;
  if (lane <= 0) return first;
  if (lane >= lanes) return last;
  /* the first document that begins at `want` or later */
  return first + mt_lower_bound(last - first, indptr + first, want);
}

static int64_t term_of_block(const fit *f, int64_t block)
{
  return block * TERM_BLOCK < f->V ? block * TERM_BLOCK : f->V;
}

/* First term of a rank's slice. */
static int64_t slice_first(const fit *f, int rank)
{
  return term_of_block(f, mt_part_first(f->blocks, f->comm->size, rank));
}

/* Every rank's slice of an array of (V, padded) elements of `size` bytes, to all. */
static mt_status share_terms(const fit *f, size_t size, void *array)
{
  if (f->comm->size == 1) return MT_OK;
  for (int r = 0; r < f->comm->size; r++)
    f->block_bytes[r] =
        (size_t)((slice_first(f, r + 1) - slice_first(f, r)) * f->padded) * size;
  return mt_allgatherv(f->comm, f->block_bytes, array);
}

/* Likewise of an array of (blocks, width) doubles. */
static mt_status share_blocks(const fit *f, int64_t width, double *array)
{
  if (f->comm->size == 1) return MT_OK;
  return mt_allgather_rows(f->comm, f->blocks, (size_t)width * sizeof *array, array);
}

/* ---- topics ---- */

/* From this rank's rows of lambda: the topics' totals, then the table on every rank. */
static mt_status expect_topics(fit *f)
{
  mt_status status = MT_OK;
  MT_TRY(share_blocks(f, f->padded, f->block_values));
  for (int64_t k = 0; k < f->K; k++) {
    f->totals[k] = 0.0;
    for (int64_t b = 0; b < f->blocks; b++)
      f->totals[k] += f->block_values[b * f->padded + k];
    f->psi_total[k] = mt_lda_psi(f->totals[k]);
    f->scale[k] = (float)exp(-f->psi_total[k]);
  }
#pragma omp parallel for schedule(static)
  for (int64_t b = f->first_block; b < f->last_block; b++) {
    int64_t at = term_of_block(f, b), rows = term_of_block(f, b + 1) - at;
    f->kernel->expect(rows, f->padded, f->lambda + at * f->padded, f->scale,
                      f->table + at * f->padded);
  }
  MT_TRY(share_terms(f, sizeof *f->table, f->table));
done:
  return status;
}

/* block_values[b]: the sums of a block's rows of lambda. */
static void sum_block(fit *f, int64_t block)
{
  double *sum = f->block_values + block * f->padded;
  for (int64_t k = 0; k < f->padded; k++) sum[k] = 0.0;
  for (int64_t w = term_of_block(f, block); w < term_of_block(f, block + 1); w++)
    for (int64_t k = 0; k < f->padded; k++) sum[k] += f->lambda[w * f->padded + k];
}

static void start_block(fit *f, int64_t block, float *drawn)
{
  int64_t at = term_of_block(f, block), rows = term_of_block(f, block + 1) - at;
  const double *given = f->extras->components;
  for (int64_t k = 0; k < f->padded; k++) {
    if (k < f->K && given == NULL)
      f->kernel->gamma(f->seed, MT_STREAM_LDA_COMPONENTS, (uint64_t)(k * f->V + at), 0,
                       rows, drawn);
    for (int64_t i = 0; i < rows; i++)
      f->lambda[(at + i) * f->padded + k] = k >= f->K       ? f->term_prior
                                            : given != NULL ? given[k * f->V + at + i]
                                                            : drawn[i];
  }
  sum_block(f, block);
}

static mt_status start_topics(fit *f)
{
  mt_status status = MT_OK;
  float *drawn = NULL;
  MT_TRY(mt_agree(f->comm, mt_memory_new(TERM_BLOCK * omp_get_max_threads(),
                                         sizeof *drawn, "start", (void **)&drawn)));
#pragma omp parallel for schedule(static)
  for (int64_t b = f->first_block; b < f->last_block; b++)
    start_block(f, b, drawn + TERM_BLOCK * omp_get_thread_num());
  MT_TRY(expect_topics(f));
done:
  free(drawn);
  return status;
}

/* lambda from the sums: weight 1 and ratio 1 are the batch update. */
static mt_status update_topics(fit *f, double weight, double ratio)
{
#pragma omp parallel for schedule(static)
  for (int64_t b = f->first_block; b < f->last_block; b++) {
    int64_t at = term_of_block(f, b), rows = term_of_block(f, b + 1) - at;
    mt_lda_update update = {.prior = f->term_prior, .weight = weight, .ratio = ratio};
    f->kernel->update(rows, f->padded, &update, f->sums + at * f->padded,
                      f->table + at * f->padded, f->lambda + at * f->padded,
                      f->block_values + b * f->padded);
  }
  return expect_topics(f);
}

/* ---- documents ---- */

static bool poll(const fit *f)
{
  return f->extras->poll != NULL && f->extras->poll(f->extras->poll_context);
}

/* Adds a lane's rows [first, first + rows) of statistics to the sums, which begin with lane
 * 0's, and clears them for the next lane. */
static void add_rows(fit *f, int64_t lane, int64_t first, int64_t rows, float *stats)
{
  double *sums = f->sums + first * f->padded;
#pragma omp parallel for schedule(static)
  for (int64_t w = 0; w < rows; w++) {
    double *sum = sums + w * f->padded;
    float *row = stats + w * f->padded;
    if (lane == 0)
      for (int64_t k = 0; k < f->padded; k++) sum[k] = row[k];
    else
      for (int64_t k = 0; k < f->padded; k++) sum[k] += row[k];
    memset(row, 0, (size_t)f->padded * sizeof *row);
  }
}

/* Lane base + r is rank r's, for base + r < lanes: each rank adds up its terms, in order. */
static mt_status add_lanes(fit *f, int64_t base, int64_t lanes, float *stats)
{
  mt_status status = MT_OK;
  const mt_comm *comm = f->comm;
  int64_t first = slice_first(f, comm->rank),
          rows = slice_first(f, comm->rank + 1) - first;
  if (base >= lanes) goto done;
  if (comm->size == 1) {
    add_rows(f, base, 0, f->V, stats);
    goto done;
  }
  for (int r = 0; r < comm->size; r++) {
    int64_t theirs = slice_first(f, r + 1) - slice_first(f, r);
    f->send_bytes[r] = base + comm->rank < lanes ? (size_t)(theirs * f->padded) * 4 : 0;
    f->recv_bytes[r] = base + r < lanes ? (size_t)(rows * f->padded) * 4 : 0;
  }
  MT_TRY(mt_alltoallv(comm, f->send_bytes, stats, f->recv_bytes, f->received));
  memset(stats, 0, (size_t)(f->V * f->padded) * sizeof *stats);
  for (int r = 0; r < comm->size && base + r < lanes; r++)
    add_rows(f, base + r, first, rows, f->received + rows * f->padded * r);
done:
  return status;
}

/* One lane by one thread. */
static bool work_lane(fit *f, const mt_lda_pass *pass, mt_lda_lane *lane, int thread)
{
  if (thread == 0) {
    lane->poll = f->extras->poll;
    lane->context = f->extras->poll_context;
  }
  f->kernel->documents(pass, f->rooms[thread], lane);
  return lane->gave_up;
}

/**
 * All documents [first, last), in rounds of a lane for each thread of each rank. Lane
 * (round x threads + thread) x ranks + rank.
 * with_stats  leave the statistics of this rank's terms in f->sums
 * score       the documents' part of the bound, if pass->lambda is there
 */
static mt_status work_documents(fit *f, const mt_lda_pass *pass, int64_t first,
                                int64_t last, bool with_stats, double *score)
{
  mt_status status = MT_OK;
  const int64_t *indptr = f->counts->indptr;
  int64_t lanes = mt_lda_lanes(indptr[last] - indptr[first], f->V);
  int64_t ranks = f->comm->size, rank = f->comm->rank, updates = 0;
  for (int64_t l = 0; l < lanes; l++) f->scores[l] = 0.0;
  for (int64_t base = 0; base < lanes; base += ranks * f->threads) {
    bool dropped = false;
#pragma omp parallel for schedule(static, 1) reduction(|| : dropped) reduction(+ : updates)
    for (int t = 0; t < f->threads; t++) {
      int64_t l = base + t * ranks + rank;
      if (l >= lanes) continue;
      mt_lda_lane lane = {.first = mt_lda_lane_first(indptr, first, last, lanes, l),
                          .last = mt_lda_lane_first(indptr, first, last, lanes, l + 1),
                          .stats = with_stats ? f->stats[t] : NULL};
      dropped = work_lane(f, pass, &lane, t) || dropped;
      f->scores[l] = lane.score;
      updates += lane.updates;
    }
    MT_TRY(mt_agree(f->comm, dropped || poll(f) ? MT_STOPPED : MT_OK));
    for (int t = 0; t < f->threads && with_stats; t++)
      MT_TRY(add_lanes(f, base + t * ranks, lanes, f->stats[t]));
  }
  if (with_stats) f->updates += updates;
  /* A lane's score is on one rank and all bits 0 on the others. */
  MT_TRY(mt_sum_i64(f->comm, lanes, (int64_t *)(void *)f->scores));
  *score = 0.0;
  for (int64_t l = 0; l < lanes; l++) *score += f->scores[l];
done:
  return status;
}

/* The caller's starting parameters of all documents in a pass. */
static mt_status ask_documents(fit *f, int64_t pass)
{
  mt_status status = MT_OK;
  double *gamma = NULL;
  if (f->extras->document == NULL) goto done;
  MT_NEW(gamma, f->K);
  for (int64_t d = 0; d < f->counts->n_documents; d++) {
    f->extras->document(f->extras->document_context, pass, d, gamma);
    for (int64_t k = 0; k < f->K; k++) f->given[d * f->K + k] = (float)gamma[k];
  }
done:
  free(gamma);
  return status;
}

static mt_lda_pass pass_of(const fit *f, int64_t number)
{
  return (mt_lda_pass){.n_components = f->K,
                       .padded = f->padded,
                       .indptr = f->counts->indptr,
                       .indices = f->counts->indices,
                       .data = f->counts->data,
                       .table = f->table,
                       .prior = f->doc_prior,
                       .tolerance = f->options->mean_change_tol,
                       .max_steps = f->options->max_doc_update_iter,
                       .seed = f->seed,
                       .pass = (uint32_t)number + 1,
                       .given = f->given};
}

/* One pass over the documents; *batch counts the online updates so far. */
static mt_status one_pass(fit *f, int64_t number, int64_t *batch)
{
  mt_status status = MT_OK;
  const mt_lda_options *o = f->options;
  int64_t n = f->counts->n_documents;
  mt_lda_pass pass = pass_of(f, number);
  double score;
  MT_TRY(mt_agree(f->comm, ask_documents(f, number)));
  if (o->learning_method == MT_LEARNING_BATCH) {
    MT_TRY(work_documents(f, &pass, 0, n, true, &score));
    MT_TRY(update_topics(f, 1.0, 1.0));
    goto done;
  }
  for (int64_t first = 0; first < n; first += o->batch_size) {
    int64_t last = n - first > o->batch_size ? first + o->batch_size : n;
    double weight = pow(o->learning_offset + (double)++*batch, -o->learning_decay);
    MT_TRY(work_documents(f, &pass, first, last, true, &score));
    MT_TRY(update_topics(f, weight, (double)n / (double)(last - first)));
  }
done:
  return status;
}

/* The bound and the perplexity of the model as it is now, documents starting from ones. */
static mt_status judge(fit *f, mt_lda_model *model)
{
  mt_status status = MT_OK;
  mt_lda_pass pass = pass_of(f, 0);
  const mt_counts *c = f->counts;
  double score = 0.0, words = 0.0;
  MT_TRY(share_terms(f, sizeof *f->lambda, f->lambda));
  pass.start_ones = true;
  pass.lambda = f->lambda;
  pass.psi_total = f->psi_total;
  MT_TRY(work_documents(f, &pass, 0, c->n_documents, false, &score));
#pragma omp parallel for schedule(static)
  for (int64_t b = f->first_block; b < f->last_block; b++) {
    int64_t at = term_of_block(f, b), rows = term_of_block(f, b + 1) - at;
    f->block_values[b] = mt_lda_terms_score(rows, f->K, f->padded, f->term_prior,
                                            f->lambda + at * f->padded, f->psi_total);
  }
  MT_TRY(share_blocks(f, 1, f->block_values));
  for (int64_t b = 0; b < f->blocks; b++) score += f->block_values[b];
  score += mt_lda_topics_score(f->K, f->V, f->term_prior, f->totals);
  for (int64_t i = 0; i < c->indptr[c->n_documents]; i++) words += c->data[i];
  MT_TRY(mt_bcast(f->comm, 0, sizeof score,
                  &score)); /* processors may differ in a last bit */
  model->bound = score;
  model->perplexity = words > 0.0 ? exp(-score / words) : 1.0;
done:
  return status;
}

static mt_status all_passes(fit *f, mt_lda_model *model)
{
  mt_status status = MT_OK;
  const mt_lda_options *o = f->options;
  double previous = 0.0;
  int64_t batch = 0;
  MT_TRY(start_topics(f));
  for (int64_t pass = 0; pass < o->max_iter; pass++) {
    MT_TRY(one_pass(f, pass, &batch));
    if (o->evaluate_every > 0 && (pass + 1) % o->evaluate_every == 0) {
      MT_TRY(judge(f, model));
      if (previous > 0.0 && fabs(previous - model->perplexity) < o->perp_tol) break;
      previous = model->perplexity;
    }
    model->n_iter++;
  }
  MT_TRY(judge(f, model));
  MT_TRY(mt_sum_i64(f->comm, 1, &f->updates));
  model->updates = f->updates;
done:
  return status;
}

static mt_status copy_components(const fit *f, mt_lda_model *model)
{
  mt_status status = MT_OK;
  MT_NEW(model->components, f->K * f->V);
  for (int64_t w = 0; w < f->V; w++)
    for (int64_t k = 0; k < f->K; k++)
      model->components[k * f->V + w] = f->lambda[w * f->padded + k];
done:
  return status;
}

/* ---- the whole fit ---- */

static int64_t longest_document(const mt_counts *c)
{
  int64_t longest = 0;
  for (int64_t d = 0; d < c->n_documents; d++)
    if (c->indptr[d + 1] - c->indptr[d] > longest)
      longest = c->indptr[d + 1] - c->indptr[d];
  return longest;
}

static mt_status check(const fit *f)
{
  if (f->K < 1 || f->V < 1)
    return mt_fail(MT_ERR_ARG, "%lld topics of %lld terms", (long long)f->K,
                   (long long)f->V);
  if (f->kernel == NULL)
    return mt_fail(MT_ERR_ARG, "no LDA kernel \"%s\" on this processor",
                   f->extras->kernel);
  return MT_OK;
}

static mt_status allocate(fit *f, int64_t lanes)
{
  mt_status status = MT_OK;
  int64_t size = f->comm->size, most = slice_first(f, 1) - slice_first(f, 0);
  MT_NEW(f->table, f->V * f->padded);
  MT_NEW(f->lambda, f->V * f->padded);
  if (f->options->learning_method != MT_LEARNING_BATCH)
    MT_NEW(f->sums, f->V * f->padded);
  else
    f->sums =
        f->lambda; /* which nothing reads between the passes' sums and the update */
  MT_NEW(f->totals, f->K);
  MT_NEW(f->psi_total, f->K);
  MT_NEW(f->block_values, f->blocks * f->padded);
  MT_NEW(f->scale, f->padded);
  MT_NEW(f->scores, lanes);
  MT_NEW(f->block_bytes, size);
  MT_NEW(f->send_bytes, size);
  MT_NEW(f->recv_bytes, size);
  if (size > 1) MT_NEW(f->received, size * most * f->padded);
  if (f->extras->document != NULL) MT_NEW(f->given, f->counts->n_documents * f->K);
  MT_NEW(f->stats, f->threads);
  MT_NEW(f->rooms, f->threads);
  for (int t = 0; t < f->threads; t++) {
    MT_NEW(f->stats[t], f->V * f->padded);
    MT_TRY(mt_lda_room_new(f->K, longest_document(f->counts), &f->rooms[t]));
  }
done:
  return status;
}

static void release(fit *f)
{
  for (int t = 0; t < f->threads; t++) {
    if (f->stats != NULL) free(f->stats[t]);
    if (f->rooms != NULL) mt_lda_room_free(f->rooms[t]);
  }
  free(f->stats);
  free(f->rooms);
  free(f->table);
  if (f->sums != f->lambda) free(f->sums);
  free(f->lambda);
  free(f->totals);
  free(f->psi_total);
  free(f->block_values);
  free(f->scale);
  free(f->scores);
  free(f->block_bytes);
  free(f->send_bytes);
  free(f->recv_bytes);
  free(f->received);
  free(f->given);
}

mt_status mt_lda_fit(const mt_comm *comm, const mt_lda_options *options, int64_t seed,
                     const mt_counts *counts, const mt_lda_extras *extras,
                     mt_lda_model *model_out)
{
  mt_status status = MT_OK;
  static const mt_lda_extras none;
  int64_t K = options->n_components, V = counts->n_terms;
  int64_t lanes = mt_lda_lanes(counts->indptr[counts->n_documents], V);
  int64_t threads =
      (lanes + comm->size - 1) / comm->size; /* a lane each, if there are so many */
  double even = 1.0 / (double)K;
  mt_lda_model model = {.n_components = K, .n_terms = V};
  fit f = {.comm = comm,
           .options = options,
           .extras = extras != NULL ? extras : &none,
           .counts = counts,
           .seed = (uint32_t)seed,
           .K = K,
           .V = V,
           .padded = (K + MT_LDA_LANES - 1) / MT_LDA_LANES * MT_LDA_LANES,
           .doc_prior = options->doc_topic_prior > 0 ? options->doc_topic_prior : even,
           .term_prior =
               options->topic_word_prior > 0 ? options->topic_word_prior : even,
           .blocks = (V + TERM_BLOCK - 1) / TERM_BLOCK};
  f.kernel = mt_lda_kernel_find(f.extras->kernel);
  f.first_block = mt_part_first(f.blocks, comm->size, comm->rank);
  f.last_block = mt_part_first(f.blocks, comm->size, comm->rank + 1);

  if (omp_get_max_threads() < threads) threads = omp_get_max_threads();
  MT_TRY(mt_agree(comm, check(&f)));
  MT_TRY(mt_min_i64(comm, 1, &threads)); /* rounds are of as many lanes on every rank */
  f.threads = (int)threads;
  MT_TRY(mt_agree(comm, allocate(&f, lanes)));
  MT_TRY(all_passes(&f, &model));
  MT_TRY(mt_agree(comm, copy_components(&f, &model)));
  *model_out = model;
  memset(&model, 0, sizeof model);
done:
  mt_lda_model_destroy(&model);
  release(&f);
  return status;
}

void mt_lda_normalize(const mt_lda_model *model, float *rows_out)
{
  for (int64_t k = 0; k < model->n_components; k++) {
    const double *row = model->components + k * model->n_terms;
    double sum = 0.0;
    for (int64_t w = 0; w < model->n_terms; w++) sum += row[w];
    for (int64_t w = 0; w < model->n_terms; w++)
      rows_out[k * model->n_terms + w] = (float)(row[w] / sum);
  }
}
