// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod.GrpcHandler;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.HttpStatusCodes;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.api.VirtualHosts.Site;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A gRPC call on its way through a gate: the call as its handler sees it, and the listener as the transport sees it. While it
 * waits, what the client sends is kept; then it is told to the handler in order. Thread-safe: what is kept is guarded by this.
 */
final class GrpcPassage extends Passage implements GrpcCall, GrpcListener {
    private static final Object HALF_CLOSE = new Object();
    private static final Object CANCEL = new Object();
    private static final int MOST_TRIES = 3;

    private final GrpcCall call;

    /** What takes the call; null when a child process does. */
    private final @Nullable GrpcHandler handler;

    /** Whether it came through another part's gate. */
    private final boolean visiting;

    /** The metadata, once they must be read on other threads. */
    private volatile @Nullable List<Header> metadata;

    /** What takes the client's messages directly; null while they are kept. */
    private volatile @Nullable GrpcListener direct;

    /** What the client sent and nobody has been told yet: regions, and the marks above. */
    private final ArrayDeque<Object> kept = new ArrayDeque<>();

    /** The first message, in case it must be sent once more or copied. */
    private @Nullable MemoryRegion first;

    /** Counts handlers that were started; only the last one is told what comes. */
    private int attempt;

    private boolean replaying;
    private int messages;
    private boolean halfClosed;
    private boolean answered;

    /** Whether the first message is wanted again. */
    private boolean keepsFirst;

    private List<Mirror> mirrors = List.of();
    private volatile PayloadTap.@Nullable Tapped tapped;

    private Replicas.@Nullable Member member;
    private List<Replicas.Member> tried = List.of();

    private GrpcPassage(RevisionGate gate, GrpcCall call, @Nullable GrpcHandler handler, boolean visiting) {
        super(gate, gate.context().clock.nanos());
        this.call = call;
        this.handler = handler;
        this.visiting = visiting;
    }

    /** Lets a call in; on its event loop. */
    static GrpcListener start(RevisionGate gate, GrpcCall call, @Nullable GrpcHandler handler) {
        return start(new GrpcPassage(gate, call, handler, false));
    }

    /** Lets a call in that came through another part's gate: neither is it told of again nor copied. */
    static GrpcListener visit(RevisionGate gate, GrpcCall call, GrpcHandler handler) {
        return start(new GrpcPassage(gate, call, handler, true));
    }

    private static GrpcListener start(GrpcPassage passage) {
        RevisionGate gate = passage.gate;
        PayloadTap tap = passage.visiting ? null : gate.tap();
        if (tap != null) {
            passage.tapped = tap.begin(new TappedHead(passage));
        }
        if (!gate.flowing()
                || gate.settings().containerConcurrency() > 0
                || !passage.wantedCopies().isEmpty()) {
            passage.readMetadata();
        }
        gate.enter(passage);
        return passage;
    }

    private List<Mirror> wantedCopies() {
        return visiting ? List.of() : gate.mirrors();
    }

    private void readMetadata() {
        List<Header> all = new ArrayList<>();
        call.metadata((name, value) -> all.add(new Header(name, value)));
        metadata = List.copyOf(all);
    }

    // ---- the passage ----

    @Override
    void go() {
        prepare();
        try {
            begin();
        } catch (RuntimeException e) {
            over(ServingException.from(e).code());
            throw e;
        }
    }

    private void prepare() {
        List<Mirror> copies = wantedCopies();
        synchronized (this) {
            if (!copies.isEmpty() && metadata != null && metadata(MirroredRequest.MARK) == null) {
                mirrors = copies;
            }
            keepsFirst =
                    !mirrors.isEmpty() || (handler == null && gate.replicas().size() > 1);
            if (keepsFirst && messages == 1 && kept.peek() instanceof MemoryRegion region) {
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

    /** Starts the handler and tells it what has come so far; another try may overtake this one. */
    private void begin() {
        int mine;
        synchronized (this) {
            mine = ++attempt;
            replaying = true;
        }
        boolean done = false;
        try {
            GrpcListener listener = handler != null
                    ? handler.start(this)
                    : gate.destination() instanceof Destination.Handler
                            ? gate.site().inside(this).start(this)
                            : forward();
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
                        dropKept();
                    }
                }
            }
        }
    }

    /** What comes next, or null when nothing does: then the listener is told directly, or another one has taken over. */
    private synchronized @Nullable Object next(int mine, GrpcListener listener) {
        if (attempt != mine) {
            return null;
        }
        Object next = kept.poll();
        if (next == null) {
            replaying = false;
            direct = listener;
        } else if (next instanceof MemoryRegion region) {
            unreserve(region.size());
        }
        return next;
    }

    private void unreserve(int bytes) {
        gate.context().budget.release(bytes);
    }

