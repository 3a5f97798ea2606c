// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.kubernetes.node;

import java.io.IOException;

/**
 * The network of one pod: a namespace with its address, connected to the bridge of the node by a pair of virtual devices.
 * Thread-safe.
 */
final class PodNetwork {
    /** The bridge and the node's address on it, as {@code testing/kubernetes/network.sh} makes them. */
    private static final String BRIDGE = "nereid0";

    static final String NODE_ADDRESS = "10.244.255.254";

    private final String name;

    private PodNetwork(String name) {
        this.name = name;
    }

    /**
     * Creates a network.
     *
     * @param address an address of 10.244.0.0/16 that nothing has
     */
    static PodNetwork create(String address) throws IOException {
        String[] bytes = address.split("\\.");
        PodNetwork network = new PodNetwork("pod-" + bytes[2] + "-" + bytes[3]);
        // Names of devices have 15 characters at most.
        String device = "veth" + bytes[2] + "." + bytes[3];
        String name = network.name;
        Commands.run("ip", "netns", "add", name);
        Commands.run("ip", "link", "add", device, "type", "veth", "peer", "name", "eth0", "netns", name);
        Commands.run("ip", "link", "set", device, "master", BRIDGE, "up");
        Commands.run("ip", "-n", name, "address", "add", address + "/16", "dev", "eth0");
        Commands.run("ip", "-n", name, "link", "set", "eth0", "up");
        Commands.run("ip", "-n", name, "link", "set", "lo", "up");
        Commands.run("ip", "-n", name, "route", "add", "default", "via", NODE_ADDRESS);
        return network;
    }

    /** The file that stands for the namespace. */
    String file() {
        return "/run/netns/" + name;
    }

    /** Removes the namespace; its devices go with it. */
    void remove() throws IOException {
        Commands.run("ip", "netns", "delete", name);
    }
}
