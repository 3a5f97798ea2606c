#!/bin/sh
# Kills the server with the control plane again and again, under load:      testing/chaos.sh [KILLS]
# 200 kills take about a quarter of an hour on two cores. Exit status 1: an acknowledged change was lost, a service did not
# come back, or a request failed while the server was up.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
export NEREID_CHAOS_KILLS="${1:-200}"
cd "$root"
exec ./mvnw -B -ntp -Pquick -pl testing/conformance -am -Dtest=ChaosTest -Dsurefire.failIfNoSpecifiedTests=false test
