#!/usr/bin/env bash
# launch/mpirun.sh RANKS ARGS...    runs `epsweep ARGS...` on RANKS ranks of this machine.
# EPSWEEP_MPIRUN_ARGS adds options for mpirun (hosts, mapping); with it set the launch may span
# hosts and nothing is assumed about the network:
#   EPSWEEP_MPIRUN_ARGS="--hostfile hosts --map-by ppr:8:node --bind-to numa" launch/mpirun.sh 64 run ...
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=environment.sh
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/environment.sh"

[[ ${1:-} =~ ^[1-9][0-9]*$ ]] || epsweep_usage "launch/mpirun.sh RANKS ARGS... (see epsweep --help)"
ranks=$1
shift
program=${EPSWEEP_PROGRAM:-$epsweep_build/epsweep}
[ -x "$program" ] || epsweep_fail "$program is not built yet: run launch/quickstart or launch/test"
command -v mpirun >/dev/null || epsweep_fail "mpirun is missing: apt-get install openmpi-bin"

if [ -z "${EPSWEEP_MPIRUN_ARGS:-}" ]; then
  epsweep_export_local_mpi
  trap 'rm -rf "$epsweep_shm_dir"' EXIT
  share=$(($(nproc) / ranks))
  export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$((share > 0 ? share : 1))}
else
  epsweep_export_mpi
fi
status=0
# shellcheck disable=SC2086  # options are split on purpose
epsweep_run_until_stopped mpirun -q -np "$ranks" ${EPSWEEP_MPIRUN_ARGS:-} "$program" "$@" || status=$?
exit "$status"
