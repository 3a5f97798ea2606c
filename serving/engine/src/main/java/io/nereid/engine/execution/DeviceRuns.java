// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.execution;

import io.nereid.backend.InstancePlacement;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelTraits;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.device.Device;
import io.nereid.device.DeviceMemory;
import io.nereid.device.Devices;
import io.nereid.device.MemoryPlacement;
import io.nereid.spi.InferenceJob;
import io.nereid.tensor.DataType;
import io.nereid.tensor.DeviceRegion;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The runs of a model whose instances on GPUs take and return tensors there: which inputs and outputs stay on the GPU, and
 * the copies of all others. Its methods block for copies; they are called on the threads of the model's GPUs. Thread-safe.
 */
final class DeviceRuns {
    private final Devices devices;
    private final IoMapping mapping;

    private DeviceRuns(Devices devices, IoMapping mapping) {
        this.devices = devices;
        this.mapping = mapping;
    }

    /** Creates the runs of a model; null when none of its tensors is ever on a GPU. */
    static @Nullable DeviceRuns of(ModelTraits traits, InstancePlacements placements, IoMapping mapping) {
        Devices devices = placements.devices();
        return devices != null
                        && placements.onGpu()
                        && traits.deviceTensors()
                        && !traits.takesRequests()
                        && traits.inputAlignment() <= 1
                        && mapping.lengths() == null
                        && !mapping.pads()
                ? new DeviceRuns(devices, mapping)
                : null;
    }

    /**
     * The inputs of several jobs, as {@link InputGatherer#many}. An input that is on a GPU for one of the jobs is gathered on the
     * instance's GPU. The caller owns the tensors.
     *
     * @param plain whether the jobs' bytes only follow each other: without padding and added rows
     * @param onHost gathers inputs that processors can read
     */
    List<Tensor> gather(
            List<InferenceJob> jobs, int rows, boolean plain, InstancePlacement place, Supplier<List<Tensor>> onHost) {
        if (!anyOnDevice(jobs)) {
            return onHost.get();
        }
        Device device = place.device();
        if (device != null && plain && mapping.plainInputs()) {
            try {
                return slabs(jobs, rows, MemoryPlacement.device(device.ordinal()));
            } catch (ServingException e) {
                if (e.code() != ErrorCode.RESOURCE_EXHAUSTED) {
                    throw e;
                }
                // The GPU has no memory for the batch beside its requests: the host has.
            }
        }
        for (InferenceJob job : jobs) {
            for (Tensor input : job.request().inputs()) {
                read(input);
            }
        }
        return onHost.get();
    }

    private static boolean anyOnDevice(List<InferenceJob> jobs) {
        for (InferenceJob job : jobs) {
            for (Tensor input : job.request().inputs()) {
                if (input.deviceRegion() != null) {
                    return true;
                }
            }
        }
        return false;
    }

    /** Lets processors read a tensor. */
    private static void read(Tensor tensor) {
        DeviceRegion region = tensor.deviceRegion();
        if (region != null) {
            MemoryRegion unused = region.copyToHost();
        }
    }

    private List<Tensor> slabs(List<InferenceJob> jobs, int rows, MemoryPlacement place) {
        List<Tensor> first = jobs.get(0).request().inputs();
        List<Tensor> slabs = new ArrayList<>(first.size());
        try {
            for (int i = 0; i < first.size(); i++) {
                slabs.add(slab(jobs, rows, i, place));
            }
            return slabs;
        } catch (RuntimeException e) {
            Tensor.closeAll(slabs);
            throw e;
        }
    }

    /** One input of all jobs: on the GPU where one of them is there, else on the host. */
    private Tensor slab(List<InferenceJob> jobs, int rows, int i, MemoryPlacement place) {
        Tensor first = jobs.get(0).request().inputs().get(i);
        Shape shape = mapping.modelShape(mapping.input(first.name(), i), first.shape())
                .withFirst(rows);
        boolean onDevice = false;
        long bytes = 0;
        for (InferenceJob job : jobs) {
            Tensor input = job.request().inputs().get(i);
            bytes += input.byteLength();
            onDevice |= input.deviceRegion() != null;
        }
        if (bytes > Integer.MAX_VALUE - MemoryRegion.ALIGNMENT) {
            throw InputGatherer.tooMuch(first, rows, bytes, false);
        }
        if (!onDevice) {
            MemoryRegion slab = MemoryRegion.allocate((int) bytes);
            int at = 0;
            for (InferenceJob job : jobs) {
                Tensor input = job.request().inputs().get(i);
                slab.setBytes(at, input.region(), input.offset(), input.byteLength());
                at += input.byteLength();
            }
            return Tensor.over(first.name(), first.dataType(), shape, slab, 0, (int) bytes);
        }
        DeviceMemory memory = devices.allocate(place, bytes);
        boolean done = false;
        try {
            long at = 0;
            for (InferenceJob job : jobs) {
                Tensor input = job.request().inputs().get(i);
                memory.write(at, input);
                at += input.byteLength();
            }
            done = true;
            return Tensor.over(first.name(), first.dataType(), shape, memory.region((int) bytes), 0, (int) bytes);
        } finally {
            if (!done) {
                memory.close();
            }
        }
    }

