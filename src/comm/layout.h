/* Who is where: nodes, threads, and which ranks own a GPU. One process per GPU: on each
 * node rank l of the node drives device l, as long as there are devices; the ranks beyond
 * them work as CPU ranks. */
#ifndef MT_COMM_LAYOUT_H
#define MT_COMM_LAYOUT_H
#include "comm/comm.h"

typedef struct mt_layout {
  int n_nodes;   /* nodes of the job */
  int node;      /* this rank's, numbered by their lowest ranks */
  int node_rank; /* this rank on its node */
  int node_size; /* ranks on its node */
  int n_threads; /* OpenMP threads of this rank */
  int device;    /* the GPU that this rank owns, -1: none */
  int n_devices; /* GPUs owned, over all ranks */
  char host[64]; /* this rank's node by name */
  mt_comm team;  /* who runs kNN, UMAP and HDBSCAN: the GPU owners, or else all ranks;
                       size 0 on the others; owned */
} mt_layout;

/**
 * Finds out, and sets OpenMP's threads to n_threads. Collective.
 * devices  GPUs that this rank sees and that the chosen backend can use; 0: none
 * Threads: OMP_NUM_THREADS if it is set; otherwise the cores this rank may run on, shared
 * with the node's other ranks unless they are bound to cores of their own.
 */
mt_status mt_layout_create(const mt_comm *world, int devices, mt_layout *layout_out);
void mt_layout_destroy(mt_layout *layout);

/* A line per node: its name, ranks, threads and GPUs; rank 0 logs them. Collective. */
mt_status mt_layout_log(const mt_comm *world, const mt_layout *layout);

#endif
