// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import io.nereid.device.Device;
import io.nereid.spi.config.InstanceGroup;
import org.jspecify.annotations.Nullable;

/**
 * Where one instance of a model runs. The engine has resolved it: a group of {@link InstanceGroup.Kind#GPU} has one
 * instance for each of its GPUs and each of its counts. Immutable.
 *
 * @param name the name of the instance, {@code GROUP_N} or {@code GROUP_N_gpuORDINAL}; {@code GROUP} is
 *     {@code MODEL_N} unless the configuration names it
 * @param group the group that the instance is in, with its kind
 * @param device the GPU of the instance: its ordinal, identity and compute capability; null where the group's kind is
 *     not {@link InstanceGroup.Kind#GPU}
 */
public record InstancePlacement(
        String name, InstanceGroup group, @Nullable Device device) {
    /** Whether the instance runs on a GPU. */
    public boolean onGpu() {
        return device != null;
    }

    /**
     * The GPU of an instance that has one.
     *
     * @throws IllegalStateException when the instance runs on processors
     */
    public Device gpu() {
        if (device == null) {
            throw new IllegalStateException("instance " + name + " runs on processors");
        }
        return device;
    }
}
