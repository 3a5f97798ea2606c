// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.pool;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.revision.GatewayObjects;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * The objects of a pool: a Deployment, a headless Service by which its pods are found, and a ConfigMap with the rules of
 * access; and for each model an EndpointSlice with the pods that have it, which the gateways follow as they follow those
 * of revisions with pods of their own. Stateless.
 */
public final class PoolObjects {
    /** The label of objects that belong to a pool as a whole, with the name of the pool. */
    public static final String OF_POOL = "nereid.io/pool-of";

    static final String ACCESS = "/etc/nereid/pool";
    static final String KEYS = "keys.json";
    static final String RULES = "access.yaml";
    static final String CACHE = "/var/cache/nereid-pool";

    private static final String VOLUME = "nereid-pool";
    private static final String MODEL_SUFFIX = "-trainedmodel";
    private static final int LONGEST_MODEL = 42;
    private static final int HTTP = 8080;
    private static final int GRPC = 8081;

    /** Callers without credentials may do what those of a server of one model may; models are the operator's to load. */
    private static final String ROLES = """
            anonymous: [pool-client]
            roles:
              pool-client:
                permissions: [health, infer, metadata, metrics, observe]
            """;

    private PoolObjects() {}

    /** A pod that has a model. Immutable. */
    public record Holder(String name, String uid, String address, int httpPort, int grpcPort, String zone) {}

    /** The name of the pool of a runtime, in a namespace; that of its Deployment, Service and ConfigMap too. */
    public static String name(String runtime) {
        String name = "nereid-pool-" + runtime;
        return name.length() <= 63 ? name : name.substring(0, 52) + "-" + Integer.toHexString(runtime.hashCode());
    }

    /** The volumes of a pool's pod: the cache of models, and the rules of access. */
    static void mount(ObjectNode pod, ObjectNode container) {
        ObjectNode cache = Trees.object().put("name", VOLUME + "-cache");
        cache.putObject("emptyDir");
        Trees.addNamed(pod, "volumes", cache);
        ObjectNode access = Trees.object().put("name", VOLUME + "-access");
        access.putObject("configMap");
        Trees.addNamed(pod, "volumes", access);
        Trees.list(container, "volumeMounts")
                .addObject()
                .put("name", VOLUME + "-cache")
                .put("mountPath", CACHE);
        Trees.list(container, "volumeMounts")
                .addObject()
                .put("name", VOLUME + "-access")
                .put("mountPath", ACCESS)
                .put("readOnly", true);
    }

    /**
     * The ConfigMap with the rules of access.
     *
     * @param key the id of the operator's key
     * @param sha256 its SHA-256, in hexadecimal digits
     */
    public static ObjectNode access(String namespace, String pool, String key, String sha256) {
        ObjectNode map = object("v1", "ConfigMap", namespace, pool, pool);
        ObjectNode keys = Trees.object();
        ObjectNode one = keys.putArray("keys").addObject();
        one.put("name", "operator").put("id", key).put("sha256", sha256);
        one.putArray("roles").add("manager");
        map.putObject("data").put(KEYS, keys.toString()).put(RULES, ROLES);
        return map;
    }

    /** The headless Service of a pool. */
    public static ObjectNode service(String namespace, String pool) {
        ObjectNode service = object("v1", "Service", namespace, pool, pool);
        ObjectNode spec = service.putObject("spec");
        spec.put("clusterIP", "None");
        spec.putObject("selector").put(OF_POOL, pool);
        ports(spec);
        return service;
    }

    private static void ports(ObjectNode spec) {
        for (Map.Entry<String, Integer> port :
                List.of(Map.entry(GatewayObjects.HTTP_PORT, HTTP), Map.entry(GatewayObjects.GRPC_PORT, GRPC))) {
            Trees.list(spec, "ports")
                    .addObject()
                    .put("name", port.getKey())
                    .put("port", port.getValue())
                    .put("targetPort", port.getValue())
                    .put("protocol", "TCP");
        }
    }

    /** The Deployment of a pool. */
    public static ObjectNode deployment(String namespace, String pool, JsonNode pod, int replicas) {
        ObjectNode deployment = object("apps/v1", "Deployment", namespace, pool, pool);
        ObjectNode spec = deployment.putObject("spec");
        spec.put("replicas", replicas);
        spec.putObject("selector").putObject("matchLabels").put(OF_POOL, pool);
        // Models move from one pod after the other.
        spec.putObject("strategy")
                .put("type", "RollingUpdate")
                .putObject("rollingUpdate")
                .put("maxUnavailable", 0)
                .put("maxSurge", 1);
        ObjectNode template = spec.putObject("template");
        template.putObject("metadata").putObject("labels").put("app", pool).put(OF_POOL, pool);
        ObjectNode own = pod.deepCopy();
        for (JsonNode volume : own.path("volumes")) {
            if (volume.path("name").asText().equals(VOLUME + "-access")) {
                ((ObjectNode) volume).withObject("/configMap").put("name", pool);
            }
        }
        template.set("spec", own);
        return deployment;
    }

