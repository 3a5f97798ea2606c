// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.grpc;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;
import io.nereid.client.infer.InferResult;
import io.nereid.protobuf.ProtobufWriter;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * One request on ModelStreamInfer and the responses to it, with the subscriber's back-pressure. The request is sent with the
 * first response that is asked for. Thread-safe; grpc calls the listener one call after the other.
 */
final class GrpcStream extends ClientCall.Listener<byte[]> implements Flow.Subscription {
    private final Supplier<ClientCall<ProtobufWriter, byte[]>> open;
    private final ProtobufWriter request;
    private final Metadata headers;
    private final Flow.Subscriber<? super InferResult> subscriber;
    private final AtomicBoolean ended = new AtomicBoolean();

    /** Used by the calls of the listener alone, which come one after the other. */
    private boolean began;

    @GuardedBy("this") private @Nullable ClientCall<ProtobufWriter, byte[]> call;

    GrpcStream(
            Supplier<ClientCall<ProtobufWriter, byte[]>> open,
            ProtobufWriter request,
            Metadata headers,
            Flow.Subscriber<? super InferResult> subscriber) {
        this.open = open;
        this.request = request;
        this.headers = headers;
        this.subscriber = subscriber;
    }

    @Override
    public void request(long n) {
        if (n <= 0) {
            cancel();
            fail(new IllegalArgumentException("request(" + n + ") (expected: more than 0)"));
            return;
        }
        synchronized (this) {
            if (ended.get()) {
                return;
            }
            ClientCall<ProtobufWriter, byte[]> mine = call;
            if (mine == null) {
                mine = open.get();
                call = mine;
                mine.start(this, headers);
                mine.sendMessage(request);
                mine.halfClose();
            }
            mine.request((int) Math.min(n, Integer.MAX_VALUE));
        }
    }

    @Override
    public void cancel() {
        ended.set(true);
        stop();
    }

    private void stop() {
        ClientCall<ProtobufWriter, byte[]> mine;
        synchronized (this) {
            mine = call;
        }
        if (mine != null) {
            mine.cancel("the subscriber has cancelled", null);
        }
    }

    @Override
    public void onHeaders(Metadata received) {
        began = true;
    }

    @Override
    public void onMessage(byte[] message) {
        if (ended.get()) {
            return;
        }
        InferResult result;
        try {
            result = InferMessages.streamed(message);
        } catch (RuntimeException e) {
            fail(GrpcStatuses.unreadable(e));
            stop();
            return;
        }
        subscriber.onNext(result);
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
        if (!status.isOk()) {
            fail(GrpcStatuses.failure(status, trailers, began));
        } else if (ended.compareAndSet(false, true)) {
            subscriber.onComplete();
        }
    }

    private void fail(Throwable e) {
        if (ended.compareAndSet(false, true)) {
            subscriber.onError(e);
        }
    }
}
