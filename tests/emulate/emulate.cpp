#include "emulate.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sys/mman.h>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define MT_ASAN 1
#else
#define MT_ASAN 0
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
unsigned char *mt_emulated_shared;

/* ---- switching between stacks ------------------------------------------------------------- */

enum { STACK_BYTES = 256 << 10, PAGE_BYTES = 4096 };

struct fiber {
  char *stack = nullptr; /* NULL: the stack of the launch */
  size_t bytes = 0;
  void *fake_stack = nullptr; /* the address sanitizer's */
  void *saved = nullptr;      /* stack pointer, or ucontext_t */
};

#ifdef __x86_64__
extern "C" void mt_emulated_switch(void **save, void *load);
asm(".text\n"
    ".globl mt_emulated_switch\n"
    ".type mt_emulated_switch, @function\n"
    "mt_emulated_switch:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n"
    "  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n"
    "  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n"
    ".size mt_emulated_switch, .-mt_emulated_switch\n");

static void switch_stacks(fiber *from, fiber *to)
{
  mt_emulated_switch(&from->saved, to->saved);
}

static void prepare(fiber *f, void (*entry)(void))
{
  void **top = (void **)(f->stack + f->bytes);
  *--top = nullptr;       /* where entry would return to */
  *--top = (void *)entry; /* where the first switch returns to */
  for (int i = 0; i < 6; i++) *--top = nullptr;
  f->saved = top;
}
#else
#include <ucontext.h>
static ucontext_t *context_of(fiber *f)
{
  if (f->saved == nullptr) f->saved = calloc(1, sizeof(ucontext_t));
  return (ucontext_t *)f->saved;
}

static void switch_stacks(fiber *from, fiber *to)
{
  swapcontext(context_of(from), context_of(to));
}

static void prepare(fiber *f, void (*entry)(void))
{
  getcontext(context_of(f));
  context_of(f)->uc_stack.ss_sp = f->stack;
  context_of(f)->uc_stack.ss_size = f->bytes;
  makecontext(context_of(f), entry, 0);
}
#endif

static fiber host, *running;

/* Told when a fiber begins or goes on: the sanitizer must know whose stack it is. */
static void arrived(void)
{
#if MT_ASAN
  const void *from;
  size_t bytes;
  __sanitizer_finish_switch_fiber(running->fake_stack, &from, &bytes);
  if (host.stack == nullptr) {
    host.stack = (char *)from;
    host.bytes = bytes;
  }
#endif
}

static void go(fiber *to)
{
  fiber *from = running;
#if MT_ASAN
  __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->bytes);
#endif
  running = to;
  switch_stacks(from, to);
  arrived();
}

/* ---- the block that runs --------------------------------------------------------------------- */

enum state { READY, AT_BARRIER, IN_WARP, LEFT };

struct thread {
  enum state state;
  fiber *on; /* the stack it has begun on */
  uint3 index;
  bool predicate; /* at the barrier */
  bool all;
  int count;
  const char *what; /* in a warp function */
  unsigned mask;
  mt_emulated_answer *answer;
  uint64_t value;
  int argument;
  uint64_t result;
};

struct block {
  const char *kernel;
  void (*body)(void *);
  void *argument;
  bool reverse;
  int count; /* threads of a block */
  std::vector<thread> threads;
  int begun, live, at_barrier;
  int now; /* the thread that runs */
  std::vector<int> ready;
  size_t first_ready;
  std::vector<fiber *> idle;
};
static struct block &block = *new struct block(); /* never destroyed */

static bool any_ready(void)
{
  return block.first_ready < block.ready.size();
}

static void make_ready(int t)
{
  block.threads[(size_t)t].state = READY;
  block.ready.push_back(t);
}

static void run_as(int t)
{
  block.now = t;
  threadIdx = block.threads[(size_t)t].index;
}

/* The caller has been noted as waiting; it goes on when it has been made ready. */
static void wait_for_others(void)
{
  block.threads[(size_t)block.now].on = running;
  go(&host);
}

/* If all that have not left wait at the barrier, they go on. */
static void pass_barrier(void)
{
  if (block.at_barrier == 0 || block.at_barrier < block.live) return;
  int count = 0;
  for (const thread &t : block.threads) count += t.state == AT_BARRIER && t.predicate;
  for (int i = 0; i < block.count; i++) {
    thread *t = &block.threads[(size_t)i];
    if (t->state != AT_BARRIER) continue;
    t->count = count;
    t->all = count == block.at_barrier;
    make_ready(i);
  }
  block.at_barrier = 0;
}

