/* Runs CUDA kernels on the CPU, for tests: cuda/NAME.cu compiled by g++ with this folder's
 * cuda_runtime.h, cuda_fp16.h, cuda_bf16.h and cublas_v2.h in the place of CUDA's.
 *   Blocks run one after the other, so a block must not wait for a later one. The threads of a
 * block are coroutines: each runs until it must wait for others (__syncthreads, __syncwarp,
 * warp functions); threads that wait for one another for ever end the job with a message.
 *   Streams do everything at once; events are the host's clock. Device memory is the host's,
 * filled with a pattern; under the address sanitizer the host may not touch it. Copies that
 * leave an allocation, or take host memory for a device's, are errors as they are with CUDA;
 * device memory that is left at the process's end makes its exit status 1.
 * Environment
 *   MT_EMULATED_GPUS     GPUs of the machine (1); CUDA_VISIBLE_DEVICES hides some, as always
 *   MT_EMULATED_MEMORY   bytes that each has (8 GiB)
 *   MT_EMULATED_BROKEN   a GPU's number: cudaSetDevice fails on it
 *   MT_EMULATED_LOST     a GPU's number: it takes work, and waiting for it fails
 *   MT_EMULATED_ORDER    reverse: blocks and threads from the last to the first */
#ifndef MT_EMULATE_EMULATE_H
#define MT_EMULATE_EMULATE_H
#include <cstddef>
#include <cstdint>

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1)
      : x(x_), y(y_), z(z_)
  {
  }
};

/* Of the thread that runs now. */
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
enum { warpSize = 32 };
extern unsigned char *mt_emulated_shared; /* the block's dynamic shared memory */

/* body(argument) once for each thread of each block; kernel is for messages. False, and
 * nothing is run, if CUDA would refuse the sizes. */
bool mt_emulate_launch(const char *kernel, dim3 blocks, dim3 threads, size_t shared,
                       void (*body)(void *argument), void *argument);

/* Waits for all threads of the block that have not left. How many came with a true
 * predicate; all_out: was it true for all? */
int mt_emulate_barrier(bool predicate, bool *all_out);

/* What the lanes of one warp function brought: values and arguments by lane, and who came. */
typedef struct mt_emulated_lanes {
  uint64_t value[32];
  int argument[32];
  unsigned present;
} mt_emulated_lanes;
typedef uint64_t mt_emulated_answer(const mt_emulated_lanes *lanes, int lane);

/* Waits until all lanes of mask that have not left call it with the same mask and answer;
 * returns answer(what they brought, this lane). what: the function's name, for messages. */
uint64_t mt_emulate_warp(const char *what, unsigned mask, mt_emulated_answer *answer,
                         uint64_t value, int argument);
unsigned mt_emulate_live_lanes(void); /* of this thread's warp, as a mask */

/* While there is one, device memory may be touched: the device is at work. */
struct mt_emulated_access {
  mt_emulated_access();
  ~mt_emulated_access();
  mt_emulated_access(const mt_emulated_access &) = delete;
  mt_emulated_access &operator=(const mt_emulated_access &) = delete;
};

#endif
