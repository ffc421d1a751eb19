#!/bin/bash
# interactive.sh [SALLOC OPTION]...: a shell on a small allocation, half an hour, in which
# `srun metatopics run DECK` works. The shell runs here, srun's ranks there.
# interactive.sh --debug [SALLOC OPTION]... DECK [METATOPICS OPTION]...: starts the run so that a
# debugger can be attached: the log says each rank's node and process, and the run goes on when
# one of them is being debugged and was let go on (gdb's continue).
#
#   scripts/slurm/interactive.sh -n4
#   scripts/slurm/interactive.sh --debug -n4 inputs/demo.xml --out debug-out
#   srun --jobid=JOB --overlap -w NODE --pty gdb -p PROCESS        in another terminal
#
# Sizes as full.sh's: PARTITION, NODES, TASKS, ..., TIME_LIMIT (default 30 minutes).

name=interactive.sh
# shellcheck source=scripts/slurm/lib.sh
. "$(dirname "$0")/lib.sh" || exit 2
debug=false
if [ "${1:-}" = --debug ]; then
  debug=true
  shift
fi
read_arguments "$@"
find_program
if $debug && [ -z "$deck" ]; then die "--debug needs a deck"; fi
if ! $debug && [ -n "$deck" ]; then die "a deck goes with --debug; or give it to srun in the shell"; fi

TIME_LIMIT=${TIME_LIMIT:-30}
size "$(default_partition)"
# in the allocation: this script's functions again, then a shell or the ranks
export metatopics name
if $debug; then
  # shellcheck disable=SC2016 # of the inner shell
  run='say "to attach: srun --jobid=$SLURM_JOB_ID --overlap -w NODE --pty gdb -p PROCESS"
    exec srun "${ranks[@]}" "$metatopics" run --wait-for-debugger "$@"'
else
  # srun takes these from the environment: the shell's srun does what full.sh's does
  # shellcheck disable=SC2016
  run='export SLURM_KILL_BAD_EXIT=1 SLURM_LABELIO=1 SLURM_UNBUFFEREDIO=1
    case " ${ranks[*]} " in *" --mpi=pmix "*) export SLURM_MPI_TYPE=pmix ;; esac
    export PATH=$(dirname "$metatopics"):$PATH
    exec "${SHELL:-/bin/bash}"'
fi
exec salloc "${request[@]}" "${options[@]}" bash -c ". '$scripts/lib.sh'; set_environment; $run" \
  bash ${deck:+"$deck"} "${arguments[@]}"
