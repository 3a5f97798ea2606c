// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import io.nereid.base.ServingException;
import io.nereid.endpoint.HttpReply;
import io.nereid.endpoint.HttpRoute;
import io.nereid.endpoint.Upstream;
import io.nereid.endpoint.Upstream.Header;
import io.nereid.tensor.MemoryRegion;
import io.nereid.testkit.MemoryExchange;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** A request in memory; cancelling its answer is the client that goes away. Confined to one thread. */
final class Exchange extends MemoryExchange {
    private final CompletableFuture<Upstream.Answer> answer = new CompletableFuture<>();

    /** @param body taken over */
    Exchange(String method, String path, List<Header> given, MemoryRegion body) {
        super(method, path, List.of("echo"), body);
        given.forEach(h -> headers.put(h.name(), h.value()));
        Object unused = answer.whenComplete((got, failure) -> {
            if (answer.isCancelled()) {
                leave();
            }
        });
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
    public void reply(HttpReply reply) {
        super.reply(reply);
        byte[] bytes = bytes(reply.content());
        MemoryRegion copy = MemoryRegion.copyOf(bytes, 0, bytes.length);
        if (!answer.complete(new Upstream.Answer(reply.status(), List.of(), copy))) {
            copy.release();
        }
    }
}