    /**
     * Runs an instance. Inputs in the memory of another GPU, or of any for an instance on processors, are copied to the host
     * first; outputs that no job keeps on the GPU are copied afterwards.
     *
     * @param inputs lent, as {@link ModelInstance#run}
     */
    List<Tensor> run(
            ModelInstance instance,
            InstancePlacement place,
            List<InferenceJob> jobs,
            List<Tensor> inputs,
            List<String> outputs,
            int idleThreads) {
        Device device = place.device();
        List<Tensor> fed = reachable(inputs, device);
        Set<String> kept = device == null ? Set.of() : kept(jobs, outputs, device.ordinal());
        List<Tensor> made;
        try {
            made = device == null ? instance.run(fed, outputs, idleThreads) : instance.runOnDevice(fed, outputs, kept);
        } finally {
            if (fed != inputs) {
                Tensor.closeAll(fed);
            }
        }
        return onHost(made, kept);
    }

    private static List<Tensor> reachable(List<Tensor> inputs, @Nullable Device device) {
        boolean all = true;
        for (Tensor input : inputs) {
            all &= reaches(input, device);
        }
        if (all) {
            return inputs;
        }
        List<Tensor> fed = new ArrayList<>(inputs.size());
        try {
            for (Tensor input : inputs) {
                fed.add(reaches(input, device) ? input.retain() : input.retainOnHost());
            }
            return fed;
        } catch (RuntimeException e) {
            Tensor.closeAll(fed);
            throw e;
        }
    }

    private static boolean reaches(Tensor input, @Nullable Device device) {
        DeviceRegion region = input.deviceRegion();
        return region == null || (device != null && region.device() == device.ordinal());
    }

    private static Set<String> kept(List<InferenceJob> jobs, List<String> outputs, int ordinal) {
        Set<String> kept = new HashSet<>();
        for (String output : outputs) {
            for (InferenceJob job : jobs) {
                if (job.keepsOnDevice(output, ordinal)) {
                    kept.add(output);
                    break;
                }
            }
        }
        return kept;
    }

    /** Copies the outputs that are not kept. Takes over the outputs, also when it throws. */
    private static List<Tensor> onHost(List<Tensor> outputs, Set<String> kept) {
        boolean all = true;
        for (Tensor output : outputs) {
            all &= stays(output, kept);
        }
        if (all) {
            return outputs;
        }
        List<Tensor> copied = new ArrayList<>(outputs.size());
        try {
            for (Tensor output : outputs) {
                copied.add(stays(output, kept) ? output.retain() : output.retainOnHost());
            }
            return copied;
        } catch (RuntimeException e) {
            Tensor.closeAll(copied);
            throw e;
        } finally {
            Tensor.closeAll(outputs);
        }
    }

    private static boolean stays(Tensor output, Set<String> kept) {
        // The lengths of strings are read on processors.
        return output.deviceRegion() == null || (kept.contains(output.name()) && output.dataType() != DataType.BYTES);
    }

    /**
     * The responses of the jobs of a batch: what another job keeps on the GPU is copied for one that does not. Takes over the
     * tensors, also when it throws.
     */
    List<List<Tensor>> answers(List<InferenceJob> jobs, List<List<Tensor>> parts, InstancePlacement place) {
        Device device = place.device();
        if (device == null) {
            return parts;
        }
        List<List<Tensor>> answers = new ArrayList<>(parts.size());
        int taken = 0;
        try {
            while (taken < parts.size()) {
                InferenceJob job = jobs.get(taken);
                List<Tensor> part = parts.get(taken++);
                answers.add(onHost(part, kept(List.of(job), onDevice(part), device.ordinal())));
            }
            return answers;
        } catch (RuntimeException e) {
            answers.forEach(Tensor::closeAll);
            parts.subList(taken, parts.size()).forEach(Tensor::closeAll);
            throw e;
        }
    }

    private static List<String> onDevice(List<Tensor> outputs) {
        return outputs.stream()
                .filter(output -> output.deviceRegion() != null)
                .map(Tensor::name)
                .toList();
    }
}
