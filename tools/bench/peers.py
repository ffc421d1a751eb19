#!/usr/bin/env python3
"""peers.py TASK ARGUMENTS: what others do with the benchmark's data, for tools/bench/bench.

ARGUMENTS is a JSON object. The process loads the data, has whatever numba compiles compiled, and
says so with a line ("{}"); then, for each line on the standard input, it does the task once and
answers with a line of JSON: seconds on the clock, core seconds (cpu), and what the task says of the
result. The number of threads is in `cores` and in the environment."""
import json
import os
import sys
import time
import warnings

import numpy as np

from reuters import documents

warnings.filterwarnings("ignore")
TASKS = {}


def task(function):
    TASKS[function.__name__] = function
    return function


def processor():
    return sum(os.times()[:4])  # children too, once they have ended


class Timer:
    """with Timer() as took: ...; then took.seconds, took.cpu"""

    def __enter__(self):
        self.seconds, self.cpu = time.perf_counter(), processor()
        return self

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self.seconds
        self.cpu = processor() - self.cpu

    def line(self, **more):
        return {"seconds": self.seconds, "cpu": self.cpu, **more}


def rows_of(folder, n, d):
    return np.fromfile(folder + "/rows", np.float32).reshape(n, d)


# ---- corpus ------------------------------------------------------------------------------
def texts_of_json(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in file]


@task
def count_vectorizer(path, **_):
    """Documents in memory, already parsed, to counts."""
    from sklearn.feature_extraction.text import CountVectorizer
    texts = [body for _, body in documents(path)] if os.path.isdir(path) else texts_of_json(path)

    def run():
        with Timer() as took:
            counts = CountVectorizer(min_df=5, max_df=0.5, max_features=20000) \
                .fit_transform(texts)
        return took.line(documents=len(texts), terms=counts.shape[1], stored=counts.nnz)

    return run


# ---- LDA ---------------------------------------------------------------------------------
def corpus_of(path):
    """(counts, periods) of a corpus.h5; periods: (first document, documents)"""
    import h5py
    import scipy.sparse as sp
    with h5py.File(path) as file:
        terms = file["/vocabulary/terms"].shape[0]
        indptr = file["/counts/indptr"][:]
        counts = sp.csr_matrix((file["/counts/data"][:], file["/counts/indices"][:], indptr),
                               shape=(len(indptr) - 1, terms))
        periods = list(zip(file["/periods/first_document"][:].tolist(),
                           file["/periods/n_documents"][:].tolist()))
    return counts, periods


@task
def sklearn_lda(corpus, topics, seeds, periods=None, **_):
    from sklearn.decomposition import LatentDirichletAllocation
    counts, all_periods = corpus_of(corpus)
    counts = counts.astype(float)  # or it would be copied in every fit
    chosen = [p for at, p in enumerate(all_periods)
              if (periods is None or at in periods) and p[1] >= 50]

    def run():
        perplexity = []
        with Timer() as took:
            for first, n in chosen:
                for seed in range(seeds):
                    model = LatentDirichletAllocation(topics, max_iter=5, random_state=seed)
                    perplexity.append(model.fit(counts[first:first + n]).bound_)
        return took.line(perplexity=perplexity)

    return run


def split(corpus, period, every):
    """Training documents, and two halves of the others: every second term of a document."""
    counts, periods = corpus_of(corpus)
    first, n = periods[period]
    counts = counts[first:first + n]
    out = np.arange(n) % every == every - 1
    test = counts[out].astype(float)
    place = np.arange(test.nnz) - np.repeat(test.indptr[:-1], np.diff(test.indptr))
    known, asked = test.copy(), test.copy()
    # a term that no training document has says how a program smooths, not what it found
    seen = np.bincount(counts[~out].indices, minlength=counts.shape[1])[test.indices] > 0
    known.data[(place % 2 == 1) | ~seen] = 0
    asked.data[(place % 2 == 0) | ~seen] = 0
    known.eliminate_zeros()
    asked.eliminate_zeros()
    return counts[~out], known, asked


STEPS = 100


def held_out_perplexity(topics, known, asked):
    """Of the asked half given the known one, from the topics (K, V; rows sum to 1) alone, so
    alike for all: a document's shares are the mean under a Dirichlet prior of 1 / K by STEPS
    steps of expectation maximisation."""
    topics = np.maximum(np.asarray(topics, float), 1e-12)
    topics /= topics.sum(1, keepdims=True)
    k, total, words = len(topics), 0.0, 0.0
    for i in range(known.shape[0]):
        def of(half):
            part = slice(half.indptr[i], half.indptr[i + 1])
            return topics[:, half.indices[part]], half.data[part]
        (a, n), (b, m) = of(known), of(asked)
        shares = np.full(k, 1.0 / k)
        for _ in range(STEPS):
            shares = 1.0 / k + shares * (a @ (n / (shares @ a)))
            shares /= shares.sum()
        total += m @ np.log(shares @ b)
        words += m.sum()
    return float(np.exp(-total / words))


