/* The search for the nearest neighbours, from rows to neighbours. */
#include "knn_parts.h"

/* ---- time ------------------------------------------------------------------------------------- */

/* Marks on the stream; phase p lies between marks p and p + 1. */
typedef struct clock_marks {
  cudaEvent_t at[MT_KNN_PHASES + 1];
  int made;
  ~clock_marks()
  {
    for (int i = 0; i < made; i++) cudaEventDestroy(at[i]);
  }
} clock_marks;

static mt_status mark(mt_gpu *gpu, clock_marks *marks)
{
  MT_CUDA(cudaEventCreate(&marks->at[marks->made]));
  marks->made++;
  MT_CUDA(cudaEventRecord(marks->at[marks->made - 1], gpu->stream));
  return MT_OK;
}

static mt_status read_marks(const clock_marks *marks, mt_gpu_knn_cost *cost)
{
  double *seconds[] = {&cost->look, &cost->round, &cost->select, &cost->measure,
                       &cost->repeat};
  for (int p = 0; p < MT_KNN_PHASES; p++) {
    float milliseconds = 0.0f;
    MT_CUDA(cudaEventElapsedTime(&milliseconds, marks->at[p], marks->at[p + 1]));
    *seconds[p] = milliseconds * 1e-3;
  }
  return MT_OK;
}

/* ---- sizes ------------------------------------------------------------------------------------- */

static int64_t power_of_2(int64_t least)
{
  int64_t power = 2;
  while (power < least) power *= 2;
  return power;
}

static int64_t between(int64_t low, int64_t value, int64_t high)
{
  if (value > high) value = high;
  return value < low ? low : value;
}

static void settle_sizes(mt_knn_search *s)
{
  mt_gpu_knn_sizes *sizes = &s->sizes;
  if (sizes->tile <= 0) sizes->tile = 8192;
  sizes->tile = (between(1, sizes->tile, s->widest) + 3) / 4 * 4;
  if (sizes->keep <= 0) sizes->keep = between(128, 2 * s->k, s->k + 512);
  sizes->keep = between(s->k, sizes->keep, 4096);
  if (sizes->room <= 0) sizes->room = 4 * sizes->keep;
  sizes->room = power_of_2(between(sizes->keep + 32, sizes->room, 16384));
  if (sizes->again <= 0) sizes->again = 2048;
  sizes->again = between(s->k, sizes->again, 8192);
  if (sizes->panel <= 0) sizes->panel = 4096;
  if (sizes->fine <= 0) sizes->fine = 1024;
  sizes->panel = (sizes->panel + 63) / 64 * 64;
  sizes->fine = (sizes->fine + 63) / 64 * 64;
}

/* ---- the search ----------------------------------------------------------------------------------- */

static mt_status new_memory(mt_knn_search *s)
{
  mt_gpu *gpu = s->gpu;
  MT_PASS(s->centre.make(gpu, s->d, "centre"));
  MT_PASS(s->scale.make(gpu, s->n, "scales"));
  MT_PASS(s->half.make(gpu, s->n, "norms"));
  MT_PASS(s->reach.make(gpu, s->n, "norms"));
  MT_PASS(s->error.make(gpu, s->n, "rounding errors"));
  MT_PASS(s->kth.make(gpu, s->local, "distances of the last neighbours"));
  MT_PASS(s->near.make(gpu, s->local * s->padded, "rounded rows"));
  MT_PASS(s->product.make_zeroed(gpu, s->sizes.tile * s->sizes.tile, "products"));
  return mt_knn_new_lists(s, s->local, s->sizes.room, &s->own);
}

static mt_status measure(mt_knn_search *s)
{
  mt_knn_pairs pairs;
  MT_PASS(mt_agree(s->comm, mt_knn_plan_pairs(s, &pairs)));
  MT_PASS(mt_knn_measure(s, &pairs));
  mt_status status = mt_knn_finish(s, s->local, nullptr, &pairs, s->sizes.keep);
  if (status == MT_OK) status = mt_knn_zero_rows(s);
  return mt_agree(s->comm, status);
}

static mt_status run_phases(mt_knn_search *s)
{
  clock_marks marks = {};
  MT_PASS(mt_agree(s->comm, mark(s->gpu, &marks)));
  MT_PASS(mt_knn_look(s));
  MT_PASS(mt_agree(s->comm, mark(s->gpu, &marks)));
  MT_PASS(mt_knn_round(s));
  MT_PASS(mt_agree(s->comm, mark(s->gpu, &marks)));
  MT_PASS(mt_knn_select(s));
  MT_PASS(mt_agree(s->comm, mark(s->gpu, &marks)));
  MT_PASS(measure(s));
  MT_PASS(mt_agree(s->comm, mark(s->gpu, &marks)));
  MT_PASS(mt_knn_repeat(s));
  mt_status status = mark(s->gpu, &marks);
  if (status == MT_OK) status = mt_gpu_wait(s->gpu);
  if (status == MT_OK) status = read_marks(&marks, &s->cost);
  return mt_agree(s->comm, status);
}

