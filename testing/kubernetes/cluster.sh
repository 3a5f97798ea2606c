#!/usr/bin/env bash
# A real Kubernetes control plane on loopback for tests: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl,
# built from their Go modules into one binary. It needs Go 1.25 or later and openssl; no containers, no root.
#
#   cluster.sh build                      builds the binary once and prints its path (about 10 minutes on two idle cores)
#   cluster.sh binary                     prints the path of the binary; exit status 1 when it is not built
#   cluster.sh start DIR [--owner PID]    starts a cluster whose state is in DIR and prints the path of its kubeconfig; with an owner,
#                                         the cluster stops when that process has ended
#   cluster.sh stop DIR                   stops it
#   cluster.sh restart-api-server DIR     stops the API server and starts it again
#   cluster.sh kubectl DIR ARGUMENT...    runs kubectl against it
#
# NEREID_KUBE_CACHE is the folder of the binaries (default ~/.cache/nereid/kube), NEREID_KUBE_PARALLEL the number of compilers (2).
set -euo pipefail
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
sources=$here/control-plane
version=$(sed -n 's/.*k8s\.io\/kubernetes v\([0-9.]*\)$/\1/p' "$sources/go.mod" | head -n 1)
sum=$(cat "$sources/go.mod" "$sources/go.sum" "$sources/main.go" | sha256sum | cut -c 1-12)
cache=${NEREID_KUBE_CACHE:-$HOME/.cache/nereid/kube}
kube=$cache/$version-$sum/kube

fail() {
    echo "cluster.sh: $*" >&2
    exit 1
}

