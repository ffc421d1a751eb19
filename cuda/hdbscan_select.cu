#include "hdbscan_condense.h"

extern "C" {
#include "hdbscan/select.h"
}

/* What mt_selection wants measured, by cluster, on the device. */
typedef struct measures {
  int64_t n;
  mt_array<int64_t> parent, size;
  mt_array<double> birth, death, stability;
  mt_array<uint8_t> has_children;
  mt_array<uint64_t> last_point; /* (1) bits of the lambda */
} measures;

static mt_status measures_create(mt_gpu *gpu, int64_t n, measures *m)
{
  m->n = n;
  MT_PASS(m->parent.make_zeroed(gpu, n, "clusters"));
  MT_PASS(m->size.make_zeroed(gpu, n, "clusters"));
  MT_PASS(m->birth.make_zeroed(gpu, n, "clusters"));
  MT_PASS(m->death.make(gpu, n, "clusters"));
  MT_PASS(m->stability.make(gpu, n, "clusters"));
  MT_PASS(m->has_children.make_zeroed(gpu, n, "clusters"));
  return m->last_point.make_zeroed(gpu, 1, "clusters");
}

/* All that does not depend on the order of the rows. */
static mt_status look_at_rows(mt_gpu *gpu, const mt_condensed_rows *rows, measures *m)
{
  const int64_t n = rows->n, *parents = rows->parent.data, *children = rows->child.data,
                *sizes = rows->size.data;
  const double *lambdas = rows->lambda.data;
  int64_t *parent = m->parent.data, *size = m->size.data;
  double *birth = m->birth.data;
  uint8_t *has_children = m->has_children.data;
  uint64_t *last_point = m->last_point.data;
  return mt_gpu_each(gpu, rows->n_rows, [=] __device__(int64_t row) {
    int64_t above = parents[row] - n, c = children[row] - n;
    if (c < 0) {
      uint64_t bits = mt_bits_of(lambdas[row]);
      if (bits > *(volatile uint64_t *)last_point)
        atomicMax((unsigned long long *)last_point, (unsigned long long)bits);
      return;
    }
    parent[c] = above;
    birth[c] = lambdas[row];
    size[c] = sizes[row];
    has_children[above] = 1;
    if (above == 0)
      atomicAdd((unsigned long long *)size, (unsigned long long)sizes[row]);
  });
}

/* A warp adds up a cluster's rows, one after the other as the CPU backend does; 0s behind the
 * last change nothing. */
static __global__ void sum_clusters(int64_t n_clusters, int64_t n_rows,
                                    const uint32_t *first, const double *mass,
                                    const double *lambda, double *stability_out,
                                    double *death_out)
{
  int64_t cluster = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
  int lane = (int)threadIdx.x % 32;
  if (cluster >= n_clusters) return;
  int64_t at = first[cluster] + lane,
          end = cluster + 1 < n_clusters ? first[cluster + 1] : n_rows;
  double sum = 0.0, most = 0.0, next = at < end ? mass[at] : 0.0;
  for (int64_t begin = at - lane; begin < end; begin += 32, at += 32) {
    double own = next;
    next = at + 32 < end ? mass[at + 32] : 0.0;
    if (at < end && lambda[at] > most) most = lambda[at];
    for (int j = 0; j < 32; j++) sum += __shfl_sync(0xffffffffu, own, j);
  }
  for (int off = 16; off > 0; off /= 2) {
    double other = __shfl_xor_sync(0xffffffffu, most, off);
    most = other > most ? other : most;
  }
  if (lane != 0) return;
  stability_out[cluster] = sum;
  death_out[cluster] = most;
}

/* Rows by cluster, each one's in their order: where they begin, and what they add. */
static mt_status sort_rows(mt_gpu *gpu, const mt_condensed_rows *rows,
                           const measures *m, uint32_t *first, double *mass,
                           double *lambda)
{
  int64_t n = rows->n, n_rows = rows->n_rows;
  mt_array<uint32_t> keys, numbers;
  MT_PASS(keys.make(gpu, n_rows, "clusters"));
  MT_PASS(numbers.make(gpu, n_rows, "clusters"));
  uint32_t *key = keys.data, *number = numbers.data;
  const int64_t *parent = rows->parent.data, *size = rows->size.data;
  const double *lambda_of = rows->lambda.data, *birth = m->birth.data;
  int bits = 1;
  while (m->n >> bits != 0) bits++;
  MT_PASS(mt_gpu_each(gpu, n_rows, [=] __device__(int64_t row) {
    key[row] = (uint32_t)(parent[row] - n);
    number[row] = (uint32_t)row;
  }));
  MT_PASS(mt_gpu_sort_pairs(gpu, n_rows, key, number, 0, bits));
  return mt_gpu_each(gpu, n_rows, [=] __device__(int64_t i) {
    uint32_t row = number[i], cluster = key[i];
    lambda[i] = lambda_of[row];
    mass[i] = mt_mass_leaving(lambda[i], birth[cluster], size[row]);
    if (i == 0 || key[i - 1] != cluster) first[cluster] = (uint32_t)i;
  });
}

