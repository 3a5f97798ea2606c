// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.protocols.v2.proto.GrpcHealth.HealthCheckRequest;
import io.nereid.protocols.v2.proto.GrpcHealth.HealthCheckResponse;
import io.nereid.protocols.v2.proto.GrpcHealth.HealthCheckResponse.ServingStatus;
import io.nereid.spi.ModelControl;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.GrpcMethod.Kind;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The health protocol of gRPC. A watcher is told of a change within a second; the timer that looks runs only while
 * somebody watches. Thread-safe by one lock.
 */
final class GrpcHealthService {
    static final String SERVICE = "grpc.health.v1.Health";

    private final ModelControl control;
    private final Set<String> known = new HashSet<>(Set.of("", GrpcControl.SERVICE));
    private final Supplier<ScheduledExecutorService> timers;

    @GuardedBy("this")
    private final Set<Watcher> watchers = new LinkedHashSet<>();

    @GuardedBy("this")
    private @Nullable ScheduledExecutorService timer;

    GrpcHealthService(ModelControl control, Set<String> furtherServices, Supplier<ScheduledExecutorService> timers) {
        this.control = control;
        known.addAll(furtherServices);
        this.timers = timers;
    }

    List<GrpcMethod> methods() {
        return List.of(
                GrpcControl.unary("/" + SERVICE + "/Check", HealthCheckRequest.parser(), this::check),
                new GrpcMethod("/" + SERVICE + "/Watch", Kind.SERVER_STREAMING, Watcher::new));
    }

    private CompletableFuture<com.google.protobuf.Message> check(HealthCheckRequest request) {
        if (!known.contains(request.getService())) {
            throw ServingException.of(ErrorCode.NOT_FOUND, "unknown service '" + request.getService() + "'");
        }
        return CompletableFuture.completedFuture(response(status(request.getService())));
    }

    private ServingStatus status(String service) {
        if (!known.contains(service)) {
            return ServingStatus.SERVICE_UNKNOWN;
        }
        return control.ready() ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
    }

    private static HealthCheckResponse response(ServingStatus status) {
        return HealthCheckResponse.newBuilder().setStatus(status).build();
    }

    private synchronized void add(Watcher watcher) {
        watchers.add(watcher);
        watcher.look();
        if (timer == null) {
            timer = timers.get();
            var unused = timer.scheduleWithFixedDelay(this::look, 1, 1, TimeUnit.SECONDS);
        }
    }

    private synchronized void remove(Watcher watcher) {
        watchers.remove(watcher);
        if (watchers.isEmpty() && timer != null) {
            timer.shutdown();
            timer = null;
        }
    }

    /** Tells every watcher what changed. */
    synchronized void look() {
        watchers.forEach(Watcher::look);
    }

    /** One call of Watch. Guarded by the service's lock. */
    private final class Watcher implements GrpcListener {
        private final GrpcCall call;
        private String service = "";
        private @Nullable ServingStatus told;

        Watcher(GrpcCall call) {
            this.call = call;
        }

        @Override
        public void onMessage(MemoryRegion message) {
            service = GrpcControl.parse(HealthCheckRequest.parser(), message).getService();
            add(this);
        }

        void look() {
            ServingStatus status = status(service);
            if (status != told) {
                told = status;
                call.send(GrpcControl.content(response(status)));
            }
        }

        @Override
        public void onHalfClose() {
            // The client has said which service; the call goes on until it goes away.
        }

        @Override
        public void onCancel() {
            remove(this);
        }
    }
}
