// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.execution;

import io.nereid.backend.InstancePlacement;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.device.Device;
import io.nereid.device.Devices;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Where the instances of one model run, and whether their devices can be used. The first instances are those of the first
 * group that is not passive; instances beyond the groups are in the last one. Thread-safe.
 */
public final class InstancePlacements {
    private final String model;
    private final @Nullable Devices devices;
    private final Set<Integer> gpus;
    private volatile List<InstanceGroup> groups;

    /**
     * @param config the model's configuration, with resolved groups
     * @param devices the server's GPUs; null for none
     */
    public InstancePlacements(ModelConfig config, @Nullable Devices devices) {
        this.model = config.name();
        this.devices = devices;
        this.groups = active(config);
        this.gpus = gpus(config);
    }

    private static List<InstanceGroup> active(ModelConfig config) {
        List<InstanceGroup> active =
                config.instanceGroups().stream().filter(g -> !g.passive()).toList();
        return active.isEmpty() ? List.of(InstanceGroup.cpu(config.name(), 1)) : active;
    }

    /** The ordinals of the GPUs that the instances of a model run on, ascending; empty for a model on processors. */
    public static Set<Integer> gpus(ModelConfig config) {
        Set<Integer> ordinals = new TreeSet<>();
        for (InstanceGroup group : config.instanceGroups()) {
            if (!group.passive() && group.kind() == InstanceGroup.Kind.GPU) {
                ordinals.addAll(group.gpus());
            }
        }
        return ordinals;
    }

    /** Applies another number of instances. */
    public void configure(ModelConfig config) {
        groups = active(config);
    }

    /** The server's GPUs; null for none. */
    @Nullable Devices devices() {
        return devices;
    }

    /** Whether any instance runs on a GPU. */
    public boolean onGpu() {
        return !gpus.isEmpty();
    }

    /** Whether any instance runs on the GPU of an ordinal. */
    public boolean runsOn(int ordinal) {
        return gpus.contains(ordinal);
    }

    /** Returns where an instance runs, by its number from 0. */
    public InstancePlacement of(int instance) {
        List<InstanceGroup> all = groups;
        InstanceGroup group = all.get(0);
        int first = 0;
        for (int i = 0; i < all.size(); i++) {
            group = all.get(i);
            if (instance < first + group.instances() || i == all.size() - 1) {
                break;
            }
            first += group.instances();
        }
        int within = instance - first;
        Devices there = devices;
        Device device = group.kind() == InstanceGroup.Kind.GPU && there != null
                ? there.all().get(group.device(within))
                : null;
        return new InstancePlacement(group.instanceName(within), group, device);
    }

    /** Returns why the model cannot take requests: one of its GPUs is lost; null when it can. */
    public @Nullable ServingException refusal() {
        Devices there = devices;
        if (there != null) {
            for (int ordinal : gpus) {
                ServingException refusal = there.refusal(ordinal);
                if (refusal != null) {
                    return ServingException.of(
                            refusal.code(), "model '" + model + "': " + refusal.getMessage(), refusal.remedy());
                }
            }
        }
        return null;
    }

    /**
     * Returns the reason of a failed run: that of the run, or the loss of a device of the model. A backend reports a lost
     * device in its own way, so a GPU of which a run failed is read. May block for as long as its driver does.
     */
    ServingException reason(ServingException failure) {
        Devices there = devices;
        if (there == null || gpus.isEmpty() || failure.code() == ErrorCode.INVALID_ARGUMENT) {
            return failure;
        }
        for (int ordinal : gpus) {
            Object unused = there.read(ordinal);
        }
        ServingException refusal = refusal();
        return refusal == null ? failure : refusal;
    }
}
