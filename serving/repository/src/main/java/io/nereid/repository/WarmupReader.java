// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.base.ServingException;
import io.nereid.repository.BoundMessage.Value;
import io.nereid.spi.ModelConfig.Warmup;
import io.nereid.spi.ModelConfig.WarmupInput;
import io.nereid.spi.ModelConfig.WarmupInput.Data;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Reads the {@code model_warmup} part of a configuration and checks the files it names. Confined to one thread. */
final class WarmupReader {
    private static final int MAX_RANK = 32;
    private static final int MAX_COUNT = 100_000;

    private final Path file;
    private final Path directory;
    private final Problems problems;

    WarmupReader(Path file, Path directory, Problems problems) {
        this.file = file;
        this.directory = directory;
        this.problems = problems;
    }

    List<Warmup> read(List<Value> given, int maxBatchSize) {
        List<Warmup> warmups = new ArrayList<>();
        for (Value v : given) {
            BoundMessage w = v.message();
            String who = "model_warmup " + Problems.quote(w.text("name")) + " ";
            long batchSize = w.number("batch_size");
            if (maxBatchSize >= 0 && batchSize > Math.max(1, maxBatchSize)) {
                problems.error(
                        file,
                        w.place("batch_size"),
                        who + "has batch_size " + batchSize + " (expected: <= " + Math.max(1, maxBatchSize) + ")",
                        maxBatchSize == 0
                                ? "a model without batch dimension takes 1"
                                : "max_batch_size is " + maxBatchSize);
            }
            long count = Math.max(1, w.number("count"));
            if (count > MAX_COUNT) {
                problems.error(
                        file, w.place("count"), who + "has count " + count + " (expected: <= " + MAX_COUNT + ")", null);
            }
            Map<String, WarmupInput> inputs = new LinkedHashMap<>();
            for (Value input : w.all("inputs")) {
                WarmupInput read = input.entry().value() instanceof BoundMessage m
                        ? input(
                                m,
                                input.at(),
                                who + "input " + Problems.quote(input.entry().key()) + " ")
                        : null;
                if (read != null) {
                    inputs.put(input.entry().key(), read);
                }
            }
            if (w.lacks("inputs")) {
                problems.error(
                        file, v.at(), who + "must specify 'inputs'", "give one entry for every input of the model");
            }
            warmups.add(new Warmup(
                    w.text("name"),
                    (int) Math.min(batchSize, Integer.MAX_VALUE),
                    (int) Math.min(count, MAX_COUNT),
                    inputs));
        }
        return List.copyOf(warmups);
    }

    private @Nullable WarmupInput input(BoundMessage input, Position at, String who) {
        DataType type = ConfigReader.typeOf(input.text("data_type"));
        if (input.lacks("data_type") || input.text("data_type").equals("TYPE_INVALID")) {
            problems.error(file, at, who + "must specify 'data_type'", null);
        }
        List<Value> dims = input.all("dims");
        long[] sizes = new long[Math.min(dims.size(), MAX_RANK)];
        boolean right = dims.size() <= MAX_RANK;
        for (int i = 0; i < sizes.length; i++) {
            sizes[i] = dims.get(i).number();
            right &= sizes[i] >= 0;
        }
        if (!right) {
            problems.error(
                    file,
                    input.place("dims"),
                    who + "has dims that are no concrete shape (expected: at most " + MAX_RANK + " sizes >= 0)",
                    null);
        }
        Data data = Data.ZERO;
        String name = "";
        if (input.flag("random_data")) {
            data = Data.RANDOM;
        } else if (input.has("input_data_file")) {
            data = Data.FILE;
            name = input.text("input_data_file");
            try {
                TextFiles.inside(directory.resolve("warmup"), name);
            } catch (ServingException e) {
                problems.error(file, input.place("input_data_file"), "warm-up " + e.getMessage(), e.remedy());
            }
        } else if (!input.flag("zero_data")) {
            problems.error(
                    file,
                    at,
                    who + "must specify 'zero_data', 'random_data' or 'input_data_file'",
                    "write zero_data: true");
        }
        return type == null || !right ? null : new WarmupInput(type, Shape.of(sizes), data, name);
    }
}
