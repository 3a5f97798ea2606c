// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import io.nereid.base.ServingException;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.problem.SourcePosition;
import io.nereid.repository.problem.TextFiles;
import io.nereid.repository.schema.TypedMessage;
import io.nereid.repository.schema.TypedMessage.Value;
import io.nereid.spi.config.WarmupInput;
import io.nereid.spi.config.WarmupInput.Data;
import io.nereid.spi.config.WarmupSample;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Reads the {@code model_warmup} part of a configuration and checks the files it names. Confined to one thread. */
final class ModelWarmupReader {
    private static final int MAX_RANK = 32;
    private static final int MAX_COUNT = 100_000;

    private final ConfigReadContext scope;

    ModelWarmupReader(ConfigReadContext scope) {
        this.scope = scope;
    }

    List<WarmupSample> read(List<Value> given, int maxBatchSize) {
        List<WarmupSample> warmups = new ArrayList<>();
        for (Value v : given) {
            TypedMessage w = v.message();
            String who = "model_warmup " + ProblemCollector.quote(w.text("name")) + " ";
            long batchSize = w.number("batch_size");
            if (maxBatchSize >= 0 && batchSize > Math.max(1, maxBatchSize)) {
                scope.error(
                        w.place("batch_size"),
                        who + "has batch_size " + batchSize + " (expected: <= " + Math.max(1, maxBatchSize) + ")",
                        maxBatchSize == 0
                                ? "a model without batch dimension takes 1"
                                : "max_batch_size is " + maxBatchSize);
            }
            long count = Math.max(1, w.number("count"));
            if (count > MAX_COUNT) {
                scope.error(w.place("count"), who + "has count " + count + " (expected: <= " + MAX_COUNT + ")", null);
            }
            Map<String, WarmupInput> inputs = new LinkedHashMap<>();
            for (Value input : w.all("inputs")) {
                WarmupInput read = input.entry().value() instanceof TypedMessage m
                        ? input(
                                input.entry().key(),
                                m,
                                input.at(),
                                who + "input "
                                        + ProblemCollector.quote(input.entry().key()) + " ")
                        : null;
                if (read != null) {
                    inputs.put(input.entry().key(), read);
                }
            }
            if (w.lacks("inputs")) {
                scope.error(v.at(), who + "must specify 'inputs'", "give one entry for every input of the model");
            }
            warmups.add(new WarmupSample(
                    w.text("name"),
                    (int) Math.min(batchSize, Integer.MAX_VALUE),
                    (int) Math.min(count, MAX_COUNT),
                    inputs));
        }
        return List.copyOf(warmups);
    }

    private @Nullable WarmupInput input(String name, TypedMessage input, SourcePosition at, String who) {
        DataType type = TensorConfigReader.typeOf(input.text("data_type"));
        if (input.lacks("data_type") || input.text("data_type").equals("TYPE_INVALID")) {
            scope.error(at, who + "must specify 'data_type'", null);
        }
        List<Value> dims = input.all("dims");
        long[] sizes = new long[Math.min(dims.size(), MAX_RANK)];
        boolean right = dims.size() <= MAX_RANK;
        for (int i = 0; i < sizes.length; i++) {
            sizes[i] = dims.get(i).number();
            if (sizes[i] == -1) {
                scope.error(
                        dims.get(i).at(),
                        "warmup setting expects all variable-size dimensions are specified for input '" + name + "'",
                        "give a size");
                return null;
            }
            right &= sizes[i] >= 0;
        }
        if (!right) {
            scope.error(
                    input.place("dims"),
                    who + "has dims that are not a concrete shape (expected: at most " + MAX_RANK + " sizes >= 0)",
                    null);
        }
        Data data = Data.ZERO;
        if (input.has("random_data")) {
            data = Data.RANDOM;
        } else if (input.has("input_data_file")) {
            data = Data.FILE;
            Path file = scope.inside(scope.directory().resolve("warmup"), input, "input_data_file", "warm-up");
            if (file != null && type != null && right) {
                size(file, input, Shape.of(sizes), type);
            }
        } else if (input.lacks("zero_data") && input.lacks("input_data_file") && input.lacks("random_data")) {
            scope.error(
                    at,
                    "warmup setting expects input '" + name + "' to have input_data_type set",
                    "write zero_data: true, random_data: true or an input_data_file");
        }
        return type == null || !right
                ? null
                : new WarmupInput(type, Shape.of(sizes), data, input.text("input_data_file"));
    }

    private void size(Path file, TypedMessage input, Shape shape, DataType type) {
        try {
            long expected = type.isFixedSize() ? shape.byteSize(type) : 0;
            long actual = Files.size(file);
            if (actual < expected) {
                scope.error(
                        input.place("input_data_file"),
                        "warmup setting expects " + expected + " bytes, but the data provided from "
                                + input.text("input_data_file") + " only has " + actual + " bytes",
                        null);
            }
        } catch (IOException e) {
            scope.error(
                    input.place("input_data_file"),
                    "warm-up cannot read file " + ProblemCollector.quote(input.text("input_data_file")) + ": "
                            + TextFiles.reason(e),
                    null);
        } catch (ServingException e) {
            scope.error(input.place("dims"), e.getMessage(), e.remedy());
        }
    }
}
