// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.control.core.Observed.Traffic;
import io.nereid.control.core.Route;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.gateway.Destination;
import io.nereid.control.gateway.PayloadTap;
import io.nereid.control.gateway.RevisionGate;
import org.jspecify.annotations.Nullable;

/** The gateway as far as workloads need it. Implementations are thread-safe and return at once. */
interface Front {
    /** Replaces the way to a service, or ends it with null. */
    void route(String namespace, String service, @Nullable Route route);

    /** A revision's way in. */
    Gate open(String namespace, String revision, RevisionGate.Settings settings, Destination destination);

    /** The port of a door of one component, opened when it is first asked for. */
    int door(String namespace, String service, Component component);

    /** Closes the doors of a service. */
    void closeDoors(String namespace, String service);

    /** One revision's way in. */
    interface Gate {
        /** Sends requests there from now on. */
        void destination(Destination destination);

        /** How many replicas answer. */
        void capacity(int replicas);

        /** Whether requests go straight to replicas. */
        void serving(boolean direct);

        /** Refuses requests with this text; null to take them again. */
        void refuse(@Nullable String why);

        /** Has somebody listen. */
        void tap(@Nullable PayloadTap tap);

        /** What has gone on since the last call. */
        RevisionGate.Load sample(long now);

        /** What requests of the last minute were like. */
        Traffic traffic(long now);

        /** Takes no request any more and calls back when the last one has ended. */
        void close(Runnable drained);
    }

    /** The settings of a workload's gate. */
    static RevisionGate.Settings settings(Workload workload) {
        return RevisionGate.Settings.of(workload);
    }
}
