// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.rest;

import io.nereid.protocols.v2.codec.CodecContext;
import io.nereid.protocols.v2.codec.ModelReferences;
import io.nereid.protocols.v2.options.ApiGroup;
import io.nereid.protocols.v2.options.RestrictedApiHeader;
import io.nereid.spi.ModelRef;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
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
                ApiGroup.INFERENCE,
                "POST",
                "/infer",
                (exchange, model) -> new RestInference(context, exchange, model).start());
        model(
                ApiGroup.INFERENCE,
                "POST",
                "/generate",
                (exchange, model) -> new RestGenerate(context, exchange, model, false).start());
        model(
                ApiGroup.INFERENCE,
                "POST",
                "/generate_stream",
                (exchange, model) -> new RestGenerate(context, exchange, model, true).start());
    }

    private void control() {
        RestManagement control = new RestManagement(context);
        add(ApiGroup.METADATA, "GET", "/v2", control::server);
        add(ApiGroup.HEALTH, "GET", "/v2/health/live", control::live);
        add(ApiGroup.HEALTH, "GET", "/v2/health/ready", control::ready);
        add(ApiGroup.METADATA, "GET", "/v2/models", control::models);
        model(ApiGroup.METADATA, "GET", "", control::metadata);
        model(ApiGroup.HEALTH, "GET", "/ready", control::modelReady);
        model(ApiGroup.MODEL_CONFIG, "GET", "/config", control::config);
        ApiGroup repository = ApiGroup.MODEL_REPOSITORY;
        add(repository, "POST", "/v2/repository/index", control::index);
        add(repository, "POST", "/v2/repository/{repository}/index", control::index);
        add(repository, "POST", "/v2/repository/models/{model}/load", control::load);
        add(repository, "POST", "/v2/repository/models/{model}/unload", control::unload);
        add(repository, "POST", "/v2/repository/{repository}/models/{model}/load", control::withRepositoryName);
        add(repository, "POST", "/v2/repository/{repository}/models/{model}/unload", control::withRepositoryName);
    }

    private void observation() {
        RestObservability observation = new RestObservability(context);
        add(ApiGroup.STATISTICS, "GET", "/v2/models/stats", observation::allStatistics);
        model(ApiGroup.STATISTICS, "GET", "/stats", observation::statistics);
        add(ApiGroup.TRACE, "GET", "/v2/trace/setting", exchange -> observation.traceSettings(exchange, null));
        add(ApiGroup.TRACE, "POST", "/v2/trace/setting", exchange -> observation.updateTraceSettings(exchange, null));
        model(ApiGroup.TRACE, "GET", "/trace/setting", observation::traceSettings);
        model(ApiGroup.TRACE, "POST", "/trace/setting", observation::updateTraceSettings);
        add(ApiGroup.LOGGING, "GET", "/v2/logging", observation::logSettings);
        add(ApiGroup.LOGGING, "POST", "/v2/logging", observation::updateLogSettings);
    }

    private void sharedMemory() {
        RestSharedMemory memory = new RestSharedMemory(context);
        ApiGroup group = ApiGroup.SHARED_MEMORY;
        String system = "/v2/systemsharedmemory";
        add(group, "GET", system + "/status", exchange -> memory.status(exchange, ""));
        add(group, "GET", system + "/region/{region}/status", each(memory::status));
        add(group, "POST", system + "/region/{region}/register", each(memory::register));
        add(group, "POST", system + "/unregister", exchange -> memory.unregister(exchange, ""));
        add(group, "POST", system + "/region/{region}/unregister", each(memory::unregister));
        String cuda = "/v2/cudasharedmemory";
        add(group, "GET", cuda + "/status", memory::cudaStatus);
        add(group, "GET", cuda + "/region/{region}/status", each(memory::cudaStatus));
        add(group, "POST", cuda + "/region/{region}/register", each(memory::cudaRegister));
        add(group, "POST", cuda + "/unregister", memory::cudaUnregister);
        add(group, "POST", cuda + "/region/{region}/unregister", memory::cudaUnregister);
    }

    private static HttpHandler each(BiConsumer<HttpExchange, String> handler) {
        return exchange -> handler.accept(exchange, exchange.pathParameter(0));
    }

    private void model(ApiGroup group, String method, String call, BiConsumer<HttpExchange, ModelRef> handler) {
        add(
                group,
                method,
                "/v2/models/{model}" + call,
                exchange -> handler.accept(exchange, ModelReferences.reference(exchange.pathParameter(0), null)));
        add(
                group,
                method,
                "/v2/models/{model}/versions/{version}" + call,
                exchange -> handler.accept(
                        exchange, ModelReferences.reference(exchange.pathParameter(0), exchange.pathParameter(1))));
    }

    private void add(ApiGroup group, String method, String template, HttpHandler handler) {
        RestrictedApiHeader restriction = context.options.httpRestrictions().get(group);
        routes.add(new HttpRoute(method, template, restriction == null ? handler : restricted(restriction, handler)));
    }

    private static HttpHandler restricted(RestrictedApiHeader restriction, HttpHandler handler) {
        return exchange -> {
            if (restriction.allows(exchange.header(restriction.header()))) {
                handler.handle(exchange);
            } else {
                exchange.reply(HttpReply.error(
                        403, "This API is restricted, expecting header '" + restriction.header() + "'"));
            }
        };
    }
}
