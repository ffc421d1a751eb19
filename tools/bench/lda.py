#!/usr/bin/env python3
"""lda.py BENCH_LDA CORPUS.H5: metatopics' LDA fits beside scikit-learn's, one after the
other on one core each, with the same counts and parameters (the deck's defaults). Times are
core seconds (user and system), so that a busy machine tells on neither."""
import subprocess
import sys
import time

import h5py
import scipy.sparse as sp
import sklearn
from sklearn.decomposition import LatentDirichletAllocation

bench, path = sys.argv[1:3]
file = h5py.File(path)
terms = file["/vocabulary/terms"].shape[0]
counts = sp.csr_matrix((file["/counts/data"][:].astype(float), file["/counts/indices"][:],
                        file["/counts/indptr"][:]),
                       shape=(file["/counts/indptr"].shape[0] - 1, terms))
total = [0.0, 0.0, 0.0]
print(f"scikit-learn {sklearn.__version__}; core seconds of a fit (15 topics, 5 passes)")
print(f"{'fit':16}{'scikit-learn':>13}{'metatopics':>12}{'ratio':>8}"
      f"{'perplexity of both':>24}{'GFLOP/s':>9}")
for p, name in enumerate(file["/periods/name"].asstr()[:]):
    first, n = file["/periods/first_document"][p], file["/periods/n_documents"][p]
    if n < 50:
        continue
    for seed in range(3):
        out = subprocess.run([bench, path, str(p), str(seed)], check=True, text=True,
                             capture_output=True).stdout.split()
        ours, perplexity, gflop = map(float, out[:3])
        began = time.process_time()
        model = LatentDirichletAllocation(15, max_iter=5, random_state=seed)
        model.fit(counts[first:first + n])
        theirs = time.process_time() - began
        total = [total[0] + theirs, total[1] + ours, total[2] + gflop]
        print(f"{name:10}{seed:6}{theirs:13.2f}{ours:12.3f}{theirs / ours:8.1f}"
              f"{model.bound_:13.1f}{perplexity:11.1f}{gflop / ours:9.1f}", flush=True)
print(f"{'all':16}{total[0]:13.2f}{total[1]:12.3f}{total[0] / total[1]:8.1f}{'':24}"
      f"{total[2] / total[1]:9.1f}   ({out[3]})")
