#!/usr/bin/env bash
# Coverage-guided fuzzing with Jazzer:      testing/fuzz.sh [TARGET...] [--share K/N] [--seconds N] [--runs N | --total N] [--seed N] [--jobs N]
# Without a target, all of them; --list prints their names. --share 2/4 runs the second of four shares of them: each target starts a JVM
# and instruments Nereid's classes, which takes ten seconds. --seconds is the time for each target (60 when nothing else ends it),
# --runs the number of inputs for each target, --total that of all targets together, shared equally; what is reached first ends a
# target. --seed makes the choice of inputs repeatable. --jobs runs as many targets at a time (default 1).
# The inputs that a run finds worth keeping lie in testing/fuzz/target/corpus/TARGET and are the start of the next run. A finding lies
# in testing/fuzz/target/findings/TARGET, with its stack trace in TARGET.log beside it; a target goes on after a finding, to 20 of them.
# NEREID_FUZZ_OPTIONS has further options of the JVM. Exit status 1: there are findings.
set -euo pipefail
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
target=$root/testing/fuzz/target

names=()
seconds=
runs=
total=
seed=
jobs=1
share=
list=
while [ $# -gt 0 ]; do
    case $1 in
        --seconds | --runs | --total | --seed | --jobs)
            [[ ${2:-} =~ ^[1-9][0-9]{0,11}$ ]] || { echo "fuzz.sh: $1 needs a whole number above 0, not '${2:-}'" >&2; exit 2; }
            declare "${1#--}=$2"
            shift
            ;;
        --share)
            [[ ${2:-} =~ ^[1-9][0-9]?/[1-9][0-9]?$ && ${2%/*} -le ${2#*/} ]] || { echo "fuzz.sh: --share needs K/N with K from 1 to N, not '${2:-}'" >&2; exit 2; }
            share=$2
            shift
            ;;
        --list) list=yes ;;
        -*)
            sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
            exit 2
            ;;
        *) names+=("$1") ;;
    esac
    shift
done
[ -n "$seconds$runs$total" ] || seconds=60

if [ -z "${NEREID_FUZZ_BUILT:-}" ]; then
    (cd "$root" && ./mvnw -B -ntp -q -Pquick -pl testing/fuzz -am -DskipTests process-test-classes)
fi
java=java
[ -z "${JAVA_HOME:-}" ] || java=$JAVA_HOME/bin/java
classes=$target/test-classes:$(cat "$target/classpath.txt")
# Temporary files of the targets are kept in memory where the system has a folder for that.
temporary=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")/nereid-fuzz.XXXXXX")
trap 'rm -rf "$temporary"' EXIT
options=(-Xmx1g -XX:+UseSerialGC "-Djava.io.tmpdir=$temporary" -Dio.netty.allocator.smallCacheSize=0
    -Dio.netty.allocator.normalCacheSize=0 -Dio.netty.leakDetection.level=disabled)
# Options of newer JDKs: the agent of the fuzzer is loaded while the JVM runs, and it and Netty use native memory.
for option in -XX:+EnableDynamicAgentLoading --enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow; do
    "$java" "$option" -version >/dev/null 2>&1 && options+=("$option")
done
# shellcheck disable=SC2206 # several options, separated by spaces
options+=(${NEREID_FUZZ_OPTIONS:-})

cd "$root"
all=$("$java" "${options[@]}" -cp "$classes" io.nereid.fuzz.Fuzzer names)
if [ -n "$list" ]; then
    echo "$all"
    exit 0
fi
[ ${#names[@]} -gt 0 ] || mapfile -t names <<<"$all"
[ -z "$share" ] || mapfile -t names < <(printf '%s\n' "${names[@]}" | awk -v k="${share%/*}" -v n="${share#*/}" 'NR % n == k % n')
[ -n "${names[*]}" ] || { echo "fuzz.sh: share $share has no target" >&2; exit 2; }
for name in "${names[@]}"; do
    grep -qxF -- "$name" <<<"$all" || { echo "fuzz.sh: there is no target '$name' (expected one of: $(xargs <<<"$all"))" >&2; exit 2; }
done
[ -z "$total" ] || runs=$(((total + ${#names[@]} - 1) / ${#names[@]}))

row() {
    printf '%-22s %12s %10s %9s %9s %9s\n' "$@"
}

# fuzz <target>: runs one target, prints its row, and leaves its inputs and findings in $temporary.
fuzz() {
    local name=$1 corpus=$target/corpus/$1 findings=$target/findings/$1 log=$target/findings/$1.log code=0 began took
    local folders=("$target/corpus/$1" "$target/seeds/$1") inputs coverage count
    rm -rf "$findings"
    mkdir -p "$corpus" "$findings"
    "$java" "${options[@]}" -cp "$classes" io.nereid.fuzz.Fuzzer seeds "$name" "$target/seeds/$name"
    if [ -d "$root/testing/fuzz/src/test/resources/corpus/$name" ]; then
        folders+=("$root/testing/fuzz/src/test/resources/corpus/$name")
    fi
    began=$(date +%s)
    # The sanitizers of Jazzer look for uses of interfaces that these targets do not have; the targets have checks of their own.
    "$java" "${options[@]}" -cp "$classes" com.code_intelligence.jazzer.Jazzer \
        --target_class=io.nereid.fuzz.Fuzzer --target_args="$name" \
        '--instrumentation_includes=io.nereid.**:org.apache.commons.compress.**:io.netty.handler.codec.http2.**' \
        '--instrumentation_excludes=io.nereid.fuzz.**' '--custom_hook_excludes=**' \
        --keep_going=20 --reproducer_path="$temporary" -artifact_prefix="$findings/" \
        ${seconds:+-max_total_time=$seconds} ${runs:+-runs=$runs} ${seed:+-seed=$seed} \
        -rss_limit_mb=3000 -timeout=60 -max_len=20000 -print_final_stats=1 "${folders[@]}" >"$log" 2>&1 || code=$?
    took=$(($(date +%s) - began))
    inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
    coverage=$({ grep -ao ' cov: [0-9]*' "$log" || true; } | tail -n 1 | tr -dc 0-9)
    count=$(find "$findings" -type f ! -name 'slow-unit-*' | wc -l)
    # Without a file, the fuzzer itself has failed.
    [ "$code" = 0 ] || [ "$count" -gt 0 ] || count=1
    row "$name" "${inputs:-0}" "$((${inputs:-0} / (took > 0 ? took : 1)))" "${coverage:-0}" \
        "$(find "$corpus" -type f | wc -l)" "$count"
    echo "${inputs:-0} $count" >"$temporary/result-$name"
}

row target inputs 'per second' coverage corpus findings
for name in "${names[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
        wait -n || true
    done
    fuzz "$name" &
done
wait
read -r sum found < <(cat "$temporary"/result-* | awk '{ inputs += $1; findings += $2 } END { print inputs, findings }')
row total "$sum" '' '' '' "$found"
if [ "$found" -gt 0 ] || [ "$(find "$temporary" -name 'result-*' | wc -l)" -lt ${#names[@]} ]; then
    echo "the findings lie in $target/findings; NAME.log has the stack traces" >&2
    exit 1
fi
