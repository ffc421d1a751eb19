#!/usr/bin/env python3
"""Makes tests/data/hdbscan.txt: data sets clustered by the Python package hdbscan 0.8.44.

    python3 -m pip install hdbscan==0.8.44 numpy scikit-learn
    python3 tools/reference/hdbscan.py tests/data/hdbscan.txt

The file holds no points: tests/test_hdbscan.c draws the same ones from the same Philox
counters, in operations that IEEE 754 rounds alike everywhere, and a checksum proves it.
A data set is taken only if equal weights in the spanning tree do not matter: shuffled
points, shuffled ties and two algorithms all have to give the same clusters, or the next
seed is tried."""
import sys
from importlib import import_module, metadata

import numpy as np

sys.path.pop(0)  # this file's own name would hide the package
hdbscan_ = import_module("hdbscan.hdbscan_")

STREAM = 9001
WITH_POINTS = 500  # up to here the file holds what was found for each point


def philox(seed, index, step, block=0):
    """Philox4x32-10 (Salmon et al. 2011), as src/base/random.h calls it: four words."""
    index = np.asarray(index, dtype=np.uint64)
    low = np.uint64(0xFFFFFFFF)
    counter = [index & low, index >> np.uint64(32)]
    counter += [np.full_like(index, step), np.full_like(index, block)]
    key = [np.uint64(seed), np.uint64(STREAM)]
    for _ in range(10):
        first = counter[0] * np.uint64(0xD2511F53)
        second = counter[2] * np.uint64(0xCD9E8D57)
        counter = [
            (second >> np.uint64(32)) ^ counter[1] ^ key[0],
            second & low,
            (first >> np.uint64(32)) ^ counter[3] ^ key[1],
            first & low,
        ]
        key = [(key[0] + np.uint64(0x9E3779B9)) & low, (key[1] + np.uint64(0xBB67AE85)) & low]
    return counter


def unit(seed, index, step):
    words = philox(seed, index, step)
    bits = (words[0] << np.uint64(32) | words[1]) >> np.uint64(12)
    return (bits.astype(np.float64) + 0.5) * 2.0**-52


def bell(seed, index):
    """Six uniforms, centred, of variance 1: near enough to normal, and the same everywhere."""
    total = unit(seed, index, 0)
    for step in range(1, 6):
        total = total + unit(seed, index, step)
    return (total - 3.0) * 1.4142135623730951


