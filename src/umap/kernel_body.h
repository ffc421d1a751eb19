/* The kernels of kernel.h with a point in each lane, for the instruction set that this is
 * compiled for: included by kernel_avx512.c and kernel_avx2.c, which define KERNEL (the
 * table's name), KERNEL_NAME and USABLE. Each lane does what mt_umap_move_point (move.h)
 * does for its point, in its order, so the bits are the same; what the vectors' power does
 * not do, the scalar formulas do. */
#include "umap/kernel.h"
#include "umap/lanes.h"

#include <string.h>

enum { KEYS = 32 }; /* points with as many edges or more are not told apart */

/* What is the same in all lanes. */
typedef struct {
  const mt_moment *now;
  const mt_umap_room *room;
  bool ordinary; /* powers of normal floats stay within what d_power does */
} mt_turn;

/* A point in each lane. */
typedef struct {
  vl point;              /* numbers among all */
  vi first[2], count[2]; /* their acting edges of both sides */
  int32_t most[2];       /* of the counts */
  vf x, y;               /* where they have got to */
  vf from_x, from_y;     /* where pulls are read from */
} mt_group;

/* ---- which edges act -------------------------------------------------------------------- */

/* mt_umap_acts of LANES edges; epoch > 0. */
MT_INLINE uint32_t acting_bits(const float *shares, double epoch)
{
  vf share;
  memcpy(&share, shares, sizeof share);
  vd_half low = d_low(share), high = d_high(share);
  return d_more_bits(d_floor(low * epoch), d_floor(low * (epoch - 1.0))) |
         d_more_bits(d_floor(high * epoch), d_floor(high * (epoch - 1.0))) << LANES / 2;
}

/* The acting edges of a side, in order. edges: (count + 1) where each point's begin. */
static void find_acting(const mt_moment *now, mt_umap_room *room, int side,
                        const int64_t *edges, int64_t count)
{
  const float *shares = now->edges.shares + edges[0];
  const int64_t *others = now->edges.others + edges[0];
  uint16_t *bits = room->side[side].bits;
  int32_t *before = room->side[side].before;
  int64_t *ends = room->side[side].ends, n = edges[count] - edges[0], found = 0;
  for (int64_t e = 0; e < n; e += 16) {
    uint32_t word = 0;
    for (int64_t j = 0; j < 16; j += LANES)
      word |= acting_bits(shares + e + j, (double)now->epoch) << j;
    if (n - e < 16) word &= (1u << (n - e)) - 1;
    bits[e / 16] = (uint16_t)word;
    before[e / 16] = (int32_t)found;
    for (int64_t j = 0; j < 16; j += LANES) {
      uint32_t part = word >> j & ((1u << LANES) - 1);
      l_keep(part, others + e + j, ends + found);
      found += __builtin_popcount(part);
    }
  }
  if (n % 16 == 0) { /* where the last point's end */
    bits[n / 16] = 0;
    before[n / 16] = (int32_t)found;
  }
  for (int64_t i = 0; i <= count; i++) {
    int64_t e = edges[i] - edges[0];
    uint32_t word = bits[e / 16] & ((1u << e % 16) - 1);
    room->side[side].first[i] = before[e / 16] + __builtin_popcount(word);
  }
}

static int32_t count_of(const mt_umap_room *room, int side, int64_t i)
{
  return room->side[side].first[i + 1] - room->side[side].first[i];
}

/* Points by their numbers of acting edges. */
static void sort_points(int64_t count, mt_umap_room *room)
{
  int32_t begin[KEYS * KEYS + 1] = {0};
  uint16_t key[MT_UMAP_CHUNK];
  for (int64_t i = 0; i < count; i++) {
    int32_t a = count_of(room, 0, i), b = count_of(room, 1, i);
    key[i] = (uint16_t)((a < KEYS ? a : KEYS - 1) * KEYS + (b < KEYS ? b : KEYS - 1));
    begin[key[i] + 1]++;
  }
  for (int k = 0; k < KEYS * KEYS; k++) begin[k + 1] += begin[k];
  for (int64_t i = 0; i < count; i++) room->order[begin[key[i]]++] = (int32_t)i;
}

/* ---- powers ----------------------------------------------------------------------------- */

static const double powers[32] = MT_EXP2_POWERS, inverses[16] = MT_LOG2_INVERSES,
                    logs[16] = MT_LOG2_LOGS;

