// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.component;

import io.nereid.base.access.Operation;
import io.nereid.observe.metrics.MetricsFormat;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/** What the process of a component answers itself: probes and metrics. Thread-safe. */
final class ComponentCodec implements ProtocolCodec {
    /** The paths that are not the component's. */
    static final List<String> PATHS = List.of("/healthz", "/readyz", "/metrics");

    private final BooleanSupplier ready;
    private final Consumer<MetricsWriter> metrics;

    /** @param ready whether the component takes requests */
    ComponentCodec(BooleanSupplier ready, Consumer<MetricsWriter> metrics) {
        this.ready = ready;
        this.metrics = metrics;
    }

    @Override
    public String name() {
        return "component";
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        return List.of(
                HttpRoute.get(
                        PATHS.get(0), Operation.HEALTH, x -> x.reply(HttpReply.json(200, "{\"status\":\"alive\"}"))),
                HttpRoute.get(
                        PATHS.get(1),
                        Operation.HEALTH,
                        x -> x.reply(
                                ready.getAsBoolean()
                                        ? HttpReply.json(200, "{\"ready\":true}")
                                        : HttpReply.json(503, "{\"ready\":false}"))),
                HttpRoute.get(PATHS.get(2), Operation.METRICS, x -> {
                    MetricsFormat format = MetricsFormat.accepted(x.header("accept"));
                    x.reply(HttpReply.text(200, format.contentType(), MetricsWriter.page(format, metrics)));
                }));
    }
}
