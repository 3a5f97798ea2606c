// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples.model;

import io.nereid.backends.java.BuiltInModel;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tensor.TensorScope;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Returns every input as the output with the same number or position, without a copy. An absent optional input is
 * returned as zeros, with size 1 for variable dimensions. Thread-safe.
 */
public final class IdentityModel extends BuiltInModel {
    private static final long MAX_BYTES = Integer.MAX_VALUE - 64;

    private final int[] pairs;

    public IdentityModel(ModelConfig config) {
        super(config);
        this.pairs = pairs(config.inputs(), config.outputs());
    }

    /**
     * Completes a configuration: inputs from outputs or outputs from inputs; by default {@code INPUT0} to
     * {@code OUTPUT0}, FP32 [-1].
     */
    public static ModelConfig complete(ModelConfig config) {
        List<TensorSpec> inputs = config.inputs();
        List<TensorSpec> outputs = config.outputs();
        if (inputs.isEmpty() && outputs.isEmpty()) {
            inputs = List.of(new TensorSpec("INPUT0", DataType.FP32, Shape.of(-1)));
        }
        if (inputs.isEmpty()) {
            inputs = mirrored(outputs, "OUTPUT", "INPUT");
        } else if (outputs.isEmpty()) {
            outputs = mirrored(inputs, "INPUT", "OUTPUT");
        }
        if (inputs.size() != outputs.size()) {
            throw wrong(
                    config,
                    "has " + inputs.size() + " inputs and " + outputs.size()
                            + " outputs; model configuration must have equal input/output pairs",
                    "as many of each");
        }
        int[] pairs = pairs(inputs, outputs);
        for (int i = 0; i < pairs.length; i++) {
            TensorSpec in = inputs.get(pairs[i]);
            TensorSpec out = outputs.get(i);
            boolean types = in.dataType() == out.dataType();
            if (!types || !in.modelShape().equals(out.modelShape())) {
                throw wrong(
                        config,
                        "has output '" + out.name() + "' " + out.dataType() + out.modelShape() + " for input '"
                                + in.name() + "' " + in.dataType() + in.modelShape()
                                + "; expected input and output " + (types ? "shape" : "datatype") + " to match, got "
                                + (types ? in.modelShape() : typeName(in.dataType())) + " and "
                                + (types ? out.modelShape() : typeName(out.dataType())),
                        "the same type and dims");
            }
        }
        return with(config, inputs, outputs);
    }

    private static String typeName(DataType type) {
        return type == DataType.BYTES ? "TYPE_STRING" : "TYPE_" + type;
    }

    /** Returns the input of each output: {@code INPUT7} for {@code OUTPUT7}, or the input at the same position. */
    private static int[] pairs(List<TensorSpec> inputs, List<TensorSpec> outputs) {
        int[] byName = new int[outputs.size()];
        for (int i = 0; i < byName.length; i++) {
            String name = outputs.get(i).name();
            byName[i] = -1;
            for (int j = 0; j < byName.length && name.startsWith("OUTPUT"); j++) {
                if (inputs.get(j).name().equals("INPUT" + name.substring("OUTPUT".length()))) {
                    byName[i] = j;
                }
            }
            if (byName[i] < 0) {
                return IntStream.range(0, byName.length).toArray();
            }
        }
        return byName;
    }

    private static List<TensorSpec> mirrored(List<TensorSpec> specs, String from, String to) {
        List<TensorSpec> result = new ArrayList<>();
        for (TensorSpec s : specs) {
            String name = s.name().startsWith(from) ? to + s.name().substring(from.length()) : to + result.size();
            result.add(new TensorSpec(name, s.dataType(), s.shape(), false, false, s.reshape()));
        }
        return List.copyOf(result);
    }

    @Override
    public boolean inline() {
        return true;
    }

    @Override
    public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        if (outputs.size() == 1 && inputs().size() == 1 && inputs.size() == 1) {
            return List.of(inputs.get(0).retainAs(outputs.get(0), inputs.get(0).shape()));
        }
        try (TensorScope results = new TensorScope()) {
            for (String output : outputs) {
                results.add(one(output, inputs));
            }
            return results.release();
        }
    }

    /** The outputs of these whose inputs are present. */
    List<String> present(List<Tensor> inputs, List<String> outputs) {
        return outputs.stream()
                .filter(name -> Tensor.find(inputs, source(name).name()) != null)
                .toList();
    }

    private TensorSpec source(String output) {
        int position = 0;
        while (!outputs().get(position).name().equals(output)) {
            position++;
        }
        return inputs().get(pairs[position]);
    }

    private Tensor one(String output, List<Tensor> inputs) {
        TensorSpec spec = source(output);
        Tensor input = Tensor.find(inputs, spec.name());
        return input == null ? zeros(output, spec, inputs) : input.retainAs(output, input.shape());
    }

    private Tensor zeros(String output, TensorSpec spec, List<Tensor> inputs) {
        long[] dims = spec.modelShape().dims();
        for (int i = 0; i < dims.length; i++) {
            dims[i] = Math.abs(dims[i]);
        }
        Shape shape = Shape.of(dims);
        if (maxBatchSize() > 0) {
            shape = shape.prepend(inputs.isEmpty() ? 1 : inputs.get(0).shape().dim(0));
        }
        // An empty string is encoded as its length only: four zero bytes.
        int size = spec.dataType().isFixedSize() ? spec.dataType().size() : Integer.BYTES;
        long count = shape.elementCount();
        if (count > MAX_BYTES / size) {
            throw ServingException.invalidArgument(
                    "input '" + spec.name() + "' is absent, and as zeros takes more than 2 GiB", "send the input");
        }
        int bytes = (int) count * size;
        return Tensor.over(
                output, spec.dataType(), shape, MemoryRegion.allocate(bytes).zero(), 0, bytes);
    }
}
