// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.infer;

import java.nio.FloatBuffer;
import java.time.Duration;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One request to a model, for every protocol. Immutable and thread-safe: it may be sent any number of times.
 *
 * <pre>{@code
 * InferRequest request = InferRequest.builder("iris")
 *         .input("input", new float[][] {{5.1f, 3.5f, 1.4f, 0.2f}})
 *         .output("probabilities")
 *         .timeout(Duration.ofSeconds(2))
 *         .build();
 * }</pre>
 */
public final class InferRequest {
    private final String model;
    private final String version;
    private final String id;
    private final Map<String, InferTensor> inputs;
    private final Map<String, Integer> outputs;
    private final Map<String, Object> parameters;
    private final Map<String, String> headers;
    private final @Nullable Duration timeout;
    private final boolean sequence;

    private InferRequest(Builder b) {
        model = b.model;
        version = b.version;
        id = b.id;
        inputs = Collections.unmodifiableMap(new LinkedHashMap<>(b.inputs));
        outputs = Collections.unmodifiableMap(new LinkedHashMap<>(b.outputs));
        parameters = Collections.unmodifiableMap(new LinkedHashMap<>(b.parameters));
        headers = Collections.unmodifiableMap(new LinkedHashMap<>(b.headers));
        timeout = b.timeout;
        sequence = parameters.containsKey("sequence_id");
    }

    /** Begins a request to a model. */
    public static Builder builder(String model) {
        return new Builder(model);
    }

    public String model() {
        return model;
    }

    /** The version; empty for the one that the server chooses. */
    public String version() {
        return version;
    }

    /** The id that the response repeats; may be empty. */
    public String id() {
        return id;
    }

    /** The inputs by name, in their order. */
    public Map<String, InferTensor> inputs() {
        return inputs;
    }

    /** The requested outputs, each with the number of classes to return instead of its values, or 0; empty for all outputs. */
    public Map<String, Integer> outputs() {
        return outputs;
    }

    /** Parameters: values are {@link String}, {@link Boolean}, {@link Long} or {@link Double}. */
    public Map<String, Object> parameters() {
        return parameters;
    }

    /** Headers of this request alone. */
    public Map<String, String> headers() {
        return headers;
    }

    /** The time for the whole call, retries included; null for the client's. */
    public @Nullable Duration timeout() {
        return timeout;
    }

    /** Whether the request is part of a sequence. It is then sent once at most. */
    public boolean isSequence() {
        return sequence;
    }

    /** Collects a request. Confined to one thread. */
    public static final class Builder {
        private final String model;
        private final Map<String, InferTensor> inputs = new LinkedHashMap<>();
        private final Map<String, Integer> outputs = new LinkedHashMap<>();
        private final Map<String, Object> parameters = new LinkedHashMap<>();
        private final Map<String, String> headers = new LinkedHashMap<>();
        private String version = "";
        private String id = "";
        private @Nullable Duration timeout;

        private Builder(String model) {
            if (model.isEmpty()) {
                throw new IllegalArgumentException("the name of the model is empty");
            }
            this.model = model;
        }

        /** The version of the model. With V1, {@code labels/NAME} is a version label of TensorFlow Serving. */
        public Builder version(String name) {
            this.version = name;
            return this;
        }

        /** An id that the response repeats. */
        public Builder id(String text) {
            this.id = text;
            return this;
        }

        /** An input. A second one of the same name is an {@link IllegalArgumentException}. */
        public Builder input(String name, InferTensor tensor) {
            if (inputs.putIfAbsent(name, tensor) != null) {
                throw new IllegalArgumentException("input '" + name + "' is given twice");
            }
            return this;
        }

        /** An FP32 input; without a shape it has one dimension. */
        public Builder input(String name, float[] elements, long... shape) {
            return input(name, InferTensor.of(elements, shape));
        }

        /** An FP32 input of the remaining elements of a buffer. */
        public Builder input(String name, FloatBuffer elements, long... shape) {
            return input(name, InferTensor.of(elements, shape));
        }

        /** An FP32 input of rows. */
        public Builder input(String name, float[][] rows) {
            return input(name, InferTensor.ofArray(rows));
        }

        /** An FP64 input; without a shape it has one dimension. */
        public Builder input(String name, double[] elements, long... shape) {
            return input(name, InferTensor.of(elements, shape));
        }

        /** An INT64 input; without a shape it has one dimension. */
        public Builder input(String name, long[] elements, long... shape) {
            return input(name, InferTensor.of(elements, shape));
        }

        /** An INT32 input; without a shape it has one dimension. */
        public Builder input(String name, int[] elements, long... shape) {
            return input(name, InferTensor.of(elements, shape));
        }

        /** A BYTES input of texts; without a shape it has one dimension. */
        public Builder input(String name, String[] elements, long... shape) {
            return input(name, InferTensor.ofStrings(elements, shape));
        }

        /** Requests an output. Without a call of this method the response has all outputs. */
        public Builder output(String name) {
            outputs.put(name, 0);
            return this;
        }

        /** Requests the best classes of an output as texts, with Triton's classification extension. */
        public Builder classification(String name, int classes) {
            if (classes < 1) {
                throw new IllegalArgumentException(
                        "classification of '" + name + "' into " + classes + " classes (expected: 1 or more)");
            }
            outputs.put(name, classes);
            return this;
        }

        /**
         * A parameter of the request.
         *
         * @param value a {@link String}, a {@link Boolean}, or a {@link Number} that is an integer or a double
         */
        public Builder parameter(String name, Object value) {
            Object scalar;
            if (value instanceof Integer || value instanceof Short || value instanceof Byte) {
                scalar = ((Number) value).longValue();
            } else if (value instanceof Float f) {
                scalar = (double) f;
            } else if (value instanceof String
                    || value instanceof Boolean
                    || value instanceof Long
                    || value instanceof Double) {
                scalar = value;
            } else {
                throw new IllegalArgumentException("parameter '" + name + "' is of "
                        + value.getClass().getName() + " (expected: a string, a boolean, an integer or a double)");
            }
            parameters.put(name, scalar);
            return this;
        }

        /** Makes the request part of a sequence, which is never sent twice. */
        public Builder sequence(long sequenceId, boolean start, boolean end) {
            if (sequenceId == 0) {
                throw new IllegalArgumentException("sequence id 0 is reserved for requests without a sequence");
            }
            parameters.put("sequence_id", sequenceId);
            return flags(start, end);
        }

        /** As {@link #sequence(long, boolean, boolean)}, with an id that is a text. */
        public Builder sequence(String sequenceId, boolean start, boolean end) {
            if (sequenceId.isEmpty()) {
                throw new IllegalArgumentException("the sequence id is empty");
            }
            parameters.put("sequence_id", sequenceId);
            return flags(start, end);
        }

        private Builder flags(boolean start, boolean end) {
            parameters.put("sequence_start", start);
            parameters.put("sequence_end", end);
            return this;
        }

        /** A header of this request. */
        public Builder header(String name, String value) {
            headers.put(name, value);
            return this;
        }

        /** The time for the whole call, retries included. */
        public Builder timeout(Duration time) {
            if (time.isNegative() || time.isZero()) {
                throw new IllegalArgumentException("a timeout of " + time + " (expected: more than 0)");
            }
            this.timeout = time;
            return this;
        }

        public InferRequest build() {
            return new InferRequest(this);
        }
    }
}
