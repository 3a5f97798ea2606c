// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.gateway.inprocess.BodyCopies;
import io.nereid.control.gateway.upstream.ReplicaBalancer;
import io.nereid.control.gateway.upstream.RevisionTarget;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod.GrpcHandler;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.HttpStatusCodes;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.api.VirtualHosts.VirtualHost;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A gRPC call at a {@link RevisionActivator}: the call as its handler sees it, and the listener as the transport sees
 * it. While the call waits, the client's messages are buffered; then they are delivered to the handler in order.
 * Thread-safe: the buffer is guarded by this.
 */
public final class RevisionGrpcCall extends RevisionRequest implements GrpcCall, GrpcListener {
    private static final Object HALF_CLOSE = new Object();
    private static final Object CANCEL = new Object();

    private final GrpcCall call;

    /** The handler of the call; null when a child process answers it. */
    private final @Nullable GrpcHandler handler;

    /** Whether the call has gone through the activator of another component. */
    private final boolean nested;

    /** A copy of the metadata when other threads have to read them; otherwise null. */
    private volatile @Nullable List<Header> metadata;

    /** Receives the client's messages directly; null while they are buffered. */
    private volatile @Nullable GrpcListener direct;

    /**
     * The client's messages that have not been delivered yet: regions, and the markers {@link #HALF_CLOSE} and
     * {@link #CANCEL}.
     */
    @GuardedBy("this") private final ArrayDeque<Object> buffered = new ArrayDeque<>();

    /** The first message, for a retry or a mirrored request. */
    @GuardedBy("this") private @Nullable MemoryRegion first;

    /** Counts the started handlers. Only the last one receives messages. */
    @GuardedBy("this") private int attempt;

    @GuardedBy("this") private boolean replaying;

    @GuardedBy("this") private int messages;

    @GuardedBy("this") private boolean halfClosed;

    @GuardedBy("this") private boolean responded;

    /** Whether the first message must be buffered for a retry or a mirrored request. */
    private boolean keepsFirst;

    @GuardedBy("this") private List<MirrorTarget> mirrors = List.of();

    private volatile PayloadListener.@Nullable Recorder recorder;

    @GuardedBy("this") private ReplicaBalancer.@Nullable Endpoint member;

    private @Nullable ConnectionRetries retries;

    private RevisionGrpcCall(
            RevisionActivator activator, GrpcCall call, @Nullable GrpcHandler handler, boolean nested) {
        super(activator, activator.context().clock.nanos());
        this.call = call;
        this.handler = handler;
        this.nested = nested;
    }

    /** Admits a call. On its event loop. */
    static GrpcListener start(RevisionActivator activator, GrpcCall call, @Nullable GrpcHandler handler) {
        return start(new RevisionGrpcCall(activator, call, handler, false));
    }

    /**
     * Admits a call that has gone through the activator of another component: it is not reported to listeners and not
     * mirrored.
     */
    public static GrpcListener startNested(RevisionActivator activator, GrpcCall call, GrpcHandler handler) {
        return start(new RevisionGrpcCall(activator, call, handler, true));
    }

    private static GrpcListener start(RevisionGrpcCall request) {
        RevisionActivator activator = request.activator;
        PayloadListener tap = request.nested ? null : activator.listener();
        if (tap != null) {
            request.recorder = tap.begin(new GrpcRequestHead(request));
        }
        if (!activator.hasReplica()
                || activator.settings().containerConcurrency() > 0
                || !request.mirrorTargets().isEmpty()) {
            request.readMetadata();
        }
        activator.enter(request);
        return request;
    }

    private List<MirrorTarget> mirrorTargets() {
        return nested ? List.of() : activator.mirrors();
    }

    private void readMetadata() {
        List<Header> all = new ArrayList<>();
        call.metadata((name, value) -> all.add(new Header(name, value)));
        metadata = List.copyOf(all);
    }

    // ---- the request ----

    @Override
    void dispatch() {
        prepare();
        try {
            begin();
        } catch (RuntimeException e) {
            over(ServingException.from(e).code());
            throw e;
        }
    }

    private void prepare() {
        List<MirrorTarget> copies = mirrorTargets();
        synchronized (this) {
            if (!copies.isEmpty() && metadata != null && metadata(MirroredRequest.MARK) == null) {
                mirrors = copies;
            }
            keepsFirst = !mirrors.isEmpty() || handler == null;
            if (keepsFirst && first == null && messages == 1 && buffered.peek() instanceof MemoryRegion region) {
                first = region.retain();
            }
        }
    }

