# newswire: any document without those before it, every period, both formats, bad options.
. tests/program/lib.sh
make_news() { "$BUILD/newswire" --out "$tmp/$1" "${@:2}" >/dev/null; }

make_news a --documents 3000 --periods 7
[ "$(ls "$tmp/a")" = "news-000.sgm
news-001.sgm
news-002.sgm
truth.json" ] || fail "files: $(ls "$tmp/a")"
[ "$(cat "$tmp"/a/*.sgm | grep -c '^</REUTERS>')" = 3000 ] || fail "not 3000 documents"
[ "$(head -qn 1 "$tmp"/a/*.sgm | sort -u)" = '<!DOCTYPE lewis SYSTEM "lewis.dtd">' ] || fail "no DOCTYPE line"
for what in '&#5;&#30;' '&lt;' '&amp;' 'TYPE="BRIEF"' 'TYPE="UNPROC"' ' 605:' '&#5;F</DATE>' 'AUG-1987'; do
  grep -q -- "$what" "$tmp"/a/*.sgm || fail "no $what"
done
make_news b --documents 3000 --periods 7
diff -r "$tmp/a" "$tmp/b" || fail "the same seed, another collection"
make_news c --documents 3000 --periods 7 --seed 2
cmp -s "$tmp/a/news-000.sgm" "$tmp/c/news-000.sgm" && fail "another seed, the same collection"

make_news j --documents 300 --periods 14 --start 1999-11 --format jsonl
[ "$(wc -l <"$tmp/j/news.jsonl")" = 300 ] || fail "not 300 lines"
[ "$(sed 's/.*"date": "\(.......\).*/\1/' "$tmp/j/news.jsonl" | uniq | wc -l)" = 14 ] || fail "not 14 months in order"
grep -q '"date": "2000-02-29"' "$tmp/j/news.jsonl" || grep -q '"2000-12' "$tmp/j/news.jsonl" || fail "no year 2000"

expect_status 2 "$BUILD/newswire" --out "$tmp/x" --topics 41
expect_output 'integer from 0 to 40'
expect_status 2 "$BUILD/newswire" --out "$tmp/x" --topics 30 --local-topics 11
expect_output 'together at most 40'
expect_status 2 "$BUILD/newswire" --out "$tmp/x" --start 1987-13
expect_output 'year-month'
expect_status 2 "$BUILD/newswire" --out "$tmp/x" --documents 3 --periods 4
expect_output 'more periods than documents'
expect_status 1 "$BUILD/newswire" --out /proc/none
expect_output 'cannot make /proc/none'
