#include "corpus/vocabulary.h"
#include "base/memory.h"
#include "corpus/buffer.h"
#include "corpus/stop_words.h"

#include <string.h>

const char *mt_filter_name(mt_filter filter)
{
  static const char *const names[MT_FILTERS] = {"stop_words", "min_df", "max_df",
                                                "max_features"};
  return names[filter];
}

void mt_vocabulary_destroy(mt_vocabulary *vocabulary)
{
  mt_terms_destroy(&vocabulary->terms);
  memset(vocabulary, 0, sizeof *vocabulary);
}

/* ---- terms on their way: a head, then the bytes --------------------------------------- */

typedef struct term_head {
  int64_t df, tf, size;
} term_head;

static size_t packed_size(const mt_term_record *term)
{
  return sizeof(term_head) + (size_t)term->size;
}

static char *pack(const mt_terms *terms, const mt_term_record *term, char *to)
{
  term_head head = {term->df, term->tf, term->size};
  memcpy(to, &head, sizeof head);
  memcpy(to + sizeof head, mt_term_bytes(terms, term), (size_t)term->size);
  return to + packed_size(term);
}

/* How many terms are packed in the bytes. */
static int64_t count_packed(const char *at, size_t size)
{
  int64_t n = 0;
  for (const char *end = at + size; at < end; n++) {
    term_head head;
    memcpy(&head, at, sizeof head);
    at += sizeof head + (size_t)head.size;
  }
  return n;
}

static mt_status add_counted(mt_terms *terms, const char *bytes, term_head head)
{
  int64_t number;
  mt_status status = mt_terms_add(terms, bytes, (size_t)head.size, &number);
  if (status != MT_OK) return status;
  mt_term_record *term = mt_term_record_of(terms, number);
  term->df += head.df;
  term->tf += head.tf;
  return MT_OK;
}

static mt_status unpack(const char *at, size_t size, mt_terms *out)
{
  mt_status status = MT_OK;
  MT_TRY(mt_terms_reserve(out, count_packed(at, size)));
  for (const char *end = at + size; at < end;) {
    term_head head;
    memcpy(&head, at, sizeof head);
    MT_TRY(add_counted(out, at + sizeof head, head));
    at += sizeof head + (size_t)head.size;
  }
done:
  return status;
}

/* ---- counting: each term by its owner -------------------------------------------------- */

/* By the hash's high half: tables use the low one. */
static int owner_of(uint64_t hash, int size)
{
  return (int)((hash >> 32) % (uint64_t)size);
}

/* Those that this rank owns go over at once. */
static mt_status keep_own(const mt_terms *local, int rank, int size, mt_terms *owned)
{
  mt_status status = MT_OK;
  int64_t n = 0;
  for (const mt_term_record *term = NULL; (term = mt_terms_next(local, term)) != NULL;)
    n += owner_of(term->hash, size) == rank;
  MT_TRY(mt_terms_reserve(owned, n));
  for (const mt_term_record *term = NULL; (term = mt_terms_next(local, term)) != NULL;)
    if (owner_of(term->hash, size) == rank)
      MT_TRY(add_counted(owned, mt_term_bytes(local, term),
                         (term_head){term->df, term->tf, term->size}));
done:
  return status;
}

static mt_status pack_for_owners(const mt_terms *local, int rank, int size,
                                 size_t *bytes, char **send_out)
{
  mt_status status = MT_OK;
  char *send = NULL, **at = NULL;
  size_t total = 0;
  for (const mt_term_record *term = NULL;
       (term = mt_terms_next(local, term)) != NULL;) {
    int owner = owner_of(term->hash, size);
    if (owner != rank) bytes[owner] += packed_size(term);
  }
  for (int r = 0; r < size; r++) total += bytes[r];
  MT_TRY(mt_memory_new((int64_t)total, 1, "terms to send", (void **)&send));
  MT_NEW(at, size + 1);
  at[0] = send;
  for (int r = 0; r < size; r++) at[r + 1] = at[r] + bytes[r];
  for (const mt_term_record *term = NULL;
       (term = mt_terms_next(local, term)) != NULL;) {
    int owner = owner_of(term->hash, size);
    if (owner != rank) at[owner] = pack(local, term, at[owner]);
  }
  *send_out = send;
  send = NULL;
done:
  free(send);
  free(at);
  return status;
}

