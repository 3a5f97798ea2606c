// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.MemoryRegion;
import io.nereid.testkit.InMemoryExchange;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod.GrpcHandler;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.ResponseBody;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** A unary gRPC call in memory, with the client's side. Confined to one thread. */
final class UnaryCall implements GrpcCall {
    final Map<String, String> metadata = new LinkedHashMap<>();
    long deadline = Long.MAX_VALUE;
    byte @Nullable [] answer;

    @Nullable ErrorCode code;

    String text = "";
    private final String path;
    private final GrpcHandler handler;
    private @Nullable GrpcListener listener;

    UnaryCall(GrpcHandler handler, String name) {
        this.path = "/inference.GRPCInferenceService/" + name;
        this.handler = handler;
    }

    UnaryCall with(String name, String value) {
        metadata.put(name, value);
        return this;
    }

    UnaryCall send(byte[] message) {
        MemoryRegion region = MemoryRegion.copyOf(message, 0, message.length);
        try {
            GrpcListener started = handler.start(this);
            listener = started;
            started.onMessage(region);
            started.onHalfClose();
        } catch (ServingException e) {
            fail(e);
        } finally {
            region.release();
        }
        return this;
    }

    void cancel() {
        Objects.requireNonNull(listener).onCancel();
    }

    @Override
    public String path() {
        return path;
    }

    @Override
    public @Nullable String metadata(String lowerCaseName) {
        return metadata.get(lowerCaseName);
    }

    @Override
    public void metadata(BiConsumer<String, String> each) {
        metadata.forEach(each);
    }

    @Override
    public long deadlineNanos() {
        return deadline;
    }

    @Override
    public long arrivedNanos() {
        return 1_000;
    }

    @Override
    public boolean inEventLoop() {
        return true;
    }

    @Override
    public boolean isReady() {
        return true;
    }

    @Override
    public void setReading(boolean reading) {}

    @Override
    public void send(ResponseBody message) {
        throw new AssertionError("a message without an end");
    }

    @Override
    public void sendAndClose(ResponseBody message) {
        answer = InMemoryExchange.bytes(message);
        close(ErrorCode.OK, null);
    }

    @Override
    public void close(ErrorCode end, @Nullable String message) {
        if (code != null) {
            throw new AssertionError("a second end");
        }
        code = end;
        text = message == null ? "" : message;
    }
}
