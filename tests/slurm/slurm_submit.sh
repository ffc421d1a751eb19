#!/bin/bash
# submit: from another machine, by a real sshd on loopback; and on this machine's own cluster.
# SECONDS 600
. tests/slurm/lib.sh
sshd=$(command -v sshd || echo /usr/sbin/sshd)
if ! [ -x "$sshd" ] || ! command -v ssh >/dev/null; then skip "no sshd: \"tools/deps slurm\" installs it"; fi
unset METATOPICS # it builds its own

# ---- a home folder at the other end, and an sshd of our own: its key, its port, its /run
mkdir "$tmp/home" "$tmp/laptop"
ssh-keygen -q -t ed25519 -N '' -f "$tmp/host_key"
ssh-keygen -q -t ed25519 -N '' -f "$tmp/key"
cp "$tmp/key.pub" "$tmp/authorized"
chmod 600 "$tmp/authorized"
port=$((BASE_PORT + 19))
cat >"$tmp/sshd_config" <<CONF
Port $port
ListenAddress 127.0.0.1
HostKey $tmp/host_key
AuthorizedKeysFile $tmp/authorized
PidFile $tmp/sshd.pid
PermitRootLogin yes
PasswordAuthentication no
UsePAM no
StrictModes no
SetEnv SLURM_CONF=$SLURM_CONF HOME=$tmp/home OMPI_MCA_btl_tcp_if_include=lo OMP_NUM_THREADS=1
CONF
unshare --mount --propagation slave sh -c \
  'mount -t tmpfs run /run; mkdir /run/sshd; exec "$1" -f "$2" -E "$3"' sh "$sshd" "$tmp/sshd_config" "$tmp/sshd.log"
trap 'kill "$(cat "$tmp/sshd.pid")"; cluster_down' EXIT
cat >"$tmp/ssh_config" <<CONF
Host cluster
  HostName 127.0.0.1
  Port $port
  User $(id -un)
  IdentityFile $tmp/key
  UserKnownHostsFile $tmp/known
  StrictHostKeyChecking accept-new
  BatchMode yes
CONF
export SSH="ssh -F $tmp/ssh_config"
wait_until 10 $SSH cluster true || { cat "$tmp/sshd.log" >&2; fail "no sshd"; }
[ "$($SSH cluster 'echo $HOME')" = "$tmp/home" ] || fail "the other end has another home folder"

# ---- a laptop: no Slurm there; a deck and a collection beside it
write_jsonl "$tmp/laptop/corpus.jsonl" 300 2
write_deck "$tmp/laptop/deck.xml" corpus.jsonl
expect_status 0 "$metatopics" run "$tmp/laptop/deck.xml" --out "$tmp/one"
cd "$tmp/laptop"
laptop() { env -u SLURM_CONF -u OMPI_MCA_btl_tcp_if_include "$slurm/submit" "$@"; }
quick=(--configure 'CFLAGS=-O0 --with-cuda=no')

# expect_results OUT: as the run here
expect_results() {
  expect_file "$1"/map.svg "$1"/map.png "$1"/topics.csv "$1"/meta_topics.csv "$1"/summary.json "$1"/run.json
  cmp "$tmp/one/meta_topics.csv" "$1/meta_topics.csv"
  cmp "$tmp/one/topics.csv" "$1/topics.csv"
}

# a build that cannot be: says which module or package is missing
mkdir "$tmp/poor"
for program in bash sh env cat sed grep tar mkdir rm mv hostname nproc sbatch ls uname awk expr tr \
  head tail sort cut basename dirname sleep chmod cp ln pwd touch cc gcc as ld make; do
  ln -s "$(command -v $program)" "$tmp/poor/$program"
done
echo "PATH=$tmp/poor:$(dirname "$(command -v base64)")/nothing" >"$tmp/home/.bash_profile"
ln -s "$(command -v base64)" "$tmp/poor/base64"
expect_status 1 laptop "${quick[@]}" cluster deck.xml --out poor
expect_output 'no MPI compiler \(mpicc\)' 'Debian: libopenmpi-dev; module: openmpi; Spack: openmpi' '--modules'
rm "$tmp/home/.bash_profile"

expect_status 0 laptop "${quick[@]}" -N2 -n2 cluster deck.xml --out here
expect_output 'builds version' 'sends .*corpus.jsonl' '== job 1: (RUNNING|COMPLETED)' '^0: .*2 ranks on 2 nodes' 'done: here'
expect_results here

# ---- again: neither built nor sent; other parameters
expect_status 0 laptop "${quick[@]}" -n1 cluster deck.xml --out again --set map.label_terms=2
expect_output 'is there already' 'done: again'
! grep -Eq 'builds|sends' "$tmp/output" || fail "it was built or sent again"
grep -q '"label_terms": 2' again/run.json || fail "the parameter did not arrive"

# ---- what the cluster refuses, and a run that fails
expect_status 2 laptop "${quick[@]}" -N9 cluster deck.xml
expect_output 'nodes: 9 asked for, 3 there'
expect_status 2 laptop "${quick[@]}" cluster deck.xml --set corpus.path=nothing.jsonl
expect_output 'no nothing.jsonl'
expect_status 1 laptop "${quick[@]}" -n1 cluster deck.xml --out failed --set corpus.date_field=when
expect_output 'ends with status 2' 'did not end well'

# ---- fetched later, by name
run=$(sed -n 's/^submit: run \(.*\) on cluster.*/\1/p' "$tmp/output")
expect_status 1 laptop --fetch "$run" cluster later
expect_file later/metatopics-*.log

# ---- without ssh, on this machine's cluster
HOME=$tmp/home expect_status 0 "$slurm/submit" "${quick[@]}" --host local -n1 deck.xml --out local
expect_output 'is there already' 'done: local'
expect_results local
