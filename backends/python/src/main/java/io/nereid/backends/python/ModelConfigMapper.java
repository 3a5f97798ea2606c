// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import io.nereid.base.ServingException;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * Converts a {@link ModelConfig} to the JSON document that Python models receive as {@code model_config}, which has the
 * fields of Triton's {@code ModelConfig} message, and applies what a model's {@code auto_complete_config} has changed.
 * Stateless.
 */
final class ModelConfigMapper {
    private ModelConfigMapper() {}

    /** Renders the configuration. Lists that Triton always includes are present even if they are empty. */
    static Map<String, Object> of(ModelConfig config) {
        Map<String, Object> tree = new LinkedHashMap<>(config.document());
        tree.put("name", config.name());
        tree.put("platform", "");
        tree.put("backend", PythonBackend.NAME);
        tree.put("max_batch_size", Math.max(0, config.maxBatchSize()));
        tree.put("input", specs(config, "input"));
        tree.put("output", specs(config, "output"));
        tree.put("default_model_filename", PythonBackend.file(config));
        List<Object> groups = new ArrayList<>();
        for (InstanceGroup group : config.instanceGroups()) {
            Map<String, Object> g = new LinkedHashMap<>();
            g.put("name", group.name());
            g.put("kind", "KIND_" + group.kind());
            g.put("count", group.count());
            g.put("gpus", group.gpus());
            groups.add(g);
        }
        tree.put("instance_group", groups);
        Map<String, Object> parameters = new TreeMap<>();
        config.parameters().forEach((k, v) -> parameters.put(k, Map.of("string_value", v)));
        tree.put("parameters", parameters);
        DynamicBatching batching = config.batching();
        if (batching == null) {
            tree.remove("dynamic_batching");
        } else {
            Map<String, Object> dynamic = new LinkedHashMap<>(FrameCodec.map(tree.get("dynamic_batching")));
            dynamic.put("preferred_batch_size", batching.preferredSizes());
            dynamic.put("max_queue_delay_microseconds", batching.maxQueueDelay().toNanos() / 1000);
            tree.put("dynamic_batching", dynamic);
        }
        if (config.sequence() != null) {
            tree.putIfAbsent("sequence_batching", Map.of());
        }
        if (config.decoupled() || tree.containsKey("model_transaction_policy")) {
            tree.put("model_transaction_policy", Map.of("decoupled", config.decoupled()));
        }
        return tree;
    }

    /**
     * The tensors of the configuration, in its order; those that lack a type or dimensions, which the model may add, as
     * they are written.
     */
    private static List<Object> specs(ModelConfig config, String side) {
        Map<String, Object> complete = new LinkedHashMap<>();
        boolean inputs = side.equals("input");
        for (Object spec : specs(inputs ? config.inputs() : config.outputs(), inputs)) {
            complete.put(FrameCodec.string(FrameCodec.map(spec), "name"), spec);
        }
        List<Object> list = new ArrayList<>();
        for (Object written : FrameCodec.list(config.document(), side)) {
            Object spec = complete.remove(FrameCodec.string(FrameCodec.map(written), "name"));
            if (spec != null) {
                list.add(spec);
            } else if (!complete(written)) {
                list.add(new LinkedHashMap<>(FrameCodec.map(written)));
            }
        }
        list.addAll(complete.values());
        return list;
    }

    private static boolean complete(Object spec) {
        Map<String, Object> s = FrameCodec.map(spec);
        String type = FrameCodec.string(s, "data_type");
        return !type.isEmpty()
                && !type.equals("TYPE_INVALID")
                && !FrameCodec.list(s, "dims").isEmpty();
    }

    /**
     * Checks that no tensor lacks a type or dimensions, which a model without {@code auto_complete_config} cannot add.
     *
     * @throws ServingException INVALID_ARGUMENT for one that does
     */
    static void checkComplete(ModelConfig config) {
        checkComplete(config, config.document());
    }

    private static void checkComplete(ModelConfig config, Map<String, Object> tree) {
        for (String side : List.of("input", "output")) {
            for (Object spec : FrameCodec.list(tree, side)) {
                if (!complete(spec)) {
                    Map<String, Object> s = FrameCodec.map(spec);
                    String lacking = FrameCodec.list(s, "dims").isEmpty() ? "dims" : "data_type";
                    throw ServingException.invalidArgument(
                            "model " + side + " '" + FrameCodec.string(s, "name") + "' must specify '" + lacking
                                    + "' for " + config.name(),
                            "write it into config.pbtxt, or add it in auto_complete_config");
                }
            }
        }
    }

