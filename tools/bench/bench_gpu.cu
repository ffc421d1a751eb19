/* The three stages over all topic vectors on GPUs, timed, and held against what the machine
 * can do: `bench_gpu --help`. Under mpirun, one process per GPU. */
#include <getopt.h>

#include "exchange.h"
#include "gpu_bench.h"

extern "C" {
#include "comm/layout.h"
#include "deck/deck.h"
extern const mt_cuda_library mt_cuda; /* cuda/backend.cu */
}

static const char *const help =
    "mpirun -n GPUS bench_gpu [OPTION]...\n"
    "Seconds of nearest neighbours, UMAP and HDBSCAN on GPUs, a row as it is done:\n"
    "median of the runs, rate, share of the limit that is named, what was sent in "
    "NCCL.\n"
    "  --stage LIST             of knn, umap, hdbscan, stream (kNN of rows on the "
    "host),\n"
    "                           sheet (UMAP of one piece); all\n"
    "  --sizes LIST             rows or points, as 20k or 1M; each stage's own\n"
    "  --gpus LIST              how many; 1 to all there are\n"
    "  --runs N                 5; a first run of more than 5 s is the only one\n"
    "  --columns N              of the topic vectors; 13713\n"
    "  --dimensions N           of HDBSCAN's points; 2\n"
    "  --neighbors N            the point itself counted; 15\n"
    "  --metric NAME            cosine, hellinger or euclidean; cosine\n"
    "  --init NAME              of UMAP: spectral, pca or random; spectral\n"
    "  --epochs N               of UMAP; 200\n"
    "  --min-samples N          of HDBSCAN; 5\n"
    "  --min-cluster-size N     of HDBSCAN; 10\n"
    "  --check                  compare with distances in double and with the CPU "
    "backend\n"
    "  --once                   one run, and no limits, for profilers\n"
    "  --csv FILE               the table there too\n"
    "  --peers FILE             others' seconds beside ours: "
    "peer,stage,n,d,gpus,seconds\n"
    "  --count                  only say how many GPUs there are\n";

/* ---- what is run, the most telling first ------------------------------------------------- */

typedef mt_status mt_bench_stage(mt_bench *b, int64_t n);
static const struct {
  const char *name;
  mt_bench_stage *run;
} stages[] = {{"knn", mt_bench_knn},
              {"umap", mt_bench_umap},
              {"hdbscan", mt_bench_hdbscan},
              {"stream", mt_bench_stream},
              {"sheet", mt_bench_sheet}};
enum { STAGES = sizeof stages / sizeof *stages };

static const struct {
  int turn, stage;
  int64_t n;
} plan[] = {{0, 0, 100000},  {0, 1, 1000000}, {0, 2, 1000000}, {0, 1, 5000000},
            {0, 2, 5000000}, {1, 0, 20000},   {1, 1, 10000},   {1, 1, 100000},
            {1, 4, 1000000}, {1, 2, 10000},   {1, 2, 100000},  {1, 3, 100000},
            {1, 0, 500000}};
enum { PLANNED = sizeof plan / sizeof *plan, TURNS = 2 };

/* ---- options -------------------------------------------------------------------------------- */

/* A whole number, with k or M for thousands and millions. -1: it is none. */
static int64_t number(const char *text, char **end)
{
  long long value = strtoll(text, end, 10);
  if (*end == text || value < 0) return -1;
  if (**end == 'k') value *= 1000;
  if (**end == 'M') value *= 1000000;
  if (**end == 'k' || **end == 'M') (*end)++;
  return value;
}

static mt_status read_numbers(const char *name, const char *text, int most,
                              int64_t *values, int *count_out)
{
  int count = 0;
  for (const char *at = text;;) {
    char *end = NULL;
    int64_t value = number(at, &end);
    if (value < 1 || count == most || (*end != ',' && *end != '\0'))
      return mt_fail(MT_ERR_INPUT, "--%s %s: want at most %d whole numbers from 1 on%s",
                     name, text, most, most > 1 ? ", joined by commas" : "");
    values[count++] = value;
    if (*end == '\0') break;
    at = end + 1;
  }
  *count_out = count;
  return MT_OK;
}

static mt_status read_stages(const char *text, mt_bench_options *options)
{
  for (const char *at = text; *at != '\0';) {
    size_t length = strcspn(at, ",");
    int s = 0;
    while (s < STAGES && (strlen(stages[s].name) != length ||
                          strncmp(stages[s].name, at, length) != 0))
      s++;
    if (s == STAGES)
      return mt_fail(MT_ERR_INPUT,
                     "--stage %s: the stages are knn, umap, hdbscan, stream and sheet",
                     text);
    at += length + (at[length] == ',');
  }
  options->stages = text;
  return MT_OK;
}

