# SECONDS 120
# corpus: the stage through the program: what must be refused (status 2, and no corpus.h5),
# one collection in three forms, an input that was touched, and the figures in run.json.
. tests/program/lib.sh

# refuse REGEX CORPUS [OPTION...]: on three ranks
refuse() {
  local words=$1 corpus=$2
  shift 2
  write_deck "$tmp/deck.xml" "$corpus" " "
  expect_status 2 mpi 3 "$metatopics" run "$tmp/deck.xml" --until corpus --out "$tmp/refused" "$@"
  expect_output "$words"
  [ ! -e "$tmp/refused/corpus.h5" ] || fail "a corpus.h5 after: $words"
}

"$BUILD/newswire" --out "$tmp/sgml" --documents 1500 --periods 3 >/dev/null
"$BUILD/newswire" --out "$tmp/jsonl" --documents 1500 --periods 3 --format jsonl >/dev/null
tar -czf "$tmp/sgml.tar.gz" -C "$tmp" sgml
size=$(stat -c %s "$tmp/sgml.tar.gz")
mkdir "$tmp/empty" "$tmp/cut"

refuse 'nowhere": No such file or directory; give the folder' nowhere
refuse 'is empty: corpus.path names' empty
for kept in $((size / 2)) $((size - 4)); do
  head -c "$kept" "$tmp/sgml.tar.gz" >"$tmp/cut.tar.gz"
  refuse 'cut.tar.gz: .*the file is damaged or cut' cut.tar.gz
done
head -c 200000 "$tmp/sgml/news-000.sgm" >"$tmp/cut/a.sgm"
refuse 'a.sgm:[0-9]+: the document <REUTERS .*NEWID="[0-9]+"> has no </REUTERS>' cut
refuse 'no term is left of [0-9]+: stop words took 0, min_df [0-9]+, max_df' sgml --set corpus.min_df=5000
expect_status 0 "$metatopics" run "$tmp/deck.xml" --until corpus --out "$tmp/lenient" \
  --set corpus.path="$tmp/cut" --set corpus.strict=false
expect_output 'skipped, damaged: 1'

# one collection, three forms, for any number of ranks
for form in sgml sgml.tar.gz jsonl; do
  write_deck "$tmp/deck.xml" "$form" " "
  for ranks in 1 2; do
    expect_status 0 mpi $ranks "$metatopics" run "$tmp/deck.xml" --until corpus --out "$tmp/$form.$ranks"
    "$BUILD/tests/h5same" "$tmp/sgml.1/corpus.h5" "$tmp/$form.$ranks/corpus.h5" || fail "$form on $ranks ranks: another corpus"
  done
done
grep -q '"sum_of_counts": [0-9]' "$tmp/sgml.1/run.json" || fail "no figures in run.json"

# as it is: kept; touched: read again, with the same result
write_deck "$tmp/deck.xml" jsonl " "
expect_status 0 "$metatopics" run "$tmp/deck.xml" --until corpus --out "$tmp/jsonl.1"
expect_output 'corpus.h5 is there, made with the same input and parameters: kept'
touch -d '2001-02-03' "$tmp"/jsonl/*.jsonl
expect_status 0 "$metatopics" run "$tmp/deck.xml" --until corpus --out "$tmp/jsonl.1"
expect_output 'distinct terms'