static mt_status count_owned(const mt_comm *comm, const mt_terms *local,
                             mt_terms *owned)
{
  mt_status status = MT_OK;
  size_t *send_bytes = NULL, *recv_bytes, total = 0;
  char *send = NULL, *recv = NULL;

  MT_TRY(mt_agree(comm, mt_memory_new(2 * (int64_t)comm->size, sizeof *send_bytes,
                                      "message sizes", (void **)&send_bytes)));
  recv_bytes = send_bytes + comm->size;
  MT_TRY(mt_agree(comm, keep_own(local, comm->rank, comm->size, owned)));
  MT_TRY(mt_agree(comm,
                  pack_for_owners(local, comm->rank, comm->size, send_bytes, &send)));
  MT_TRY(mt_alltoall_sizes(comm, send_bytes, recv_bytes));
  for (int r = 0; r < comm->size; r++) total += recv_bytes[r];
  MT_TRY(mt_agree(comm, mt_memory_new((int64_t)total, 1, "terms", (void **)&recv)));
  MT_TRY(mt_alltoallv(comm, send_bytes, send, recv_bytes, recv));
  MT_TRY(mt_agree(comm, unpack(recv, total, owned)));
done:
  free(send_bytes);
  free(send);
  free(recv);
  return status;
}

/* ---- filtering --------------------------------------------------------------------------- */

static double documents_of(mt_frequency frequency, int64_t n_documents)
{
  return frequency.is_share ? frequency.value * (double)n_documents : frequency.value;
}

/* What takes this term; MT_FILTERS: nothing so far. */
static mt_filter filter_of(const mt_terms *owned, const mt_term_record *term,
                           const mt_terms *stop_words, double least, double most)
{
  const char *bytes = mt_term_bytes(owned, term);
  double df = (double)term->df;
  if (mt_terms_find(stop_words, bytes, (size_t)term->size) >= 0)
    return MT_FILTER_STOP_WORDS;
  if (df < least) return MT_FILTER_MIN_DF;
  if (df > most) return MT_FILTER_MAX_DF;
  return MT_FILTERS;
}

/* The terms that this rank owns and that stay, packed. */
static mt_status filter(const mt_corpus_options *options, int64_t n_documents,
                        const mt_terms *owned, const mt_terms *stop_words,
                        int64_t removed[MT_FILTERS], mt_buffer *out)
{
  mt_status status = MT_OK;
  double least = documents_of(options->min_df, n_documents);
  double most = documents_of(options->max_df, n_documents);
  for (const mt_term_record *term = NULL;
       (term = mt_terms_next(owned, term)) != NULL;) {
    mt_filter by = filter_of(owned, term, stop_words, least, most);
    if (by < MT_FILTERS) {
      removed[by]++;
      continue;
    }
    MT_TRY(mt_buffer_reserve(out, packed_size(term)));
    out->size = pack(owned, term, out->bytes + out->size) - out->bytes;
  }
done:
  return status;
}

static mt_status gather(const mt_comm *comm, const mt_buffer *mine, mt_terms *all)
{
  mt_status status = MT_OK;
  size_t size = 0;
  void *packed = NULL;
  MT_TRY(mt_allgather_bytes(comm, (size_t)mine->size, mine->bytes, &size, &packed));
  MT_TRY(mt_agree(comm, unpack(packed, size, all)));
done:
  free(packed);
  return status;
}

/* ---- order ------------------------------------------------------------------------------- */

/* A term with what orders it, so that comparing two mostly looks no further. */
typedef struct ordered {
  int64_t tf;
  uint64_t first; /* eight bytes, the first one on top */
  const mt_term_record *term;
} ordered;

static uint64_t first_of(const mt_terms *terms, const mt_term_record *term)
{
  uint64_t first = 0;
  const char *bytes = mt_term_bytes(terms, term);
  for (int64_t i = 0; i < 8; i++)
    first = first << 8 | (i < term->size ? (unsigned char)bytes[i] : 0);
  return first;
}

