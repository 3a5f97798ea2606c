// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.core.Route;
import io.nereid.control.core.Workload.Component;
import io.nereid.transport.api.VirtualHosts.Head;
import io.nereid.transport.api.VirtualHosts.Site;
import java.util.EnumMap;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.IntUnaryOperator;
import org.jspecify.annotations.Nullable;

/** One service as requests find it. Immutable. */
final class ServiceEntry {
    final Route route;
    final Map<Component, Lane> lanes;

    ServiceEntry(Route route, BiFunction<String, String, GateSlot> slot) {
        this.route = route;
        this.lanes = new EnumMap<>(Component.class);
        route.components().forEach((component, backend) -> {
            if (!backend.targets().isEmpty()) {
                lanes.put(component, new Lane(route.namespace(), backend, slot));
            }
        });
    }

    /**
     * The site of the revision that answers a request.
     *
     * @param component the part that is meant; null for the front
     * @param tag the revision that is meant; null for a share
     * @param prefix the beginning of the path that led here
     * @throws ServingException UNAVAILABLE when nothing can answer
     */
    Site site(Head head, @Nullable Component component, @Nullable String tag, String prefix, IntUnaryOperator chance) {
        Lane lane = lane(component == null ? front(head) : component);
        GateSlot slot = tag == null ? lane.pick(head, chance) : lane.tagged(tag);
        if (slot == null && tag != null && component == null) {
            // explainers have no tags: the revision that is meant explains itself
            slot = lane(behindExplainer()).tagged(tag);
        }
        if (slot == null) {
            throw unavailable("no revision has the tag '" + tag + "'");
        }
        return gate(slot).site().at(prefix);
    }

    /**
     * The gate of the predictor's revision that a request is for; null when a transformer is in front of it.
     *
     * @throws ServingException UNAVAILABLE when nothing can answer
     */
    @Nullable
    RevisionGate predictor(Head head, IntUnaryOperator chance) {
        if (lanes.containsKey(Component.TRANSFORMER)) {
            return null;
        }
        return gate(lane(Component.PREDICTOR).pick(head, chance));
    }

    /**
     * The gate of the predictor's revision whose turn it is, for what is in front of it.
     *
     * @throws ServingException UNAVAILABLE when nothing can answer
     */
    RevisionGate behind(Head head, IntUnaryOperator chance) {
        return gate(lane(Component.PREDICTOR).pick(head, chance));
    }

    /**
     * The gate of the revision whose turn it is.
     *
     * @param component the part that is meant; null for the front
     * @throws ServingException UNAVAILABLE when nothing can answer
     */
    RevisionGate gate(Head head, @Nullable Component component, IntUnaryOperator chance) {
        return gate(lane(component == null ? front(head) : component).pick(head, chance));
    }

    private Lane lane(Component part) {
        Lane lane = lanes.get(part);
        if (lane == null) {
            throw unavailable("it has no " + part.name().toLowerCase(java.util.Locale.ROOT));
        }
        return lane;
    }

    private RevisionGate gate(GateSlot slot) {
        RevisionGate gate = slot.gate();
        if (gate == null) {
            throw unavailable("revision " + slot.revision + " is not running");
        }
        return gate;
    }

    private Component front(Head head) {
        if (lanes.containsKey(Component.EXPLAINER) && isExplain(head.path())) {
            return Component.EXPLAINER;
        }
        return behindExplainer();
    }

    private Component behindExplainer() {
        return lanes.containsKey(Component.TRANSFORMER) ? Component.TRANSFORMER : Component.PREDICTOR;
    }

    private static boolean isExplain(String path) {
        return path.endsWith(":explain") || (path.endsWith("/explain") && path.contains("/v2/models/"));
    }

    private ServingException unavailable(String why) {
        return ServingException.of(
                ErrorCode.UNAVAILABLE,
                route.kind() + " " + route.namespace() + "/" + route.name() + " is not ready: " + why,
                "look at its status");
    }
}
