#!/bin/bash
# Files of a run that a disk or a person has damaged, each of them: deleted, cut short, one byte
# turned over wherever it lies. The stage is made again, to the same bits, or an error says what
# to do; nothing crashes or hangs.
# SECONDS 300
. tests/program/lib.sh

write_jsonl "$tmp/corpus.jsonl" 120 2
write_deck "$tmp/deck.xml" "$tmp/corpus.jsonl" \
  '<lda n_components="5" max_iter="5" min_docs="10"/><umap n_epochs="20"/><knn n_neighbors="6"/>'
out=$tmp/out
expect_status 0 "$metatopics" run "$tmp/deck.xml" --out "$out"
mv "$out" "$tmp/good"
numbers="corpus.h5 lda/1987-01/seed-1.h5 topics.h5 knn.h5 umap.h5 hdbscan.h5"
tables="topics.csv meta_topics.csv map.gp map.dat summary.json"
for picture in map.svg map.png; do
  if [ -e "$tmp/good/$picture" ]; then tables="$tables $picture"; fi
done

# fresh: a folder in which files are to be damaged
fresh() {
  rm -rf "$out"
  cp -r "$tmp/good" "$out"
}

# again [RANKS]: the same run, which must end well, and with the same bits in every file
again() {
  local file ranks=()
  [ "${1:-1}" = 1 ] || ranks=(tools/mpirun -n "$1")
  expect_status 0 in_time "${ranks[@]}" "$metatopics" run "$tmp/deck.xml" --out "$out"
  for file in $numbers; do
    "$BUILD/tests/h5same" "$tmp/good/$file" "$out/$file" || fail "$damage: other $file"
  done
  for file in $tables; do
    cmp "$tmp/good/$file" "$out/$file" || { cat "$tmp/output" >&2; fail "$damage: other $file"; }
  done
}

# whole_now: a run finds nothing to make again
whole_now() {
  expect_status 0 "$metatopics" run "$tmp/deck.xml" --out "$out"
  if grep -q 'damaged' "$tmp/output"; then fail "$damage: still damaged"; fi
  [ "$(grep -c ': kept$' "$tmp/output")" = 7 ] || fail "$damage: made twice: $(cat "$tmp/output")"
}

# flip FILE OFFSET: a negative one is from the end
flip() {
  local file=$1 at=$2 byte
  [ "$at" -ge 0 ] || at=$(($(stat -c %s "$file") + at))
  byte=$(od -An -tu1 -j "$at" -N 1 "$file")
  printf "\\x$(printf %x $((byte ^ 4)))" | dd of="$file" bs=1 seek="$at" conv=notrunc status=none
}

# ---- each file in its turn
for file in $numbers $tables run.json; do
  damage="$file deleted"
  fresh
  rm "$out/$file"
  again
  damage="$file, a byte in the middle"
  fresh
  flip "$out/$file" $(($(stat -c %s "$out/$file") / 2))
  again 2
  expect_output "warning: .*$file is damaged"
  [ "$(grep -c "$file is damaged" "$tmp/output")" = 1 ] || fail "$damage: told twice: $(cat "$tmp/output")"
  whole_now
done

# ---- all at once: in HDF5's header, in the attribute that says what made the file, in a table, in
# the checksum, at the end; pipes that nobody writes to
for damage in empty cut longer other pipe 9 attribute 700 -40 -1; do
  fresh
  for file in $numbers $tables run.json; do
    size=$(stat -c %s "$out/$file")
    case $damage in
      empty) : >"$out/$file" ;;
      cut) truncate -s $((size - 1)) "$out/$file" ;;
      longer) echo >>"$out/$file" ;;
      other) head -c "$size" /dev/zero >"$out/$file" ;;
      pipe) rm "$out/$file"; mkfifo "$out/$file" ;;
      attribute) at=$(grep -abo fingerprint "$out/$file" | head -1 | cut -d: -f1)
        flip "$out/$file" "${at:-20}" ;;
      *) flip "$out/$file" "$damage" ;;
    esac
  done
  in_time "$metatopics" show "$out" >"$tmp/shown" 2>&1 || [ $? -lt 3 ] || fail "$damage: show: $(cat "$tmp/shown")"
  again
  for file in $numbers summary.json run.json; do expect_output "warning: .*$file is damaged"; done
  whole_now
done

# ---- stages that are taken as they lie there: an error that says what to do
for file in $numbers; do
  fresh
  flip "$out/$file" $(($(stat -c %s "$out/$file") / 2))
  expect_status 2 mpi 2 "$metatopics" run "$tmp/deck.xml" --out "$out" --from map
  expect_output "warning: .*$file is damaged" "error: .*${file%%/*} is damaged: .*without \"--from map\""
done
