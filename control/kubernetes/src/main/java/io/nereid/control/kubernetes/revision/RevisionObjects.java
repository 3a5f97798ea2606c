// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.revision;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.GoDuration;
import io.nereid.control.core.Route;
import io.nereid.control.core.Route.IngressRule;
import io.nereid.control.core.RouteCodec;
import io.nereid.control.core.Workload;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.kubernetes.cluster.Trees;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * The objects of revisions and routes: for each revision a Deployment and a headless Service, for each name of a route a
 * Service that leads to the gateways. Names and labels are Knative's where it has such objects. Stateless.
 */
public final class RevisionObjects {
    private static final String KNATIVE = "serving.knative.dev/";
    private static final double BURST = 211;
    private static final int DEFAULT_PORT = 8080;
    private static final int DRAIN_SECONDS = 5;
    private static final int DEADLINE_SECONDS = 600;
    private static final List<String> NOT_OF_PODS =
            List.of("autoscaling.knative.dev/", "nereid.io/", "serving.knative.dev/", GatewayObjects.ENABLE_AUTH);

    private RevisionObjects() {}

    /** The name of a revision's Deployment. */
    public static String deploymentName(String revision) {
        return revision + "-deployment";
    }

    /** The revision that an object or a pod belongs to; empty for none. */
    public static String revision(ObjectNode object) {
        return object.path("metadata")
                .path("labels")
                .path(GatewayObjects.REVISION_LABEL)
                .asText("");
    }

    /**
     * The Deployment of a revision.
     *
     * @param replicas the number of replicas; null to leave it to the autoscaler
     */
    public static ObjectNode deployment(Owner owner, Workload workload, @Nullable Integer replicas) {
        Workload.Pod form = (Workload.Pod) workload.form();
        Map<String, String> labels = labels(owner, workload);
        ObjectNode deployment = owner.object(
                "apps/v1", "Deployment", deploymentName(workload.revision()), labels, workload.annotations());
        ObjectNode spec = deployment.putObject("spec");
        if (replicas != null) {
            spec.put("replicas", replicas);
        }
        spec.putObject("selector").putObject("matchLabels").put(GatewayObjects.REVISION_LABEL, workload.revision());
        // A pod goes only when another one takes its requests.
        spec.putObject("strategy")
                .put("type", "RollingUpdate")
                .putObject("rollingUpdate")
                .put("maxUnavailable", 0)
                .put("maxSurge", "25%");
        spec.put("progressDeadlineSeconds", progressDeadline(workload));
        ObjectNode template = spec.putObject("template");
        ObjectNode meta = template.putObject("metadata");
        Trees.map(meta, "labels", labels);
        Trees.map(meta, "annotations", ofPods(workload.annotations()));
        ObjectNode pod = ((ObjectNode) form.spec()).deepCopy();
        if (!pod.hasNonNull("terminationGracePeriodSeconds")) {
            pod.put("terminationGracePeriodSeconds", workload.timeout().toSeconds());
        }
        variables(pod, workload.revision(), labels);
        started(pod, progressDeadline(workload));
        drained(pod);
        template.set("spec", pod);
        return deployment;
    }

    /** The seconds after which Kubernetes reports pods that do not become ready. */
    private static long progressDeadline(Workload workload) {
        String text = workload.scaling().settings().get("progress-deadline");
        Duration deadline = text == null ? null : GoDuration.parse(text);
        return deadline == null || deadline.compareTo(Duration.ofSeconds(1)) < 0
                ? DEADLINE_SECONDS
                : Math.min(Integer.MAX_VALUE, deadline.toSeconds());
    }