static mt_status sum_rows(mt_gpu *gpu, const mt_condensed_rows *rows, measures *m)
{
  enum { THREADS = 128 };
  int64_t n_rows = rows->n_rows;
  mt_array<uint32_t> first;
  mt_array<double> mass, lambda;
  MT_PASS(first.make(gpu, m->n, "clusters"));
  MT_PASS(mass.make(gpu, n_rows, "clusters"));
  MT_PASS(lambda.make(gpu, n_rows, "clusters"));
  MT_PASS(sort_rows(gpu, rows, m, first.data, mass.data, lambda.data));
  return MT_LAUNCH(gpu, sum_clusters, (unsigned)((m->n * 32 + THREADS - 1) / THREADS),
                   THREADS, 0, m->n, n_rows, first.data, mass.data, lambda.data,
                   m->stability.data, m->death.data);
}

static mt_status measures_to_host(mt_gpu *gpu, const measures *m, mt_selection *s)
{
  uint64_t bits = 0;
  MT_PASS(mt_to_host(gpu, m->n, m->parent.data, s->parent));
  MT_PASS(mt_to_host(gpu, m->n, m->size.data, s->size));
  MT_PASS(mt_to_host(gpu, m->n, m->birth.data, s->birth));
  MT_PASS(mt_to_host(gpu, m->n, m->death.data, s->death));
  MT_PASS(mt_to_host(gpu, m->n, m->stability.data, s->stability));
  MT_PASS(mt_to_host(gpu, m->n, m->has_children.data, (uint8_t *)s->has_children));
  MT_PASS(mt_to_host(gpu, 1, m->last_point.data, &bits));
  memcpy(&s->last_point, &bits, sizeof bits);
  return MT_OK;
}

static mt_status measure(mt_gpu *gpu, const mt_condensed_rows *rows, mt_selection *s)
{
  measures m;
  MT_PASS(measures_create(gpu, rows->n_clusters, &m));
  MT_PASS(look_at_rows(gpu, rows, &m));
  MT_PASS(sum_rows(gpu, rows, &m));
  return measures_to_host(gpu, &m, s);
}

/* Scores of clusters->points to the host; how many points have each label, of all. */
static mt_status score_points(mt_gpu *gpu, const mt_condensed_rows *rows,
                              const mt_selection *s, mt_clusters *clusters,
                              int64_t *members_out)
{
  int64_t n = rows->n;
  mt_part own = clusters->points;
  mt_array<int64_t> counts;
  mt_array<mt_leaving> leavings;
  mt_array<int32_t> labels;
  mt_array<double> probabilities, outliers;
  MT_PASS(leavings.make(gpu, s->n, "clusters"));
  MT_PASS(labels.make(gpu, n, "labels"));
  MT_PASS(probabilities.make(gpu, n, "probabilities"));
  MT_PASS(outliers.make(gpu, n, "outlier scores"));
  MT_PASS(counts.make_zeroed(gpu, clusters->n_clusters, "clusters"));
  MT_PASS(mt_to_device(gpu, s->n, s->leaving, leavings.data));
  const mt_leaving *leaving = leavings.data;
  const int64_t *parent = rows->parent.data, *child = rows->child.data;
  const double *lambda = rows->lambda.data;
  int32_t *label = labels.data;
  double *probability = probabilities.data, *outlier = outliers.data;
  unsigned long long *count = (unsigned long long *)counts.data;
  MT_PASS(mt_gpu_each(gpu, rows->n_rows, [=] __device__(int64_t row) {
    int64_t point = child[row];
    if (point >= n) return;
    mt_score_point(leaving + (parent[row] - n), lambda[row], label + point,
                   probability + point, outlier + point);
    if (label[point] >= 0) atomicAdd(count + label[point], 1ull);
  }));
  MT_PASS(mt_to_host(gpu, clusters->n_clusters, counts.data, members_out));
  MT_PASS(mt_to_host(gpu, own.count, label + own.first, clusters->labels));
  MT_PASS(mt_to_host(gpu, own.count, probability + own.first, clusters->probabilities));
  return mt_to_host(gpu, own.count, outlier + own.first, clusters->outlier_scores);
}

mt_status mt_select_on_gpu(mt_gpu *gpu, const mt_hdbscan_options *options,
                           const mt_condensed_rows *rows, mt_clusters *clusters)
{
  mt_status status = MT_OK;
  mt_selection s = {};
  int64_t *members = NULL;
  MT_TRY(mt_selection_create(rows->n_clusters, &s));
  MT_TRY(measure(gpu, rows, &s));
  MT_TRY(mt_selection_choose(options, &s, &clusters->n_clusters));
  MT_NEW(members, clusters->n_clusters);
  MT_TRY(score_points(gpu, rows, &s, clusters, members));
  MT_TRY(mt_selection_persistence(&s, members, clusters));
done:
  free(members);
  mt_selection_destroy(&s);
  return status;
}
