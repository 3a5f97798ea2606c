// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.inprocess;

import io.nereid.base.access.Caller;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.UpstreamClient.Header;
import java.util.List;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A gRPC call that this process makes to its own handlers, without a socket. It is always ready for responses.
 * Thread-safe, as are its subclasses.
 */
abstract class InProcessCall implements GrpcCall {
    private final String path;
    private final List<Header> metadata;
    private final long arrived;

    InProcessCall(String path, List<Header> metadata, long arrived) {
        this.path = path;
        this.metadata = List.copyOf(metadata);
        this.arrived = arrived;
    }

    @Override
    public Caller caller() {
        return Caller.INTERNAL;
    }

    @Override
    public final String path() {
        return path;
    }

    @Override
    public final @Nullable String metadata(String lowerCaseName) {
        for (Header header : metadata) {
            if (header.name().equals(lowerCaseName)) {
                return header.value();
            }
        }
        return null;
    }

    @Override
    public final void metadata(BiConsumer<String, String> each) {
        metadata.forEach(h -> each.accept(h.name(), h.value()));
    }

    @Override
    public final long deadlineNanos() {
        return Long.MAX_VALUE;
    }

    @Override
    public final long arrivedNanos() {
        return arrived;
    }

    @Override
    public final boolean inEventLoop() {
        return false;
    }

    @Override
    public final boolean isReady() {
        return true;
    }

    @Override
    public final void setReading(boolean reading) {}
}
