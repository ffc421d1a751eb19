#!/bin/bash
# twostep.sh [SBATCH OPTION]... DECK [METATOPICS OPTION]...: a whole run as two jobs: CPU nodes make
# the fits and the matrix of their topics; when that job is done, a GPU node does the rest. No GPU
# waits while models are fitted, and no MPI need span two kinds of nodes.
#
#   NODES=8 GPU_NODES=1 scripts/slurm/twostep.sh inputs/reuters.xml --out out
#
# Sizes as for hetjob.sh. Both jobs are full.sh: they save before their time is up and go back to
# the queue. Prints the two jobs' numbers.

name=twostep.sh
# shellcheck source=scripts/slurm/lib.sh
. "$(dirname "$0")/lib.sh" || exit 2
read_arguments "$@"
[ -n "$deck" ] || { usage >&2; exit 2; }
find_program
check_deck

(size_second) || exit # before the variables are the first job's
size "$(default_partition)"
one=$(sbatch --parsable "${request[@]}" "${options[@]}" "$scripts/full.sh" "$deck" \
  "${arguments[@]}" --until matrix) || exit
one=${one%;*}
size_second
# a second job whose first has failed would wait for ever: it goes
if ! two=$(sbatch --parsable --dependency="afterok:$one" --kill-on-invalid-dep=yes \
  "${request[@]}" "${options[@]}" "$scripts/full.sh" "$deck" "${arguments[@]}" --from knn); then
  scancel "$one"
  exit 1
fi
echo "Submitted batch job $one (corpus, lda, matrix)"
echo "Submitted batch job ${two%;*} (knn, umap, hdbscan, map), after it"
