#!/usr/bin/env python3
"""umap-learn on the neighbours that bench_umap left, and how true both layouts are:
umap_learn.py FILE. All threads (OMP_NUM_THREADS says how many), no seed; imports and numba's
compiling are not counted."""
import os
import sys
import time
import warnings

import numba
import numpy as np
import umap
import umap.umap_ as inside
from sklearn.neighbors import NearestNeighbors

D, K, SAMPLE = 5, 14, 2000
SECONDS = {}


def timed(name):
    inner = getattr(inside, name)

    def outer(*args, **kwargs):
        start = time.perf_counter()
        result = inner(*args, **kwargs)
        SECONDS[name] = time.perf_counter() - start
        return result

    setattr(inside, name, outer)


def lay_out(points, indices, distances, n_epochs):
    own = np.arange(len(points))[:, None]
    knn = (np.hstack([own, indices]), np.hstack([np.zeros_like(own, np.float32), distances]))
    start = time.perf_counter()
    layout = umap.UMAP(n_neighbors=K + 1, precomputed_knn=knn, n_epochs=n_epochs).fit_transform(points)
    return layout, time.perf_counter() - start


def warm_up(points):
    distances, indices = NearestNeighbors(n_neighbors=K).fit(points).kneighbors()
    lay_out(points, indices, distances.astype(np.float32), 5)


def trust(points, layout):
    """Trustworthiness over evenly spread points; ranks are exact."""
    n, lost = len(points), 0
    some = np.arange(SAMPLE) * n // SAMPLE
    near = NearestNeighbors(n_neighbors=K + 1).fit(layout).kneighbors(layout[some])[1]
    points = points.astype(np.float64)
    for i, found in zip(some, near):
        square = ((points - points[i]) ** 2).sum(axis=1)
        square[i] = -1.0
        ranks = np.searchsorted(np.sort(square), square[found[found != i][:K]])
        lost += np.maximum(ranks - K, 0).sum()
    return 1 - 2 * lost / (SAMPLE * K * (2 * n - 3 * K - 1))


warnings.filterwarnings("ignore")
path = sys.argv[1]
points = np.fromfile(path + ".points", np.float32).reshape(-1, D)
indices = np.fromfile(path + ".indices", np.int64).reshape(-1, K)
distances = np.fromfile(path + ".distances", np.float32).reshape(-1, K)
ours = np.fromfile(path + ".positions", np.float32).reshape(len(points), -1)
threads = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count()))
numba.set_num_threads(threads)
for name in "fuzzy_simplicial_set", "spectral_layout", "optimize_layout_euclidean":
    timed(name)
warm_up(points[:: len(points) // 5000])
theirs, seconds = lay_out(points, indices, distances, None)
print("  umap-learn  graph %7.3f, start %7.3f, epochs %7.3f, all %7.3f s (%s, threads %d)"
      % (*SECONDS.values(), seconds, umap.__version__, threads))
print("  trustworthiness of %d points: ours %.4f, umap-learn %.4f"
      % (SAMPLE, trust(points, ours), trust(points, theirs)))
