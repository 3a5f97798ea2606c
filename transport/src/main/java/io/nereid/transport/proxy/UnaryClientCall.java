// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.proxy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.UpstreamClient.Header;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A unary call that this process makes itself: {@link GrpcProxyCall} sends it and delivers the response here. Confined to the
 * event loop of the upstream connection, except for the future.
 */
final class UnaryClientCall implements GrpcCall {
    final CompletableFuture<MemoryRegion> response = new CompletableFuture<>();

    private final String path;
    private final List<Header> metadata;
    private final long startedNanos;
    private @Nullable MemoryRegion message;

    UnaryClientCall(String path, List<Header> metadata, long startedNanos) {
        this.path = path;
        this.metadata = metadata;
        this.startedNanos = startedNanos;
    }

    @Override
    public String path() {
        return path;
    }

    @Override
    public @Nullable String metadata(String lowerCaseName) {
        for (Header header : metadata) {
            if (header.name().equalsIgnoreCase(lowerCaseName)) {
                return header.value();
            }
        }
        return null;
    }

    @Override
    public void metadata(BiConsumer<String, String> each) {
        metadata.forEach(header -> each.accept(header.name(), header.value()));
    }

    @Override
    public long deadlineNanos() {
        return Long.MAX_VALUE;
    }

    @Override
    public long arrivedNanos() {
        return startedNanos;
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
    public void setReading(boolean reading) {
        // the one message is sent already
    }

    /** @param body what {@link ProxyExchange#content} makes of a message: no text, and at most one tensor */
    @Override
    public void send(ResponseBody body) {
        if (message != null) {
            body.discard();
            close(ErrorCode.INTERNAL, "more than one message came in response to " + path);
            return;
        }
        if (body.tensorCount() == 0) {
            message = MemoryRegion.empty();
            return;
        }
        try (Tensor bytes = body.tensor(0)) {
            message = bytes.region().retain();
        }
    }

    @Override
    public void sendAndClose(ResponseBody body) {
        send(body);
        close(ErrorCode.OK, null);
    }

    @Override
    public void close(ErrorCode code, @Nullable String text) {
        MemoryRegion received = message;
        message = null;
        if (code == ErrorCode.OK && received != null) {
            if (!response.complete(received)) {
                received.release();
            }
            return;
        }
        if (received != null) {
            received.release();
        }
        response.completeExceptionally(
                code == ErrorCode.OK
                        ? ServingException.of(ErrorCode.INTERNAL, path + " was answered without a message")
                        : ServingException.of(code, text == null || text.isEmpty() ? code.name() : text));
    }

    @Override
    public void fail(ServingException e) {
        response.completeExceptionally(e);
    }
}
