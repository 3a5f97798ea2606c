// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import io.nereid.base.ServingException;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.problem.SourcePosition;
import io.nereid.repository.problem.TextFiles;
import io.nereid.repository.schema.TypedMessage;
import io.nereid.repository.schema.TypedMessage.Value;
import io.nereid.spi.config.BatchInput;
import io.nereid.spi.config.BatchOutput;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.math.BigInteger;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Reads {@code input}, {@code output}, {@code batch_input} and {@code batch_output}. Confined to one thread. */
final class TensorConfigReader {
    static final int MAX_RANK = 32;

    private final ConfigReadContext scope;
    private final boolean plan;

    /** @param plan whether the model is a plan of TensorRT */
    TensorConfigReader(ConfigReadContext scope, boolean plan) {
        this.scope = scope;
        this.plan = plan;
    }

    /**
     * Converts the name of a Triton data type: without its prefix it is the protocol's name, except for TYPE_STRING.
     */
    static @Nullable DataType typeOf(String configName) {
        if (configName.equals("TYPE_STRING")) {
            return DataType.BYTES;
        }
        return configName.startsWith("TYPE_") ? DataType.ofWireName(configName.substring(5)) : null;
    }

    /**
     * Reads the inputs or outputs.
     *
     * @param partial whether a type or dimensions may be missing, which the model then adds; such a tensor is left out
     */
    List<TensorSpec> tensors(
            List<Value> given, String prefix, int maxBatchSize, Map<String, List<String>> labels, boolean partial) {
        List<TensorSpec> specs = new ArrayList<>();
        Set<String> names = new HashSet<>();
        for (Value v : given) {
            TypedMessage io = v.message();
            String name = io.text("name");
            String who = prefix;
            if (name.isEmpty() && !io.faulty().contains("name")) {
                error(v.at(), prefix + "must specify 'name'", null);
            } else if (!name.isEmpty()) {
                who = prefix + ProblemCollector.quote(name) + " ";
                if (!names.add(name)) {
                    error(
                            io.place("name"),
                            who + "is given twice (expected: names differ)",
                            "rename or remove one of them");
                }
            }
            if (partial && lacking(io)) {
                continue;
            }
            DataType type = dataType(io, v.at(), who);
            Shape shape = dims(io, v.at(), who);
            Shape reshape = io.has("reshape") ? reshape(io, shape, who, maxBatchSize) : null;
            tensorRtOnly(io, v.at(), prefix, maxBatchSize);
            if (!io.text("label_filename").isEmpty()) {
                labels(io, name, labels);
            }
            if (type != null && shape != null) {
                specs.add(
                        new TensorSpec(name, type, shape, io.flag("optional"), io.flag("allow_ragged_batch"), reshape));
            }
        }
        return List.copyOf(specs);
    }

    private void error(SourcePosition at, String message, @Nullable String remedy) {
        scope.error(at, message + scope.forModel(), remedy);
    }

    private void tensorRtOnly(TypedMessage io, SourcePosition at, String prefix, int maxBatchSize) {
        String format = io.text("format");
        if ((format.equals("FORMAT_NHWC") || format.equals("FORMAT_NCHW"))
                && !io.faulty().contains("dims")
                && io.all("dims").size() != 3) {
            error(io.place("format"), prefix + "NHWC/NCHW require 3 dims", "give the three dims, or no format");
        }
        if (io.flag("is_shape_tensor")) {
            shapeTensor(
                    io,
                    io.has("is_shape_tensor") ? io.place("is_shape_tensor") : at,
                    prefix.contains("output"),
                    maxBatchSize);
        }
        if (io.flag("is_non_linear_format_io") && plan) {
            ofPlan(
                    io.place("is_non_linear_format_io"),
                    "field 'is_non_linear_format_io' is not supported, ONNX Runtime gives TensorRT tensors in linear formats"
                            + " only",
                    "compile the plan with linear formats for inputs and outputs, and remove the field");
        } else if (io.flag("is_non_linear_format_io")) {
            error(
                    io.place("is_non_linear_format_io"),
                    "Non-linear IO format is only supported for the TensorRT platform",
                    "remove is_non_linear_format_io");
        }
    }

