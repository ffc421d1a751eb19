#include "comm/layout.h"
#include "base/log.h"
#include "base/memory.h"

#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* This rank's share of the cores that it may use: each is divided among the node's ranks
 * that may use it, whether every rank is bound to cores of its own, several to a socket, or
 * all to what the job was given. */
static mt_status fair_threads(const mt_comm *node, int *threads_out)
{
  mt_status status = MT_OK;
  cpu_set_t mine, *all = NULL;
  double share = 0.0;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) CPU_SET(0, &mine);
  MT_TRY(
      mt_agree(node, mt_memory_new(node->size, sizeof *all, "cores", (void **)&all)));
  MT_TRY(mt_allgather(node, sizeof mine, &mine, all));
  for (int c = 0; c < CPU_SETSIZE; c++) {
    int users = 0;
    for (int r = 0; r < node->size; r++) users += CPU_ISSET(c, &all[r]) != 0;
    if (CPU_ISSET(c, &mine)) share += 1.0 / users;
  }
  *threads_out = share > 1.0 ? (int)(share + 1e-6) : 1;
  if (getenv("OMP_NUM_THREADS") != NULL) *threads_out = omp_get_max_threads();
done:
  free(all);
  return status;
}

/* Nodes are numbered by their lowest ranks: the leaders' order. */
static mt_status number_nodes(const mt_comm *world, const mt_comm *node,
                              mt_layout *layout)
{
  mt_status status = MT_OK;
  int64_t before, leaders = node->rank == 0;
  int number;
  MT_TRY(mt_exscan_i64(world, leaders, &before));
  number = (int)before;
  MT_TRY(mt_bcast(node, 0, sizeof number, &number));
  MT_TRY(mt_sum_i64(world, 1, &leaders));
  layout->node = number;
  layout->n_nodes = (int)leaders;
done:
  return status;
}

/* Ranks choose in order; all know what all see. */
static mt_status choose_device(const mt_comm *node, const mt_devices *devices,
                               mt_layout *layout)
{
  mt_status status = MT_OK;
  mt_devices *seen = NULL;
  int *choice = NULL;
  status = mt_memory_new(node->size, sizeof *seen, "devices", (void **)&seen);
  if (status == MT_OK)
    status = mt_memory_new(node->size, sizeof *choice, "devices", (void **)&choice);
  MT_TRY(mt_agree(node, status));
  MT_TRY(mt_allgather(node, sizeof *devices, devices, seen));
  for (int r = 0; r < node->size; r++) {
    choice[r] = -1;
    for (int i = 0; i < seen[r].n && choice[r] < 0; i++) {
      int device = (r + i) % seen[r].n;
      bool taken = false;
      for (int q = 0; q < r && !taken; q++)
        taken = choice[q] >= 0 &&
                strcmp(seen[q].at[choice[q]].id, seen[r].at[device].id) == 0;
      if (!taken) choice[r] = device;
    }
  }
  int mine = choice[node->rank];
  if (mine >= 0) layout->gpu = devices->at[mine];
  layout->device = mine >= 0 ? layout->gpu.number : -1;
done:
  free(seen);
  free(choice);
  return status;
}

static bool is_named(void)
{
  const char *named = getenv("METATOPICS_TEAM");
  return named != NULL && strcmp(named, "1") == 0;
}

static mt_status choose_team(const mt_comm *world, mt_layout *layout)
{
  mt_status status = MT_OK;
  int64_t named = is_named(), size, root;
  MT_TRY(mt_sum_i64(world, 1, &named));
  bool member = layout->n_devices > 0 ? layout->device >= 0 : named == 0 || is_named();
  size = member;
  root = member ? world->rank : world->size;
  MT_TRY(mt_comm_split(world, member ? 0 : -1, world->rank, &layout->team));
  MT_TRY(mt_sum_i64(world, 1, &size));
  MT_TRY(mt_min_i64(world, 1, &root));
  layout->team_size = (int)size;
  layout->team_root = (int)root;
done:
  return status;
}

