#!/bin/sh
# Ten thousand models on a hundred pods in virtual time, by the placement of Nereid and by other rules:
#     testing/fleet/run.sh [--small] [--seed=NUMBER] [FOLDER]
# prints the table of docs/KUBERNETES.md and draws fleet.svg into FOLDER. One thread, about a minute.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH= cd -- "$here/../.." && pwd)
if [ ! -d "$here/target/classes" ]; then
    (cd "$root" && ./mvnw -B -q -Pquick -DskipTests -pl testing/fleet -am package)
fi
classpath=$here/target/classes
for module in control/placement control/autoscaling control/api foundation/base; do
    classpath=$classpath:$root/$module/target/classes
done
exec java -cp "$classpath" io.nereid.testing.fleet.FleetMain "$@"
