#!/bin/bash
# Numbers that cannot be, in a file of a run that has its checksum: an error that names the file, and
# nobody is led outside an array.
# SECONDS 300
. tests/program/lib.sh

write_jsonl "$tmp/corpus.jsonl" 120 2
write_deck "$tmp/deck.xml" "$tmp/corpus.jsonl" \
  '<lda n_components="5" max_iter="5" min_docs="10"/><umap n_epochs="20"/><knn n_neighbors="6"/>'
out=$tmp/out
expect_status 0 "$metatopics" run "$tmp/deck.xml" --out "$out" --until hdbscan
mv "$out" "$tmp/good"

order=(corpus.h5 lda topics.h5 knn.h5 umap.h5 hdbscan.h5)
# impossible FILE DATASET INDEX VALUE REGEX
impossible() {
  local i after=
  rm -rf "$out"
  cp -r "$tmp/good" "$out"
  "$BUILD/tests/h5set" "$out/$1" "$2" "$3" "$4" || fail "cannot damage $1$2"
  for i in "${order[@]}"; do # what was made of it is made again
    if [ -n "$after" ]; then rm -rf "${out:?}/$i"; fi
    if [ "${1%%/*}" = "$i" ]; then after=1; fi
  done
  status=0
  in_time "$metatopics" run "$tmp/deck.xml" --out "$out" --until hdbscan \
    >"$tmp/output" 2>&1 </dev/null || status=$?
  case $status in
    1 | 2) expect_output 'error: ' "$5" ;;
    *) cat "$tmp/output" >&2; fail "$1$2 = $4: status $status" ;;
  esac
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
