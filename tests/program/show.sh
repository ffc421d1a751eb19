# `metatopics show`: a half-finished run, the finished one, one whose files were touched, and
# folders that hold no run. The map stage alone runs again when only it is affected.
# SECONDS 120
. tests/program/lib.sh
"$BUILD/newswire" --documents 400 --periods 2 --out "$tmp/corpus"
run() {
  expect_status 0 mpi 2 "$metatopics" run inputs/demo.xml --set corpus.path="$tmp/corpus" \
    --set lda.seeds="0 1" --set lda.max_iter=5 --out "$tmp/out" "$@"
}
state() { # state STAGE REGEX: what show says of a stage
  grep -Eq "^ *$1 .*$2" "$tmp/output" || {
    cat "$tmp/output" >&2
    fail "show does not say \"$2\" of stage $1"
  }
}

expect_status 2 "$metatopics" show "$tmp/nowhere"
expect_output "no folder.*nowhere"
mkdir "$tmp/empty"
expect_status 2 "$metatopics" show "$tmp/empty"
expect_output "holds no run"

run --until lda
expect_status 0 "$metatopics" show "$tmp/out"
expect_output 'corpus.path = ' 'lda.seeds = ' 'next: stage matrix' 'done at'
state corpus whole
state lda '4 of 4 .*whole'
state knn 'not there yet'

rm "$tmp"/out/lda/*/seed-1.h5
expect_status 0 "$metatopics" show "$tmp/out"
state lda '2 of 4 .*some are there'
expect_output 'next: stage lda'

run
expect_output 'persistent|local|single-fit' 'map: .*/map.svg'
expect_status 0 "$metatopics" show "$tmp/out"
for stage in corpus lda matrix knn umap hdbscan map; do state $stage whole; done
expect_output '^meta-topics$' 'persistence' 'belong to no meta-topic' '^what it took$'
grep -q 'next:' "$tmp/output" && fail 'a finished run has a next stage'

# a finished run is kept as it is; what only the map needs makes the map again
cp "$tmp/out/map.gp" "$tmp/first.gp"
run --set map.label_terms=1
expect_output 'hdbscan.h5 is there.*kept'
cmp -s "$tmp/out/map.gp" "$tmp/first.gp" && fail 'the map has not changed'
run
cmp "$tmp/out/map.gp" "$tmp/first.gp"

# another layout: what lies behind it waits
run --set umap.random_state=7 --until umap
expect_status 0 "$metatopics" show "$tmp/out"
state umap whole
state hdbscan 'of other input or parameters'
state map 'waits'
expect_output 'next: stage hdbscan'

rm "$tmp/out/run.json"
expect_status 0 "$metatopics" show "$tmp/out"
expect_output 'no run.json'

# a run.json that is something else is no reason to fail; without anything else it is no run
mkdir "$tmp/damaged"
cp "$tmp/out/corpus.h5" "$tmp/damaged"
for text in '[1, 2]' '{"stages": [7], "parameters": 5}' '{' ''; do
  echo "$text" >"$tmp/damaged/run.json"
  expect_status 0 "$metatopics" show "$tmp/damaged"
  expect_output 'warning: .*run.json is damaged' 'corpus.h5'
done
rm "$tmp/damaged/corpus.h5"
expect_status 2 "$metatopics" show "$tmp/damaged"