mt_status mt_layout_create(const mt_comm *world, const mt_devices *devices,
                           mt_layout *layout_out)
{
  mt_status status = MT_OK;
  mt_comm node = {.size = 0};
  mt_layout layout = {.team = {.size = 0}};
  MT_TRY(mt_comm_node(world, &node));
  layout.node_rank = node.rank;
  layout.node_size = node.size;
  MT_TRY(mt_agree(world, fair_threads(&node, &layout.n_threads)));
  omp_set_num_threads(layout.n_threads);
  gethostname(layout.host, sizeof layout.host - 1);
  MT_TRY(choose_device(&node, devices, &layout));
  int64_t owners = layout.device >= 0;
  MT_TRY(mt_sum_i64(world, 1, &owners));
  layout.n_devices = (int)owners;
  MT_TRY(number_nodes(world, &node, &layout));
  MT_TRY(choose_team(world, &layout));
  *layout_out = layout;
done:
  mt_comm_free(&node);
  return status;
}

void mt_layout_destroy(mt_layout *layout)
{
  mt_comm_free(&layout->team);
}

/* "0-3, 6": the ranks of a node (-1: of the team); cut short by three dots. */
static void write_ranks(int size, const mt_layout *all, int node, char *out,
                        size_t room)
{
  size_t at = 0;
  int first = -1; /* of the range being read */
  out[0] = '\0';
  for (int r = 0; r <= size; r++) {
    bool in = r < size && (node < 0 ? all[r].team.size > 0 : all[r].node == node);
    if (in && first < 0) first = r;
    if (in || first < 0) continue;
    if (at > room - 32) {
      snprintf(out + at, room - at, ", ...");
      return;
    }
    at += (size_t)snprintf(out + at, room - at, "%s%d", at > 0 ? ", " : "", first);
    if (r - 1 > first) at += (size_t)snprintf(out + at, room - at, "-%d", r - 1);
    first = -1;
  }
}

/* The line of one node, whose first rank is `first`; all (size) of them. */
static void log_node(int size, const mt_layout *all, int first)
{
  const mt_layout *node = &all[first];
  char ranks[128];
  int devices = 0, left;
  for (int r = first; r < size; r++)
    devices += all[r].node == node->node && all[r].device >= 0;
  left = devices > 0 ? node->node_size - devices : 0;
  write_ranks(size, all, node->node, ranks, sizeof ranks);
  mt_info("  %s: rank%s %s of %d thread%s, %d GPU%s%s", node->host,
          node->node_size == 1 ? "" : "s", ranks, node->n_threads,
          node->n_threads == 1 ? "" : "s", devices, devices == 1 ? "" : "s",
          left > 0 ? "; the others work as CPU ranks" : "");
  for (int r = first; r < size; r++)
    if (all[r].node == node->node && all[r].device >= 0)
      mt_debug("    rank %d: %s, %s, %.0f MB", r, all[r].gpu.name, all[r].gpu.id,
               (double)all[r].gpu.memory / 1e6);
}

mt_status mt_layout_log(const mt_comm *world, const mt_layout *layout)
{
  mt_status status = MT_OK;
  mt_layout *all = NULL;
  MT_TRY(mt_agree(world,
                  mt_memory_new(world->size, sizeof *all, "layout", (void **)&all)));
  MT_TRY(mt_allgather(world, sizeof *layout, layout, all));
  mt_info("%d rank%s on %d node%s, %d GPU%s", world->size, world->size == 1 ? "" : "s",
          layout->n_nodes, layout->n_nodes == 1 ? "" : "s", layout->n_devices,
          layout->n_devices == 1 ? "" : "s");
  for (int r = 0; r < world->size; r++)
    if (all[r].node_rank == 0) log_node(world->size, all, r);
  if (layout->team_size < world->size) {
    char ranks[128];
    write_ranks(world->size, all, -1, ranks, sizeof ranks);
    mt_info("  knn, umap and hdbscan: rank%s %s", layout->team_size == 1 ? "" : "s",
            ranks);
  }
done:
  free(all);
  return status;
}
