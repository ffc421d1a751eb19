# `metatopics history`: the figures of real runs, one that was stopped half way, and folders that
# hold no run; how busy emulated GPUs were.
# SECONDS 120
. tests/program/lib.sh
write_jsonl "$tmp/corpus.jsonl" 200 2
write_deck "$tmp/deck.xml" "$tmp/corpus.jsonl"
cd "$tmp" # where the plot goes if nothing else is said
root=$OLDPWD

figure() { sed -n "s/^  \"$2\": \([0-9.e-]*\),*$/\1/p" "$1/run.json"; }

# ---- a run's own table, and run.json
expect_status 0 "$root/tools/mpirun" -n 2 "$metatopics" run deck.xml --out runs/b
expect_output '^stage +rows +seconds +node h +CPU % +memory MiB$' '^run +- ' '^held: 1 node, [12] core'
for name in seconds node_hours cores cpu_seconds cpu_efficiency peak_memory_bytes; do
  [ -n "$(figure runs/b $name)" ] || fail "run.json has no $name"
done
grep -Eq 'gpu_|queue_seconds' runs/b/run.json && fail "run.json tells of what there was not"
expect_status 0 "$metatopics" show runs/b
expect_output '^what it took$' '^run +- '

# ---- two runs, in the order of time whatever their names; the second did half
expect_status 0 "$metatopics" run deck.xml --out runs/a --until matrix -q
grep -q . output && fail "-q, and it says something"
expect_status 0 "$metatopics" history runs
expect_output '^2 runs; ' 'plot: metatopics-history/history.svg'
[ "$(grep -o 'runs/[ab] ' output | xargs)" = "runs/b runs/a" ] || fail "not in the order of time"
expect_file metatopics-history/history.dat metatopics-history/history.gp
if command -v gnuplot >/dev/null; then expect_file metatopics-history/history.{svg,png}; fi
expect_status 0 "$root/tools/mpirun" -n 2 "$metatopics" history -q runs/a runs/b runs --out plot
expect_output '^2 runs; '
expect_file plot/history.dat

# ---- what is no run
expect_status 2 "$metatopics" history runs nowhere
expect_output 'there is no folder nowhere'
mkdir empty
expect_status 2 "$metatopics" history empty
expect_output 'empty is skipped: there is no run.json' 'no run is left to show'
head -c 300 runs/a/run.json >runs/a/cut && mv runs/a/cut runs/a/run.json
expect_status 0 "$metatopics" history runs empty
expect_output 'runs/a/run.json is damaged' '^1 run, 2 skipped; '
expect_status 2 "$metatopics" history runs --out runs/b/run.json
expect_output 'runs/b/run.json'

# ---- GPUs, with an NVML that says 40 %, and without one
export METATOPICS_CUDA=$BUILD/emulated/metatopics-cuda.so MT_EMULATED_GPUS=1
epochs=10000 # until it takes as long as a share needs
until awk -v s="$(figure runs/gpu seconds 2>/dev/null)" 'BEGIN { exit !(s >= 1.2) }'; do
  epochs=$((2 * epochs))
  LD_LIBRARY_PATH=$BUILD/emulated MT_EMULATED_BUSY=40 \
    expect_status 0 "$metatopics" run deck.xml --out runs/gpu --backend cuda --set umap.n_epochs=$epochs
done
expect_output 'GPU %  GPU MiB$' '1 GPU; '
busy=$(figure runs/gpu gpu_busy_share)
case $busy in 0.4 | 0.40* | 0.39999*) ;; *) fail "gpu_busy_share is \"$busy\", not 0.4" ;; esac
[ "$(figure runs/gpu gpu_peak_memory_bytes)" -gt 0 ] || fail "no memory of the GPU"
if ! ldconfig -p | grep -q libnvidia-ml.so.1; then
  expect_status 0 "$metatopics" run deck.xml --out runs/dumb --backend cuda
  grep -q gpu_busy_share runs/dumb/run.json && fail "a share that nobody measured"
fi
expect_status 0 "$metatopics" history runs
expect_output ' GPU % GPU MiB '
