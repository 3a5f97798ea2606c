#!/bin/sh
# Measures the operator:     testing/kubernetes/benchmark.sh [NUMBER OF SERVICES [SECONDS OF QUIET]]
# Builds the distribution and the control plane if they are missing. With 1,000 services it takes about twelve minutes on two cores.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH= cd -- "$here/../.." && pwd)
"$here/cluster.sh" build >/dev/null
(cd "$root" && ./mvnw -B -q -Pquick -DskipTests -pl apps/nereid,testing/kubernetes,examples -am package) >&2
distribution=$(ls -d "$root"/apps/nereid/target/dist/nereid-*)
. "$distribution/bin/find-java.sh"
classpath=
for jar in "$here"/target/nereid-testing-kubernetes-*.jar "$distribution"/lib/*.jar "$distribution"/lib/kubernetes/*.jar; do
    classpath=${classpath:+$classpath:}$jar
done
# As an image has it.
NEREID_CDS=$here/target/archives
export NEREID_CDS
"$distribution/bin/nereid" cds operator
cd "$root"
exec "$JAVA" -Xmx512m -cp "$classpath" io.nereid.testing.kubernetes.OperatorBenchmark "$distribution" "${1:-1000}" "${2:-300}"
