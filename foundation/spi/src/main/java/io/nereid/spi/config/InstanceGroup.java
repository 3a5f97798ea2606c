// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config;

import java.util.List;

/**
 * A group of instances of one kind. Immutable.
 *
 * @param name the instances are named {@code <name>_<i>}, and {@code <name>_<i>_gpu<g>} on GPUs
 * @param kind where they run
 * @param count how many, at least 1; on GPUs, how many on each
 * @param gpus the ordinals of the devices, for {@link Kind#GPU}; empty for all, until the server has resolved it
 * @param passive whether the instances are loaded but receive no requests
 * @param hostPolicy the name of a server-wide host policy; empty for none
 * @param resources what one run takes from the rate limiter
 * @param priority 1 is served twice as often as 2, and so on; 0 for 1
 */
public record InstanceGroup(
        String name,
        InstanceGroup.Kind kind,
        int count,
        List<Integer> gpus,
        boolean passive,
        String hostPolicy,
        List<Resource> resources,
        int priority) {
    /** A group of CPU instances with default settings. */
    public static InstanceGroup cpu(String name, int count) {
        return new InstanceGroup(name, InstanceGroup.Kind.CPU, count, List.of(), false, "", List.of(), 0);
    }

    /** The number of instances: {@link #count}, on GPUs for each of them. */
    public int instances() {
        return kind == Kind.GPU ? (int) Math.min(Integer.MAX_VALUE, (long) count * Math.max(1, gpus.size())) : count;
    }

    /**
     * The ordinal of the device of an instance, 0 on processors. Instances of one count follow each other, in the order of
     * the GPUs.
     *
     * @param within the number of the instance in this group, from 0
     */
    public int device(int within) {
        return gpus.isEmpty() ? 0 : gpus.get(within % gpus.size());
    }

    /** The name of an instance, by its number in this group, from 0. */
    public String instanceName(int within) {
        int each = kind == Kind.GPU ? Math.max(1, gpus.size()) : 1;
        return name + "_" + within / each + (kind == Kind.GPU ? "_gpu" + device(within) : "");
    }

    /** This group with another kind, count and devices. */
    public InstanceGroup placed(Kind newKind, int newCount, List<Integer> newGpus) {
        return new InstanceGroup(name, newKind, newCount, newGpus, passive, hostPolicy, resources, priority);
    }

    /** Where instances run. */
    public enum Kind {
        /** On a GPU if the machine has one that the backend can use, else on CPUs. */
        AUTO,
        /** On GPUs. */
        GPU,
        /** On CPUs. */
        CPU,
        /** On the device that the model itself selects. */
        MODEL
    }

    /**
     * A resource that runs take from the rate limiter and return. Immutable.
     *
     * @param name the resource's name
     * @param global whether all devices share it
     * @param count how many units a run takes
     */
    public record Resource(String name, boolean global, int count) {}
}
