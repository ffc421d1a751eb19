/* How busy a GPU is, as its driver samples it (NVML, loaded where there is one): the share of
 * time in which at least one kernel ran on it, of whatever process. It says nothing of how much
 * of the GPU a kernel filled. An H200 is sampled every 0.2 s. */
#ifndef MT_REPORT_GPU_WATCH_H
#define MT_REPORT_GPU_WATCH_H

typedef struct mt_gpu_watch mt_gpu_watch;

/* Watches from now on, from a thread that sleeps in between (the driver keeps a few seconds of
 * samples). bus_id as mt_device has it. NULL: this driver or GPU does not tell. Not collective. */
mt_gpu_watch *mt_gpu_watch_start(const char *bus_id);

/* Seconds since the start that samples cover, and of those, seconds that the GPU was busy. The
 * last fifth of a second may be missing. */
void mt_gpu_watch_read(mt_gpu_watch *watch, double *covered_out, double *busy_out);

void mt_gpu_watch_stop(mt_gpu_watch *watch); /* NULL is fine */

#endif