static mt_status read_metric(const char *text, mt_metric *metric_out)
{
  static const char *const names[] = {"cosine", "hellinger", "euclidean"};
  static const mt_metric metrics[] = {MT_METRIC_COSINE, MT_METRIC_HELLINGER,
                                      MT_METRIC_EUCLIDEAN};
  for (int m = 0; m < 3; m++)
    if (strcmp(text, names[m]) == 0) {
      *metric_out = metrics[m];
      return MT_OK;
    }
  return mt_fail(MT_ERR_INPUT, "--metric %s: want cosine, hellinger or euclidean",
                 text);
}

static mt_status read_init(const char *text, mt_umap_init *init_out)
{
  static const char *const names[] = {"spectral", "pca", "random"};
  static const mt_umap_init inits[] = {MT_INIT_SPECTRAL, MT_INIT_PCA, MT_INIT_RANDOM};
  for (int i = 0; i < 3; i++)
    if (strcmp(text, names[i]) == 0) {
      *init_out = inits[i];
      return MT_OK;
    }
  return mt_fail(MT_ERR_INPUT, "--init %s: want spectral, pca or random", text);
}

enum {
  STAGE = 1,
  SIZES,
  GPUS,
  RUNS,
  COLUMNS,
  DIMENSIONS,
  NEIGHBORS,
  METRIC,
  INIT,
  EPOCHS,
  MIN_SAMPLES,
  MIN_CLUSTER_SIZE,
  CHECK,
  ONCE,
  CSV,
  PEERS,
  COUNT,
  HELP
};

static const struct option long_options[] = {
    {"stage", 1, NULL, STAGE},
    {"sizes", 1, NULL, SIZES},
    {"gpus", 1, NULL, GPUS},
    {"runs", 1, NULL, RUNS},
    {"columns", 1, NULL, COLUMNS},
    {"dimensions", 1, NULL, DIMENSIONS},
    {"neighbors", 1, NULL, NEIGHBORS},
    {"metric", 1, NULL, METRIC},
    {"init", 1, NULL, INIT},
    {"epochs", 1, NULL, EPOCHS},
    {"min-samples", 1, NULL, MIN_SAMPLES},
    {"min-cluster-size", 1, NULL, MIN_CLUSTER_SIZE},
    {"check", 0, NULL, CHECK},
    {"once", 0, NULL, ONCE},
    {"csv", 1, NULL, CSV},
    {"peers", 1, NULL, PEERS},
    {"count", 0, NULL, COUNT},
    {"help", 0, NULL, HELP},
    {NULL, 0, NULL, 0}};

/* The option that is one number; NULL: it is not. */
static int64_t *one_number(int option, mt_bench_options *o)
{
  switch (option) {
  case RUNS:
    return &o->runs;
  case COLUMNS:
    return &o->columns;
  case DIMENSIONS:
    return &o->dimensions;
  case NEIGHBORS:
    return &o->parameters.knn.n_neighbors;
  case EPOCHS:
    return &o->parameters.umap.n_epochs;
  case MIN_SAMPLES:
    return &o->parameters.hdbscan.min_samples;
  case MIN_CLUSTER_SIZE:
    return &o->parameters.hdbscan.min_cluster_size;
  default:
    return NULL;
  }
}

static mt_status read_option(int option, const char *name, mt_bench_options *o)
{
  int64_t *value = one_number(option, o);
  int count;
  if (value != NULL) return read_numbers(name, optarg, 1, value, &count);
  switch (option) {
  case STAGE:
    return read_stages(optarg, o);
  case SIZES:
    return read_numbers(name, optarg, MT_BENCH_SIZES, o->sizes, &o->n_sizes);
  case GPUS:
    return read_numbers(name, optarg, MT_BENCH_SIZES, o->gpus, &o->n_gpus);
  case METRIC:
    return read_metric(optarg, &o->parameters.knn.metric);
  case INIT:
    return read_init(optarg, &o->parameters.umap.init);
  case CHECK:
    o->check = true;
    return MT_OK;
  case ONCE:
    o->once = true;
    return MT_OK;
  case CSV:
    o->csv = optarg;
    return MT_OK;
  case PEERS:
    o->peers = optarg;
    return MT_OK;
  default:
    return mt_fail(MT_ERR_INPUT, "see bench_gpu --help");
  }
}

