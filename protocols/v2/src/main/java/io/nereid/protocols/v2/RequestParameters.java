// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.base.ServingException;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Sorts the parameters of a request into those the protocol defines and those that are the model's. Confined to one
 * thread; used for one request.
 */
final class RequestParameters {
    /** Whether parameters are named as gRPC names their types. */
    private final boolean grpc;

    private Map<String, Object> forModel = Map.of();
    private long timeoutMicros;
    private boolean binaryOutputs;
    private boolean emptyFinalResponse;

    RequestParameters(boolean grpc) {
        this.grpc = grpc;
    }

    /** Takes one parameter; the value is a Boolean, Long, Double or String. */
    void put(String name, Object value) {
        switch (name) {
            case "timeout" -> timeoutMicros = nonNegative(name, value, "int64_param");
            case "priority" -> keep(name, nonNegative(name, value, "int64_param or uint64_param"));
            case "binary_data_output" -> binaryOutputs = bool(name, value);
            case "sequence_start", "sequence_end" -> keep(name, bool(name, value));
            case "sequence_id" -> {
                if (!(value instanceof Long || value instanceof String)) {
                    throw wrongType(name, "int64_param or string_param");
                }
                keep(name, value);
            }
            default -> {
                if (name.startsWith("triton_")) {
                    reserved(name, value);
                } else {
                    keep(name, value);
                }
            }
        }
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

    /** The earlier of a deadline and the request's own timeout, on the clock that both times are of. */
    long deadline(long deadlineNanos, long arrivedNanos) {
        if (timeoutMicros == 0 || timeoutMicros > Long.MAX_VALUE / 2_000) {
            return deadlineNanos;
        }
        long own = arrivedNanos + timeoutMicros * 1_000;
        return deadlineNanos == Long.MAX_VALUE || own - deadlineNanos < 0 ? own : deadlineNanos;
    }
}
