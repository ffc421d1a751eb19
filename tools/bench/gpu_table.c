#include "gpu_table.h"

#include "base/memory.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct mt_peer_time {
  int peer, gpus;
  char stage[MT_PHASE_NAME];
  int64_t n, d;
  double seconds;
} mt_peer_time;

mt_bench_row mt_bench_row_of(const char *stage, int64_t n, int64_t d, int gpus)
{
  return (mt_bench_row){.stage = stage, .n = n, .d = d, .gpus = gpus};
}

void mt_bench_phase(mt_bench_row *row, const char *name, double seconds)
{
  int i = 0;
  while (i < row->n_phases && strcmp(row->phases[i].name, name) != 0) i++;
  if (i == MT_MOST_PHASES) return;
  if (i == row->n_phases) {
    row->n_phases++;
    snprintf(row->phases[i].name, MT_PHASE_NAME, "%s", name);
    row->phases[i].seconds = 0.0;
  }
  row->phases[i].seconds += seconds;
}

void mt_bench_note(mt_bench_row *row, const char *format, ...)
{
  size_t used = strlen(row->notes);
  va_list list;
  va_start(list, format);
  if (used > 0 && used + 2 < sizeof row->notes) {
    strcpy(row->notes + used, ", ");
    used += 2;
  }
  vsnprintf(row->notes + used, sizeof row->notes - used, format, list);
  va_end(list);
}

/* ---- others' seconds ------------------------------------------------------------------- */

static int peer_of(mt_bench_table *table, const char *name)
{
  int i = 0;
  while (i < table->n_peers && strcmp(table->peers[i], name) != 0) i++;
  if (i == MT_MOST_PEERS) return -1;
  if (i == table->n_peers)
    snprintf(table->peers[table->n_peers++], MT_PHASE_NAME, "%s", name);
  return i;
}

static mt_status read_peer(mt_bench_table *table, const char *path, int line,
                           const char *text, mt_peer_time *time_out)
{
  char peer[MT_PHASE_NAME];
  long long n, d;
  mt_peer_time time = {0};
  if (sscanf(text, "%31[^,],%31[^,],%lld,%lld,%d,%lf", peer, time.stage, &n, &d,
             &time.gpus, &time.seconds) != 6 ||
      !(time.seconds > 0.0))
    return mt_fail(MT_ERR_INPUT, "%s:%d: not peer,stage,n,d,gpus,seconds: %s", path,
                   line, text);
  time.n = n;
  time.d = d;
  time.peer = peer_of(table, peer);
  if (time.peer < 0)
    return mt_fail(MT_ERR_INPUT, "%s:%d: more than %d peers", path, line,
                   MT_MOST_PEERS);
  *time_out = time;
  return MT_OK;
}

static mt_status read_peers(const char *path, mt_bench_table *table)
{
  mt_status status = MT_OK;
  int64_t capacity = 0;
  char text[256];
  FILE *file = fopen(path, "r");
  MT_REQUIRE(file != NULL, MT_ERR_IO, "cannot open %s: %s", path, strerror(errno));
  for (int line = 1; fgets(text, sizeof text, file) != NULL; line++) {
    text[strcspn(text, "\r\n")] = '\0';
    if (line == 1 || text[0] == '\0') continue;
    MT_GROW(table->peer_times, capacity, table->n_peer_times + 1);
    MT_TRY(read_peer(table, path, line, text, &table->peer_times[table->n_peer_times]));
    table->n_peer_times++;
  }
done:
  if (file != NULL) fclose(file);
  return status;
}

/* A peer's least seconds for the row's stage and size, with its own number of GPUs if it has
 * the row's, else with any; NULL: none. */
static const mt_peer_time *peer_time(const mt_bench_table *table,
                                     const mt_bench_row *row, int peer)
{
  const mt_peer_time *best = NULL;
  for (int64_t i = 0; i < table->n_peer_times; i++) {
    const mt_peer_time *t = &table->peer_times[i];
    if (t->peer != peer || t->n != row->n || t->d != row->d ||
        strcmp(t->stage, row->stage) != 0)
      continue;
    bool same = t->gpus == row->gpus, best_same = best && best->gpus == row->gpus;
    if (best == NULL || same > best_same ||
        (same == best_same && t->seconds < best->seconds))
      best = t;
  }
  return best;
}

/* ---- the table ------------------------------------------------------------------------- */