static mt_status read_options(int argc, char **argv, mt_bench_options *o,
                              int *special_out)
{
  int at = 0, option;
  o->runs = 5;
  o->columns = 13713;
  o->dimensions = 2;
  MT_PASS(mt_parameters_default(&o->parameters));
  o->parameters.umap.n_epochs = 200;
  o->parameters.hdbscan.min_samples = 5;
  o->parameters.hdbscan.min_cluster_size = 10;
  opterr = 0;
  while ((option = getopt_long(argc, argv, "", long_options, &at)) != -1) {
    if (option == COUNT || option == HELP)
      *special_out = option;
    else if (option == '?')
      return mt_fail(MT_ERR_INPUT,
                     "%s: no such option, or its value is missing; see --help",
                     argv[optind - 1]);
    else
      MT_PASS(read_option(option, long_options[at].name, o));
  }
  if (optind < argc) return mt_fail(MT_ERR_INPUT, "%s: see --help", argv[optind]);
  if (o->runs > MT_BENCH_RUNS)
    return mt_fail(MT_ERR_INPUT, "--runs %lld: want 1 to %d", (long long)o->runs,
                   MT_BENCH_RUNS);
  if (o->parameters.knn.n_neighbors < 2)
    return mt_fail(MT_ERR_INPUT, "--neighbors 1: want 2 or more");
  return MT_OK;
}

/* ---- running ------------------------------------------------------------------------------ */

