// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.revision;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.time.Duration;

/**
 * What a gateway needs to know of a revision to send requests to its pods: the annotation {@link
 * GatewayObjects#REVISION}. The format is Nereid's own, an object with the fields below; a field that is missing has its
 * default. Immutable.
 *
 * <pre>{@code
 * {"service": "iris", "containerConcurrency": 0, "timeoutSeconds": 300, "httpPort": 8080, "grpcPort": 0,
 *  "holds": true, "targetBurstCapacity": 211}
 * }</pre>
 *
 * @param service the name of the InferenceService, for metrics, headers and permissions; required
 * @param containerConcurrency most requests at once in one pod; 0, the default, for no limit
 * @param timeout {@code timeoutSeconds}: the longest time for one request, including the time that it is held; zero for
 *     no limit; five minutes by default
 * @param httpPort the port of the pods for HTTP/1.1, unless an EndpointSlice has a port named {@code http}; 0, the
 *     default, when they do not speak it: requests are then translated to gRPC
 * @param grpcPort the port for gRPC, unless an EndpointSlice has a port named {@code grpc}; 0, the default, when they do
 *     not speak it: V2's calls are then translated to HTTP. May equal {@code httpPort}
 * @param holds whether requests wait while no pod is ready, as with Knative, which is the default; otherwise they are
 *     refused with 503 at once
 * @param targetBurstCapacity Knative's annotation {@code autoscaling.knative.dev/target-burst-capacity}, 211 by
 *     default: how many requests more than the pods take at once may wait in the gateway's long queue. 0: the long queue
 *     only while no pod is ready; -1: always. Without effect when {@code containerConcurrency} is 0
 * @param byModel whether the service has no pods, and its requests go to the revisions of the models that they name
 * @param model the name of the model, for a revision that gets requests of the service which name it; empty, the default,
 *     for one that a route leads to
 */
public record RevisionSettings(
        String service,
        int containerConcurrency,
        Duration timeout,
        int httpPort,
        int grpcPort,
        boolean holds,
        double targetBurstCapacity,
        boolean byModel,
        String model) {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int TIMEOUT_SECONDS = 300;
    private static final double BURST = 211;

    /** Settings of a revision to which a route leads. */
    public RevisionSettings(
            String service,
            int containerConcurrency,
            Duration timeout,
            int httpPort,
            int grpcPort,
            boolean holds,
            double targetBurstCapacity) {
        this(service, containerConcurrency, timeout, httpPort, grpcPort, holds, targetBurstCapacity, false, "");
    }

    /** The settings as JSON; the same settings always have the same text. */
    public String toJson() {
        ObjectNode tree = JSON.createObjectNode();
        tree.put("service", service);
        tree.put("containerConcurrency", containerConcurrency);
        tree.put("timeoutSeconds", timeout.toSeconds());
        tree.put("httpPort", httpPort);
        tree.put("grpcPort", grpcPort);
        tree.put("holds", holds);
        tree.put("targetBurstCapacity", targetBurstCapacity);
        if (byModel) {
            tree.put("byModel", true);
        }
        if (!model.isEmpty()) {
            tree.put("model", model);
        }
        return tree.toString();
    }

    /**
     * Reads what {@link #toJson} wrote.
     *
     * @throws ServingException INVALID_ARGUMENT when the text does not describe a revision
     */
    public static RevisionSettings read(String text) {
        JsonNode tree;
        try {
            tree = JSON.readTree(text);
        } catch (JsonProcessingException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT, GatewayObjects.REVISION + " is not JSON: " + e.getOriginalMessage(), e);
        }
        String service = tree.path("service").asText("");
        if (service.isEmpty()) {
            throw ServingException.invalidArgument(
                    GatewayObjects.REVISION + " has no service (expected: the name of the InferenceService)");
        }
        int http = number(tree, "httpPort", 0, 65_535);
        int grpc = number(tree, "grpcPort", 0, 65_535);
        if (http == 0 && grpc == 0) {
            throw ServingException.invalidArgument(
                    GatewayObjects.REVISION + " has neither an httpPort nor a grpcPort (expected: at least one)");
        }
        JsonNode burst = tree.path("targetBurstCapacity");
        if (!burst.isMissingNode() && (!burst.isNumber() || burst.doubleValue() < 0 && burst.doubleValue() != -1)) {
            throw invalid("targetBurstCapacity", burst, "-1, 0 or a positive number");
        }
        JsonNode holds = tree.path("holds");
        if (!holds.isMissingNode() && !holds.isBoolean()) {
            throw invalid("holds", holds, "true or false");
        }
        return new RevisionSettings(
                service,
                number(tree, "containerConcurrency", 0, Integer.MAX_VALUE),
                Duration.ofSeconds(number(tree, "timeoutSeconds", TIMEOUT_SECONDS, Integer.MAX_VALUE)),
                http,
                grpc,
                holds.asBoolean(true),
                burst.asDouble(BURST),
                tree.path("byModel").asBoolean(false),
                tree.path("model").asText(""));
    }

    private static int number(JsonNode tree, String field, int missing, int most) {
        JsonNode value = tree.path(field);
        if (value.isMissingNode()) {
            return missing;
        }
        if (!value.isInt() || value.intValue() < 0 || value.intValue() > most) {
            throw invalid(field, value, "a whole number from 0 to " + most);
        }
        return value.intValue();
    }

    private static ServingException invalid(String field, JsonNode value, String expected) {
        return ServingException.invalidArgument(
                GatewayObjects.REVISION + " has the " + field + " " + value + " (expected: " + expected + ")");
    }
}
