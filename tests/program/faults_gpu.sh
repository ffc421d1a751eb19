#!/bin/bash
# GPUs that are not there, are too few, seen by some ranks alone, broken, too small, or whose process
# is killed: the run goes on as it should, or ends soon with the cause; run again, it goes on.
# On emulated GPUs; by make check-gpu on the machine's own.
# Environment  FAULTS: some of the parts that the last lines name
# SECONDS 400
. tests/program/lib.sh
if [ "${MT_TEST_BACKEND:-}" = cuda ] && [ -z "${MT_EMULATED_GPUS:-}" ]; then
  emulated= gpus=$(nvidia-smi -L | wc -l) seeds=0-19 topics=50 epochs=300
  library=$BUILD/metatopics-cuda.so
else
  emulated=yes gpus=2 seeds=0-9 topics=8 epochs=100
  library=$BUILD/emulated/metatopics-cuda.so
  export MT_EMULATED_GPUS=2
fi
unset METATOPICS_CUDA CUDA_VISIBLE_DEVICES
export METATOPICS_CUDA=$library
write_jsonl "$tmp/corpus.jsonl" 300 3
deck=$tmp/deck.xml
write_deck "$deck" "$tmp/corpus.jsonl" \
  "<lda n_components=\"$topics\" seeds=\"$seeds\" max_iter=\"5\" min_docs=\"10\"/>
  <umap n_epochs=\"$epochs\"/><map format=\"svg\"/>"
expect_status 0 mpi 2 "$metatopics" run "$deck" --out "$tmp/start" --until lda --backend cpu

# begin FOLDER: the run up to the fits
begin() {
  rm -rf "$1"
  cp -r "$tmp/start" "$1"
}
# on RANKS OUT ARGUMENTS...: the run in a folder where it has begun
on() {
  local ranks=$1 out=$2
  shift 2
  begin "$out"
  mpi "$ranks" "$metatopics" run "$deck" --out "$out" --until "${until:-hdbscan}" "$@"
}
# visible LIST... -- COMMAND...: the rank's CUDA_VISIBLE_DEVICES ("-": not set)
cat >"$tmp/visible" <<'END'
#!/bin/bash
lists=()
while [ "$1" != -- ]; do lists+=("$1"); shift; done
shift
list=${lists[${OMPI_COMM_WORLD_RANK:-0}]}
[ "$list" = - ] || export CUDA_VISIBLE_DEVICES=$list
exec "$@"
END
chmod +x "$tmp/visible"
# seen_by RANKS "LIST..." OUT ARGUMENTS...
seen_by() {
  local ranks=$1 lists=$2 out=$3
  shift 3
  begin "$out"
  # shellcheck disable=SC2086
  mpi "$ranks" "$tmp/visible" $lists -- "$metatopics" run "$deck" --out "$out" --until hdbscan "$@"
}
# expect_gpus N FOLDER: the record's
expect_gpus() {
  grep -q "^  \"gpus\": $1," "$2/run.json" || fail "$2/run.json: not $1 GPUs: $(grep '"gpus"' "$2/run.json")"
}

