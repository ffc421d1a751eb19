/* The instances of primitives.h that there are: included once, after the templates. */
#define MT_SORT_PAIRS(K, V) \
  template mt_status mt_gpu_sort_pairs(mt_gpu *, int64_t, K *, V *, int, int);
#define MT_SORT(K)                                                       \
  template mt_status mt_gpu_sort_keys(mt_gpu *, int64_t, K *, int, int); \
  MT_SORT_PAIRS(K, int32_t)                                              \
  MT_SORT_PAIRS(K, uint32_t) MT_SORT_PAIRS(K, int64_t) MT_SORT_PAIRS(K, uint64_t)
MT_SORT(uint32_t)
MT_SORT(uint64_t)
template mt_status mt_gpu_scan(mt_gpu *, int64_t, const int32_t *, int64_t *);
template mt_status mt_gpu_scan(mt_gpu *, int64_t, const int64_t *, int64_t *);
template mt_status mt_gpu_select(mt_gpu *, int64_t, const uint8_t *, int32_t *,
                                 int64_t *);
template mt_status mt_gpu_select(mt_gpu *, int64_t, const uint8_t *, uint32_t *,
                                 int64_t *);
template mt_status mt_gpu_select(mt_gpu *, int64_t, const uint8_t *, int64_t *,
                                 int64_t *);
#define MT_EXTREMES(T)                                              \
  template mt_status mt_gpu_max(mt_gpu *, int64_t, const T *, T *); \
  template mt_status mt_gpu_min(mt_gpu *, int64_t, const T *, T *);
MT_EXTREMES(float)
MT_EXTREMES(double)
MT_EXTREMES(int32_t)
MT_EXTREMES(int64_t)
MT_EXTREMES(uint64_t)
