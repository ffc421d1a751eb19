/* What the GPUs of a team send one another: NCCL, device memory only. All functions are
 * collective over comm, the team that mt_backend.start was given, or one process alone (then
 * they do nothing, or copy). They are ordered on the GPU's stream and do not wait; mt_gpu_wait
 * does, polls NCCL, and aborts the job with the cause when an operation fails, a process of the
 * team on this node is gone, or an operation is not through within the deadline
 * (METATOPICS_GPU_DEADLINE seconds, 45 if it is not set, without any progress).
 * Never between an mt_* collective of MPI's and its end. */
#ifndef MT_CUDA_EXCHANGE_H
#define MT_CUDA_EXCHANGE_H
#include "gpu.h"

/* Connects the team; called by start. Errors as mt_status, agreed on over comm. */
mt_status mt_exchange_open(mt_gpu *gpu, const mt_comm *comm);
void mt_exchange_close(mt_gpu *gpu);
/* This GPU works no more, and mt_fail has said why. Where a team is connected the job ends: the
 * others may wait for it in an operation, which no status can end. Alone: nothing. */
void mt_exchange_lose(const mt_gpu *gpu);

/* In place: buf (n rows of row_bytes) whole on every GPU; rows are spread as mt_part_first. */
mt_status mt_gpu_allgather_rows(mt_gpu *gpu, const mt_comm *comm, int64_t n,
                                int64_t row_bytes, void *buf);
/* Likewise with blocks of any sizes: rank r's is [first[r], first[r + 1]) bytes of buf;
 * first (size + 1), on the host, the same on all. */
mt_status mt_gpu_allgather_blocks(mt_gpu *gpu, const mt_comm *comm,
                                  const int64_t *first, void *buf);
/* Elementwise over GPUs, in place. */
mt_status mt_gpu_all_min_u64(mt_gpu *gpu, const mt_comm *comm, int64_t n,
                             uint64_t *values);
mt_status mt_gpu_all_max_u64(mt_gpu *gpu, const mt_comm *comm, int64_t n,
                             uint64_t *values);
mt_status mt_gpu_all_min_i64(mt_gpu *gpu, const mt_comm *comm, int64_t n,
                             int64_t *values);
mt_status mt_gpu_all_sum_i64(mt_gpu *gpu, const mt_comm *comm, int64_t n,
                             int64_t *values);

/* GPU s sends send_bytes[r] to each r; blocks lie in rank order in both buffers (device);
 * the sizes are on the host; recv_bytes as mt_alltoall_sizes gives them. */
mt_status mt_gpu_alltoallv(mt_gpu *gpu, const mt_comm *comm, const size_t *send_bytes,
                           const void *send, const size_t *recv_bytes, void *recv);

/* A ring step beside the stream's work: send to rank + 1, receive from rank - 1 (cyclic), on
 * a stream of its own, after what the GPU's stream has been given so far. The buffers must
 * stay untouched until end, which makes the GPU's stream wait for it (not the host). Any shift
 * 1..size-1: to rank + shift, from rank - shift. */
mt_status mt_gpu_shift_begin(mt_gpu *gpu, const mt_comm *comm, int shift,
                             int64_t send_bytes, const void *send, int64_t recv_bytes,
                             void *recv);
mt_status mt_gpu_shift_end(mt_gpu *gpu, const mt_comm *comm);

/* For benchmarks: bytes that this GPU has sent, and seconds in NCCL's operations (CUDA
 * events; measured only between count(true) and count(false)). */
typedef struct mt_exchange_cost {
  int64_t bytes;
  double seconds;
} mt_exchange_cost;
mt_status mt_exchange_count(mt_gpu *gpu, bool on, mt_exchange_cost *cost_out);

#endif
