// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.load;

import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.proxy.PooledUpstreamClient;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A model of a server, called by Open Inference over gRPC. Requests share the connection of an event loop. Thread-safe. */
public final class GrpcTarget implements LoadTarget {
    private static final String METHOD = "/inference.GRPCInferenceService/ModelInfer";

    private final PooledUpstreamClient client;
    private final String url;
    private final List<MemoryRegion> messages;
    private final List<Header> metadata;
    private final ForwardOptions terms;
    private final Supplier<@Nullable ServerTimes> statistics;

    /**
     * @param client closed with this object
     * @param url the server
     * @param messages the requests
     * @param metadata of every request, such as credentials
     * @param terms the time limit of a request, and the largest response
     * @param statistics reads the model's statistics
     */
    public GrpcTarget(
            PooledUpstreamClient client,
            String url,
            List<byte[]> messages,
            List<Header> metadata,
            ForwardOptions terms,
            Supplier<@Nullable ServerTimes> statistics) {
        this.client = client;
        this.url = url;
        this.messages = messages.stream()
                .map(bytes -> MemoryRegion.copyOf(bytes, 0, bytes.length))
                .toList();
        this.metadata = List.copyOf(metadata);
        this.terms = terms;
        this.statistics = statistics;
    }

    @Override
    public void send(int index, Completion completion) {
        MemoryRegion message = messages.get(index % messages.size()).retain();
        Object unused = client.call(url, METHOD, metadata, message, terms).whenComplete((response, thrown) -> {
            if (thrown == null) {
                response.release();
            }
            completion.done(thrown == null ? null : RestTarget.text(thrown));
        });
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
        messages.forEach(MemoryRegion::release);
    }
}
