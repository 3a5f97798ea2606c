#!/usr/bin/env bash
# Checks deploy/monitoring with a real Prometheus and promtool, and deploy/compose against the schema of Compose. Ends with 77, and the
# reason in the last line, where Prometheus is not installed.
set -euo pipefail
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH= cd -- "$here/../.." && pwd)
cache=$here/../target/monitoring
mkdir -p "$cache"
if [ ! -x "$cache/venv/bin/python" ]; then python3 -m venv "$cache/venv"; fi
if "$cache/venv/bin/pip" install -q --disable-pip-version-check PyYAML==6.0.3 jsonschema==4.25.1 &&
    "$cache/venv/bin/pip" download -q --disable-pip-version-check --no-deps --no-binary :none: -d "$cache" docker-compose==1.29.2; then
    (cd "$cache" && "$cache/venv/bin/python" -m zipfile -e docker_compose-1.29.2-py2.py3-none-any.whl compose)
    "$cache/venv/bin/python" "$here/compose.py" "$cache/compose/compose/config/compose_spec.json"
else
    echo "SKIPPED deploy/compose: pip could not install PyYAML and jsonschema, or fetch the schema"
fi
for built in "$root"/apps/nereid/target/dist/nereid-*; do distribution=$built; done
[ -x "$distribution/bin/nereid" ] || { (cd "$root" && ./mvnw -B -ntp -q -Pquick -DskipTests -pl apps/nereid,examples -am package) && distribution=$(ls -d "$root"/apps/nereid/target/dist/nereid-*); }
exec python3 "$here/check.py" "$distribution"
