// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.control.api.ServiceConfig;
import io.nereid.control.core.Route;
import io.nereid.control.core.Workload;
import io.nereid.control.gateway.Gateway;
import io.nereid.control.graph.GraphCodec;
import io.nereid.control.local.BuiltIns;
import io.nereid.endpoint.ProtocolCodec;
import io.nereid.endpoint.Upstream;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Function;
import java.util.regex.Pattern;

/** What services are made of beside models and processes: graphs and explainers. Thread-safe. */
final class ServiceParts implements BuiltIns {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Gateway gateway;
    private final Upstream upstream;
    private final Function<String, ServiceConfig> configs;

    ServiceParts(Gateway gateway, Upstream upstream, Function<String, ServiceConfig> configs) {
        this.gateway = gateway;
        this.upstream = upstream;
        this.configs = configs;
    }

    @Override
    public Running explainer(Workload workload, Workload.Explainer form, List<Path> files) {
        throw ServingException.of(Code.UNIMPLEMENTED, "explainers are not there yet");
    }

    @Override
    public Running graph(Route route) {
        ObjectNode spec;
        try {
            spec = (ObjectNode) JSON.readTree(route.graph());
        } catch (JsonProcessingException e) {
            throw ServingException.wrap(Code.INTERNAL, "the graph of " + route.name() + " is no JSON", e);
        }
        List<Pattern> propagate = configs.apply(route.namespace()).router().headersToPropagate().stream()
                .map(Pattern::compile)
                .toList();
        long seconds = spec.path("routerTimeouts").path("serviceClient").asLong(0);
        GraphCodec codec = new GraphCodec(
                spec,
                new GraphCodec.Settings(
                        propagate,
                        Duration.ofSeconds(seconds),
                        () -> ThreadLocalRandom.current().nextInt(100)),
                new GraphCalls(route.namespace(), gateway, upstream));
        return new Codecs(List.of(codec));
    }

    /** Protocols that hold nothing. */
    private record Codecs(List<ProtocolCodec> codecs) implements Running {
        @Override
        public void close() {
            // Nothing to let go of.
        }
    }
}
