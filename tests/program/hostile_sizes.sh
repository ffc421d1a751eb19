#!/bin/bash
# Few topics, few points, many ranks: every size down to nothing ends well.
# SECONDS 300
. tests/program/lib.sh

write_jsonl "$tmp/corpus.jsonl" 120 2

# sizes RANKS LDA [OPTION...]: a run to the end
sizes() {
  local ranks=$1 lda=$2
  shift 2
  write_deck "$tmp/deck.xml" "$tmp/corpus.jsonl" "<lda $lda/><umap n_epochs=\"20\"/>"
  rm -rf "$tmp/out"
  expect_status 0 mpi "$ranks" "$metatopics" run "$tmp/deck.xml" --out "$tmp/out" "$@"
  expect_file "$tmp/out/summary.json" "$tmp/out/topics.csv"
  if grep -qi 'nan' "$tmp/out/summary.json" "$tmp/out/topics.csv"; then fail "NaN in the tables"; fi
}

sizes 1 'n_components="5" min_docs="1000"'                        # 0 rows
sizes 3 'n_components="5" min_docs="1000"'
sizes 2 'n_components="1" min_docs="10" seeds="0"' --set corpus.periods=1987-01 # 1 row
sizes 2 'n_components="2" min_docs="10" seeds="0"' --set corpus.periods=1987-01 # 2
sizes 7 'n_components="3" min_docs="10" seeds="0"' --set corpus.periods=1987-01 # 3, fewer than ranks
sizes 7 'n_components="5" min_docs="10" seeds="0"' --set knn.n_neighbors=100
sizes 2 'n_components="200" min_docs="10" seeds="0"' --set corpus.periods=1987-01 # more than documents
sizes 2 'n_components="5" min_docs="10" seeds="0-30"' --set hdbscan.min_cluster_size=1000 # all noise
expect_output "min_cluster_size" "min_samples"

# topics that are all the same: one document, again and again
awk 'BEGIN { for (i = 0; i < 120; i++) printf "{\"id\": \"%d\", \"date\": \"1987-0%d-01\", \"text\": \"one two three four five\"}\n", i, 1 + i % 3 }' >"$tmp/corpus.jsonl"
for metric in cosine hellinger euclidean; do
  sizes 2 'n_components="3" min_docs="10" seeds="0-9" max_iter="30"' --set corpus.max_df=1.0 --set knn.metric=$metric
done
