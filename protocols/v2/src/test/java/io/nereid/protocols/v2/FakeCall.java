// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import com.google.protobuf.Message;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.ResponseBody;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** One gRPC call in memory, with the client's side of it. Confined to one thread. */
public final class FakeCall implements GrpcCall {
    public final String path;
    public final Map<String, String> metadata = new HashMap<>();
    public final List<byte[]> sent = new ArrayList<>();
    public long deadline = Long.MAX_VALUE;
    public boolean ready = true;
    public boolean reading = true;

    public @Nullable ErrorCode code;

    public String text = "";
    private final @Nullable V2Codec codec;
    private @Nullable GrpcListener listener;

    public FakeCall(V2Codec codec, String path) {
        this.codec = codec;
        this.path = path;
    }

    /** A call of something else than a codec. */
    public FakeCall(String path) {
        this.codec = null;
        this.path = path;
    }

    public FakeCall start() {
        GrpcMethod method = Objects.requireNonNull(codec).grpcMethods().stream()
                .filter(m -> m.path().equals(path))
                .findFirst()
                .orElseThrow(() -> new AssertionError("no method " + path));
        return start(method);
    }

    public FakeCall start(GrpcMethod method) {
        guarded(() -> listener = method.handler().start(this));
        return this;
    }

    /** The client sends a message. */
    public FakeCall message(byte[] bytes) {
        MemoryRegion region = MemoryRegion.copyOf(bytes, 0, bytes.length);
        if (code == null) {
            guarded(() -> listener.onMessage(region));
        }
        region.release();
        return this;
    }

    public FakeCall message(Message message) {
        return message(message.toByteArray());
    }

    public FakeCall halfClose() {
        if (code == null) {
            guarded(() -> listener.onHalfClose());
        }
        return this;
    }

    public void cancel() {
        if (code == null) {
            code = ErrorCode.CANCELLED;
            listener.onCancel();
        }
    }

    public void becomeReady() {
        ready = true;
        listener.onReady();
    }

    private void guarded(Runnable action) {
        try {
            action.run();
        } catch (RuntimeException e) {
            fail(ServingException.from(e));
        }
    }

    /** Who makes the call. */
    public Caller caller = Caller.INTERNAL;

    @Override
    public Caller caller() {
        return caller;
    }

    @Override
    public String path() {
        return path;
    }

    @Override
    public void metadata(java.util.function.BiConsumer<String, String> each) {
        metadata.forEach(each);
    }

    @Override
    public @Nullable String metadata(String lowerCaseName) {
        return metadata.get(lowerCaseName);
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
        return ready;
    }

    @Override
    public void setReading(boolean on) {
        reading = on;
    }

    @Override
    public void send(ResponseBody message) {
        if (code != null) {
            message.discard();
            return;
        }
        sent.add(Wire.bytes(message));
    }

    @Override
    public void sendAndClose(ResponseBody message) {
        send(message);
        close(ErrorCode.OK, null);
    }

    @Override
    public void close(ErrorCode end, @Nullable String message) {
        if (code == null) {
            code = end;
            text = message == null ? "" : message;
        }
    }
}
