#!/usr/bin/env python3
"""scikit-learn's brute force on the rows that bench_knn left: knn.py FILE N D K METRIC"""
import sys
import time

import numpy as np
from sklearn.neighbors import NearestNeighbors

path, n, d, k, metric = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
rows = np.fromfile(path, dtype=np.float32).reshape(n, d)
ours = np.fromfile(path + ".indices", dtype=np.int64).reshape(n, k)
start, used = time.perf_counter(), time.process_time()
if metric == "hellinger":
    rows, metric = np.sqrt(rows), "euclidean"
model = NearestNeighbors(n_neighbors=k, algorithm="brute", metric=metric).fit(rows)
distances, indices = model.kneighbors()
seconds, used = time.perf_counter() - start, time.process_time() - used
rate = 2e-9 * n * n * d / seconds
same = np.mean([len(np.intersect1d(a, b)) / k for a, b in zip(ours, indices)])
print(f"  scikit-learn {seconds:8.3f} s (processor {used:8.3f} s)  {rate:7.1f} GFLOP/s, "
      f"{100 * same:.2f} % the same neighbours")
