// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.client;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import io.nereid.client.ClientBuilder;
import io.nereid.client.NereidClient;
import io.nereid.client.options.RequestInterceptor;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.context.Scope;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;

/** The code of docs/CLIENT.md for traces, which a test of the documents compares with it. */
class ClientTracesGuideTest {
    @Test
    void theSpanOfTheCallerIsSent() throws IOException {
        List<String> seen = new CopyOnWriteArrayList<>();
        HttpServer http = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        http.createContext("/", exchange -> {
            seen.add(String.valueOf(exchange.getRequestHeaders().getFirst("traceparent")));
            exchange.sendResponseHeaders(200, -1);
            exchange.close();
        });
        http.start();
        ClientBuilder builder =
                NereidClient.builder("http://127.0.0.1:" + http.getAddress().getPort());
        builder.interceptor(RequestInterceptor.traceparent(() -> {
            SpanContext span = Span.current().getSpanContext();
            String ids = span.getTraceId() + "-" + span.getSpanId();
            return span.isValid() ? "00-" + ids + "-" + span.getTraceFlags().asHex() : null;
        }));
        SpanContext span = SpanContext.create(
                "0af7651916cd43dd8448eb211c80319c",
                "b7ad6b7169203331",
                TraceFlags.getSampled(),
                TraceState.getDefault());
        try (NereidClient client = builder.build()) {
            assertThat(client.isLive()).isTrue();
            try (Scope scope = Span.wrap(span).makeCurrent()) {
                assertThat(client.isLive()).isTrue();
            }
        } finally {
            http.stop(0);
        }
        assertThat(seen).containsExactly("null", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    }
}
