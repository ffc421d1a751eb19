/* How a point moves in a turn of an epoch (umap/formulas.h): the heart of the layout, the same
 * on the CPU and on GPUs. A point adds up pulls along its edges, read from where it stands
 * (again after every few of them), and is pushed off random points from where it has got to,
 * one after the other, so that pushes cannot add up to more than they would in umap-learn's
 * loop. The other points stand where the turn before left them. */
#ifndef MT_UMAP_MOVE_H
#define MT_UMAP_MOVE_H
#include "base/random.h"
#include "deck/parameters.h"
#include "umap/formulas.h"

/* Some points' edges by turn: those of point i in turn t are numbers first[t points + i] to
 * first[t points + i + 1]. */
typedef struct mt_turns {
  int64_t points;
  int64_t *first;  /* (turns x points + 1) */
  int64_t *others; /* the other ends */
  float *shares;   /* weight over the heaviest */
} mt_turns;

/* What is the same for all points in a turn. */
typedef struct mt_moment {
  int64_t n, first, dims; /* first: the number of edges' point 0 among all n */
  mt_turns edges;
  const float *positions; /* (n, dims) that the turn before left */
  int64_t epoch;
  int turn;
  float a, b, strength, alpha;
  int64_t negatives; /* for each edge that acts */
  uint32_t seed;
} mt_moment;

/* Before the first epoch; edges and positions are the caller's to set. */
mt_moment mt_umap_first_moment(const mt_umap_options *options, int64_t n,
                               int64_t first);

/* Which of up to 32 edges act in an epoch: bit e for the e-th. */
MT_BOTH uint32_t mt_umap_acting(int count, const float *shares, int64_t epoch)
{
  uint32_t acting = 0;
  for (int e = 0; e < count; e++)
    acting |= (uint32_t)mt_umap_acts(shares[e], epoch) << e;
  return acting;
}

MT_BOTH int mt_lowest_bit(uint32_t bits)
{
#ifdef __CUDA_ARCH__
  return __ffs((int)bits) - 1;
#else
  return __builtin_ctz(bits);
#endif
}

MT_BOTH float mt_umap_squared(int64_t dims, const float *x, const float *y)
{
  float sum = 0.0f;
  for (int64_t c = 0; c < dims; c++) sum += (x[c] - y[c]) * (x[c] - y[c]);
  return sum;
}

/* `to` goes along the difference of `from` and `other`; from may be to. */
MT_BOTH void mt_umap_add_move(int64_t dims, float gradient, float rate,
                              const float *from, const float *other, float *to)
{
  for (int64_t c = 0; c < dims; c++)
    to[c] += rate * mt_umap_clip(gradient * (from[c] - other[c]));
}

/* The point's draw-th random point of this turn; two come out of a block of words. */
MT_BOTH int64_t mt_umap_stranger(const mt_moment *now, int64_t point, int64_t draw,
                                 uint32_t words[4])
{
  if (draw % 2 == 0)
    mt_random_words(now->seed, MT_STREAM_UMAP_NEGATIVE, (uint64_t)point,
                    (uint32_t)(now->epoch * MT_UMAP_TURNS + now->turn),
                    (uint32_t)(draw / 2), words);
  return draw % 2 == 0 ? mt_random_below_of(words[0], words[1], now->n)
                       : mt_random_below_of(words[2], words[3], now->n);
}

/* Pushes `to` off as many random points as an acting edge brings. */
MT_BOTH void mt_umap_push_point(const mt_moment *now, int64_t dims, int64_t point,
                                int64_t *draws, uint32_t words[4], float *to)
{
  for (int64_t s = 0; s < now->negatives; s++) {
    int64_t stranger = mt_umap_stranger(now, point, (*draws)++, words);
    if (stranger == point) continue;
    const float *other = now->positions + stranger * dims;
    float squared = mt_umap_squared(dims, to, other);
    mt_umap_add_move(dims, mt_umap_push(squared, now->a, now->b, now->strength),
                     now->alpha, to, other, to);
  }
}

/* to: (dims) where point i of the edges' stands, and then where it goes. from: (dims) for its
 * use. The turn's copies are of the edges that begin here, then of those whose copy from here
 * is two turns away: their other ends bring the random points. Acting edges are found first,
 * 32 at a time: the threads of a warp then move together. */
MT_BOTH void mt_umap_move_point(const mt_moment *now, int64_t dims, int64_t i,
                                float *from, float *to)
{
  int64_t draws = 0, pulls = 0;
  uint32_t words[4] = {0};
  for (int side = 0; side < 2; side++) {
    int turn = (now->turn + side * MT_UMAP_TURNS / 2) % MT_UMAP_TURNS;
    const int64_t *edges = now->edges.first + turn * now->edges.points + i;
    for (int64_t e = edges[0]; e < edges[1]; e += 32) {
      int count = edges[1] - e < 32 ? (int)(edges[1] - e) : 32;
      uint32_t acting = mt_umap_acting(count, now->edges.shares + e, now->epoch);
      for (; acting != 0; acting &= acting - 1) {
        int64_t end = now->edges.others[e + mt_lowest_bit(acting)];
        const float *other = now->positions + end * dims;
        if (pulls++ % MT_UMAP_PULLS == 0)
          for (int64_t c = 0; c < dims; c++) from[c] = to[c];
        float squared = mt_umap_squared(dims, from, other);
        mt_umap_add_move(dims, mt_umap_pull(squared, now->a, now->b), now->alpha, from,
                         other, to);
        if (side == 0) mt_umap_push_point(now, dims, now->first + i, &draws, words, to);
      }
    }
  }
}

#endif
