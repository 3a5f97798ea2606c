// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import io.nereid.base.ServingException;
import io.nereid.tensor.MemoryRegion;
import io.nereid.testkit.InMemoryExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.api.UpstreamResponse;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** A request in memory; cancelling its response stands for a client that disconnects. Confined to one thread. */
final class Exchange extends InMemoryExchange {
    private final CompletableFuture<UpstreamResponse> answer = new CompletableFuture<>();

    /** @param body its ownership passes to this */
    Exchange(String method, String path, List<Header> given, MemoryRegion body) {
        super(method, path, List.of("echo"), body);
        given.forEach(h -> headers.put(h.name(), h.value()));
        Object unused = answer.whenComplete((got, failure) -> {
            if (answer.isCancelled()) {
                leave();
            }
        });
    }

    CompletableFuture<UpstreamResponse> handledBy(HttpRoute route) {
        try {
            route.handler().handle(this);
        } catch (ServingException e) {
            fail(e);
        }
        return answer;
    }

    @Override
    public void reply(HttpReply reply) {
        super.reply(reply);
        byte[] bytes = bytes(reply.content());
        MemoryRegion copy = MemoryRegion.copyOf(bytes, 0, bytes.length);
        if (!answer.complete(new UpstreamResponse(reply.status(), List.of(), copy))) {
            copy.release();
        }
    }
}
