// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.paddle;

import io.nereid.backends.onnximport.onnx.ConstantTensor;
import io.nereid.backends.onnximport.onnx.ElementType;
import io.nereid.backends.onnximport.paddle.PaddleProgram.Variable;
import io.nereid.base.ServingException;
import io.nereid.protobuf.ProtobufReader;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Reads PaddlePaddle's weight file: one tensor after the other, without their names. Confined to one load. */
final class PaddleParameters {
    private final ByteBuffer in;

    private PaddleParameters(byte[] bytes) {
        in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** @param weights the weights in the file, in its order */
    static Map<String, ConstantTensor> parse(byte[] bytes, List<Variable> weights) {
        PaddleParameters reader = new PaddleParameters(bytes);
        Map<String, ConstantTensor> values = new HashMap<>();
        try {
            for (Variable weight : weights) {
                values.put(weight.name(), reader.tensor(weight));
            }
        } catch (BufferUnderflowException e) {
            throw ServingException.invalidArgument("it ends too early, after " + bytes.length + " bytes");
        }
        if (reader.in.hasRemaining()) {
            throw ServingException.invalidArgument("it has " + reader.in.remaining()
                    + " bytes more than the program has weights, so it belongs to another program");
        }
        return values;
    }

    private ConstantTensor tensor(Variable weight) {
        version();
        long levels = in.getLong();
        if (levels < 0 || levels > 16) {
            throw ServingException.invalidArgument("it does not begin like PaddlePaddle's weights");
        }
        for (long i = 0; i < levels; i++) {
            skip(in.getLong());
        }
        version();
        int length = in.getInt();
        int from = in.position();
        skip(length);
        ProtobufReader wire = new ProtobufReader();
        wire.reset(in.duplicate().order(ByteOrder.LITTLE_ENDIAN));
        wire.range(from, from + length);
        Variable found = PaddleProgram.shape(wire);
        ElementType type = found.type();
        if (type == null) {
            throw ServingException.invalidArgument(
                    "weight '" + weight.name() + "' has elements of an unsupported type");
        }
        long bytes = type.bytes();
        for (long d : found.dims()) {
            bytes = d < 0 || d > Integer.MAX_VALUE ? -1 : Math.multiplyExact(bytes, d);
            if (bytes < 0 || bytes > in.remaining()) {
                throw ServingException.invalidArgument("weight '" + weight.name() + "' is longer than the file");
            }
        }
        boolean same = type == weight.type() && found.dims().length == weight.dims().length;
        for (int i = 0; same && i < found.dims().length; i++) {
            same = weight.dims()[i] < 0 || weight.dims()[i] == found.dims()[i];
        }
        if (!same) {
            throw ServingException.invalidArgument("weight '" + weight.name()
                    + "' is of another shape than in the program: the files do not belong together");
        }
        byte[] raw = new byte[(int) bytes];
        in.get(raw);
        return new ConstantTensor(type, found.dims(), raw, List.of());
    }

    private void version() {
        int version = in.getInt();
        if (version != 0) {
            throw ServingException.invalidArgument("it does not begin like PaddlePaddle's weights");
        }
    }

    private void skip(long bytes) {
        if (bytes < 0 || bytes > in.remaining()) {
            throw new BufferUnderflowException();
        }
        in.position(in.position() + (int) bytes);
    }
}
