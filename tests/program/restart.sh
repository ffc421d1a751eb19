#!/bin/bash
# A run that is stopped or killed half way goes on where it was, to the same bits.
# SECONDS 300
. tests/program/lib.sh

write_jsonl "$tmp/corpus.jsonl" 3000 6
write_deck "$tmp/deck.xml" "$tmp/corpus.jsonl" \
  '<lda n_components="8" seeds="0-9" max_iter="20" min_docs="10"/><umap n_epochs="50"/>'
expect_status 0 mpi 2 "$metatopics" run "$tmp/deck.xml" --out "$tmp/whole"
fits=$(find "$tmp/whole/lda" -name 'seed-*.h5' | wc -l)
[ "$fits" = 60 ] || fail "$fits fits, not 60"

# interrupt SIGNAL OUT: starts a run, and sends it the signal when its log tells of a fit
interrupt() {
  local line
  mkfifo "$tmp/log"
  mpi 2 "$metatopics" run "$tmp/deck.xml" --out "$2" -v 2>"$tmp/log" &
  local job=$!
  exec 8<"$tmp/log"
  while read -r line <&8; do
    if [[ $line = *"fit 1987-"* ]]; then
      pkill "-$1" -f "^$metatopics run $tmp/deck.xml --out $2" || true
      break
    fi
  done
  cat <&8 >"$tmp/rest"
  status=0
  wait $job || status=$?
  rm "$tmp/log"
  fits=$(find "$2/lda" -name 'seed-*.h5' | wc -l)
  echo "signal $1: status $status, $fits fits"
}

go_on() {
  expect_status 0 mpi 2 "$metatopics" run "$tmp/deck.xml" --out "$1"
  expect_same "$tmp/whole" "$1"
  [ -z "$(find "$1" -name '*.part')" ] || fail "temporary files are left in $1"
}

interrupt KILL "$tmp/killed"
[ "$status" != 0 ] || fail "the killed run ended with status 0"
[ "$fits" -lt 60 ] || fail "the run was done before it was killed"
go_on "$tmp/killed"

interrupt TERM "$tmp/stopped"
[ "$status" = 3 ] || fail "the stopped run ended with status $status, not 3"
[ "$fits" -gt 0 ] && [ "$fits" -lt 60 ] || fail "$fits fits after the stop"
go_on "$tmp/stopped"
