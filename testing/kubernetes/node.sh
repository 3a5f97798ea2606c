#!/usr/bin/env bash
# A real node for the cluster of the tests: kubelet, containerd and runc, whose pods are containers with limits. It needs root, cgroups
# and Go 1.25 or later; nothing is installed on the machine.
#
#   node.sh check                            exit status 0 when containers can run on this machine; otherwise it prints why not
#   node.sh build                            builds the kubelet and fetches Debian's packages once (about 5 minutes on two idle cores)
#   node.sh start DIR NAME NUMBER OWNER KUBECONFIG IMAGE=ARCHIVE...
#                                            starts a node whose state is in DIR and whose pods have addresses in 10.244.(100 + NUMBER).0/24,
#                                            with images from archives, each of one image. It runs under network.sh, and stops when the
#                                            process OWNER has ended
#   node.sh stop DIR                         ends the containers and the node, and removes what it has made
#   node.sh images DIR                       makes images for it in DIR: pause.tar, the sandbox; model.tar, a model for modelcars
#   node.sh test [PYTEST OPTION...]          runs testing/conformance/clients/test_node.py on two nodes: about five minutes. It ends with 77
#                                            where it cannot run. NEREID_IMAGE is the image as build/release.sh makes it; it is made if absent
#
# NEREID_NODE_CACHE is the folder of the binaries (default ~/.cache/nereid/node), NEREID_KUBE_PARALLEL the number of compilers (2).
set -euo pipefail
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH= cd -- "$here/../.." && pwd)
sources=$here/kubelet
version=$(sed -n 's/.*k8s\.io\/kubernetes v\([0-9.]*\).*/\1/p' "$sources/go.mod" | head -n 1)
sum=$(cat "$sources/go.mod" "$sources/go.sum" | sha256sum | cut -c 1-12)
cache=${NEREID_NODE_CACHE:-$HOME/.cache/nereid/node}/$version-$sum
kubelet=$cache/kubelet system=$cache/system
packages=(containerd containernetworking-plugins busybox-static runc)
# The programs of the packages come first: the kubelet finds mount and others on the PATH.
export PATH=$system/usr/bin:$system/usr/sbin:$PATH

fail() {
    echo "node.sh: $*" >&2
    exit 1
}

# Whether control groups can be made, in each hierarchy of version 1 that the kubelet needs, or in version 2.
control_groups() {
    local controller
    if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
        for controller in cpu memory pids; do
            grep -qw "$controller" /sys/fs/cgroup/cgroup.controllers || { echo "the controller $controller of control groups is absent" && return 1; }
        done
        return
    fi
    for controller in cpu cpuacct cpuset memory pids; do
        [ -d "/sys/fs/cgroup/$controller" ] || { echo "the controller $controller of control groups is absent" && return 1; }
        mkdir "/sys/fs/cgroup/$controller/nereid-check-$$" 2>/dev/null || { echo "control groups of $controller cannot be made" && return 1; }
        rmdir "/sys/fs/cgroup/$controller/nereid-check-$$"
    done
}

check() {
    "$here/network.sh" check || exit 1
    control_groups || exit 1
    [ -x "$kubelet" ] || command -v go >/dev/null || { echo "the kubelet is not built, and go is not on the PATH" && exit 1; }
    [ -d "$system" ] || command -v apt-get >/dev/null || { echo "containerd is not there, and apt-get is not on the PATH" && exit 1; }
}

build() {
    mkdir -p "$cache"
    if [ ! -x "$kubelet" ]; then
        command -v go >/dev/null || fail "go is not on the PATH (expected: Go 1.25 or later)"
        (
            cd "$sources"
            CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS="-mod=readonly -buildvcs=false -trimpath" go build -p "${NEREID_KUBE_PARALLEL:-2}" \
                -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=v$version" -o "$kubelet.$$" k8s.io/kubernetes/cmd/kubelet
        )
        mv "$kubelet.$$" "$kubelet"
    fi
    if [ ! -d "$system" ]; then
        local work=$cache/packages.$$ package
        mkdir -p "$work/system"
        (cd "$work" && apt-get -q -o APT::Sandbox::User=root download "${packages[@]}" >/dev/null) || fail "apt-get cannot download ${packages[*]}"
        for package in "$work"/*.deb; do dpkg-deb --extract "$package" "$work/system"; done
        mv "$work/system" "$system"
        rm -rf "$work"
    fi
}

# Where the kubelet keeps the groups of pods: one directory for each hierarchy.
groups_of() {
    local hierarchy
    if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
        echo "/sys/fs/cgroup/$1"
    else
        for hierarchy in /sys/fs/cgroup/*/; do
            [ ! -L "${hierarchy%/}" ] && [ "${hierarchy%/}" != /sys/fs/cgroup/unified ] && echo "$hierarchy$1"
        done
    fi
}

