# make bench's driver at sizes that say nothing of speed: every stage without peers; then with
# stand-ins for the peers whose times are known, so the ratios are too; its CSV file and errors.
# SECONDS 120
. tests/program/lib.sh
command -v python3 >/dev/null || skip "no python3"
bench() { expect_status "$1" python3 tools/bench/bench --build "$BUILD" --size tiny --runs 1 --out "$tmp/out" "${@:2}"; }
export REUTERS_TARBALL=

bench 0 --no-peers corpus lda knn umap hdbscan growth scaling
expect_output '^corpus: newswire of 400 documents, .sgm to counts' \
  '^  limit: reading the files +1 ' 'split over 20 ranks and on one: the same bits$' \
  '^knn: 300 x 200 topic vectors, 14 neighbours, cosine' '^  limit: sgemm.* GFLOP/s' \
  '^umap: 500 points' 'metatopics .*trustworthiness 0\.9.*graph .*start .*epochs' \
  '^hdbscan: 500 points' 'metatopics .*[0-9]+ clusters; the spanning tree' \
  '^  hdbscan  .*rows$' '^  all  ' '% of the multiply-adds beside it' "^  limit: the core's multiply-adds.*GFLOP/s$" \
  '^scaling: 300 documents: [0-9]+ stored counts, [0-9]+ topic vectors' \
  '^  lda +[0-9.]+ +[0-9.]+ \+ +[0-9.]+ .*s a stored count and topic x' '^  umap +[0-9]+ +[0-9]+$'
expect_file "$tmp/out/table.txt" "$tmp/out/machine.txt"
grep -q '^memory: .* GiB$' "$tmp/out/machine.txt" || fail "machine.txt does not tell the memory"
grep -q '^compiler: .' "$tmp/out/machine.txt" || fail "machine.txt does not tell the compiler"

# a Python that has every peer; each takes 50 s, but one that fails
cat >"$tmp/python" <<'END'
#!/bin/bash
case $1 in
-c) echo "scikit-learn 0" ;;
*/pipeline.py) echo '{"stages": {"imports": 0.25, "lda": 1.5}}' ;;
*)
  case $3 in *'"who": "hdbscan"'*) echo "no such peer" >&2; exit 3 ;; esac
  echo '{}'
  while read -r _; do
    echo '{"seconds": 50.0, "cpu": 75.0, "same": 0.5, "recall": 0.25, "rand": 0.75, "clusters": 9,
      "documents": 7, "terms": 8, "stored": 9, "perplexity": [100.0, 400.0]}' | tr -d '\n'
    echo
  done ;;
esac
END
chmod +x "$tmp/python"
bench 1 --python "$tmp/python" corpus knn hdbscan end
expect_output 'CountVectorizer, text in memory +1 +50 +50 +50 +75 .*7 documents, 9 stored counts' \
  'scikit-learn, brute +1 +50 .*50\.00 % the same neighbours' 'pynndescent +1 +50 .*recall 0\.2500' \
  'fast-hdbscan .*9 clusters, Rand index with ours 0\.7500' \
  '^FAILED hdbscan, 500 points.*: hdbscan ended with status 3: no such peer$' \
  'the peers +1 .*imports 0\.25, lda 1\.50'
expect_file "$tmp/out/table.csv"
# ratios: of a peer's seconds to ours, of a limit's to ours
python3 - "$tmp/out/table.csv" <<'END' || fail "ratios in the CSV file"
import csv, sys
rows = [r for r in csv.DictReader(open(sys.argv[1])) if r["stage"] in ("knn", "corpus", "hdbscan")]
cases = {}
for r in rows:  # the first of ours counts
    if r["who"].startswith("metatopics"):
        cases.setdefault(r["case"], float(r["seconds"]))
assert len(cases) >= 4, cases
for r in rows:
    if r["kind"] != "ours":
        expected = float(r["seconds"]) / cases[r["case"]]
        assert abs(float(r["ratio"]) / expected - 1) < 1e-4, r
peers = [r for r in rows if r["kind"] == "peer"]
assert len(peers) >= 4 and all(float(r["seconds"]) == 50.0 for r in peers), peers
END

# a program of ours that fails is said, and so is a limit that needs its answer
mkdir -p "$tmp/build/bench"
ln -s "$BUILD/metatopics" "$tmp/build/"
ln -s "$BUILD"/bench/bench_* "$tmp/build/bench/"
rm "$tmp/build/bench/bench_umap"
printf '#!/bin/sh\necho "none today" >&2\nexit 1\n' >"$tmp/build/bench/bench_umap"
chmod +x "$tmp/build/bench/bench_umap"
bench 1 --no-peers --build "$tmp/build" umap hdbscan
expect_output '^FAILED umap, 500 points.*exit status 1: none today$' \
  '^FAILED umap, .*: reading a position for each update: ours has failed' '^hdbscan: 500 points'

# without peers none are installed
build=${BUILD#"$PWD"/}
expect_status 0 make --no-print-directory bench BUILD="$build" PYTHON="echo python" \
  BENCH_VENV="$tmp/venv" BENCH_OPTIONS="--no-peers --quick" BENCH=knn
expect_output "^python tools/bench/bench --build $build --python $tmp/venv/bin/python --no-peers --quick knn$"
[ ! -e "$tmp/venv" ] || fail "make bench installed the peers for --no-peers"

bench 2 --no-peers sorting
expect_output 'sorting: the stages are corpus, lda, knn, umap, hdbscan, end, growth, scaling'
bench 2 --no-peers --runs 0
expect_output '--runs 0: want more than 0'
bench 2 --python /nowhere/python knn
expect_output '/nowhere/python: no such program'
