// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.base.ServingException;
import io.nereid.observe.RequestTrace;
import io.nereid.spi.InferenceRequest.Options;
import io.nereid.spi.InferenceRequest.Sequence;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Sorts the parameters of a request into those the protocol defines and those that are the model's. Confined to one
 * thread; used for one request.
 */
final class RequestParameters {
    private static final Set<String> RESERVED = Set.of(
            "sequence_id", "sequence_start", "sequence_end", "priority", "timeout", "binary_data_output", "headers");

    /** Whether parameters are named as gRPC names their types. */
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

    RequestParameters(boolean grpc) {
        this.grpc = grpc;
    }

    /** Takes one parameter; the value is a Boolean, Long, Double or String. */
    void put(String name, Object value) {
        switch (name) {
            case "timeout" -> timeoutMicros = nonNegative(name, value, "int64_param");
            case "priority" -> priority = nonNegative(name, value, "int64_param or uint64_param");
            case "binary_data_output" -> binaryOutputs = bool(name, value);
            case "sequence_start" -> sequenceStart = bool(name, value);
            case "sequence_end" -> sequenceEnd = bool(name, value);
            case "sequence_id" -> sequenceId = sequenceId(value);
            case "signature_name" -> signature = text(name, value);
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

    /** Takes a header that is forwarded to the model. */
    void forward(String name, String value) {
        if (RESERVED.contains(name) || name.startsWith("triton_")) {
            throw ServingException.invalidArgument(
                    "header '" + name + "' is reserved for Triton usage and cannot be forwarded.");
        }
        keep(name, value);
    }

    /** The id, or null for the number or text that stands for no sequence. */
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

    /** What the model is given. */
    Map<String, Object> forModel() {
        return forModel;
    }

    /** Whether outputs are wanted as bytes unless the request says otherwise. */
    boolean binaryOutputs() {
        return binaryOutputs;
    }

    /** Whether a stream wants to be told of the end of a request by a message of its own. */
    boolean emptyFinalResponse() {
        return emptyFinalResponse;
    }

    /** What the request says to schedulers, together with its trace. */
    Options options(@Nullable RequestTrace trace) {
        Object id = sequenceId;
        if (id == null && priority == 0 && timeoutMicros == 0 && trace == null && signature.isEmpty()) {
            return Options.NONE;
        }
        long timeoutNanos = timeoutMicros > Long.MAX_VALUE / 1_000 ? Long.MAX_VALUE : timeoutMicros * 1_000;
        Sequence sequence = id == null ? null : new Sequence(id, sequenceStart, sequenceEnd);
        return new Options(priority, timeoutNanos, sequence, trace, signature);
    }
}
