// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.endpoint.HttpExchange;
import io.nereid.endpoint.HttpRoute;
import io.nereid.spi.ModelRef;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;

/** The table of REST routes. Immutable. */
final class RestRoutes {
    private RestRoutes() {}

    static List<HttpRoute> of(CodecContext context) {
        RestControl control = new RestControl(context);
        List<HttpRoute> routes = new ArrayList<>();
        routes.add(HttpRoute.get("/v2", control::server));
        routes.add(HttpRoute.get("/v2/health/live", control::live));
        routes.add(HttpRoute.get("/v2/health/ready", control::ready));
        routes.add(HttpRoute.get("/v2/models", control::models));
        model(routes, "GET", "", control::metadata);
        model(routes, "GET", "/ready", control::modelReady);
        model(routes, "GET", "/config", control::config);
        model(routes, "POST", "/infer", (exchange, model) -> new RestInference(context, exchange, model).start());
        routes.add(HttpRoute.post("/v2/repository/index", control::index));
        routes.add(HttpRoute.post("/v2/repository/{repository}/index", control::index));
        routes.add(HttpRoute.post("/v2/repository/models/{model}/load", control::load));
        routes.add(HttpRoute.post("/v2/repository/models/{model}/unload", control::unload));
        routes.add(HttpRoute.post("/v2/repository/{repository}/models/{model}/load", control::withRepositoryName));
        routes.add(HttpRoute.post("/v2/repository/{repository}/models/{model}/unload", control::withRepositoryName));
        return List.copyOf(routes);
    }

    private static void model(
            List<HttpRoute> routes, String method, String call, BiConsumer<HttpExchange, ModelRef> handler) {
        routes.add(new HttpRoute(
                method,
                "/v2/models/{model}" + call,
                exchange -> handler.accept(exchange, Names.reference(exchange.pathParameter(0), null))));
        routes.add(new HttpRoute(
                method,
                "/v2/models/{model}/versions/{version}" + call,
                exchange -> handler.accept(
                        exchange, Names.reference(exchange.pathParameter(0), exchange.pathParameter(1)))));
    }
}