    /** The labels of the Service of a model, by which the gateways find its EndpointSlice. */
    private static Map<String, String> labels(String service, String revision, String pool) {
        Map<String, String> labels = new LinkedHashMap<>();
        labels.put("app", revision);
        labels.put(GatewayObjects.REVISION_LABEL, revision);
        labels.put(GatewayObjects.SERVICE_LABEL, service);
        labels.put(SharedPlacement.POOL, pool);
        return labels;
    }

    /**
     * The headless Service of a model, without a selector: the operator writes its EndpointSlice.
     *
     * @param service the name of the InferenceService
     * @param settings the annotation {@link GatewayObjects#REVISION}
     */
    public static ObjectNode privateService(
            Owner owner, String service, String revision, String pool, String settings) {
        ObjectNode made = owner.object(
                "v1",
                "Service",
                GatewayObjects.privateService(revision),
                labels(service, revision, pool),
                Map.of(GatewayObjects.REVISION, settings));
        ObjectNode spec = made.putObject("spec");
        spec.put("clusterIP", "None");
        ports(spec);
        return made;
    }

    /**
     * The name of the revision of a TrainedModel, whose Service has a name of at most 63 characters, which begins with a
     * letter. No service has revisions of such a name.
     */
    public static String modelRevision(String model) {
        boolean whole = model.length() <= LONGEST_MODEL && Character.isLetter(model.charAt(0));
        String name = whole
                ? model
                : "m-" + model.substring(0, Math.min(model.length(), LONGEST_MODEL - 11)) + "-"
                        + String.format(Locale.ROOT, "%08x", model.hashCode());
        return name + MODEL_SUFFIX;
    }

    /** The name of the EndpointSlice of a model. */
    public static String sliceName(String revision) {
        return GatewayObjects.privateService(revision) + "-pool";
    }

    /** The text of {@link GatewayObjects#TABLE} for these pods. */
    public static String table(List<Holder> holders) {
        StringBuilder text = new StringBuilder("pods");
        for (Holder holder : holders) {
            text.append(' ').append(holder.name()).append('=').append(holder.address());
        }
        return text.toString();
    }

    /**
     * The EndpointSlice of a model: the pods that have it.
     *
     * @param service the name of the InferenceService
     */
    public static ObjectNode slice(Owner owner, String service, String revision, String pool, List<Holder> holders) {
        Map<String, String> labels = labels(service, revision, pool);
        labels.put(GatewayObjects.SLICE_SERVICE, GatewayObjects.privateService(revision));
        labels.put("endpointslice.kubernetes.io/managed-by", "nereid-operator");
        ObjectNode slice = owner.object(
                "discovery.k8s.io/v1",
                "EndpointSlice",
                sliceName(revision),
                labels,
                Map.of(GatewayObjects.TABLE, table(holders)));
        boolean six = !holders.isEmpty() && holders.get(0).address().contains(":");
        slice.put("addressType", six ? "IPv6" : "IPv4");
        slice.putArray("ports");
        int http = holders.isEmpty() ? HTTP : holders.get(0).httpPort();
        int grpc = holders.isEmpty() ? GRPC : holders.get(0).grpcPort();
        port(slice, GatewayObjects.HTTP_PORT, http);
        port(slice, GatewayObjects.GRPC_PORT, grpc);
        slice.putArray("endpoints");
        for (Holder holder : holders) {
            ObjectNode endpoint = Trees.list(slice, "endpoints").addObject();
            endpoint.putArray("addresses").add(holder.address());
            endpoint.putObject("conditions")
                    .put("ready", true)
                    .put("serving", true)
                    .put("terminating", false);
            ObjectNode pod = endpoint.putObject("targetRef");
            pod.put("kind", "Pod")
                    .put("namespace", owner.namespace())
                    .put("name", holder.name())
                    .put("uid", holder.uid());
            if (!holder.zone().isEmpty()) {
                endpoint.put("zone", holder.zone());
            }
        }
        return slice;
    }

    private static void port(ObjectNode slice, String name, int number) {
        if (number > 0) {
            Trees.list(slice, "ports")
                    .addObject()
                    .put("name", name)
                    .put("port", number)
                    .put("protocol", "TCP");
        }
    }

    private static ObjectNode object(String version, String kind, String namespace, String name, String pool) {
        ObjectNode object = Trees.object();
        object.put("apiVersion", version).put("kind", kind);
        ObjectNode meta = object.putObject("metadata").put("name", name).put("namespace", namespace);
        meta.putObject("labels").put(OF_POOL, pool).put("app.kubernetes.io/part-of", "nereid");
        return object;
    }
}
