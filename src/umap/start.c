#include "umap/start.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>

static const double extent = 10.0, noise = 1e-4;

/* To a largest coordinate of 10, with a little noise against points that coincide. */
static void scale_and_shake(const mt_umap_options *options, int64_t n, double *layout)
{
  int64_t size = n * options->n_components;
  double largest = 0.0;
#pragma omp parallel for schedule(static) reduction(max : largest)
  for (int64_t at = 0; at < size; at++) largest = fmax(largest, fabs(layout[at]));
  double scale = largest > 0.0 ? extent / largest : 1.0;
#pragma omp parallel for schedule(static)
  for (int64_t at = 0; at < size; at++)
    layout[at] =
        layout[at] * scale + noise * mt_random_normal((uint32_t)options->random_state,
                                                      MT_STREAM_UMAP_INIT, (uint64_t)at,
                                                      MT_SCATTER_NOISE);
}

/* Each axis from 0 to 10. */
static void fit_to_box(int64_t n, int64_t dims, const double *layout, float *positions)
{
  for (int64_t c = 0; c < dims; c++) {
    double low = INFINITY, high = -INFINITY;
#pragma omp parallel for schedule(static) reduction(min : low) reduction(max : high)
    for (int64_t i = 0; i < n; i++) {
      low = fmin(low, layout[i * dims + c]);
      high = fmax(high, layout[i * dims + c]);
    }
    double scale = high > low ? extent / (high - low) : 0.0;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++)
      positions[i * dims + c] = (float)((layout[i * dims + c] - low) * scale);
  }
}

void mt_umap_scatter_all(const mt_umap_options *options, int64_t n, double *layout)
{
  int64_t dims = options->n_components;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; i++)
    for (int64_t c = 0; c < dims; c++)
      layout[i * dims + c] = mt_umap_scatter(options, i, c, MT_SCATTER_RANDOM, extent);
}

double mt_umap_scatter(const mt_umap_options *options, int64_t point, int64_t axis,
                       uint32_t step, double reach)
{
  uint64_t index = (uint64_t)(point * options->n_components + axis);
  double unit =
      mt_random_unit((uint32_t)options->random_state, MT_STREAM_UMAP_INIT, index, step);
  return reach * (2.0 * unit - 1.0);
}

void mt_umap_finish_start(const mt_umap_options *options, int64_t n, double *layout,
                          float *positions_out)
{
  if (options->init != MT_INIT_RANDOM) scale_and_shake(options, n, layout);
  fit_to_box(n, options->n_components, layout, positions_out);
}

double mt_umap_lap(double *at)
{
  double last = *at;
  *at = mt_seconds();
  return *at - last;
}

mt_status mt_umap_start(const mt_comm *comm, const mt_umap_options *options,
                        mt_metric metric, const mt_spectral_graph *graph,
                        const mt_rows *rows, float *positions_out)
{
  mt_status status = MT_OK;
  int64_t n = graph->n, dims = options->n_components;
  double *layout = NULL;

  MT_TRY(mt_agree(comm,
                  mt_memory_new(n * dims, sizeof *layout, "layout", (void **)&layout)));
  if (options->init == MT_INIT_SPECTRAL)
    MT_TRY(mt_umap_spectral(comm, options, metric, graph, rows, layout));
  else if (options->init == MT_INIT_PCA && n > dims)
    MT_TRY(mt_umap_pca(comm, options, rows, layout));
  else
    mt_umap_scatter_all(options, n, layout);
  double at = mt_seconds();
  mt_umap_finish_start(options, n, layout, positions_out);
  if (graph->cost != NULL) graph->cost->finish = mt_umap_lap(&at);
done:
  free(layout);
  return status;
}
