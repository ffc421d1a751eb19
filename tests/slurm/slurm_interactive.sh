#!/bin/bash
# salloc, a shell on an allocation, and a debugger on one rank.
# SECONDS 180
. tests/slurm/lib.sh

write_jsonl "$tmp/corpus.jsonl" 300 2
write_deck "$tmp/deck.xml" "$tmp/corpus.jsonl"
expect_status 0 "$metatopics" run "$tmp/deck.xml" --out "$tmp/one"

expect_status 0 salloc -n 4 srun "$metatopics" run "$tmp/deck.xml" --out "$tmp/salloc"
expect_output '4 ranks on'
expect_same "$tmp/one" "$tmp/salloc"

# a shell, its commands from standard input; its exit status comes back
echo "srun --input=none metatopics run $tmp/deck.xml --out $tmp/shell && exit 5" >"$tmp/commands"
code=0
"$slurm/interactive.sh" -N2 -n2 <"$tmp/commands" >"$tmp/output" 2>&1 || code=$?
[ $code = 5 ] || { cat "$tmp/output" >&2; fail "the shell ended with $code, not 5"; }
expect_output '^0: .*2 ranks on 2 nodes'
expect_same "$tmp/one" "$tmp/shell"
expect_status 2 "$slurm/interactive.sh" -N9
expect_output 'nodes: 9 asked for, 3 there'

# ---- a debugger: by the printed node and process, from inside the allocation
command -v gdb >/dev/null || skip "no gdb: \"tools/deps slurm\" installs it"
"$slurm/interactive.sh" --debug -N2 -n3 "$tmp/deck.xml" --out "$tmp/debug" </dev/null >"$tmp/log" 2>&1 &
started=$!
wait_until 30 grep -q 'rank 2: node' "$tmp/log" || { cat "$tmp/log" >&2; fail "no rank 2"; }
id=$(sed -n 's/.*--jobid=\([0-9]*\) .*/\1/p' "$tmp/log")
read -r node process <<<"$(sed -n 's/.*rank 2: node \(.*\), process \(.*\)/\1 \2/p' "$tmp/log")"
expect_status 0 srun --jobid="$id" --overlap -n1 -w "$node" gdb -p "$process" -batch \
  -ex 'tbreak knn/stage.c:work' -ex continue -ex backtrace -ex detach
expect_output 'hit Temporary breakpoint' 'run_stage' 'main'
wait $started || { cat "$tmp/log" >&2; fail "the debugged run failed"; }
grep -q 'a debugger is attached: going on' "$tmp/log" || fail "it went on without a debugger"
expect_same "$tmp/one" "$tmp/debug"
