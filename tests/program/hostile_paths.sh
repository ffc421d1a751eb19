#!/bin/bash
# Paths that are odd, endless or no files at all; bytes that are no text; folders that cannot
# be written, or fill up half way.
# SECONDS 300
. tests/program/lib.sh
lda='<lda n_components="4" max_iter="4" min_docs="10" seeds="0 1"/><umap n_epochs="20"/><knn n_neighbors="5"/>'

# run_on PATH STATUS [OPTION...]: ends with the status, within a minute
run_on() {
  local path=$1 status=$2
  shift 2
  write_deck "$tmp/deck.xml" "$path" "$lda"
  rm -rf "$tmp/out"
  expect_status "$status" in_time "$metatopics" run "$tmp/deck.xml" --out "$tmp/out" "$@"
}

# ---- no files, or without end
mkfifo "$tmp/pipe"
for path in /dev/zero /dev/null "$tmp/pipe"; do
  run_on "$path" 2
  expect_output "$path"
  run_on "$tmp/nowhere" 2 --set corpus.stop_words="$path"
done
write_jsonl "$tmp/good.jsonl" 100 2
for path in /dev/zero "$tmp/pipe" "$tmp"; do
  run_on "$tmp/good.jsonl" 2 --set corpus.stop_words="$path"
  expect_output "stop_words=\"$path\" is no file"
done
expect_status 2 in_time "$metatopics" run /dev/zero --out "$tmp/out"
expect_output '/dev/zero: a deck has at most'
mkdir -p "$tmp/loop/a"
cp "$tmp/good.jsonl" "$tmp/loop"
ln -s .. "$tmp/loop/a/again"
run_on "$tmp/loop" 2
expect_output 'leads back to a folder above it'
ln -s nowhere "$tmp/dangling"
run_on "$tmp/dangling" 2

# ---- bytes that are no text (tests/fuzz tries others)
LC_ALL=C awk 'BEGIN { srand(1); for (i = 0; i < 60000; i++) printf "%c", 1 + int(255 * rand()) }' >"$tmp/noise"
expect_status 2 in_time "$metatopics" run "$tmp/noise" --out "$tmp/out"
run_on "$tmp/noise" 2
for format in reuters-sgml jsonl csv text; do
  for strict in true false; do
    write_deck "$tmp/deck.xml" "$tmp/noise" "$lda"
    status=0
    in_time "$metatopics" run "$tmp/deck.xml" --out "$tmp/out" --set corpus.format=$format \
      --set corpus.strict=$strict >"$tmp/output" 2>&1 || status=$?
    [ $status = 0 ] || [ $status = 2 ] || { cat "$tmp/output" >&2; fail "noise as $format: status $status"; }
  done
done

# ---- odd names, of the corpus, the deck and the output folder
odd="$tmp/a b'c\"d &<é> \$x;%s"
mkdir "$odd"
cp "$tmp/good.jsonl" "$odd/good é.jsonl"
cat >"$odd/deck.xml" <<DECK
<metatopics><corpus path="good é.jsonl"/>$lda</metatopics>
DECK
expect_status 0 mpi 2 "$metatopics" run "$odd/deck.xml" --out "$odd/out %d"
expect_file "$odd/out %d/summary.json" "$odd/out %d/map.gp"
if command -v gnuplot >/dev/null; then expect_file "$odd/out %d/map.svg" "$odd/out %d/map.png"; fi
expect_status 0 "$metatopics" show "$odd/out %d"
grep -q NaN "$odd/out %d/summary.json" && fail "NaN in the summary"

# ---- csv and text, and every kind of period, to the end
{
  echo 'id,date,title,text'
  sed 's/^{"id": "\([^"]*\)", "date": "\([^"]*\)", "title": "\([^"]*\)", "text": "\([^"]*\)"}$/\1,\2,"\3, ""quoted""",\4/' "$tmp/good.jsonl"
} >"$tmp/good.csv"
run_on "$tmp/good.csv" 0
expect_output '100 documents'
for month in 01 02; do
  mkdir -p "$tmp/texts/1987-$month"
  grep "\"1987-$month-" "$tmp/good.jsonl" | while read -r line; do
    count=$((${count:-0} + 1))
    echo "$line" >"$tmp/texts/1987-$month/$count.txt"
  done
done
run_on "$tmp/texts" 0
expect_output '100 documents'
for period in day week quarter year; do
  run_on "$tmp/good.jsonl" 0 --set corpus.period=$period
  expect_file "$tmp/out/summary.json"
done

# ---- output folders on file systems that are full or cannot be written (needs mount)
mkdir "$tmp/small"
mounted=
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=300k tmpfs "$tmp/small" 2>/dev/null; then mounted=1; fi
if [ -n "$mounted" ]; then
  trap 'umount -l "$tmp/small"; rm -rf "$tmp"' EXIT
  write_jsonl "$tmp/larger.jsonl" 1500 3
  write_deck "$tmp/deck.xml" "$tmp/larger.jsonl" "$lda"
  for size in 60k 140k 300k 600k; do # in texts, in numbers, in the fits
    mount -o remount,size=$size "$tmp/small"
    for ranks in 1 2; do
      expect_status 1 mpi $ranks "$metatopics" run "$tmp/deck.xml" --out "$tmp/small/out"
      expect_output 'No space left on device'
      [ -z "$(find "$tmp/small/out" -name '*.h5.part')" ] || fail "temporary files are left"
      rm -rf "$tmp/small/out"
    done
  done
  # room again: the run goes on
  expect_status 1 "$metatopics" run "$tmp/deck.xml" --out "$tmp/small/out"
  mount -o remount,size=20m "$tmp/small"
  expect_status 0 "$metatopics" run "$tmp/deck.xml" --out "$tmp/small/out"
  [ -z "$(find "$tmp/small/out" -name '*.part')" ] || fail "temporary files are left"
  mount -o remount,ro "$tmp/small"
  expect_status 2 "$metatopics" run "$tmp/deck.xml" --out "$tmp/small/out"
  expect_output 'Read-only file system'
  expect_status 2 mpi 2 "$metatopics" run "$tmp/deck.xml" --out "$tmp/small/other"
  expect_output 'Read-only file system'
  expect_status 0 "$metatopics" show "$tmp/small/out"
else
  echo "not root, or no mount here: full and read-only file systems are not tested"
fi
