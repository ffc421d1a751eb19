#include "report/gpu_watch.h"
#include "base/log.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  MOST_SAMPLES = 1024,
  LOOK_SECONDS = 2, /* the driver keeps more than ten seconds */
  LONGEST_SAMPLE =
      1000000 /* microseconds; between samples farther apart nobody looked */
};

/* Of nvml.h, which not every machine that builds this has. */
typedef struct nvml_sample {
  unsigned long long at; /* microseconds since 1970 */
  union {
    double real;
    unsigned int word;
    unsigned long long longword;
  } value;
} nvml_sample;
enum { NVML_UTILIZATION = 1, NVML_REAL = 0, NVML_WORD = 1 };

typedef struct nvml {
  void *library;
  int (*init)(void);
  int (*shutdown)(void);
  int (*find)(const char *bus_id, void **device_out);
  int (*samples)(void *device, int kind, unsigned long long after, int *type_out,
                 unsigned int *count, nvml_sample *samples_out);
} nvml;

struct mt_gpu_watch {
  nvml nvml;
  void *device;
  pthread_t thread;
  pthread_mutex_t lock; /* of all below */
  pthread_cond_t wake;
  bool ends;
  uint64_t seen; /* the last sample's time */
  double covered, busy;
  nvml_sample samples[MOST_SAMPLES];
};

static bool load(nvml *n)
{
  n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (n->library == NULL) return false;
  *(void **)&n->init = dlsym(n->library, "nvmlInit_v2");
  *(void **)&n->shutdown = dlsym(n->library, "nvmlShutdown");
  *(void **)&n->find = dlsym(n->library, "nvmlDeviceGetHandleByPciBusId_v2");
  *(void **)&n->samples = dlsym(n->library, "nvmlDeviceGetSamples");
  bool whole = n->init != NULL && n->shutdown != NULL && n->find != NULL &&
               n->samples != NULL && n->init() == 0;
  if (!whole) dlclose(n->library);
  return whole;
}

static double share(const nvml_sample *sample, int type)
{
  double percent = type == NVML_REAL   ? sample->value.real
                   : type == NVML_WORD ? (double)sample->value.word
                                       : (double)sample->value.longword;
  return percent >= 0.0 && percent <= 100.0 ? percent / 100.0 : 0.0;
}

/* What is new: a sample tells of the time since the one before. With the lock. */
static bool look(mt_gpu_watch *watch)
{
  int type = NVML_WORD;
  unsigned int count = MOST_SAMPLES;
  if (watch->nvml.samples(watch->device, NVML_UTILIZATION, watch->seen, &type, &count,
                          watch->samples) != 0)
    return false; /* none is new, or it does not tell */
  for (unsigned int i = 0; i < count && i < MOST_SAMPLES; i++) {
    uint64_t at = watch->samples[i].at, since = at - watch->seen;
    if (at <= watch->seen) continue;
    if (since <= LONGEST_SAMPLE) {
      watch->covered += 1e-6 * (double)since;
      watch->busy += 1e-6 * (double)since * share(&watch->samples[i], type);
    }
    watch->seen = at;
  }
  return true;
}

static void *keep_looking(void *context)
{
  mt_gpu_watch *watch = context;
  struct timespec until;
  pthread_mutex_lock(&watch->lock);
  clock_gettime(CLOCK_MONOTONIC, &until);
  while (!watch->ends) {
    look(watch);
    until.tv_sec += LOOK_SECONDS;
    while (!watch->ends && pthread_cond_clockwait(&watch->wake, &watch->lock,
                                                  CLOCK_MONOTONIC, &until) == 0) {
    }
  }
  pthread_mutex_unlock(&watch->lock);
  return NULL;
}

/* Signals are for the main thread, whose calls they are to interrupt. */
static bool start_thread(mt_gpu_watch *watch)
{
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = pthread_create(&watch->thread, NULL, keep_looking, watch) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return started;
}

static void unload(mt_gpu_watch *watch)
{
  watch->nvml.shutdown();
  dlclose(watch->nvml.library);
  pthread_mutex_destroy(&watch->lock);
  pthread_cond_destroy(&watch->wake);
  free(watch);
}

mt_gpu_watch *mt_gpu_watch_start(const char *bus_id)
{
  mt_gpu_watch *watch = calloc(1, sizeof *watch);
  if (watch == NULL || !load(&watch->nvml)) {
    free(watch);
    mt_debug("no NVML: how busy GPUs are is not measured");
    return NULL;
  }
  pthread_mutex_init(&watch->lock, NULL);
  pthread_cond_init(&watch->wake, NULL);
  bool tells = watch->nvml.find(bus_id, &watch->device) == 0 && look(watch);
  watch->covered = watch->busy = 0.0; /* what was before does not count */
  if (tells && start_thread(watch)) return watch;
  mt_debug("GPU %s: NVML does not tell how busy it is", bus_id);
  unload(watch);
  return NULL;
}

void mt_gpu_watch_read(mt_gpu_watch *watch, double *covered_out, double *busy_out)
{
  pthread_mutex_lock(&watch->lock);
  look(watch);
  *covered_out = watch->covered;
  *busy_out = watch->busy;
  pthread_mutex_unlock(&watch->lock);
}

void mt_gpu_watch_stop(mt_gpu_watch *watch)
{
  if (watch == NULL) return;
  pthread_mutex_lock(&watch->lock);
  watch->ends = true;
  pthread_cond_signal(&watch->wake);
  pthread_mutex_unlock(&watch->lock);
  pthread_join(watch->thread, NULL);
  unload(watch);
}
