// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import io.nereid.control.api.InferenceGraph;
import io.nereid.control.api.InferenceService;
import java.time.Instant;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Desired, available and observed in, what to do out. Pure functions: the same input gives the same plan, and a plan that has
 * come true gives itself again. Stateless.
 */
public final class Planner {
    private Planner() {}

    /**
     * Plans a service. What is wrong with it is told in the plan's status, and never thrown; what ran before then goes on.
     *
     * @param service as it was admitted
     * @param catalog runtimes and settings
     * @param observed the last plan's revisions and status, and what runs
     * @param now the time; only for new timestamps, and for gradual roll-outs
     */
    public static Plan plan(InferenceService service, Catalog catalog, Observed observed, Instant now) {
        return new ServicePlan(service, catalog, observed, now).plan();
    }

    /**
     * Plans a graph: its steps' services are looked up, and it is ready when all of them are.
     *
     * @param graph as it was admitted
     * @param services the InferenceService of a name in the graph's namespace, with its status; null when there is none
     * @param catalog settings
     * @param observed the status that was written last
     * @param now the time
     */
    public static Plan planGraph(
            InferenceGraph graph,
            Function<String, @Nullable InferenceService> services,
            Catalog catalog,
            Observed observed,
            Instant now) {
        return new GraphPlan(graph, services, catalog, observed, now).plan();
    }
}
