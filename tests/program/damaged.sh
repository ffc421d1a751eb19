#!/bin/bash
# Files of a run that a disk or a person has damaged: what cannot be read is made again, what
# says something impossible is a clear error, and nothing crashes or hangs.
# SECONDS 300
. tests/program/lib.sh

write_jsonl "$tmp/corpus.jsonl" 120 2
write_deck "$tmp/deck.xml" "$tmp/corpus.jsonl" \
  '<lda n_components="5" max_iter="5" min_docs="10"/><umap n_epochs="20"/><knn n_neighbors="6"/>'
out=$tmp/out
expect_status 0 "$metatopics" run "$tmp/deck.xml" --out "$tmp/good"

# remove_after FILE: what was made from it, so that it is read again
remove_after() {
  local order=(corpus.h5 lda topics.h5 knn.h5 umap.h5 hdbscan.h5) i after=
  for i in "${order[@]}"; do
    if [ -n "$after" ]; then rm -rf "${out:?}/$i"; fi
    if [ "${1%%/*}" = "$i" ]; then after=1; fi
  done
}

# fresh FILE: a folder in which the file is to be damaged
fresh() {
  rm -rf "$out"
  cp -r "$tmp/good" "$out"
}

# survives: ends with 0, or with 1 or 2 and an error; within a minute
survives() {
  status=0
  in_time "$metatopics" run "$tmp/deck.xml" --out "$out" --until hdbscan \
    >"$tmp/output" 2>&1 </dev/null || status=$?
  case $status in
    0) ;;
    1 | 2) expect_output 'error: ' ;;
    *) cat "$tmp/output" >&2; fail "status $status: $*" ;;
  esac
}

# ---- whole files: made again, to the same bits
files="corpus.h5 lda/1987-01/seed-1.h5 topics.h5 knn.h5 umap.h5 hdbscan.h5"
for file in $files; do
  size=$(stat -c %s "$tmp/good/$file")
  for damage in other cut empty; do
    fresh
    case $damage in
      other) head -c "$size" "$tmp/corpus.jsonl" >"$out/$file" ;;
      cut) truncate -s $((size / 2)) "$out/$file" ;;
      empty) : >"$out/$file" ;;
    esac
    survives "$file, $damage"
    [ $status = 0 ] || { cat "$tmp/output" >&2; fail "$file, $damage: status $status"; }
    expect_same "$tmp/good" "$out"
  done
done

# ---- a byte turned over, in many places: no crash, no hang
flip() {
  local file=$1 at=$2 byte
  byte=$(od -An -tu1 -j "$at" -N 1 "$file")
  printf "\\x$(printf %x $((255 - byte)))" | dd of="$file" bs=1 seek="$at" conv=notrunc status=none
}
for file in $files; do
  size=$(stat -c %s "$tmp/good/$file")
  for part in 1 3 5 7; do
    fresh
    flip "$out/$file" $((size * part / 8))
    remove_after "$file"
    survives "$file, byte $((size * part / 8))"
  done
done

# ---- numbers that cannot be: an error that names the file
# impossible FILE DATASET INDEX VALUE REGEX
impossible() {
  fresh
  "$BUILD/tests/h5set" "$out/$1" "$2" "$3" "$4" || fail "cannot damage $1$2"
  remove_after "$1"
  survives "$1$2 = $4"
  [ $status != 0 ] || fail "$1$2 = $4 is not seen"
  expect_output "$5"
}
for value in -1 1000000 2147483647; do
  impossible corpus.h5 /counts/indices 77 $value "corpus.h5 is damaged: term $value, "
  impossible corpus.h5 /counts/indptr 30 $value "corpus.h5 is damaged: /counts/indptr\[30\] is $value"
  impossible corpus.h5 /periods/n_documents 0 $value 'corpus.h5 is damaged: period [01] has'
  impossible corpus.h5 /periods/first_document 1 $value 'corpus.h5 is damaged: period 1 has'
  impossible knn.h5 /indices 9 $value 'row [0-9]+ has row (-)?[0-9]+ as a neighbour'
done
impossible corpus.h5 /counts/data 77 0 'corpus.h5 is damaged: term [0-9]+, 0 times'
impossible corpus.h5 /periods/n_stored 0 -5 'corpus.h5 is damaged: period 0 has'
impossible lda/1987-01/seed-1.h5 /components 9 nan 'seed-1.h5: topic 0, term 9 is'
impossible lda/1987-01/seed-1.h5 /components 9 2 'seed-1.h5: topic 0 sums to'
impossible topics.h5 /matrix 9 nan 'topic vector 0 is nan in column 9'
impossible knn.h5 /distances 9 nan 'row [0-9]+'
impossible umap.h5 /embedding 9 nan 'nan'
