# What the job scripts of this folder share: `. lib.sh`. $scripts is this folder, $name the
# script's name.
# shellcheck shell=bash disable=SC2154 # $name is the script's
set -u
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() { echo "$name: $*"; }
die() {
  echo "$name: $*" >&2
  exit 2
}

# print the comment at the head of the script
usage() { sed -n '2,/^$/{/^#SBATCH/d;s/^# \{0,1\}//p}' "$scripts/$name"; }

# find_program: $metatopics, from a build's folder, an installation, or PATH
find_program() {
  local there
  for there in "${METATOPICS:-}" "$scripts/../../metatopics" "$scripts/../../../bin/metatopics" \
    "$(command -v metatopics)"; do
    if [ -x "$there" ] && [ -f "$there" ]; then
      metatopics=$(realpath "$there")
      return
    fi
  done
  die "no program: build it (make), load its module, or set METATOPICS to its path"
}

# ---- what is asked for --------------------------------------------------------------------

# read_arguments ARGUMENT...: sbatch's options, up to the deck, go to the variables of sizes or
# to $options; the deck to $deck, what follows to $arguments
read_arguments() {
  options=() arguments=() deck=
  while [ $# -gt 0 ]; do
    case $1 in
      -N?*) NODES=${1#-N} ;;
      --nodes=*) NODES=${1#*=} ;;
      -n?*) TASKS=${1#-n} ;;
      --ntasks=*) TASKS=${1#*=} ;;
      --ntasks-per-node=*) TASKS_PER_NODE=${1#*=} ;;
      -c?*) CPUS_PER_TASK=${1#-c} ;;
      --cpus-per-task=*) CPUS_PER_TASK=${1#*=} ;;
      --gpus-per-node=*) GPUS_PER_NODE=${1#*=} ;;
      --mem=*) MEMORY_PER_NODE=${1#*=} ;;
      -t?*) TIME_LIMIT=${1#-t} ;;
      --time=*) TIME_LIMIT=${1#*=} ;;
      -p?*) PARTITION=${1#-p} ;;
      --partition=*) PARTITION=${1#*=} ;;
      -h | --help) usage; exit ;;
      -*) options+=("$1") ;;
      *) break ;;
    esac
    shift
  done
  [ $# -gt 0 ] || return 0
  deck=$1
  [ -f "$deck" ] || die "there is no deck \"$deck\" (options are written in one word: -N3, --time=10)"
  shift
  arguments=("$@")
}

# what of a run's arguments `metatopics check` takes: where it writes, changed parameters
checked() {
  local i
  check=()
  for ((i = 0; i < ${#arguments[@]}; i++)); do
    case ${arguments[i]} in
      -o | --out | -s | --set) check+=("${arguments[i]}" "${arguments[i + 1]:-}"); ((i += 1)) ;;
      -o* | --out=* | -s* | --set=*) check+=("${arguments[i]}") ;;
    esac
  done
}

# parameter SECTION.NAME: its value in the deck, after the arguments
parameter() { "$metatopics" check "$deck" "${check[@]}" --get "$1"; }

# check_deck: the deck and the collection, before hours are spent in a queue
check_deck() {
  local corpus
  checked
  corpus=$(parameter corpus.path) || die "the deck is refused: nothing is queued"
  [ -e "$corpus" ] || die "there is no $corpus (corpus.path of $deck): nothing is queued"
}

# ---- what the partition has -----------------------------------------------------------------

# gpu_partition: the first that has GPUs; empty: there is none
gpu_partition() { sinfo -h -o '%R %G' | awk '$2 ~ /gpu/ { print $1; exit }'; }
default_partition() { sinfo -h -o '%P' | sed -n 's/\*$//p' | head -1; }

# largest PARTITION FIELD: of its nodes: %c CPUs, %m memory (MiB), %G GPUs
largest() {
  sinfo -h -N -p "$1" -o "$2" |
    awk '{ n = $0
           if (match(n, /gpu:[^,]*/)) { n = substr(n, RSTART, RLENGTH); sub(/\(.*/, "", n); sub(/.*:/, "", n) }
           if (n + 0 > most) most = n + 0 } END { print most + 0 }'
}

# seconds of 90 (minutes), 90:00, 1:30:00, 1-12, 1-12:30, 1-12:30:00; empty: no limit
seconds() {
  awk -v t="$1" 'BEGIN {
    if (t == "" || t ~ /infinite|UNLIMITED/) exit
    days = 0; dashed = split(t, d, "-") == 2
    if (dashed) { days = d[1]; t = d[2] }
    n = split(t, p, ":")
    if (dashed) s = p[1] * 3600 + p[2] * 60 + p[3]
    else s = n == 3 ? p[1] * 3600 + p[2] * 60 + p[3] : p[1] * 60 + p[2]
    print days * 86400 + s }'
}

