// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.grpc;

import io.nereid.base.ErrorCode;
import io.nereid.client.infer.InferRequest;
import io.nereid.client.infer.InferResult;
import io.nereid.client.infer.InferTensor;
import io.nereid.client.infer.InferenceException;
import io.nereid.client.infer.TensorDataType;
import io.nereid.protobuf.ProtobufWriter;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** ModelInferRequest, ModelInferResponse and ModelStreamInferResponse. Stateless. */
final class InferMessages {
    private InferMessages() {}

    /** Writes a ModelInferRequest, whose inputs are raw. */
    static ProtobufWriter request(InferRequest request) {
        ProtobufWriter out = new ProtobufWriter();
        out.textField(1, request.model());
        out.textField(2, request.version());
        out.textField(3, request.id());
        request.parameters().forEach((name, value) -> parameter(4, name, value, out));
        for (Map.Entry<String, InferTensor> input : request.inputs().entrySet()) {
            InferTensor tensor = input.getValue();
            int mark = out.begin(5);
            out.textField(1, input.getKey());
            out.textField(2, tensor.dataType().name());
            int dims = out.begin(3);
            for (long dim : tensor.shape()) {
                out.varint(dim);
            }
            out.end(dims);
            out.end(mark);
        }
        for (Map.Entry<String, Integer> output : request.outputs().entrySet()) {
            int mark = out.begin(6);
            out.textField(1, output.getKey());
            if (output.getValue() > 0) {
                parameter(2, "classification", (long) output.getValue(), out);
            }
            out.end(mark);
        }
        for (InferTensor input : request.inputs().values()) {
            ByteBuffer bytes = input.bytes();
            int length = bytes.remaining();
            out.bytesHeader(7, length);
            int at = out.reserve(length);
            bytes.get(bytes.position(), out.array(), at, length);
        }
        return out;
    }

    /** Writes an entry of a map from names to InferParameter. */
    private static void parameter(int field, String name, Object value, ProtobufWriter out) {
        int entry = out.begin(field);
        out.presentTextField(1, name);
        int mark = out.begin(2);
        if (value instanceof Boolean b) {
            out.varintField(1, b ? 1 : 0);
        } else if (value instanceof Long l) {
            out.varintField(2, l);
        } else if (value instanceof Double d) {
            out.doubleField(4, d);
        } else {
            out.presentTextField(3, value.toString());
        }
        out.end(mark);
        out.end(entry);
    }

    /** Reads a ModelInferResponse. */
    static InferResult response(byte[] bytes) {
        return new Response(new Message(bytes)).read();
    }

    /**
     * Reads a ModelStreamInferResponse.
     *
     * @throws InferenceException when it is an error
     */
    static InferResult streamed(byte[] bytes) {
        Message message = new Message(bytes);
        String[] error = {""};
        @Nullable InferResult[] result = {null};
        message.fields(field -> {
            if (field == 1) {
                error[0] = message.text();
            } else if (field == 2) {
                Response response = new Response(message);
                message.nested(response::field);
                result[0] = response.result();
            }
        });
        if (!error[0].isEmpty()) {
            throw InferenceException.of(ErrorCode.UNKNOWN, error[0]);
        }
        InferResult read = result[0];
        return read != null ? read : new InferResult("", "", "", Map.of(), Map.of());
    }

    /** Collects a ModelInferResponse. Confined to one thread. */
    private static final class Response {
        private final Message message;
        private final List<Output> outputs = new ArrayList<>();
        private final List<ByteBuffer> raw = new ArrayList<>();
        private final Map<String, Object> parameters = new LinkedHashMap<>();
        private String model = "";
        private String version = "";
        private String id = "";

        Response(Message message) {
            this.message = message;
        }

        InferResult read() {
            message.fields(this::field);
            return result();
        }

        void field(int number) {
            switch (number) {
                case 1 -> model = message.text();
                case 2 -> version = message.text();
                case 3 -> id = message.text();
                case 4 -> parameter();
                case 5 -> {
                    Output output = new Output(message);
                    message.nested(output::field);
                    outputs.add(output);
                }
                case 6 -> raw.add(message.bytes());
                default -> {
                    // a field of a newer version
                }
            }
        }

        private void parameter() {
            String[] name = {""};
            message.nested(field -> {
                if (field == 1) {
                    name[0] = message.text();
                } else if (field == 2) {
                    message.nested(choice -> {
                        switch (choice) {
                            case 1 -> parameters.put(name[0], message.number() != 0);
                            case 2, 5 -> parameters.put(name[0], message.number());
                            case 3 -> parameters.put(name[0], message.text());
                            case 4 -> parameters.put(name[0], message.real());
                            default -> {
                                // a kind of parameter of a newer version
                            }
                        }
                    });
                }
            });
        }

        InferResult result() {
            Map<String, InferTensor> tensors = new LinkedHashMap<>();
            for (int i = 0; i < outputs.size(); i++) {
                Output output = outputs.get(i);
                tensors.put(output.name, output.tensor(i < raw.size() ? raw.get(i) : null));
            }
            return new InferResult(model, version, id, tensors, parameters);
        }
    }

    /** Collects an InferOutputTensor. Confined to one thread. */
    private static final class Output {
        private final Message message;
        private final List<Long> shape = new ArrayList<>();
        private String name = "";
        private String type = "";
        private final TypedContents contents;

        Output(Message message) {
            this.message = message;
            this.contents = new TypedContents(message);
        }

        void field(int number) {
            switch (number) {
                case 1 -> name = message.text();
                case 2 -> type = message.text();
                case 3 -> message.numbers(() -> shape.add(message.varint()));
                case 5 -> message.nested(contents::field);
                default -> {
                    // parameters of an output say how it was asked for
                }
            }
        }

        InferTensor tensor(@Nullable ByteBuffer raw) {
            TensorDataType dataType = TensorDataType.of(type);
            ByteBuffer data = raw != null ? raw : contents.bytes(dataType);
            return InferTensor.raw(
                    dataType,
                    data.order(ByteOrder.LITTLE_ENDIAN),
                    shape.stream().mapToLong(d -> d).toArray());
        }
    }
}
