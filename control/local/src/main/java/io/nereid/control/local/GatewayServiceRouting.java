// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.control.core.ObservedState.Traffic;
import io.nereid.control.core.Route;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.gateway.Gateway;
import io.nereid.control.gateway.activator.PayloadListener;
import io.nereid.control.gateway.activator.RevisionActivator;
import io.nereid.control.gateway.upstream.RevisionTarget;
import io.nereid.control.local.workload.ServiceRouting;
import io.nereid.control.plane.loop.EventLoop;
import io.nereid.transport.api.VirtualHosts.Listener;
import java.time.Duration;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Routes the services of the local control plane through the gateway. Thread-safe: one lock guards the local ports. */
final class GatewayServiceRouting implements ServiceRouting {
    private static final String LOOPBACK = "127.0.0.1";

    /** Upper bound for the time between the route look-up of a request and its arrival at the activator. */
    private static final Duration TRANSIT_TIME = Duration.ofMillis(300);

    private final Gateway gateway;
    private final EventLoop loop;
    private final @Nullable String predictor;

    @GuardedBy("this") private final Map<String, Map<Component, Listener>> listeners = new HashMap<>();

    GatewayServiceRouting(Gateway gateway, EventLoop loop) {
        this(gateway, loop, null);
    }

    /** @param predictor the address of the predictor that components call, where it is not behind this gateway */
    GatewayServiceRouting(Gateway gateway, EventLoop loop, @Nullable String predictor) {
        this.gateway = gateway;
        this.loop = loop;
        this.predictor = predictor;
    }

    @Override
    public void route(String namespace, String service, @Nullable Route route) {
        gateway.route(namespace, service, route);
    }

    @Override
    public Activator open(
            String namespace, String revision, RevisionActivator.Settings settings, RevisionTarget destination) {
        return new GatewayActivator(gateway.openActivator(namespace, revision, settings, destination), loop);
    }

    @Override
    public synchronized String address(String namespace, String service, Component component) {
        if (predictor != null && component == Component.PREDICTOR) {
            return predictor;
        }
        int port = listeners
                .computeIfAbsent(namespace + "/" + service, s -> new EnumMap<>(Component.class))
                .computeIfAbsent(component, c -> gateway.listen(namespace, service, c, LOOPBACK, 0))
                .port();
        return LOOPBACK + ":" + port;
    }

    @Override
    public synchronized void closeLocalPorts(String namespace, String service) {
        Map<Component, Listener> open = listeners.remove(namespace + "/" + service);
        if (open != null) {
            open.values().forEach(Listener::close);
        }
    }

    /** One activator. Thread-safe. */
    private record GatewayActivator(RevisionActivator activator, EventLoop loop) implements Activator {
        @Override
        public void destination(RevisionTarget destination) {
            activator.destination(destination);
        }

        @Override
        public void capacity(int replicas) {
            activator.capacity(replicas);
        }

        @Override
        public void direct(boolean direct) {
            activator.direct(direct);
        }

        @Override
        public void reject(@Nullable String why) {
            activator.reject(why);
        }

        @Override
        public void listener(@Nullable PayloadListener listener) {
            activator.listener(listener);
        }

        @Override
        public RevisionActivator.Load sample(long now) {
            return activator.sample(now);
        }

        @Override
        public Traffic traffic(long now) {
            return activator.traffic(now);
        }

        @Override
        public void close(Runnable drained) {
            // A request whose route was looked up before the change must still be accepted.
            EventLoop.Timer unused = loop.after(TRANSIT_TIME, () -> close(activator, drained));
        }

        private static void close(RevisionActivator activator, Runnable drained) {
            var unused = activator.close().whenComplete((none, e) -> drained.run());
        }
    }
}
