// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.AccessAnnotation;
import io.nereid.control.api.ObjectMeta;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.config.InferenceServiceConfig.KnativeServing;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.knative.KnativeNetwork;
import io.nereid.control.kubernetes.knative.KnativePlan;
import io.nereid.control.kubernetes.knative.KnativePlanner;
import io.nereid.control.kubernetes.revision.GatewayObjects;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import io.nereid.control.operator.objects.ClusterReader;
import io.nereid.control.operator.objects.ObjectApplier;
import io.nereid.control.operator.objects.ObjectApplier.Refusal;
import io.nereid.control.operator.objects.ServiceObjects;
import io.nereid.control.operator.objects.ServiceObjects.ObjectKey;
import io.nereid.control.plane.ServiceReconciler.Outcome;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Carries out services of the Knative mode where Knative Serving runs them: as Knative Services, whose pods the operator's
 * webhook completes. Thread-safe.
 */
final class KnativeReconciler {
    /** The namespace of Knative Serving, and its ConfigMap with the domains of services. */
    private static final String KNATIVE = "knative-serving";

    private static final String DOMAINS = "config-domain";

    /** The label of the Deployments of revisions that the operator runs itself. */
    private static final String REVISION = "serving.knative.dev/revision";

    private static final String SETTING = "nereid.knative of inferenceservice-config";

    private final ClusterClient client;
    private final ServiceObjects objects;
    private final ObjectApplier applier;
    private final ClusterReader reader;
    private final boolean completesPods;
    private final StatusPacing statuses = new StatusPacing();

    /** @param completesPods whether the installation has a webhook that adds the download of the model to pods */
    KnativeReconciler(
            ClusterClient client,
            ServiceObjects objects,
            ObjectApplier applier,
            ClusterReader reader,
            boolean completesPods) {
        this.client = client;
        this.objects = objects;
        this.applier = applier;
        this.reader = reader;
        this.completesPods = completesPods;
    }

    /**
     * Whether Knative Serving runs a service of the Knative mode: a service that has a Knative Service or revisions of the
     * operator keeps what runs it, so that neither a change of the setting nor a take-over from KServe restarts it; the
     * setting decides about the others.
     */
    boolean isCarrier(ObjectNode service, RuntimeCatalog catalog) {
        Map<ObjectKey, ObjectNode> owned =
                objects.of(service.path("metadata").path("uid").asText());
        boolean revisions = false;
        for (Map.Entry<ObjectKey, ObjectNode> entry : owned.entrySet()) {
            if (entry.getKey().kind().equals(Trees.KNATIVE_SERVICE)) {
                return true;
            }
            revisions |= entry.getKey().kind().equals("Deployment")
                    && entry.getValue().at("/metadata/labels").has(REVISION);
        }
        KnativeServing setting = setting(service, catalog);
        return !revisions
                && (setting == KnativeServing.INSTALLED
                        || setting == KnativeServing.AUTO && objects.has(ClusterKinds.KNATIVE_SERVICE));
    }

    private static KnativeServing setting(ObjectNode service, RuntimeCatalog catalog) {
        return catalog.config()
                .forNamespace(service.path("metadata").path("namespace").asText())
                .knativeServing();
    }

    /** Carries out a service that {@link #isCarrier}; what cannot be carried out stays as it is, and its status says why. */
    Outcome reconcile(ObjectNode service, RuntimeCatalog catalog, Instant now) {
        if (!objects.has(ClusterKinds.KNATIVE_SERVICE)) {
            return unsupported(
                    service,
                    "KnativeNotInstalled",
                    SETTING
                            + " is installed, and the cluster has no services.serving.knative.dev; install Knative"
                            + " Serving and restart the operator, or set it to none",
                    now);
        }
        if (!completesPods) {
            return unsupported(
                    service,
                    "WebhookRequired",
                    "Knative Serving runs the service, and pods of Knative Services get their models from the"
                            + " operator's webhook, which this installation does not have; install it, or set "
                            + SETTING
                            + " to none and delete the service's Knative Services",
                    now);
        }
        if (AccessAnnotation.isSet(ObjectMeta.read(service))) {
            // Its pods would be open to all: neither made nor changed.
            return unsupported(
                    service,
                    "AuthenticationNotSupported",
                    "the annotation " + GatewayObjects.ENABLE_AUTH + " has no effect where Knative Serving runs the"
                            + " service, whose requests do not pass the gateway; remove it, or set " + SETTING
                            + " to none and delete the service's Knative Services",
                    now);
        }
        KnativePlan plan = KnativePlanner.plan(
                service,
                catalog,
                reader.observe(service),
                new KnativeNetwork(objects.has(ClusterKinds.VIRTUAL_SERVICE), this::domains),
                now);
        String uid = service.path("metadata").path("uid").asText();
        Refusal refusal = applier.apply(uid, plan.objects());
        if (refusal != null) {
            return StandardReconciler.refused(service, plan.status(), refusal, now);
        }
        JsonNode before = service.path("status");
        // Requests that a canary shares go to the last revision that had all of them: it is never forgotten.
        boolean rolledOut = !rolledOut(before).equals(rolledOut(plan.status()));
        Duration wait = rolledOut ? Duration.ZERO : statuses.wait(uid, before, plan.status(), now);
        return wait.isZero()
                ? new Outcome(plan.status(), plan.events(), null)
                : new Outcome((ObjectNode) service.path("status"), List.of(), wait);
    }

    private static List<String> rolledOut(JsonNode status) {
        List<String> all = new ArrayList<>();
        status.path("components")
                .properties()
                .forEach(one -> all.add(one.getKey() + "=" + one.getValue().path("latestRolledoutRevision")));
        return all;
    }

    private static Outcome unsupported(ObjectNode service, String reason, String message, Instant now) {
        return new Outcome(UnsupportedStatus.of(service.path("status"), reason, message, now), List.of(), null);
    }

    /** The domains of Knative's services; none where the operator may not read them. */
    private List<String> domains() {
        List<String> all = new ArrayList<>();
        try {
            ObjectNode map = client.get(ResourceKinds.CONFIG_MAP, KNATIVE, DOMAINS);
            JsonNode data = map == null ? Trees.object() : map.path("data");
            data.fieldNames().forEachRemaining(all::add);
        } catch (ServingException e) {
            if (e.code() != ErrorCode.PERMISSION_DENIED) {
                throw e;
            }
        }
        return all;
    }
}