make_groups() {
    local group file
    [ ! -f /sys/fs/cgroup/cgroup.controllers ] || echo "+cpu +cpuset +memory +pids" >/sys/fs/cgroup/cgroup.subtree_control
    for group in $(groups_of "$1"); do
        mkdir -p "$group"
        for file in cpuset.cpus cpuset.mems; do
            # A group of version 1 has no processors until it is given some.
            [ ! -f "$group/$file" ] || [ -f /sys/fs/cgroup/cgroup.controllers ] || cat "$(dirname "$group")/$file" >"$group/$file"
        done
    done
}

remove_groups() {
    local group
    # runc makes them in the unified hierarchy too, beside those of version 1.
    for group in $(groups_of "$1") "/sys/fs/cgroup/unified/$1"; do
        [ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
    done
}

containerd_configuration() {
    cat <<EOF
version = 2
root = "$dir/containerd"
state = "$dir/run"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "$dir/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "example.com/pause:test"
  disable_tcp_service = true
  stream_server_port = "0"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$system/usr/lib/cni"
    conf_dir = "$dir/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        Root = "$dir/runc"
        SystemdCgroup = false
EOF
}

# The bridge is that of network.sh, and its address is the way to Services.
network_configuration() {
    cat <<EOF
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "nereid0", "ipam": {"type": "host-local", "dataDir": "$dir/addresses",
"routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": "10.244.0.0/16", "rangeStart": "10.244.$((100 + $1)).2", "rangeEnd": "10.244.$((100 + $1)).250",
"gateway": "10.244.255.254"}]]}}]}
EOF
}

kubelet_configuration() {
    cat <<EOF
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 0.0.0.0
port: $((10250 + $1 * 10))
healthzPort: $((10251 + $1 * 10))
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix://$dir/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /$group
# Version 1.35 refuses control groups of version 1 otherwise.
failCgroupV1: false
failSwapOn: false
localStorageCapacityIsolation: false
evictionHard: {memory.available: "0%", nodefs.available: "0%", imagefs.available: "0%", nodefs.inodesFree: "0%"}
imageGCHighThresholdPercent: 100
clusterDNS: [10.0.0.10]
clusterDomain: cluster.local
configMapAndSecretChangeDetectionStrategy: Watch
podLogsDir: $dir/logs
volumePluginDir: $dir/plugins
syncFrequency: 10s
EOF
}

# launch <name> <program> <argument...>: in a session of its own.
launch() {
    local name=$1
    shift
    setsid "$@" >"$dir/$name.log" 2>&1 </dev/null &
    echo $! >"$dir/$name.pid"
}

alive() {
    local state
    state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) || return 1
    [ "$state" != Z ]
}

# await <program> <command...>: until the command succeeds, for a minute.
await() {
    local name=$1 i
    shift
    for ((i = 0; i < 600; i++)); do
        if "$@" >/dev/null 2>&1; then return 0; fi
        alive "$(cat "$dir/$name.pid")" || fail "$name ended: $(tail -n 3 "$dir/$name.log")"
        sleep 0.1
    done
    fail "$name was not ready after a minute: $(tail -n 3 "$dir/$name.log")"
}

in_containerd() {
    "$system/usr/bin/ctr" --address "$dir/containerd.sock" --namespace k8s.io "$@"
}

# import <name> <archive>: under a name of its own, whatever the archive calls it.
import() {
    local before after
    before=$(in_containerd images list -q | sort)
    in_containerd images import --no-unpack "$2" >"$dir/import.log" 2>&1 || fail "the image $2 cannot be imported: $(tail -n 2 "$dir/import.log")"
    after=$(in_containerd images list -q | grep -v ^sha256: | sort | comm -13 <(echo "$before") - | head -n 1)
    [ -n "$after" ] || fail "the image $2 has no name of its own"
    [ "$after" = "$1" ] || in_containerd images tag "$after" "$1" >/dev/null
}

