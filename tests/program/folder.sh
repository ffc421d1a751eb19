#!/bin/bash
# The output folder: what is kept and what is made again, and who may use it.
# SECONDS 300
. tests/program/lib.sh

write_jsonl "$tmp/corpus.jsonl" 300 2
write_deck "$tmp/deck.xml" "$tmp/corpus.jsonl"
out=$tmp/out

# run ARGUMENTS...: and which stages were made, in $made
run() {
  expect_status 0 "$metatopics" run "$tmp/deck.xml" --out "$out" "$@"
  made=
  local stage
  for stage in corpus lda matrix knn umap hdbscan map; do
    grep -Eq "^ *[0-9.]+ $stage: .*kept" "$tmp/output" || made="$made $stage"
  done
}

expect_made() {
  [ "$made" = "${1:+ }$1" ] || { cat "$tmp/output" >&2; fail "made:$made; expected: $1"; }
}

run
expect_made "corpus lda matrix knn umap hdbscan map"
run
expect_made ""
run --set map.label_terms=2
expect_made "map"
run --set map.label_terms=2 --set hdbscan.min_cluster_size=4
expect_made "hdbscan map"
run --set umap.min_dist=0.2
expect_made "umap hdbscan map"
run --set lda.max_iter=3
expect_made "lda matrix knn umap hdbscan map"
run --from knn --force --set lda.max_iter=3
expect_made "corpus lda matrix knn umap hdbscan map" # nothing was said to be kept
run --until matrix --set lda.max_iter=3

# a seed more: only its fits are made
run --set lda.max_iter=3 --set "lda.seeds=0 1 2 3"
expect_output "6 of 8 fits are there"

# another corpus in the same folder: everything again, from the new vocabulary
write_jsonl "$tmp/corpus.jsonl" 200 2 77
run
expect_made "corpus lda matrix knn umap hdbscan map"
# touched, not changed: the counts are made again, the rest is kept
touch "$tmp/corpus.jsonl"
run
expect_made "corpus"

# no folder there, and none can be
expect_status 2 "$metatopics" run "$tmp/deck.xml" --out /dev/null/x
expect_output "/dev/null"
touch "$tmp/file"
expect_status 2 "$metatopics" run "$tmp/deck.xml" --out "$tmp/file"
expect_output "no folder"
expect_status 2 "$metatopics" run "$tmp/deck.xml" --out "$tmp/empty" --from knn
expect_output "corpus.h5 is not there" "--until corpus"

# two runs at once: the second is told who holds the folder. The first is held where it is
# once it has said its first line, which it does with the lock in hand.
mkfifo "$tmp/log"
"$metatopics" run "$tmp/deck.xml" --out "$out" 2>"$tmp/log" &
job=$!
exec 8<"$tmp/log"
read -r _ <&8
kill -STOP $job
expect_status 2 "$metatopics" run "$tmp/deck.xml" --out "$out"
expect_output "in use by another run \\(host .*, process [0-9]+"
kill -CONT $job
cat <&8 >"$tmp/first"
wait $job || fail "the first run failed: $(cat "$tmp/first")"
