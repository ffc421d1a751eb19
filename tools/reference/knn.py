#!/usr/bin/env python3
"""Makes tests/data/knn.txt: nearest neighbours by scikit-learn 1.9.1, in double.

    python3 -m pip install scikit-learn==1.9.1 numpy
    python3 tools/reference/knn.py tests/data/knn.txt

The file: a line "n d k"; the n x d rows (float32, as hexadecimal bits); then, for each
metric, its name, n lines of k neighbours and n lines of k distances. The rows are taken so
that no two distances of a row that matter to the order are closer than 1e-11."""
import sys

import numpy as np
from sklearn.neighbors import NearestNeighbors

N, D, K = 60, 40, 10


def make_rows():
    """Topic-like rows, six themes with their own spread; the last theme near-identical."""
    random = np.random.default_rng(20261130)
    themes = random.dirichlet(np.full(D, 0.1), 6) + 1e-4
    spread = np.array([1.0, 0.5, 0.2, 0.05, 0.01, 3e-4])[np.arange(N) % 6]
    rows = themes[np.arange(N) % 6] * np.exp(spread[:, None] * random.standard_normal((N, D)))
    return (rows / rows.sum(axis=1, keepdims=True)).astype(np.float32)


def find(rows, metric):
    """Distances and neighbours, the row itself left out."""
    rows = rows.astype(np.float64)
    if metric == "hellinger":
        rows, metric, scale = np.sqrt(rows), "euclidean", np.sqrt(0.5)
    else:
        scale = 1.0
    distances, indices = (
        NearestNeighbors(n_neighbors=K + 2, algorithm="brute", metric=metric)
        .fit(rows)
        .kneighbors()  # without arguments: a row is not its own neighbour
    )
    assert np.diff(distances, axis=1).min() > 1e-11, "a tie: take another seed"
    return scale * distances[:, :K], indices[:, :K]


def main(path):
    rows = make_rows()
    with open(path, "w", encoding="ascii") as out:
        print(N, D, K, file=out)
        for row in rows.view(np.uint32):
            print(*(f"{bits:08x}" for bits in row), file=out)
        for metric in ("cosine", "hellinger", "euclidean"):
            distances, indices = find(rows, metric)
            print(metric, file=out)
            for row in indices:
                print(*row, file=out)
            for row in distances:
                print(*(f"{value:.17g}" for value in row), file=out)


if __name__ == "__main__":
    main(sys.argv[1])