start() {
    mkdir -p "$1"
    dir=$(cd "$1" && pwd)
    local name=$2 number=$3 owner=$4 kubeconfig=$5 archive setting
    shift 5
    [ -x "$kubelet" ] && [ -d "$system" ] || fail "the node is not built (run: testing/kubernetes/node.sh build)"
    group=nereid-$name-$$
    mkdir -p "$dir/cni" "$dir/plugins"
    echo "$group" >"$dir/group"
    # The kubelet sets them for the whole machine. Of several nodes, the first one is stopped last.
    for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
        [ ! -f "/proc/sys/$setting" ] || echo "$setting $(cat "/proc/sys/$setting")"
    done >"$dir/settings"
    # The kubelet writes links there, whatever its folder is. The mount is that of the namespace of network.sh.
    mkdir -p /var/log/containers
    mountpoint -q /var/log/containers || mount -t tmpfs tmpfs /var/log/containers
    (while kill -0 "$owner" 2>/dev/null; do sleep 1; done; [ ! -f "$dir/settings" ] || stop "$dir") >/dev/null 2>&1 </dev/null &
    disown
    make_groups "$group"
    containerd_configuration >"$dir/containerd.toml"
    network_configuration "$number" >"$dir/cni/pods.conflist"
    kubelet_configuration "$number" >"$dir/kubelet.yaml"
    launch containerd "$system/usr/bin/containerd" --config "$dir/containerd.toml"
    await containerd in_containerd version
    for archive in "$@"; do import "${archive%%=*}" "${archive#*=}"; done
    launch kubelet "$kubelet" --config="$dir/kubelet.yaml" --kubeconfig="$kubeconfig" --hostname-override="$name" --node-ip=10.244.255.254 \
        --root-dir="$dir/kubelet" --cert-dir="$dir/certificates" --v=2
    await kubelet "$here/cluster.sh" kubectl "$(dirname "$kubeconfig")" wait --for=condition=Ready "node/$name" --timeout=1s
    echo "$name"
}

end() {
    local file=$dir/$1.pid pid i
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
    dir=$(cd "$1" && pwd)
    local task setting value place i
    end kubelet
    if [ -S "$dir/containerd.sock" ]; then
        for task in $(in_containerd tasks list -q 2>/dev/null); do in_containerd tasks kill --signal SIGKILL "$task" 2>/dev/null || true; done
        for ((i = 0; i < 50; i++)); do
            [ -n "$(in_containerd tasks list 2>/dev/null | grep RUNNING)" ] || break
            sleep 0.1
        done
        for task in $(in_containerd tasks list -q 2>/dev/null); do in_containerd tasks delete --force "$task" >/dev/null 2>&1 || true; done
    fi
    end containerd
    # Every mount of it, the innermost first.
    for place in $(awk -v d="$dir/" 'index($2, d) == 1 { print $2 }' /proc/mounts | sort -r); do umount -l "$place" 2>/dev/null || true; done
    remove_groups "$(cat "$dir/group")"
    while read -r setting value; do echo "$value" >"/proc/sys/$setting" 2>/dev/null || true; done <"$dir/settings"
    rm -f "$dir/settings"
}

images() {
    python3 "$here/kubelet/images.py" "$system/bin/busybox" "$1"
}

run_tests() {
    local why venv folder code=0 image=${NEREID_IMAGE:-}
    cannot() {
        echo "THE TESTS ON A REAL NODE DID NOT RUN: $*"
        exit 77
    }
    why=$(check) || cannot "$why"
    "$here/cluster.sh" binary >/dev/null || "$here/cluster.sh" build >/dev/null || cannot "the control plane cannot be built"
    (build) || cannot "the node cannot be built"
    venv=${NEREID_CLIENTS_CACHE:-$root/testing/conformance/target/clients}/venv
    "$venv/bin/python" -c "import pytest, yaml" 2>/dev/null || cannot "no Python with pytest and PyYAML in $venv (testing/kubernetes/end-to-end.sh makes it)"
    if [ -z "$image" ]; then
        image=$(ls "$root"/target/release/nereid-*-image-amd64.tar 2>/dev/null | head -n 1)
        if [ -z "$image" ]; then
            version=$(sed -n '/<artifactId>nereid<\/artifactId>/{n;s/.*<version>\(.*\)<\/version>.*/\1/p;q}' "$root/pom.xml")
            "$root/build/release.sh" "$version" --parts image >&2
            image=$(ls "$root"/target/release/nereid-*-image-amd64.tar | head -n 1)
        fi
    fi
    cd "$root/testing/conformance/clients"
    export NEREID_TARGET=cluster NEREID_IMAGE=$image PYTHONDONTWRITEBYTECODE=1
    # For kubectl logs and exec: nodes have no names that resolve.
    export NEREID_KUBE_API_OPTIONS="--kubelet-preferred-address-types=InternalIP ${NEREID_KUBE_API_OPTIONS:-}"
    "$here/network.sh" "$venv/bin/python" -m pytest -q -rfEs -p no:cacheprovider --tb=short test_node.py "$@" || code=1
    exit "$code"
}

case "${1:-}" in
    check) check ;;
    build) build && echo "$kubelet" ;;
    start) shift && start "$@" ;;
    stop) stop "$2" ;;
    images) images "$2" ;;
    test) shift && run_tests "$@" ;;
    *)
        sed -n '2,18s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
