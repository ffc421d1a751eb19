/* Who is where: nodes, threads, and which ranks own a GPU. One process per GPU: rank l of a
 * node takes the first of its devices, from l modulo their number on, that no lower rank of the
 * node has taken (by PCI bus id: with --gpus-per-task=1 each rank sees one other device, and
 * all call it 0); ranks for which none is left work as CPU ranks. */
#ifndef MT_COMM_LAYOUT_H
#define MT_COMM_LAYOUT_H
#include "comm/comm.h"

/* The GPUs that a rank sees: what each is called on its node, whoever numbers them. */
enum { MT_MOST_DEVICES = 64, MT_DEVICE_ID = 20 };
typedef struct mt_devices {
  int n;
  char id[MT_MOST_DEVICES][MT_DEVICE_ID]; /* PCI bus id, "0000:18:00.0" */
} mt_devices;

typedef struct mt_layout {
  int n_nodes;   /* nodes of the job */
  int node;      /* this rank's, numbered by their lowest ranks */
  int node_rank; /* this rank on its node */
  int node_size; /* ranks on its node */
  int n_threads; /* OpenMP threads of this rank */
  int device; /* the GPU that this rank owns, as it numbers those it sees; -1: none */
  int n_devices; /* GPUs owned, over all ranks */
  char host[64]; /* this rank's node by name */
  mt_comm team;  /* who runs kNN, UMAP and HDBSCAN: the GPU owners, or else all ranks;
                       size 0 on the others; owned */
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

/* A line per node: its name, ranks, threads and GPUs; rank 0 logs them. Collective. */
mt_status mt_layout_log(const mt_comm *world, const mt_layout *layout);

#endif