@task
def perplexity_of(corpus, period, every, topics, folder, **_):
    """Of the topics that bench_lda left in folder/components."""
    _, known, asked = split(corpus, period, every)

    def run():
        rows = np.fromfile(folder + "/components", np.float32).reshape(topics, -1)
        return {"perplexity": held_out_perplexity(rows, known, asked)}

    return run


def documents_of(counts):
    """[(term, count)] of each document, as gensim wants them."""
    return [list(zip(counts.indices[a:b].tolist(), counts.data[a:b].tolist()))
            for a, b in zip(counts.indptr[:-1], counts.indptr[1:])]


def gensim_steps(train, topics, workers, seed):
    """(core seconds so far, topics) after each pass."""
    from gensim.models import LdaModel, LdaMulticore
    documents = documents_of(train)
    id2word = dict(enumerate(map(str, range(train.shape[1]))))
    used = 0.0
    shared = dict(num_topics=topics, id2word=id2word, eval_every=None, random_state=seed,
                  eta="symmetric")
    with Timer() as took:
        model = LdaMulticore(alpha="symmetric", workers=workers, **shared) if workers \
            else LdaModel(alpha="symmetric", **shared)
    while True:
        used += took.cpu
        if model.num_updates:
            yield used, model.get_topics()
        with Timer() as took:
            model.update(documents)


def tomotopy_steps(train, topics, seed, step=10):
    import tomotopy
    model = tomotopy.LDAModel(k=topics, alpha=1.0 / topics, eta=1.0 / topics, seed=seed)
    for a, b in zip(train.indptr[:-1], train.indptr[1:]):
        if b > a:
            model.add_doc(np.repeat(train.indices[a:b], train.data[a:b]).astype(str).tolist())
    used = 0.0
    while True:
        with Timer() as took:
            model.train(step, workers=1, parallel=tomotopy.ParallelScheme.NONE)
        used += took.cpu
        rows = np.zeros((topics, train.shape[1]))
        terms = np.array(list(model.used_vocabs), dtype=int)
        for k in range(topics):
            rows[k, terms] = model.get_topic_word_dist(k)
        yield used, rows


def sklearn_steps(train, topics, method, seed):
    from sklearn.decomposition import LatentDirichletAllocation
    model = LatentDirichletAllocation(topics, random_state=seed, learning_method=method,
                                      total_samples=train.shape[0], batch_size=128)
    train = train.astype(float)
    used, passes = 0.0, 0
    while True:
        passes += 1
        if method == "batch":  # it has no partial batch fit: from the start every time
            with Timer() as took:
                model.set_params(max_iter=passes).fit(train)
            used = took.cpu
        else:
            with Timer() as took:
                model.partial_fit(train)
            used += took.cpu
        yield used, model.components_ / model.components_.sum(1, keepdims=True)


@task
def held_out(corpus, period, every, topics, who, most_seconds, **_):
    """Core seconds and perplexity of held-out documents, step after step, until it no longer
    falls or so many core seconds are gone."""
    train, known, asked = split(corpus, period, every)

    def run():
        steps = {"gensim LdaModel": lambda: gensim_steps(train, topics, 0, 1),
                 "gensim LdaMulticore": lambda: gensim_steps(train, topics, 1, 1),
                 "tomotopy": lambda: tomotopy_steps(train, topics, 1),
                 "scikit-learn online": lambda: sklearn_steps(train, topics, "online", 1)}
        found, best, since = [], np.inf, 0
        for used, rows in steps[who]():
            found.append([used, held_out_perplexity(rows, known, asked)])
            since = 0 if found[-1][1] < 0.999 * best else since + 1
            best = min(best, found[-1][1])
            if used > most_seconds or since >= 8:
                break
        return {"seconds": found[-1][0], "cpu": found[-1][0], "steps": found}

    return run


# ---- neighbours ----------------------------------------------------------------------------
@task
def sklearn_neighbors(folder, n, d, k, metric, **_):
    from sklearn.neighbors import NearestNeighbors
    rows = rows_of(folder, n, d)
    if metric == "hellinger":
        rows, metric = np.sqrt(rows), "euclidean"

    def run():
        with Timer() as took:
            model = NearestNeighbors(n_neighbors=k, algorithm="brute", metric=metric).fit(rows)
            _, indices = model.kneighbors()
        ours = np.fromfile(folder + "/indices", np.int64).reshape(n, k)
        same = np.mean([len(np.intersect1d(a, b)) / k for a, b in zip(ours, indices)])
        return took.line(same=float(same))

    return run


def recall_of(rows, indices, exact, metric):
    """The share of neighbours that are as near as the exact k-th; distances again in double: a
    peer's own are float, and others than ours."""
    n, k = exact.shape
    hits = 0
    for i in range(n):
        near = rows[indices[i][indices[i] != i][:k]].astype(np.float64)
        x = rows[i].astype(np.float64)
        if metric == "cosine":
            x = x / np.linalg.norm(x)
            near = near / np.linalg.norm(near, axis=1)[:, None]
        square = ((near - x) ** 2).sum(axis=1)
        distances = 0.5 * square if metric == "cosine" else np.sqrt(square)
        hits += np.count_nonzero(distances <= exact[i, -1] * (1 + 1e-6))
    return hits / (n * k)


