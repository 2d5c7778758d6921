#!/bin/bash
# tests/aarch64.sh TSC BUILD_FOLDER PYTHON: the models of models/ compiled for AArch64 and run by tsrun
# and libtsrt built for it, under qemu-user, against the recorded results. Exit 77 (skipped) where a
# cross compiler, qemu-aarch64 or jansson for arm64 is missing: ./setup.sh --aarch64 installs them.
set -euo pipefail
tsc=$1 build=$2/aarch64 python=$3
source=$(cd "$(dirname "$0")/.." && pwd)
pkg=/usr/lib/aarch64-linux-gnu/pkgconfig
for tool in aarch64-linux-gnu-gcc qemu-aarch64 "$pkg/jansson.pc"; do
    command -v "$tool" >/dev/null || [ -e "$tool" ] || { echo "skipped: no $tool"; exit 77; }
done
PKG_CONFIG_LIBDIR=$pkg cmake -G Ninja -S "$source" -B "$build" -DCMAKE_SYSTEM_NAME=Linux \
    -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DTS_COMPILER=OFF >/dev/null
cmake --build "$build" >/dev/null
printf '#!/bin/sh\nexec qemu-aarch64 "%s/bin/tsrun" "$@"\n' "$build" >"$build/tsrun"
chmod +x "$build/tsrun"
"$python" "$source/tests/models/run_models.py" --cpu=aarch64 "$tsc" "$build/tsrun" "$source/models"
