// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.control.core.Observed.Traffic;
import io.nereid.control.core.Route;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Component;
import java.util.List;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * The gateway as far as workloads need it. Implementations are thread-safe and return at once; listeners are called on any
 * thread and return at once.
 */
public interface Front {
    /** Puts a service's route in force. */
    void route(Route route);

    /** Ends a service: its requests are refused from now on. */
    void unroute(String namespace, String service);

    /**
     * Says how a revision is reached from now on. Without replicas its requests are held.
     *
     * @param where how; null when it cannot be reached at all
     */
    void reach(Workload workload, @Nullable Reach where);

    /** Lets go of a revision; calls {@code drained} when no request of it is under way any more, which may be at once. */
    void retire(String namespace, String revision, Runnable drained);

    /** The port of a door of one component, opened when it is first asked for. */
    int door(String namespace, String service, Component component);

    /** What has gone on since the last call, and forgets it. */
    Load sample(String namespace, String revision);

    /** What requests of the last minute were like. */
    Traffic traffic(String namespace, String revision);

    /** Tells namespace and revision when a request comes to a revision without replicas, or the first after silence. */
    void onWake(BiConsumer<String, String> listener);

    /** How a revision is reached. */
    sealed interface Reach {
        /** How many replicas answer. */
        int replicas();

        /**
         * Models of the engine.
         *
         * @param names in the engine
         */
        record Engine(List<String> names, int replicas) implements Reach {}

        /**
         * Child processes.
         *
         * @param http ports of the replicas that answer
         * @param grpc their ports for gRPC, in the same order; 0 where it is the same
         */
        record Ports(List<Integer> http, List<Integer> grpc) implements Reach {
            @Override
            public int replicas() {
                return http.size();
            }
        }

        /** An explainer that comes with the server. */
        record BuiltIn(BuiltIns.Running what) implements Reach {
            @Override
            public int replicas() {
                return 1;
            }
        }
    }

    /**
     * What has gone on at a revision.
     *
     * @param concurrency mean number of requests under way, those that are held included
     * @param requestsPerSecond requests that came, by the second
     * @param waiting requests that are held now
     * @param active requests under way now, those that are held included
     */
    record Load(double concurrency, double requestsPerSecond, int waiting, int active) {}
}
