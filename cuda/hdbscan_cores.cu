#include "hdbscan_parts.h"
#include "hdbscan_search.h"

/* Of a search, the least K distances; a distinct point counts as often as points lie there.
 * The furthest of them is the core distance. */
template <int K> struct nearest {
  double near[K]; /* ascending */

  /* The first `zeros` are 0: equal points, and places that K has too many. */
  __device__ void empty(int64_t, int64_t zeros)
  {
    for (int j = 0; j < K; j++) near[j] = j < zeros ? 0.0 : HUGE_VAL;
  }
  __device__ double furthest() const
  {
    return near[K - 1];
  }
  __device__ void add(double value)
  {
    for (int j = 0; j < K; j++) {
      double less = value < near[j] ? value : near[j];
      value = value < near[j] ? near[j] : value;
      near[j] = less;
    }
  }
};

/* Likewise for any number: a heap in memory, the furthest on top. Those of the searches of a
 * batch are interleaved. */
struct nearest_heap {
  double *heap;
  int64_t size, stride;

  __device__ void empty(int64_t, int64_t zeros)
  {
    for (int64_t j = 0; j < size; j++)
      heap[j * stride] = j < size - zeros ? HUGE_VAL : 0.0;
  }
  __device__ double furthest() const
  {
    return heap[0];
  }
  __device__ void add(double value)
  {
    int64_t at = 0;
    for (int64_t child = 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && heap[(child + 1) * stride] > heap[child * stride])
        child++;
      if (heap[child * stride] <= value) break;
      heap[at * stride] = heap[child * stride];
      at = child;
    }
    heap[at * stride] = value;
  }
};

template <class N> struct core_visitor {
  N near;
  int64_t self;
  const uint32_t *count;

  __device__ bool skips(uint32_t) const
  {
    return false;
  }
  __device__ bool is_beyond(double distance2) const
  {
    return distance2 >= near.furthest();
  }
  __device__ void offer(int64_t at, double distance2)
  {
    if (distance2 >= near.furthest() || at == self) return;
    for (uint32_t left = count[at]; left > 0 && distance2 < near.furthest(); left--)
      near.add(distance2);
  }
  __device__ void pause() {}
};

/* Positions first, first + 1, ... */
template <class N> struct core_job {
  typedef core_visitor<N> visitor;
  mt_places places;
  int64_t first, min_samples, room; /* room: distances kept, min_samples or more */
  double *core2;

  __device__ int64_t position(int64_t i) const
  {
    return first + i;
  }
  __device__ void begin(int64_t i, visitor *v) const
  {
    v->self = first + i;
    v->count = places.count;
    int64_t twins = (int64_t)places.count[v->self] - 1;
    int64_t zeros = room - min_samples + twins;
    v->near.empty(i, zeros < room ? zeros : room);
  }
  __device__ void end(int64_t i, const visitor &v) const
  {
    core2[first + i] = v.near.furthest();
  }
};

struct heap_job : core_job<nearest_heap> {
  double *heaps;
  int64_t stride;

  __device__ void begin(int64_t i, visitor *v) const
  {
    v->near.heap = heaps + i;
    v->near.size = room;
    v->near.stride = stride;
    core_job<nearest_heap>::begin(i, v);
  }
};

template <int K>
static mt_status search_few(mt_gpu *gpu, const mt_places &places, int64_t min_samples,
                            int64_t first, int64_t count, double *core2)
{
  core_job<nearest<K>> job = {places, first, min_samples, K, core2};
  return mt_search(gpu, places, count, job);
}

enum { FEW = 16, LEAST_BATCH = 1 << 16 };
static const int64_t most_heap_bytes = (int64_t)1 << 30;

/* Searches at once when each keeps many distances. */
static int64_t batch_of(int64_t n, int64_t min_samples)
{
  int64_t most = most_heap_bytes / (min_samples * (int64_t)sizeof(double));
  if (most < LEAST_BATCH) most = LEAST_BATCH;
  return n < most ? n : most;
}

int64_t mt_cores_bytes(int64_t n, int64_t min_samples)
{
  if (min_samples <= FEW) return 0;
  return batch_of(n, min_samples) * min_samples * (int64_t)sizeof(double);
}

static mt_status search_many(mt_gpu *gpu, const mt_places &places, int64_t min_samples,
                             int64_t first, int64_t count, double *core2)
{
  int64_t batch = batch_of(count, min_samples);
  mt_array<double> heaps;
  MT_PASS(heaps.make(gpu, batch * min_samples, "nearest distances"));
  for (int64_t done = 0; done < count; done += batch) {
    heap_job job;
    static_cast<core_job<nearest_heap> &>(job) = {places, first + done, min_samples,
                                                  min_samples, core2};
    job.heaps = heaps.data;
    job.stride = batch;
    MT_PASS(mt_search(gpu, places, batch < count - done ? batch : count - done, job));
  }
  return MT_OK;
}

static mt_status search(mt_gpu *gpu, const mt_places &places, int64_t min_samples,
                        int64_t first, int64_t count, double *core2)
{
  if (count == 0) return MT_OK;
  if (min_samples == 1)
    return search_few<1>(gpu, places, min_samples, first, count, core2);
  if (min_samples <= 4)
    return search_few<4>(gpu, places, min_samples, first, count, core2);
  if (min_samples <= 8)
    return search_few<8>(gpu, places, min_samples, first, count, core2);
  if (min_samples <= FEW)
    return search_few<FEW>(gpu, places, min_samples, first, count, core2);
  return search_many(gpu, places, min_samples, first, count, core2);
}

mt_status mt_find_cores(mt_gpu *gpu, const mt_comm *comm, const mt_space *space,
                        int64_t min_samples, double *core2_out)
{
  int64_t n = space->places.n;
  mt_status local =
      search(gpu, space->places, min_samples, mt_part_first(n, comm->size, comm->rank),
             mt_part_count(n, comm->size, comm->rank), core2_out);
  MT_PASS(mt_agree(comm, local));
  return mt_gpu_allgather_rows(gpu, comm, n, sizeof *core2_out, core2_out);
}
