#!/usr/bin/env python3
"""pipeline.py FOLDER CORES: what metatopics does with Reuters-21578, out of the packages that people
use for it: parsing, CountVectorizer, LatentDirichletAllocation for each (month, seed), cosine
neighbours and UMAP by umap-learn, HDBSCAN by hdbscan; fits on CORES processes. No map is drawn.
Prints a line of JSON: seconds of the imports and of each stage."""
import time

START = time.perf_counter()

import json
import sys
import warnings

import hdbscan
import joblib
import numpy as np
import umap
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer

from reuters import documents

warnings.filterwarnings("ignore")
SECONDS = {}


def stage(name):
    SECONDS[name] = time.perf_counter() - START - sum(SECONDS.values())


def fit(counts, seed):
    model = LatentDirichletAllocation(15, max_iter=5, random_state=seed).fit(counts)
    return model.components_ / model.components_.sum(1, keepdims=True)


def main(folder, cores):
    stage("imports")
    months, texts = zip(*documents(folder))
    stage("parsing")
    counts = CountVectorizer(min_df=5, max_df=0.5, max_features=20000).fit_transform(texts)
    counts = counts.astype(float)
    stage("counting")
    months = np.array(months)
    parts = [counts[months == month] for month in np.unique(months)]
    parts = sorted((p for p in parts if p.shape[0] >= 50), key=lambda p: -p.nnz)
    topics = np.vstack(joblib.Parallel(cores)(
        joblib.delayed(fit)(part, seed) for part in parts for seed in range(3)))
    stage("lda")
    layout = umap.UMAP(n_neighbors=15, metric="cosine", n_jobs=cores).fit_transform(topics)
    stage("umap")
    labels = hdbscan.HDBSCAN(min_cluster_size=3, min_samples=1).fit(layout).labels_
    stage("hdbscan")
    print(json.dumps({"stages": SECONDS, "topics": len(topics),
                      "groups": int(labels.max() + 1)}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
