// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.grpc;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Operation;
import io.nereid.protocols.v2.proto.GrpcHealth.HealthCheckRequest;
import io.nereid.protocols.v2.proto.GrpcHealth.HealthCheckResponse;
import io.nereid.protocols.v2.proto.GrpcHealth.HealthCheckResponse.ServingStatus;
import io.nereid.spi.management.ModelControl;
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
 * The gRPC health checking protocol. {@code Watch} calls receive a change within a second, by a poll that runs only
 * while there are any. Thread-safe: one lock.
 */
public final class GrpcHealthService {
    public static final String SERVICE = "grpc.health.v1.Health";

    private final ModelControl control;
    private final Set<String> known = new HashSet<>(Set.of("", GrpcManagement.SERVICE));
    private final Supplier<ScheduledExecutorService> timers;

    @GuardedBy("this") private final Set<Watcher> watchers = new LinkedHashSet<>();

    @GuardedBy("this") private @Nullable ScheduledExecutorService timer;

    public GrpcHealthService(
            ModelControl control, Set<String> furtherServices, Supplier<ScheduledExecutorService> timers) {
        this.control = control;
        known.addAll(furtherServices);
        this.timers = timers;
    }

    public List<GrpcMethod> methods() {
        return List.of(
                GrpcManagement.unary(
                        "/" + SERVICE + "/Check",
                        Operation.HEALTH,
                        HealthCheckRequest.parser(),
                        (call, request) -> check(request)),
                new GrpcMethod("/" + SERVICE + "/Watch", Kind.SERVER_STREAMING, Operation.HEALTH, Watcher::new));
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
        watcher.poll();
        if (timer == null) {
            timer = timers.get();
            var unused = timer.scheduleWithFixedDelay(this::poll, 1, 1, TimeUnit.SECONDS);
        }
    }

    private synchronized void remove(Watcher watcher) {
        watchers.remove(watcher);
        if (watchers.isEmpty() && timer != null) {
            timer.shutdown();
            timer = null;
        }
    }

    /** Sends changes to all watchers. */
    synchronized void poll() {
        watchers.forEach(Watcher::poll);
    }

    /** One call of Watch. Guarded by the service's lock. */
    private final class Watcher implements GrpcListener {
        private final GrpcCall call;
        private String service = "";
        private @Nullable ServingStatus reported;

        Watcher(GrpcCall call) {
            this.call = call;
        }

        @Override
        public void onMessage(MemoryRegion message) {
            service = GrpcManagement.parse(HealthCheckRequest.parser(), message).getService();
            add(this);
        }

        void poll() {
            ServingStatus status = status(service);
            if (status != reported) {
                reported = status;
                call.send(GrpcManagement.content(response(status)));
            }
        }

        @Override
        public void onHalfClose() {
            // The request is complete; the call goes on until the client cancels it.
        }

        @Override
        public void onCancel() {
            remove(this);
        }
    }
}
