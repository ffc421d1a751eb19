#!/bin/bash
# A job that is stopped saves, goes back to the queue, on from there, and ends with the same bits:
# at its time limit, by scancel --signal=TERM, by scontrol requeue; one that loses a node, without a
# word. No finished fit is made twice.
# SECONDS 400
export KILL_WAIT=1 # ranks that wait for those of a lost node do not answer a SIGTERM
. tests/slurm/lib.sh

write_jsonl "$tmp/corpus.jsonl" 1500 3
fits() { find "$1/lda" -name 'seed-*.h5' -printf '%p %T@\n' 2>/dev/null | sort; }
has_fits() { [ "$(fits "$1" | wc -l)" -ge "$2" ]; }

# expect_requeued SECONDS: the job is out of its first run
is_requeued() { [ "$(field "$job" Restarts)" = 1 ] && ! has_state "$job" COMPLETING; }
expect_requeued() {
  wait_until "$1" is_requeued || { cat "$(log_of "$job")" >&2; fail "job $job was not requeued"; }
  if ! has_state "$job" COMPLETED; then scontrol update jobid="$job" TimeLimit=30; fi
}

# goes_on OUT KEPT: it ends, with the same bits, and has not made again what the file KEPT lists
goes_on() {
  local kept there
  kept=$(wc -l <"$2")
  expect_end "$job" COMPLETED 120
  expect_log "$job" 'start 1' 'start 2'
  there=$(sed -n 's/.*lda: \([0-9]*\) of 60 fits are there already.*/\1/p' "$tmp/output")
  if ! [ "$kept" -gt 0 ] || ! [ "${there:-0}" -ge "$kept" ] || ! [ "$there" -lt 60 ]; then
    cat "$tmp/output" >&2
    fail "$kept fits when it was stopped, ${there:-none} when it went on, of 60"
  fi
  expect_same "$tmp/one" "$1"
  [ -z "$(comm -23 "$2" <(fits "$1"))" ] || fail "finished fits were made again"
  [ -z "$(find "$1" -name '*.part')" ] || fail "temporary files are left in $1"
}

write_deck "$tmp/deck.xml" "$tmp/corpus.jsonl" \
  '<lda n_components="8" seeds="0-19" max_iter="150" min_docs="10"/><umap n_epochs="50"/>'
expect_status 0 "$metatopics" run "$tmp/deck.xml" --out "$tmp/one"

# What each of these waits for (Slurm's looks, a node's silence, a credential) takes most of its
# time: they wait side by side.

# begin NAME SBATCH WORDS...: a job with some fits, which $tmp/NAME.kept then lists; its number goes
# to jobs[NAME]
declare -A jobs
begin() {
  local name=$1
  shift
  submit sbatch "$@" "$slurm/full.sh" "$tmp/deck.xml" --out "$tmp/$name"
  jobs[$name]=$job
  wait_until 60 has_fits "$tmp/$name" 5 || {
    scontrol show job "$job" >&2
    sinfo -N -l >&2
    cat "$(log_of "$job")" >&2
    fail "$name: no fits"
  }
  fits "$tmp/$name" >"$tmp/$name.kept"
}

# ends_well NAME REGEX...: queued again, with these lines in its log; then done
ends_well() {
  local name=$1
  job=${jobs[$name]}
  shift
  expect_requeued 120
  [ $# = 0 ] || expect_log "$job" "$@"
  goes_on "$tmp/$name" "$tmp/$name.kept"
}

# the time limit: Slurm looks every 30 s, and a signal is due at the first look after the first
# 10 s of this job; so that the fits last until then, its rank is stopped: Slurm's signal comes with
# SIGCONT
begin limit -n1 --time=1 --signal=USR1@20
pkill -STOP -f "^$metatopics run $tmp/deck.xml --out $tmp/limit"
fits "$tmp/limit" >"$tmp/limit.kept"

# a signal to the ranks
begin term -N2 -n2 -w cpu1,cpu2
scancel --signal=TERM "$job"

# requeued by hand, or to make place for another job
begin requeue -N2 -n2 -w cpu1,cpu2
scontrol requeue "$job"

# a node is lost: Slurm notices that after a while, and queues the job again, for other nodes
begin lost -N2 -n2 -x cpu2
kill_node cpu3

# a job that finishes nothing in its time is not queued for ever
submit sbatch -n1 -w cpu1 --time=1 --signal=USR1@50 "$slurm/full.sh" "$tmp/deck.xml" --out "$tmp/none" \
  --set lda.max_iter=1000000
jobs[none]=$job

ends_well term 'stopped by signal 15' 'stopped after a checkpoint: queued again'
ends_well requeue
expect_figures "$tmp/requeue" 2
[ "$(figure "$tmp/requeue" restarts)" = 1 ] || fail "run.json does not know that it was requeued"
expect_log "$job" 'with 1 earlier start: [0-9.]+ node hours, [0-9]+ s in the queue'

# a job that may not be requeued submits another
begin again --no-requeue -n1 -w cpu1
scancel --signal=TERM "$job"
expect_end "$job" COMPLETED 30
next=$(sed -n 's/.*job \([0-9]*\) goes on.*/\1/p' "$(log_of "$job")")
[ -n "$next" ] || { cat "$(log_of "$job")" >&2; fail "no other job goes on"; }
expect_end "$next" COMPLETED 90
expect_same "$tmp/one" "$tmp/again"

ends_well limit 'stopped by signal 10' 'stopped after a checkpoint: queued again'

job=${jobs[lost]}
expect_requeued 60
scontrol update jobid="$job" ExcNodeList=
ends_well lost 'NODE FAILURE'

expect_end "${jobs[none]}" FAILED 90
expect_log "${jobs[none]}" 'no file was finished in this job.s time'
