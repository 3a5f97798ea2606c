// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.pod;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ClusterStorageContainer;
import io.nereid.control.api.InferenceService;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Trees;
import java.util.List;
import java.util.Map;

/**
 * What KServe's pod webhook adds to a pod by its annotations: the storage initialiser with its credentials, the agent of
 * logging, batching and of servers with many models, models in images, and the annotations of metrics. Here it is put
 * into the Deployment's template, so that pods start while the operator is away, and without a webhook. A pure function
 * of its inputs; confined to one planning.
 *
 * <pre>{@code
 * ObjectNode template = (ObjectNode) deployment.at("/spec/template");
 * new PodInjection(service, settings, cluster, catalog.storageContainers()).into(template);
 * }</pre>
 */
public final class PodInjection {
    private final InferenceService service;
    private final ClusterSettings settings;
    private final StorageInjection storage;
    private final StorageCredentials credentials;

    public PodInjection(
            InferenceService service,
            ClusterSettings settings,
            ObservedCluster cluster,
            List<ClusterStorageContainer> storageContainers) {
        this.service = service;
        this.settings = settings;
        this.credentials = new StorageCredentials(cluster, settings);
        this.storage = new StorageInjection(
                settings, credentials, storageContainers, service.metadata().namespace());
    }

    /**
     * Changes the template of a Deployment's pods.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT or NOT_FOUND for what the pod needs and the cluster does
     *     not have, such as a secret
     */
    public void into(ObjectNode template) {
        ObjectNode pod = Trees.object(template, "spec");
        Map<String, String> annotations = Trees.map(template.path("metadata").path("annotations"));
        accelerator(pod, annotations);
        storage.single(pod, annotations);
        new AgentInjection(service, settings, credentials).into(template, annotations);
        EngineContainer.credentials(pod, annotations, credentials);
        metrics(Trees.object(Trees.object(template, "metadata"), "annotations"), pod);
        storage.image(pod, annotations);
    }

    /**
     * Adds the downloads of several {@code storageUris}, each to its own path.
     *
     * @throws io.nereid.base.ServingException as {@link #into}
     */
    public void storageUris(
            ObjectNode pod,
            List<InferenceService.StorageUri> uris,
            String storageContainer,
            Map<String, String> annotations) {
        storage.several(pod, uris, storageContainer, annotations);
    }

    /** Adds the credentials of the pod's service account to its server, which fetches models itself. */
    public void credentials(ObjectNode pod) {
        ObjectNode main = Trees.named(pod.path("containers"), PodNames.MAIN);
        if (main != null) {
            credentials.ofAccount(StorageCredentials.account(pod), Map.of(), main, pod);
        }
    }

    private static void accelerator(ObjectNode pod, Map<String, String> annotations) {
        String selector = annotations.get(PodNames.GROUP + "gke-accelerator");
        if (selector == null) {
            return;
        }
        for (JsonNode container : pod.path("containers")) {
            for (var limit : container.path("resources").path("limits").properties()) {
                if (limit.getKey().equals("nvidia.com/gpu") || limit.getKey().startsWith("nvidia.com/mig")) {
                    Trees.object(pod, "nodeSelector").put("cloud.google.com/gke-accelerator", selector);
                }
            }
        }
    }

    private void metrics(ObjectNode annotations, ObjectNode pod) {
        JsonNode section = settings.section("metricsAggregator");
        String aggregation = PodNames.GROUP + "enable-metric-aggregation";
        String scraping = PodNames.GROUP + "enable-prometheus-scraping";
        if (!annotations.has(aggregation)) {
            annotations.put(aggregation, section.path("enableMetricAggregation").asText("false"));
        }
        if (!annotations.has(scraping)) {
            annotations.put(scraping, section.path("enablePrometheusScraping").asText("false"));
        }
        ObjectNode queue = Trees.named(pod.path("containers"), PodNames.QUEUE);
        if (queue != null && annotations.path(aggregation).asText().equals("true")) {
            aggregate(queue, annotations);
        }
        if (annotations.path(scraping).asText().equals("true")) {
            boolean aggregated = annotations.path(aggregation).asText().equals("true");
            annotations.put("prometheus.io/port", aggregated ? "9088" : "9091");
            annotations.put("prometheus.io/path", "/metrics");
        }
    }

    /** Has Knative's queue, in KServe's image of it, join the metrics of the server to its own. */
    private static void aggregate(ObjectNode queue, JsonNode annotations) {
        Trees.setEnv(
                queue,
                "KSERVE_CONTAINER_PROMETHEUS_METRICS_PORT",
                annotations.path("prometheus.kserve.io/port").asText("8080"));
        Trees.setEnv(
                queue,
                "KSERVE_CONTAINER_PROMETHEUS_METRICS_PATH",
                annotations.path("prometheus.kserve.io/path").asText("/metrics"));
        Trees.setEnv(queue, "AGGREGATE_PROMETHEUS_METRICS_PORT", "9088");
        Trees.addNamed(
                queue,
                "ports",
                Trees.object()
                        .put("name", "aggr-metric")
                        .put("containerPort", 9088)
                        .put("protocol", "TCP"));
    }
}
