#!/bin/bash
# A job of two nodes, and one to spare: sbatch spares.sh train.py ...
# A node that fails or is lost again and again leaves (exit code 4), and the spare takes its place. When too few are left, the job is
# queued again, without the hosts that left. A step ends with the highest code of its tasks, so each node writes its own into $ends,
# on a disk that all share.
#SBATCH --nodes=3 --ntasks-per-node=1 --gpus-per-node=8
#SBATCH --no-kill --requeue --open-mode=append
ends=$PWD/ends-$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}
mkdir "$ends"
elastic store --endpoint="$(hostname)" & # any node may leave, the first one too
node='trap : TERM INT USR1; "$@"; code=$?; echo $code >"$0/$SLURMD_NODENAME"; exit $code'
srun --no-kill --kill-on-bad-exit=0 bash -c "$node" "$ends" \
    elastic launch --nnodes=2 --nproc-per-node=gpu --max-restarts=20 --leave-after=3/600 --tee=3 --log-dir=logs \
    --rdzv-endpoint="$(hostname)" --rdzv-conf=is_host=false --rdzv-id="$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}" "$@"
kill $!
for code in 0 1 2 6; do # it succeeded on one node, or a new start would end the same way
    grep -qx "$code" "$ends"/* && exit "$code"
done
unfit=$(cd "$ends" && grep -lx 4 -- * | paste -sd,)
if [ "$unfit" ]; then
    export UNFIT=${UNFIT:+$UNFIT,}$unfit
    sbatch --exclude="$UNFIT" "$0" "$@"
    exit 4
fi
grep -qx 3 "$ends"/* && scontrol requeue "$SLURM_JOB_ID" # the nodes that are missing were lost
exit 3
