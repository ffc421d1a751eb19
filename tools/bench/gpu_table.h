/* The table of bench_gpu: a row for each stage, size and number of GPUs, for people as it is
 * done and for other programs in a CSV file; other programs' seconds beside ours. */
#ifndef MT_BENCH_GPU_TABLE_H
#define MT_BENCH_GPU_TABLE_H
#include "base/status.h"
#include <stdint.h>
#include <stdio.h>

enum { MT_MOST_PHASES = 24, MT_MOST_PEERS = 8, MT_PHASE_NAME = 32 };

typedef struct mt_phase {
  char name[MT_PHASE_NAME];
  double seconds;
} mt_phase;

typedef struct mt_bench_row {
  const char *stage;
  int64_t n, d; /* rows or points, columns or dimensions */
  int gpus, runs;
  double seconds;     /* median of the runs */
  double least, most; /* of the runs */
  double work;        /* rate: work / seconds, in `unit` a second */
  const char *unit;
  double
      limit_seconds; /* that the limit alone allows: share = limit_seconds / seconds */
  char limit[64];    /* what it is, with its measured figure */
  int64_t bytes;     /* sent between GPUs by all of them, in one run */
  double exchange_seconds; /* in NCCL, of the GPU with the most */
  int n_phases;
  mt_phase phases[MT_MOST_PHASES];
  char notes[512];
} mt_bench_row;

/* A row whose figures are 0. */
mt_bench_row mt_bench_row_of(const char *stage, int64_t n, int64_t d, int gpus);
/* Adds seconds to the phase of that name, which is made if it is new. */
void mt_bench_phase(mt_bench_row *row, const char *name, double seconds);
/* Appends to the notes, printf's. */
void mt_bench_note(mt_bench_row *row, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

typedef struct mt_bench_table {
  FILE *csv;                       /* NULL: none; owned */
  struct mt_peer_time *peer_times; /* owned */
  int64_t n_peer_times;
  int n_peers;
  char peers[MT_MOST_PEERS][MT_PHASE_NAME];
} mt_bench_table;

/**
 * csv_path    where the rows go too, or NULL. One line a row; phases as name=seconds joined
 *             by ';'; a column PEER_seconds for each peer
 * peers_path  a CSV file of others' seconds, or NULL: first line
 *             peer,stage,n,d,gpus,seconds, then such lines (gpus: GPUs that the peer used)
 * Errors      MT_ERR_INPUT naming the line; MT_ERR_IO; MT_ERR_MEMORY
 */
mt_status mt_bench_table_open(const char *csv_path, const char *peers_path,
                              mt_bench_table *table_out);
void mt_bench_table_head(const mt_bench_table *table);
/* Prints the row, its phases and its notes to stdout, and writes it to the CSV file. */
mt_status mt_bench_table_add(mt_bench_table *table, const mt_bench_row *row);
mt_status mt_bench_table_close(mt_bench_table *table);

#endif
