// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded.server;

import io.nereid.base.access.Operation;
import io.nereid.embedded.Nereid;
import io.nereid.observe.metrics.MetricsFormat;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.PageRenderer;
import io.nereid.transport.api.ProtocolCodec;
import java.net.URL;
import java.util.List;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/** {@code GET /metrics}, with the metrics of the application's models. Thread-safe. */
final class MetricsPage implements ProtocolCodec {
    private final PageRenderer<MetricsFormat> pages;

    MetricsPage(Nereid nereid, Executor pool) {
        this.pages = new PageRenderer<>(pool, nereid::metrics);
    }

    @Override
    public String name() {
        return "metrics";
    }

    @Override
    public @Nullable URL openApi() {
        return MetricsPage.class.getResource("openapi.json");
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        return List.of(HttpRoute.get("/metrics", Operation.METRICS, x -> {
            MetricsFormat format = MetricsFormat.accepted(x.header("accept"));
            pages.reply(x, format, text -> HttpReply.text(200, format.contentType(), text));
        }));
    }
}
