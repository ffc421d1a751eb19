/* UMAP alone, from and to raw files, for tools/reference/umap.py:
 *   umap-layout FOLDER [knn.metric=cosine] [umap.init=pca] [umap.random_state=1] ...
 * FOLDER/shape holds "n k d"; neighbors (n, k) int64, distances (n, k) float32 and rows
 * (n, d) float32 lie beside it; positions (n, n_components) float32 are written. */
#include "../bench/bench.h"
#include "base/memory.h"
#include "store/folder.h"
#include "umap/umap.h"

#include <stdio.h>
#include <stdlib.h>

/* One file's bytes from `first` on. */
static mt_status read_bytes(const char *folder, const char *name, size_t first,
                            size_t size, void *out)
{
  mt_status status = MT_OK;
  char *path = mt_path_join(folder, name);
  FILE *file = path == NULL ? NULL : fopen(path, "rb");
  MT_REQUIRE(file != NULL, MT_ERR_IO, "cannot open %s/%s", folder, name);
  MT_REQUIRE(fseeko(file, (off_t)first, SEEK_SET) == 0 &&
                 fread(out, 1, size, file) == size,
             MT_ERR_IO, "%s is too short", path);
done:
  if (file != NULL) fclose(file);
  free(path);
  return status;
}

static mt_status read_shape(const char *folder, int64_t shape[3])
{
  char text[64] = "";
  long long n = 0, k = 0, d = 0;
  char *path = mt_path_join(folder, "shape");
  FILE *file = path == NULL ? NULL : fopen(path, "r");
  if (file != NULL && fgets(text, sizeof text, file) != NULL)
    if (sscanf(text, "%lld %lld %lld", &n, &k, &d) != 3) n = 0;
  if (file != NULL) fclose(file);
  free(path);
  shape[0] = n;
  shape[1] = k;
  shape[2] = d;
  return n > 0 ? MT_OK : mt_fail(MT_ERR_INPUT, "%s/shape does not say n k d", folder);
}

static mt_status write_positions(const char *folder, size_t size,
                                 const float *positions)
{
  mt_status status = MT_OK;
  char *path = mt_path_join(folder, "positions");
  MT_REQUIRE(path != NULL, MT_ERR_MEMORY, "no memory for a path");
  status = mt_file_replace(path, positions, size);
done:
  free(path);
  return status;
}

static mt_status lay_out(const mt_comm *comm, const char *folder,
                         const mt_parameters *parameters)
{
  mt_status status = MT_OK;
  mt_backend be = {.umap_graph = mt_cpu_umap_graph,
                   .umap_start = mt_cpu_umap_start,
                   .umap_epochs = mt_cpu_umap_epochs,
                   .umap_layout = mt_umap_by_steps};
  mt_umap_result result;
  int64_t shape[3], *indices = NULL;
  float *distances = NULL, *matrix = NULL, *positions = NULL;

  MT_TRY(read_shape(folder, shape));
  size_t first = (size_t)(mt_part_first(shape[0], comm->size, comm->rank) * shape[1]);
  size_t own = (size_t)(mt_part_count(shape[0], comm->size, comm->rank) * shape[1]);
  size_t dims = (size_t)parameters->umap.n_components;
  MT_NEW(indices, (int64_t)own);
  MT_NEW(distances, (int64_t)own);
  MT_NEW(matrix, shape[0] * shape[2]);
  MT_NEW(positions, shape[0] * (int64_t)dims);
  MT_TRY(read_bytes(folder, "neighbors", first * 8, own * 8, indices));
  MT_TRY(read_bytes(folder, "distances", first * 4, own * 4, distances));
  MT_TRY(read_bytes(folder, "rows", 0, (size_t)(shape[0] * shape[2]) * 4, matrix));
  mt_rows rows = mt_rows_memory(shape[0], shape[2], matrix);
  MT_TRY(mt_umap_layout(&be, comm, &parameters->umap, parameters->knn.metric, shape[1],
                        indices, distances, &rows, positions, &result));
  mt_info("%lld edges, %lld parts, %lld epochs", (long long)result.edges,
          (long long)result.components, (long long)result.n_epochs);
  if (comm->rank == 0)
    MT_TRY(write_positions(folder, (size_t)shape[0] * dims * sizeof *positions,
                           positions));
done:
  free(indices);
  free(distances);
  free(matrix);
  free(positions);
  return status;
}

int main(int argc, char **argv)
{
  mt_status status = MT_OK;
  mt_comm world;
  mt_parameters parameters = {0};
  if (mt_comm_start(&argc, &argv, &world) != MT_OK) return 1;
  mt_log_setup(world.rank, world.size, MT_LOG_INFO);
  MT_REQUIRE(argc >= 2, MT_ERR_INPUT, "umap-layout FOLDER [SECTION.NAME=VALUE]...");
  MT_TRY(mt_bench_parameters(argc - 2, argv + 2, &parameters));
  MT_TRY(lay_out(&world, argv[1], &parameters));
done:
  mt_parameters_destroy(&parameters);
  mt_comm_stop(&world);
  return mt_exit_code(status);
}