mt_status mt_bench_table_open(const char *csv_path, const char *peers_path,
                              mt_bench_table *table_out)
{
  mt_status status = MT_OK;
  mt_bench_table table = {0};
  if (peers_path != NULL) MT_TRY(read_peers(peers_path, &table));
  if (csv_path != NULL) {
    table.csv = fopen(csv_path, "w");
    MT_REQUIRE(table.csv != NULL, MT_ERR_IO, "cannot write %s: %s", csv_path,
               strerror(errno));
    fprintf(table.csv, "stage,n,d,gpus,runs,seconds,least,most,rate,unit,limit,"
                       "limit_seconds,share,bytes_sent,nccl_seconds,phases,notes");
    for (int p = 0; p < table.n_peers; p++)
      fprintf(table.csv, ",%s_seconds", table.peers[p]);
    fprintf(table.csv, "\n");
  }
  *table_out = table;
  return MT_OK;
done:
  free(table.peer_times);
  return status;
}

void mt_bench_table_head(const mt_bench_table *table)
{
  printf("%-8s %9s %6s %4s %4s %9s %18s %6s  %-34s %9s %8s", "stage", "points", "dims",
         "GPUs", "runs", "seconds", "rate", "share", "of the limit", "sent MB",
         "NCCL s");
  for (int p = 0; p < table->n_peers; p++) printf(" %10s", table->peers[p]);
  printf("\n");
}

static void print_phases(const mt_bench_row *row)
{
  int column = 0;
  for (int i = 0; i < row->n_phases; i++) {
    if (column == 0 || column > 80)
      column = printf("%s        ", column ? "\n" : "") - 1;
    column += printf("  %s %.4f", row->phases[i].name, row->phases[i].seconds);
  }
  if (row->n_phases > 0) printf("\n");
  if (row->notes[0] != '\0') printf("          %s\n", row->notes);
}

static void print_row(const mt_bench_table *table, const mt_bench_row *row)
{
  double share = row->seconds > 0.0 ? row->limit_seconds / row->seconds : 0.0;
  char rate[32];
  snprintf(rate, sizeof rate, "%.1f %s/s", row->work / row->seconds, row->unit);
  printf("%-8s %9lld %6lld %4d %4d %9.4f %18s %5.1f%%  %-34s %9.1f %8.4f", row->stage,
         (long long)row->n, (long long)row->d, row->gpus, row->runs, row->seconds, rate,
         100.0 * share, row->limit, 1e-6 * (double)row->bytes, row->exchange_seconds);
  for (int p = 0; p < table->n_peers; p++) {
    const mt_peer_time *time = peer_time(table, row, p);
    if (time == NULL)
      printf(" %10s", "-");
    else
      printf(" %10.4f", time->seconds);
  }
  printf("\n");
  print_phases(row);
  fflush(stdout);
}

static void write_row(const mt_bench_table *table, const mt_bench_row *row)
{
  FILE *csv = table->csv;
  fprintf(csv,
          "%s,%lld,%lld,%d,%d,%.6f,%.6f,%.6f,%.6g,%s/s,\"%s\",%.6f,%.4f,%lld,%.6f,\"",
          row->stage, (long long)row->n, (long long)row->d, row->gpus, row->runs,
          row->seconds, row->least, row->most, row->work / row->seconds, row->unit,
          row->limit, row->limit_seconds, row->limit_seconds / row->seconds,
          (long long)row->bytes, row->exchange_seconds);
  for (int i = 0; i < row->n_phases; i++)
    fprintf(csv, "%s%s=%.6f", i ? ";" : "", row->phases[i].name,
            row->phases[i].seconds);
  fprintf(csv, "\",\"%s\"", row->notes);
  for (int p = 0; p < table->n_peers; p++) {
    const mt_peer_time *time = peer_time(table, row, p);
    if (time == NULL)
      fprintf(csv, ",");
    else
      fprintf(csv, ",%.6f", time->seconds);
  }
  fprintf(csv, "\n");
  fflush(csv);
}

mt_status mt_bench_table_add(mt_bench_table *table, const mt_bench_row *row)
{
  print_row(table, row);
  if (table->csv == NULL) return MT_OK;
  write_row(table, row);
  return ferror(table->csv) ? mt_fail(MT_ERR_IO, "cannot write the CSV file") : MT_OK;
}

mt_status mt_bench_table_close(mt_bench_table *table)
{
  bool bad = table->csv != NULL && fclose(table->csv) != 0;
  free(table->peer_times);
  *table = (mt_bench_table){0};
  return bad ? mt_fail(MT_ERR_IO, "cannot write the CSV file: %s", strerror(errno))
             : MT_OK;
}
