#!/bin/bash
# Corpora that are broken, odd or empty: each ends as the manual says, none is lost in silence.
# SECONDS 300
. tests/program/lib.sh
out=$tmp/out

# run_on PATH STATUS [OPTION...]: a run with few epochs on that corpus
run_on() {
  local path=$1 status=$2
  shift 2
  write_deck "$tmp/deck.xml" "$path"
  rm -rf "$out"
  expect_status "$status" mpi 2 "$metatopics" run "$tmp/deck.xml" --out "$out" "$@"
}

# sgml DATE BODY: one document as the collection has them
sgml() {
  printf '<REUTERS TOPICS="YES" NEWID="%s">\n<DATE>%s</DATE>\n<TEXT>&#2;\n<TITLE>a title</TITLE>' "$RANDOM" "$1"
  printf '<DATELINE> LONDON, </DATELINE><BODY>%s\n Reuter\n&#3;</BODY></TEXT>\n</REUTERS>\n' "$2"
}
words() { awk -v seed="$1" 'BEGIN { srand(seed); for (i = 0; i < 40; i++) printf "w%d ", int(100 * rand()) }'; }

# ---- not there, empty, cut
run_on "$tmp/nowhere" 2
expect_output "nowhere"
mkdir "$tmp/empty"
run_on "$tmp/empty" 2
expect_output "empty"
write_jsonl "$tmp/good.jsonl" 200 2
tar -C "$tmp" -czf "$tmp/good.tar.gz" good.jsonl
head -c 1000 "$tmp/good.tar.gz" >"$tmp/cut.tar.gz"
run_on "$tmp/cut.tar.gz" 2
expect_output "cut.tar.gz"

# ---- SGML: what the collection's own files hold, and worse
mkdir "$tmp/sgml"
{
  printf '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n'
  for i in $(seq 60); do sgml "26-FEB-1987 15:01:01.79" "$(words "$i") &#5;&#30; pens\xfcr &amp;lt;tag> A&amp;B"; done
  sgml "26-feb-1987 15:01:01.79" "small month $(words 1)"
  sgml "26-FEB-1987 605:01:01.79" "hour 605 $(words 2)"
  sgml "30-FEB-1987 15:01:01.79" "no such day $(words 3)"
  sgml "" "empty date $(words 4)"
  printf '<REUTERS NEWID="x1"><TEXT><TITLE>no date</TITLE><BODY>%s</BODY></TEXT></REUTERS>\n' "$(words 5)"
  printf '<REUTERS NEWID="x2"><DATE>26-FEB-1987</DATE><TEXT TYPE="BRIEF"><TITLE>brief</TITLE></TEXT></REUTERS>\n'
  printf '<REUTERS NEWID="x3"><DATE>26-FEB-1987</DATE><TEXT><BODY></BODY></TEXT></REUTERS>\n'
} >"$tmp/sgml/reut2-000.sgm"
run_on "$tmp/sgml" 0
expect_output "62 documents"
head -c -200 "$tmp/sgml/reut2-000.sgm" >"$tmp/sgml/cut"
mkdir "$tmp/cut" && head -c 20000 "$tmp/sgml/reut2-000.sgm" >"$tmp/cut/reut2-000.sgm"
rm "$tmp/sgml/cut"
run_on "$tmp/cut" 2
expect_output "reut2-000.sgm"
run_on "$tmp/cut" 0 --set corpus.strict=false
expect_output "1 .*(damaged|cut)|(damaged|cut).* 1"

# ---- JSON Lines
{ head -n 100 "$tmp/good.jsonl"; printf '{"id": "bad", "date": "1987-01-01", "text": "in\xffvalid"}\n'; tail -n 100 "$tmp/good.jsonl"; } >"$tmp/utf8.jsonl"
run_on "$tmp/utf8.jsonl" 2
expect_output "utf8.jsonl:101"
run_on "$tmp/utf8.jsonl" 0 --set corpus.strict=false
{ cat "$tmp/good.jsonl"; printf '{"id": "bad", "date": "1987-01-01", "text": \n'; } >"$tmp/broken.jsonl"
run_on "$tmp/broken.jsonl" 2
expect_output "broken.jsonl:201"

# ---- large documents, long and odd terms, all the way to the tables and the map
long=$(head -c 10000 /dev/zero | tr '\0' 'x')
awk -v long="$long" 'BEGIN {
  srand(5)
  for (i = 0; i < 200; i++) {
    text = ""
    for (w = 0; w < 30; w++) text = text sprintf("w%d ", int(12 * rand()))
    text = text long " _under_score_ \\\"quoted\\\" a,b caf\303\251 \346\227\245\346\234\254 x_{2}^3"
    printf "{\"id\": \"i\\\"%d,\", \"date\": \"1987-0%d-01\", \"title\": \"\\\"t\\\", %d\", \"text\": \"%s", i, 1 + i % 2, i, text
    if (i == 7) for (w = 0; w < 1000000; w++) printf " big%d more", w % 50
    print "\"}"
  }
}' >"$tmp/odd.jsonl"
[ "$(wc -c <"$tmp/odd.jsonl")" -gt 10000000 ] || fail "the large document is not large"
run_on "$tmp/odd.jsonl" 0 --set corpus.max_df=1.0
expect_file "$out/topics.csv" "$out/meta_topics.csv" "$out/summary.json" "$out/map.gp"
for term in _under_score_ "$long" quoted café 日本 x_; do
  grep -qF "$term" "$out/topics.csv" || fail "the term ${term:0:20} is not in the table"
done
if command -v gnuplot >/dev/null; then expect_file "$out/map.svg" "$out/map.png"; fi

# ---- nothing left to count
awk 'BEGIN { for (i = 0; i < 100; i++) printf "{\"id\": \"%d\", \"date\": \"1987-01-01\", \"text\": \"the of and to in\"}\n", i }' >"$tmp/stop.jsonl"
run_on "$tmp/stop.jsonl" 2 --set corpus.stop_words=english
expect_output "stop words took 5"
run_on "$tmp/good.jsonl" 2 --set corpus.min_df=10000
expect_output "min_df"

# ---- periods around min_docs
awk 'BEGIN {
  srand(3)
  for (p = 1; p <= 3; p++) for (i = 0; i < 48 + p; i++) {
    text = ""
    for (w = 0; w < 30; w++) text = text sprintf("w%d ", int(40 * rand()))
    printf "{\"id\": \"%d-%d\", \"date\": \"1987-0%d-01\", \"text\": \"%s\"}\n", p, i, p, text
  }
  for (i = 0; i < 20; i++) printf "{\"id\": \"e%d\", \"date\": \"1987-04-01\", \"text\": \"\"}\n", i
}' >"$tmp/periods.jsonl"
run_on "$tmp/periods.jsonl" 0 --set lda.min_docs=50
expect_output "1987-01.*49"
fits=$(cd "$out/lda" && ls)
[ "$fits" = "1987-02
1987-03" ] || fail "fits of: $fits"

# ---- documents that are all the same
awk 'BEGIN { for (i = 0; i < 100; i++) printf "{\"id\": \"%d\", \"date\": \"1987-01-01\", \"text\": \"one two three four five\"}\n", i }' >"$tmp/same.jsonl"
run_on "$tmp/same.jsonl" 0 --set corpus.max_df=1.0
run_on "$tmp/same.jsonl" 2
expect_output "max_df"
