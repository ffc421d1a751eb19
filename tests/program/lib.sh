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