/* 2^(y log2 x) (base/elementary.h): x = 2^e z, z in piece i. */
MT_INLINE vd_half d_power(vd_half z, vd_half e, vl_half i, double y)
{
  vd_half r = z * d_lookup16(inverses, i) - 1.0, r2 = r * r;
  vd_half exponent = MT_LOG2_SUM(e + d_lookup16(logs, i), r, r2) * y;
  vd_half shifted = exponent + MT_EXP2_MAGIC;
  vl_half n = (vl_half)shifted; /* in its lower bits */
  r = exponent - (shifted - MT_EXP2_MAGIC);
  r2 = r * r;
  vd_half power = (vd_half)((vl_half)d_lookup32(powers, n) + (n >> 5 << 52));
  return power * MT_EXP2_SUM(r, r2);
}

/* mt_pow of normal floats, where y log2 x is between -1000 and 1000. */
MT_INLINE vf f_power(vf x, double y)
{
  vi bits = (vi)x, past = bits - MT_LOG2_LEAST, e = past >> 23;
  vl i = l_of_i(past >> 19 & 15);
  vf z = (vf)(bits - (e << 23));
  return f_join(d_power(d_low(z), d_low_of_i(e), i.low, y),
                d_power(d_high(z), d_high_of_i(e), i.high, y));
}

/* ---- moves ------------------------------------------------------------------------------ */

/* Lanes whose power is not f_power's. */
MT_INLINE uint32_t special_lanes(const mt_turn *turn, vm active, vf squared)
{
  if (!turn->ordinary) return m_bits(active);
  return m_bits(m_and_not(active, m_within(squared, 0x1p-126f, INFINITY)));
}

MT_INLINE vf f_pull(const mt_turn *turn, vm active, vf squared)
{
  float a = turn->now->a, b = turn->now->b;
  vf power = f_power(squared, b);
  vf pull = -2.0f * a * b * power / (squared * (a * power + 1.0f));
  pull = f_max(f_set(-FLT_MAX), pull);
  for (uint32_t left = special_lanes(turn, active, squared); left != 0;
       left &= left - 1) {
    int lane = __builtin_ctz(left);
    pull[lane] = mt_umap_pull(squared[lane], a, b);
  }
  return pull;
}

MT_INLINE vf f_push(const mt_turn *turn, vm active, vf squared)
{
  float a = turn->now->a, b = turn->now->b, strength = turn->now->strength;
  vf push =
      2.0f * strength * b / ((0.001f + squared) * (a * f_power(squared, b) + 1.0f));
  for (uint32_t left = special_lanes(turn, active, squared); left != 0;
       left &= left - 1) {
    int lane = __builtin_ctz(left);
    push[lane] = mt_umap_push(squared[lane], a, b, strength);
  }
  return push;
}

/* mt_umap_clip, also of NaN. */
MT_INLINE vf f_clip(vf value)
{
  return f_min(f_set(4.0f), f_max(f_set(-4.0f), value));
}

MT_INLINE void move_along(const mt_turn *turn, vm active, vf gradient, vf along_x,
                          vf along_y, mt_group *g)
{
  float rate = turn->now->alpha;
  g->x = f_select(active, g->x + rate * f_clip(gradient * along_x), g->x);
  g->y = f_select(active, g->y + rate * f_clip(gradient * along_y), g->y);
}

/* The e-th acting edge of a side; fresh: lanes that read from where they have got to. */
MT_INLINE void pull_group(const mt_turn *turn, int side, int32_t e, vm active, vm fresh,
                          mt_group *g)
{
  vf x, y;
  vl end = l_gather(turn->room->side[side].ends, l_of_i(g->first[side] + e));
  f_gather2(turn->now->positions, end, &x, &y);
  g->from_x = f_select(fresh, g->x, g->from_x);
  g->from_y = f_select(fresh, g->y, g->from_y);
  x = g->from_x - x;
  y = g->from_y - y;
  move_along(turn, active, f_pull(turn, active, x * x + y * y), x, y, g);
}

/* The two random points of a block (mt_umap_stranger): Philox4x32-10 with each word in the
 * lower half of 64 bits. */
MT_INLINE void draw_half(const mt_moment *now, vl_half point, uint32_t block,
                         vl_half out[2])
{
  uint32_t step = (uint32_t)(now->epoch * MT_UMAP_TURNS + now->turn);
  uint32_t key0 = now->seed, key1 = MT_STREAM_UMAP_NEGATIVE;
  vl_half a = point, b = point >> 32, c = l_set(step), d = l_set(block);
#pragma GCC unroll 10
  for (int round = 0; round < 10; round++) {
    vl_half first = l_multiply(a, l_set(PHILOX_M4x32_0));
    vl_half second = l_multiply(c, l_set(PHILOX_M4x32_1));
    a = l_xor3(second >> 32, b, l_set(key0));
    b = second;
    c = l_xor3(first >> 32, d, l_set(key1));
    d = first;
    key0 += PHILOX_W32_0;
    key1 += PHILOX_W32_1;
  }
  vl_half n = l_set((uint64_t)now->n);
  out[0] = (l_multiply(a, n) + (l_multiply(b, n) >> 32)) >> 32;
  out[1] = (l_multiply(c, n) + (l_multiply(d, n) >> 32)) >> 32;
}

