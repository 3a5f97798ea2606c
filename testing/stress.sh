#!/bin/sh
# Stress tests of the concurrent classes, with jcstress:      testing/stress.sh [--short|--long] [jcstress arguments]
# --short (the default) takes at most 3 minutes on two cores. --long takes hours: every test in all combinations of
# compilers and JVM modes that jcstress knows, for much longer.
# One test: testing/stress.sh --short -t LiveServable. Exit status 1: a test observed a forbidden outcome, or failed.
# The reports lie in testing/stress/target/report.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
target=$root/testing/stress/target

mode=--short
case "${1:-}" in
    --short | --long)
        mode=$1
        shift
        ;;
esac
if [ "$mode" = --long ]; then
    set -- -m tough -spinStyle THREAD_SPIN_WAIT "$@"
else
    # One garbage collector, and actors that are compiled in the same way.
    set -- -m quick -f 1 -iters 2 -time 300 -sc false -jvmArgs -XX:+UseSerialGC "$@"
fi

(cd "$root" && ./mvnw -B -ntp -q -Pquick -pl testing/stress -am -DskipTests process-classes)
java=java
[ -z "${JAVA_HOME:-}" ] || java=$JAVA_HOME/bin/java
# jcstress writes its raw results to the working directory.
mkdir -p "$target/report"
cd "$target/report"
rm -f jcstress-results-*
exec "$java" -cp "$target/classes:$(cat "$target/classpath.txt")" org.openjdk.jcstress.Main -r "$target/report" "$@"
