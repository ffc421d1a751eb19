#!/bin/bash
#SBATCH --job-name=metatopics
#SBATCH --output=%x-%j.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR1@300
# full.sh [SBATCH OPTION]... DECK [METATOPICS OPTION]...: a whole run as one job: one srun, all
# ranks in one MPI_COMM_WORLD; where the nodes have GPUs, one rank for each GPU owns it.
#
#   NODES=3 TIME_LIMIT=4:00:00 scripts/slurm/full.sh inputs/reuters.xml --out out
#       looks first whether the partition can ever start this and the deck is right, then sbatch
#   sbatch -N3 -n12 scripts/slurm/full.sh inputs/reuters.xml --out out
#       as any batch script; the sizes are sbatch's
#   in a shell of salloc: runs here and now
#
# Sizes, from the environment, or as options in one word (-N3, --time=4:00:00): PARTITION, NODES,
# TASKS (in all) or TASKS_PER_NODE, CPUS_PER_TASK, GPUS_PER_NODE, MEMORY_PER_NODE, TIME_LIMIT.
# Default: one node of the default partition, filled with ranks of four threads, with its GPUs.
# Five minutes before the time is up (--signal) the ranks finish or drop the fit in hand and save;
# then the job goes back to the queue (--requeue) and on from there, until it is done.

name=full.sh
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

if [ -z "${SLURM_JOB_ID:-}" ]; then
  check_deck
  size "$(default_partition)"
  exec sbatch "${request[@]}" "${options[@]}" "$scripts/$name" "$deck" "${arguments[@]}"
fi
set_environment
run_until_done "${ranks[@]}" "$metatopics" run "$deck" "${arguments[@]}"
