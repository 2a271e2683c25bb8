#!/bin/sh
# Tune on all devices of this host. Arguments: a tuning file, and a folder for the results.
#
#   sh examples/cluster/one_host.sh examples/quickstart.yaml out
#
# TUNESMITH_DEVICES names other devices than all.
set -eu
exec tunesmith tune "$1" -o "$2" --devices "${TUNESMITH_DEVICES:-all}"
