#!/usr/bin/env python3
"""pynndescent on the rows that bench_nn_descent left: nn_descent.py FILE N D K METRIC

Seconds are those of a second index, when numba has compiled everything."""
import os
import sys
import time

import numpy as np
import pynndescent

path, n, d, k, metric = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
rows = np.fromfile(path, dtype=np.float32).reshape(n, d)
exact = np.fromfile(path + ".distances", dtype=np.float32).reshape(n, k)
if metric == "hellinger":
    rows, exact, metric = np.sqrt(rows), exact * np.sqrt(2.0), "euclidean"
threads = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count()))
for again in range(2):
    start = time.perf_counter()
    index = pynndescent.NNDescent(
        rows, metric=metric, n_neighbors=k + 1, random_state=1, n_jobs=threads
    )
    indices, _ = index.neighbor_graph
    seconds = time.perf_counter() - start
hits = 0
for i in range(n):  # distances again in double: its own are float, and others than ours
    near = rows[indices[i][indices[i] != i][:k]].astype(np.float64)
    x = rows[i].astype(np.float64)
    if metric == "cosine":
        x = x / np.linalg.norm(x)
        near = near / np.linalg.norm(near, axis=1)[:, None]
    square = ((near - x) ** 2).sum(axis=1)
    distances = 0.5 * square if metric == "cosine" else np.sqrt(square)
    hits += np.count_nonzero(distances <= exact[i, -1] * (1 + 1e-6))
print(
    f"  pynndescent  {seconds:8.3f} s, recall {hits / (n * k):.4f}, threads {threads}"
)
