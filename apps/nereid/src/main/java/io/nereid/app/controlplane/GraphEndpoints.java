// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.core.Route;
import io.nereid.control.gateway.Gateway;
import io.nereid.control.graph.GraphCodec;
import io.nereid.transport.api.UpstreamClient;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Makes the endpoints of InferenceGraphs. Stateless. */
public final class GraphEndpoints {
    private static final Logger LOG = LoggerFactory.getLogger(GraphEndpoints.class);
    private static final ObjectMapper JSON = new ObjectMapper();

    private GraphEndpoints() {}

    /**
     * The endpoint of a graph.
     *
     * @param route has the graph
     * @param config says which headers are propagated
     * @param elsewhere whether services that the gateway has no route for are called at their URL
     * @throws ServingException INVALID_ARGUMENT for an invalid graph
     */
    public static GraphCodec of(
            Route route,
            InferenceServiceConfig config,
            Gateway gateway,
            UpstreamClient upstream,
            Clock clock,
            boolean elsewhere) {
        ObjectNode spec;
        try {
            spec = (ObjectNode) JSON.readTree(route.graph());
        } catch (JsonProcessingException e) {
            throw ServingException.wrap(ErrorCode.INTERNAL, "the graph of " + route.name() + " is not JSON", e);
        }
        config.router().warnings().forEach(warning -> LOG.warn("graph '{}': {}", route.name(), warning));
        return new GraphCodec(
                route.name(),
                spec,
                new GraphCodec.Settings(
                        config.router().patterns(),
                        Duration.ofSeconds(spec.path("routerTimeouts")
                                .path("serviceClient")
                                .asLong(0)),
                        Duration.ofSeconds(spec.path("timeout").asLong(0)),
                        () -> ThreadLocalRandom.current().nextInt(100)),
                new GraphStepCaller(route.namespace(), gateway, upstream, elsewhere),
                clock);
    }
}
