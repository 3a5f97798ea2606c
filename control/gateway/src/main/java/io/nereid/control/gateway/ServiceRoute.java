// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.core.Route;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.gateway.activator.ActivatorSlot;
import io.nereid.control.gateway.activator.RevisionActivator;
import io.nereid.transport.api.VirtualHosts.Head;
import io.nereid.transport.api.VirtualHosts.VirtualHost;
import java.util.EnumMap;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.IntUnaryOperator;
import org.jspecify.annotations.Nullable;

/** One service in the routing tables: its route, and the traffic split of each component. Immutable. */
final class ServiceRoute {
    final Route route;
    final Map<Component, TrafficSplit> splits;

    ServiceRoute(Route route, BiFunction<String, String, ActivatorSlot> slot) {
        this.route = route;
        this.splits = new EnumMap<>(Component.class);
        route.components().forEach((component, backend) -> {
            if (!backend.targets().isEmpty()) {
                splits.put(component, new TrafficSplit(route.namespace(), backend, slot));
            }
        });
    }

    /**
     * The virtual host of the revision that answers a request.
     *
     * @param component the requested component; null for the service's entry point
     * @param tag the requested revision's tag; null to follow the traffic split
     * @param prefix the path prefix that led here
     * @throws ServingException UNAVAILABLE when no revision can answer
     */
    VirtualHost virtualHost(
            Head head, @Nullable Component component, @Nullable String tag, String prefix, IntUnaryOperator chance) {
        TrafficSplit split = split(component == null ? entryPoint(head) : component);
        ActivatorSlot slot = tag == null ? split.pick(head, chance) : split.tagged(tag);
        if (slot == null && tag != null && component == null) {
            // Explainers have no tags: the tagged revision of the component behind explains itself.
            slot = split(inferenceComponent()).tagged(tag);
        }
        if (slot == null) {
            throw unavailable("no revision has the tag '" + tag + "'");
        }
        String path = head.path();
        return activator(slot)
                .ofPath(path.startsWith(prefix) ? path.substring(prefix.length()) : path)
                .routes()
                .at(prefix);
    }

    /**
     * The activator of the predictor's revision for a request; null when the service has a transformer.
     *
     * @throws ServingException UNAVAILABLE when no revision can answer
     */
    @Nullable RevisionActivator directPredictorActivator(Head head, IntUnaryOperator chance) {
        if (splits.containsKey(Component.TRANSFORMER)) {
            return null;
        }
        return activator(split(Component.PREDICTOR).pick(head, chance));
    }

    /**
     * The activator of the predictor's revision for a request to a component in front of it.
     *
     * @throws ServingException UNAVAILABLE when no revision can answer
     */
    RevisionActivator predictorActivator(Head head, IntUnaryOperator chance) {
        return activator(split(Component.PREDICTOR).pick(head, chance));
    }

    /**
     * The activator of the revision for a request.
     *
     * @param component the requested component; null for the service's entry point
     * @throws ServingException UNAVAILABLE when no revision can answer
     */
    RevisionActivator activator(Head head, @Nullable Component component, IntUnaryOperator chance) {
        return activator(split(component == null ? entryPoint(head) : component).pick(head, chance));
    }

    private TrafficSplit split(Component part) {
        TrafficSplit split = splits.get(part);
        if (split == null) {
            throw unavailable("it has no " + part.text());
        }
        return split;
    }

    private RevisionActivator activator(ActivatorSlot slot) {
        RevisionActivator activator = slot.activator();
        if (activator == null) {
            throw unavailable("revision " + slot.revision + " is not running");
        }
        return activator;
    }

    private Component entryPoint(Head head) {
        if (splits.containsKey(Component.EXPLAINER) && isExplain(head.path())) {
            return Component.EXPLAINER;
        }
        return inferenceComponent();
    }

    private Component inferenceComponent() {
        return splits.containsKey(Component.TRANSFORMER) ? Component.TRANSFORMER : Component.PREDICTOR;
    }

    private static boolean isExplain(String path) {
        return path.endsWith(":explain") || (path.endsWith("/explain") && path.contains("/v2/models/"));
    }

    private ServingException unavailable(String why) {
        return ServingException.of(
                ErrorCode.UNAVAILABLE,
                route.kind() + " " + route.namespace() + "/" + route.name() + " is not ready: " + why,
                "check its status");
    }
}
