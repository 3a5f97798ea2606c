// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.plan;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import io.nereid.control.api.InferenceGraph;
import io.nereid.control.api.InferenceService;
import io.nereid.control.core.ObservedState;
import io.nereid.control.core.Plan;
import io.nereid.control.core.component.WorkloadForms;
import io.nereid.control.core.local.LocalForms;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.core.status.StatusWriter;
import java.time.Instant;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The planner, the core of the reconcile loop: from the desired state (a resource), the available runtimes and the
 * observed state it computes what to run. Pure functions: the same input gives the same plan, and planning again after
 * a plan was carried out gives an equal plan, so that reconciliation comes to rest. Stateless.
 *
 * <pre>{@code
 * Plan plan = Planner.plan(service, catalog, observed, Instant.now());
 * infrastructure.apply(service.metadata().namespace(), service.metadata().name(), plan);
 * }</pre>
 */
public final class Planner {
    private Planner() {}

    /**
     * Plans a service on one machine. Problems of the service are reported in the plan's status and not thrown; revisions that ran
     * before keep running.
     *
     * @param service an admitted service
     * @param catalog runtimes and settings
     * @param observed the last plan's revisions and status, and the states of the workloads
     * @param now the current time, used for timestamps and for gradual rollouts
     */
    public static Plan plan(InferenceService service, RuntimeCatalog catalog, ObservedState observed, Instant now) {
        return plan(service, catalog, observed, now, LocalForms::new);
    }

    /** A sentence for each field and annotation of an admitted service that has no effect on one machine. */
    public static List<String> withoutEffect(InferenceService service, RuntimeCatalog catalog, Instant now) {
        ObservedState nothing = ObservedState.nothing(JsonNodeFactory.instance.objectNode());
        return plan(service, catalog, nothing, now).events().stream()
                .filter(event -> event.reason().equals(StatusWriter.WITHOUT_EFFECT_EVENT))
                .map(Plan.Event::message)
                .toList();
    }

    /**
     * Plans a service for a site.
     *
     * @param forms makes the workloads in the form of the site
     */
    public static Plan plan(
            InferenceService service,
            RuntimeCatalog catalog,
            ObservedState observed,
            Instant now,
            WorkloadForms.Factory forms) {
        return new InferenceServicePlanner(service, catalog, observed, now, forms).plan();
    }

    /**
     * Plans a graph. It becomes ready when the services of all its steps are ready.
     *
     * @param graph an admitted graph
     * @param services returns the InferenceService of a name in the graph's namespace, with its status; null if it does
     *     not exist
     * @param catalog runtimes and settings
     * @param observed the last written status
     * @param now the current time
     */
    public static Plan planGraph(
            InferenceGraph graph,
            Function<String, @Nullable InferenceService> services,
            RuntimeCatalog catalog,
            ObservedState observed,
            Instant now) {
        return planGraph(graph, services, catalog, observed, now, WorkloadForms.Site.ONE_MACHINE);
    }

    /** As {@link #planGraph}, for the site where the graph runs. */
    public static Plan planGraph(
            InferenceGraph graph,
            Function<String, @Nullable InferenceService> services,
            RuntimeCatalog catalog,
            ObservedState observed,
            Instant now,
            WorkloadForms.Site site) {
        return new InferenceGraphPlanner(graph, services, catalog, observed, now, site).plan();
    }
}
