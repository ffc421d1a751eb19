# bench_gpu on emulated GPUs, at sizes that say nothing of speed: every check of its results
# against distances in double and the CPU backend, the same bits from 1 and 3 GPUs, its table
# and CSV file with others' seconds beside ours, and its errors.
# SECONDS 180
. tests/program/lib.sh
bench=$BUILD/emulated/bench_gpu
export MT_EMULATED_GPUS=3
row() { # row STAGE GPUS REGEX: the rows of a stage on so many GPUs, and the lines below them
  awk -v stage="$1" -v gpus="$2" '/^[^ ]/ { on = $1 == stage && $4 == gpus } on' \
    "$tmp/output" | grep -Eq "$3" || {
    cat "$tmp/output" >&2
    fail "$1 on $2 GPUs does not say \"$3\""
  }
}

cat >"$tmp/peers.csv" <<'END'
peer,stage,n,d,gpus,seconds
slow,knn,200,50,1,12.5
slow,knn,200,50,3,11.5
other,hdbscan,200,2,1,7.25
END
expect_status 0 mpi 3 "$bench" --sizes 200 --columns 50 --epochs 20 --runs 1 --gpus 1,3 \
  --check --csv "$tmp/table.csv" --peers "$tmp/peers.csv"
for gpus in 1 3; do
  row knn $gpus 'recall 1.000000 of 200'
  row stream $gpus 'recall 1.000000 of 200'
  row hdbscan $gpus ' 0 edges and 0 labels unlike'
  row umap $gpus '0 coordinates unlike'
  row sheet $gpus '0 coordinates unlike'
  row epochs $gpus '20 epochs'
done
for stage in knn stream umap hdbscan; do row $stage 3 'same bits as 1 GPU'; done
row knn 1 ' 12\.5000 +-$'
row knn 3 ' 11\.5000 +-$'
row hdbscan 3 ' - +7\.2500$'
head -1 "$tmp/table.csv" | grep -q '^stage,n,d,gpus,runs,seconds,.*,slow_seconds,other_seconds$' ||
  fail "the CSV file's first line"
[ "$(wc -l <"$tmp/table.csv")" = 15 ] || fail "the CSV file has not a line for each row"

# one stage, one number of GPUs
expect_status 0 mpi 2 "$bench" --stage hdbscan --sizes 150 --dimensions 3 --gpus 2 --once
row hdbscan 2 '150 +3 +2 +1 '

expect_status 2 mpi 1 "$bench" --stage lda
expect_output 'the stages are knn, umap, hdbscan, stream and sheet'
expect_status 2 mpi 1 "$bench" --sizes 20x
expect_output '--sizes 20x: want'
expect_status 2 mpi 1 "$bench" --gpus 2 --sizes 100
expect_output '--gpus 2: 1 process'
echo 'a,knn,200' >>"$tmp/peers.csv"
expect_status 2 mpi 1 "$bench" --sizes 100 --peers "$tmp/peers.csv"
expect_output 'peers.csv:5: not peer,stage,n,d,gpus,seconds: a,knn,200'
MT_EMULATED_GPUS=0 expect_status 2 "$bench" --count
expect_output 'no GPU to measure'
