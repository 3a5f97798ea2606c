#!/usr/bin/env bash
# Measures Nereid beside other model servers, which it installs from PyPI into target/peers: testing/peers/run.sh --help, README.md.
# Ends with 77, and the reason in the last line, where no peer can be installed.
set -euo pipefail
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH= cd -- "$here/../.." && pwd)
built() {
    for d in "$root"/apps/nereid/target/dist/nereid-*; do
        if [ -x "$d/bin/nereid" ]; then echo "$d"; return; fi
    done
}
command -v python3 >/dev/null || { echo "SKIPPED all: python3 is not on the PATH"; exit 77; }
NEREID_DISTRIBUTION=${NEREID_DISTRIBUTION:-$(built)}
if [ -z "$NEREID_DISTRIBUTION" ]; then
    echo "peers: building (once)" >&2
    (cd "$root" && ./mvnw -B -ntp -q -Pquick -DskipTests -pl apps/nereid,examples -am package)
    NEREID_DISTRIBUTION=$(built)
fi
. "$NEREID_DISTRIBUTION/bin/find-java.sh"
export NEREID_DISTRIBUTION PEERS_JAVA=$JAVA PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/compare.py" "$@"
