# shellcheck shell=bash
# Sourced by the other scripts: where the project is, its packages, and what MPI needs to be told.

epsweep_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
epsweep_build="$epsweep_root/build/cpu"

epsweep_packages=(
  g++ cmake ninja-build git procps
  openmpi-bin libopenmpi-dev libyaml-cpp-dev libspdlog-dev libfmt-dev libcli11-dev
  nlohmann-json3-dev libdnnl-dev libgtest-dev libgmock-dev
)

epsweep_cutlass_package=nvidia-cutlass==4.2.0.0

epsweep_fail() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

# A mistake in the arguments, with the code that epsweep has for it.
epsweep_usage() {
  echo "usage: $*" >&2
  exit 2
}

# Installs what is missing; says in one line what to do where it may not.
epsweep_install_packages() {
  command -v dpkg-query >/dev/null ||
    epsweep_fail "needs Debian or Ubuntu; elsewhere install the like of: ${epsweep_packages[*]}"
  local missing=() package
  for package in "${epsweep_packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
      missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! { command -v sudo && sudo -v; } >/dev/null 2>&1; then
      epsweep_fail "missing packages; ask an administrator for: apt-get install ${missing[*]}"
    fi
    as_root=(sudo)
  fi
  echo "installing: ${missing[*]}"
  local log
  log=$(mktemp)
  if ! {
    "${as_root[@]}" apt-get update -qq &&
      "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}"
  } >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    epsweep_fail "could not install: ${missing[*]} (whole output: $log)"
  fi
  rm -f "$log"
}

# Puts CUTLASS's headers into build/cutlass, where the CUDA engine can be built and they are not there
# yet. Without them one kernel refuses, so a failure is a line and no more.
epsweep_fetch_cutlass() {
  local package=$epsweep_cutlass_package folder="$epsweep_root/build/cutlass" log
  command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ] || return 0
  [ ! -d "$folder" ] || return 0
  if ! python3 -m pip --version >/dev/null 2>&1; then
    echo "note: no pip for python3, so no CUTLASS kernels (pip install --no-deps $package)"
    return 0
  fi
  log=$(mktemp)
  rm -rf "$folder.part"
  if timeout 300 python3 -m pip install --quiet --disable-pip-version-check --no-input --no-deps \
    --no-compile --target "$folder.part" "$package" >"$log" 2>&1; then
    mv "$folder.part" "$folder"
  else
    rm -rf "$folder.part"
    echo "note: could not fetch $package, so no CUTLASS kernels: $(tail -n 1 "$log")"
  fi
  rm -f "$log"
}

# epsweep_configure_and_build [CMAKE_OPTION...] -- [TARGET...]
epsweep_configure_and_build() {
  local options=() log
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  shift
  log=$(mktemp)
  (cd "$epsweep_root" && cmake --preset cpu "${options[@]}") >"$log" 2>&1 || {
    cat "$log" >&2
    epsweep_fail "configuring failed"
  }
  sed -n 's/^-- \(CUDA engine:.*\)/\1/p' "$log"
  rm -f "$log"
  cmake --build "$epsweep_build" ${1:+--target "$@"} || epsweep_fail "building failed"
}

# Runs a command and returns its exit code, or 128+N where signal N stopped it. Without this a signal to
# the script alone would leave mpirun running and remove the memory its ranks share; and Ctrl-C, which
# reaches a whole process group, would tell mpirun twice.
epsweep_run_until_stopped() {
  local pid='' status signal stopped_by=0 interrupted
  for signal in HUP INT TERM; do
    # shellcheck disable=SC2064  # the number is meant now, the process then
    trap "stopped_by=$(kill -l "$signal"); interrupted=1; "'kill -TERM -- "-$pid" 2>/dev/null || true' \
      "$signal"
  done
  set -m # a process group of its own
  "$@" </dev/null &
  pid=$!
  set +m
  [ "$stopped_by" -eq 0 ] || kill -TERM -- "-$pid" 2>/dev/null || true # stopped before there was a pid
  while
    interrupted=0
    status=0
    wait "$pid" || status=$?
    [ "$interrupted" -eq 1 ] # then the status is that of the wait
  do :; done
  trap - HUP INT TERM
  [ "$status" -eq 0 ] || [ "$stopped_by" -eq 0 ] || status=$((128 + stopped_by))
  return "$status"
}

# What every Open MPI launch of ours needs, whoever starts it. Values already set win.
epsweep_export_mpi() {
  # Waiting ranks give up their core: 0.1 ms against 30 ms per exchange with more ranks than cores.
  export OMPI_MCA_mpi_yield_when_idle=${OMPI_MCA_mpi_yield_when_idle:-1}
  export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
  if [ "$(id -u)" -eq 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  fi
}

# For launches that stay on this machine: no network, any number of ranks, and a shared-memory
# folder of their own, so that what killed ranks leave behind can be removed without harm to other
# jobs. The caller removes $epsweep_shm_dir.
epsweep_export_local_mpi() {
  epsweep_export_mpi
  export OMPI_MCA_rmaps_base_oversubscribe=${OMPI_MCA_rmaps_base_oversubscribe:-1}
  export OMPI_MCA_hwloc_base_binding_policy=${OMPI_MCA_hwloc_base_binding_policy:-none}
  export OMPI_MCA_btl=${OMPI_MCA_btl:-vader,self}
  export OMPI_MCA_oob_tcp_if_include=${OMPI_MCA_oob_tcp_if_include:-lo}
  epsweep_shm_dir=$(mktemp -d /dev/shm/epsweep.XXXXXX) ||
    epsweep_fail "cannot make a folder in /dev/shm, which the ranks share memory through"
  export OMPI_MCA_btl_vader_backing_directory=$epsweep_shm_dir
}