# MiB of 4000, 4000M, 4G, 1T
mebibytes() {
  awk -v m="$1" 'BEGIN { f["K"] = 1 / 1024; f["M"] = 1; f["G"] = 1024; f["T"] = 1048576
    u = toupper(substr(m, length(m))); print int(m * (u in f ? f[u] : 1)) }'
}

# too_large WHAT WANTED THERE: a line if it is
too_large() { [ -z "$3" ] || [ "$2" -le "$3" ] || echo "  $1: $2 asked for, $3 there"; }

# refuse_what_never_starts: Slurm queues some requests that no node can ever fulfil
refuse_what_never_starts() {
  local p=$PARTITION wrong
  [ -n "$(sinfo -h -p "$p" -o %D)" ] ||
    die "there is no partition \"$p\"; there are: $(sinfo -h -o %R | sort -u | xargs)"
  wrong=$(
    too_large "nodes" "${NODES:-1}" "$(sinfo -h -p "$p" -o %D | awk '{ n += $1 } END { print n }')"
    too_large "CPUs of a node ($TASKS_PER_NODE tasks of $CPUS_PER_TASK)" \
      $((TASKS_PER_NODE * CPUS_PER_TASK)) "$(largest "$p" %c)"
    too_large "GPUs of a node" "${GPUS_PER_NODE##*:}" "$(largest "$p" %G)"
    too_large "MiB of memory of a node" "$(mebibytes "${MEMORY_PER_NODE:-0}")" "$(largest "$p" %m)"
    too_large "seconds" "$(seconds "${TIME_LIMIT:-0}")" \
      "$(seconds "$(sinfo -h -p "$p" -o %l | sort -u | tail -1)")"
  )
  [ -z "$wrong" ] || die "partition $p can never start this:"$'\n'"$wrong"
}

# size PARTITION: fills in the sizes that were not asked for, and sets $request: sbatch's words
size() {
  local cpus least
  PARTITION=${PARTITION:-$1}
  cpus=$(largest "$PARTITION" %c)
  GPUS_PER_NODE=${GPUS_PER_NODE:-$(largest "$PARTITION" %G)}
  # What was not said fills a node: with ranks of four threads, for a fit is made by one rank; but
  # each GPU needs a rank of its own. Tasks alone (-n4) are of one core.
  if [ -n "${TASKS:-}" ]; then
    if [ -z "${NODES:-}" ]; then CPUS_PER_TASK=${CPUS_PER_TASK:-1}; fi
    NODES=${NODES:-$(((TASKS * CPUS_PER_TASK + cpus - 1) / (cpus > 0 ? cpus : 1)))}
    TASKS_PER_NODE=$(((TASKS + NODES - 1) / NODES))
  fi
  NODES=${NODES:-1}
  least=$((GPUS_PER_NODE > 1 ? GPUS_PER_NODE : 1))
  if [ -n "${TASKS_PER_NODE:-}" ]; then least=$TASKS_PER_NODE; fi
  CPUS_PER_TASK=${CPUS_PER_TASK:-$((cpus < least ? 1 : cpus / least > 4 ? 4 : cpus / least))}
  TASKS_PER_NODE=${TASKS_PER_NODE:-$((cpus < CPUS_PER_TASK ? 1 : cpus / CPUS_PER_TASK))}
  refuse_what_never_starts
  request=(--partition="$PARTITION" --nodes="$NODES" --ntasks="${TASKS:-$((NODES * TASKS_PER_NODE))}"
    --ntasks-per-node="$TASKS_PER_NODE" --cpus-per-task="$CPUS_PER_TASK")
  [ "$GPUS_PER_NODE" = 0 ] || request+=(--gpus-per-node="$GPUS_PER_NODE")
  [ -z "${MEMORY_PER_NODE:-}" ] || request+=(--mem="$MEMORY_PER_NODE")
  [ -z "${TIME_LIMIT:-}" ] || request+=(--time="$TIME_LIMIT")
}

# size_second: the sizes of the second component, from the variables GPU_..., in its partition
size_second() {
  PARTITION=${GPU_PARTITION:-$(gpu_partition)}
  [ -n "$PARTITION" ] || die "no partition has GPUs (sinfo -o '%P %G'): take full.sh"
  NODES=${GPU_NODES:-} TASKS='' TASKS_PER_NODE=${GPU_TASKS_PER_NODE:-}
  CPUS_PER_TASK=${GPU_CPUS_PER_TASK:-} GPUS_PER_NODE=${GPU_GPUS_PER_NODE:-}
  MEMORY_PER_NODE=${GPU_MEMORY_PER_NODE:-}
  size "$PARTITION"
}

# ---- in a job -----------------------------------------------------------------------------

