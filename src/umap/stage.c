/* The umap stage: knn.h5 and topics.h5 to umap.h5. */
#include "base/log.h"
#include "base/memory.h"
#include "deck/deck.h"
#include "stage/stage.h"
#include "store/folder.h"
#include "store/store.h"
#include "umap/umap.h"

#include <stdlib.h>

static const mt_dataset embedding = {.name = "/embedding",
                                     .type = MT_FLOAT32,
                                     .units = "1",
                                     .dimensions = {"topic", "axis"},
                                     .description =
                                         "position of each topic on the map (UMAP)"};

static mt_status umap_fingerprint(const mt_run *run, mt_fingerprint *out)
{
  mt_status status = MT_OK;
  mt_hash *hash = mt_hash_begin();
  MT_REQUIRE(hash != NULL, MT_ERR_MEMORY, "no memory");
  mt_hash_text(hash, "umap 2");
  MT_TRY(mt_store_hash(run->out, "knn.h5", hash));
  MT_TRY(mt_parameters_hash(run->parameters, "umap", NULL, hash));
done:
  *out = mt_hash_end(hash);
  return status;
}

/* What the stage reads; each rank for itself. */
typedef struct {
  mt_file *neighbors, *topics;
  mt_store_rows source;
  mt_rows rows;
  int64_t k;
  int64_t *indices; /* (own, k) */
  float *distances; /* (own, k) */
  float *positions; /* (n, n_components) */
} mt_umap_input;

static void input_destroy(mt_umap_input *input)
{
  mt_store_close(input->neighbors);
  mt_store_close(input->topics);
  free(input->indices);
  free(input->distances);
  free(input->positions);
}

static mt_status read_inputs(const mt_comm *world, const mt_run *run,
                             mt_umap_input *input)
{
  mt_status status = MT_OK;
  int64_t n;
  MT_TRY(mt_store_open_in(run->out, "knn.h5", &input->neighbors));
  MT_TRY(mt_store_open_in(run->out, "topics.h5", &input->topics));
  input->source = (mt_store_rows){.file = input->topics, .name = "/matrix"};
  MT_TRY(mt_rows_stored(&input->source, &input->rows));
  MT_TRY(mt_store_shape(input->neighbors, "/indices", &n, &input->k));
  MT_REQUIRE(n == input->rows.n, MT_ERR_INPUT,
             "%s: knn.h5 has %lld rows, topics.h5 %lld: remove knn.h5 and run again",
             run->out, (long long)n, (long long)input->rows.n);
  int64_t first = mt_part_first(n, world->size, world->rank);
  int64_t own = mt_part_count(n, world->size, world->rank);
  MT_NEW(input->indices, own * input->k);
  MT_NEW(input->distances, own * input->k);
  MT_NEW(input->positions, n * run->parameters->umap.n_components);
  if (input->k == 0) goto done;
  MT_TRY(mt_store_expect(input->neighbors, "/distances", n, input->k));
  MT_TRY(mt_store_read(input->neighbors, "/indices", MT_INT64, first, own,
                       input->indices));
  MT_TRY(mt_store_read(input->neighbors, "/distances", MT_FLOAT32, first, own,
                       input->distances));
done:
  return status;
}

static mt_status write_file(const mt_comm *world, const mt_run *run,
                            const mt_fingerprint *made_by, const mt_umap_input *input,
                            const mt_umap_result *done_so)
{
  mt_status status = MT_OK;
  mt_file *file = NULL;
  int64_t n = input->rows.n, dims = run->parameters->umap.n_components;
  int64_t first = mt_part_first(n, world->size, world->rank);
  char *path = mt_path_join(run->out, "umap.h5");

  MT_TRY(mt_agree(world, path == NULL ? MT_ERR_MEMORY : MT_OK));
  MT_TRY(mt_store_create(world, path, made_by, &file));
  MT_TRY(mt_store_write(world, file, &embedding,
                        mt_part_count(n, world->size, world->rank), dims,
                        input->positions + first * dims));
  MT_TRY(mt_store_set_f64(world, file, "a", done_so->a));
  MT_TRY(mt_store_set_f64(world, file, "b", done_so->b));
  MT_TRY(mt_store_set_i64(world, file, "n_epochs", done_so->n_epochs));
  MT_TRY(mt_store_set_i64(world, file, "graph_edges", done_so->edges));
  MT_TRY(mt_store_set_i64(world, file, "disconnected_components", done_so->components));
  MT_TRY(mt_store_commit(world, &file));
done:
  mt_store_abandon(world, &file);
  free(path);
  return status;
}

static mt_status umap_work(const mt_comm *world, const mt_run *run,
                           const mt_fingerprint *made_by, mt_stage_result *result)
{
  mt_status status = MT_OK;
  mt_umap_input input = {0};
  mt_umap_result outcome = {0};
  const mt_parameters *parameters = run->parameters;

  MT_TRY(mt_agree(world, read_inputs(world, run, &input)));
  MT_TRY(mt_umap_layout(run->backend, world, &parameters->umap, parameters->knn.metric,
                        input.k, input.indices, input.distances, &input.rows,
                        input.positions, &outcome));
  MT_TRY(write_file(world, run, made_by, &input, &outcome));
  mt_info("umap: %lld topics, %lld edges in %lld part%s, %lld epochs",
          (long long)input.rows.n, (long long)outcome.edges,
          (long long)outcome.components, outcome.components == 1 ? "" : "s",
          (long long)outcome.n_epochs);
  result->rows = input.rows.n;
  if (result->metrics != NULL) {
    json_object_set_new(result->metrics, "a", json_real(outcome.a));
    json_object_set_new(result->metrics, "b", json_real(outcome.b));
    json_object_set_new(result->metrics, "n_epochs", json_integer(outcome.n_epochs));
    json_object_set_new(result->metrics, "graph_edges", json_integer(outcome.edges));
    json_object_set_new(result->metrics, "components",
                        json_integer(outcome.components));
  }
done:
  input_destroy(&input);
  return status;
}

const mt_stage mt_stage_umap = {.name = "umap",
                                .file = "umap.h5",
                                .fingerprint = umap_fingerprint,
                                .on_team = true,
                                .work = umap_work};
