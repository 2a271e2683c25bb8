#!/bin/sh
# Tune on the devices of an MPI job's hosts: rank 0 tunes, every rank joins its host's devices. No MPI call is made: the
# launcher only starts the processes, as dask-mpi does. Arguments: a tuning file, and a folder that all hosts see.
#
#   mpirun --map-by ppr:1:node sh examples/cluster/mpi.sh llm.yaml out
#
# Without a launcher, the script does the same with processes of this host.
set -eu
rank="${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}}"
scheduler_file="$2/scheduler.json"
devices="${TUNESMITH_DEVICES:-all}"

if [ "$rank" != 0 ]; then
    exec tunesmith worker --cluster "$scheduler_file" --devices "$devices" --name "rank$rank"
fi
mkdir -p "$2"
rm -f "$scheduler_file"
dask scheduler --port 0 --no-dashboard --scheduler-file "$scheduler_file" &
scheduler=$!
trap 'kill $scheduler 2>/dev/null || true' EXIT
tunesmith worker --cluster "$scheduler_file" --devices "$devices" --name rank0 &
tunesmith tune "$1" -o "$2" --cluster "$scheduler_file" --wait-for "${TUNESMITH_WAIT_FOR:-1}"
