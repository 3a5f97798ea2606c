// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import io.nereid.base.ServingException;
import io.nereid.endpoint.HttpExchange;
import io.nereid.endpoint.HttpReply;
import io.nereid.endpoint.HttpRoute;
import io.nereid.endpoint.HttpStream;
import io.nereid.endpoint.Upstream;
import io.nereid.endpoint.Upstream.Header;
import io.nereid.tensor.MemoryRegion;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** A request in memory; cancelling its answer is the client that goes away. Confined to one thread. */
final class Exchange implements HttpExchange {
    private final CompletableFuture<Upstream.Answer> answer = new CompletableFuture<>();
    private final String method;
    private final String path;
    private final List<Header> headers;
    private final MemoryRegion body;

    /** @param body taken over */
    Exchange(String method, String path, List<Header> headers, MemoryRegion body) {
        this.method = method;
        this.path = path;
        this.headers = headers;
        this.body = body;
    }

    CompletableFuture<Upstream.Answer> handledBy(HttpRoute route) {
        try {
            route.handler().handle(this);
        } catch (ServingException e) {
            fail(e);
        }
        return answer;
    }

    @Override
    public String method() {
        return method;
    }

    @Override
    public String path() {
        return path;
    }

    @Override
    public String pathParameter(int index) {
        return path.split("/")[3];
    }

    @Override
    public @Nullable String queryParameter(String name) {
        return null;
    }

    @Override
    public @Nullable String header(String lowerCaseName) {
        return headers.stream()
                .filter(h -> h.name().equals(lowerCaseName))
                .map(Header::value)
                .findFirst()
                .orElse(null);
    }

    @Override
    public MemoryRegion body() {
        return body;
    }

    @Override
    public long arrivedNanos() {
        return 1_000;
    }

    @Override
    public void onCancel(Runnable action) {
        Object unused = answer.whenComplete((got, failure) -> {
            if (answer.isCancelled()) {
                action.run();
            }
        });
    }

    @Override
    public boolean inEventLoop() {
        return true;
    }

    @Override
    public void reply(HttpReply reply) {
        byte[] bytes = UnaryCall.bytes(reply.content());
        body.release();
        MemoryRegion copy = MemoryRegion.copyOf(bytes, 0, bytes.length);
        if (!answer.complete(new Upstream.Answer(reply.status(), List.of(), copy))) {
            copy.release();
        }
    }

    @Override
    public HttpStream stream(HttpReply head) {
        throw new AssertionError("no stream");
    }

    @Override
    public void headers(BiConsumer<String, String> each) {
        headers.forEach(h -> each.accept(h.name(), h.value()));
    }
}
