# What the README shows works: its example in JSON Lines, check, run, --set, show, help.
. tests/program/lib.sh
"$BUILD/newswire" --documents 600 --periods 3 --topics 4 --local-topics 3 --format jsonl --out "$tmp"
mv "$tmp/news.jsonl" "$tmp/all.jsonl"
sed -n '/^    {"id": "a1"/s/^    //p' README.md >"$tmp/news.jsonl"
[ -s "$tmp/news.jsonl" ] || fail "README.md has no example in JSON Lines"
cat "$tmp/all.jsonl" >>"$tmp/news.jsonl"
sed -n '/^    <metatopics>/,/^    <.metatopics>/s/^    //p' README.md >"$tmp/my.xml"
expect_status 0 "$metatopics" check "$tmp/my.xml"
expect_output 'lda.n_components +20'
expect_status 0 mpi 2 "$metatopics" run "$tmp/my.xml" --out "$tmp/out"
expect_output 'no fit|min_docs' '2019-03'
expect_status 0 "$metatopics" run "$tmp/my.xml" --out "$tmp/out" --set hdbscan.min_cluster_size=5
expect_output 'umap.*kept'
expect_status 0 "$metatopics" show "$tmp/out"
expect_output 'meta-topics'
expect_status 0 "$metatopics" help lda
for link in $(grep -o '](\(doc/\|LICENSE\)[^)]*)' README.md | tr -d '](),'); do
  expect_file "${link%%#*}"
  case $link in
  *#*) # to a heading, in small letters, with hyphens for spaces
    sed -n 's/^#* //p' "${link%%#*}" | tr 'A-Z ' 'a-z-' | grep -qx "${link#*#}" || fail "README.md links to $link" ;;
  esac
done
