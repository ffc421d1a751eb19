/* The search for the nearest neighbours, from rows to neighbours. */
#include "knn_parts.h"

/* ---- time ------------------------------------------------------------------------------------- */

/* Adds up the seconds of phases, each between two marks on the stream. */
typedef struct stopwatch {
  cudaEvent_t from, to;
  bool open = false;
  ~stopwatch()
  {
    if (!open) return;
    cudaEventDestroy(from);
    cudaEventDestroy(to);
  }
} stopwatch;

static mt_status start(mt_gpu *gpu, stopwatch *watch)
{
  if (!watch->open) {
    MT_CUDA(cudaEventCreate(&watch->from));
    MT_CUDA(cudaEventCreate(&watch->to));
    watch->open = true;
  }
  MT_CUDA(cudaEventRecord(watch->from, gpu->stream));
  return MT_OK;
}

/* The phase is over: waits for it. The next one begins. */
static mt_status lap(mt_gpu *gpu, stopwatch *watch, double *seconds)
{
  float milliseconds = 0.0f;
  MT_CUDA(cudaEventRecord(watch->to, gpu->stream));
  MT_PASS(mt_gpu_wait(gpu));
  MT_CUDA(cudaEventElapsedTime(&milliseconds, watch->from, watch->to));
  *seconds += milliseconds * 1e-3;
  return start(gpu, watch);
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
  if (sizes->room <= 0) sizes->room = between(512, 4 * sizes->keep, 8192);
  sizes->room = power_of_2(between(2 * sizes->keep + 32, sizes->room, 16384));
  if (sizes->again <= 0) sizes->again = 2048;
  sizes->again = between(s->k, sizes->again, 8192);
  if (sizes->panel <= 0) { /* as equal as can be */
    int64_t panels = (s->padded + 8191) / 8192;
    sizes->panel = (s->padded + panels - 1) / panels;
  }
  if (sizes->group <= 0) sizes->group = 256;
  if (sizes->fine <= 0) sizes->fine = 1024;
  sizes->panel = (sizes->panel + 63) / 64 * 64;
  sizes->fine = (sizes->fine + 63) / 64 * 64;
}

/* ---- memory ------------------------------------------------------------------------------------- */

/* Bytes for each thing that is needed, and how the rows are held. */
typedef struct plan {
  bool resident, whole; /* all rows on the GPUs; all of them rounded */
  int64_t block;        /* rows read at a time */
  int64_t piece;        /* own rows searched for at a time */
} plan;