# ---- the parts ----
missing_things() {
  METATOPICS_CUDA=$tmp/none.so expect_status 2 on 2 "$tmp/a" --backend cuda
  expect_output 'no rank has a GPU that can be used: .*none.so cannot be loaded'
  until=knn METATOPICS_CUDA=$tmp/none.so expect_status 0 on 2 "$tmp/cpu"
  expect_output 'warning: the CPU backend is used: .*none.so cannot be loaded'
  expect_gpus 0 "$tmp/cpu"
  "$BUILD/tests/h5same" "$tmp/cpu/knn.h5" "$tmp/whole/knn.h5" || fail 'the CPU backend finds other neighbours'
  version=$("$metatopics" --version | awk '$1 == "metatopics" { print $2 }')
  sed "s/${version//./\\.}/9.9.9/g" "$library" >"$tmp/other.so"
  METATOPICS_CUDA=$tmp/other.so expect_status 2 on 1 "$tmp/a" --backend cuda
  expect_output 'other.so is of metatopics 9.9.9 .*take both from the same build'
  CUDA_VISIBLE_DEVICES='' expect_status 2 on 2 "$tmp/a" --backend cuda
  expect_output 'CUDA finds no GPU.*CUDA_VISIBLE_DEVICES is empty'
  until=knn CUDA_VISIBLE_DEVICES='' expect_status 0 on 2 "$tmp/a"
  expect_output 'the CPU backend is used: CUDA finds no GPU'
  for text in oops 5Q -1; do
    METATOPICS_GPU_MEMORY=$text expect_status 2 on 1 "$tmp/a"
    expect_output "METATOPICS_GPU_MEMORY=$text: not a number of bytes"
  done
  METATOPICS_GPU_DEADLINE=soon expect_status 2 on 1 "$tmp/a"
  expect_output 'METATOPICS_GPU_DEADLINE=soon: not a number of seconds'
}

unlike_ranks() {
  expect_status 0 on 3 "$tmp/three" --backend cuda
  expect_output "ranks 0-2 of .*, $gpus GPUs?; the others work as CPU ranks"
  expect_gpus "$gpus" "$tmp/three"
  expect_same "$tmp/whole" "$tmp/three"
  expect_status 0 seen_by 2 "0 $((gpus - 1))" "$tmp/one_each" --backend cuda
  expect_gpus "$gpus" "$tmp/one_each"
  expect_same "$tmp/whole" "$tmp/one_each"
  expect_status 0 seen_by 2 "0 0" "$tmp/same"
  expect_gpus 1 "$tmp/same"
  expect_same "$tmp/whole" "$tmp/same"
  # as in a job of unlike nodes: the first rank has none, and yet keeps the record
  expect_status 0 seen_by 3 ", - -" "$tmp/unlike" --backend cuda
  expect_gpus "$gpus" "$tmp/unlike"
  expect_output 'umap: .* epochs'
  grep -q "\"n_epochs\": $epochs" "$tmp/unlike/run.json" || fail "the team's figures are lost"
  expect_same "$tmp/whole" "$tmp/unlike"
  expect_status 0 "$metatopics" show "$tmp/unlike"
  expect_output 'backend cuda' 'GPU MiB' "^GPUs: $gpus; .* rank 1 on " '^CUDA .*; NCCL '
  expect_status 0 mpi 3 "$metatopics" check "$deck"
  expect_output 'by the CUDA backend on the ranks that own a GPU'
  expect_status 0 "$metatopics" --version
  expect_output '^cuda +[0-9.]+ built, ' '^nccl +[0-9.]+ built, '
}

broken_gpu() {
  [ -n "$emulated" ] || return 0
  MT_EMULATED_BROKEN=1 expect_status 1 on 2 "$tmp/a"
  expect_output 'rank 1. error: .*cudaSetDevice'
  [ ! -e "$tmp/a/knn.h5" ] || fail 'a file was made without the GPU'
  MT_EMULATED_LOST=1 expect_status 1 on 2 "$tmp/a"
  expect_output 'error: GPU [01] .*: cudaStreamQuery: unknown error'
  [ ! -e "$tmp/a/knn.h5" ] || fail 'a file was made with a lost GPU'
}

broken_exchange() {
  [ -n "$emulated" ] || return 0
  export METATOPICS_GPU_DEADLINE=3
  MT_EMULATED_NCCL=alone expect_status 1 on 2 "$tmp/a"
  expect_output 'NCCL on GPU 1 of 2 .*has not found the others within 3 s'
  MT_EMULATED_NCCL=stuck expect_status 1 on 2 "$tmp/a"
  expect_output 'error: NCCL, [a-z ]+, GPU [01] of 2 \(.*, 0000:.*not through after 3 s'
  MT_EMULATED_NCCL=failed expect_status 1 on 2 "$tmp/a"
  expect_output 'error: NCCL, [a-z ]+, GPU [01] of 2 \(.*remote process exited'
  unset METATOPICS_GPU_DEADLINE
}

