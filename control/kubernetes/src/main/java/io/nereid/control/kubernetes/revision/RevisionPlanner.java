// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.revision;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.admission.InferenceServiceDefaulter;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.core.ObservedState;
import io.nereid.control.core.Plan;
import io.nereid.control.core.Revision;
import io.nereid.control.core.component.WorkloadForms;
import io.nereid.control.core.plan.Planner;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.kubernetes.cluster.ChosenRuntime;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Trees;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import java.util.regex.Pattern;

/**
 * Plans services in the Knative mode on a cluster: with the planner of one machine, whose workloads are pods here, so that
 * revisions, rollouts and statuses are decided once. A pure function. Defaults are applied while planning and never
 * written into the service. Stateless.
 */
public final class RevisionPlanner {
    private static final Pattern NUMBER = Pattern.compile("-[0-9]{5,}$");

    private RevisionPlanner() {}

    /** The name of a revision without its number. */
    public static String base(String revision) {
        return NUMBER.matcher(revision).replaceFirst("");
    }

    /**
     * Prevents new revisions that nothing but the operator's own form has made. A revision whose inputs are unchanged gets
     * the fingerprint that the plan has for it now, so that planning again takes it for the same one.
     *
     * @param observed what the plan was made from
     * @param plan a plan, which may have new revisions
     * @param unchanged whether a revision was planned from the same inputs in another form
     * @return {@code observed} itself when the plan has no such revision
     */
    public static ObservedState withoutNew(ObservedState observed, Plan plan, Predicate<String> unchanged) {
        List<Revision> known = new ArrayList<>(observed.revisions());
        boolean changed = false;
        for (Revision made : plan.revisions()) {
            if (known.stream().anyMatch(one -> one.name().equals(made.name()))) {
                continue;
            }
            Revision newest = null;
            for (Revision one : observed.revisions()) {
                boolean before =
                        one.component() == made.component() && base(one.name()).equals(base(made.name()));
                if (before && (newest == null || one.number() > newest.number())) {
                    newest = one;
                }
            }
            if (newest != null && unchanged.test(newest.name())) {
                known.set(
                        known.indexOf(newest),
                        new Revision(
                                newest.component(),
                                newest.number(),
                                newest.name(),
                                made.fingerprint(),
                                newest.workload(),
                                newest.created()));
                changed = true;
            }
        }
        return changed
                ? new ObservedState(
                        observed.workloads(), List.copyOf(known), observed.status(), observed.gatewayProblem())
                : observed;
    }

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
        return plan(resource, catalog, observed, cluster, now, context -> new PodWorkloads(context, cluster));
    }

    /**
     * As {@link #plan(ObjectNode, RuntimeCatalog, ObservedState, ObservedCluster, Instant)}, with other forms than pods of the
     * service's own.
     */
    public static Plan plan(
            ObjectNode resource,
            RuntimeCatalog catalog,
            ObservedState observed,
            ObservedCluster cluster,
            Instant now,
            WorkloadForms.Factory forms) {
        String namespace = resource.path("metadata").path("namespace").asText("default");
        InferenceServiceConfig config = catalog.config().forNamespace(namespace);
        ObjectNode whole = resource.deepCopy();
        new InferenceServiceDefaulter(config).apply(whole, null);
        // The mode must not follow a change of the default for services that run.
        Trees.object(Trees.object(whole, "metadata"), "annotations")
                .put(InferenceServiceDefaulter.MODE_ANNOTATION, "Knative");
        ChosenRuntime.keep(
                whole, catalog, observed.status(), !observed.workloads().isEmpty());
        return Planner.plan(InferenceService.read(whole), catalog, observed, now, forms);
    }
}
