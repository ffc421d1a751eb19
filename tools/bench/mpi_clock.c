/* What a program spends in MPI, waiting and moving data: a library for LD_PRELOAD. When MPI ends,
 * rank 0 writes the core seconds of all ranks' calls to the file that MPI_CLOCK names; those of
 * HDF5 count too, starting and ending MPI do not. A rank that waits polls, so it uses a core. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double spent;

static double processor_seconds(void)
{
  struct timespec used;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

#define TIMED(name, parameters, arguments) \
  int MPI_##name parameters                \
  {                                        \
    double begin = processor_seconds();    \
    int code = PMPI_##name arguments;      \
    spent += processor_seconds() - begin;  \
    return code;                           \
  }

/* collectives and messages of src/comm and of HDF5 */
TIMED(Barrier, (MPI_Comm comm), (comm))
TIMED(Bcast, (void *at, int n, MPI_Datatype type, int root, MPI_Comm comm),
      (at, n, type, root, comm))
TIMED(Allreduce,
      (const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      (from, to, n, type, op, comm))
TIMED(Exscan,
      (const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
      (from, to, n, type, op, comm))
TIMED(Allgather,
      (const void *from, int n, MPI_Datatype type, void *to, int m, MPI_Datatype of,
       MPI_Comm comm),
      (from, n, type, to, m, of, comm))
TIMED(Allgatherv,
      (const void *from, int n, MPI_Datatype type, void *to, const int *m,
       const int *at, MPI_Datatype of, MPI_Comm comm),
      (from, n, type, to, m, at, of, comm))
TIMED(Gather,
      (const void *from, int n, MPI_Datatype type, void *to, int m, MPI_Datatype of,
       int root, MPI_Comm comm),
      (from, n, type, to, m, of, root, comm))
TIMED(Gatherv,
      (const void *from, int n, MPI_Datatype type, void *to, const int *m,
       const int *at, MPI_Datatype of, int root, MPI_Comm comm),
      (from, n, type, to, m, at, of, root, comm))
TIMED(Alltoall,
      (const void *from, int n, MPI_Datatype type, void *to, int m, MPI_Datatype of,
       MPI_Comm comm),
      (from, n, type, to, m, of, comm))
TIMED(Send, (const void *at, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm),
      (at, n, type, to, tag, comm))
TIMED(Recv,
      (void *at, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
       MPI_Status *info),
      (at, n, type, from, tag, comm, info))
TIMED(Isend,
      (const void *at, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
       MPI_Request *request),
      (at, n, type, to, tag, comm, request))
TIMED(Irecv,
      (void *at, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
       MPI_Request *request),
      (at, n, type, from, tag, comm, request))
TIMED(Sendrecv,
      (const void *out, int n, MPI_Datatype type, int to, int tag, void *in, int m,
       MPI_Datatype of, int from, int mark, MPI_Comm comm, MPI_Status *info),
      (out, n, type, to, tag, in, m, of, from, mark, comm, info))
TIMED(Wait, (MPI_Request * request, MPI_Status *info), (request, info))
TIMED(Waitall, (int n, MPI_Request *requests, MPI_Status *infos), (n, requests, infos))
TIMED(Test, (MPI_Request * request, int *done, MPI_Status *info), (request, done, info))
TIMED(Testall, (int n, MPI_Request *requests, int *done, MPI_Status *infos),
      (n, requests, done, infos))
TIMED(Iprobe, (int from, int tag, MPI_Comm comm, int *there, MPI_Status *info),
      (from, tag, comm, there, info))
TIMED(Ibarrier, (MPI_Comm comm, MPI_Request *request), (comm, request))
TIMED(Comm_dup, (MPI_Comm comm, MPI_Comm *out), (comm, out))
TIMED(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *out),
      (comm, color, key, out))
TIMED(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *out),
      (comm, type, key, info, out))
TIMED(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *out),
      (comm, group, tag, out))
TIMED(File_open,
      (MPI_Comm comm, const char *path, int mode, MPI_Info info, MPI_File *out),
      (comm, path, mode, info, out))
TIMED(File_close, (MPI_File * file), (file))
TIMED(File_sync, (MPI_File file), (file))
TIMED(File_set_size, (MPI_File file, MPI_Offset size), (file, size))
TIMED(File_read_at_all,
      (MPI_File file, MPI_Offset at, void *to, int n, MPI_Datatype type,
       MPI_Status *info),
      (file, at, to, n, type, info))
TIMED(File_write_at_all,
      (MPI_File file, MPI_Offset at, const void *from, int n, MPI_Datatype type,
       MPI_Status *info),
      (file, at, from, n, type, info))

int MPI_Finalize(void)
{
  int rank;
  double all = 0.0;
  const char *path = getenv("MPI_CLOCK");
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Reduce(&spent, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  FILE *file = rank == 0 && path != NULL ? fopen(path, "w") : NULL;
  if (file != NULL) {
    fprintf(file, "%.6f\n", all);
    fclose(file);
  }
  return PMPI_Finalize();
}
