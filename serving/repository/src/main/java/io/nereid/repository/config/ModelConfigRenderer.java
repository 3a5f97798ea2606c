// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.EnsembleScheduling;
import io.nereid.spi.config.EnsembleStep;
import io.nereid.spi.config.ExecutionAccelerator;
import io.nereid.spi.config.InitialStateConfig;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.QueuePolicy;
import io.nereid.spi.config.SequenceBatching;
import io.nereid.spi.config.SequenceControl;
import io.nereid.spi.config.SequenceStateConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.spi.config.VersionPolicy;
import io.nereid.spi.config.WarmupInput;
import io.nereid.spi.config.WarmupSample;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** Converts a configuration record to Triton's {@code ModelConfig} message, without default values. Immutable. */
final class ModelConfigRenderer {
    /** The default sequence strategy; shown only if it was given. */
    private static final SequenceBatching.Direct PLAIN = new SequenceBatching.Direct(Duration.ZERO, 0);

    private final ModelConfig c;

    private ModelConfigRenderer(ModelConfig c) {
        this.c = c;
    }

    /** Returns the fields of the record; absent parts are left out. */
    static Map<String, Object> of(ModelConfig c) {
        return new ModelConfigRenderer(c).tree();
    }

    private Map<String, Object> tree() {
        Map<String, Object> t = message();
        t.put("name", c.name());
        t.put("platform", c.platform());
        t.put("backend", c.backend());
        t.put("default_model_filename", c.modelFile());
        if (!c.capabilityFiles().isEmpty()) {
            t.put("cc_model_filenames", c.capabilityFiles());
        }
        t.put("max_batch_size", (long) Math.max(0, c.maxBatchSize()));
        t.put("version_policy", versionPolicy(c.versionPolicy()));
        t.put("input", list(c.inputs(), s -> tensor(s, true)));
        t.put("output", list(c.outputs(), s -> tensor(s, false)));
        t.put(
                "batch_input",
                list(
                        c.batchInputs(),
                        b -> message(
                                "kind",
                                "BATCH_" + b.kind(),
                                "target_name",
                                b.targets(),
                                "data_type",
                                type(b.dataType()),
                                "source_input",
                                List.of(b.source()))));
        t.put(
                "batch_output",
                list(
                        c.batchOutputs(),
                        b -> message(
                                "target_name",
                                b.targets(),
                                "kind",
                                "BATCH_SCATTER_WITH_INPUT_SHAPE",
                                "source_input",
                                List.of(b.source()))));
        DynamicBatching batching = c.batching();
        SequenceBatching sequence = c.sequence();
        EnsembleScheduling ensemble = c.ensemble();
        if (ensemble != null) {
            t.put("ensemble_scheduling", ensemble(ensemble));
        } else if (sequence != null) {
            t.put("sequence_batching", sequence(sequence));
        } else if (batching != null) {
            t.put("dynamic_batching", batching(batching));
        }
        if (ensemble == null) {
            t.put("instance_group", groups());
            t.put("model_warmup", list(c.warmups(), ModelConfigRenderer::warmup));
            t.put("optimization", optimization());
        }
        Map<String, Object> parameters = new LinkedHashMap<>();
        c.parameters().forEach((k, v) -> parameters.put(k, message("string_value", v)));
        t.put("parameters", parameters);
        t.put("metric_tags", c.metricTags());
        if (!c.operatorLibraries().isEmpty()) {
            t.put("model_operations", message("op_library_filename", c.operatorLibraries()));
        }
        if (c.decoupled() || ensemble != null) {
            t.put("model_transaction_policy", message("decoupled", c.decoupled()));
        }
        if (c.responseCache()) {
            t.put("response_cache", message("enable", true));
        }
        if (!c.histogramBuckets().isEmpty()) {
            List<Object> controls = new ArrayList<>();
            c.histogramBuckets()
                    .forEach((family, buckets) -> controls.add(message(
                            "metric_identifier",
                            message("family", family),
                            "histogram_options",
                            message("buckets", buckets))));
            t.put("model_metrics", message("metric_control", controls));
        }
        return t;
    }

    private static Map<String, Object> versionPolicy(VersionPolicy policy) {
        return switch (policy.kind()) {
            case ALL -> message("all", Map.of());
            case LATEST -> message("latest", message("num_versions", (long) policy.count()));
            case SPECIFIC -> message("specific", message("versions", policy.versions()));
        };
    }

