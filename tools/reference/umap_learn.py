#!/usr/bin/env python3
"""UMAP beside umap-learn: fixtures for tests/test_umap.c, and a comparison over five seeds.

    umap_learn.py fixtures              writes tests/data/umap-*.txt
    umap_learn.py compare PROGRAM [OUT]...   PROGRAM: build/umap-layout; OUT: folders of finished
                                        runs (or .npy files), whose rows both lay out
"""
import os
import subprocess
import sys
import tempfile
import time
import warnings

import h5py
import numpy as np
import sklearn
import umap
from sklearn.neighbors import NearestNeighbors
from umap.umap_ import find_ab_params, fuzzy_simplicial_set

warnings.filterwarnings("ignore")
VERSIONS = {"umap-learn": (umap.__version__, "0.5.12"), "sklearn": (sklearn.__version__, "1.9.1")}
DATA = os.path.join(os.path.dirname(__file__), "../../tests/data")
K = 15
SEEDS = range(5)
FEW = 2000  # rows: up to here umap-learn's outliers are looked for in more runs
ORDERS = 40


def neighbors(rows, metric):
    """(indices, distances) of K columns, the point itself first, as umap-learn wants them."""
    search = NearestNeighbors(n_neighbors=K - 1, metric=metric, algorithm="brute").fit(rows)
    distances, indices = search.kneighbors()  # without the points themselves
    own = np.arange(len(rows))[:, None]
    return (np.hstack([own, indices]),
            np.hstack([np.zeros_like(own, dtype=float), distances]).astype(np.float32))


def planted(n, parts, d, apart, seed):
    """n rows around `parts` centres of spread `apart`, each row with unit noise."""
    random = np.random.default_rng(seed)
    centers = apart * random.normal(size=(parts, d))
    return (centers[random.integers(parts, size=n)] + random.normal(size=(n, d))).astype(np.float32)


def distances_to(rows, some, metric):
    if metric == "cosine":
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return 1.0 - rows[some] @ rows.T
    squares = (rows.astype(float) ** 2).sum(1)
    return squares[some, None] + squares - 2.0 * rows[some].astype(float) @ rows.T.astype(float)


def qualities(rows, metric, layouts, k=K, block=500):
    """(trustworthiness, share of kept neighbours) of each layout; ranks are exact."""
    n = len(rows)
    near = [NearestNeighbors(n_neighbors=k).fit(y).kneighbors()[1] for y in layouts]
    lost, kept = np.zeros(len(layouts)), np.zeros(len(layouts))
    for first in range(0, n, block):
        some = np.arange(first, min(n, first + block))
        distances = distances_to(rows.astype(float), some, metric)
        distances[np.arange(len(some)), some] = -np.inf
        order = np.argsort(distances, axis=1, kind="stable")
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.arange(n)[None, :], axis=1)
        for at, indices in enumerate(near):
            rank = np.take_along_axis(ranks, indices[some], axis=1)
            lost[at] += np.maximum(rank - k, 0).sum()
            kept[at] += (rank <= k).sum()
    return np.stack([1 - lost * 2 / (n * k * (2 * n - 3 * k - 1)), kept / (n * k)], axis=1)


def furthest(layout):
    return np.linalg.norm(layout - np.median(layout, axis=0), axis=1).max()


def theirs(rows, metric, knn, seed):
    start = time.time()
    layout = umap.UMAP(n_neighbors=K, metric=metric, random_state=seed, precomputed_knn=knn)
    return layout.fit_transform(rows), time.time() - start


def ours(program, rows, metric, knn, seed, *settings):
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/shape", "w") as shape:
            shape.write("%d %d %d\n" % (len(rows), K - 1, rows.shape[1]))
        knn[0][:, 1:].astype(np.int64).tofile(folder + "/neighbors")
        knn[1][:, 1:].astype(np.float32).tofile(folder + "/distances")
        rows.astype(np.float32).tofile(folder + "/rows")
        start = time.time()
        subprocess.run([program, folder, "knn.metric=" + metric, "umap.random_state=%d" % seed,
                        *settings], check=True, stderr=subprocess.PIPE)
        seconds = time.time() - start
        return np.fromfile(folder + "/positions", np.float32).reshape(len(rows), -1), seconds


def outliers(program, rows, metric):
    """Furthest points of (umap-learn, ours) over ORDERS seeds, each with the rows in another order:
    umap-learn goes through the edges in the rows' order, and where a group that lies apart
    ends depends on that order as much as on the seed."""
    found = []
    for seed in range(ORDERS):
        shuffled = rows[np.random.default_rng(seed).permutation(len(rows))]
        knn = neighbors(shuffled, metric)
        found.append((furthest(theirs(shuffled, metric, knn, seed)[0]),
                      furthest(ours(program, shuffled, metric, knn, seed)[0])))
    found = np.array(found)
    print("  furthest point over %d orders of the rows: mean %.1f and %.1f, worst %.1f and %.1f"
          % (ORDERS, *found.mean(0), *found.max(0)))
    return found