static int by_term(const void *a, const void *b, void *context)
{
  const mt_terms *terms = context;
  const ordered *one = a, *other = b;
  if (one->first != other->first) return one->first < other->first ? -1 : 1;
  int64_t m = one->term->size, n = other->term->size;
  int order = memcmp(mt_term_bytes(terms, one->term), mt_term_bytes(terms, other->term),
                     (size_t)(m < n ? m : n));
  return order != 0 ? order : (m > n) - (m < n);
}

static int by_frequency(const void *a, const void *b, void *context)
{
  int64_t m = ((const ordered *)a)->tf, n = ((const ordered *)b)->tf;
  return m != n ? (m < n) - (m > n) : by_term(a, b, context);
}

static mt_status arrange(mt_terms *all, int64_t max_features, mt_vocabulary *out)
{
  mt_status status = MT_OK;
  int64_t n = 0;
  ordered *order = NULL;
  MT_NEW(order, all->n);
  for (const mt_term_record *term = NULL; (term = mt_terms_next(all, term)) != NULL;)
    order[n++] = (ordered){term->tf, first_of(all, term), term};
  if (max_features > 0 && n > max_features) {
    qsort_r(order, (size_t)n, sizeof *order, by_frequency, all);
    out->removed[MT_FILTER_MAX_FEATURES] = n - max_features;
    n = max_features;
  }
  qsort_r(order, (size_t)n, sizeof *order, by_term, all);
  MT_TRY(mt_terms_reserve(&out->terms, n));
  for (int64_t t = 0; t < n; t++) {
    const mt_term_record *term = order[t].term;
    MT_TRY(add_counted(&out->terms, mt_term_bytes(all, term),
                       (term_head){term->df, term->tf, term->size}));
  }
done:
  free(order);
  return status;
}

/* All ranks know the same here; rank 0 speaks. */
static mt_status none_left(const mt_comm *comm, const mt_vocabulary *vocabulary)
{
  const int64_t *removed = vocabulary->removed;
  if (comm->rank != 0) return MT_ERR_INPUT;
  return mt_fail(
      MT_ERR_INPUT,
      "no term is left of %lld: stop words took %lld, min_df %lld, max_df %lld; "
      "lower corpus.min_df or raise corpus.max_df",
      (long long)vocabulary->distinct, (long long)removed[MT_FILTER_STOP_WORDS],
      (long long)removed[MT_FILTER_MIN_DF], (long long)removed[MT_FILTER_MAX_DF]);
}

mt_status mt_vocabulary_build(const mt_comm *comm, const mt_corpus_options *options,
                              int64_t n_documents, const mt_terms *local,
                              mt_vocabulary *out)
{
  mt_status status = MT_OK;
  mt_terms owned = {0}, all = {0}, stop_words = {0};
  mt_vocabulary vocabulary = {0};
  mt_buffer mine = {0};

  MT_TRY(mt_stop_words_load(comm, options, &stop_words));
  MT_TRY(count_owned(comm, local, &owned));
  vocabulary.distinct = owned.n;
  MT_TRY(mt_agree(comm, filter(options, n_documents, &owned, &stop_words,
                               vocabulary.removed, &mine)));
  MT_TRY(mt_sum_i64(comm, 1, &vocabulary.distinct));
  MT_TRY(mt_sum_i64(comm, MT_FILTERS, vocabulary.removed));
  MT_TRY(gather(comm, &mine, &all));
  if (all.n == 0) MT_TRY(none_left(comm, &vocabulary));
  MT_TRY(mt_agree(comm, arrange(&all, options->max_features, &vocabulary)));
  *out = vocabulary;
  memset(&vocabulary, 0, sizeof vocabulary);
done:
  mt_vocabulary_destroy(&vocabulary);
  mt_terms_destroy(&owned);
  mt_terms_destroy(&all);
  mt_terms_destroy(&stop_words);
  mt_buffer_destroy(&mine);
  return status;
}