    /**
     * The variables that Knative's contract of containers gives: the names of the revision and its owners, and {@code PORT}
     * for a container that takes requests. They come first, so that other variables and arguments can refer to them; what
     * the resource defines stays.
     */
    private static void variables(ObjectNode pod, String revision, Map<String, String> labels) {
        JsonNode containers = pod.path("containers");
        for (JsonNode container : containers) {
            Map<String, String> given = new LinkedHashMap<>();
            int port = container.path("ports").path(0).path("containerPort").asInt();
            if (port != 0 || containers.size() == 1) {
                given.put("PORT", Integer.toString(port == 0 ? DEFAULT_PORT : port));
            }
            given.put("K_REVISION", revision);
            given.put("K_CONFIGURATION", labels.get(KNATIVE + "configuration"));
            given.put("K_SERVICE", labels.get(KNATIVE + "service"));
            ArrayNode all = pod.arrayNode();
            container.path("env").forEach(one -> given.remove(one.path("name").asText()));
            given.forEach((name, value) -> all.addObject().put("name", name).put("value", value));
            all.addAll(Trees.list((ObjectNode) container, "env"));
            ((ObjectNode) container).set("env", all);
        }
    }

    /**
     * A container whose readiness probe has no times of its own is probed each second until it answers for the first time, as
     * Knative's queue-proxy does: requests may wait for it, and the usual period is ten seconds. One that does not answer
     * before the deadline of the revision is started again.
     */
    private static void started(ObjectNode pod, long deadline) {
        for (JsonNode container : pod.path("containers")) {
            JsonNode ready = container.path("readinessProbe");
            if (!ready.isObject()
                    || ready.hasNonNull("periodSeconds")
                    || ready.hasNonNull("initialDelaySeconds")
                    || container.hasNonNull("startupProbe")) {
                continue;
            }
            ObjectNode startup = ready.deepCopy();
            startup.remove("successThreshold");
            startup.put("periodSeconds", 1).put("failureThreshold", deadline);
            ((ObjectNode) container).set("startupProbe", startup);
        }
    }

    /**
     * A pod that ends goes on serving for some seconds, in which gateways learn that it ends, as behind Knative's queue-proxy:
     * its programs get SIGTERM afterwards. What the resource defines stays.
     */
    private static void drained(ObjectNode pod) {
        if (pod.path("terminationGracePeriodSeconds").asLong() <= DRAIN_SECONDS) {
            return;
        }
        for (JsonNode container : pod.path("containers")) {
            if (!container.path("lifecycle").hasNonNull("preStop")) {
                ((ObjectNode) container)
                        .withObject("/lifecycle")
                        .putObject("preStop")
                        .putObject("sleep")
                        .put("seconds", DRAIN_SECONDS);
            }
        }
    }

    /** The annotations of pods: a change of how a revision is scaled or routed must not restart them. */
    private static Map<String, String> ofPods(Map<String, String> annotations) {
        Map<String, String> all = new LinkedHashMap<>(annotations);
        all.keySet().removeIf(key -> NOT_OF_PODS.stream().anyMatch(key::startsWith));
        return all;
    }

    private static Map<String, String> labels(Owner owner, Workload workload) {
        Map<String, String> labels = new LinkedHashMap<>(workload.labels());
        labels.put("app", workload.revision());
        labels.put(GatewayObjects.REVISION_LABEL, workload.revision());
        labels.put(
                KNATIVE + "service", owner.name() + "-" + workload.component().text());
        labels.put(
                KNATIVE + "configuration",
                owner.name() + "-" + workload.component().text());
        labels.put(GatewayObjects.SERVICE_LABEL, owner.name());
        return labels;
    }