    private static List<Object> specs(List<TensorSpec> specs, boolean inputs) {
        List<Object> list = new ArrayList<>();
        for (TensorSpec spec : specs) {
            Map<String, Object> s = new LinkedHashMap<>();
            s.put("name", spec.name());
            s.put("data_type", "TYPE_" + (spec.dataType() == DataType.BYTES ? "STRING" : spec.dataType()));
            if (inputs) {
                s.put("format", "FORMAT_NONE");
            }
            s.put("dims", Arrays.stream(spec.shape().dims()).boxed().toList());
            Shape reshape = spec.reshape();
            if (reshape != null) {
                s.put(
                        "reshape",
                        Map.of("shape", Arrays.stream(reshape.dims()).boxed().toList()));
            }
            s.put("is_shape_tensor", false);
            if (inputs) {
                s.put("allow_ragged_batch", spec.ragged());
                s.put("optional", spec.optional());
            } else {
                s.put("label_filename", "");
            }
            list.add(s);
        }
        return list;
    }

    /**
     * Applies the document that {@code auto_complete_config} returned.
     *
     * @throws ServingException INVALID_ARGUMENT when it has an invalid data type or shape
     */
    static ModelConfig completed(ModelConfig config, Map<String, Object> tree) {
        checkComplete(config, tree);
        ModelConfig.Builder builder = config.toBuilder();
        if (tree.containsKey("model_transaction_policy")) {
            Map<String, Object> document = new LinkedHashMap<>(config.document());
            document.putIfAbsent("model_transaction_policy", Map.of());
            builder.document(document);
        }
        builder.maxBatchSize((int) FrameCodec.number(tree, "max_batch_size", Math.max(0, config.maxBatchSize())));
        builder.inputs(specs(config, tree, "input", config.inputs()));
        builder.outputs(specs(config, tree, "output", config.outputs()));
        if (config.batching() == null && config.sequence() == null && tree.containsKey("dynamic_batching")) {
            builder.batching(DynamicBatching.EAGER);
        }
        if (FrameCodec.yes(FrameCodec.map(tree.get("model_transaction_policy")), "decoupled")) {
            builder.decoupled(true);
        }
        return builder.build();
    }

    private static List<TensorSpec> specs(
            ModelConfig config, Map<String, Object> tree, String side, List<TensorSpec> given) {
        List<TensorSpec> specs = new ArrayList<>();
        for (Object entry : FrameCodec.list(tree, side)) {
            Map<String, Object> s = FrameCodec.map(entry);
            String name = FrameCodec.string(s, "name");
            TensorSpec spec =
                    new TensorSpec(name, type(config, side, s), shape(config, side, s), FrameCodec.yes(s, "optional"));
            for (TensorSpec g : given) {
                if (g.name().equals(name)
                        && g.dataType() == spec.dataType()
                        && g.shape().equals(spec.shape())) {
                    spec = new TensorSpec(
                            name, g.dataType(), g.shape(), spec.optional(), g.ragged(), g.reshape(), g.unchecked());
                }
            }
            specs.add(spec);
        }
        return List.copyOf(specs);
    }

    private static DataType type(ModelConfig config, String side, Map<String, Object> spec) {
        String text = FrameCodec.string(spec, "data_type");
        String bare = text.toUpperCase(Locale.ROOT).startsWith("TYPE_") ? text.substring(5) : text;
        DataType type = bare.equals("STRING") ? DataType.BYTES : DataType.ofWireName(bare);
        if (type == null) {
            throw wrong(config, side, spec, "data_type '" + text + "'", "such as TYPE_FP32");
        }
        return type;
    }

    private static Shape shape(ModelConfig config, String side, Map<String, Object> spec) {
        List<?> dims = FrameCodec.list(spec, "dims");
        long[] shape = new long[dims.size()];
        for (int i = 0; i < shape.length; i++) {
            shape[i] = dims.get(i) instanceof Long d ? d : -2;
            if (shape[i] < -1) {
                throw wrong(config, side, spec, "dims " + dims, "whole numbers, -1 for any size");
            }
        }
        return Shape.of(shape);
    }

    private static ServingException wrong(
            ModelConfig config, String side, Map<String, Object> spec, String what, String expected) {
        return ServingException.invalidArgument(
                "auto_complete_config of model '" + config.name() + "' sets " + side + " '"
                        + FrameCodec.string(spec, "name") + "' to " + what + " (expected: " + expected + ")",
                "correct the model's auto_complete_config");
    }
}