static int64_t least(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

/* Of a row that is searched for: rounded, with its list, pairs and results. */
static int64_t bytes_of_row(const mt_knn_search *s)
{
  return s->padded * 2 + s->sizes.room * 8 + s->sizes.keep * 16 + 64 + s->k * 12;
}

/* Facts of all rows, products, and what it takes to search rows again. */
static int64_t bytes_always(const mt_knn_search *s)
{
  const mt_gpu_knn_sizes *sizes = &s->sizes;
  int64_t tile = sizes->tile, some = least(tile, 4096), few = least(tile, 1024);
  int64_t rounded = some * (s->padded * 2 + s->d * 4 + sizes->again * 24);
  int64_t wide = least(tile, 2048), list = sizes->again * 24;
  int64_t doubled = (few * 2 + wide) * s->d * 8 + few * (wide * 8 + list);
  int64_t brute = least((int64_t)1 << 28, s->n * s->n * 12) + s->n * 52;
  return s->n * 40 + s->d * 24 + tile * tile * 4 + (512 + 2) * s->d * 4 +
         most(rounded, most(doubled, brute)) + ((int64_t)1 << 20);
}

/* What the ring needs while rounded rows, or rows as given, go round. */
static int64_t bytes_of_ring(const mt_knn_search *s, bool resident)
{
  int64_t size = s->comm->size, buffers = least(size - 1, 2), half = least(size / 2, 2);
  int64_t rounded = half * s->widest * s->padded * 2 +
                    s->widest * (s->sizes.room + 2 * s->sizes.keep) * 8 + s->n * 8;
  int64_t raw = resident ? buffers * s->widest * s->d * 4 : 0;
  int64_t again = buffers * s->widest * s->padded * 2;
  return size == 1 ? 0 : most(most(rounded, again), raw);
}

/* Settles how rows are held, the same on all GPUs. free_bytes: the least of all. */
static mt_status settle_plan(const mt_knn_search *s, bool given, int64_t free_bytes,
                             plan *out)
{
  int64_t row = s->d * 4 + 1, always = bytes_always(s), own = bytes_of_row(s);
  int64_t ring = bytes_of_ring(s, true), forced = s->sizes.stream;
  int64_t raw = given ? 0 : s->widest * row;
  *out = plan{true, true, 0, s->widest};
  if (given || (forced <= 0 && raw + always + s->widest * own + ring <= free_bytes))
    return MT_OK; /* given rows have to fit */
  out->resident = false;
  int64_t bytes = least((int64_t)1 << 27, s->gpu->memory / 16);
  out->block = between(1, forced > 0 ? forced : bytes / row, s->n);
  int64_t feed = out->block * 2 * row, left = free_bytes - always - feed;
  ring = bytes_of_ring(s, false);
  out->whole = s->sizes.piece <= 0 && s->widest * own + ring <= left;
  if (out->whole) return MT_OK;
  left -= out->block * s->padded * 2;
  /* all of a piece's rows, as given, are to be in hand when distances are computed */
  out->piece = least(left / own, (left - mt_knn_reserve(s->gpu)) / row);
  if (out->piece > 0) /* as equal as can be */
    out->piece = (s->widest - 1) / ((s->widest - 1) / out->piece + 1) + 1;
  if (s->sizes.piece > 0) out->piece = s->sizes.piece;
  out->piece = between(0, out->piece, s->widest);
  if (out->piece > 0) return MT_OK;
  return mt_fail(MT_ERR_MEMORY,
                 "knn: %.1f MB of device memory are not enough: %.1f MB are needed for "
                 "%lld rows of %lld columns, also if they are streamed",
                 (double)free_bytes / 1e6, (double)(free_bytes - left + own) / 1e6,
                 (long long)s->n, (long long)s->d);
}

static mt_status new_memory(mt_knn_search *s, const plan *p)
{
  mt_gpu *gpu = s->gpu;
  int64_t rows = p->whole ? s->local : least(p->piece, s->widest);
  s->resident = p->resident;
  s->whole = p->whole;
  MT_PASS(s->centre.make(gpu, s->d, "centre"));
  MT_PASS(s->scale.make(gpu, s->n, "scales"));
  MT_PASS(s->half.make(gpu, s->n, "norms"));
  MT_PASS(s->reach.make(gpu, s->n, "norms"));
  MT_PASS(s->error.make(gpu, s->n, "rounding errors"));
  MT_PASS(s->kth.make(gpu, rows, "distances of the last neighbours"));
  MT_PASS(s->near.make(gpu, most(rows, p->whole ? 0 : p->block) * s->padded,
                       "rounded rows"));
  MT_PASS(s->product.make_zeroed(gpu, s->sizes.tile * s->sizes.tile, "products"));
  return MT_OK;
}

/* ---- the search ----------------------------------------------------------------------------------- */

/* Rounded rows and lists make room for rows as given: they have served. */
static void make_room(mt_knn_search *s)
{
  s->near.drop();
  s->near_block.drop();
  s->own.keys.drop();
  s->whole = false;
}

static mt_status measure(mt_knn_search *s)
{
  mt_knn_pairs pairs;
  MT_PASS(mt_agree(s->comm, mt_knn_plan_pairs(s, &pairs)));
  if (!s->resident) make_room(s);
  MT_PASS(mt_knn_measure(s, &pairs));
  mt_status status = mt_knn_finish(s, s->local, nullptr, &pairs, s->sizes.keep);
  if (status == MT_OK) status = mt_knn_zero_rows(s);
  return mt_agree(s->comm, status);
}

/* The neighbours of rows whose rounded ones are in near. */
static mt_status search_rows(mt_knn_search *s, stopwatch *watch)
{
  mt_gpu *gpu = s->gpu;
  MT_PASS(mt_agree(s->comm, mt_knn_new_lists(s, s->local, s->sizes.room, &s->own)));
  MT_PASS(mt_knn_select(s));
  MT_PASS(mt_agree(s->comm, lap(gpu, watch, &s->cost.select)));
  MT_PASS(measure(s));
  MT_PASS(mt_agree(s->comm, lap(gpu, watch, &s->cost.measure)));
  MT_PASS(mt_knn_repeat(s));
  return mt_agree(s->comm, lap(gpu, watch, &s->cost.repeat));
}

/* Rows that do not fit even if rounded: some own ones at a time, against all. */
static mt_status search_pieces(mt_knn_search *s, int64_t piece, stopwatch *watch)
{
  int64_t first = s->first, local = s->local;
  int64_t *indices = s->indices;
  float *distances = s->distances;
  for (int64_t at = 0; at < s->widest; at += piece) {
    s->local = at >= local ? 0 : least(piece, local - at);
    s->first = first + least(at, local);
    s->indices = indices + least(at, local) * s->k;
    s->distances = distances + least(at, local) * s->k;
    s->done = at * s->comm->size;
    mt_status status = s->near.make(s->gpu, s->local * s->padded, "rounded rows");
    MT_PASS(mt_agree(s->comm, status));
    MT_PASS(mt_agree(
        s->comm, mt_knn_own_raw(s, [=](const float *raw, int64_t from, int64_t count) {
          return mt_knn_round_rows(s, from, count, raw,
                                   s->near.data + (from - s->first) * s->padded);
        })));
    MT_PASS(mt_agree(s->comm, lap(s->gpu, watch, &s->cost.round)));
    MT_PASS(search_rows(s, watch));
  }
  return MT_OK;
}

static mt_status run(mt_knn_search *s, int64_t piece)
{
  stopwatch watch;
  MT_PASS(mt_agree(s->comm, start(s->gpu, &watch)));
  MT_PASS(mt_knn_look(s));
  MT_PASS(mt_agree(s->comm, lap(s->gpu, &watch, &s->cost.look)));
  MT_PASS(mt_knn_round(s));
  MT_PASS(mt_agree(s->comm, lap(s->gpu, &watch, &s->cost.round)));
  if (s->whole) return search_rows(s, &watch);
  return search_pieces(s, piece, &watch);
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
  return MT_OK;
}

/* The search with all that is held ready. */
static mt_status search(mt_knn_search *s, const plan *p, mt_gpu_knn_cost *cost_out)
{
  MT_PASS(mt_agree(s->comm, new_memory(s, p)));
  mt_progress_begin(s->comm->rank, "knn", s->n);
  mt_status status = run(s, p->piece);
  mt_progress_end();
  if (s->feed != nullptr) s->cost.streamed = s->feed->bytes;
  if (cost_out != nullptr) *cost_out = s->cost;
  return status;
}

mt_status mt_gpu_knn_resident(mt_gpu *gpu, const mt_comm *comm, mt_metric metric,
                              int64_t k, int64_t n, int64_t d, const float *rows,
                              int64_t *indices, float *distances,
                              mt_gpu_knn_cost *cost_out)
{
  mt_gpu_knn_sizes sizes = {};
  mt_knn_search s = {};
  plan p;
  MT_PASS(begin(gpu, comm, metric, k, n, d, &sizes, &s));
  MT_PASS(settle_plan(&s, true, 0, &p));
  s.raw = rows;
  s.indices = indices;
  s.distances = distances;
  return search(&s, &p, cost_out);
}

/* ---- rows of the host --------------------------------------------------------------------------------- */

/* Has the rows on the device, or opens the feed that they come through. */
static mt_status hold_rows(mt_knn_search *s, const mt_rows *rows, const plan *p,
                           mt_array<float> *raw, mt_knn_feed *feed)
{
  if (p->resident) {
    MT_PASS(raw->make(s->gpu, s->local * s->d, "rows"));
    s->raw = raw->data;
    if (s->raw == nullptr) MT_PASS(raw->make(s->gpu, 1, "rows")); /* no columns */
    s->raw = raw->data;
    return mt_knn_upload(s->gpu, rows, s->first, s->local, raw->data);
  }
  s->feed = feed;
  return mt_knn_feed_open(s->gpu, rows, p->block, true, feed);
}

static mt_status settle_sized(mt_knn_search *s, plan *p)
{
  int64_t free_bytes = s->gpu->memory - s->gpu->used;
  MT_PASS(mt_min_i64(s->comm, 1, &free_bytes));
  return mt_agree(s->comm, settle_plan(s, false, free_bytes, p));
}

mt_status mt_gpu_knn_sized(mt_backend *be, const mt_comm *comm, mt_metric metric,
                           int64_t k, const mt_rows *rows,
                           const mt_gpu_knn_sizes *sizes, int64_t *indices_out,
                           float *distances_out, mt_gpu_knn_cost *cost_out)
{
  mt_gpu *gpu = mt_gpu_of(be);
  mt_array<float> raw, distances;
  mt_array<int64_t> indices;
  mt_knn_feed feed;
  mt_knn_search s = {};
  plan p;
  MT_PASS(begin(gpu, comm, metric, k, rows->n, rows->d, sizes, &s));
  MT_PASS(settle_sized(&s, &p));
  mt_status status = indices.make(gpu, s.local * k, "neighbours");
  if (status == MT_OK) status = distances.make(gpu, s.local * k, "distances");
  if (status == MT_OK) status = hold_rows(&s, rows, &p, &raw, &feed);
  MT_PASS(mt_agree(comm, status));
  int64_t local = s.local;
  s.indices = indices.data;
  s.distances = distances.data;
  MT_PASS(search(&s, &p, cost_out));
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