int mt_emulate_barrier(bool predicate, bool *all_out)
{
  thread *me = &block.threads[(size_t)block.now];
  me->predicate = predicate;
  me->state = AT_BARRIER;
  block.at_barrier++;
  pass_barrier();
  wait_for_others();
  if (all_out != nullptr) *all_out = me->all;
  return me->count;
}

/* Have all lanes that the thread waits for come to the same function? Those that begin last
 * are asked first: one of them is missing most of the time. */
static bool warp_is_there(const thread *me, int first)
{
  for (int i = 0; i < warpSize; i++) {
    int lane = block.reverse ? i : warpSize - 1 - i;
    if (!(me->mask >> lane & 1) || first + lane >= block.count) continue;
    const thread *other = &block.threads[(size_t)(first + lane)];
    if (other->state != LEFT && (other->state != IN_WARP || other->mask != me->mask ||
                                 other->answer != me->answer))
      return false;
  }
  return true;
}

/* If they have, they go on. */
static void pass_warp(int t)
{
  const thread *me = &block.threads[(size_t)t];
  int first = t / warpSize * warpSize;
  if (!warp_is_there(me, first)) return;
  mt_emulated_lanes lanes = {};
  for (int lane = 0; lane < warpSize && first + lane < block.count; lane++) {
    const thread *other = &block.threads[(size_t)(first + lane)];
    if (!(me->mask >> lane & 1) || other->state == LEFT) continue;
    lanes.present |= 1u << lane;
    lanes.value[lane] = other->value;
    lanes.argument[lane] = other->argument;
  }
  mt_emulated_answer *answer = me->answer;
  for (int lane = 0; lane < warpSize; lane++)
    if (lanes.present >> lane & 1) {
      block.threads[(size_t)(first + lane)].result = answer(&lanes, lane);
      make_ready(first + lane);
    }
}

static void stop(const char *what)
{
  fprintf(stderr, "emulated kernel %s, block (%u, %u, %u), thread (%u, %u, %u): %s\n",
          block.kernel, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y,
          threadIdx.z, what);
  abort();
}

uint64_t mt_emulate_warp(const char *what, unsigned mask, mt_emulated_answer *answer,
                         uint64_t value, int argument)
{
  int t = block.now;
  thread *me = &block.threads[(size_t)t];
  if (!(mask >> t % warpSize & 1))
    stop("a warp function whose mask leaves out its caller");
  me->what = what;
  me->mask = mask;
  me->answer = answer;
  me->value = value;
  me->argument = argument;
  me->state = IN_WARP;
  pass_warp(t);
  wait_for_others();
  return me->result;
}

unsigned mt_emulate_live_lanes(void)
{
  int first = block.now / warpSize * warpSize;
  unsigned mask = 0;
  for (int lane = 0; lane < warpSize && first + lane < block.count; lane++)
    if (block.threads[(size_t)(first + lane)].state != LEFT) mask |= 1u << lane;
  return mask;
}

static void leave(int t)
{
  block.threads[(size_t)t].state = LEFT;
  block.live--;
  pass_barrier();
  int first = t / warpSize * warpSize;
  for (int i = first; i < first + warpSize && i < block.count; i++)
    if (block.threads[(size_t)i].state == IN_WARP) pass_warp(i);
}

/* A fiber begins threads, one after the other, until one waits or another can go on. */
static void fiber_main(void)
{
  arrived();
  for (;;) {
    while (block.begun < block.count && !any_ready()) {
      int t = block.begun++;
      if (block.reverse) t = block.count - 1 - t;
      run_as(t);
      block.body(block.argument);
      leave(block.now);
    }
    block.idle.push_back(running);
    go(&host);
  }
}

static fiber *new_fiber(void)
{
  fiber *f = new fiber;
  void *memory = mmap(nullptr, STACK_BYTES + PAGE_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, PAGE_BYTES, PROT_NONE) != 0)
    stop("no memory for another stack");
  f->stack = (char *)memory + PAGE_BYTES;
  f->bytes = STACK_BYTES;
  prepare(f, fiber_main);
  return f;
}

