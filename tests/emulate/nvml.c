/* NVML's part that src/report/gpu_watch.c asks: a sample every 50 ms, of which the last two seconds
 * are kept, as busy as MT_EMULATED_BUSY says (percent). The GPU 0000:03:00.0 does not tell. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PERIOD = 50000, KEPT = 40, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7 };

typedef struct sample {
  unsigned long long at;
  unsigned long long value;
} sample;

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device_out);
int nvmlDeviceGetSamples(void *device, int kind, unsigned long long after,
                         int *type_out, unsigned int *count, sample *samples_out);

int nvmlInit_v2(void)
{
  return 0;
}

int nvmlShutdown(void)
{
  return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device_out)
{
  static int tells[2] = {0, 1};
  if (strncmp(bus_id, "0000:", 5) != 0) return NOT_FOUND;
  *device_out = &tells[strcmp(bus_id, "0000:03:00.0") != 0];
  return 0;
}

int nvmlDeviceGetSamples(void *device, int kind, unsigned long long after,
                         int *type_out, unsigned int *count, sample *samples_out)
{
  const char *busy = getenv("MT_EMULATED_BUSY");
  struct timespec now;
  unsigned int n = 0;
  if (kind != 1 || *(int *)device == 0) return NOT_SUPPORTED;
  clock_gettime(CLOCK_REALTIME, &now);
  unsigned long long last = ((unsigned long long)now.tv_sec * 1000000 +
                             (unsigned long long)now.tv_nsec / 1000) /
                            PERIOD;
  for (unsigned long long i = last - KEPT; i <= last; i++) {
    if (i * PERIOD <= after) continue;
    if (n == *count) return TOO_SMALL;
    samples_out[n].at = i * PERIOD;
    samples_out[n++].value = busy != NULL ? (unsigned long long)atoi(busy) : 0;
  }
  *type_out = 1;
  *count = n;
  return n > 0 ? 0 : NOT_FOUND;
}
