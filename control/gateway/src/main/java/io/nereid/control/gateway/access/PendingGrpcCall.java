// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.access;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.ByteBudget;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod.GrpcHandler;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.UpstreamClient.Header;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A gRPC call whose caller is not known yet. The client's messages are buffered until the decision; then they are
 * delivered to the handler in order, on another thread than the call's event loop, and further ones follow them.
 * Thread-safe: the buffer is guarded by this.
 */
final class PendingGrpcCall implements GrpcCall, GrpcListener {
    private static final Object HALF_CLOSE = new Object();
    private static final Object CANCEL = new Object();

    private final GrpcCall call;
    private final ByteBudget budget;

    /** A copy, because the call's own must be read on its event loop. */
    private final List<Header> metadata;

    /** What has not been delivered yet: regions, {@link #HALF_CLOSE} and {@link #CANCEL}. */
    @GuardedBy("this") private final ArrayDeque<Object> buffered = new ArrayDeque<>();

    @GuardedBy("this") private boolean started;

    @GuardedBy("this") private boolean refused;

    /** Receives messages directly; null while they are buffered. */
    private volatile @Nullable GrpcListener direct;

    private PendingGrpcCall(GrpcCall call, ByteBudget budget) {
        this.call = call;
        this.budget = budget;
        List<Header> all = new ArrayList<>();
        call.metadata((name, value) -> all.add(new Header(name, value)));
        this.metadata = List.copyOf(all);
    }

    /** Holds a call back. On its event loop. */
    static GrpcListener start(
            GrpcCall call, GrpcHandler handler, PendingCaller caller, Executor executor, ByteBudget budget) {
        PendingGrpcCall pending = new PendingGrpcCall(call, budget);
        caller.whenDecided(refusal -> {
            if (refusal == null) {
                executor.execute(() -> pending.run(handler));
            } else {
                pending.refuse(refusal);
            }
        });
        return pending;
    }

    private void refuse(ServingException e) {
        drop();
        call.fail(e);
    }

    private void run(GrpcHandler handler) {
        synchronized (this) {
            if (refused) {
                return;
            }
            started = true;
        }
        try {
            GrpcListener listener = handler.start(this);
            for (Object next = next(listener); next != null; next = next(listener)) {
                if (next instanceof MemoryRegion region) {
                    try {
                        listener.onMessage(region);
                    } finally {
                        region.release();
                    }
                } else if (next == HALF_CLOSE) {
                    listener.onHalfClose();
                } else {
                    listener.onCancel();
                }
            }
        } catch (RuntimeException e) {
            refuse(ServingException.from(e));
        }
    }

    /** The next buffered message; null when there is none, from when on the listener receives messages directly. */
    private synchronized @Nullable Object next(GrpcListener listener) {
        Object next = buffered.poll();
        if (next == null) {
            direct = listener;
        } else if (next instanceof MemoryRegion region) {
            budget.release(region.size());
        }
        return next;
    }

    private synchronized void drop() {
        refused = true;
        for (Object each : buffered) {
            if (each instanceof MemoryRegion region) {
                budget.release(region.size());
                region.release();
            }
        }
        buffered.clear();
    }

    // ---- the listener ----

    @Override
    public void onMessage(MemoryRegion message) {
        GrpcListener to;
        boolean full = false;
        synchronized (this) {
            to = direct;
            if (to == null && !refused) {
                full = !budget.tryReserve(message.size());
                if (!full) {
                    buffered.add(message.retain());
                }
            }
        }
        if (to != null) {
            to.onMessage(message);
        } else if (full) {
            refuse(ServingException.of(
                    ErrorCode.UNAVAILABLE,
                    "the messages of calls whose callers are looked up take too much memory",
                    "try again later"));
        }
    }

    @Override
    public void onHalfClose() {
        GrpcListener to = directOr(HALF_CLOSE);
        if (to != null) {
            to.onHalfClose();
        }
    }

    @Override
    public void onCancel() {
        synchronized (this) {
            if (!started) {
                // No handler knows of it.
                drop();
                return;
            }
        }
        GrpcListener to = directOr(CANCEL);
        if (to != null) {
            to.onCancel();
        }
    }

    private synchronized @Nullable GrpcListener directOr(Object event) {
        GrpcListener to = direct;
        if (to == null && !refused) {
            buffered.add(event);
        }
        return to;
    }

    @Override
    public void onReady() {
        GrpcListener to = direct;
        if (to != null) {
            to.onReady();
        }
    }

    // ---- the call ----

    @Override
    public String path() {
        return call.path();
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
        metadata.forEach(header -> each.accept(header.name(), header.value()));
    }

    @Override
    public long deadlineNanos() {
        return call.deadlineNanos();
    }

    @Override
    public long arrivedNanos() {
        return call.arrivedNanos();
    }

    @Override
    public boolean inEventLoop() {
        return call.inEventLoop();
    }

    @Override
    public boolean isReady() {
        return call.isReady();
    }

    @Override
    public void setReading(boolean reading) {
        // The transport must not be paused from another thread than its event loop; messages come as they arrive.
        if (call.inEventLoop()) {
            call.setReading(reading);
        }
    }

    @Override
    public void send(ResponseBody message) {
        call.send(message);
    }

    @Override
    public void sendAndClose(ResponseBody message) {
        call.sendAndClose(message);
    }

    @Override
    public void close(ErrorCode code, @Nullable String message) {
        call.close(code, message);
    }

    @Override
    public GrpcCall origin() {
        return call.origin();
    }
}
