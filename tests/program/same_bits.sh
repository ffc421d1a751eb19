#!/bin/bash
# The same bits from any number of ranks and threads.
# SECONDS 600
. tests/program/lib.sh

# same_bits DECK: runs it with 1, 2, 3, 4 and 7 ranks, and with 2 threads
same_bits() {
  local ranks
  for ranks in 1 2 3 4 7; do
    expect_status 0 mpi $ranks "$metatopics" run "$1" --out "$tmp/$ranks"
    expect_same "$tmp/1" "$tmp/$ranks"
  done
  OMP_NUM_THREADS=2 expect_status 0 "$metatopics" run "$1" --out "$tmp/threads"
  expect_same "$tmp/1" "$tmp/threads"
  rm -rf "${tmp:?}"/[1-7] "$tmp/threads"
}

write_jsonl "$tmp/corpus.jsonl" 900 3
write_deck "$tmp/small.xml" "$tmp/corpus.jsonl"
same_bits "$tmp/small.xml"

# fits split over ranks: fewer fits than ranks
write_deck "$tmp/one.xml" "$tmp/corpus.jsonl" \
  '<lda n_components="7" seeds="3" min_docs="10"/><umap n_epochs="50"/><knn n_neighbors="5" build_algo="nn_descent"/>'
same_bits "$tmp/one.xml"

if [ -n "${REUTERS_TARBALL:-}" ]; then
  sed "s|path=\"[^\"]*\"|path=\"$REUTERS_TARBALL\"|" inputs/reuters.xml >"$tmp/reuters.xml"
  same_bits "$tmp/reuters.xml"
fi