MT_INLINE void push_group(const mt_turn *turn, vl stranger, vm active, mt_group *g)
{
  vf x, y;
  f_gather2(turn->now->positions, stranger, &x, &y);
  active = m_and_not(active, m_equal(stranger, g->point));
  x = g->x - x;
  y = g->y - y;
  move_along(turn, active, f_push(turn, active, x * x + y * y), x, y, g);
}

static void move_group(const mt_turn *turn, mt_group *g)
{
  int64_t draw = 0;
  vl_half low[2], high[2];
  for (int32_t e = 0; e < g->most[0]; e++) {
    vm active = m_more(g->count[0], (vi){0} + e);
    pull_group(turn, 0, e, active, e % MT_UMAP_PULLS == 0 ? active : m_none(), g);
    for (int64_t s = 0; s < turn->now->negatives; s++, draw++) {
      if (draw % 2 == 0) {
        draw_half(turn->now, g->point.low, (uint32_t)(draw / 2), low);
        draw_half(turn->now, g->point.high, (uint32_t)(draw / 2), high);
      }
      push_group(turn, (vl){low[draw % 2], high[draw % 2]}, active, g);
    }
  }
  for (int32_t e = 0; e < g->most[1]; e++) {
    vm active = m_more(g->count[1], (vi){0} + e);
    vi pulls = (g->count[0] + e) & (MT_UMAP_PULLS - 1); /* a power of two */
    pull_group(turn, 1, e, active, m_and_not(active, m_more(pulls, (vi){0})), g);
  }
}

/* Up to LANES points of the chunk, in the room's order; lanes without a point have no edges. */
static void load_group(const mt_turn *turn, int64_t chunk, int64_t at, int64_t lanes,
                       mt_group *g)
{
  const mt_moment *now = turn->now;
  *g = (mt_group){.most = {0, 0}};
  int64_t point[LANES] = {0};
  for (int64_t l = 0; l < lanes; l++) {
    int64_t i = turn->room->order[at + l];
    point[l] = now->first + chunk + i;
    for (int side = 0; side < 2; side++) {
      int32_t count = count_of(turn->room, side, i);
      g->first[side][l] = turn->room->side[side].first[i];
      g->count[side][l] = count;
      if (count > g->most[side]) g->most[side] = count;
    }
  }
  memcpy(&g->point, point, sizeof point);
  f_gather2(now->positions, g->point, &g->x, &g->y);
}

static void store_group(const mt_turn *turn, int64_t chunk, int64_t at, int64_t lanes,
                        const mt_group *g, float *next)
{
  for (int64_t l = 0; l < lanes; l++) {
    float *to = next + (chunk + turn->room->order[at + l]) * 2;
    to[0] = g->x[l];
    to[1] = g->y[l];
  }
}

static void move(const mt_moment *now, mt_umap_room *room, int64_t first, int64_t count,
                 float *next)
{
  mt_turn turn = {.now = now, .room = room, .ordinary = now->b > 0.0f && now->b < 7.0f};
  if (now->epoch <= 0) { /* nothing acts */
    memcpy(next + first * 2, now->positions + (now->first + first) * 2,
           (size_t)(count * 2) * sizeof *next);
    return;
  }
  for (int side = 0; side < 2; side++) {
    int of = (now->turn + side * MT_UMAP_TURNS / 2) % MT_UMAP_TURNS;
    find_acting(now, room, side, now->edges.first + of * now->edges.points + first,
                count);
  }
  sort_points(count, room);
  for (int64_t at = 0; at < count; at += LANES) {
    mt_group g;
    int64_t lanes = count - at < LANES ? count - at : LANES;
    load_group(&turn, first, at, lanes, &g);
    move_group(&turn, &g);
    store_group(&turn, first, at, lanes, &g, next);
  }
}

static bool usable(void)
{
  return USABLE;
}

const mt_umap_kernel KERNEL = {
    .name = KERNEL_NAME, .usable = usable, .on_lanes = true, .move = move};
