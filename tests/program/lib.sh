# What whole-program tests share: `. tests/program/lib.sh` first (tests/run starts them in
# the root of the sources). BUILD is the build's folder, $metatopics the program, $tmp an
# empty folder that goes when the test ends. A test says why it fails: fail, expect_*.
set -eu
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
metatopics=$BUILD/metatopics
tmp=$(mktemp -d "${TMPDIR:-/tmp}/metatopics-test.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'echo "$0: line $LINENO: \"$BASH_COMMAND\" failed" >&2' ERR
set -E

fail() {
  echo "$0: $*" >&2
  exit 1
}

skip() {
  echo "skipped: $*"
  exit 77
}

# mpi RANKS COMMAND...: under mpirun as tests need it; one rank: directly
mpi() {
  local ranks=$1
  shift
  if [ "$ranks" = 1 ]; then "$@"; else tools/mpirun -n "$ranks" "$@"; fi
}

# in_time COMMAND...: is killed when it takes longer than a minute (sanitizers: more)
in_time() { timeout --kill-after=5 $((60 * ${SECONDS_FACTOR:-1})) "$@"; }

# expect_status STATUS COMMAND...: its output (both streams) goes to $tmp/output
expect_status() {
  local want=$1 got=0
  shift
  "$@" >"$tmp/output" 2>&1 </dev/null || got=$?
  if [ "$got" != "$want" ]; then
    cat "$tmp/output" >&2
    fail "exit status $got, not $want: $*"
  fi
}

# expect_output REGEX...: each is in the last command's output (grep -E)
expect_output() {
  local pattern
  for pattern in "$@"; do
    grep -Eq -- "$pattern" "$tmp/output" || {
      cat "$tmp/output" >&2
      fail "the output has no \"$pattern\""
    }
  done
}

# expect_file FILE...: each is there and not empty
expect_file() {
  local file
  for file in "$@"; do [ -s "$file" ] || fail "no $file, or it is empty"; done
}

# write_jsonl FILE DOCUMENTS PERIODS [SEED]: a small dated corpus as JSON Lines, months from
# 1987-01 on: five subjects of thirty words each, and words that all share
write_jsonl() {
  awk -v n="$2" -v periods="$3" -v seed="${4:-1}" 'BEGIN {
    srand(seed)
    for (i = 0; i < n; i++) {
      subject = int(rand() * 5)
      text = ""
      for (w = 0; w < 60; w++)
        if (rand() < 0.7) text = text sprintf("s%dw%d ", subject, int(30 * rand() ^ 2))
        else text = text sprintf("shared%d ", int(80 * rand() ^ 2))
      printf "{\"id\": \"%d\", \"date\": \"1987-%02d-15\", \"title\": \"t%d\", \"text\": \"%s\"}\n",
        i, 1 + i % periods, i, text
    }
  }' >"$1"
}

# write_deck FILE CORPUS [ELEMENTS]: a deck for a small corpus, quick to run
write_deck() {
  local usual='<lda n_components="5" max_iter="10" min_docs="10"/><umap n_epochs="50"/>'
  cat >"$1" <<DECK
<metatopics>
  <corpus path="$2"/>
  ${3:-$usual}
</metatopics>
DECK
}

# expect_same A B: the numbers of two output folders, bit for bit, and the tables if A has them
expect_same() {
  local file
  for file in topics knn umap hdbscan; do
    "$BUILD/tests/h5same" "$1/$file.h5" "$2/$file.h5" || fail "$1 and $2: other $file.h5"
  done
  for file in meta_topics.csv topics.csv; do
    [ ! -e "$1/$file" ] || cmp "$1/$file" "$2/$file" || fail "$1 and $2: other $file"
  done
}
