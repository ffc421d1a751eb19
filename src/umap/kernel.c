#include "umap/kernel.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- one point after the other ---------------------------------------------------------- */

static bool always(void)
{
  return true;
}

static void move(const mt_moment *now, mt_umap_room *room, int64_t first, int64_t count,
                 float *next)
{
  int64_t dims = now->dims;
  const float *own = now->positions + now->first * dims;
  memcpy(next + first * dims, own + first * dims,
         (size_t)(count * dims) * sizeof *next);
  for (int64_t i = first; i < first + count; i++)
    mt_umap_move_point(now, dims, i, room->from, next + i * dims);
}

const mt_umap_kernel mt_umap_kernel_portable = {
    .name = "portable", .usable = always, .on_lanes = false, .move = move};

/* ---- which, and room for it ------------------------------------------------------------- */

static const mt_umap_kernel *const kernels[] = {
#if defined(__x86_64__)
    &mt_umap_kernel_avx512, &mt_umap_kernel_avx2,
#endif
    &mt_umap_kernel_portable};

const mt_umap_kernel *mt_umap_kernel_find(const char *name, int64_t n, int64_t dims)
{
  for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
    if (!kernels[i]->usable() || (name != NULL && strcmp(name, kernels[i]->name) != 0))
      continue;
    if (!kernels[i]->on_lanes || (dims == 2 && n <= UINT32_MAX)) return kernels[i];
  }
  return NULL;
}

/* Edges of the chunk and turn that have most. */
static int64_t most_edges(const mt_turns *edges, int64_t chunk)
{
  int64_t most = 0;
  for (int turn = 0; turn < MT_UMAP_TURNS; turn++)
    for (int64_t i = 0; i < edges->points; i += chunk) {
      int64_t end = i + chunk < edges->points ? i + chunk : edges->points;
      const int64_t *first = edges->first + turn * edges->points;
      if (first[end] - first[i] > most) most = first[end] - first[i];
    }
  return most;
}

mt_status mt_umap_room_new(const mt_turns *edges, int64_t dims, int64_t chunk,
                           mt_umap_room **room_out)
{
  mt_status status = MT_OK;
  mt_umap_room *room = NULL;
  int64_t most = most_edges(edges, chunk);
  MT_NEW(room, 1);
  for (int side = 0; side < 2; side++) {
    MT_NEW(room->side[side].ends, 2 * most + MT_UMAP_SPARE); /* lanes read on */
    MT_NEW(room->side[side].first, MT_UMAP_CHUNK + 1);
    MT_NEW(room->side[side].bits, most / 16 + 1);
    MT_NEW(room->side[side].before, most / 16 + 1);
  }
  MT_NEW(room->order, MT_UMAP_CHUNK);
  MT_NEW(room->from, dims);
  *room_out = room;
  room = NULL;
done:
  mt_umap_room_free(room);
  return status;
}

void mt_umap_room_free(mt_umap_room *room)
{
  if (room == NULL) return;
  for (int side = 0; side < 2; side++) {
    free(room->side[side].ends);
    free(room->side[side].first);
    free(room->side[side].bits);
    free(room->side[side].before);
  }
  free(room->order);
  free(room->from);
  free(room);
}