static mt_status begin(mt_gpu *gpu, const mt_comm *comm, mt_metric metric, int64_t k,
                       int64_t n, int64_t d, const mt_gpu_knn_sizes *sizes,
                       mt_knn_search *s)
{
  if (k < 1 || k >= n)
    return mt_fail(MT_ERR_ARG, "%lld neighbours of %lld rows", (long long)k,
                   (long long)n);
  if (k > 4096 || n > UINT32_MAX || d > INT32_MAX - 64)
    return mt_fail(
        MT_ERR_ARG,
        "%lld neighbours of %lld rows of %lld columns are too many for a GPU "
        "(at most 4096, 2^32 and 2^31)",
        (long long)k, (long long)n, (long long)d);
  s->gpu = gpu;
  s->comm = comm;
  s->k = k;
  s->n = n;
  s->d = d;
  s->padded = d > 0 ? (d + 63) / 64 * 64 : 64;
  s->first = mt_part_first(n, comm->size, comm->rank);
  s->local = mt_part_count(n, comm->size, comm->rank);
  s->widest = mt_part_count(n, comm->size, 0);
  s->sizes = *sizes;
  settle_sizes(s);
  s->bound.metric = metric;
  s->bound.gamma = mt_knn_gamma(s->padded, s->sizes.panel);
  s->bound.rounding = 0x1p-21;
  return mt_agree(comm, new_memory(s));
}

static mt_status search(mt_gpu *gpu, const mt_comm *comm, mt_metric metric, int64_t k,
                        int64_t n, int64_t d, const mt_gpu_knn_sizes *sizes,
                        const float *rows, int64_t *indices, float *distances,
                        mt_gpu_knn_cost *cost_out)
{
  mt_knn_search s = {};
  MT_PASS(begin(gpu, comm, metric, k, n, d, sizes, &s));
  s.raw = rows;
  s.indices = indices;
  s.distances = distances;
  mt_progress_begin(comm->rank, "knn", n);
  mt_status status = run_phases(&s);
  mt_progress_end();
  if (cost_out != nullptr) *cost_out = s.cost;
  return status;
}

mt_status mt_gpu_knn_resident(mt_gpu *gpu, const mt_comm *comm, mt_metric metric,
                              int64_t k, int64_t n, int64_t d, const float *rows,
                              int64_t *indices, float *distances,
                              mt_gpu_knn_cost *cost_out)
{
  mt_gpu_knn_sizes sizes = {};
  return search(gpu, comm, metric, k, n, d, &sizes, rows, indices, distances, cost_out);
}

/* ---- rows of the host --------------------------------------------------------------------------------- */

static mt_status upload(mt_gpu *gpu, const mt_rows *rows, int64_t first, int64_t local,
                        float *to)
{
  mt_status status = MT_OK;
  float *block = NULL;
  int64_t many = between(1, ((int64_t)1 << 26) / (rows->d + 1), local);
  MT_NEW(block, many * rows->d);
  for (int64_t at = 0; at < local; at += many) {
    int64_t count = local - at < many ? local - at : many;
    MT_TRY(rows->read(rows, first + at, count, block));
    MT_TRY(mt_to_device(gpu, count * rows->d, block, to + at * rows->d));
    MT_TRY(mt_gpu_wait(gpu));
  }
done:
  free(block);
  return status;
}

extern "C" mt_status mt_gpu_knn_sized(mt_backend *be, const mt_comm *comm,
                                      mt_metric metric, int64_t k, const mt_rows *rows,
                                      const mt_gpu_knn_sizes *sizes,
                                      int64_t *indices_out, float *distances_out,
                                      mt_gpu_knn_cost *cost_out)
{
  mt_gpu *gpu = mt_gpu_of(be);
  mt_array<float> raw, distances;
  mt_array<int64_t> indices;
  int64_t local = mt_part_count(rows->n, comm->size, comm->rank);
  mt_status status = raw.make(gpu, local * rows->d, "rows");
  if (status == MT_OK) status = indices.make(gpu, local * k, "neighbours");
  if (status == MT_OK) status = distances.make(gpu, local * k, "distances");
  if (status == MT_OK)
    status = upload(gpu, rows, mt_part_first(rows->n, comm->size, comm->rank), local,
                    raw.data);
  MT_PASS(mt_agree(comm, status));
  MT_PASS(search(gpu, comm, metric, k, rows->n, rows->d, sizes, raw.data, indices.data,
                 distances.data, cost_out));
  status = mt_to_host(gpu, local * k, indices.data, indices_out);
  if (status == MT_OK)
    status = mt_to_host(gpu, local * k, distances.data, distances_out);
  return mt_agree(comm, status);
}

mt_status mt_gpu_knn(mt_backend *be, const mt_comm *comm, mt_metric metric, int64_t k,
                     const mt_rows *rows, int64_t *indices_out, float *distances_out)
{
  mt_gpu_knn_sizes sizes = {};
  return mt_gpu_knn_sized(be, comm, metric, k, rows, &sizes, indices_out, distances_out,
                          nullptr);
}
