// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.rest;

import io.nereid.base.access.Operation;
import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.protocols.v2.codec.ModelReferences;
import io.nereid.spi.ModelRef;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.HttpRoute.HttpHandler;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;

/** Builds the REST routes. Confined to one thread; used once. */
public final class RestRoutes {
    private final CodecContext context;
    private final List<HttpRoute> routes = new ArrayList<>();

    private RestRoutes(CodecContext context) {
        this.context = context;
    }

    public static List<HttpRoute> of(CodecContext context) {
        RestRoutes table = new RestRoutes(context);
        table.inference();
        table.control();
        table.observation();
        table.sharedMemory();
        return List.copyOf(table.routes);
    }

    private void inference() {
        model(
                Operation.INFERENCE,
                "POST",
                "/infer",
                (exchange, model) -> new RestInference(context, exchange, model).start());
        model(
                Operation.INFERENCE,
                "POST",
                "/generate",
                (exchange, model) -> new RestGenerate(context, exchange, model, false).start());
        model(
                Operation.INFERENCE,
                "POST",
                "/generate_stream",
                (exchange, model) -> new RestGenerate(context, exchange, model, true).start());
    }

    private void control() {
        RestManagement control = new RestManagement(context);
        add(Operation.METADATA, "GET", "/v2", control::server);
        add(Operation.HEALTH, "GET", "/v2/health/live", control::live);
        add(Operation.HEALTH, "GET", "/v2/health/ready", control::ready);
        add(Operation.METADATA, "GET", "/v2/models", control::models);
        model(Operation.METADATA, "GET", "", control::metadata);
        model(Operation.HEALTH, "GET", "/ready", control::modelReady);
        model(Operation.MODEL_CONFIG, "GET", "/config", control::config);
        add(Operation.REPOSITORY_INDEX, "POST", "/v2/repository/index", control::index);
        add(Operation.REPOSITORY_INDEX, "POST", "/v2/repository/{repository}/index", control::index);
        Operation load = Operation.MODEL_CONTROL;
        add(load, "POST", "/v2/repository/models/{model}/load", control::load);
        add(load, "POST", "/v2/repository/models/{model}/unload", control::unload);
        add(load, "POST", "/v2/repository/{repository}/models/{model}/load", control::withRepositoryName);
        add(load, "POST", "/v2/repository/{repository}/models/{model}/unload", control::withRepositoryName);
    }

    private void observation() {
        RestObservability observation = new RestObservability(context);
        add(Operation.STATISTICS, "GET", "/v2/models/stats", observation::allStatistics);
        model(Operation.STATISTICS, "GET", "/stats", observation::statistics);
        model(Operation.STATISTICS, "GET", "/requests/slow", observation::slowRequests);
        add(Operation.TRACE, "GET", "/v2/trace/setting", exchange -> observation.traceSettings(exchange, null));
        add(
                Operation.CONFIGURE_TRACE,
                "POST",
                "/v2/trace/setting",
                exchange -> observation.updateTraceSettings(exchange, null));
        model(Operation.TRACE, "GET", "/trace/setting", observation::traceSettings);
        model(Operation.CONFIGURE_TRACE, "POST", "/trace/setting", observation::updateTraceSettings);
        add(Operation.LOGGING, "GET", "/v2/logging", observation::logSettings);
        add(Operation.CONFIGURE_LOGGING, "POST", "/v2/logging", observation::updateLogSettings);
    }

    private void sharedMemory() {
        RestSharedMemory memory = new RestSharedMemory(context);
        Operation share = Operation.SHARED_MEMORY;
        String system = "/v2/systemsharedmemory";
        add(share, "GET", system + "/status", exchange -> memory.status(exchange, ""));
        add(share, "GET", system + "/region/{region}/status", each(memory::status));
        add(share, "POST", system + "/region/{region}/register", each(memory::register));
        add(share, "POST", system + "/unregister", exchange -> memory.unregister(exchange, ""));
        add(share, "POST", system + "/region/{region}/unregister", each(memory::unregister));
        String cuda = "/v2/cudasharedmemory";
        add(share, "GET", cuda + "/status", exchange -> memory.cudaStatus(exchange, ""));
        add(share, "GET", cuda + "/region/{region}/status", each(memory::cudaStatus));
        add(share, "POST", cuda + "/region/{region}/register", each(memory::cudaRegister));
        add(share, "POST", cuda + "/unregister", exchange -> memory.cudaUnregister(exchange, ""));
        add(share, "POST", cuda + "/region/{region}/unregister", each(memory::cudaUnregister));
    }

    private static HttpHandler each(BiConsumer<HttpExchange, String> handler) {
        return exchange -> handler.accept(exchange, exchange.pathParameter(0));
    }

    private void model(Operation operation, String method, String call, BiConsumer<HttpExchange, ModelRef> handler) {
        add(
                operation,
                method,
                "/v2/models/{model}" + call,
                exchange -> handler.accept(exchange, ModelReferences.reference(exchange.pathParameter(0), null)));
        add(
                operation,
                method,
                "/v2/models/{model}/versions/{version}" + call,
                exchange -> handler.accept(
                        exchange, ModelReferences.reference(exchange.pathParameter(0), exchange.pathParameter(1))));
    }

    private void add(Operation operation, String method, String template, HttpHandler handler) {
        routes.add(new HttpRoute(method, template, operation, handler));
    }
}
