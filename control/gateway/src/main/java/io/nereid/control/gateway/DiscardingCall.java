// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.base.Code;
import io.nereid.endpoint.Content;
import io.nereid.endpoint.GrpcCall;
import io.nereid.endpoint.Upstream.Header;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** A call whose answers nobody reads. Thread-safe. */
final class DiscardingCall implements GrpcCall {
    private final String path;
    private final List<Header> metadata;
    private final long arrived;
    private final AtomicInteger underWay;
    private final AtomicBoolean ended = new AtomicBoolean();

    /** A call that takes one off {@code underWay} when it ends. */
    DiscardingCall(String path, List<Header> metadata, long arrived, AtomicInteger underWay) {
        this.path = path;
        this.metadata = metadata;
        this.arrived = arrived;
        this.underWay = underWay;
    }

    @Override
    public String path() {
        return path;
    }

    @Override
    public @Nullable String metadata(String lowerCaseName) {
        for (Header header : metadata) {
            if (header.name().equals(lowerCaseName)) {
                return header.value();
            }
        }
        return null;
    }

    @Override
    public void metadata(BiConsumer<String, String> each) {
        metadata.forEach(h -> each.accept(h.name(), h.value()));
    }

    @Override
    public long deadlineNanos() {
        return Long.MAX_VALUE;
    }

    @Override
    public long arrivedNanos() {
        return arrived;
    }

    @Override
    public boolean inEventLoop() {
        return false;
    }

    @Override
    public boolean isReady() {
        return true;
    }

    @Override
    public void setReading(boolean reading) {}

    @Override
    public void send(Content message) {
        message.discard();
    }

    @Override
    public void sendAndClose(Content message) {
        message.discard();
        close(Code.OK, null);
    }

    @Override
    public void close(Code code, @Nullable String message) {
        if (ended.compareAndSet(false, true)) {
            underWay.decrementAndGet();
        }
    }
}
