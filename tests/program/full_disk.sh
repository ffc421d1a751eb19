#!/bin/bash
# The disk is full when a stage begins, each in turn; then there is room: the same bits.
# SECONDS 300
. tests/program/lib.sh
mkdir "$tmp/small"
if [ "$(id -u)" != 0 ] || ! mount -t tmpfs -o size=20m tmpfs "$tmp/small" 2>/dev/null; then
  skip "not root, or no mount here"
fi
trap 'umount -l "$tmp/small"; rm -rf "$tmp"' EXIT
write_jsonl "$tmp/corpus.jsonl" 300 2
write_deck "$tmp/deck.xml" "$tmp/corpus.jsonl"
expect_status 0 "$metatopics" run "$tmp/deck.xml" --out "$tmp/one"
out=$tmp/small/out
mkdir "$out"
before=()
for stage in corpus lda matrix knn umap hdbscan map; do
  cat /dev/zero >"$tmp/small/filler" 2>/dev/null || true
  expect_status 1 mpi 2 "$metatopics" run "$tmp/deck.xml" --out "$out" --until $stage
  expect_output 'No space left on device'
  [ -z "$(find "$out" -name '*.part')" ] || fail "$stage: temporary files are left"
  for made in "${before[@]}"; do # what was there is as it was
    "$BUILD/tests/h5same" "$tmp/one/$made.h5" "$out/$made.h5" || fail "$stage: $made.h5 is damaged"
  done
  rm "$tmp/small/filler"
  expect_status 0 mpi 2 "$metatopics" run "$tmp/deck.xml" --out "$out" --until $stage
  case $stage in
    corpus | knn | umap | hdbscan) before+=($stage) ;;
    matrix) before+=(topics) ;;
  esac
done
expect_same "$tmp/one" "$out"
cmp "$tmp/one/topics.csv" "$out/topics.csv"
[ -z "$(find "$out" -name '*.part')" ] || fail "temporary files are left"
