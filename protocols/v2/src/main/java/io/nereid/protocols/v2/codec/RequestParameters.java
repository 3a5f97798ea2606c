// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.codec;

import io.nereid.base.ServingException;
import io.nereid.observe.RequestTiming;
import io.nereid.observe.RequestTrace;
import io.nereid.spi.InferenceRequest.Options;
import io.nereid.spi.InferenceRequest.SequenceFlags;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Separates the parameters of a request that the protocol defines from those that are forwarded to the model. Confined
 * to one thread; used for one request.
 */
public final class RequestParameters {
    private static final Set<String> RESERVED = Set.of(
            "sequence_id", "sequence_start", "sequence_end", "priority", "timeout", "binary_data_output", "headers");

    /** Whether error messages name types as gRPC does, such as {@code int64_param}. */
    private final boolean grpc;

    private Map<String, Object> forModel = Map.of();
    private long priority;
    private long timeoutMicros;
    private @Nullable Object sequenceId;
    private boolean sequenceStart;
    private boolean sequenceEnd;
    private boolean binaryOutputs;
    private boolean emptyFinalResponse;
    private String signature = "";
    private boolean timing;

    public RequestParameters(boolean grpc) {
        this.grpc = grpc;
    }

    /** Adds a parameter; the value is a Boolean, Long, Double or String. */
    void put(String name, Object value) {
        switch (name) {
            case "timeout" -> timeoutMicros = nonNegative(name, value, "int64_param");
            case "priority" -> priority = nonNegative(name, value, "int64_param or uint64_param");
            case "binary_data_output" -> binaryOutputs = bool(name, value);
            case "sequence_start" -> sequenceStart = bool(name, value);
            case "sequence_end" -> sequenceEnd = bool(name, value);
            case "sequence_id" -> sequenceId = sequenceId(value);
            case "signature_name" -> signature = text(name, value);
            case RequestTiming.PARAMETER -> timing = bool(name, value);
            case "headers" ->
                throw ServingException.invalidArgument(
                        "parameter key 'headers' is reserved for Triton usage and should not be specified.");
            default -> {
                if (name.startsWith("triton_")) {
                    reserved(name, value);
                } else {
                    keep(name, value);
                }
            }
        }
    }

    /** Adds a header that is forwarded to the model. */
    void forward(String name, String value) {
        if (RESERVED.contains(name) || name.startsWith("triton_")) {
            throw ServingException.invalidArgument(
                    "header '" + name + "' is reserved for Triton usage and cannot be forwarded.");
        }
        keep(name, value);
    }

    /** The correlation id, or null for 0 and the empty text, which mean that the request is not part of a sequence. */
    private @Nullable Object sequenceId(Object value) {
        if (value instanceof Long n) {
            return n == 0 ? null : n;
        }
        if (value instanceof String s) {
            return s.isEmpty() ? null : s;
        }
        throw wrongType("sequence_id", "int64_param or string_param");
    }

    private void reserved(String name, Object value) {
        if (!grpc || !name.equals("triton_enable_empty_final_response")) {
            throw ServingException.invalidArgument(
                    "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
                    "rename parameter '" + name + "'");
        }
        emptyFinalResponse = bool(name, value);
    }

    private void keep(String name, Object value) {
        if (forModel.isEmpty()) {
            forModel = new LinkedHashMap<>();
        }
        forModel.put(name, value);
    }

    private long nonNegative(String name, Object value, String expected) {
        if (!(value instanceof Long n)) {
            throw wrongType(name, expected);
        }
        if (n < 0) {
            throw ServingException.invalidArgument("invalid value for '" + name + "', expected value >= 0.");
        }
        return n;
    }

    private String text(String name, Object value) {
        if (!(value instanceof String s)) {
            throw wrongType(name, "string_param");
        }
        return s;
    }

    private boolean bool(String name, Object value) {
        if (!(value instanceof Boolean b)) {
            throw wrongType(name, "bool_param");
        }
        return b;
    }

    private ServingException wrongType(String name, String grpcTypes) {
        String expected = grpc
                ? grpcTypes
                : grpcTypes
                        .replace("int64_param or uint64_param", "an integer")
                        .replace("int64_param", "an integer")
                        .replace("string_param", "a string")
                        .replace("bool_param", "true or false");
        return ServingException.invalidArgument(
                "invalid value type for '" + name + "' parameter, expected " + expected + ".");
    }

    /** The parameters for the model. */
    public Map<String, Object> forModel() {
        return forModel;
    }

    /** Whether outputs without a parameter of their own are to be sent as binary data. */
    public boolean binaryOutputs() {
        return binaryOutputs;
    }

    /** Whether the client requests an empty final response to mark the end of a request in a stream. */
    boolean emptyFinalResponse() {
        return emptyFinalResponse;
    }

    /** The trace of the request: with its times, if the parameters ask for them. */
    public @Nullable RequestTrace observed(@Nullable RequestTrace trace, long arrivedNanos) {
        return timing ? RequestTiming.of(trace, arrivedNanos) : trace;
    }

    /** The scheduling options of the request (priority, timeout, sequence, signature) with its trace. */
    public Options options(@Nullable RequestTrace trace) {
        Object id = sequenceId;
        if (id == null && priority == 0 && timeoutMicros == 0 && trace == null && signature.isEmpty()) {
            return Options.NONE;
        }
        long timeoutNanos = timeoutMicros > Long.MAX_VALUE / 1_000 ? Long.MAX_VALUE : timeoutMicros * 1_000;
        SequenceFlags sequence = id == null ? null : new SequenceFlags(id, sequenceStart, sequenceEnd);
        return new Options(priority, timeoutNanos, sequence, trace, signature);
    }
}