def compare_one(program, name, rows, metric):
    knn = neighbors(rows, metric)
    runs = [theirs(rows, metric, knn, s) for s in SEEDS]
    runs += [ours(program, rows, metric, knn, s) for s in SEEDS]
    found = qualities(rows, metric, [layout for layout, _ in runs])
    print("\n%s: %d rows x %d, %s" % (name, *rows.shape, metric))
    print("              trustworthiness     kept neighbours     furthest point      seconds")
    print("  seed        umap-learn  ours    umap-learn  ours    umap-learn  ours    umap-learn  ours")
    table = np.column_stack([found, [furthest(y) for y, _ in runs], [s for _, s in runs]])
    half = len(SEEDS)
    both = np.stack([table[:half], table[half:]], axis=2)
    for label, row in [*zip(map(str, SEEDS), both), ("mean", both.mean(0)), ("worst", np.stack(
            [both[:, 0].min(0), both[:, 1].min(0), both[:, 2].max(0), both[:, 3].max(0)]))]:
        print("  %-9s %10.4f %7.4f  %10.4f %7.4f  %10.1f %7.1f  %10.1f %7.1f"
              % (label, *row.reshape(-1)))
    fine = (both[:, :2, 1].mean(0) >= both[:, :2, 0].mean(0) - 0.01).all()
    limit = both[:, 2, 0].max()
    if len(rows) <= FEW:
        limit = max(limit, outliers(program, rows, metric)[:, 0].max())
    fine &= both[:, 2, 1].max() <= limit
    print("  not below umap-learn's minus 0.01, no point further out: %s" % ("yes" if fine else "NO"))
    return fine


def compare(program, folders):
    sets = [("planted, apart", planted(20000, 60, 50, 1.0, 1), "euclidean"),
            ("planted, overlapping", planted(20000, 60, 50, 0.5, 2), "euclidean")]
    for folder in folders:
        if folder.endswith(".npy"):
            sets.insert(0, (folder, np.load(folder), "cosine"))
            continue
        with h5py.File(folder + "/topics.h5") as file:
            sets.insert(0, (folder, file["matrix"][:], "cosine"))
    fine = [compare_one(program, *one) for one in sets]
    return 0 if all(fine) else 1


def write(name, lines):
    path = os.path.join(DATA, name)
    with open(path, "w") as file:
        file.write("# %s; made by tools/reference/umap_learn.py with umap-learn %s\n"
                   % (lines[0], umap.__version__))
        file.write("\n".join(lines[1:]) + "\n")
    print(path, os.path.getsize(path), "bytes")


def curve_fixture():
    lines = ["min_dist spread a b"]
    for min_dist in (0.0, 0.001, 0.1, 0.25, 0.5, 0.8, 0.99):
        for spread in (0.5, 1.0, 1.5, 3.0):
            if min_dist <= spread:
                lines.append("%r %r %.9g %.9g" % (min_dist, spread, *find_ab_params(spread, min_dist)))
    write("umap-curve.txt", lines)


def graph_fixture():
    """Few points on a coarse grid: equal distances, and points that coincide."""
    random = np.random.default_rng(7)
    rows = np.round(random.normal(size=(60, 3)) * 2) / 2
    rows[40:44] = rows[0]
    lines = ["n k local_connectivity set_op_mix_ratio edges; neighbours, distances; i j weight"]
    for k, local, mix in ((15, 1.0, 1.0), (15, 2.5, 0.4), (4, 1.0, 1.0), (2, 1.0, 1.0), (8, 0.5, 0.0)):
        search = NearestNeighbors(n_neighbors=k - 1, algorithm="brute").fit(rows)
        distances, indices = search.kneighbors()
        distances = distances.astype(np.float32)
        own = np.arange(len(rows))[:, None]
        graph = fuzzy_simplicial_set(
            rows, k, np.random.RandomState(0), "euclidean", knn_indices=np.hstack([own, indices]),
            knn_dists=np.hstack([np.zeros_like(own), distances]).astype(np.float32),
            local_connectivity=local, set_op_mix_ratio=mix)[0].tocsr()
        graph.sort_indices()
        graph = graph.tocoo()
        lines.append("%d %d %r %r %d" % (len(rows), k - 1, local, mix, graph.nnz))
        for i in range(len(rows)):
            lines.append(" ".join("%d %.9g" % pair for pair in zip(indices[i], distances[i])))
        lines += ["%d %d %.9g" % edge for edge in zip(graph.row, graph.col, graph.data)]
    write("umap-graph.txt", lines)


def quality_fixture():
    """Rows as whole hundredths; umap-learn's figures over five seeds."""
    lines = ["n d trustworthiness kept furthest (mean, mean, max over 5 seeds); rows in hundredths"]
    for n, parts, d, apart in ((400, 8, 8, 1.0), (300, 5, 6, 0.5)):
        rows = np.round(100 * planted(n, parts, d, apart, n)).astype(int)
        points = (rows / 100).astype(np.float32)
        knn = neighbors(points, "euclidean")
        layouts = [theirs(points, "euclidean", knn, s)[0] for s in SEEDS]
        found = qualities(points, "euclidean", layouts)
        lines.append("%d %d %.4f %.4f %.2f" % (n, d, *found.mean(0), max(map(furthest, layouts))))
        lines += [" ".join(map(str, row)) for row in rows]
        print(found, [round(furthest(y), 1) for y in layouts])
    write("umap-quality.txt", lines)


def fixtures():
    curve_fixture()
    graph_fixture()
    quality_fixture()
    return 0


def main():
    for name, (found, wanted) in VERSIONS.items():
        if found != wanted:
            print("note: %s %s, figures were made with %s" % (name, found, wanted))
    if len(sys.argv) >= 2 and sys.argv[1] == "fixtures":
        return fixtures()
    if len(sys.argv) >= 3 and sys.argv[1] == "compare":
        return compare(sys.argv[2], sys.argv[3:])
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
