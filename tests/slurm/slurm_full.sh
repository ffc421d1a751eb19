#!/bin/bash
# full.sh: a whole run as one job, and what it refuses before it queues.
# SECONDS 300
. tests/slurm/lib.sh

# ---- the demo on three nodes, with the bits of one rank
"$BUILD/newswire" --documents 2000 --periods 5 --out "$tmp/newswire" >/dev/null
submit sbatch -N3 -n3 "$slurm/full.sh" "$sources/inputs/demo.xml" --out "$tmp/demo" \
  --set corpus.path="$tmp/newswire"
expect_status 0 "$sources/tools/mpirun" -n 1 "$metatopics" run "$sources/inputs/demo.xml" \
  --out "$tmp/one" --set corpus.path="$tmp/newswire"
expect_end "$job" COMPLETED 120
expect_log "$job" '^0: .*3 ranks on 3 nodes' 'cpu1: rank 0' 'cpu3: rank 2' 'ends with status 0'
(cd "$tmp/one" && find . -type f | sort) >"$tmp/files"
for file in corpus.h5 topics.h5 knn.h5 umap.h5 hdbscan.h5 map.svg map.gp map.dat topics.csv \
  meta_topics.csv summary.json run.json; do
  grep -Fqx "./$file" "$tmp/files" || fail "the files of one rank have no $file"
done
(cd "$tmp/demo" && find . -type f | sort) | diff "$tmp/files" - || fail "other files on three nodes"
expect_same "$tmp/one" "$tmp/demo"
cmp "$tmp/one/topics.csv" "$tmp/demo/topics.csv"
grep -q "\"job_id\": \"$job\"" "$tmp/demo/run.json" || fail "run.json does not know job $job"
expect_figures "$tmp/demo" 3
expect_log "$job" "^0: job $job: waited [0-9]+ s in the queue" '^0: held: 3 nodes, 3 cores'

# ---- twelve ranks on this machine's cores, more than there are fits
write_jsonl "$tmp/corpus.jsonl" 300 2
write_deck "$tmp/deck.xml" "$tmp/corpus.jsonl"
expect_status 0 "$metatopics" run "$tmp/deck.xml" --out "$tmp/small"
submit "$slurm/full.sh" -N3 -n12 "$tmp/deck.xml" --out "$tmp/twelve"
expect_end "$job" COMPLETED 120
expect_log "$job" '12 ranks on 3 nodes'
expect_same "$tmp/small" "$tmp/twelve"
expect_figures "$tmp/twelve" 12

# ---- a partition with GPUs: the script asks for them
submit "$slurm/full.sh" -pgpu "$tmp/deck.xml" --out "$tmp/gpu"
expect_end "$job" COMPLETED 60
scontrol show job "$job" | grep -Eq 'TresPerNode=(gres:)?gpu:2' || fail "no GPUs were asked for"
expect_same "$tmp/small" "$tmp/gpu"

# ---- what can never start is not queued
refused() {
  local pattern=$1
  shift
  expect_status 2 "$slurm/full.sh" "$@"
  expect_output "$pattern"
}
refused 'nodes: 4 asked for, 3 there' -N4 "$tmp/deck.xml"
refused 'CPUs of a node \(2 tasks of 3\): 6 asked for, 4 there' --ntasks-per-node=2 -c3 "$tmp/deck.xml"
refused 'GPUs of a node: 3 asked for, 2 there' -pgpu --gpus-per-node=3 "$tmp/deck.xml"
refused 'GPUs of a node: 1 asked for, 0 there' --gpus-per-node=1 "$tmp/deck.xml"
refused 'MiB of memory of a node: 5120 asked for, 4000 there' --mem=5G "$tmp/deck.xml"
refused 'seconds: 93600 asked for, 86400 there' --time=1-2 "$tmp/deck.xml"
refused 'no partition "big"; there are: cpu gpu' -pbig "$tmp/deck.xml"
refused 'there is no deck "3" \(options are written in one word' -N 3 "$tmp/deck.xml"
refused 'no nothing.jsonl' "$tmp/deck.xml" --set corpus.path=nothing.jsonl
refused 'umap.min_dist \(2\) is above' "$tmp/deck.xml" --set umap.min_dist=2
[ -z "$(squeue -h)" ] || fail "something was queued: $(squeue)"

# ---- a run that fails: so does the job, and it is not queued again
submit sbatch -n2 "$slurm/full.sh" "$tmp/deck.xml" --out /dev/null/x
expect_end "$job" FAILED 30
expect_log "$job" '/dev/null' 'ends with status 2'
