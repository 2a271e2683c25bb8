# Sourced after _environment.sh. `ensure_opencl` provides an OpenCL CPU device and sets what its driver needs.

ensure_opencl() {
    sh "$root/scripts/ensure_opencl" "$environment/bin/python" "$environment/opencl.env" || return 1
    . "$environment/opencl.env"
}