@task
def pynndescent(folder, n, d, k, metric, cores, **_):
    from pynndescent import NNDescent
    rows = rows_of(folder, n, d)
    exact = np.fromfile(folder + "/exact", np.float32).reshape(n, k)
    if metric == "hellinger":
        rows, exact, metric = np.sqrt(rows), exact * np.sqrt(2.0), "euclidean"

    def find(rows):
        return NNDescent(rows, metric=metric, n_neighbors=k + 1, random_state=1,
                         n_jobs=cores).neighbor_graph[0]

    find(rows[:2000])

    def run():
        with Timer() as took:
            indices = find(rows)
        return took.line(recall=recall_of(rows, indices, exact, metric))

    return run


@task
def recall(folder, n, d, k, metric, **_):
    """Of what bench_knn left in folder/indices."""
    rows = rows_of(folder, n, d)
    exact = np.fromfile(folder + "/exact", np.float32).reshape(n, k)
    if metric == "hellinger":
        rows, exact, metric = np.sqrt(rows), exact * np.sqrt(2.0), "euclidean"

    def run():
        indices = np.fromfile(folder + "/indices", np.int64).reshape(n, k)
        return {"recall": recall_of(rows, indices, exact, metric)}

    return run


# ---- UMAP ----------------------------------------------------------------------------------
@task
def make_lists(folder, n, d, k, cores, **_):
    """Exact neighbour lists of points in few dimensions, for us and for umap-learn."""
    from sklearn.neighbors import NearestNeighbors

    def run():
        model = NearestNeighbors(n_neighbors=k, algorithm="kd_tree", n_jobs=cores) \
            .fit(rows_of(folder, n, d))
        distances, indices = model.kneighbors()
        indices.astype(np.int64).tofile(folder + "/neighbors")
        distances.astype(np.float32).tofile(folder + "/distances")
        return {}

    return run


@task
def umap_learn(folder, n, d, k, cores, **_):
    """From neighbour lists (the point itself is the first of each, as umap-learn wants them) to
    positions; its threads on, so no seed."""
    import umap
    import umap.umap_ as inside
    from sklearn.neighbors import NearestNeighbors
    parts = {}

    def timed(name, function):
        def outer(*args, **kwargs):
            with Timer() as took:
                result = function(*args, **kwargs)
            parts[name] = took.seconds
            return result
        return outer

    for name, inner in (("graph", "fuzzy_simplicial_set"), ("start", "spectral_layout"),
                        ("epochs", "optimize_layout_euclidean")):
        setattr(inside, inner, timed(name, getattr(inside, inner)))
    rows = rows_of(folder, n, d)
    indices = np.fromfile(folder + "/neighbors", np.int64).reshape(n, k)
    distances = np.fromfile(folder + "/distances", np.float32).reshape(n, k)

    def lay_out(rows, indices, distances, **options):
        own = np.arange(len(rows))[:, None]
        knn = (np.hstack([own, indices]),
               np.hstack([np.zeros_like(own, np.float32), distances]))
        return umap.UMAP(n_neighbors=k + 1, precomputed_knn=knn, n_jobs=cores, **options) \
            .fit_transform(rows)

    few = rows[::max(1, n // 5000)]
    near = NearestNeighbors(n_neighbors=k).fit(few).kneighbors()
    lay_out(few, near[1], near[0].astype(np.float32), n_epochs=5)

    def run():
        with Timer() as took:
            positions = lay_out(rows, indices, distances)
        positions.astype(np.float32).tofile(folder + "/theirs")
        return took.line(**parts)

    return run


# ---- HDBSCAN -------------------------------------------------------------------------------
@task
def cluster(folder, n, d, who, min_cluster_size, min_samples, cores, **_):
    from sklearn.metrics import adjusted_rand_score
    points = rows_of(folder, n, d)

    def model():
        options = dict(min_cluster_size=min_cluster_size, min_samples=min_samples)
        if who == "hdbscan":
            import hdbscan
            return hdbscan.HDBSCAN(core_dist_n_jobs=cores, **options)
        if who == "fast-hdbscan":
            import fast_hdbscan
            return fast_hdbscan.HDBSCAN(**options)
        from sklearn.cluster import HDBSCAN
        options["min_samples"] += 1  # it counts the point itself
        return HDBSCAN(n_jobs=cores, copy=True, **options)

    model().fit(points[:20000])  # from 16,384 on hdbscan starts processes

    def run():
        with Timer() as took:
            labels = model().fit(points).labels_
        ours = np.fromfile(folder + "/labels", np.int32)
        return took.line(rand=float(adjusted_rand_score(ours, labels)),
                         clusters=int(labels.max() + 1))

    return run


def main():
    run = TASKS[sys.argv[1]](**json.loads(sys.argv[2]))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what packages print is no answer
    print("{}", file=answers, flush=True)
    for _ in sys.stdin:
        print(json.dumps(run()), file=answers, flush=True)


if __name__ == "__main__":
    main()