    private GrpcListener forward() {
        Replicas.Member chosen =
                gate.replicas().take(gate.settings().containerConcurrency(), tried, gate.context().chance);
        if (chosen == null) {
            throw ServingException.of(
                    ErrorCode.UNAVAILABLE, "no process of revision " + gate.revision() + " answers", "try again");
        }
        synchronized (this) {
            member = chosen;
        }
        if (isEnded()) {
            released();
        }
        if (chosen.replica.grpcPort() == 0) {
            return gate.context().bridge.overRest(this, rest(chosen.replica));
        }
        return gate.context().upstream.forward(this, chosen.grpc, gate.terms());
    }

    /** What a process that speaks no gRPC is asked with. */
    private Site rest(Destination.Replica replica) {
        String origin = "http://" + replica.host() + ":" + replica.httpPort();
        return (method, target, headers, body) -> {
            byte[] bytes = Bodies.bytes(body);
            body.release();
            return gate.context().upstream.send(method, origin + target, headers, bytes, gate.terms());
        };
    }

    @Override
    void refused(ServingException e) {
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
            PayloadTap.Tapped listening = tapped;
            if (listening != null) {
                listening.end(0, code.number());
            }
        }
    }

    private void released() {
        Replicas.Member held;
        synchronized (this) {
            held = member;
            member = null;
        }
        if (held != null) {
            held.release();
        }
    }

    /** Lets go of what is kept. */
    private synchronized void drop() {
        keepsFirst = false;
        if (first != null) {
            first.release();
            first = null;
        }
        if (!replaying) {
            dropKept();
        }
    }

    private synchronized void dropKept() {
        for (Object each : kept) {
            if (each instanceof MemoryRegion region) {
                unreserve(region.size());
                region.release();
            }
        }
        kept.clear();
    }

    // ---- the listener ----

    @Override
    public void onMessage(MemoryRegion message) {
        PayloadTap.Tapped listening = tapped;
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
                } else if (first != null) {
                    first.release();
                    first = null;
                }
            }
            if (direct != null || isEnded()) {
                return direct;
            }
            if (gate.context().budget.tryReserve(message.size())) {
                kept.add(message.retain());
                return null;
            }
        }
        close(
                ErrorCode.UNAVAILABLE,
                "pending request queue full (messages that wait take too much memory; try again later)");
        return null;
    }

    @Override
    public void onHalfClose() {
        GrpcListener to;
        synchronized (this) {
            halfClosed = true;
            to = direct;
            if (to == null && !isEnded()) {
                kept.add(HALF_CLOSE);
            }
        }
        if (to != null) {
            to.onHalfClose();
        }
        copy();
    }

    /** Sends copies of a call that had one message, once. */
    private void copy() {
        MirroredRequest copy = null;
        synchronized (this) {
            List<Header> all = metadata;
            if (!mirrors.isEmpty() && messages == 1 && first != null && all != null) {
                copy = MirroredRequest.of(gate, mirrors, call.path(), all, first.retain());
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
                kept.add(CANCEL);
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
        answered(message);
        call.send(message);
    }

    @Override
    public void sendAndClose(ResponseBody message) {
        answered(message);
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

    private void answered(ResponseBody message) {
        if (handler == null) {
            synchronized (this) {
                answered = true;
            }
        }
        PayloadTap.Tapped listening = tapped;
        if (listening != null && !isEnded()) {
            listening.response("application/grpc", Bodies.copy(message));
        }
    }

    /** Tries another process where no connection could be made; false when there is nothing to try. */
    private boolean again(ServingException e) {
        synchronized (this) {
            Replicas.Member failed = member;
            boolean resent = messages == 0 || (messages == 1 && first != null);
            if (failed == null
                    || isEnded()
                    || answered
                    || !resent
                    || !ProxiedExchange.neverSent(e)
                    || tried.size() + 1 >= Math.min(MOST_TRIES, gate.replicas().size())) {
                return false;
            }
            List<Replicas.Member> more = new ArrayList<>(tried);
            more.add(failed);
            tried = more;
            direct = null;
            dropKept();
            if (first != null) {
                kept.add(first.retain());
            }
            if (halfClosed) {
                kept.add(HALF_CLOSE);
            }
        }
        released();
        gate.retried.increment();
        try {
            begin();
        } catch (RuntimeException another) {
            ServingException end = ServingException.from(another);
            close(end.code(), end.describe());
        }
        return true;
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
        // what has waited runs on another thread at first; its messages then flow, and are taken as they come
        if (call.inEventLoop()) {
            call.setReading(reading);
        }
    }

    /** The call's head for a listener. Valid during a call. */
    private record TappedHead(GrpcPassage passage) implements PayloadTap.Head {
        @Override
        public String transport() {
            return "grpc";
        }

        @Override
        public String method() {
            return "POST";
        }

        @Override
        public String path() {
            return passage.path();
        }

        @Override
        public @Nullable String header(String lowerCaseName) {
            return passage.metadata(lowerCaseName);
        }

        @Override
        public List<Header> headers() {
            List<Header> all = new ArrayList<>();
            passage.metadata((name, value) -> all.add(new Header(name, value)));
            return all;
        }
    }
}
