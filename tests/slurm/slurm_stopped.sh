#!/bin/bash
# A job that is stopped saves, goes back to the queue, on from there, and ends with the same bits:
# at its time limit, by scancel --signal=TERM, by scontrol requeue. No finished fit is made twice.
# SECONDS 400
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
  '<lda n_components="8" seeds="0-19" max_iter="60" min_docs="10"/><umap n_epochs="50"/>'
expect_status 0 "$metatopics" run "$tmp/deck.xml" --out "$tmp/one"

# ---- the time limit. Slurm looks every 30 s, and a signal is due at the first look after the first
# 10 s of this job; so that the fits last until then, its rank is stopped: Slurm's signal comes with
# SIGCONT. It sleeps while the rest is tested.
submit sbatch -n1 --time=1 --signal=USR1@20 "$slurm/full.sh" "$tmp/deck.xml" --out "$tmp/limit"
limited=$job
wait_until 60 has_fits "$tmp/limit" 5 || fail "no fits"
pkill -STOP -f "^$metatopics run $tmp/deck.xml --out $tmp/limit"
fits "$tmp/limit" >"$tmp/limited"

# ---- a signal to the ranks
submit sbatch -N2 -n2 "$slurm/full.sh" "$tmp/deck.xml" --out "$tmp/term"
wait_until 60 has_fits "$tmp/term" 5 || fail "no fits"
fits "$tmp/term" >"$tmp/kept"
scancel --signal=TERM "$job"
expect_requeued 30
expect_log "$job" 'stopped by signal 15' 'stopped after a checkpoint: queued again'
goes_on "$tmp/term" "$tmp/kept"

# ---- requeued by hand, or to make place for another job
submit sbatch -N2 -n2 "$slurm/full.sh" "$tmp/deck.xml" --out "$tmp/requeue"
wait_until 60 has_fits "$tmp/requeue" 5 || fail "no fits"
fits "$tmp/requeue" >"$tmp/kept"
scontrol requeue "$job"
expect_requeued 30
goes_on "$tmp/requeue" "$tmp/kept"

# ---- a job that may not be requeued submits another
submit sbatch --no-requeue -n1 "$slurm/full.sh" "$tmp/deck.xml" --out "$tmp/again"
wait_until 60 has_fits "$tmp/again" 5 || fail "no fits"
scancel --signal=TERM "$job"
expect_end "$job" COMPLETED 30
next=$(sed -n 's/.*job \([0-9]*\) goes on.*/\1/p' "$(log_of "$job")")
[ -n "$next" ] || { cat "$(log_of "$job")" >&2; fail "no other job goes on"; }
expect_end "$next" COMPLETED 90
expect_same "$tmp/one" "$tmp/again"

# ---- the time limit, again
job=$limited
expect_requeued 120
expect_log "$job" 'stopped by signal 10' 'stopped after a checkpoint: queued again'
goes_on "$tmp/limit" "$tmp/limited"

# ---- a job that finishes nothing in its time is not queued for ever
submit sbatch -n1 --time=1 --signal=USR1@50 "$slurm/full.sh" "$tmp/deck.xml" --out "$tmp/none" \
  --set lda.max_iter=1000000
expect_end "$job" FAILED 90
expect_log "$job" 'no file was finished in this job.s time'