    /**
     * Checks a shape tensor, an input whose values decide the shapes of a plan's other tensors. ONNX Runtime reads from the plan that
     * an input is one, and gives TensorRT its values in memory of the host; it has no such case for outputs.
     */
    private void shapeTensor(TypedMessage io, SourcePosition at, boolean output, int maxBatchSize) {
        String type = io.text("data_type");
        if (!plan) {
            error(
                    at,
                    "shape tensors are only supported for TensorRT platform",
                    "remove is_shape_tensor, the values are passed as they are");
        } else if (output) {
            ofPlan(
                    at,
                    "an output that is a shape tensor is not supported, ONNX Runtime has memory of the GPU for outputs only",
                    "compile the plan with a copy of the values as the output");
        } else if (maxBatchSize > 0) {
            ofPlan(
                    at,
                    "a shape tensor is not supported with max_batch_size > 0, the size of the batch is not put before its"
                            + " values",
                    "set max_batch_size: 0, and write all dimensions into dims");
        } else if (!type.equals("TYPE_INT32") && !type.equals("TYPE_INT64")) {
            ofPlan(at, "a shape tensor has data_type " + type + " (expected: TYPE_INT32 or TYPE_INT64)", null);
        }
    }

    private void ofPlan(SourcePosition at, String message, @Nullable String remedy) {
        scope.error(at, "model " + scope.model() + ": " + message, remedy);
    }

    private static boolean lacking(TypedMessage io) {
        return io.lacks("data_type") || io.text("data_type").equals("TYPE_INVALID") || io.lacks("dims");
    }

    private @Nullable DataType dataType(TypedMessage io, SourcePosition at, String who) {
        if (io.lacks("data_type") || io.text("data_type").equals("TYPE_INVALID")) {
            error(at, who + "must specify 'data_type'", "write data_type: TYPE_FP32, or whichever the model has");
        }
        return typeOf(io.text("data_type"));
    }

    private @Nullable Shape dims(TypedMessage io, SourcePosition at, String who) {
        if (io.lacks("dims")) {
            error(at, who + "must specify 'dims'", "write dims: [ -1 ] for one dimension of any size");
        }
        return io.all("dims").isEmpty() ? null : sizes(io, "dims", who, "dimension");
    }

    /** Reads dimensions, which are at least 1 or -1; null after an error was reported. */
    private @Nullable Shape sizes(TypedMessage message, String field, String who, String what) {
        List<Value> dims = message.all(field);
        if (dims.size() > MAX_RANK) {
            error(message.place(field), who + "has " + dims.size() + " dims (expected: <= " + MAX_RANK + ")", null);
            return null;
        }
        long[] sizes = new long[dims.size()];
        for (int i = 0; i < sizes.length; i++) {
            sizes[i] = dims.get(i).number();
            if (sizes[i] < 1 && sizes[i] != -1) {
                error(
                        dims.get(i).at(),
                        who + what + " must be integer >= 1, or -1 to indicate a variable-size dimension",
                        null);
                return null;
            }
        }
        return Shape.of(sizes);
    }

    private @Nullable Shape reshape(TypedMessage io, @Nullable Shape dims, String who, int maxBatchSize) {
        TypedMessage given = io.message("reshape");
        SourcePosition at = given.has("shape") ? given.place("shape") : io.place("reshape");
        if (given.lacks("shape") && maxBatchSize == 0) {
            error(
                    at,
                    who + "cannot have empty reshape for non-batching model as scalar tensors are not supported",
                    "give the shape that the model has");
            return null;
        }
        Shape shape = given.faulty().contains("shape") ? null : sizes(given, "shape", who, "reshape dimensions");
        if (shape == null || dims == null) {
            return null;
        }
        List<BigInteger> clients = runs(dims);
        List<BigInteger> models = runs(shape);
        if (clients.size() != models.size() && dims.isDynamic() && shape.isDynamic()) {
            error(at, who + "has different number of variable-size dimensions for dims and reshape", null);
            return null;
        }
        if (!clients.equals(models)) {
            error(
                    at,
                    who + "has different size for dims and reshape",
                    "dims are " + dims + ", reshape is " + shape + ": both must have the same number of elements");
            return null;
        }
        return shape;
    }