static bool wanted(const mt_bench_options *options, int stage)
{
  const char *name = stages[stage].name, *at = options->stages;
  size_t length = strlen(name);
  if (at == NULL) return true;
  for (; at != NULL; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
    if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
      return true;
  return false;
}

/* A stage that fails does not keep the others from their rows. */
static mt_status run_stage(mt_bench *b, int stage, int64_t n)
{
  mt_status status = mt_agree(b->team, stages[stage].run(b, n));
  if (status != MT_OK && b->team->rank == 0)
    printf("%-8s %9lld  failed on %d GPU%s\n", stages[stage].name, (long long)n,
           b->team->size, b->team->size > 1 ? "s" : "");
  return status;
}

static mt_status run_turn(mt_bench *b, int turn)
{
  const mt_bench_options *o = b->options;
  mt_status worst = MT_OK, status;
  for (int i = 0; i < PLANNED && o->n_sizes == 0; i++) {
    if (plan[i].turn != turn || !wanted(o, plan[i].stage)) continue;
    status = run_stage(b, plan[i].stage, plan[i].n);
    if (status > worst) worst = status;
  }
  for (int s = 0; s < o->n_sizes; s++)
    for (int stage = 0; stage < STAGES; stage++) {
      if (!wanted(o, stage)) continue;
      status = run_stage(b, stage, o->sizes[s]);
      if (status > worst) worst = status;
    }
  return worst;
}

/* What the team's GPUs reach together. */
static mt_status tell_limits(mt_bench *b)
{
#ifdef MT_EMULATE
  const int64_t large = 1 << 10;
#else
  const int64_t large = 1 << 20;
#endif
  double gather, all = 0.0;
  MT_PASS(mt_agree(b->team, mt_limit_copy(b->gpu, &b->copy_rate)));
  MT_PASS(mt_min_f64(b->team, 1, &b->copy_rate));
  MT_PASS(mt_agree(b->team, mt_limit_link(b->gpu, &b->link_rate)));
  MT_PASS(mt_min_f64(b->team, 1, &b->link_rate));
  MT_PASS(mt_agree(b->team, mt_limit_gather(b->gpu, 8 * large, &gather)));
  if (b->team->size > 1) MT_PASS(mt_limit_allgather(b->gpu, b->team, large, 256, &all));
  if (b->team->rank != 0) return MT_OK;
  printf("%d GPU%s: device copy %.2f TB/s, host link %.1f GB/s, random 8-byte reads "
         "from 8 MB %.0f G/s",
         b->team->size, b->team->size > 1 ? "s" : "", 1e-12 * b->copy_rate,
         1e-9 * b->link_rate, 1e-9 * gather);
  if (b->team->size > 1) printf(", NCCL all-gather of 256 MB %.0f GB/s", 1e-9 * all);
  printf("\n");
  fflush(stdout);
  return MT_OK;
}

/* With the first `gpus` processes of owners; the others wait. */
static mt_status run_with(mt_bench *b, const mt_layout *layout, int gpus, int turn)
{
  mt_comm team = {};
  mt_backend *be = NULL;
  mt_status status = MT_OK;
  int rank = layout->team.rank;
  MT_PASS(mt_comm_split(&layout->team, rank < gpus ? 0 : -1, rank, &team));
  if (team.size > 0) status = mt_cuda.open(&be);
  status = mt_agree(&layout->team, status);
  if (team.size > 0 && status == MT_OK) status = be->start(be, &team, layout->device);
  if (team.size > 0 && status == MT_OK) {
    b->team = &team;
    b->gpu = mt_gpu_of(be);
    if (!b->options->once) status = tell_limits(b);
    if (status == MT_OK) status = run_turn(b, turn);
  }
  if (be != NULL) be->close(be);
  mt_comm_free(&team);
  return mt_agree(&layout->team, status);
}

static mt_status run_all(mt_bench *b, const mt_layout *layout)
{
  const mt_bench_options *o = b->options;
  mt_status worst = MT_OK;
  int turns = o->n_sizes > 0 ? 1 : TURNS;
  for (int turn = 0; turn < turns; turn++)
    for (int i = 0; i < (o->n_gpus > 0 ? o->n_gpus : layout->n_devices); i++) {
      int64_t gpus = o->n_gpus > 0 ? o->gpus[i] : i + 1;
      if (gpus > layout->n_devices)
        return mt_fail(MT_ERR_INPUT, "--gpus %lld: %d process%s a GPU", (long long)gpus,
                       layout->n_devices, layout->n_devices > 1 ? "es own" : " owns");
      mt_status status = run_with(b, layout, (int)gpus, turn);
      if (status > worst) worst = status;
    }
  return worst;
}

static void tell_machine(const mt_layout *layout)
{
  cudaDeviceProp device;
  mt_backend_versions versions;
  mt_cuda.versions(&versions);
  if (cudaGetDeviceProperties(&device, layout->device) != cudaSuccess) return;
  printf("metatopics %s, %d x %s (%d multiprocessors, %.1f GiB, L2 %.0f MiB), CUDA %s, "
         "NCCL %s\n",
         MT_VERSION, layout->n_devices, device.name, device.multiProcessorCount,
         (double)device.totalGlobalMem / (1 << 30),
         (double)device.l2CacheSize / (1 << 20), versions.cuda, versions.nccl);
}

static mt_status bench(const mt_comm *world, const mt_bench_options *options)
{
  mt_devices devices = {};
  mt_layout layout = {};
  mt_bench_table table = {};
  mt_bench b = {};
  char why[512] = "";
  mt_cuda.devices(&devices, why, sizeof why);
  int64_t most = devices.n;
  MT_PASS(mt_max_i64(world, 1, &most));
  if (most == 0)
    return mt_fail(MT_ERR_INPUT, "no GPU to measure: %s",
                   why[0] ? why : "none is visible");
  MT_PASS(mt_layout_create(world, &devices, &layout));
  b.options = options;
  b.table = &table;
  mt_status status = MT_OK;
  bool first = layout.device >= 0 && layout.team.rank == 0;
  if (first) status = mt_bench_table_open(options->csv, options->peers, &table);
  status = mt_agree(world, status);
  if (status == MT_OK && first) {
    tell_machine(&layout);
    mt_bench_table_head(&table);
  }
  if (status == MT_OK && layout.device >= 0) status = run_all(&b, &layout);
  if (first) {
    mt_status closed = mt_bench_table_close(&table);
    if (status == MT_OK) status = closed;
  }
  mt_layout_destroy(&layout);
  return status;
}

static mt_status count_gpus(void)
{
  mt_devices devices = {};
  char why[512] = "";
  mt_cuda.devices(&devices, why, sizeof why);
  if (devices.n == 0)
    return mt_fail(MT_ERR_INPUT, "no GPU to measure: %s",
                   why[0] ? why : "none is visible");
  printf("%d\n", devices.n);
  return MT_OK;
}

int main(int argc, char **argv)
{
  mt_comm world;
  static mt_bench_options options;
  int special = 0;
  if (mt_comm_start(&argc, &argv, &world) != MT_OK) return 1;
  mt_log_setup(world.rank, world.size, MT_LOG_WARN);
  mt_log_replicated(true);
  mt_status status = read_options(argc, argv, &options, &special);
  if (status == MT_OK && special == COUNT) status = count_gpus();
  mt_log_replicated(false);
  if (status == MT_OK && special == HELP && world.rank == 0) fputs(help, stdout);
  if (status == MT_OK && special == 0)
    status = mt_agree(&world, bench(&world, &options));
  mt_parameters_destroy(&options.parameters);
  mt_comm_stop(&world);
  return mt_exit_code(status);
}
