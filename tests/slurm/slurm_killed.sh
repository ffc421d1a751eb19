#!/bin/bash
# Killed: one rank in each stage, a node, the whole job, at any moment. The job ends within a
# minute, every file under its final name is whole, and the next run ends with the same bits.
# SECONDS 600
# Environment  KILLS: random moments (30); RANDOM_SEED: does a series again
export KILL_WAIT=1 # ranks that wait for a dead one do not answer a SIGTERM
. tests/slurm/lib.sh
command -v gdb >/dev/null || skip "no gdb: \"tools/deps slurm\" installs it"

write_jsonl "$tmp/corpus.jsonl" 300 2
write_deck "$tmp/deck.xml" "$tmp/corpus.jsonl" \
  '<lda n_components="5" seeds="0-3" max_iter="10" min_docs="10"/><umap n_epochs="20"/>'
expect_status 0 "$metatopics" run "$tmp/deck.xml" --out "$tmp/one"
out=$tmp/out
cd "$tmp"

# every file under its final name holds what the undisturbed run has there
expect_whole() {
  local file name
  mkdir -p "$out"
  find "$out" -type f ! -name '*.part' ! -name '.*' >"$tmp/there"
  while read -r file; do
    name=${file#"$out"/}
    case $name in
      *.h5) "$BUILD/tests/h5same" "$tmp/one/$name" "$file" || fail "$1: $name is damaged" ;;
      run.json | summary.json | *.png | *.svg | *.gp) [ -s "$file" ] || fail "$1: $name is empty" ;;
      *.csv) cmp "$tmp/one/$name" "$file" || fail "$1: $name is damaged" ;;
    esac
  done <"$tmp/there"
}

# the next run, on the ranks of one node, keeps what is there and ends as the undisturbed one
goes_on() {
  expect_status 0 srun -w cpu1 -n2 "$metatopics" run "$tmp/deck.xml" --out "$out"
  expect_same "$tmp/one" "$out"
  [ -z "$(find "$out" -name '*.part')" ] || fail "$1: temporary files are left"
  rm -rf "$out"
}

ranks_of() { pgrep -f "^$metatopics run $tmp/deck.xml --out $out" || true; }
no_ranks() { [ -z "$(ranks_of)" ]; }
some_ranks() { [ -n "$(ranks_of)" ]; }

# killed HOW: the job has failed within a minute, and no rank of it is left
killed() {
  expect_end "$job" "${2:-FAILED}" 60
  wait_until 10 no_ranks || fail "$1: ranks are left"
  expect_whole "$1"
}

# ---- one rank, in each stage, at its worst moment: before a finished file gets its name
declare -A work=([corpus]=corpus_work [lda]=lda/ensemble.c:work [matrix]=lda/matrix.c:work
  [knn]=knn/stage.c:work [umap]=umap_work [hdbscan]=hdbscan/stage.c:work [map]=report/stage.c:work)
for stage in ${STAGES:-corpus lda matrix knn umap hdbscan map}; do
  write=mt_store_commit
  [ $stage != map ] || write=mt_rename_synced
  submit sbatch -N2 -n2 "$slurm/full.sh" "$tmp/deck.xml" --out "$out" --wait-for-debugger
  wait_until 30 grep -q 'rank 1: node' "metatopics-$job.log" || fail "$stage: no ranks"
  process=$(sed -n 's/.*rank 0: node .*, process //p' "metatopics-$job.log")
  gdb -p "$process" -batch -ex "tbreak ${work[$stage]}" -ex continue \
    -ex "tbreak $write" -ex continue -ex kill >"$tmp/gdb" 2>&1 || true # it is asked below
  grep -q 'hit Temporary breakpoint 2' "$tmp/gdb" || {
    cat "$tmp/gdb" "metatopics-$job.log" >&2
    fail "$stage: the rank was not killed there"
  }
  killed "$stage"
  goes_on "$stage"
done

node_is_back() { [ "$(sinfo -hNr -n "$1" -t idle -o %N | sort -u)" = "$1" ]; }
start_again() { # NODE
  "$slurm/local-cluster" start-node "$SLURM_LAB" "$1"
  wait_until 30 node_is_back "$1" || fail "$1 does not come back"
}

# ---- slurmd alone, half way: for Slurm the node is lost, but its ranks live
expect_status 0 srun -w cpu1 -n2 "$metatopics" run "$tmp/deck.xml" --out "$out" --until matrix
submit sbatch --no-requeue -N2 -n2 -w cpu2,cpu3 "$slurm/full.sh" "$tmp/deck.xml" --out "$out" \
  --wait-for-debugger
wait_until 30 grep -q 'rank 1: node' "metatopics-$job.log" || fail "slurmd: no ranks"
kill -9 "$(cat "$SLURM_LAB/run/cpu3.pid")"
killed slurmd NODE_FAIL
goes_on slurmd
start_again cpu3

# ---- the whole job, a rank, a node, at any moment
RANDOM=${RANDOM_SEED:-$$}
submit sbatch --no-requeue -N2 -n3 -w cpu2,cpu3 "$slurm/full.sh" "$tmp/deck.xml" --out "$out"
wait_until 30 some_ranks || fail "the whole run does not start"
start=$(date +%s%3N)
wait_until 60 no_ranks || fail "the whole run does not end"
whole=$(($(date +%s%3N) - start)) # of the ranks alone: that is when they can be killed
expect_end "$job" COMPLETED 60
rm -rf "$out"
kills=${KILLS:-30} in_time=0
echo "random seed ${RANDOM_SEED:-$$}; a whole run takes $whole ms"
for i in $(seq "$kills"); do
  submit sbatch --no-requeue -N2 -n3 -w cpu2,cpu3 "$slurm/full.sh" "$tmp/deck.xml" --out "$out"
  wait_until 30 some_ranks || {
    scontrol show job "$job" >&2
    sinfo -N -o '%N %T %E' >&2
    cat "metatopics-$job.log" >&2
    fail "$i: the job does not start"
  }
  moment=$((RANDOM % (whole * 3 / 4))) # of the run, but its start; nothing is waited for
  case $i in 3 | 20) moment=$((moment / 3)) ;; esac
  sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
  case $i in
    3 | 20) how=node; kill_node cpu3 ;;
    *5) how=job; scancel --signal=KILL --full "$job" || true ;; # it may be over
    *) how=rank; ranks_of | shuf -n1 | xargs -r kill -9 ;;
  esac
  if ! wait_until 60 is_over "$job"; then
    cat "metatopics-$job.log" >&2
    fail "$i, $how: job $job does not end"
  fi
  wait_until 10 no_ranks || fail "$i, $how: ranks are left"
  expect_whole "$i, $how"
  echo "$i: $how after $moment ms: $(field "$job" JobState), $(wc -l <"$tmp/there") files"
  has_state "$job" COMPLETED || in_time=$((in_time + 1))
  goes_on "$i, $how"
  if [ $how = node ]; then start_again cpu3; fi
done
echo "$in_time of $kills were killed before they were done"
[ $in_time -ge $((kills / 2)) ] || fail "most runs were done before they were killed"