    @Override
    void resume() {
        prepare();
        try {
            begin();
        } catch (RuntimeException e) {
            fail(ServingException.from(e));
        }
    }

    /**
     * Starts the handler and delivers the buffered messages. A retry may start another handler meanwhile; then this one
     * stops.
     */
    private void begin() {
        boolean inside = activator.destination() instanceof RevisionTarget.Handler;
        ReplicaBalancer.Endpoint chosen = null;
        if (handler == null && !inside) {
            chosen = activator.take(tried());
            if (chosen == null) {
                if (metadata == null) {
                    readMetadata();
                }
                chosen = activator.takeOrHold(this, tried());
                if (chosen == null) {
                    return;
                }
            }
        }
        int mine;
        synchronized (this) {
            mine = ++attempt;
            replaying = true;
        }
        boolean done = false;
        try {
            GrpcListener listener = handler != null
                    ? handler.start(this)
                    : chosen == null ? activator.routes().inside(this).start(this) : forward(chosen);
            Object next;
            while ((next = next(mine, listener)) != null) {
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
            done = true;
        } finally {
            if (!done) {
                synchronized (this) {
                    if (attempt == mine) {
                        replaying = false;
                        dropBuffered();
                    }
                }
            }
        }
    }

    /**
     * The next buffered message. Null when the buffer is empty, from when on the listener receives messages directly,
     * or when another attempt has replaced this one.
     */
    private synchronized @Nullable Object next(int mine, GrpcListener listener) {
        if (attempt != mine) {
            return null;
        }
        Object next = buffered.poll();
        if (next == null) {
            replaying = false;
            direct = listener;
        } else if (next instanceof MemoryRegion region) {
            unreserve(region.size());
        }
        return next;
    }

    private void unreserve(int bytes) {
        activator.context().budget.release(bytes);
    }

    private GrpcListener forward(ReplicaBalancer.Endpoint chosen) {
        synchronized (this) {
            member = chosen;
        }
        if (isEnded()) {
            released();
        }
        if (chosen.replica.grpcPort() == 0) {
            return activator.context().transcoder.overRest(this, rest(chosen.replica));
        }
        return activator.context().upstream.forward(this, chosen.grpc, activator.forwardOptions());
    }

    /** The REST routes of a process that does not speak gRPC. */
    private VirtualHost rest(RevisionTarget.Replica replica) {
        String origin = "http://" + replica.host() + ":" + replica.httpPort();
        return (method, target, headers, body) -> {
            byte[] bytes = BodyCopies.bytes(body);
            body.release();
            return activator
                    .context()
                    .upstream
                    .send(method, origin + target, headers, bytes, activator.forwardOptions());
        };
    }

    @Override
    void rejected(ServingException e) {
        over(e.code());
        call.close(e.code(), e.describe());
    }

    @Override
    long bytes() {
        return 0;
    }

    @Override
    long deadline() {
        return call.deadlineNanos();
    }

    private void over(ErrorCode code) {
        if (end(HttpStatusCodes.http(code))) {
            if (code == ErrorCode.OK) {
                copy();
            }
            released();
            drop();
            PayloadListener.Recorder listening = recorder;
            if (listening != null) {
                listening.end(0, code.number());
            }
        }
    }

    private void released() {
        ReplicaBalancer.Endpoint held;
        synchronized (this) {
            held = member;
            member = null;
        }
        if (held != null) {
            held.release();
        }
    }

    /** Releases the buffered messages. */
    private synchronized void drop() {
        keepsFirst = false;
        if (first != null) {
            first.release();
            first = null;
        }
        if (!replaying) {
            dropBuffered();
        }
    }

    private synchronized void dropBuffered() {
        for (Object each : buffered) {
            if (each instanceof MemoryRegion region) {
                unreserve(region.size());
                region.release();
            }
        }
        buffered.clear();
    }

    // ---- the listener ----

    @Override
    public void onMessage(MemoryRegion message) {
        PayloadListener.Recorder listening = recorder;
        if (listening != null && !isEnded()) {
            listening.request("application/grpc", message.retain());
        }
        GrpcListener to = direct;
        if (to == null || keepsFirst) {
            to = keep(message);
        }
        if (to != null) {
            to.onMessage(message);
        }
    }

    private @Nullable GrpcListener keep(MemoryRegion message) {
        synchronized (this) {
            messages++;
            if (keepsFirst) {
                if (messages == 1) {
                    first = message.retain();
                } else {
                    keepsFirst = false;
                    if (first != null) {
                        first.release();
                        first = null;
                    }
                }
            }
            if (direct != null || isEnded()) {
                return direct;
            }
            if (activator.context().budget.tryReserve(message.size())) {
                buffered.add(message.retain());
                return null;
            }
        }
        close(
                ErrorCode.UNAVAILABLE,
                "pending request queue full (buffered messages take too much memory; try again later)");
        return null;
    }

    @Override
    public void onHalfClose() {
        GrpcListener to;
        synchronized (this) {
            halfClosed = true;
            to = direct;
            if (to == null && !isEnded()) {
                buffered.add(HALF_CLOSE);
            }
        }
        if (to != null) {
            to.onHalfClose();
        }
        copy();
    }

    /** Mirrors a call that had one message, once. */
    private void copy() {
        MirroredRequest copy = null;
        synchronized (this) {
            List<Header> all = metadata;
            if (!mirrors.isEmpty() && messages == 1 && first != null && all != null) {
                copy = MirroredRequest.of(activator, mirrors, call.path(), all, first.retain());
            }
            mirrors = List.of();
        }
        if (copy != null) {
            copy.send();
        }
    }

    @Override
    public void onCancel() {
        GrpcListener to;
        synchronized (this) {
            to = direct;
            if (to == null && replaying) {
                buffered.add(CANCEL);
            }
        }
        if (to != null) {
            to.onCancel();
        }
        over(ErrorCode.CANCELLED);
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
    public void send(ResponseBody message) {
        responded(message);
        call.send(message);
    }

    @Override
    public void sendAndClose(ResponseBody message) {
        responded(message);
        over(ErrorCode.OK);
        call.sendAndClose(message);
    }

    @Override
    public void close(ErrorCode code, @Nullable String message) {
        over(code);
        call.close(code, message);
    }

    @Override
    public void fail(ServingException e) {
        if (!again(e)) {
            close(e.code(), e.describe());
        }
    }

    private void responded(ResponseBody message) {
        if (handler == null) {
            synchronized (this) {
                responded = true;
            }
        }
        PayloadListener.Recorder listening = recorder;
        if (listening != null && !isEnded()) {
            listening.response("application/grpc", BodyCopies.copy(message));
        }
    }

    /** Retries with another process when no connection could be made; false when a retry is not possible. */
    private boolean again(ServingException e) {
        Executor next;
        synchronized (this) {
            ReplicaBalancer.Endpoint failed = member;
            boolean resent = messages == 0 || (messages == 1 && first != null);
            if (failed == null || isEnded() || responded || !resent || !ConnectionRetries.neverSent(e)) {
                return false;
            }
            ConnectionRetries failures = retries;
            if (failures == null) {
                failures = new ConnectionRetries(activator);
                retries = failures;
            }
            next = failures.after(failed);
            MemoryRegion again = first;
            if (next == null || (again != null && !activator.context().budget.tryReserve(again.size()))) {
                return false;
            }
            // What arrives from now on is buffered for the next attempt.
            attempt++;
            replaying = false;
            direct = null;
            dropBuffered();
            if (again != null) {
                buffered.add(again.retain());
            }
            if (halfClosed) {
                buffered.add(HALF_CLOSE);
            }
        }
        // The next attempt may run on another thread.
        if (metadata == null) {
            readMetadata();
        }
        released();
        activator.retried.increment();
        try {
            next.execute(this::tryAgain);
        } catch (RejectedExecutionException closing) {
            return false;
        }
        return true;
    }

    private void tryAgain() {
        if (isEnded()) {
            return;
        }
        try {
            begin();
        } catch (RuntimeException e) {
            ServingException end = ServingException.from(e);
            close(end.code(), end.describe());
        }
    }

    private List<ReplicaBalancer.Endpoint> tried() {
        ConnectionRetries failures = retries;
        return failures == null ? List.of() : failures.tried();
    }

    @Override
    public GrpcCall origin() {
        return call.origin();
    }

    @Override
    public String path() {
        return call.path();
    }

    @Override
    public @Nullable String metadata(String lowerCaseName) {
        List<Header> all = metadata;
        if (all == null) {
            return call.metadata(lowerCaseName);
        }
        for (Header header : all) {
            if (header.name().equals(lowerCaseName)) {
                return header.value();
            }
        }
        return null;
    }

    @Override
    public void metadata(BiConsumer<String, String> each) {
        List<Header> all = metadata;
        if (all == null) {
            call.metadata(each);
        } else {
            all.forEach(h -> each.accept(h.name(), h.value()));
        }
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
        // A call that has waited starts on another thread, from which the transport must not be paused: its messages
        // are accepted as they arrive.
        if (call.inEventLoop()) {
            call.setReading(reading);
        }
    }
}
