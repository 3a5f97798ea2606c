#!/usr/bin/env bash
# Helm for tests of the chart, built from its Go modules, which are pinned by helm/go.sum. It needs Go 1.26 or later and no containers.
#
#   helm.sh build          builds it once and prints its path (about 4 minutes on two idle cores)
#   helm.sh binary         prints its path; exit status 1 when it is not built
#   helm.sh check          lints the chart and renders it with every file of deploy/helm/examples
#   helm.sh ARGUMENT...    runs it
#
# NEREID_HELM_CACHE is the folder of the binaries (default ~/.cache/nereid/helm), NEREID_HELM_PARALLEL the number of compilers (2).
set -euo pipefail
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
sources=$here/helm
version=$(sed -n 's/^\thelm\.sh\/helm\/v[0-9]* \(v[0-9.]*\).*/\1/p' "$sources/go.mod" | head -n 1)
sum=$(cat "$sources/go.mod" "$sources/go.sum" | sha256sum | cut -c 1-12)
cache=${NEREID_HELM_CACHE:-$HOME/.cache/nereid/helm}
helm=$cache/${version#v}-$sum/helm

fail() {
    echo "helm.sh: $*" >&2
    exit 1
}

build() {
    [ ! -x "$helm" ] || return 0
    command -v go >/dev/null || fail "go is not on the PATH (expected: Go 1.26 or later)"
    mkdir -p "$(dirname "$helm")"
    local major=${version%%.*}
    (
        cd "$sources"
        CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS="-mod=readonly -buildvcs=false -trimpath" go build -p "${NEREID_HELM_PARALLEL:-2}" \
            -ldflags "-s -w -X helm.sh/helm/$major/internal/version.version=$version" -o "$helm.$$" "helm.sh/helm/$major/cmd/helm"
    )
    mv "$helm.$$" "$helm"
}

# Everything that the chart can make must render; lint fails on warnings too.
check() {
    local root chart values
    root=$(cd "$here/../.." && pwd)
    chart=$root/deploy/helm/nereid
    "$helm" lint --strict --quiet "$chart"
    for values in "$root"/deploy/helm/examples/*.yaml; do
        "$helm" lint --strict --quiet --values "$values" "$chart"
        "$helm" template nereid "$chart" --namespace nereid --values "$values" >/dev/null || fail "$values does not render"
    done
}

case "${1:-}" in
    build) build && echo "$helm" ;;
    binary) [ -x "$helm" ] && echo "$helm" ;;
    "")
        sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    *)
        [ -x "$helm" ] || fail "helm is not built (run: testing/kubernetes/helm.sh build)"
        if [ "$1" = check ]; then check; else exec "$helm" "$@"; fi
        ;;
esac
