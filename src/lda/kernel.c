#include "lda/kernel.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static const mt_lda_kernel *const kernels[] = {
#if defined(__x86_64__)
    &mt_lda_kernel_avx512, &mt_lda_kernel_avx2,
#endif
    &mt_lda_kernel_portable};

const mt_lda_kernel *mt_lda_kernel_find(const char *name)
{
  for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
    if (kernels[i]->usable() && (name == NULL || strcmp(name, kernels[i]->name) == 0))
      return kernels[i];
  return NULL;
}

/* Hands out the next `count` floats, rounded up to a cache line. */
static float *take(float **at, int64_t count)
{
  float *taken = *at;
  *at += (count + MT_LDA_LANES - 1) / MT_LDA_LANES * MT_LDA_LANES;
  return taken;
}

mt_status mt_lda_room_new(int64_t n_components, int64_t longest, mt_lda_room **room_out)
{
  mt_status status = MT_OK;
  mt_lda_room *room = NULL;
  int64_t padded = (n_components + MT_LDA_LANES - 1) / MT_LDA_LANES * MT_LDA_LANES;
  int64_t words = (longest > 0 ? longest + MT_LDA_LANES - 1 : MT_LDA_LANES) /
                  MT_LDA_LANES * MT_LDA_LANES;
  MT_NEW(room, 1);
  MT_NEW(room->memory, MT_LDA_SLOTS * (words * (n_components + 2) + 7 * padded));
  float *at = room->memory;
  for (int s = 0; s < MT_LDA_SLOTS; s++) {
    mt_lda_slot *slot = &room->slots[s];
    slot->block = take(&at, words * n_components);
    slot->counts = take(&at, words);
    slot->ratio = take(&at, words);
    slot->gamma = take(&at, padded);
    slot->weight = take(&at, padded);
    slot->whole_gamma = take(&at, padded);
    slot->whole_weight = take(&at, padded);
    slot->topic = (int32_t *)take(&at, padded); /* as wide as a float */
    slot->groups = (int32_t *)take(&at, padded);
    slot->kept = (int32_t *)take(&at, padded);
  }
  *room_out = room;
  room = NULL;
done:
  mt_lda_room_free(room);
  return status;
}

void mt_lda_room_free(mt_lda_room *room)
{
  if (room == NULL) return;
  free(room->memory);
  free(room);
}
