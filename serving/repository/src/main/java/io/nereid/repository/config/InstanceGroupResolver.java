// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import io.nereid.backend.Backend;
import io.nereid.base.ServingException;
import io.nereid.device.Device;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.InstanceGroup.Kind;
import io.nereid.spi.config.ModelConfig;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Decides where the instances of a model run, by Triton's rules: {@code KIND_AUTO}, and a model without groups, run on
 * GPUs where there are some and the backend can use them, else on processors; {@code KIND_GPU} without {@code gpus} runs
 * on all of them. Stateless.
 */
public final class InstanceGroupResolver {
    private static final String NEEDS_GPU = "serve it on a machine with a GPU, its driver and the plugins for"
            + " GPUs, or serve the model in a format that runs on processors, such as ONNX";

    private InstanceGroupResolver() {}

    /**
     * Returns the configuration with groups of {@code KIND_GPU}, which name their GPUs, and of other kinds, and with the
     * file for the compute capability of these GPUs ({@code cc_model_filenames}) as its file. A model without groups that
     * runs on processors still has none: its backend decides how many there are.
     *
     * @throws ServingException INVALID_ARGUMENT when a group demands a GPU that is not there, or that the backend cannot
     *     use, when the GPUs of a model need different files, and when the backend runs on GPUs alone and a group is not on one
     */
    public static ModelConfig resolve(ModelConfig config, Backend backend, GpuInventory gpus) {
        if (config.ensemble() != null) {
            return config;
        }
        boolean there = !gpus.usable().isEmpty();
        boolean wanted = config.instanceGroups().isEmpty()
                || config.instanceGroups().stream().anyMatch(g -> g.kind() == Kind.GPU || g.kind() == Kind.AUTO);
        String unable = there && wanted ? backend.gpuUnavailableReason() : null;
        if (backend.needsGpu()) {
            checkNeeded(config, backend, unable, gpus);
        }
        List<Integer> all = gpus.usable().stream().map(Device::ordinal).toList();
        if (config.instanceGroups().isEmpty()) {
            if (!there || unable != null) {
                return config;
            }
            InstanceGroup each = InstanceGroup.cpu(config.name(), 1).placed(Kind.GPU, 1, all);
            return filed(config.toBuilder().instanceGroups(List.of(each)).build(), gpus);
        }
        List<InstanceGroup> groups = new ArrayList<>();
        for (InstanceGroup group : config.instanceGroups()) {
            String who = "instance group " + group.name() + " of model " + config.name() + " ";
            Kind kind = group.kind() == Kind.AUTO ? (there && unable == null ? Kind.GPU : Kind.CPU) : group.kind();
            if (kind == Kind.GPU) {
                checkGpu(who, group, backend, unable, gpus);
                groups.add(group.placed(Kind.GPU, group.count(), group.gpus().isEmpty() ? all : group.gpus()));
            } else if (!group.gpus().isEmpty()) {
                throw ServingException.invalidArgument(
                        who + "has kind KIND_" + kind + " but specifies one or more GPUs"
                                + (unable == null ? "" : "; backend '" + backend.name() + "': " + unable),
                        "remove 'gpus'");
            } else {
                groups.add(group.placed(kind, group.count(), List.of()));
            }
        }
        return filed(config.toBuilder().instanceGroups(List.copyOf(groups)).build(), gpus);
    }

    /** Rejects a model of a backend for GPUs alone that has a group on processors, or would have one for want of a GPU. */
    private static void checkNeeded(ModelConfig config, Backend backend, @Nullable String unable, GpuInventory gpus) {
        String only = "backend '" + backend.name() + "' runs on GPUs only";
        for (InstanceGroup group : config.instanceGroups()) {
            if (group.kind() == Kind.CPU || group.kind() == Kind.MODEL) {
                throw ServingException.invalidArgument(
                        "instance group " + group.name() + " of model " + config.name() + " has kind KIND_"
                                + group.kind() + " but " + only,
                        "use KIND_GPU or KIND_AUTO");
            }
        }
        String reason = !gpus.supported()
                ? "server does not support GPUs"
                : gpus.usable().isEmpty() ? "no GPUs are available" : unable;
        if (reason != null) {
            throw ServingException.invalidArgument(
                    "model " + config.name() + ": " + only + ", and " + reason, NEEDS_GPU);
        }
    }

    private static void checkGpu(
            String who, InstanceGroup group, Backend backend, @Nullable String unable, GpuInventory gpus) {
        if (!gpus.supported()) {
            throw ServingException.invalidArgument(
                    who + "has kind KIND_GPU but server does not support GPUs", InstanceGroupReader.NO_GPU);
        }
        for (int ordinal : group.gpus()) {
            if (gpus.find(ordinal) == null) {
                throw ServingException.invalidArgument(
                        who + gpus.invalid(ordinal), "name one of these, or none for all");
            }
        }
        if (gpus.usable().isEmpty()) {
            throw ServingException.invalidArgument(
                    who + "has kind KIND_GPU but no GPUs are available", "use KIND_CPU or KIND_AUTO");
        }
        if (unable != null) {
            throw ServingException.invalidArgument(
                    who + "has kind KIND_GPU but backend '" + backend.name() + "' cannot run on a GPU: " + unable,
                    "use KIND_CPU or KIND_AUTO");
        }
    }

    /** The configuration with the file for the compute capability of the model's GPUs. */
    private static ModelConfig filed(ModelConfig config, GpuInventory gpus) {
        if (config.capabilityFiles().isEmpty()) {
            return config;
        }
        Set<String> files = new LinkedHashSet<>();
        Set<String> capabilities = new TreeSet<>();
        for (InstanceGroup group : config.instanceGroups()) {
            if (group.kind() != Kind.GPU) {
                files.add(config.modelFile());
            }
            for (int ordinal : group.gpus()) {
                Device device = gpus.find(ordinal);
                if (device != null) {
                    capabilities.add(device.capability());
                    files.add(config.capabilityFiles().getOrDefault(device.capability(), config.modelFile()));
                }
            }
        }
        if (files.size() > 1) {
            throw ServingException.invalidArgument(
                    "model " + config.name() + " needs more than one of its files: its instances run on GPUs of compute"
                            + " capability " + String.join(", ", capabilities)
                            + ", for which cc_model_filenames and default_model_filename name different files "
                            + files + " (expected: one file for all instances)",
                    "name the GPUs of one compute capability in 'gpus' of the instance groups");
        }
        return files.isEmpty()
                ? config
                : config.toBuilder().modelFile(files.iterator().next()).build();
    }
}
