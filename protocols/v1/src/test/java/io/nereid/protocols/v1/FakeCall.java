// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.ResponseBody;
import java.io.ByteArrayOutputStream;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** One gRPC call in memory, with the client's side of it. Confined to one thread. */
public final class FakeCall implements GrpcCall {
    private final String path;
    private @Nullable GrpcListener listener;
    public long deadline = Long.MAX_VALUE;
    public byte[] answer = {};

    public @Nullable ErrorCode code;

    public String text = "";
    /** Whether the request was not retained beyond the return of the handler. */
    public boolean freed;

    public FakeCall(String path) {
        this.path = path;
    }

    /** Sends a request to the method of a name, whatever its service. */
    public static FakeCall send(V1Codec codec, String method, byte[] request) {
        return new FakeCall(method).start(codec, request);
    }

    public FakeCall start(V1Codec codec, byte[] request) {
        GrpcMethod method = codec.grpcMethods().stream()
                .filter(m -> m.path().endsWith("/" + path))
                .findFirst()
                .orElseThrow();
        MemoryRegion region = MemoryRegion.copyOf(request, 0, request.length);
        try {
            GrpcListener begun = method.handler().start(this);
            listener = begun;
            begun.onMessage(region);
            begun.onHalfClose();
        } catch (ServingException e) {
            fail(e);
        } finally {
            freed = region == MemoryRegion.empty() || region.release();
        }
        return this;
    }

    public void cancel() {
        code = ErrorCode.CANCELLED;
        GrpcListener begun = listener;
        if (begun != null) {
            begun.onCancel();
        }
    }

    @Override
    public Caller caller() {
        return Caller.INTERNAL;
    }

    @Override
    public String path() {
        return path;
    }

    @Override
    public @Nullable String metadata(String lowerCaseName) {
        return null;
    }

    @Override
    public void metadata(BiConsumer<String, String> each) {}

    @Override
    public long deadlineNanos() {
        return deadline;
    }

    @Override
    public long arrivedNanos() {
        return 0;
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
        throw new AssertionError("a unary call has one answer");
    }

    @Override
    public void sendAndClose(ResponseBody content) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        int at = 0;
        for (int i = 0; i < content.tensorCount(); i++) {
            out.write(content.text(), at, content.position(i) - at);
            at = content.position(i);
            Tensor tensor = content.tensor(i);
            byte[] bytes = new byte[tensor.byteLength()];
            tensor.region().getBytes(tensor.offset(), bytes, 0, bytes.length);
            out.writeBytes(bytes);
        }
        out.write(content.text(), at, content.textLength() - at);
        content.discard();
        if (code == null) {
            answer = out.toByteArray();
        }
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
