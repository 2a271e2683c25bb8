#!/bin/sh
#SBATCH --job-name=tunesmith
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --time=01:00:00
# Tune on all devices of all nodes of a SLURM job. Arguments: a tuning file, and a folder for the results.
#
#   sbatch examples/cluster/slurm.sh llm.yaml out
#
# One task a node joins its devices to a scheduler on the first node. Killed or out of time, the job loses nothing: submit
# it again with the same folder. Without SLURM, the script does the same with processes of this host.
# TUNESMITH_DEVICES names other devices than all; TUNESMITH_WAIT_FOR is the number of devices to wait for.
set -eu
scheduler_file="$2/scheduler.json"
mkdir -p "$2"
rm -f "$scheduler_file"

dask scheduler --port 0 --no-dashboard --scheduler-file "$scheduler_file" &
scheduler=$!
trap 'kill $scheduler 2>/dev/null || true' EXIT

join="tunesmith worker --cluster $scheduler_file --devices ${TUNESMITH_DEVICES:-all}"
if command -v srun >/dev/null; then
    srun --overlap $join &
else
    $join &
fi
tunesmith tune "$1" -o "$2" --cluster "$scheduler_file" --wait-for "${TUNESMITH_WAIT_FOR:-1}"