def points_of(kind, n, d, seed, parts, spread, noise):
    """(n, d) float32. The first n * noise points are uniform in a box; the rest lie in
    `parts` contiguous runs."""
    i = np.arange(n)[:, None]
    t = np.arange(d)[None, :]
    at = i * d + t
    box = unit(seed, at, 6) * 10.0
    shake = bell(seed, at) * spread
    part = i * parts // n
    if kind == "uniform":
        points = box
    elif kind == "moons":  # half circles by their rational parametrisation
        s = unit(seed, i, 7) * 2.0 - 1.0
        x, y = 2.0 * s / (1.0 + s * s), (1.0 - s * s) / (1.0 + s * s)
        odd = part % 2
        x, y = np.where(odd, x + 1.0, x), np.where(odd, 0.5 - y, y)
        base = np.where(t == 0, x + 3.0 * (part // 2), np.where(t == 1, y, 0.0))
        points = base + shake
    else:
        centre = unit(seed, part * d + t, 8) * 10.0
        if kind == "varying":
            shake = shake * (1.0 + part)
        points = centre + shake
    return np.where(i < n * noise, box, points).astype(np.float32)


def checksum(points):
    words = points.reshape(-1).view(np.uint32).astype(np.uint64)
    odd = np.arange(words.size, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    return int(((words + np.uint64(1)) * odd).sum(dtype=np.uint64))


def canonical(labels):
    """Labels renumbered by first appearance."""
    names = {-1: -1}
    return np.array([names.setdefault(l, len(names) - 1) for l in labels.tolist()])


def options_of(options):
    return dict(
        min_cluster_size=options["min_cluster_size"],
        cluster_selection_method=options["method"],
        allow_single_cluster=options["single"],
        cluster_selection_epsilon=float(options["epsilon"]),
        max_cluster_size=options["max"],
    )


def tree_of(points, options, algorithm="prims"):
    points = points.astype(np.float64)
    min_samples = min(options["min_samples"], len(points) - 1)
    if algorithm == "prims":
        return hdbscan_._hdbscan_prims_kdtree(
            points, min_samples, options["alpha"], "euclidean", gen_min_span_tree=True)[1]
    return hdbscan_._hdbscan_boruvka_kdtree(
        points, min_samples, 1.0, "euclidean", approx_min_span_tree=False,
        gen_min_span_tree=True, core_dist_n_jobs=1)[1]


def cluster(points, tree, options, order):
    linkage = hdbscan_.label(np.ascontiguousarray(tree[order]))
    labels, probabilities, persistence, condensed, _ = hdbscan_._tree_to_labels(
        points, linkage, **options_of(options))
    persistence = persistence[np.unique(labels[labels >= 0])]  # a root may have no points
    return labels, probabilities, persistence, hdbscan_.outlier_scores(condensed)


def same(one, other):
    return (np.array_equal(canonical(one[0]), canonical(other[0]))
            and np.allclose(one[1], other[1], atol=1e-7)
            and np.allclose(np.sort(one[2]), np.sort(other[2]), atol=1e-7))


def other_trees(points, options, tries):
    """Minimum spanning trees by Kruskal over all pairs, equal weights in random order."""
    points = points.astype(np.float64)
    distance = np.sqrt(((points[:, None] - points[None]) ** 2).sum(-1))
    core = np.sort(distance, axis=1)[:, min(options["min_samples"], len(points) - 1)]
    reach = np.maximum(distance / options["alpha"], np.maximum(core[:, None], core[None]))
    first, second = np.triu_indices(len(points), 1)
    weights = reach[first, second]
    for seed in range(tries):
        ties = np.random.default_rng(seed).permutation(len(weights))
        parent, edges = np.arange(len(points)), []
        for edge in np.lexsort((ties, weights)):
            ends = []
            for node in (first[edge], second[edge]):
                while parent[node] != node:
                    parent[node] = parent[parent[node]]
                    node = parent[node]
                ends.append(node)
            if ends[0] != ends[1]:
                parent[ends[0]] = ends[1]
                edges.append((first[edge], second[edge], weights[edge]))
                if len(edges) == len(points) - 1:
                    break
        yield np.array(edges, dtype=np.float64)


def variants(points, tree, options, tries):
    """The same data in other orders: of ties, of points, by another algorithm."""
    if len(points) <= 1000:
        for other in other_trees(points, options, tries):
            yield cluster(points, other, options, np.arange(len(other)))
    random = np.random.default_rng(1)
    for _ in range(tries):
        ties = random.permutation(len(tree))
        order = np.lexsort((ties, tree[:, 2]))
        yield cluster(points, tree, options, order)
    for round in range(tries if len(points) <= 5000 else 1):
        shuffle = random.permutation(len(points))
        algorithm = "boruvka" if round % 2 and options["alpha"] == 1.0 else "prims"
        other = tree_of(points[shuffle], options, algorithm)
        got = cluster(points[shuffle], other, options, np.argsort(other[:, 2], kind="stable"))
        back = np.argsort(shuffle)
        yield got[0][back], got[1][back], got[2], got[3][back]


def clustered(case, seed):
    points = points_of(case["kind"], case["n"], case["d"], seed, case["parts"],
                       case["spread"], case["noise"])
    tree = tree_of(points, case)
    result = cluster(points, tree, case, np.argsort(tree[:, 2], kind="stable"))
    tries = 6 if case["n"] <= 5000 else 3
    fine = sure = True  # of the clusters; of the outlier scores too
    for other in variants(points, tree, case, tries):
        fine = fine and same(result, other)
        sure = sure and np.allclose(result[3], other[3], atol=1e-7)
    return points, result if sure else result[:3] + (None,), fine


def runs(labels):
    text, start = [], 0
    for i in range(1, len(labels) + 1):
        if i == len(labels) or labels[i] != labels[start]:
            text.append(f"{labels[start]}*{i - start}" if i - start > 1 else f"{labels[start]}")
            start = i
    return " ".join(text)


def numbers(values):
    return " ".join(f"{v:.6g}" for v in values)


def write(out, case, seed, points, result):
    labels, probabilities, persistence, outliers = result
    print(f"set {case['kind']} {case['n']} {case['d']} {seed} {case['parts']} "
          f"{case['spread']} {case['noise']} {checksum(points):016x}", file=out)
    print(f"options {case['min_cluster_size']} {case['min_samples']} {case['method']} "
          f"{case['epsilon']} {int(case['single'])} {case['max']} {case['alpha']}", file=out)
    print(f"persistence {len(persistence)} {numbers(persistence)}", file=out)
    print(f"labels {runs(labels)}", file=out)
    if case["n"] <= WITH_POINTS:
        print(f"probabilities {numbers(probabilities)}", file=out)
        if outliers is not None:
            print(f"outliers {numbers(outliers)}", file=out)
    print("end", file=out)


def case(kind, n, d, parts=5, spread=0.4, noise=0.0, min_cluster_size=5, min_samples=1,
         method="eom", epsilon=0.0, single=False, max=0, alpha=1.0):
    return locals()


CASES = [
    case("blobs", 50, 2, 3),
    case("blobs", 60, 2, 3, min_samples=4),
    case("blobs", 100, 3, 4, min_cluster_size=3, method="leaf"),
    case("blobs", 200, 2, noise=0.1, min_cluster_size=8, min_samples=3),
    case("blobs", 200, 2, noise=0.1, min_cluster_size=8, min_samples=3, method="leaf"),
    case("blobs", 300, 2, 6, noise=0.2, min_cluster_size=10, min_samples=2, single=True),
    case("blobs", 400, 4, 6, spread=0.8, min_cluster_size=5, epsilon=1.0),
    case("blobs", 400, 4, 6, spread=0.8, min_cluster_size=5, method="leaf", epsilon=1.0),
    case("blobs", 500, 5, 8, spread=0.7, noise=0.05, min_cluster_size=6, max=70),
    case("blobs", 500, 2, 1, spread=1.0, min_cluster_size=20, min_samples=1, single=True),
    case("blobs", 500, 2, 1, spread=1.0, min_cluster_size=20, single=True, epsilon=0.3),
    case("blobs", 500, 2, 5, noise=0.1, min_cluster_size=5, alpha=0.8),
    case("blobs", 150, 2, 3, spread=0.2, min_cluster_size=10, alpha=1.5),
    case("blobs", 1000, 10, 10, spread=1.0, min_cluster_size=15, min_samples=5),
    case("blobs", 1000, 8, 10, spread=1.0, noise=0.1, min_cluster_size=10, min_samples=2,
         method="leaf"),
    case("moons", 200, 2, 2, spread=0.05),
    case("moons", 300, 2, 2, spread=0.08, min_cluster_size=10, min_samples=3),
    case("moons", 500, 2, 2, spread=0.1, noise=0.1, min_cluster_size=12, min_samples=5),
    case("moons", 500, 2, 4, spread=0.06, min_cluster_size=10, method="leaf"),
    case("moons", 1000, 3, 4, spread=0.08, min_cluster_size=10, method="leaf", epsilon=0.3),
    case("moons", 2000, 2, 4, spread=0.07, noise=0.05, min_cluster_size=20, min_samples=4),
    case("varying", 300, 2, 4, spread=0.15, min_cluster_size=10),
    case("varying", 500, 2, 5, spread=0.1, noise=0.05, min_cluster_size=10, min_samples=3),
    case("varying", 1000, 3, 6, spread=0.1, min_cluster_size=15, min_samples=2,
         method="leaf"),
    case("varying", 2000, 2, 6, spread=0.08, min_cluster_size=20, min_samples=5, epsilon=0.2),
    case("varying", 3000, 5, 8, spread=0.15, noise=0.02, min_cluster_size=25, min_samples=2),
    case("varying", 3000, 2, 6, spread=0.08, min_cluster_size=15, max=400),
    case("uniform", 100, 2, min_cluster_size=3),
    case("uniform", 500, 3, min_cluster_size=5),
    case("uniform", 500, 2, min_cluster_size=4, method="leaf"),
    case("uniform", 1000, 2, min_cluster_size=10, single=True),
    case("uniform", 2000, 6, min_cluster_size=5, min_samples=2),
    case("uniform", 500, 2, min_cluster_size=300),
    case("blobs", 5000, 2, 20, spread=0.2, noise=0.1, min_cluster_size=20),
    case("blobs", 5000, 7, 15, spread=0.7, min_cluster_size=30, min_samples=3, method="leaf"),
    case("blobs", 10000, 3, 12, spread=0.2, min_cluster_size=50, min_samples=10),
    case("blobs", 20000, 2, 30, spread=0.15, noise=0.02, min_cluster_size=30),
    case("varying", 20000, 4, 12, spread=0.1, min_cluster_size=60),
    case("moons", 20000, 2, 6, spread=0.04, min_cluster_size=100, min_samples=15),
]


def main(path):
    version = metadata.version("hdbscan")
    assert version == "0.8.44", version
    with open(path, "w") as out:
        print(f"# made by tools/reference/hdbscan.py with hdbscan {version}", file=out)
        for number, wanted in enumerate(CASES):
            for seed in range(100 * number + 1, 100 * number + 60):
                points, result, fine = clustered(wanted, seed)
                if fine:
                    break
            assert fine, f"ties matter for every seed of {wanted}"
            write(out, wanted, seed, points, result)
            noise = int((result[0] < 0).sum())
            print(f"{number:2d} {wanted['kind']} n={wanted['n']} d={wanted['d']} seed={seed}: "
                  f"{len(result[2])} clusters, {noise} noise", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
