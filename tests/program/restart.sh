#!/bin/bash
# A run that is stopped or killed half way goes on where it was, to the same bits.
# SECONDS 300
. tests/program/lib.sh

# interrupt SIGNAL DECK OUT: starts a run, and sends one of its ranks, the newest, the signal
# when its log tells of a fit; sets $status and $fits; what it said then is in $tmp/rest
interrupt() {
  local line
  mkfifo "$tmp/log"
  mpi 2 "$metatopics" run "$2" --out "$3" -v 2>"$tmp/log" &
  local job=$!
  exec 8<"$tmp/log"
  while read -r line <&8; do
    if [[ $line = *"fit 1987-"* ]]; then
      pkill "-$1" -n -f "^$metatopics run $2 --out $3" || true
      break
    fi
  done
  cat <&8 >"$tmp/rest"
  status=0
  wait $job || status=$?
  rm "$tmp/log"
  fits=$(find "$3/lda" -name 'seed-*.h5' | wc -l)
  echo "signal $1: status $status, $fits fits"
}

# go_on DECK OUT: the same run again must end as one that nothing befell
go_on() {
  expect_status 0 mpi 2 "$metatopics" run "$1" --out "$2"
  expect_same "$tmp/whole" "$2"
  [ -z "$(find "$2" -name '*.part')" ] || fail "temporary files are left in $2"
}

# stop_and_go DECK FITS
stop_and_go() {
  expect_status 0 mpi 2 "$metatopics" run "$1" --out "$tmp/whole"
  fits=$(find "$tmp/whole/lda" -name 'seed-*.h5' | wc -l)
  [ "$fits" = "$2" ] || fail "$fits fits, not $2"

  interrupt KILL "$1" "$tmp/killed"
  [ "$status" != 0 ] || fail "the killed run ended with status 0"
  [ "$fits" -lt "$2" ] || fail "the run was done before it was killed"
  go_on "$1" "$tmp/killed"

  interrupt TERM "$1" "$tmp/stopped"
  [ "$status" = 3 ] || fail "the stopped run ended with status $status, not 3"
  grep -q "stopped by signal 15" "$tmp/rest" || fail "no word of signal 15: $(tail -3 "$tmp/rest")"
  [ "$fits" -gt 0 ] && [ "$fits" -lt "$2" ] || fail "$fits fits after the stop"
  go_on "$1" "$tmp/stopped"
  rm -rf "$tmp/whole" "$tmp/killed" "$tmp/stopped"
}

write_jsonl "$tmp/corpus.jsonl" 3000 6
write_deck "$tmp/deck.xml" "$tmp/corpus.jsonl" \
  '<lda n_components="8" seeds="0-9" max_iter="20" min_docs="10"/><umap n_epochs="50"/>'
stop_and_go "$tmp/deck.xml" 60

if [ -n "${REUTERS_TARBALL:-}" ]; then
  sed "s|path=\"[^\"]*\"|path=\"$REUTERS_TARBALL\"|" inputs/reuters.xml >"$tmp/reuters.xml"
  stop_and_go "$tmp/reuters.xml" 15
fi