    private static Map<String, Object> tensor(TensorSpec s, boolean input) {
        Map<String, Object> t = message("name", s.name(), "data_type", type(s.dataType()), "dims", dims(s.shape()));
        Shape reshape = s.reshape();
        if (reshape != null) {
            t.put("reshape", message("shape", dims(reshape)));
        }
        if (input) {
            t.put("optional", s.optional());
            t.put("allow_ragged_batch", s.ragged());
        }
        return t;
    }

    private Map<String, Object> batching(DynamicBatching b) {
        Map<String, Object> t = message(
                "preferred_batch_size", preferred(b.preferredSizes()),
                "max_queue_delay_microseconds", micros(b.maxQueueDelay()),
                "preserve_ordering", b.preserveOrdering(),
                "priority_levels", b.priorityLevels());
        if (!c.queue().equals(QueuePolicy.DEFAULT)) {
            t.put("default_queue_policy", queue(c.queue()));
        }
        if (b.priorityLevels() > 0) {
            Map<String, Object> levels = new LinkedHashMap<>();
            b.levelQueues().forEach((level, q) -> levels.put(level.toString(), queue(q)));
            t.put("default_priority_level", b.defaultPriority());
            t.put("priority_queue_policy", levels);
        }
        return t;
    }

    private static Map<String, Object> queue(QueuePolicy q) {
        return message(
                "timeout_action", q.onTimeout().name(),
                "default_timeout_microseconds", micros(q.defaultTimeout()),
                "allow_timeout_override", q.allowTimeoutOverride(),
                "max_queue_size", (long) q.maxSize());
    }

    /** Without preferred sizes, the maximum batch size is the only one. */
    private List<Object> preferred(List<Integer> sizes) {
        if (sizes.isEmpty() && c.maxBatchSize() > 0) {
            return List.of((long) c.maxBatchSize());
        }
        return list(sizes, Integer::longValue);
    }

    private Map<String, Object> sequence(SequenceBatching s) {
        Map<String, Object> t = message();
        if (s.strategy() instanceof SequenceBatching.Oldest o) {
            t.put(
                    "oldest",
                    message(
                            "max_candidate_sequences", (long) o.maxCandidates(),
                            "preferred_batch_size", preferred(o.preferredSizes()),
                            "max_queue_delay_microseconds", micros(o.maxQueueDelay()),
                            "preserve_ordering", o.preserveOrdering()));
        } else if (s.strategy() instanceof SequenceBatching.Direct d && !d.equals(PLAIN)) {
            t.put(
                    "direct",
                    message(
                            "max_queue_delay_microseconds", micros(d.maxQueueDelay()),
                            "minimum_slot_utilization", d.minimumSlotUtilization()));
        }
        t.put("max_sequence_idle_microseconds", micros(s.maxIdle()));
        t.put("control_input", list(s.controls(), ModelConfigRenderer::control));
        t.put("state", list(s.states(), ModelConfigRenderer::state));
        t.put("iterative_sequence", s.iterative());
        return t;
    }

    private static Map<String, Object> control(SequenceControl control) {
        Map<String, Object> t = message("kind", "CONTROL_SEQUENCE_" + control.kind());
        if (control.kind() == SequenceControl.Kind.CORRID) {
            t.put("data_type", type(control.dataType()));
        } else if (control.dataType() == DataType.BOOL) {
            t.put("bool_false_true", List.of(control.falseValue() != 0, control.trueValue() != 0));
        } else if (control.dataType() == DataType.FP32) {
            t.put("fp32_false_true", List.of(control.falseValue(), control.trueValue()));
        } else {
            t.put("int32_false_true", List.of((long) control.falseValue(), (long) control.trueValue()));
        }
        return message("name", control.name(), "control", List.of(t));
    }

    private static Map<String, Object> state(SequenceStateConfig s) {
        Map<String, Object> t = message(
                "input_name", s.inputName(),
                "output_name", s.outputName(),
                "data_type", type(s.dataType()),
                "dims", dims(s.shape()),
                "use_same_buffer_for_input_output", s.sameBuffer());
        InitialStateConfig initial = s.initial();
        if (initial != null) {
            Map<String, Object> i =
                    message("data_type", type(s.dataType()), "dims", dims(initial.shape()), "name", initial.name());
            if (initial.file().isEmpty()) {
                i.put("zero_data", true);
            } else {
                i.put("data_file", initial.file());
            }
            t.put("initial_state", List.of(i));
        }
        return t;
    }

