#include "report/versions.h"

#include <cblas.h>
#include <hdf5.h>
#include <libxml/parser.h>
#include <mpi.h>
#include <string.h>

json_t *mt_versions(const mt_backend_versions *gpu)
{
  char mpi[MPI_MAX_LIBRARY_VERSION_STRING], hdf5[32];
  int length;
  unsigned major = 0, minor = 0, release = 0;
  MPI_Get_library_version(mpi, &length);
  mpi[strcspn(mpi, ",\n")] = '\0';
  H5get_libversion(&major, &minor, &release);
  snprintf(hdf5, sizeof hdf5, "%u.%u.%u", major, minor, release);
  return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "metatopics", MT_VERSION,
                   "mpi", mpi, "hdf5", hdf5, "blas", openblas_get_config(), "libxml2",
                   LIBXML_DOTTED_VERSION, "cuda", gpu->cuda, "nccl", gpu->nccl);
}

void mt_versions_print(FILE *out)
{
  mt_backend_versions gpu;
  mt_backend_ask_versions(true, &gpu);
  json_t *all = mt_versions(&gpu), *value;
  const char *name;
  json_object_foreach(all, name, value)
      fprintf(out, "%-10s  %s\n", name, json_string_value(value));
  json_decref(all);
}
