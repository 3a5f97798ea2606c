// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.base.Clock;
import io.nereid.control.core.Route;
import io.nereid.control.core.Workload.Component;
import io.nereid.endpoint.Upstream;
import io.nereid.endpoint.VirtualHosts;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelControl;
import io.nereid.tensor.MemoryRegion;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * Finds the service that a request is for and the revision that answers. Thread-safe: routes are one immutable table, replaced
 * whole.
 */
public final class Gateway implements VirtualHosts, AutoCloseable {
    /** Hears what only others can help. */
    @FunctionalInterface
    public interface WakeListener {
        /** A request waits for a revision without replicas. Called once until it has some; must return at once. */
        void wake(String namespace, String revision);
    }

    /** A gateway without services. */
    public Gateway(
            InferenceEngine engine,
            ModelControl control,
            SiteCodecs codecs,
            Upstream upstream,
            Clock clock,
            WakeListener listener) {}

    /** What makes sites; once, before the first request. */
    public void sites(SiteFactory factory) {}

    /** Replaces the way to a service, or ends it with null. */
    public void route(String namespace, String name, @Nullable Route route) {}

    /** A revision's way in; it takes the place of an earlier one of the same name. Nothing is sent before there is capacity. */
    public RevisionGate open(
            String namespace, String revision, RevisionGate.Settings settings, Destination destination) {
        return new RevisionGate(namespace, revision);
    }

    /** The way in of a revision, or null. */
    public @Nullable RevisionGate gate(String namespace, String revision) {
        return null;
    }

    @Override
    public @Nullable Site find(Head head) {
        return null;
    }

    /**
     * Opens a port that leads to a service, or to one part of it, whatever host is named; before the service has a route it
     * answers 503.
     *
     * @param component the part; null for the front
     * @param port 0 for any that is free
     */
    public Listener door(String namespace, String name, @Nullable Component component, String address, int port) {
        throw new UnsupportedOperationException();
    }

    /**
     * Calls a service with POST from inside this process.
     *
     * @param component the part; null for the front
     * @param target path and query
     * @param body taken over
     * @return the whole answer; errors are answers too
     */
    public CompletionStage<Upstream.Answer> call(
            String namespace,
            String name,
            @Nullable Component component,
            String target,
            List<Upstream.Header> headers,
            MemoryRegion body) {
        return new CompletableFuture<>();
    }

    /** Lines of Prometheus' text format. */
    public String metrics() {
        return "";
    }

    /** Refuses whatever waits. */
    @Override
    public void close() {}
}
