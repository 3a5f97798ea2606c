// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import io.nereid.base.ErrorCode;
import io.nereid.control.gateway.inprocess.DiscardingCall;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.UpstreamClient.Header;
import io.nereid.transport.api.UpstreamResponse;
import io.nereid.transport.api.VirtualHosts.VirtualHost;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A copy of a request for other revisions, whose responses are discarded. Confined to the thread that sends the
 * original; its tasks hold references of their own to the body.
 */
final class MirroredRequest {
    /** The header that marks copies, so that receivers recognise them and no copy is mirrored again. */
    static final String MARK = "kserve-mirrored";

    private static final Logger LOG = LoggerFactory.getLogger(MirroredRequest.class);

    private final RevisionActivator from;
    private final List<MirrorTarget> mirrors;
    private final boolean grpc;
    private final String method;
    private final String target;
    private final List<Header> headers;
    private final MemoryRegion body;

    private MirroredRequest(
            RevisionActivator from,
            List<MirrorTarget> mirrors,
            boolean grpc,
            String method,
            String target,
            List<Header> headers,
            MemoryRegion body) {
        this.from = from;
        this.mirrors = mirrors;
        this.grpc = grpc;
        this.method = method;
        this.target = target;
        this.headers = headers;
        this.body = body;
    }

    /** A copy of an HTTP request for the mirrors that are drawn by their percentage; null when none is. */
    static @Nullable MirroredRequest of(RevisionHttpRequest request, List<MirrorTarget> mirrors) {
        if (request.header(MARK) != null) {
            return null;
        }
        List<MirrorTarget> chosen = chosen(request.activator, mirrors);
        return chosen.isEmpty()
                ? null
                : new MirroredRequest(
                        request.activator,
                        chosen,
                        false,
                        request.method(),
                        request.target(),
                        marked(request.allHeaders()),
                        request.body().retain());
    }

    /**
     * A copy of a call with one message, for the mirrors that are drawn; null when none is.
     *
     * @param message its ownership passes to this method in every case
     */
    static @Nullable MirroredRequest of(
            RevisionActivator from,
            List<MirrorTarget> mirrors,
            String path,
            List<Header> metadata,
            MemoryRegion message) {
        List<MirrorTarget> chosen = chosen(from, mirrors);
        if (chosen.isEmpty()) {
            message.release();
            return null;
        }
        return new MirroredRequest(from, chosen, true, "POST", path, marked(metadata), message);
    }

    private static List<MirrorTarget> chosen(RevisionActivator from, List<MirrorTarget> mirrors) {
        List<MirrorTarget> chosen = new ArrayList<>(mirrors.size());
        for (MirrorTarget mirror : mirrors) {
            if (mirror.percent >= 100 || from.context().chance.applyAsInt(100) < mirror.percent) {
                chosen.add(mirror);
            }
        }
        return chosen;
    }

    private static List<Header> marked(List<Header> headers) {
        List<Header> more = new ArrayList<>(headers);
        more.add(new Header(MARK, "true"));
        return List.copyOf(more);
    }

    /** Sends the copies, after the original. Failures are counted and logged and do not affect the client. */
    void send() {
        for (MirrorTarget mirror : mirrors) {
            RevisionActivator to = mirror.target.activator();
            if (to == null || !to.accepts()) {
                from.unmirrored.increment();
                continue;
            }
            if (!to.hasReplica()) {
                // A copy is not worth holding. It wakes the revision, so that later copies find a replica.
                to.wake();
                from.unmirrored.increment();
                continue;
            }
            if (mirror.inFlight.incrementAndGet() > from.settings().mirrored()) {
                mirror.inFlight.decrementAndGet();
                from.unmirrored.increment();
                continue;
            }
            body.retain();
            from.mirrored.increment();
            try {
                from.context().executor.execute(() -> send(mirror, to));
            } catch (RejectedExecutionException e) {
                body.release();
                mirror.inFlight.decrementAndGet();
            }
        }
        body.release();
    }

    private void send(MirrorTarget mirror, RevisionActivator to) {
        try {
            if (grpc) {
                DiscardingCall call =
                        new DiscardingCall(target, headers, to.context().clock.nanos(), mirror.inFlight);
                try {
                    sendCall(call, to);
                } catch (RuntimeException e) {
                    call.close(ErrorCode.INTERNAL, null);
                    throw e;
                } finally {
                    body.release();
                }
            } else {
                sendRequest(mirror, to);
            }
        } catch (RuntimeException e) {
            LOG.debug("a copy for revision {} failed", to.revision(), e);
        }
    }

    private void sendRequest(MirrorTarget mirror, RevisionActivator to) {
        CompletionStage<UpstreamResponse> response;
        try {
            VirtualHost virtualHost = to.routes().at("");
            response = virtualHost.call(method, target, headers, body);
        } catch (RuntimeException e) {
            mirror.inFlight.decrementAndGet();
            throw e;
        }
        response.whenComplete((got, failure) -> {
            mirror.inFlight.decrementAndGet();
            if (got != null) {
                got.body().release();
            }
        });
    }

    private void sendCall(DiscardingCall call, RevisionActivator to) {
        GrpcMethod found = to.routes().method(target);
        if (found == null) {
            call.close(ErrorCode.UNIMPLEMENTED, null);
            return;
        }
        GrpcMethod.GrpcListener listener = found.handler().start(call);
        listener.onMessage(body);
        listener.onHalfClose();
    }
}
