// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.load;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.nereid.app.perf.input.RequestEncoder.RestBody;
import io.nereid.base.ServingException;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.api.UpstreamResponse;
import io.nereid.transport.proxy.PooledUpstreamClient;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionException;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A model of a server, called by Open Inference over HTTP/1.1. Each request in flight has a connection. Thread-safe. */
public final class RestTarget implements LoadTarget {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int OK = 200;
    /** The most characters of a response that is not JSON. */
    private static final int SHOWN = 200;

    private final PooledUpstreamClient client;
    private final String url;
    private final List<RestBody> bodies;
    private final List<List<Header>> headers = new ArrayList<>();
    private final ForwardOptions terms;
    private final Supplier<@Nullable ServerTimes> statistics;

    /**
     * @param client closed with this object
     * @param url the URL of the requests
     * @param more headers of every request, such as credentials
     * @param terms the time limit of a request, and the largest response
     * @param statistics reads the model's statistics
     */
    public RestTarget(
            PooledUpstreamClient client,
            String url,
            List<RestBody> bodies,
            List<Header> more,
            ForwardOptions terms,
            Supplier<@Nullable ServerTimes> statistics) {
        this.client = client;
        this.url = url;
        this.bodies = List.copyOf(bodies);
        this.terms = terms;
        this.statistics = statistics;
        for (RestBody body : bodies) {
            List<Header> all = new ArrayList<>(more);
            all.add(new Header(
                    "content-type", body.jsonLength() < 0 ? "application/json" : "application/octet-stream"));
            if (body.jsonLength() >= 0) {
                all.add(new Header("inference-header-content-length", Integer.toString(body.jsonLength())));
            }
            headers.add(List.copyOf(all));
        }
    }

    @Override
    public void send(int index, Completion completion) {
        int sample = index % bodies.size();
        Object unused = client.send(
                        "POST", url, headers.get(sample), bodies.get(sample).bytes(), terms)
                .whenComplete((response, thrown) -> completion.done(thrown == null ? failure(response) : text(thrown)));
    }

    private static @Nullable String failure(UpstreamResponse response) {
        MemoryRegion body = response.body();
        try {
            if (response.status() == OK) {
                return null;
            }
            byte[] bytes = new byte[body.size()];
            body.getBytes(0, bytes, 0, bytes.length);
            String text = new String(bytes, StandardCharsets.UTF_8);
            try {
                text = JSON.readTree(text).path("error").asText(text);
            } catch (JsonProcessingException e) {
                text = text.substring(0, Math.min(text.length(), SHOWN));
            }
            return "HTTP " + response.status() + (text.isBlank() ? "" : ": " + text);
        } finally {
            body.release();
        }
    }

    /** The reason of a request without a response. */
    static String text(Throwable thrown) {
        Throwable cause =
                thrown instanceof CompletionException && thrown.getCause() != null ? thrown.getCause() : thrown;
        ServingException e = ServingException.from(cause);
        return e.code() + ": " + e.getMessage();
    }

    @Override
    public boolean runsOnCaller() {
        return false;
    }

    @Override
    public @Nullable ServerTimes serverTimes() {
        return statistics.get();
    }

    @Override
    public void close() {
        client.close();
    }
}
