# What the tests on a Slurm cluster share: `. tests/slurm/lib.sh` first. Each has a cluster of its
# own (scripts/slurm/local-cluster) that goes when it ends, and $tmp, which all nodes see.
# shellcheck shell=bash disable=SC2154 # of tests/program/lib.sh
. tests/program/lib.sh
for command in slurmctld slurmd munged unshare; do
  command -v $command >/dev/null || skip "no $command: \"tools/deps slurm\" installs it"
done
[ "$(id -u)" = 0 ] || skip "not root: a cluster of virtual nodes cannot be made"
unshare --uts --mount true 2>/dev/null || skip "no namespaces can be made here"

slurm=$PWD/scripts/slurm
sources=$PWD
export METATOPICS=$metatopics SLURM_LAB=$tmp/cluster

chmod 755 "$tmp" # munge wants its socket to be reached by all

cluster_down() {
  if [ -d "$SLURM_LAB" ]; then "$slurm/local-cluster" down; fi
  rm -rf "$tmp"
}
trap cluster_down EXIT
# ports of its own, as clusters of several tests stand side by side, and below those that Linux
# gives to whoever asks for any (32768 and up)
export BASE_PORT=$((20000 + $$ % 600 * 20))
"$slurm/local-cluster" up >"$tmp/cluster.log" 2>&1 || {
  cat "$tmp/cluster.log" >&2
  fail "no cluster"
}
eval "$("$slurm/local-cluster" env)"
export OMP_NUM_THREADS=1

# field JOB NAME: what Slurm says of a job, or of the first component of one
field() { scontrol show job -o "$1" | head -1 | grep -o " $2=[^ ]*" | head -1 | cut -d= -f2-; }

# wait_until SECONDS COMMAND...: until it succeeds
wait_until() {
  local end=$((SECONDS + $1 * ${SECONDS_FACTOR:-1}))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.1
  done
}

is_over() {
  case $(field "$1" JobState) in
    COMPLETED | FAILED | TIMEOUT | CANCELLED | NODE_FAIL | OUT_OF_MEMORY) return 0 ;;
    *) return 1 ;;
  esac
}
has_state() { [ "$(field "$1" JobState)" = "$2" ]; }
log_of() { field "$1" StdOut; }

# expect_end JOB STATE SECONDS: it ends so, in time
expect_end() {
  wait_until "$3" is_over "$1" || {
    scontrol show job "$1" >&2
    cat "$(log_of "$1")" >&2
    fail "job $1 has not ended after $3 s"
  }
  [ "$(field "$1" JobState)" = "$2" ] || {
    cat "$(log_of "$1")" >&2
    fail "job $1 ended as $(field "$1" JobState), not $2"
  }
}

# expect_log JOB REGEX...: each is in the job's log
expect_log() {
  local log
  log=$(log_of "$1")
  shift
  cp "$log" "$tmp/output"
  expect_output "$@"
}

# figure OUT NAME: a number of run.json
figure() { sed -n "s/^ *\"$2\": \([0-9.e-]*\),*$/\1/p" "$1/run.json" | head -1; }

# expect_figures OUT CORES: run.json knows what the job held, how busy that was, how long it waited,
# as Slurm tells
expect_figures() {
  local waited
  waited=$(($(date -d "$(field "$job" StartTime)" +%s) - $(date -d "$(field "$job" SubmitTime)" +%s)))
  [ "$(figure "$1" queue_seconds)" = $waited ] ||
    fail "$1/run.json: queue_seconds $(figure "$1" queue_seconds), and Slurm says $waited"
  [ "$(figure "$1" cores)" = "$2" ] || fail "$1/run.json: $(figure "$1" cores) cores, not $2"
  awk -v e="$(figure "$1" cpu_efficiency)" -v h="$(figure "$1" node_hours)" -v s="$(figure "$1" seconds)" \
    -v n="$(figure "$1" nodes)" 'BEGIN { exit !(e > 0 && h > 0 && (h - n * s / 3600) ^ 2 < 1e-12) }' ||
    fail "$1/run.json: CPU efficiency $(figure "$1" cpu_efficiency), node hours $(figure "$1" node_hours)"
}

# submit COMMAND...: sets $job
submit() {
  expect_status 0 "$@"
  job=$(sed -n 's/^Submitted batch job \([0-9]*\).*/\1/p' "$tmp/output" | head -1)
  [ -n "$job" ] || fail "no job was submitted: $(cat "$tmp/output")"
}

# kill_node NODE: all that runs on it, at once
kill_node() {
  local p uts
  uts=$(readlink "/proc/$(cat "$SLURM_LAB/run/$1.pid")/ns/uts")
  for p in /proc/[0-9]*; do
    if [ "$(readlink "$p/ns/uts")" = "$uts" ]; then kill -9 "${p#/proc/}" 2>/dev/null || true; fi
  done
}

# Where the time of a test goes: TRACE=1 bash tests/slurm/NAME.sh
PS4='+ $SECONDS s: '
[ -z "${TRACE:-}" ] || set -x

cd "$tmp" # where jobs put their logs