build() {
    [ ! -x "$kube" ] || return 0
    command -v go >/dev/null || fail "go is not on the PATH (expected: Go 1.25 or later)"
    mkdir -p "$(dirname "$kube")"
    local server=k8s.io/component-base/version client=k8s.io/client-go/pkg/version minor=${version#*.}
    (
        cd "$sources"
        CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS="-mod=readonly -buildvcs=false -trimpath" go build -p "${NEREID_KUBE_PARALLEL:-2}" \
            -ldflags "-s -w -X $server.gitVersion=v$version -X $server.gitMajor=1 -X $server.gitMinor=${minor%%.*} -X $client.gitVersion=v$version" \
            -o "$kube.$$" .
    )
    mv "$kube.$$" "$kube"
}

# free_ports <count>: base of a row of ports that nothing listens on.
free_ports() {
    local base i
    while :; do
        base=$((20000 + RANDOM % 10000))
        for ((i = 0; i < $1; i++)); do
            ! (exec 3<>"/dev/tcp/127.0.0.1/$((base + i))") 2>/dev/null || continue 2
        done
        echo "$base"
        return
    done
}

certificates() {
    local pki=$1
    mkdir -p "$pki"
    (
        cd "$pki"
        umask 077
        openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=test -keyout ca.key -out ca.crt
        openssl genrsa -out accounts.key 2048
        printf 'subjectAltName=DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:10.0.0.1\n' >names
        local name subject
        for name in server admin; do
            subject=/CN=kube-apiserver
            [ "$name" = server ] || subject=/O=system:masters/CN=admin
            openssl req -newkey rsa:2048 -nodes -subj "$subject" -keyout "$name.key" -out "$name.csr"
            openssl x509 -req -in "$name.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -extfile names -out "$name.crt"
        done
    ) >"$pki/openssl.log" 2>&1 || fail "openssl made no certificates: $(tail -n 1 "$pki/openssl.log")"
}

kubeconfig() {
    local pki=$dir/pki
    (
        umask 077
        cat >"$dir/kubeconfig" <<EOF
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://127.0.0.1:$api", certificate-authority-data: $(base64 -w 0 "$pki/ca.crt")}}]
users: [{name: admin, user: {client-certificate-data: $(base64 -w 0 "$pki/admin.crt"), client-key-data: $(base64 -w 0 "$pki/admin.key")}}]
contexts: [{name: test, context: {cluster: test, user: admin}}]
current-context: test
EOF
    )
}

# launch <program> <argument...>: in a session of its own, so that a signal to the caller's group does not reach it.
launch() {
    local name=$1
    shift
    setsid "$kube" "$name" "$@" >"$dir/$name.log" 2>&1 </dev/null &
    echo $! >"$dir/$name.pid"
}

# wait_for <program> <path>: until the program says that it is ready.
wait_for() {
    local i
    for ((i = 0; i < 1200; i++)); do
        if "$kube" kubectl --kubeconfig "$dir/kubeconfig" get --raw "$2" >/dev/null 2>&1; then return 0; fi
        kill -0 "$(cat "$dir/$1.pid")" 2>/dev/null || fail "$1 ended: $(tail -n 3 "$dir/$1.log")"
        sleep 0.1
    done
    fail "$1 was not ready after two minutes: $(tail -n 3 "$dir/$1.log")"
}

start() {
    mkdir -p "$1"
    dir=$(cd "$1" && pwd)
    local owner=
    [ "${2:-}" != --owner ] || owner=$3
    [ -x "$kube" ] || fail "the control plane is not built (run: testing/kubernetes/cluster.sh build)"
    [ ! -f "$dir/kube-apiserver.pid" ] || fail "a cluster runs in $dir already"
    local base etcd peer
    base=$(free_ports 5)
    api=$base etcd=$((base + 1)) peer=$((base + 2))
    local pki=$dir/pki
    [ -f "$pki/admin.crt" ] || certificates "$pki"
    kubeconfig
    launch etcd --data-dir="$dir/etcd" --unsafe-no-fsync --log-level=warn \
        --listen-client-urls="http://127.0.0.1:$etcd" --advertise-client-urls="http://127.0.0.1:$etcd" \
        --listen-peer-urls="http://127.0.0.1:$peer" --initial-advertise-peer-urls="http://127.0.0.1:$peer" \
        --initial-cluster="default=http://127.0.0.1:$peer"
    api_server
    launch kube-controller-manager --kubeconfig="$dir/kubeconfig" --leader-elect=false --bind-address=127.0.0.1 --secure-port=$((base + 3)) \
        --service-account-private-key-file="$pki/accounts.key" --root-ca-file="$pki/ca.crt" --use-service-account-credentials=false \
        --kube-api-qps=500 --kube-api-burst=1000 --concurrent-deployment-syncs=20 --concurrent-replicaset-syncs=20 ${NEREID_KUBE_MANAGER_OPTIONS:-}
    launch kube-scheduler --kubeconfig="$dir/kubeconfig" --leader-elect=false --bind-address=127.0.0.1 --secure-port=$((base + 4)) \
        --kube-api-qps=500 --kube-api-burst=1000
    if [ -n "$owner" ]; then
        (while kill -0 "$owner" 2>/dev/null; do sleep 1; done; stop "$dir") >/dev/null 2>&1 </dev/null &
        disown
    fi
    echo "$dir/kubeconfig"
}

# The address and options of the API server are kept, so that a test can start it again after it has stopped it.
api_server() {
    local pki=$dir/pki
    echo "$api $etcd" >"$dir/ports"
    launch kube-apiserver --etcd-servers="http://127.0.0.1:$etcd" --bind-address=127.0.0.1 --advertise-address=127.0.0.1 \
        --secure-port="$api" --endpoint-reconciler-type=none --tls-cert-file="$pki/server.crt" --tls-private-key-file="$pki/server.key" \
        --client-ca-file="$pki/ca.crt" --service-account-issuer=https://kubernetes.default.svc \
        --service-account-key-file="$pki/accounts.key" --service-account-signing-key-file="$pki/accounts.key" \
        --authorization-mode=Node,RBAC --service-cluster-ip-range=10.0.0.0/16 --allow-privileged=true --event-ttl=1h \
        --max-requests-inflight=2000 --max-mutating-requests-inflight=1000 ${NEREID_KUBE_API_OPTIONS:-}
    wait_for kube-apiserver /readyz
}

# alive <pid>: whether it runs. One that has ended stays a zombie until its parent asks for it, which may take seconds.
alive() {
    local state
    state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) || return 1
    [ "$state" != Z ]
}

end() {
    local file=$1/$2.pid pid i
    [ -f "$file" ] || return 0
    pid=$(cat "$file")
    rm -f "$file"
    kill "$pid" 2>/dev/null || return 0
    for ((i = 0; i < 500; i++)); do
        alive "$pid" || return 0
        sleep 0.02
    done
    kill -9 "$pid" 2>/dev/null || true
}

stop() {
    local name
    for name in kube-scheduler kube-controller-manager kube-apiserver etcd; do end "$1" "$name"; done
}

case "${1:-}" in
    build) build && echo "$kube" ;;
    binary) [ -x "$kube" ] && echo "$kube" ;;
    start) shift && start "$@" ;;
    stop) stop "$2" ;;
    restart-api-server)
        dir=$2
        read -r api etcd <"$dir/ports"
        end "$dir" kube-apiserver
        api_server
        ;;
    kubectl)
        dir=$2
        shift 2
        exec "$kube" kubectl --kubeconfig "$dir/kubeconfig" "$@"
        ;;
    *)
        sed -n '2,14s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
