// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import io.nereid.base.ServingException;
import io.nereid.control.gateway.inprocess.AggregatingCall;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.UpstreamClient.Address;
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.proxy.PooledUpstreamClient;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/** A client that makes gRPC calls with a text as the message. Confined to the test's thread. */
final class GrpcEcho implements AutoCloseable {
    private final PooledUpstreamClient client = new PooledUpstreamClient(PooledUpstreamClient.Options.DEFAULT);
    private final Address address;

    GrpcEcho(int port) {
        this("localhost", port);
    }

    GrpcEcho(String host, int port) {
        this.address = new Address(host, port);
    }

    /** Calls the method; null when it fails. */
    @Nullable String say(String text) {
        try {
            return call(text, List.of());
        } catch (CompletionException e) {
            return null;
        }
    }

    /** Calls the method with a token; returns the code when it fails. */
    String say(String text, @Nullable String token) {
        try {
            return call(text, token == null ? List.of() : List.of(new Header("authorization", "Bearer " + token)));
        } catch (CompletionException e) {
            return ServingException.from(e.getCause()).code().name();
        }
    }

    private String call(String text, List<Header> metadata) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        MemoryRegion answer = new AggregatingCall("/test.Echo/Say", metadata, System.nanoTime())
                .start(
                        call -> client.forward(call, address, ForwardOptions.DEFAULT),
                        MemoryRegion.copyOf(bytes, 0, bytes.length))
                .join();
        byte[] got = new byte[answer.size()];
        answer.getBytes(0, got, 0, got.length);
        answer.release();
        return new String(got, StandardCharsets.UTF_8);
    }

    @Override
    public void close() {
        client.close();
    }
}
