#!/usr/bin/env bash
# Runs a command in network and mount namespaces of its own, in which the pods of a ProcessNode get addresses:
#
#   network.sh COMMAND ARGUMENT...   runs the command; its processes see the bridge of the pods, the addresses of Services and their names
#   network.sh check                 exit status 0 when that works on this machine; otherwise it prints why not
#
# It needs root and Linux: a bridge, virtual Ethernet devices and overlay file systems. Nothing of it outlives the command.
set -euo pipefail
bridge=nereid0 node=10.244.255.254 services=10.0.0.0/16 resolver=10.0.0.10

inside() {
    ip link set lo up
    # With an address of its own: otherwise it takes the lowest one of its ports, changes it when a pod goes, and is lost to the others.
    ip link add "$bridge" address 02:00:0a:f4:ff:fe type bridge
    ip address add "$node/16" dev "$bridge"
    ip link set "$bridge" up
    # The node accepts connections to every address of a Service.
    ip route add local "$services" dev lo
    mkdir -p /run/netns
    mount -t tmpfs tmpfs /run/netns
    printf 'nameserver %s\nsearch svc.cluster.local cluster.local\noptions ndots:5\n' "$resolver" >/run/netns/resolv.conf
    mount --bind /run/netns/resolv.conf /etc/resolv.conf
    exec "$@"
}

case "${1:-}" in
    '')
        sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    check)
        [ "$(uname -s)" = Linux ] || { echo "the machine does not run Linux" && exit 1; }
        [ "$(id -u)" = 0 ] || { echo "not root" && exit 1; }
        for program in ip unshare nsenter setpriv chroot; do
            command -v "$program" >/dev/null || { echo "$program is not on the PATH" && exit 1; }
        done
        # shellcheck disable=SC2016
        "$0" bash -ec 'ip link add veth-check type veth peer name peer-check && mount -t tmpfs tmpfs /run/netns && cd /run/netns && mkdir u w r &&
            mount -t overlay overlay -o lowerdir=/,upperdir=u,workdir=w r' >/dev/null 2>&1 ||
            { echo "namespaces, virtual Ethernet devices or overlay file systems are not permitted" && exit 1; }
        ;;
    --inside)
        shift
        inside "$@"
        ;;
    *) exec unshare --net --mount --propagation private "$0" --inside "$@" ;;
esac
