// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.fleet;

/**
 * Rules that place models on pods. Models and pods are numbers; pods count on from 0 and are never used again. Times are
 * nanoseconds of virtual time. Confined to one simulation.
 */
interface FleetStrategy {
    /** Takes the orders of a strategy. */
    interface Orders {
        /** A pod starts to load a model; at most as many at once as it has slots. */
        void load(int model, int pod);

        /** A pod unloads a model; the time that it takes is 20 ms. */
        void unload(int model, int pod);
    }

    /** The name in tables. */
    String name();

    void joined(int pod, long now);

    void lost(int pod, long now);

    /** A pod shall go; it serves until {@link #drained} is true. */
    void drain(int pod, long now);

    boolean drained(int pod);

    /** The pod with a loaded copy that this request goes to, or -1. The request counts as in flight there until {@link #done}. */
    int route(int model, long random, long now);

    /** A request found no copy and waits; it is routed again when the model has been loaded somewhere. */
    void missed(int model, long now);

    void done(int model, int pod, long busyNanos, long now);

    void loaded(int model, int pod, long now);

    void unloaded(int model, int pod, long now);

    /** Every two seconds. */
    void tick(long now);

    /** Gives the orders of the calls since the last one. */
    void orders(Orders orders, long now);

    /** The bytes that a pod holds. */
    long used(int pod);
}