    private static Map<String, Object> ensemble(EnsembleScheduling e) {
        return message(
                "step", list(e.steps(), ModelConfigRenderer::step), "max_inflight_requests", (long) e.maxInflight());
    }

    private static Map<String, Object> step(EnsembleStep s) {
        Map<String, Object> t = message(
                "model_name", s.model(),
                "model_version", s.version(),
                "input_map", s.inputs(),
                "output_map", s.outputs(),
                "model_namespace", "");
        if (!s.when().isEmpty()) {
            t.put("when", s.when());
        }
        return t;
    }

    /** The instance groups; by default one group of one CPU instance. KIND_AUTO is shown as KIND_CPU. */
    private List<Object> groups() {
        return c.instanceGroups().isEmpty()
                ? List.of(group(InstanceGroup.cpu(c.name(), 1)))
                : list(c.instanceGroups(), ModelConfigRenderer::group);
    }

    private static Map<String, Object> group(InstanceGroup g) {
        InstanceGroup.Kind kind = g.kind() == InstanceGroup.Kind.AUTO ? InstanceGroup.Kind.CPU : g.kind();
        Map<String, Object> t = message(
                "name", g.name(),
                "kind", "KIND_" + kind,
                "count", (long) g.count(),
                "gpus", list(g.gpus(), Integer::longValue),
                "passive", g.passive(),
                "host_policy", g.hostPolicy());
        if (!g.resources().isEmpty() || g.priority() != 0) {
            t.put(
                    "rate_limiter",
                    message(
                            "resources",
                            list(
                                    g.resources(),
                                    r -> message("name", r.name(), "global", r.global(), "count", (long) r.count())),
                            "priority",
                            (long) g.priority()));
        }
        return t;
    }

    private static Map<String, Object> warmup(WarmupSample w) {
        Map<String, Object> inputs = new LinkedHashMap<>();
        w.inputs().forEach((name, input) -> inputs.put(name, warmupInput(input)));
        return message(
                "name", w.name(), "batch_size", (long) w.batchSize(), "inputs", inputs, "count", (long) w.count());
    }

    private static Map<String, Object> warmupInput(WarmupInput i) {
        Map<String, Object> t = message("data_type", type(i.dataType()), "dims", dims(i.shape()));
        switch (i.data()) {
            case ZERO -> t.put("zero_data", true);
            case RANDOM -> t.put("random_data", true);
            case FILE -> t.put("input_data_file", i.file());
        }
        return t;
    }

    private Map<String, Object> optimization() {
        Map<String, Object> t = message();
        if (c.optimization().graphLevel() != 0) {
            t.put("graph", message("level", (long) c.optimization().graphLevel()));
        }
        List<Object> gpu = list(c.optimization().gpuAccelerators(), ModelConfigRenderer::accelerator);
        List<Object> cpu = list(c.optimization().cpuAccelerators(), ModelConfigRenderer::accelerator);
        if (!gpu.isEmpty() || !cpu.isEmpty()) {
            t.put(
                    "execution_accelerators",
                    message("gpu_execution_accelerator", gpu, "cpu_execution_accelerator", cpu));
        }
        return t;
    }

    private static Map<String, Object> accelerator(ExecutionAccelerator a) {
        return message("name", a.name(), "parameters", a.parameters());
    }

    private static String type(DataType type) {
        return "TYPE_" + (type == DataType.BYTES ? "STRING" : type.name());
    }

    private static List<Object> dims(Shape shape) {
        List<Object> dims = new ArrayList<>();
        for (long d : shape.dims()) {
            dims.add(d);
        }
        return dims;
    }

    private static long micros(Duration time) {
        return time.toNanos() / 1_000;
    }

    private static <T> List<Object> list(List<T> members, Function<T, Object> spelled) {
        List<Object> list = new ArrayList<>();
        for (T member : members) {
            list.add(spelled.apply(member));
        }
        return list;
    }

    /** Creates a message from names and values in turn. */
    private static Map<String, Object> message(Object... namesAndValues) {
        Map<String, Object> message = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            message.put((String) namesAndValues[i], namesAndValues[i + 1]);
        }
        return message;
    }
}