# what the libraries need; the job's ranks inherit it
set_environment() {
  # threads of a rank: the cores that Slurm gave it
  export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-${OMP_NUM_THREADS:-1}}
  # srun has not taken this from the job since Slurm 22.05: ranks would share one core
  export SRUN_CPUS_PER_TASK=$OMP_NUM_THREADS
  # More ranks and threads than cores: who waits must give its core up, or all but stall. (With
  # cores enough it must not: it would answer later.) nproc would print OMP_NUM_THREADS.
  local tasks=${SLURM_TASKS_PER_NODE:-1}
  tasks=${tasks%%[!0-9]*}
  if [ $((tasks * OMP_NUM_THREADS)) -gt "$(env -u OMP_NUM_THREADS nproc)" ]; then
    export OMPI_MCA_mpi_yield_when_idle=1 OMP_WAIT_POLICY=passive
  fi
  # NCCL says why GPUs cannot talk to each other; else it only fails
  export NCCL_DEBUG=${NCCL_DEBUG:-WARN}

  # srun: one dead rank ends the step, for MPI would wait for it until the time limit; lines come
  # at once, with the rank before them
  ranks=(--kill-on-bad-exit=1 --label --unbuffered)
  # Open MPI finds its ranks through PMIx
  if srun --mpi=list 2>&1 | grep -qw pmix; then ranks+=(--mpi=pmix); fi
  # each rank keeps to its own cores, where this cluster can bind
  if scontrol show config | grep -Eq '^TaskPlugin .*affinity'; then ranks+=(--cpu-bind=cores); fi
}

# files of $out that are finished, and when
finished() { find "$out" -name '*.h5' -printf '%p %T@\n' 2>/dev/null | sort; }

# the exit status that the run itself recorded since it was started here; empty: none
recorded() {
  [ "$out/run.json" -nt "$began" ] && sed -n 's/^ *"exit_status": \([0-9]*\),*$/\1/p' "$out/run.json"
}

# was it the time limit? --signal comes up to a minute before its five
at_its_limit() {
  local left
  left=$(seconds "$(squeue -h -j "$SLURM_JOB_ID" -o %L | head -1)")
  [ -n "$left" ] && [ "$left" -lt 400 ]
}

# a job of the same size that starts when this one has ended; what waits for this one waits for it
resubmit() {
  local next waiting
  next=$(sbatch --parsable --dependency="afterany:$SLURM_JOB_ID" --job-name="$SLURM_JOB_NAME" \
    --partition="$SLURM_JOB_PARTITION" --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_NTASKS" \
    ${SLURM_CPUS_PER_TASK:+--cpus-per-task="$SLURM_CPUS_PER_TASK"} \
    ${SLURM_GPUS_PER_NODE:+--gpus-per-node="$SLURM_GPUS_PER_NODE"} \
    ${SLURM_MEM_PER_NODE:+--mem="$SLURM_MEM_PER_NODE"} \
    --time="$(squeue -h -j "$SLURM_JOB_ID" -o %l | head -1)" \
    "$scripts/$name" "$deck" "${arguments[@]}") || return
  for waiting in $(squeue -h --me -o '%i %E' | awk -v id="$SLURM_JOB_ID" \
    '$2 ~ "afterok:" id "[^0-9]" || $2 ~ "afterok:" id "$" { print $1 }'); do
    scontrol update jobid="$waiting" dependency="afterok:$next"
  done
  say "job $next goes on"
}

# go_on BEFORE: the same job once more, unless it would stop at the same place again
go_on() {
  if [ "$(finished)" = "$1" ] && at_its_limit; then
    say "no file was finished in this job's time, and the next would do no better: give it more" >&2
    say "time (--time), or more ranks to each fit" >&2
    exit 3
  fi
  if ! scontrol show job "$SLURM_JOB_ID" | grep -q 'BatchFlag=1'; then
    say "stopped after a checkpoint: run it again to go on"
    exit 3
  fi
  say "stopped after a checkpoint: queued again"
  if [ -n "${SLURM_HET_SIZE:-}" ]; then
    scontrol requeue "$SLURM_JOB_ID" || exit 3
  else
    scontrol requeue "$SLURM_JOB_ID" || resubmit || exit 3
  fi
  exit 0 # Slurm has taken the job back: this script's end no longer counts
}

# run_until_done SRUN WORDS...: the ranks; then an exit, or the queue again
run_until_done() {
  local before code=1 try
  checked
  out=$(parameter output.path) || exit 2
  began=$(mktemp)
  trap 'rm -f "$began"' EXIT
  before=$(finished)
  say "job $SLURM_JOB_ID, start $((${SLURM_RESTART_COUNT:-0} + 1)), $(date '+%F %T'): $deck to $out"
  # srun has been seen to end with 0 when a step could not be launched (a node not yet rid of the
  # step before it): the record tells
  for try in 1 2 3; do
    srun "$@" </dev/null
    code=$?
    if [ $code != 0 ] || [ -n "$(recorded)" ]; then break; fi
    code=1
    say "try $try: no rank was started" >&2
  done
  # as soon as one rank has left with 3, --kill-on-bad-exit may kill one that is about to
  if [ $code = 3 ] || { [ $code -gt 128 ] && [ "$(recorded)" = 3 ]; }; then go_on "$before"; fi
  say "ends with status $code"
  exit $code
}
