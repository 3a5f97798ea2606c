// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.workload;

import io.nereid.control.core.ObservedState.Traffic;
import io.nereid.control.core.Route;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.gateway.activator.PayloadListener;
import io.nereid.control.gateway.activator.RevisionActivator;
import io.nereid.control.gateway.upstream.RevisionTarget;
import org.jspecify.annotations.Nullable;

/**
 * The gateway, as workloads see it: the routes of services, and an activator in front of each revision. Implementations are
 * thread-safe and do not block.
 */
public interface ServiceRouting {
    /** Replaces the route of a service; null removes it. */
    void route(String namespace, String service, @Nullable Route route);

    /** Opens the activator of a revision, which all requests for the revision pass through. */
    Activator open(String namespace, String revision, RevisionActivator.Settings settings, RevisionTarget destination);

    /** The address, host and port, at which one component of a service can be called; opens a port on the first call. */
    String address(String namespace, String service, Component component);

    /** Closes the local ports of a service. */
    void closeLocalPorts(String namespace, String service);

    /** The activator of one revision: holds, forwards or rejects its requests. */
    interface Activator {
        /** Forwards requests to another destination from now on. */
        void destination(RevisionTarget destination);

        /** Sets the number of ready replicas; with 0, requests are held. */
        void capacity(int replicas);

        /** Sets whether requests bypass the activator and go straight to the replicas. */
        void direct(boolean direct);

        /** Rejects requests with this message; null accepts them again. */
        void reject(@Nullable String why);

        /** Sets the payload listener; null removes it. */
        void listener(@Nullable PayloadListener listener);

        /** Returns the load since the last call. */
        RevisionActivator.Load sample(long now);

        /** Returns the traffic statistics of the last minute. */
        Traffic traffic(long now);

        /** Accepts no further requests, and runs the callback when the last request has ended. */
        void close(Runnable drained);
    }
}
