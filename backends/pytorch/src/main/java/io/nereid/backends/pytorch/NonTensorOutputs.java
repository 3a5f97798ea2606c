// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import ai.djl.pytorch.jni.IValue;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;

/** Converts numbers, strings and lists of them that a TorchScript method returns to tensors. Immutable. */
final class NonTensorOutputs {
    private NonTensorOutputs() {}

    static Tensor tensor(String model, String name, IValue value) {
        if (value.isLong()) {
            return longs(name, Shape.of(1), value.toLong());
        } else if (value.isDouble()) {
            return doubles(name, Shape.of(1), value.toDouble());
        } else if (value.isBoolean()) {
            Tensor tensor = Tensor.allocate(name, DataType.BOOL, Shape.of(1));
            tensor.buffer().put((byte) (value.toBoolean() ? 1 : 0));
            return tensor;
        } else if (value.isString()) {
            return StringTensors.encode(name, Shape.of(1), List.of(value.toStringValue()));
        } else if (value.isLongList()) {
            long[] all = value.toLongArray();
            return longs(name, Shape.of(all.length), all);
        } else if (value.isDoubleList()) {
            double[] all = value.toDoubleArray();
            return doubles(name, Shape.of(all.length), all);
        } else if (value.isList() && value.getType().equals("str[]")) {
            List<String> texts = new ArrayList<>();
            for (IValue each : value.toIValueArray()) {
                try (each) {
                    texts.add(each.toStringValue());
                }
            }
            return StringTensors.encode(name, Shape.of(texts.size()), texts);
        }
        throw ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "output '" + name + "' of model '" + model + "' is " + value.getType() + ", which cannot be a tensor",
                "change the model to return tensors");
    }

    private static Tensor longs(String name, Shape shape, long... values) {
        Tensor tensor = Tensor.allocate(name, DataType.INT64, shape);
        tensor.buffer().asLongBuffer().put(values);
        return tensor;
    }

    private static Tensor doubles(String name, Shape shape, double... values) {
        Tensor tensor = Tensor.allocate(name, DataType.FP64, shape);
        tensor.buffer().asDoubleBuffer().put(values);
        return tensor;
    }
}
