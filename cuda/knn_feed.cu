/* Rows that do not fit on the GPUs are read from the host, block by block, while the GPU works
 * on the block before. */
#include "knn_parts.h"

mt_knn_feed::~mt_knn_feed()
{
  if (made > 0) cudaStreamSynchronize(stream);
  for (int b = 0; b < 2; b++) {
    if (host[b] != nullptr) cudaFreeHost(host[b]);
    if (made > 1 + b) cudaEventDestroy(copied[b]);
    if (made > 3 + b) cudaEventDestroy(freed[b]);
  }
  if (made > 0) cudaStreamDestroy(stream);
}

static mt_status new_event(mt_knn_feed *feed, cudaEvent_t *event)
{
  MT_CUDA(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  feed->made++;
  return MT_OK;
}

mt_status mt_knn_feed_open(mt_gpu *gpu, const mt_rows *rows, int64_t block,
                           bool buffers, mt_knn_feed *feed)
{
  size_t bytes = (size_t)(block * rows->d) * sizeof(float);
  feed->gpu = gpu;
  feed->rows = rows;
  feed->block = block;
  MT_CUDA(cudaStreamCreateWithFlags(&feed->stream, cudaStreamNonBlocking));
  feed->made++;
  for (int b = 0; b < 2; b++) MT_PASS(new_event(feed, &feed->copied[b]));
  for (int b = 0; b < 2; b++) MT_PASS(new_event(feed, &feed->freed[b]));
  for (int b = 0; b < 2; b++) {
    if (bytes > 0) MT_CUDA(cudaMallocHost((void **)&feed->host[b], bytes));
    if (buffers)
      MT_PASS(feed->there[b].make(gpu, block * rows->d, "rows on their way"));
  }
  for (int b = 0; b < 2; b++) MT_CUDA(cudaEventRecord(feed->freed[b], gpu->stream));
  return MT_OK;
}

mt_status mt_knn_feed_copy(mt_knn_feed *feed, int64_t first, int64_t count, float *to)
{
  int b = feed->turn++ % 2;
  size_t bytes = (size_t)(count * feed->rows->d) * sizeof(float);
  feed->bytes += (int64_t)bytes;
  MT_CUDA(cudaEventSynchronize(feed->copied[b])); /* the host's buffer is free again */
  MT_PASS(feed->rows->read(feed->rows, first, count, feed->host[b]));
  MT_CUDA(cudaStreamWaitEvent(feed->stream, feed->freed[b], 0));
  if (bytes > 0)
    MT_CUDA(cudaMemcpyAsync(to, feed->host[b], bytes, cudaMemcpyHostToDevice,
                            feed->stream));
  MT_CUDA(cudaEventRecord(feed->copied[b], feed->stream));
  MT_CUDA(cudaStreamWaitEvent(feed->gpu->stream, feed->copied[b], 0));
  return MT_OK;
}

mt_status mt_knn_feed_free(mt_knn_feed *feed)
{
  MT_CUDA(cudaEventRecord(feed->freed[(feed->turn + 1) % 2], feed->gpu->stream));
  return MT_OK;
}

mt_status mt_knn_upload(mt_gpu *gpu, const mt_rows *rows, int64_t first, int64_t count,
                        float *to)
{
  mt_knn_feed feed;
  int64_t block = ((int64_t)1 << 26) / (rows->d * (int64_t)sizeof(float) + 1);
  if (block > count) block = count;
  if (block < 1) block = 1;
  MT_PASS(mt_knn_feed_open(gpu, rows, block, false, &feed));
  for (int64_t at = 0; at < count; at += block) {
    int64_t many = count - at < block ? count - at : block;
    MT_PASS(mt_knn_feed_copy(&feed, first + at, many, to + at * rows->d));
  }
  return mt_gpu_wait(gpu);
}

mt_status mt_knn_read(mt_knn_search *s, int64_t first, int64_t count, float *to)
{
  mt_knn_feed *feed = s->feed;
  for (int64_t at = 0; at < count; at += feed->block) {
    int64_t many = count - at < feed->block ? count - at : feed->block;
    MT_CUDA(cudaEventRecord(feed->freed[feed->turn % 2], s->gpu->stream));
    MT_PASS(mt_knn_feed_copy(feed, first + at, many, to + at * s->d));
  }
  return MT_OK;
}

/* One after the other: they are few. */
mt_status mt_knn_gather(mt_knn_search *s, int64_t count, const uint32_t *pick,
                        mt_array<float> *hold, const float **raw_out)
{
  mt_status status = MT_OK;
  uint32_t *picked = NULL;
  MT_PASS(hold->make(s->gpu, count * s->d, "rows to search again"));
  *raw_out = hold->data;
  if (s->raw != nullptr) {
    const float *raw = s->raw;
    float *out = hold->data;
    int64_t d = s->d;
    return mt_gpu_each(s->gpu, count * d, [=] __device__(int64_t at) {
      out[at] = raw[(int64_t)pick[at / d] * d + at % d];
    });
  }
  MT_NEW(picked, count);
  MT_TRY(mt_to_host(s->gpu, count, pick, picked));
  for (int64_t i = 0; i < count; i++)
    MT_TRY(mt_knn_read(s, s->first + picked[i], 1, hold->data + i * s->d));
done:
  free(picked);
  return status;
}
