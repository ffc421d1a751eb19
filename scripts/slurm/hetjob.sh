#!/bin/bash
#SBATCH --job-name=metatopics
#SBATCH --output=%x-%j.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR1@300
#SBATCH --partition=cpu
#SBATCH hetjob
#SBATCH --partition=gpu --gpus-per-node=1
# hetjob.sh [SBATCH OPTION]... DECK [METATOPICS OPTION]...: a whole run as one heterogeneous job: a
# component of CPU nodes that fits models, and one of GPU nodes that fits models, too, and then
# runs kNN, UMAP and HDBSCAN. One srun over both, all ranks in one MPI_COMM_WORLD.
#
#   NODES=8 GPU_NODES=1 scripts/slurm/hetjob.sh inputs/reuters.xml
#       looks first whether both can ever start and the deck is right, then sbatch
#   sbatch -p cpu -N8 -n64 : -p gpu -N1 --gpus-per-node=4 -n4 scripts/slurm/hetjob.sh DECK
#       as any batch script
#
# Sizes as full.sh's for the first component; GPU_PARTITION, GPU_NODES, GPU_TASKS_PER_NODE,
# GPU_CPUS_PER_TASK, GPU_GPUS_PER_NODE, GPU_MEMORY_PER_NODE for the second.
#
# Not every cluster starts such jobs (only the backfill scheduler does), and not every MPI makes
# one world of the two components. The script asks: Slurm before it submits, the MPI by a step
# that counts its worlds, in the job. Where the answer is no, it submits twostep.sh instead.

name=hetjob.sh
lib=$(dirname "$0")/lib.sh
if [ ! -e "$lib" ]; then # Slurm runs a copy; where this came from, it tells (with arguments)
  lib=$(scontrol show job "$SLURM_JOB_ID" | sed -n 's/^ *Command=//p' | head -1)
  lib=$(dirname "${lib%" $*"}")/lib.sh
fi
# shellcheck source=scripts/slurm/lib.sh
. "$lib" || exit 2
read_arguments "$@"
[ -n "$deck" ] || { usage >&2; exit 2; }
find_program

# why_not: what keeps this cluster from it; nothing: as far as it can tell, all is well
why_not() {
  local scheduler
  scheduler=$(scontrol show config | sed -n 's/^SchedulerType *= //p')
  case $scheduler in
    sched/backfill) ;;
    *) echo "$scheduler starts no heterogeneous jobs (sched/backfill does)"; return ;;
  esac
  srun --mpi=list 2>&1 | grep -qw pmix || echo "srun has no PMIx: ranks of two components cannot meet"
}

two_steps() {
  say "takes two jobs, one after the other (twostep.sh): $1"
  exec "$scripts/twostep.sh" "${options[@]}" "$deck" "${arguments[@]}"
}

if [ -z "${SLURM_JOB_ID:-}" ]; then
  check_deck
  reason=$(why_not)
  [ -z "$reason" ] || two_steps "$reason"
  first=$(default_partition)
  (size_second) || exit # before the variables are the first component's
  size "$first"
  one=("${request[@]}")
  [ "$GPUS_PER_NODE" = 0 ] || say "note: partition $PARTITION has GPUs, too; the first component takes them"
  size_second
  say "takes one heterogeneous job: $scripts/$name"
  exec sbatch "${one[@]}" "${options[@]}" : "${request[@]}" "${options[@]}" "$scripts/$name" \
    "$deck" "${arguments[@]}"
fi

[ "${SLURM_HET_SIZE:-1}" = 2 ] || die "this job has one component: sbatch ... : ... $name DECK"
set_environment
# each component has its own; --export does not replace what is set here
unset OMP_NUM_THREADS SRUN_CPUS_PER_TASK METATOPICS_TEAM
# one rank 0 prints its version; so many lines, so many worlds
worlds=$(srun "${ranks[@]}" --het-group=0,1 "$metatopics" --version </dev/null | grep -c 'metatopics  *[0-9]')
if [ "$worlds" != 1 ]; then
  # what follows is no part of this job, whose nodes are free now
  for variable in "${!SLURM_@}"; do
    [ "$variable" = SLURM_CONF ] || unset "$variable"
  done
  two_steps "this MPI makes $worlds worlds of the two components"
fi
say "takes one MPI_COMM_WORLD over both components"

# component NUMBER TEAM: srun's words for it. Where no GPU can be used, METATOPICS_TEAM says that
# the last three stages are still the second component's.
component() {
  local cpus=SLURM_CPUS_PER_TASK_HET_GROUP_$1
  cpus=${!cpus:-1}
  part=("${ranks[@]}" --het-group="$1" --cpus-per-task="$cpus"
    --export="ALL,OMP_NUM_THREADS=$cpus,METATOPICS_TEAM=$2"
    "$metatopics" run "$deck" "${arguments[@]}")
}
component 0 0
words=("${part[@]}")
component 1 1
run_until_done "${words[@]}" : "${part[@]}"
