/* Who is where: nodes, threads, and which ranks own a GPU. One process per GPU: rank l of a
 * node takes the first of its devices, from l modulo their number on, that no lower rank of the
 * node has taken (by PCI bus id: with --gpus-per-task=1 each rank sees one other device, and
 * all call it 0); ranks for which none is left work as CPU ranks.
 * Where no rank owns one, METATOPICS_TEAM=1 in the environment of some ranks names those that
 * run kNN, UMAP and HDBSCAN: a component of a heterogeneous job, nodes with much memory. */
#ifndef MT_COMM_LAYOUT_H
#define MT_COMM_LAYOUT_H
#include "comm/comm.h"

/* A GPU, by what it is called on its node, whoever numbers it. */
typedef struct mt_device {
  char id[20];    /* PCI bus id, "0000:18:00.0"; empty: none */
  char name[44];  /* "NVIDIA H200" */
  int64_t memory; /* bytes in all */
  int number;     /* as the process that sees it numbers it */
} mt_device;

/* The GPUs that a rank sees and the backend can use. */
enum { MT_MOST_DEVICES = 64 };
typedef struct mt_devices {
  int n;
  mt_device at[MT_MOST_DEVICES];
} mt_devices;

typedef struct mt_layout {
  int n_nodes;   /* nodes of the job */
  int node;      /* this rank's, numbered by their lowest ranks */
  int node_rank; /* this rank on its node */
  int node_size; /* ranks on its node */
  int n_threads; /* OpenMP threads of this rank */
  int device; /* the GPU that this rank owns, as it numbers those it sees; -1: none */
  mt_device gpu; /* that one */
  int n_devices; /* GPUs owned, over all ranks */
  char host[64]; /* this rank's node by name */
  int team_root; /* the team's rank 0, as the world numbers it */
  int team_size; /* its ranks, known to all */
  mt_comm
      team; /* who runs kNN, UMAP and HDBSCAN: the GPU owners; without any, the ranks
                       named by METATOPICS_TEAM, or else all; size 0 on the others; owned */
} mt_layout;

/**
 * Finds out, and sets OpenMP's threads to n_threads. Collective.
 * devices  GPUs that this rank sees and that the chosen backend can use
 * Threads: OMP_NUM_THREADS if it is set; otherwise the cores this rank may run on, shared
 * with the node's other ranks unless they are bound to cores of their own.
 */
mt_status mt_layout_create(const mt_comm *world, const mt_devices *devices,
                           mt_layout *layout_out);
void mt_layout_destroy(mt_layout *layout);

/* A line per node: its name, ranks, threads, GPUs, and ranks that got none; then the team;
 * rank 0 logs them. Collective. */
mt_status mt_layout_log(const mt_comm *world, const mt_layout *layout);

#endif
