// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import io.nereid.control.gateway.inprocess.AggregatingCall;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.UpstreamClient.Address;
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
        this.address = new Address("localhost", port);
    }

    /** Calls the method; null when it fails. */
    @Nullable String say(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        try {
            MemoryRegion answer = new AggregatingCall("/test.Echo/Say", List.of(), System.nanoTime())
                    .start(
                            call -> client.forward(call, address, ForwardOptions.DEFAULT),
                            MemoryRegion.copyOf(bytes, 0, bytes.length))
                    .join();
            byte[] got = new byte[answer.size()];
            answer.getBytes(0, got, 0, got.length);
            answer.release();
            return new String(got, StandardCharsets.UTF_8);
        } catch (CompletionException e) {
            return null;
        }
    }

    @Override
    public void close() {
        client.close();
    }
}
