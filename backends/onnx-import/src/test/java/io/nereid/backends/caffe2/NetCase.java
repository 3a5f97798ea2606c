// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.caffe2;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** A model of the test resources with inputs and the results of Caffe2, MXNet or PaddlePaddle. Immutable. */
public record NetCase(String name, boolean auto, List<Known> inputs, List<Known> outputs) {
    private static final List<String> FILES = List.of(
            "model.netdef",
            "init_model.netdef",
            "predict_net.pb",
            "init_net.pb",
            "model-symbol.json",
            "model-0000.params",
            "model.pdmodel",
            "model.pdiparams",
            "__model__",
            "__params__");

    /** A tensor. Immutable. */
    record Known(String name, DataType type, Shape shape, double[] values) {
        Tensor tensor() {
            ByteBuffer bytes = ByteBuffer.allocate(values.length * 8).order(ByteOrder.LITTLE_ENDIAN);
            for (double v : values) {
                switch (type) {
                    case FP32 -> bytes.putFloat((float) v);
                    case INT32 -> bytes.putInt((int) v);
                    default -> bytes.putLong((long) v);
                }
            }
            int length = bytes.position();
            MemoryRegion region = MemoryRegion.copyOf(bytes.array(), 0, length);
            return Tensor.over(name, type, shape, region, 0, length);
        }

        TensorSpec spec() {
            return new TensorSpec(name, type, shape);
        }
    }

    static double[] values(Tensor tensor) {
        ByteBuffer in = tensor.buffer().order(ByteOrder.LITTLE_ENDIAN);
        double[] values = new double[Math.toIntExact(tensor.shape().elementCount())];
        for (int i = 0; i < values.length; i++) {
            values[i] = switch (tensor.dataType()) {
                case FP32 -> in.getFloat();
                case INT32 -> in.getInt();
                case INT64 -> in.getLong();
                default -> in.get();
            };
        }
        return values;
    }

    public static NetCase of(String name) {
        List<Known> inputs = new ArrayList<>();
        List<Known> outputs = new ArrayList<>();
        String[] lines = new String(bytes(name, "case.txt"), StandardCharsets.UTF_8).split("\n", -1);
        for (String line : Arrays.asList(lines).subList(1, lines.length)) {
            String[] words = line.split(" ", -1);
            if (words.length < 4) {
                continue;
            }
            long[] dims = words[3].equals("-")
                    ? new long[0]
                    : Arrays.stream(words[3].split(",", -1))
                            .mapToLong(Long::parseLong)
                            .toArray();
            double[] values = Arrays.stream(words)
                    .skip(4)
                    .mapToDouble(Double::parseDouble)
                    .toArray();
            (words[0].equals("input") ? inputs : outputs)
                    .add(new Known(words[1], DataType.valueOf(words[2]), Shape.of(dims), values));
        }
        return new NetCase(name, lines[0].equals("auto"), List.copyOf(inputs), List.copyOf(outputs));
    }

    public static byte[] bytes(String name, String file) {
        try (InputStream in = NetCase.class.getResourceAsStream("/nets/" + name + "/" + file)) {
            return in == null ? new byte[0] : in.readAllBytes();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Copies the files to the layout of a model repository. */
    public ModelLocation layOut(Path root) {
        try {
            Path version = Files.createDirectories(root.resolve(name).resolve("1"));
            for (String file : FILES) {
                byte[] bytes = bytes(name, file);
                if (bytes.length > 0) {
                    Files.write(version.resolve(file), bytes);
                }
            }
            return new ModelLocation(new ServableId(name, 1), root.resolve(name), version);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** A configuration whose inputs have all dimensions, without batching. */
    ModelConfig config() {
        return ModelConfig.builder(name)
                .maxBatchSize(0)
                .inputs(inputs.stream().map(Known::spec).toList())
                .build();
    }

    /** Runs the model and compares the results. */
    public void check(BackendModel model) {
        List<Tensor> tensors = this.inputs.stream().map(Known::tensor).toList();
        List<String> names = outputs.stream().map(Known::name).toList();
        try (ModelInstance invocation = model.newInstance()) {
            List<Tensor> answers = invocation.run(tensors, names);
            for (int i = 0; i < names.size(); i++) {
                Known expected = outputs.get(i);
                try (Tensor answer = answers.get(i)) {
                    assertThat(answer.dataType()).as(names.get(i)).isEqualTo(expected.type());
                    // A scalar is served as a vector of one element.
                    assertThat(answer.shape())
                            .as(names.get(i))
                            .isIn(expected.shape(), expected.shape().rank() == 0 ? Shape.of(1) : expected.shape());
                    double[] given = values(answer);
                    for (int k = 0; k < given.length; k++) {
                        double e = expected.values()[k];
                        assertThat(given[k])
                                .as(names.get(i) + " " + k)
                                .isCloseTo(e, within(1e-5 * Math.max(1, Math.abs(e))));
                    }
                }
            }
        } finally {
            Tensor.closeAll(tensors);
        }
    }
}
