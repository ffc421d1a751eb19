/* Each rank computes its rows' strengths, sends every one to the owner of the other end,
 * and merges what it has with what it gets. */
#include "backend/backend.h"
#include "base/memory.h"
#include "umap/formulas.h"
#include "umap/umap.h"

#include <stdlib.h>

/* One direction of an edge, or both once they have met. */
typedef struct {
  int64_t row, column;
  float there, back; /* strength from row to column, from column to row; 0: none */
} mt_link;

mt_status mt_umap_check_neighbors(int64_t n, int64_t k, int64_t first, int64_t local,
                                  const int64_t *indices, const float *distances)
{
  for (int64_t at = 0; at < local * k; at++) {
    long long i = first + at / k, j = indices[at];
    if (j < 0 || j >= n || j == i)
      return mt_fail(MT_ERR_INPUT,
                     "row %lld has row %lld as a neighbour: allowed are 0 to "
                     "%lld without the row itself",
                     i, j, (long long)n - 1);
    if (!(distances[at] >= 0.0f && distances[at] <= FLT_MAX))
      return mt_fail(MT_ERR_INPUT,
                     "row %lld is at distance %g from row %lld: it must be 0 "
                     "or more and finite",
                     i, (double)distances[at], j);
  }
  return MT_OK;
}

/* Mean over all ranks, each point's own 0 counted. */
static mt_status mean_distance(const mt_comm *comm, int64_t n, int64_t k, int64_t local,
                               const float *distances, double *mean_out)
{
  mt_status status = MT_OK;
  double largest = 0.0;
  int64_t sum = 0;
  for (int64_t at = 0; at < local * k; at++)
    if (distances[at] > largest) largest = distances[at];
  MT_TRY(mt_max_f64(comm, 1, &largest));
  double units = mt_umap_units(n, k);
  for (int64_t at = 0; at < local * k && largest > 0.0; at++)
    sum += mt_umap_in_units(distances[at], largest, units);
  MT_TRY(mt_sum_i64(comm, 1, &sum));
  *mean_out = mt_umap_mean(n, k, sum, largest, units);
done:
  return status;
}

static void compute_strengths(double local_connectivity, double mean, int64_t k,
                              int64_t local, const float *distances, float *strengths)
{
  double target = log2((double)(k + 1));
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < local; i++) {
    const float *own = distances + i * k;
    float rho = mt_umap_rho(k, own, local_connectivity);
    float sigma = mt_umap_sigma(k, own, rho, target, mean);
    for (int64_t j = 0; j < k; j++)
      strengths[i * k + j] = mt_umap_membership(own[j], rho, sigma);
  }
}

/* Every link turned round, in the order of the ranks that own their other ends.
 * bytes_out (size), links_out: owned by the caller. */
static mt_status address_links(const mt_comm *comm, int64_t n, int64_t k,
                               const int64_t *indices, const float *strengths,
                               size_t *bytes_out, mt_link **links_out)
{
  mt_status status = MT_OK;
  int64_t first = mt_part_first(n, comm->size, comm->rank);
  int64_t count = mt_part_count(n, comm->size, comm->rank) * k, *at = NULL;
  mt_link *links = NULL;

  MT_NEW(at, comm->size + 1);
  MT_NEW(links, count);
  for (int64_t e = 0; e < count; e++)
    at[mt_part_owner(n, comm->size, indices[e]) + 1]++;
  for (int r = 0; r < comm->size; r++) {
    bytes_out[r] = (size_t)at[r + 1] * sizeof *links;
    at[r + 1] += at[r];
  }
  for (int64_t e = 0; e < count; e++)
    links[at[mt_part_owner(n, comm->size, indices[e])]++] =
        (mt_link){.row = indices[e], .column = first + e / k, .back = strengths[e]};
  *links_out = links;
  links = NULL;
done:
  free(at);
  free(links);
  return status;
}

/* The links that end in this rank's rows. received_out: owned by the caller. */
static mt_status exchange_links(const mt_comm *comm, int64_t n, int64_t k,
                                const int64_t *indices, const float *strengths,
                                mt_link **received_out, int64_t *count_out)
{
  mt_status status = MT_OK;
  size_t *send_bytes = NULL, *recv_bytes, total = 0;
  mt_link *send = NULL, *received = NULL;

  MT_TRY(mt_agree(comm, mt_memory_new(2 * (int64_t)comm->size, sizeof *send_bytes,
                                      "message sizes", (void **)&send_bytes)));
  recv_bytes = send_bytes + comm->size;
  MT_TRY(
      mt_agree(comm, address_links(comm, n, k, indices, strengths, send_bytes, &send)));
  MT_TRY(mt_alltoall_sizes(comm, send_bytes, recv_bytes));
  for (int r = 0; r < comm->size; r++) total += recv_bytes[r];
  MT_TRY(mt_agree(comm, mt_memory_new((int64_t)total, 1, "links", (void **)&received)));
  MT_TRY(mt_alltoallv(comm, send_bytes, send, recv_bytes, received));
  *received_out = received;
  *count_out = (int64_t)(total / sizeof *received);
  received = NULL;
done:
  free(received);
  free(send_bytes);
  free(send);
  return status;
}

static int by_column(const void *a, const void *b)
{
  int64_t p = ((const mt_link *)a)->column, q = ((const mt_link *)b)->column;
  return (p > q) - (p < q);
}

