#!/usr/bin/env python3
"""Fixtures for tests/test_lda.c: fits of scikit-learn with their starts.

    pip install scikit-learn==1.9.1 && tools/reference/lda.py tests/data

Each tests/data/lda-CASE.bin holds, little-endian: int64 documents, terms, topics, max_iter,
online, batch_size, evaluate_every, n_iter, stored counts; float64 doc_topic_prior,
topic_word_prior, mean_change_tol, perp_tol, learning_decay, learning_offset, perplexity;
int64 indptr; int32 indices; int32 data; float64 start components (topics, terms), start
parameters of the documents (max_iter, documents, topics), components_ (topics, terms).
The documents have planted topics: without them a fit magnifies a rounding error of its start
a thousandfold and more (the month 1987-02 of Reuters-21578: ten thousandfold), and nothing
could be compared in single precision.
"""
import sys

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.decomposition import LatentDirichletAllocation

assert sklearn.__version__ == "1.9.1", sklearn.__version__


class Recorder(np.random.RandomState):
    """Remembers what is drawn: first the components, then each (mini-)batch's documents."""

    def __init__(self, seed):
        super().__init__(seed)
        self.drawn = []

    def gamma(self, shape, scale, size):
        values = super().gamma(shape, scale, size)
        self.drawn.append(values.copy())
        return values


def corpus(documents, terms, topics, words, seed):
    rng = np.random.RandomState(seed)
    beta = rng.dirichlet(np.full(terms, 0.05), topics)
    theta = rng.dirichlet(np.full(topics, 0.1), documents)
    rows = [rng.multinomial(rng.poisson(words), t @ beta) for t in theta]
    rows[documents // 2][:] = 0  # a document without a term
    counts = sp.csr_matrix(np.array(rows))
    counts.sort_indices()
    return counts


def write(path, counts, model, recorder):
    documents, terms = counts.shape
    starts = np.concatenate(recorder.drawn[1:])
    passes = len(starts) // documents
    padded = np.zeros((model.max_iter, documents, model.n_components))
    padded[:passes] = starts.reshape(passes, documents, -1)
    integers = [documents, terms, model.n_components, model.max_iter,
                model.learning_method == "online", model.batch_size, model.evaluate_every,
                model.n_iter_, counts.nnz]
    reals = [model.doc_topic_prior_, model.topic_word_prior_, model.mean_change_tol,
             model.perp_tol, model.learning_decay, model.learning_offset, model.bound_]
    with open(path, "wb") as file:
        for values, kind in ((integers, "<i8"), (reals, "<f8"), (counts.indptr, "<i8"),
                             (counts.indices, "<i4"), (counts.data, "<i4"),
                             (recorder.drawn[0], "<f8"), (padded, "<f8"),
                             (model.components_, "<f8")):
            file.write(np.asarray(values).astype(kind).tobytes())


def main(folder):
    cases = {
        "batch": (corpus(90, 210, 6, 120, 1), dict(n_components=6, max_iter=5)),
        "online": (corpus(90, 210, 6, 120, 2),
                   dict(n_components=6, max_iter=5, learning_method="online", batch_size=32)),
        "wide": (corpus(70, 150, 17, 60, 7),
                 dict(n_components=17, max_iter=5, doc_topic_prior=1.0,
                      topic_word_prior=1.0)),
        "stop": (corpus(60, 100, 4, 80, 4),
                 dict(n_components=4, max_iter=20, evaluate_every=2, perp_tol=0.1,
                      mean_change_tol=1e-4)),
    }
    for name, (counts, options) in cases.items():
        recorder = Recorder(5)
        model = LatentDirichletAllocation(random_state=recorder, **options).fit(counts)
        write(f"{folder}/lda-{name}.bin", counts, model, recorder)
        print(name, counts.shape, counts.nnz, "passes", model.n_iter_, model.bound_)


if __name__ == "__main__":
    main(sys.argv[1])
