// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.base.access.Operation;
import io.nereid.observe.metrics.MetricsFormat;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.PageRenderer;
import io.nereid.transport.api.ProtocolCodec;
import java.net.URL;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The pages that KServe's servers have beside their protocols, at the host of a service: {@code GET /}, which says that it
 * is alive, and {@code GET /metrics}, with the metrics of the service's own models. Thread-safe.
 */
final class ServicePages implements ProtocolCodec {
    private static final Pattern MODEL = Pattern.compile("[{,]model=\"((?:[^\"\\\\]|\\\\.)*)\"");

    private final Consumer<MetricsWriter> metrics;
    private final Predicate<String> own;
    private final PageRenderer<MetricsFormat> pages;

    /**
     * @param metrics writes the metrics of all models
     * @param own whether a model of the engine is one of the service
     * @param pool renders large pages
     */
    ServicePages(Consumer<MetricsWriter> metrics, Predicate<String> own, Executor pool) {
        this.metrics = metrics;
        this.own = own;
        this.pages = new PageRenderer<>(pool, this::page);
    }

    @Override
    public String name() {
        return "pages";
    }

    @Override
    public @Nullable URL openApi() {
        return ServicePages.class.getResource("openapi.json");
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        return List.of(
                HttpRoute.get("/", Operation.HEALTH, x -> x.reply(HttpReply.json(200, "{\"status\":\"alive\"}"))),
                HttpRoute.get("/metrics", Operation.METRICS, x -> {
                    MetricsFormat format = MetricsFormat.accepted(x.header("accept"));
                    pages.reply(x, format, text -> HttpReply.text(200, format.contentType(), text));
                }));
    }

    /** The page with the samples of the service's models, and the heads of their families. */
    private String page(MetricsFormat format) {
        StringBuilder page = new StringBuilder();
        StringBuilder head = new StringBuilder();
        for (String line : MetricsWriter.page(format, metrics).split("\n")) {
            if (line.startsWith("# EOF")) {
                page.append(line).append('\n');
            } else if (line.startsWith("#")) {
                // The first line of a family is its help, or its type if it has no help.
                if (line.startsWith("# HELP") || line.startsWith("# TYPE") && head.indexOf("# TYPE") >= 0) {
                    head.setLength(0);
                }
                head.append(line).append('\n');
            } else {
                Matcher model = MODEL.matcher(line);
                if (model.find() && own.test(model.group(1))) {
                    page.append(head).append(line).append('\n');
                    head.setLength(0);
                }
            }
        }
        return page.toString();
    }
}