little_memory() {
  local stage
  for stage in knn umap hdbscan; do
    rm -rf "$tmp/cut"
    cp -r "$tmp/whole" "$tmp/cut"
    rm "$tmp/cut/$stage.h5"
    METATOPICS_GPU_MEMORY=1K expect_status 1 mpi "$gpus" "$metatopics" run "$deck" --out "$tmp/cut" --until hdbscan
    expect_output 'error: .*of device memory.*[0-9] (bytes|MB)'
    [ ! -e "$tmp/cut/$stage.h5" ] || fail "$stage.h5 was made without memory"
  done
}

# interrupt SIGNAL STAGE BEFORE: to rank 0, which has a GPU, as soon as the file before the stage's is
# there; false if the stage was done before the signal came
interrupt() {
  local job pid='' start
  rm -rf "$tmp/log" "$tmp/cut"
  on 2 "$tmp/cut" --backend cuda >"$tmp/log" 2>&1 &
  job=$!
  until [ -e "$tmp/cut/$3.h5" ]; do
    [ -n "$pid" ] || pid=$(pgrep -o -f "^$metatopics run $deck --out $tmp/cut" || true)
    kill -0 $job 2>/dev/null || fail "the run ended before its stage $2: $(cat "$tmp/log")"
  done
  kill "-$1" "$pid" 2>/dev/null || true
  start=$SECONDS status=0
  wait $job || status=$?
  [ $((SECONDS - start)) -le 60 ] || fail "$((SECONDS - start)) s after signal $1 in $2"
  [ ! -e "$tmp/cut/$2.h5" ]
}
# go_on: the same run again, to the same bits
go_on() {
  expect_status 0 mpi 2 "$metatopics" run "$deck" --out "$tmp/cut" --until hdbscan --backend cuda
  expect_same "$tmp/whole" "$tmp/cut"
}

killed() {
  local pair stage before try
  for pair in knn:topics umap:knn hdbscan:umap; do
    stage=${pair%:*} before=${pair#*:}
    echo "killed in $stage ($SECONDS s)"
    for try in 1 2 3 4 5 6; do
      if interrupt KILL "$stage" "$before"; then break; fi
      [ $try -lt 6 ] || fail "$stage is too quick to be killed in"
    done
    [ "$status" != 0 ] || fail "killed in $stage, and status 0: $(cat "$tmp/log")"
    grep -Eq 'signal 9|is gone|not through' "$tmp/log" || fail "no cause: $(cat "$tmp/log")"
    expect_file "$tmp/cut/$before.h5"
    go_on
    expect_output "$before.h5 is there, .*kept"
  done
}

stopped() {
  local pair stage before try
  for pair in knn:topics umap:knn; do
    stage=${pair%:*} before=${pair#*:}
    echo "stopped in $stage ($SECONDS s)"
    for try in 1 2 3 4 5 6; do
      if interrupt TERM "$stage" "$before"; then break; fi
      [ $try -lt 6 ] || fail "$stage was done in spite of SIGTERM: $(cat "$tmp/log")"
    done
    [ "$status" = 3 ] || fail "status $status after SIGTERM in $stage: $(cat "$tmp/log")"
    grep -q 'stopped by signal 15' "$tmp/log" || fail "no word of the signal: $(cat "$tmp/log")"
    go_on
  done
}

expect_status 0 on 1 "$tmp/whole"
expect_gpus 1 "$tmp/whole"
for part in ${FAULTS:-missing_things unlike_ranks broken_gpu broken_exchange little_memory killed stopped}; do
  echo "== $part ($SECONDS s)"
  $part
done
echo "== done ($SECONDS s)"