/* A row's links by column, the two directions of an edge made one, whose weight is then in
 * `there`. Returns how many. */
static int64_t merge_row(float mix_ratio, int64_t count, mt_link *links)
{
  int64_t merged = 0, kept = 0;
  qsort(links, (size_t)count, sizeof *links, by_column);
  for (int64_t e = 0; e < count; e++) {
    if (merged == 0 || links[merged - 1].column != links[e].column) {
      links[merged++] = links[e];
    } else {
      links[merged - 1].there += links[e].there; /* one of the two is 0 */
      links[merged - 1].back += links[e].back;
    }
  }
  for (int64_t e = 0; e < merged; e++) {
    links[kept] = links[e];
    links[kept].there = mt_umap_union(links[e].there, links[e].back, mix_ratio);
    kept += links[kept].there > 0.0f;
  }
  return kept;
}

/* Own and received links, row by row. row_at: (local + 1) where each row begins. */
static mt_status group_links(const mt_graph *graph, int64_t k, const int64_t *indices,
                             const float *strengths, int64_t n_received,
                             const mt_link *received, int64_t **row_at_out,
                             mt_link **links_out)
{
  mt_status status = MT_OK;
  int64_t *row_at = NULL;
  mt_link *links = NULL;

  MT_NEW(row_at,
         graph->local + 2); /* filling moves each row's begin to the next one's */
  MT_NEW(links, graph->local * k + n_received);
  for (int64_t i = 0; i < graph->local; i++) row_at[i + 2] = k;
  for (int64_t e = 0; e < n_received; e++) row_at[received[e].row - graph->first + 2]++;
  for (int64_t i = 0; i < graph->local; i++) row_at[i + 2] += row_at[i + 1];
  for (int64_t e = 0; e < graph->local * k; e++)
    links[row_at[e / k + 1]++] = (mt_link){
        .row = graph->first + e / k, .column = indices[e], .there = strengths[e]};
  for (int64_t e = 0; e < n_received; e++)
    links[row_at[received[e].row - graph->first + 1]++] = received[e];
  *row_at_out = row_at;
  *links_out = links;
  row_at = NULL;
  links = NULL;
done:
  free(row_at);
  free(links);
  return status;
}

/* CSR of the merged links. */
static mt_status fill_graph(float mix_ratio, const int64_t *row_at, mt_link *links,
                            mt_graph *graph)
{
  mt_status status = MT_OK;

  MT_NEW(graph->indptr, graph->local + 1);
#pragma omp parallel for schedule(dynamic, 256)
  for (int64_t i = 0; i < graph->local; i++)
    graph->indptr[i + 1] =
        merge_row(mix_ratio, row_at[i + 1] - row_at[i], links + row_at[i]);
  for (int64_t i = 0; i < graph->local; i++) graph->indptr[i + 1] += graph->indptr[i];
  MT_NEW(graph->indices, graph->indptr[graph->local]);
  MT_NEW(graph->weights, graph->indptr[graph->local]);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < graph->local; i++)
    for (int64_t e = graph->indptr[i]; e < graph->indptr[i + 1]; e++) {
      const mt_link *link = links + row_at[i] + (e - graph->indptr[i]);
      graph->indices[e] = link->column;
      graph->weights[e] = link->there;
    }
done:
  return status;
}

static mt_status build_rows(const mt_umap_options *options, int64_t k,
                            const int64_t *indices, const float *strengths,
                            int64_t n_received, const mt_link *received,
                            mt_graph *graph)
{
  mt_status status = MT_OK;
  int64_t *row_at = NULL;
  mt_link *links = NULL;
  MT_TRY(
      group_links(graph, k, indices, strengths, n_received, received, &row_at, &links));
  MT_TRY(fill_graph((float)options->set_op_mix_ratio, row_at, links, graph));
done:
  free(row_at);
  free(links);
  return status;
}

mt_status mt_cpu_umap_graph(mt_backend *be, const mt_comm *comm,
                            const mt_umap_options *options, int64_t n, int64_t k,
                            const int64_t *indices, const float *distances,
                            mt_graph *graph_out)
{
  mt_status status = MT_OK;
  mt_graph graph = {.n = n,
                    .first = mt_part_first(n, comm->size, comm->rank),
                    .local = mt_part_count(n, comm->size, comm->rank)};
  double mean = 0.0;
  float *strengths = NULL;
  mt_link *received = NULL;
  int64_t n_received = 0;
  (void)be;

  MT_TRY(mt_agree(comm, mt_umap_check_neighbors(n, k, graph.first, graph.local, indices,
                                                distances)));
  MT_TRY(mean_distance(comm, n, k, graph.local, distances, &mean));
  MT_TRY(mt_agree(comm, mt_memory_new(graph.local * k, sizeof *strengths, "strengths",
                                      (void **)&strengths)));
  compute_strengths(options->local_connectivity, mean, k, graph.local, distances,
                    strengths);
  MT_TRY(exchange_links(comm, n, k, indices, strengths, &received, &n_received));
  MT_TRY(mt_agree(
      comm, build_rows(options, k, indices, strengths, n_received, received, &graph)));
  *graph_out = graph;
  graph = (mt_graph){0};
done:
  mt_graph_destroy(&graph);
  free(strengths);
  free(received);
  return status;
}
