// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.revision;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.admission.InferenceServiceDefaulter;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.core.ObservedState;
import io.nereid.control.core.Plan;
import io.nereid.control.core.plan.Planner;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.kubernetes.cluster.ChosenRuntime;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Trees;
import java.time.Instant;

/**
 * Plans services in the Knative mode on a cluster: with the planner of one machine, whose workloads are pods here, so that
 * revisions, rollouts and statuses are decided once. A pure function. Defaults are applied while planning and never
 * written into the service. Stateless.
 */
public final class RevisionPlanner {
    private RevisionPlanner() {}

    /**
     * Plans a service. Problems of the service are reported in the plan's status and not thrown; revisions that ran
     * before keep running.
     *
     * @param resource the service as stored; not modified
     * @param catalog runtimes, storage containers and settings
     * @param observed the last plan's revisions and status, and the states of the workloads
     * @param cluster secrets, service accounts and ConfigMaps
     * @param now the current time
     */
    public static Plan plan(
            ObjectNode resource, RuntimeCatalog catalog, ObservedState observed, ObservedCluster cluster, Instant now) {
        String namespace = resource.path("metadata").path("namespace").asText("default");
        InferenceServiceConfig config = catalog.config().forNamespace(namespace);
        ObjectNode whole = resource.deepCopy();
        new InferenceServiceDefaulter(config).apply(whole, null);
        // The mode must not follow a change of the default for services that run.
        Trees.object(Trees.object(whole, "metadata"), "annotations")
                .put(InferenceServiceDefaulter.MODE_ANNOTATION, "Knative");
        ChosenRuntime.keep(
                whole, catalog, observed.status(), !observed.workloads().isEmpty());
        return Planner.plan(
                InferenceService.read(whole), catalog, observed, now, context -> new PodWorkloads(context, cluster));
    }
}
