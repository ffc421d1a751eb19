#!/bin/bash
# Wrong decks and command lines end with status 2 and one message; check tells what a run
# would do, and writes nothing.
# SECONDS 120
. tests/program/lib.sh

# refused REGEX ARGUMENTS...: status 2, and one error, on $ranks ranks
ranks=1
refused() {
  local pattern=$1
  shift
  expect_status 2 mpi "$ranks" "$metatopics" "$@"
  expect_output "$pattern"
  [ "$(grep -c 'error: ' "$tmp/output")" = 1 ] || { cat "$tmp/output" >&2; fail "not one error"; }
}

# ---- the command line
refused 'no command: run, check, show, history or help; see metatopics --help'
refused 'to run this deck: metatopics run d.xml' d.xml
ranks=2
refused 'unknown option --form: did you mean --from\?' run d.xml --form lda
ranks=3
refused 'cannot open the deck .*nowhere.xml: No such file' run "$tmp/nowhere.xml"
ranks=1
refused 'there is no section "ldaa"' help ldaa

# ---- decks
write() { printf '%b' "$1" >"$tmp/d.xml"; }
write ''
refused 'd.xml: is empty' run "$tmp/d.xml"
write '<metatopics>\n<lda n_componets="9"/></metatopics>'
refused 'd.xml:2: <lda n_componets="9">: no such parameter \(did you mean n_components\?\)' run "$tmp/d.xml"
ranks=3
write '<metatopics>\n<knn\n n_neighbors="1"/></metatopics>'
refused 'd.xml:3: <knn n_neighbors="1">: out of range; allowed: integer 2 to 1024' check "$tmp/d.xml"
ranks=1
write '<metatopics/>'
refused 'no corpus: give <corpus path' run "$tmp/d.xml"
bomb='<!DOCTYPE m [<!ENTITY a0 "ha">'
for i in $(seq 30); do
  before="&a$((i - 1));"
  bomb="$bomb<!ENTITY a$i \"$before$before$before$before\">"
done
write "$bomb]>\n<metatopics><corpus path=\"&a30;\"/></metatopics>"
refused 'd.xml:1: <!DOCTYPE' run "$tmp/d.xml"

# ---- check
write_jsonl "$tmp/corpus.jsonl" 300 2
write_deck "$tmp/deck.xml" "$tmp/corpus.jsonl"
out=$tmp/out
refused '^.*--set lda.seeds=1 1: 1 is there twice' check "$tmp/deck.xml" --set "lda.seeds=1 1"
refused 'umap.min_dist \(2\) is above umap.spread' check "$tmp/deck.xml" --set umap.min_dist=2
expect_status 0 mpi 3 "$metatopics" check "$tmp/deck.xml" --out "$out" --set lda.seeds=0-9
expect_output 'lda.seeds +0-9$' 'umap.spread +1  \(default\)' '2 periods x 10 seeds = 20' \
  'ranks: 3 on 1 node' '1987-01 ' 'memory of the largest rank' \
  '^knn: auto takes brute_force: .* \(limit: 1\)'
expect_status 0 mpi 3 "$metatopics" check "$tmp/deck.xml" --out "$out" --get output.path
[ "$(cat "$tmp/output")" = "$out" ] || fail "--get output.path says: $(cat "$tmp/output")"
expect_status 0 "$metatopics" check "$tmp/deck.xml" --get corpus.path
[ "$(cat "$tmp/output")" = "$tmp/corpus.jsonl" ] || fail "--get corpus.path: $(cat "$tmp/output")"
refused '^.*--get output.pth: no such parameter \(did you mean path\?\)' \
  check "$tmp/deck.xml" --get output.pth
refused '^.*--get output: allowed: SECTION.NAME' check "$tmp/deck.xml" --get output
refused '^.*--get output.path=x: allowed: SECTION.NAME' check "$tmp/deck.xml" --get output.path=x
[ ! -e "$out" ] || fail "check made the output folder"
expect_status 0 "$metatopics" run "$tmp/deck.xml" --out "$out" --until corpus
expect_status 0 "$metatopics" check "$tmp/deck.xml" --out "$out"
expect_output '0 of the fits are there' 'memory of the largest rank, about:'
expect_status 0 "$metatopics" run "$tmp/deck.xml" --out "$out" --until knn \
  --set knn.build_algo=nn_descent
grep -Eq '"recall": *(1\.0|0\.9)' "$out/run.json" || fail "run.json does not tell the recall"

# ---- help, and what it writes
expect_status 0 "$metatopics" help --deck
cmp -s inputs/every-parameter.xml "$tmp/output" ||
  fail "inputs/every-parameter.xml is old: metatopics help --deck >inputs/every-parameter.xml"
expect_status 0 "$metatopics" help lda
expect_output 'n_components="15"'
expect_status 0 "$metatopics" --help
