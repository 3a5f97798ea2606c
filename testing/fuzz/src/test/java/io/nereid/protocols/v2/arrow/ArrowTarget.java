// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import io.nereid.fuzz.FuzzTarget;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Arrow streams as tables for a model whose only input is a matrix, and for one that takes every column as it is. A tensor has as many
 * bytes as its shape says. Confined to one thread.
 */
public final class ArrowTarget implements FuzzTarget {
    private static final long LIMIT = 1 << 20;

    private static final List<ModelMetadata> MODELS =
            List.of(model(), model(new TensorSpec("matrix", DataType.FP32, Shape.of(-1, -1))));

    private static ModelMetadata model(TensorSpec... inputs) {
        List<TensorSpec> specs = List.of(inputs);
        return new ModelMetadata(new ServableId("m", 1), "test", specs, specs, 0, Map.of());
    }

    @Override
    public void read(byte[] input) {
        MemoryRegion body = MemoryRegion.copyOf(input, 0, input.length);
        try {
            for (ModelMetadata model : MODELS) {
                infer(body, model);
            }
        } finally {
            body.release();
        }
    }

    private static void infer(MemoryRegion body, ModelMetadata model) {
        List<Tensor> inputs = new ArrayList<>();
        try {
            ColumnTensors tensors = new ColumnTensors(body, LIMIT);
            new TableInputs(ArrowStreamReader.read(body), model, model.inputs(), tensors).addTo(inputs);
            for (Tensor tensor : inputs) {
                check(tensor);
            }
        } finally {
            Tensor.closeAll(inputs);
        }
    }

    private static void check(Tensor tensor) {
        long elements = tensor.shape().elementCount();
        long least = tensor.dataType() == DataType.BYTES
                ? 4 * elements
                : tensor.shape().byteSize(tensor.dataType());
        boolean exact = tensor.dataType() != DataType.BYTES;
        if (exact ? tensor.byteLength() != least : tensor.byteLength() < least) {
            throw new AssertionError(tensor + " has " + tensor.byteLength() + " bytes");
        }
        if (tensor.offset() < 0 || tensor.byteLength() > tensor.region().size() - tensor.offset()) {
            throw new AssertionError(tensor + " lies outside of its memory");
        }
    }
}
