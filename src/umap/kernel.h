/* How a thread moves its points in a turn (umap/move.h), in ways that are chosen at run time
 * and give the same bits: one point after the other, or with a point in each lane of a vector
 * (AVX-512, AVX2). Nothing here is collective. */
#ifndef MT_UMAP_KERNEL_H
#define MT_UMAP_KERNEL_H
#include "base/status.h"
#include "umap/move.h"

enum {
  MT_UMAP_CHUNK = 4096, /* points that a thread takes at a time, at most */
  MT_UMAP_SPARE = 16,   /* elements that may be read beyond others and shares */
};

/* Room for a thread's chunk. Side 0 has the turn's edges that begin at a point, side 1 those
 * that end there. */
typedef struct mt_umap_room {
  struct {
    int64_t *ends;   /* the acting edges' other ends, point by point */
    int32_t *first;  /* (MT_UMAP_CHUNK + 1) where each point's begin */
    uint16_t *bits;  /* of each 16 edges of the chunk, which act */
    int32_t *before; /* and how many do before them */
  } side[2];
  int32_t
      *order;  /* (MT_UMAP_CHUNK) the points, those with as many edges side by side */
  float *from; /* (dims) */
} mt_umap_room;

/* For chunks of that many points, from the first on. chunk <= MT_UMAP_CHUNK. */
mt_status mt_umap_room_new(const mt_turns *edges, int64_t dims, int64_t chunk,
                           mt_umap_room **room_out);
void mt_umap_room_free(mt_umap_room *room); /* NULL is fine */

typedef struct mt_umap_kernel {
  const char *name;
  bool (*usable)(void); /* on this processor */
  bool on_lanes;        /* moves in 2 dimensions, of fewer than 2^32 points, alone */

  /* Where points [first, first + count) of the edges' go: next (edges.points, dims), theirs
   * are written. count <= MT_UMAP_CHUNK. */
  void (*move)(const mt_moment *now, mt_umap_room *room, int64_t first, int64_t count,
               float *next);
} mt_umap_kernel;

extern const mt_umap_kernel mt_umap_kernel_avx512, mt_umap_kernel_avx2,
    mt_umap_kernel_portable;

/* The fastest that is usable for n points in dims dimensions; or the one called `name`, NULL if
 * it is not. */
const mt_umap_kernel *mt_umap_kernel_find(const char *name, int64_t n, int64_t dims);

#endif