    /** The headless Service of a revision, by which gateways find its pods. */
    public static ObjectNode privateService(Owner owner, Workload workload) {
        Workload.Pod form = (Workload.Pod) workload.form();
        RevisionSettings settings = new RevisionSettings(
                owner.name(),
                workload.containerConcurrency(),
                workload.timeout(),
                form.httpPort(),
                form.grpcPort(),
                true,
                burst(workload.scaling().settings().get("target-burst-capacity")));
        Map<String, String> labels = new LinkedHashMap<>();
        labels.put("app", workload.revision());
        labels.put("component", workload.component().text());
        labels.put(GatewayObjects.REVISION_LABEL, workload.revision());
        labels.put(
                KNATIVE + "service", owner.name() + "-" + workload.component().text());
        labels.put(GatewayObjects.SERVICE_LABEL, owner.name());
        labels.put("networking.internal.knative.dev/serviceType", "Private");
        ObjectNode service = owner.object(
                "v1",
                "Service",
                GatewayObjects.privateService(workload.revision()),
                labels,
                Map.of(GatewayObjects.REVISION, settings.toJson()));
        ObjectNode spec = service.putObject("spec");
        spec.put("clusterIP", "None");
        spec.putObject("selector").put(GatewayObjects.REVISION_LABEL, workload.revision());
        port(spec, GatewayObjects.HTTP_PORT, form.httpPort());
        if (form.grpcPort() != form.httpPort()) {
            port(spec, GatewayObjects.GRPC_PORT, form.grpcPort());
        }
        return service;
    }

    private static void port(ObjectNode spec, String name, int number) {
        if (number > 0) {
            ObjectNode port = Trees.list(spec, "ports").addObject();
            port.put("name", name).put("port", number).put("targetPort", number).put("protocol", "TCP");
            if (name.equals(GatewayObjects.GRPC_PORT)) {
                port.put("appProtocol", "kubernetes.io/h2c");
            }
        }
    }

    /** Knative's default for what is missing or not a number, which the planner reports. */
    private static double burst(@Nullable String text) {
        if (text == null) {
            return BURST;
        }
        try {
            double burst = Double.parseDouble(text.strip());
            return Double.isFinite(burst) && (burst >= 0 || burst == -1) ? burst : BURST;
        } catch (NumberFormatException e) {
            return BURST;
        }
    }

    /**
     * The Services by whose names a route is reached within the cluster: that of the service with the route itself, and one
     * for each component and tag.
     *
     * @param gateway the name of the gateways' Service in the cluster, such as {@code
     *     nereid-gateway.nereid.svc.cluster.local}
     * @param enableAuth the service's annotation {@link GatewayObjects#ENABLE_AUTH}; empty for none
     */
    public static List<ObjectNode> routeServices(Owner owner, Route route, String gateway, String enableAuth) {
        String suffix = "." + route.namespace() + ".svc";
        TreeSet<String> names = new TreeSet<>();
        for (IngressRule rule : route.rules()) {
            if (rule.host().endsWith(suffix)) {
                names.add(rule.host().substring(0, rule.host().length() - suffix.length()));
            }
        }
        names.add(route.name());
        List<ObjectNode> services = new ArrayList<>();
        for (String name : names) {
            Map<String, String> labels = new LinkedHashMap<>();
            if (route.kind().equals("InferenceService")) {
                labels.put(GatewayObjects.SERVICE_LABEL, owner.name());
            } else {
                labels.put("serving.kserve.io/inferencegraph", owner.name());
            }
            Map<String, String> annotations = Map.of();
            if (name.equals(route.name())) {
                labels.put(GatewayObjects.ROUTE, "true");
                annotations = enableAuth.isEmpty()
                        ? Map.of(GatewayObjects.ROUTE, RouteCodec.write(route))
                        : Map.of(GatewayObjects.ROUTE, RouteCodec.write(route), GatewayObjects.ENABLE_AUTH, enableAuth);
            }
            ObjectNode service = owner.object("v1", "Service", name, labels, annotations);
            ObjectNode spec = service.putObject("spec");
            spec.put("type", "ExternalName").put("externalName", gateway);
            Trees.list(spec, "ports")
                    .addObject()
                    .put("name", "http")
                    .put("port", 80)
                    .put("targetPort", 80)
                    .put("protocol", "TCP");
            services.add(service);
        }
        return services;
    }
}