static void deadlock(void)
{
  fprintf(stderr, "emulated kernel %s, block (%u, %u, %u): deadlock: %d threads wait\n",
          block.kernel, blockIdx.x, blockIdx.y, blockIdx.z, block.live);
  for (int i = 0; i < block.count; i++) {
    const thread *t = &block.threads[(size_t)i];
    if (t->state == AT_BARRIER) fprintf(stderr, "  thread %d: __syncthreads\n", i);
    if (t->state == IN_WARP)
      fprintf(stderr, "  thread %d: %s, mask %08x\n", i, t->what, t->mask);
  }
  abort();
}

static void resume(void)
{
  int t = block.ready[block.first_ready++];
  if (!any_ready()) {
    block.ready.clear();
    block.first_ready = 0;
  }
  run_as(t);
  go(block.threads[(size_t)t].on);
}

static void begin(void)
{
  fiber *f = nullptr;
  if (block.idle.empty()) {
    f = new_fiber();
  } else {
    f = block.idle.back();
    block.idle.pop_back();
  }
  go(f);
}

static void run_block(void)
{
  block.begun = 0;
  block.live = block.count;
  block.at_barrier = 0;
  for (thread &t : block.threads) t.state = READY;
  while (block.live > 0) {
    if (any_ready())
      resume();
    else if (block.begun < block.count)
      begin();
    else
      deadlock();
  }
}

/* ---- launches ------------------------------------------------------------------------------ */

enum { MOST_THREADS = 1024, MOST_SHARED = 227 << 10 };

static uint3 unfold(unsigned i, dim3 sizes)
{
  return uint3{i % sizes.x, i / sizes.x % sizes.y, i / sizes.x / sizes.y};
}

static bool allowed(dim3 blocks, dim3 threads, size_t shared)
{
  uint64_t count = (uint64_t)threads.x * threads.y * threads.z;
  return count > 0 && count <= MOST_THREADS && threads.z <= 64 && blocks.x > 0 &&
         blocks.x <= INT32_MAX && blocks.y > 0 && blocks.y <= 65535 && blocks.z > 0 &&
         blocks.z <= 65535 && shared <= MOST_SHARED;
}

static void prepare_threads(dim3 threads)
{
  block.count = (int)(threads.x * threads.y * threads.z);
  block.threads.assign((size_t)block.count, thread{});
  for (int i = 0; i < block.count; i++)
    block.threads[(size_t)i].index = unfold((unsigned)i, threads);
}

/* Just as much as was asked for, so that the address sanitizer sees what lies beyond. */
static void take_shared(size_t bytes)
{
  static size_t there;
  if (mt_emulated_shared != nullptr && there == bytes) return;
  void *memory;
  free(mt_emulated_shared);
  if (posix_memalign(&memory, 128, bytes) != 0) stop("no memory for the shared memory");
  mt_emulated_shared = (unsigned char *)memory;
  there = bytes;
}

static void prepare_launch(const char *kernel, void (*body)(void *), void *argument)
{
  const char *order = getenv("MT_EMULATED_ORDER");
  block.reverse = order != nullptr && strcmp(order, "reverse") == 0;
  block.kernel = kernel;
  block.body = body;
  block.argument = argument;
  host = fiber{};
  running = &host;
}

bool mt_emulate_launch(const char *kernel, dim3 blocks, dim3 threads, size_t shared,
                       void (*body)(void *argument), void *argument)
{
  static std::mutex one_at_a_time;
  std::lock_guard<std::mutex> lock(one_at_a_time);
  if (!allowed(blocks, threads, shared)) return false;
  mt_emulated_access access;
  prepare_launch(kernel, body, argument);
  prepare_threads(threads);
  take_shared(shared);
  blockDim = threads;
  gridDim = blocks;
  uint64_t count = (uint64_t)blocks.x * blocks.y * blocks.z;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t b = block.reverse ? count - 1 - i : i;
    blockIdx = uint3{(unsigned)(b % blocks.x), (unsigned)(b / blocks.x % blocks.y),
                     (unsigned)(b / blocks.x / blocks.y)};
    memset(mt_emulated_shared, 0xDB, shared); /* nothing is there at a block's start */
    run_block();
  }
  return true;
}
