#!/bin/bash
# setup.sh: installs what is needed on Debian 12, builds, and runs the demo: a reader of handwritten
# digits, compiled from models/digits and embedded in the C program of docs/examples.
#
#   ./setup.sh                 everything
#   ./setup.sh --dependencies  only installs
#   ./setup.sh --build         only builds (into build/, or $BUILD)
#   ./setup.sh --nvrtc         only installs NVRTC for the tests, into the build folder, where the
#                              machine has none: CUDA kernels are then compiled (no GPU is needed)
#   ./setup.sh --aarch64       only installs a cross compiler and qemu: the models then run for AArch64
set -euo pipefail
cd "$(dirname "$0")"
build=${BUILD:-build}
what=${1:-all}

packages=(gcc g++ cmake ninja-build pkg-config flex bison llvm-19-dev lld-19 check libjansson-dev
    zlib1g-dev libopenblas-dev opencl-headers ocl-icd-libopencl1 pocl-opencl-icd
    python3 python3-numpy python3-pip)

install_dependencies() {
    local missing=() as_root=()
    for p in "${packages[@]}"; do
        dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
    done
    [ ${#missing[@]} -eq 0 ] && return
    echo "installing: ${missing[*]}"
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends \
        "${missing[@]}"
}

install_nvrtc() {
    ldconfig -p | grep -q 'libnvrtc\.so\.1[23]' && return
    compgen -G "$build/nvrtc/nvidia/*/lib/libnvrtc.so.*" >/dev/null && return
    /usr/bin/python3 -m pip install --quiet --no-deps --target "$build/nvrtc" nvidia-cuda-nvrtc
}

install_aarch64() {
    local as_root=()
    [ -e /usr/lib/aarch64-linux-gnu/pkgconfig/jansson.pc ] && command -v qemu-aarch64 >/dev/null &&
        command -v aarch64-linux-gnu-gcc >/dev/null && return
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    "${as_root[@]}" dpkg --add-architecture arm64
    "${as_root[@]}" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends \
        gcc-aarch64-linux-gnu libc6-dev-arm64-cross libc6:arm64 libjansson-dev:arm64 qemu-user
}

build_all() {
    cmake -S . -B "$build" -G Ninja
    cmake --build "$build"
}

run_demo() {
    "$build"/bin/tsc models/digits/digits.py --weights models/digits/digits.safetensors \
        --input 'image:float32[N,1,8,8]' -o "$build"/digits.tsm
    "$build"/bin/digits "$build"/digits.tsm models/digits/images/*.pgm
}

case $what in
all) install_dependencies && build_all && run_demo ;;
--dependencies) install_dependencies ;;
--build) build_all ;;
--nvrtc) install_nvrtc ;;
--aarch64) install_aarch64 ;;
*) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
