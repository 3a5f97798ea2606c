#!/usr/bin/env bash
# install-perf-analyzer.sh DIRECTORY PIP: installs a runnable perf_analyzer as DIRECTORY/perf_analyzer. Its wheel requires glibc 2.38; on
# an older Debian the C library of the next release is unpacked beside it, for this program only.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
directory=$(mkdir -p "$1" && cd "$1" && pwd)
pip=$2
[ -x "$directory/perf_analyzer" ] && exit 0
cd "$directory"
"$pip" download -q --disable-pip-version-check --no-deps --only-binary=:all: --platform manylinux_2_38_x86_64 --python-version 3.12 \
    -d wheels perf-analyzer==2.60.0
python3 -m zipfile -e wheels/perf_analyzer-*.whl wheel
# It requires the CUDA runtime before it uses shared memory of any kind: the simulated one.
command -v gcc >/dev/null && "$here/../gpu/simulated/build.sh" "$directory"
program=$directory/wheel/perf_analyzer/bin/perf_analyzer
chmod +x "$program"
if "$program" --version >/dev/null 2>&1; then
    printf '#!/bin/sh\nLD_LIBRARY_PATH="%s" exec "%s" "$@"\n' "$directory" "$program" >perf_analyzer
    chmod +x perf_analyzer
    exit 0
fi
command -v apt-get >/dev/null || { echo "glibc is older than 2.38 and there is no apt-get to fetch a newer one"; exit 1; }
mkdir -p apt/lists/partial apt/cache/archives/partial debs root
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -f "$keyring" ] || { echo "no Debian keyring to check a newer glibc with"; exit 1; }
echo "deb [signed-by=$keyring] http://deb.debian.org/debian trixie main" >apt/sources.list
cat >apt/apt.conf <<CONF
Dir::Etc::sourcelist "$directory/apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::lists "$directory/apt/lists";
Dir::Cache "$directory/apt/cache";
Dir::State::status "/dev/null";
APT::Sandbox::User "root";
CONF
export APT_CONFIG=$directory/apt/apt.conf
apt-get -qq update
(cd debs && apt-get -qq download libc6 libstdc++6 libgcc-s1 zlib1g libssl3t64 libzstd1)
for deb in debs/*.deb; do dpkg -x "$deb" root; done
loader=$(find "$directory/root" -name ld-linux-x86-64.so.2 -type f | head -n 1)
libraries=$(find "$directory/root" -name 'lib*.so*' -printf '%h\n' | sort -u | paste -sd:)
printf '#!/bin/sh\nLD_LIBRARY_PATH= exec "%s" --library-path "%s" "%s" "$@"\n' "$loader" "$directory:$libraries" "$program" >perf_analyzer
chmod +x perf_analyzer
./perf_analyzer --version
