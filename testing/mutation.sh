#!/bin/sh
# Mutation tests with PIT:      testing/mutation.sh MODULE CLASSES TESTS
# PIT changes CLASSES one instruction at a time and runs TESTS on each change; a change that no test notices is a hole in the
# tests. CLASSES and TESTS are patterns, separated by commas. It takes minutes, so it is not part of CI. For example:
#     testing/mutation.sh serving/lifecycle 'io.nereid.lifecycle.serving.*' 'io.nereid.lifecycle.*'
#     testing/mutation.sh serving/scheduling 'io.nereid.scheduling.queue.RequestQueue' 'io.nereid.scheduling.*'
# The report lies in MODULE/target/pit-reports.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
if [ $# -ne 3 ]; then
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
cd "$root"
rm -rf "$1/target/pit-reports"
./mvnw -B -ntp -q -Pquick -pl "$1" -am test-compile org.pitest:pitest-maven:mutationCoverage \
    -DtargetClasses="$2" -DtargetTests="$3"
report=$1/target/pit-reports/mutations.csv
echo "changes by what became of them:"
cut -d, -f6 "$report" | sort | uniq -c
echo "changes that no test noticed:"
grep -E ',(SURVIVED|NO_COVERAGE),' "$report" | awk -F, '{ n = split($3, m, "."); print $1 ":" $5 "  " m[n] "  " $6 }' | sort