    /**
     * Products of the fixed sizes before, between and after the variable ones. A reshape is valid if they are equal for
     * both shapes, whatever the variable sizes are.
     */
    private static List<BigInteger> runs(Shape shape) {
        List<BigInteger> runs = new ArrayList<>();
        BigInteger run = BigInteger.ONE;
        for (long d : shape.dims()) {
            if (d < 0) {
                runs.add(run);
                run = BigInteger.ONE;
            } else {
                run = run.multiply(BigInteger.valueOf(d));
            }
        }
        runs.add(run);
        return runs;
    }

    private void labels(TypedMessage io, String output, Map<String, List<String>> labels) {
        Path path = scope.inside(scope.directory(), io, "label_filename", "label");
        if (path != null) {
            try {
                labels.put(output, TextFiles.labels(path));
            } catch (ServingException e) {
                scope.error(io.place("label_filename"), "label " + e.getMessage(), e.remedy());
            }
        }
    }

    List<BatchInput> batchInputs(List<Value> given, Set<String> inputNames) {
        List<BatchInput> read = new ArrayList<>();
        for (Value v : given) {
            TypedMessage b = v.message();
            String kind = b.text("kind").isEmpty() ? "BATCH_ELEMENT_COUNT" : b.text("kind");
            String source = source(b, v.at(), "batch input kind '" + kind + "'", inputNames);
            DataType type = typeOf(b.text("data_type"));
            if (type != DataType.INT32 && type != DataType.FP32) {
                if (!b.faulty().contains("data_type")) {
                    error(
                            b.has("data_type") ? b.place("data_type") : v.at(),
                            "batch input data type must be TYPE_INT32 or TYPE_FP32",
                            null);
                }
                type = DataType.INT32;
            }
            List<String> targets =
                    b.all("target_name").stream().map(Value::text).toList();
            if (b.lacks("target_name")) {
                error(v.at(), "batch input kind '" + kind + "' must specify 'target_name'", "name the model's input");
            }
            read.add(new BatchInput(BatchInput.Kind.valueOf(kind.substring(6)), targets, type, source));
        }
        return List.copyOf(read);
    }

    List<BatchOutput> batchOutputs(List<Value> given, Set<String> inputNames, Set<String> outputNames) {
        List<BatchOutput> read = new ArrayList<>();
        Set<String> seen = new HashSet<>();
        for (Value v : given) {
            TypedMessage b = v.message();
            String source = source(b, v.at(), "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE'", inputNames);
            List<String> targets = new ArrayList<>();
            for (Value target : b.all("target_name")) {
                if (!outputNames.contains(target.text())) {
                    error(target.at(), "unknown target output name " + ProblemCollector.quote(target.text()), null);
                } else if (!seen.add(target.text())) {
                    error(
                            target.at(),
                            "target output name " + ProblemCollector.quote(target.text())
                                    + " can only be specified once",
                            null);
                } else {
                    targets.add(target.text());
                }
            }
            if (b.lacks("target_name")) {
                error(v.at(), "batch output must specify 'target_name'", "name the model's output");
            }
            read.add(new BatchOutput(List.copyOf(targets), source));
        }
        return List.copyOf(read);
    }

    private String source(TypedMessage b, SourcePosition at, String who, Set<String> inputNames) {
        List<Value> sources = b.all("source_input");
        if (sources.size() != 1 && !b.faulty().contains("source_input")) {
            error(
                    b.has("source_input") ? b.place("source_input") : at,
                    who + " expects 1 source input, got " + sources.size(),
                    null);
        }
        for (Value s : sources) {
            if (!inputNames.contains(s.text())) {
                error(s.at(), "unknown source input name " + ProblemCollector.quote(s.text()), null);
            }
        }
        return sources.isEmpty() ? "" : sources.get(0).text();
    }
}
