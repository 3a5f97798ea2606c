// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.inprocess;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcMethod.GrpcHandler;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.UpstreamClient.Header;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** A unary call within this process that collects its one response. Thread-safe. */
public final class AggregatingCall extends InProcessCall {
    private final CompletableFuture<MemoryRegion> response = new CompletableFuture<>();

    @GuardedBy("this") private @Nullable MemoryRegion message;

    public AggregatingCall(String path, List<Header> metadata, long arrived) {
        super(path, metadata, arrived);
    }

    /**
     * Sends a request, whose ownership passes to this call. The caller owns the response. Cancelling the future cancels
     * the call.
     */
    public CompletableFuture<MemoryRegion> start(GrpcHandler handler, MemoryRegion request) {
        try {
            GrpcListener listener = handler.start(this);
            Object unused = response.whenComplete((got, failure) -> {
                if (response.isCancelled()) {
                    listener.onCancel();
                }
            });
            listener.onMessage(request);
            listener.onHalfClose();
        } catch (RuntimeException e) {
            fail(ServingException.from(e));
        } finally {
            request.release();
        }
        return response;
    }

    @Override
    public void send(ResponseBody content) {
        MemoryRegion copy = BodyCopies.copy(content);
        content.discard();
        MemoryRegion before;
        synchronized (this) {
            before = message;
            message = copy;
        }
        if (before != null) {
            before.release();
        }
    }

    @Override
    public void sendAndClose(ResponseBody content) {
        send(content);
        close(ErrorCode.OK, null);
    }

    /** Keeps the cause, which shows whether anything was sent. */
    @Override
    public void fail(ServingException e) {
        response.completeExceptionally(e);
        close(e.code(), e.describe());
    }

    @Override
    public void close(ErrorCode code, @Nullable String text) {
        MemoryRegion got;
        synchronized (this) {
            got = message;
            message = null;
        }
        boolean taken;
        if (code == ErrorCode.OK && got != null) {
            taken = response.complete(got);
        } else {
            taken = false;
            response.completeExceptionally(ServingException.of(
                    code == ErrorCode.OK ? ErrorCode.INTERNAL : code,
                    text != null && !text.isEmpty()
                            ? text
                            : code == ErrorCode.OK
                                    ? "the call of " + path() + " ended without an answer"
                                    : code.name()));
        }
        if (got != null && !taken) {
            got.release();
        }
    }
}
