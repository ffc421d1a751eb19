#!/bin/bash
# The files that the CUDA backend makes are the CPU's, bit for bit, on any number of GPUs, also
# where ranks get none; the planted topics come back from them. On emulated GPUs; by make
# check-gpu on the machine's own.
# SECONDS 600
. tests/program/lib.sh
if [ "${MT_TEST_BACKEND:-}" = cuda ] && [ -z "${MT_EMULATED_GPUS:-}" ]; then
  emulated= gpus=$(nvidia-smi -L | wc -l)
  export METATOPICS_CUDA=$BUILD/metatopics-cuda.so
else
  emulated=yes gpus=3
  export METATOPICS_CUDA=$BUILD/emulated/metatopics-cuda.so
fi
jobs=()
for ((g = 1; g <= gpus; g++)); do jobs+=("$g:$g"); done
[ "$gpus" -lt 2 ] || jobs+=(3:2)

# on_gpus RANKS GPUS COMMAND...: under mpirun, where so many GPUs are visible
on_gpus() {
  local ranks=$1 visible
  visible=$(seq -s , 0 $(($2 - 1)))
  shift 2
  CUDA_VISIBLE_DEVICES=$visible MT_EMULATED_GPUS=${emulated:+$gpus} mpi "$ranks" "$@"
}

# same_bits DECK [OPTIONS...]: the CPU's run stays in $tmp/cpu
same_bits() {
  local job out
  rm -rf "$tmp/cpu"
  expect_status 0 mpi 2 "$metatopics" run "$@" --backend cpu --out "$tmp/cpu"
  for job in "${jobs[@]}"; do
    out=$tmp/ranks-gpus-$job
    expect_status 0 on_gpus "${job%:*}" "${job#*:}" "$metatopics" run "$@" --backend cuda --out "$out"
    expect_same "$tmp/cpu" "$out"
    grep -q "\"gpus\": *${job#*:}," "$out/run.json" || fail "run.json does not tell of ${job#*:} GPUs"
    for stage in knn umap hdbscan; do
      grep -A8 "\"name\": *\"$stage\"" "$out/run.json" | grep -q '"backend": *"cuda"' ||
        fail "run.json does not say that $stage was made by the CUDA backend"
    done
    rm -rf "$out"
  done
}

write_jsonl "$tmp/corpus.jsonl" 900 3
write_deck "$tmp/small.xml" "$tmp/corpus.jsonl"
same_bits "$tmp/small.xml"
for metric in hellinger euclidean; do
  for init in pca random; do
    same_bits "$tmp/small.xml" --set knn.metric=$metric --set umap.init=$init --set umap.n_components=3
  done
done

# the demo's planted topics
"$BUILD/newswire" --documents 2000 --periods 5 --out "$tmp/newswire"
same_bits inputs/demo.xml --set corpus.path="$tmp/newswire"
"$BUILD/tests/check_planted" "$tmp/newswire/truth.json" "$tmp/cpu"

if [ -n "${REUTERS_TARBALL:-}" ] && [ -z "$emulated" ]; then
  sed "s|path=\"[^\"]*\"|path=\"$REUTERS_TARBALL\"|" inputs/reuters.xml >"$tmp/reuters.xml"
  same_bits "$tmp/reuters.xml"
fi
