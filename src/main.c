/* The command line, then the stages as a table of contents. */
#include "backend/backend.h"
#include "base/log.h"
#include "base/stop.h"
#include "check.h"
#include "comm/debugger.h"
#include "comm/layout.h"
#include "deck/command_line.h"
#include "deck/deck.h"
#include "report/history.h"
#include "report/show.h"
#include "report/versions.h"
#include "pipeline.h"
#include "store/folder.h"

#include <stdlib.h>

static const mt_stage *const stages[] = {
    &mt_stage_corpus,  /* texts to counts */
    &mt_stage_lda,     /* counts to topics, one fit per (period, seed) */
    &mt_stage_matrix,  /* the topics of all fits, stacked */
    &mt_stage_knn,     /* each topic's nearest neighbours */
    &mt_stage_umap,    /* the topics laid out in the plane */
    &mt_stage_hdbscan, /* groups of topics: the meta-topics */
    &mt_stage_map,     /* labels, tables, the annotated map */
};

/* The parameters in force, on every rank: rank 0 reads the deck, all parse the same bytes. */
static mt_status read_parameters(const mt_comm *world, const mt_command *command,
                                 mt_parameters *parameters_out)
{
  mt_status status = MT_OK;
  char *xml = NULL;
  size_t size = 0;
  MT_TRY(mt_agree(world,
                  world->rank == 0 ? mt_deck_read(command->deck, &xml, &size) : MT_OK));
  MT_TRY(mt_bcast_bytes(world, 0, &size, &xml));
  mt_log_replicated(true);
  status = mt_command_parameters(command, xml, size, parameters_out);
  mt_log_replicated(false);
  status = mt_agree(world, status);
done:
  free(xml);
  return status;
}

static mt_status make_folder(const mt_comm *world, const char *path)
{
  return mt_agree(world, world->rank == 0 ? mt_folder_make(path) : MT_OK);
}

/* Rank 0 says so; the signal may have come to another. */
static void say_stopped(const mt_comm *world, const mt_command *command)
{
  int64_t number = mt_stop_signal();
  mt_max_i64(world, 1, &number);
  if (world->rank == 0)
    mt_warn(
        "stopped by signal %lld; what is finished is saved: run \"metatopics run %s\" "
        "again to go on",
        (long long)number, command->deck);
}

/* Everything is set up: run the stages, and leave a record of it, however it ends. */
static mt_status run_stages(const mt_comm *world, const mt_command *command,
                            const mt_layout *layout, const mt_run *run)
{
  mt_record *record = NULL;
  mt_status status = mt_record_begin(world, run, layout, &record);
  if (status != MT_OK) return status;
  status = mt_pipeline_run(world, layout, run, stages, command->from, command->until,
                           record);
  mt_status written = mt_record_end(world, record, status);
  if (status == MT_OK) status = written;
  if (mt_log_level_now() >= MT_LOG_INFO) mt_record_print(record, stderr);
  if (status == MT_STOPPED) say_stopped(world, command);
  mt_record_destroy(record);
  return status;
}

static mt_status run(const mt_comm *world, const mt_command *command)
{
  mt_status status = MT_OK;
  mt_parameters parameters = {.lda = {0}};
  mt_backend *backend = NULL;
  mt_lock *lock = NULL;
  mt_layout layout = {.n_nodes = 0};
  mt_devices devices = {.n = 0};
  MT_TRY(read_parameters(world, command, &parameters));
  MT_TRY(make_folder(world, parameters.output.path));
  MT_TRY(mt_lock_take(world, parameters.output.path, &lock));
  mt_stop_install();
  if (command->wait) MT_TRY(mt_debugger_wait(world));
  MT_TRY(mt_backend_find(world, command->backend, &devices));
  MT_TRY(mt_layout_create(world, &devices, &layout));
  MT_TRY(mt_layout_log(world, &layout));
  MT_TRY(mt_backend_open(world, &layout, &backend));
  mt_run job = {.parameters = &parameters,
                .out = parameters.output.path,
                .backend = backend,
                .force = command->force};
  MT_TRY(run_stages(world, command, &layout, &job));
done:
  if (backend != NULL) backend->close(backend);
  if (layout.n_nodes > 0) mt_layout_destroy(&layout);
  mt_lock_release(lock);
  mt_parameters_destroy(&parameters);
  return status;
}

static mt_status print_parameter(const mt_comm *world, const mt_parameters *parameters,
                                 const char *name)
{
  char *text = NULL;
  mt_log_replicated(true);
  mt_status status = mt_parameters_get(parameters, name, &text);
  mt_log_replicated(false);
  if (status == MT_OK && world->rank == 0) puts(text);
  free(text);
  return mt_agree(world, status);
}

static mt_status check(const mt_comm *world, const mt_command *command)
{
  mt_parameters parameters = {.lda = {0}};
  mt_status status = read_parameters(world, command, &parameters);
  if (status == MT_OK && command->get != NULL)
    status = print_parameter(world, &parameters, command->get);
  else if (status == MT_OK)
    status = mt_check_print(world, command, &parameters, stdout);
  mt_parameters_destroy(&parameters);
  return status;
}

/* Past runs, side by side. */
static mt_status history(const mt_command *command)
{
  mt_history past;
  mt_status status = mt_history_read(command->n_folders, command->folders, &past);
  if (status != MT_OK) return status;
  mt_history_print(&past, stdout);
  status = mt_history_plot(&past,
                           command->out != NULL ? command->out : "metatopics-history");
  mt_history_destroy(&past);
  return status;
}

/* What needs one rank only. */
static mt_status tell(const mt_comm *world, const mt_command *command)
{
  mt_status status = MT_OK;
  if (world->rank == 0 && command->kind == MT_COMMAND_SHOW)
    status = mt_show(command->folder, stdout);
  if (world->rank == 0 && command->kind == MT_COMMAND_HISTORY)
    status = history(command);
  if (world->rank == 0 && command->kind == MT_COMMAND_HELP)
    status = mt_command_help(command, stdout);
  if (world->rank == 0 && command->kind == MT_COMMAND_VERSION)
    mt_versions_print(stdout);
  return mt_agree(world, status);
}

static mt_status obey(const mt_comm *world, const mt_command *command)
{
  static const mt_log_level levels[] = {MT_LOG_WARN, MT_LOG_INFO, MT_LOG_DEBUG};
  mt_log_setup(world->rank, world->size, levels[command->verbosity + 1]);
  switch (command->kind) {
  case MT_COMMAND_RUN:
    return run(world, command);
  case MT_COMMAND_CHECK:
    return check(world, command);
  default:
    return tell(world, command);
  }
}

int main(int argc, char **argv)
{
  mt_comm world;
  mt_command command;
  /* srun puts a label before each piece that it gets: whole lines */
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  setvbuf(stderr, NULL, _IOLBF, BUFSIZ);
  mt_status status = mt_comm_start(&argc, &argv, &world);
  if (status != MT_OK) return mt_exit_code(status);
  mt_log_setup(world.rank, world.size, MT_LOG_INFO);
  mt_log_replicated(true);
  status = mt_command_parse(argc, argv, &command);
  mt_log_replicated(false);
  if (status == MT_OK) {
    status = obey(&world, &command);
    mt_command_destroy(&command);
  }
  mt_comm_stop(&world);
  return mt_exit_code(status);
}
