#!/bin/bash
# Heterogeneous jobs: one world over both components, and two jobs where that cannot be.
# SECONDS 300
. tests/slurm/lib.sh

write_jsonl "$tmp/corpus.jsonl" 300 2
write_deck "$tmp/deck.xml" "$tmp/corpus.jsonl"
expect_status 0 "$metatopics" run "$tmp/deck.xml" --out "$tmp/one"

# ---- one srun over both
NODES=2 TASKS_PER_NODE=1 CPUS_PER_TASK=2 GPU_TASKS_PER_NODE=2 GPU_CPUS_PER_TASK=1 \
  submit "$slurm/hetjob.sh" "$tmp/deck.xml" --out "$tmp/het"
grep -q 'takes one heterogeneous job' "$tmp/output" || fail "it does not say which it took"
expect_end "$job" COMPLETED 90
expect_log "$job" 'takes one MPI_COMM_WORLD over both components' '4 ranks on 3 nodes' \
  'cpu1: rank 0 of 2 threads' 'cpu2: rank 1 of 2 threads' 'gpu1: ranks 2-3 of 1 thread' \
  'knn, umap and hdbscan: ranks 2-3'
expect_same "$tmp/one" "$tmp/het"
expect_figures "$tmp/het" 6

# ---- the options of plain sbatch
submit sbatch -p cpu -n1 : -p gpu -n2 --gpus-per-node=2 "$slurm/hetjob.sh" "$tmp/deck.xml" \
  --out "$tmp/plain"
expect_end "$job" COMPLETED 90
expect_log "$job" 'knn, umap and hdbscan: ranks 1-2'
expect_same "$tmp/one" "$tmp/plain"

# ---- two jobs
export NODES=2 TASKS_PER_NODE=1 CPUS_PER_TASK=1 GPU_TASKS_PER_NODE=2 GPU_CPUS_PER_TASK=1
two_jobs() { # OUT: those that the output tells of
  local first second
  first=$(sed -n 's/^Submitted batch job \([0-9]*\) (corpus.*/\1/p' "$tmp/output")
  second=$(sed -n 's/^Submitted batch job \([0-9]*\) (knn.*/\1/p' "$tmp/output")
  [ -n "$first$second" ] || fail "no two jobs: $(cat "$tmp/output")"
  wait_until 90 is_over "$second" || fail "job $second does not end"
  expect_end "$first" COMPLETED 1
  expect_end "$second" COMPLETED 1
  [ "$(field "$first" Partition) $(field "$second" Partition)" = "cpu gpu" ] || fail "other partitions"
  expect_same "$tmp/one" "$1"
}
expect_status 0 "$slurm/twostep.sh" "$tmp/deck.xml" --out "$tmp/two"
two_jobs "$tmp/two"

# a first job that fails takes the second with it
expect_status 0 "$slurm/twostep.sh" "$tmp/deck.xml" --out /dev/null/x
second=$(sed -n 's/^Submitted batch job \([0-9]*\) (knn.*/\1/p' "$tmp/output")
expect_end "$second" CANCELLED 60

# ---- hetjob.sh asks: an srun without PMIx ...
mkdir "$tmp/bin"
cat >"$tmp/bin/srun" <<SH
#!/bin/bash
[ "\$*" != --mpi=list ] || { echo "MPI plugin types are... none pmi2"; exit; }
exec $(command -v srun) "\$@"
SH
chmod +x "$tmp/bin/srun"
PATH=$tmp/bin:$PATH expect_status 0 "$slurm/hetjob.sh" "$tmp/deck.xml" --out "$tmp/nopmix"
grep -q 'takes two jobs.*no PMIx' "$tmp/output" || fail "it does not say why: $(cat "$tmp/output")"
squeue -h -o %i | xargs scancel

# ... and an MPI whose ranks do not meet: each is a world of its own
cat >"$tmp/alone" <<SH
#!/bin/bash
[ "\$1" != --version ] || exec env -i PATH="\$PATH" $metatopics --version
exec $metatopics "\$@"
SH
chmod +x "$tmp/alone"
METATOPICS=$tmp/alone submit "$slurm/hetjob.sh" "$tmp/deck.xml" --out "$tmp/worlds"
expect_end "$job" COMPLETED 60
expect_log "$job" 'takes two jobs.*this MPI makes [0-9]+ worlds'
two_jobs "$tmp/worlds"
